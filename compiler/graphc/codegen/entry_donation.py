# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The part of an entry that lends the memory of arguments to results.

A kernel computes such a result in the argument's memory: both have one address. That is

* the donated array itself, if it is writable and shares no memory with another argument; the call returns it;
* the array given by `out=`, or a new one, after the argument has been copied there;
* the array of a cell, if nothing but the cell refers to it; else a new array, as before.

The array of a cell can be read by other threads, so the GIL is kept while it changes.
"""

from __future__ import annotations

from typing import Any

COPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"


class Lender:
    """Writes the code for the donated arguments of one entry.

    Args:
        entry: the entry that is being written; its arguments have been read.
        values: the objects of inputs and cells.
    """

    def __init__(self, entry: Any, values: list[str]) -> None:
        self._entry, self._values = entry, values
        self._w = entry.w
        self.source = {result: argument for argument, result in entry.s.donated}
        self.inputs = {
            result: argument for result, argument in self.source.items() if argument < len(entry.s.inputs)
        }

    def require_free(self) -> None:
        """Goes slow, with nothing owned, unless the donated inputs may be overwritten."""
        if not self.inputs:
            return
        w, arguments = self._w, self._entry.s.arguments
        self._entry.measure(len(arguments))
        for argument in self.inputs.values():
            w.require(self._entry.tier.writeable(argument, self._values[argument]), "bail")
            shared = w.let(
                f"call i1 @graphc_shares(ptr %data, ptr %bytes, i64 {argument}, i64 {len(arguments)})"
            )
            w.require(w.let(f"xor i1 {shared}, true"), "bail")

    def give(self, result: int) -> None:
        """Makes the array of a donated argument the result."""
        self._own(result, self.source[result])

    def copy(self, result: int) -> None:
        """Copies a donated argument to where its result is, and lets the kernel work there."""
        w, argument = self._w, self.source[result]
        position = len(self._entry.s.arguments) + result
        target = w.load("ptr", "%data", 8 * position)
        w.line(
            f"  call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {w.load('ptr', '%data', 8 * argument)}, "
            f"i64 {self._entry.bytes_of(argument)}, i1 false)"
        )
        w.store("ptr", target, "%data", 8 * argument)

    def update(self, result: int) -> None:
        """Makes the array of the new value of a cell: its own, or a copy."""
        w, argument = self._w, self.source[result]
        exclusive = self._entry.tier.exclusive(self._values[argument])
        if exclusive is None:
            self._entry.make(result)
            self.copy(result)
            return
        w.line(f"  br i1 {exclusive}, label %own{result}, label %share{result}, !prof !0")
        w.label(f"own{result}")
        self._own(result, argument)
        w.line(f"  br label %ready{result}")
        w.label(f"share{result}")
        self._entry.make(result)
        self.copy(result)
        w.line(f"  br label %ready{result}")
        w.label(f"ready{result}")
        self._entry.exclusive.append(exclusive)

    def _own(self, result: int, argument: int) -> None:
        w, value = self._w, self._values[argument]
        w.line(f"  call void @Py_IncRef(ptr {value})")
        w.store("ptr", value, "%owned", 8 * result)
        data = w.load("ptr", "%data", 8 * argument)
        w.store("ptr", data, "%data", 8 * (len(self._entry.s.arguments) + result))
