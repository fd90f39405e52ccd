# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The part of an entry that lends the memory of arguments to results.

A kernel computes such a result in the argument's memory: both have one address. That is

* the donated array itself, if it is writable and shares no memory with another argument; the call returns it;
* the array given by `out=`, or a new one, after the argument has been copied there;
* the array of a cell, if nothing but the cell refers to it; else a new array, as before.

A spare, which the kernel does not read, is the result where it has the same sizes, on the same conditions.

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
        self.spare = {result: argument for argument, result in entry.s.spares}
        self.inputs = {
            result: argument for result, argument in self.source.items() if argument < len(entry.s.inputs)
        }

    def require_free(self) -> None:
        """Goes slow, with nothing owned, unless the donated inputs may be overwritten."""
        if self.inputs or self.spare:
            self._entry.measure(len(self._entry.s.arguments))
        for argument in self.inputs.values():
            for fact in self._may_change(argument):
                self._w.require(fact, "bail")

    def _may_change(self, argument: int) -> list[str]:
        """That an array is writable, and that it shares no memory with another argument."""
        w = self._w
        writeable = self._entry.tier.writeable(argument, self._values[argument])
        shared = w.let(
            "call i1 @graphc_shares(ptr %data, ptr %bytes, "
            f"i64 {argument}, i64 {len(self._entry.s.arguments)})"
        )
        return [writeable, w.let(f"xor i1 {shared}, true")]

    def give(self, result: int) -> None:
        """Makes the array of a donated argument the result, a new one where there is none."""
        if result in self.source:
            self._own(result, self.source[result])
        elif result in self.spare:
            self._offer(result, self.spare[result])
        else:
            self._entry.make(result)

    def _offer(self, result: int, argument: int) -> None:
        """Makes the array of a spare the result if it fits, else a new one."""
        w, first = self._w, self._entry.starts[argument]
        facts = [
            w.let(f"icmp eq i64 {w.load('i64', '%dims', 8 * (first + axis))}, {size}")
            for axis, size in enumerate(self._entry.sizes[result])
        ]
        fits = w.all([*facts, *self._may_change(argument)])
        w.line(f"  br i1 {fits}, label %own{result}, label %share{result}, !prof !0")
        w.label(f"own{result}")
        self._own(result, argument)
        w.line(f"  br label %ready{result}")
        w.label(f"share{result}")
        self._entry.make(result)
        w.line(f"  br label %ready{result}")
        w.label(f"ready{result}")

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
