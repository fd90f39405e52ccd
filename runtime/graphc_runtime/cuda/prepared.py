# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments of kernels in memory, and calls of the driver with all their arguments.

What a call asks for are records of C: functions of the driver with their arguments (`graphc_ask` of the code
that ships, in `graphc.library.pool_region`), so that Python calls C once for all launches and copies between
requests to libraries, and each costs what the driver takes.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from graphc_runtime import threads
from graphc_runtime.cuda.asks import Ask, AskCopy, AskLaunch, AskLibrary, Place
from graphc_runtime.cuda.calls import Bound, Calls
from graphc_runtime.cuda.driver import DriverError
from graphc_runtime.cuda.started_libraries import Libraries
from graphc_runtime.errors import LoadError

_SLOT = 8
# Every argument has a slot of 8 bytes.
_CODES = dict(
    zip(
        "pointer int64 uint64 float64 int32 uint32 float32 int16 uint16 float16 int8 uint8 bool".split(),
        "Q q Q d i4x I4x f4x h6x H6x e6x b7x B7x ?7x".split(),
        strict=True,
    )
)


# Words of a record: the address of a function, whether its first two arguments stand where they point at, and
# arguments. Above the status of a call that fails is its number.
_RECORD, _FAILED = 16, 32


@cache
def _asker() -> Callable[..., int]:
    """`graphc_ask(records)`."""
    try:
        found = threads.address("graphc_ask")
    except LoadError:  # on systems where no code is loaded
        return ask_in_python
    # Without types of arguments, a reference is passed quickly.
    return ctypes.CFUNCTYPE(ctypes.c_int64)(found)


def ask_in_python(records: Any) -> int:
    """As `graphc_ask`, for a reference to a number of records and the words of these."""
    count, *words = records._obj
    for number in range(count):
        address, is_indirect, *arguments = words[_RECORD * number : _RECORD * (number + 1) - 2]
        if is_indirect:
            arguments[:2] = [ctypes.c_uint64.from_address(place).value for place in arguments[:2]]
        status = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_uint64] * len(arguments))(address)(*arguments)
        if status:
            return (number + 1 << _FAILED) + int(status)
    return 0


def taken_apart(found: int) -> tuple[int, int]:
    """The number of the call that has failed, from 0 on, and its status."""
    return (found >> _FAILED) - 1, found & (1 << _FAILED) - 1


class Records:
    """Functions of C with their arguments, to be called one after the other."""

    def __init__(self) -> None:
        self._words: list[int] = []

    def add(self, function: int, *arguments: int, is_indirect: bool = False) -> None:
        """Adds a call; with `is_indirect` the first two arguments are read where they point at."""
        free = _RECORD - 2 - len(arguments)
        self._words += [function, is_indirect, *arguments, *[0] * free]

    def bound(self) -> Bound:
        """Calls all; 0, or the number of the one that fails, from 1 on, above its status."""
        words = [len(self._words) // _RECORD, *self._words]
        return partial(_asker(), ctypes.byref((ctypes.c_uint64 * len(words))(*words)))


class Packer:
    """Memory for the arguments of kernels with certain types.

    Args:
        types: of the arguments.
    """

    def __init__(self, types: tuple[str, ...]) -> None:
        unknown = [name for name in types if name not in _CODES]
        if unknown:
            raise DriverError(f"kernels take no arguments of type {unknown[0]}")
        self.pack_into = struct.Struct("<" + "".join(_CODES[name] for name in types)).pack_into
        self.slots = ctypes.create_string_buffer(_SLOT * max(len(types), 1))
        first = ctypes.addressof(self.slots)
        self.pointers = (ctypes.c_void_p * max(len(types), 1))(
            *(first + _SLOT * i for i in range(len(types)))
        )
        self.address = ctypes.addressof(self.pointers)


class _Frame:
    """Frame of one call: a table of addresses, and calls of the driver that point into it.

    Attributes:
        ask: calls all; 0, or the number of the one that fails, from 1 on, above its status.
    """

    def __init__(
        self, calls: Calls, asks: Sequence[Ask], places: int, stream: int, libraries: Libraries
    ) -> None:
        self.table = (ctypes.c_uint64 * max(places, 1))()
        self.fill = struct.Struct(f"={places}Q").pack_into
        self._first = ctypes.addressof(self.table)
        self._packers: list[Packer] = []
        # Requests to libraries, and what is between them; with the number of asks before.
        self._parts: list[tuple[int, Records | Bound]] = []
        for number, ask in enumerate(asks):
            if isinstance(ask, AskLibrary):
                arrays = [
                    ctypes.c_uint64.from_buffer(self.table, _SLOT * place.number) for place in ask.arrays
                ]
                self._parts.append((number, libraries.of(ask.asked).bound(ask.asked, arrays, stream)))
                continue
            if not self._parts or not isinstance(self._parts[-1][1], Records):
                self._parts.append((number, Records()))
            records = self._parts[-1][1]
            assert isinstance(records, Records)
            self._add(records, calls, ask, stream)
        self._calls = [
            (number, True, part.bound()) if isinstance(part, Records) else (number, False, part)
            for number, part in self._parts
        ]
        self.ask: Bound = self._calls[0][2] if [x[1] for x in self._calls] == [True] else self._ask_parts

    def _ask_parts(self) -> int:
        for first, are_records, call in self._calls:
            found = call()
            if found:
                return found + ((first if are_records else first + 1) << _FAILED)
        return 0

    def _add(self, records: Records, calls: Calls, ask: AskCopy | AskLaunch, stream: int) -> None:
        if isinstance(ask, AskCopy):
            target, source = (self._first + _SLOT * place.number for place in (ask.target, ask.source))
            copy = calls.address("cuMemcpyDtoDAsync")
            records.add(copy, target, source, ask.nbytes, stream, is_indirect=True)
            return
        packer, asked = Packer(ask.launch.types), ask.launch
        values = [0 if isinstance(value, Place) else value for value in ask.values]
        packer.pack_into(packer.slots, 0, *values)
        for i, value in enumerate(ask.values):
            if isinstance(value, Place):
                packer.pointers[i] = self._first + _SLOT * value.number
        self._packers.append(packer)
        launch = calls.address("cuLaunchCooperativeKernel" if asked.cooperative else "cuLaunchKernel")
        sizes = *asked.grid, *asked.block, asked.shared
        records.add(launch, asked.function, *sizes, stream, packer.address)


class PreparedCalls:
    """`Driver.prepare` for the driver's library.

    A call takes a frame that no other call works with, be it of another thread or one within which it runs.

    Args:
        calls: functions of the driver.
        asks: what is asked for.
        places: how many addresses the table has.
        stream: in which.
        entered: has the attribute `entered` in threads where the context is current.
        enter: makes the context current.
        failure: the error of an ask and its status.
        libraries: of the device.
    """

    def __init__(
        self,
        calls: Calls,
        asks: Sequence[Ask],
        places: int,
        stream: int,
        entered: threading.local,
        enter: Callable[[], None],
        failure: Callable[[Ask, int], DriverError],
        libraries: Libraries,
    ) -> None:
        self._calls, self._asks, self._places, self._stream = calls, asks, places, stream
        self._entered, self._enter, self._failure, self._libraries = entered, enter, failure, libraries
        self._free: list[_Frame] = []

    def ask(self, addresses: Sequence[int]) -> None:
        """Asks for everything.

        Raises:
            DriverError: the driver refuses; it has the step.
        """
        if not hasattr(self._entered, "entered"):
            self._enter()
        free = self._free
        try:
            frame = free.pop()
        except IndexError:
            frame = _Frame(self._calls, self._asks, self._places, self._stream, self._libraries)
        frame.fill(frame.table, 0, *addresses)
        found = frame.ask()
        if found:
            number, status = taken_apart(found)
            ask = self._asks[number]
            raise self._failure(ask, status).at(ask.step)
        # The driver has copied the arguments. A frame that an error leaves behind is dropped.
        free.append(frame)
