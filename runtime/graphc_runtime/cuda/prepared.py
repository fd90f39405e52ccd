# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments of kernels in memory, and calls of the driver with all their arguments."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import TypeAlias

from graphc_runtime.cuda.asks import Ask, AskCopy, AskProduct, Place
from graphc_runtime.cuda.calls import Bound, Calls
from graphc_runtime.cuda.cublas import Cublas
from graphc_runtime.cuda.driver import DriverError

Library: TypeAlias = Callable[[], Cublas]
_SLOT = 8
# Every argument has a slot of 8 bytes.
_CODES = dict(
    zip(
        "pointer int64 uint64 float64 int32 uint32 float32 int16 uint16 float16 int8 uint8 bool".split(),
        "Q q Q d i4x I4x f4x h6x H6x e6x b7x B7x ?7x".split(),
        strict=True,
    )
)


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
    """Frame of one call: a table of addresses, and calls of the driver that point into it."""

    def __init__(self, calls: Calls, asks: Sequence[Ask], places: int, stream: int, library: Library) -> None:
        self.table = (ctypes.c_uint64 * max(places, 1))()
        self.fill = struct.Struct(f"={places}Q").pack_into
        self._packers: list[Packer] = []
        self.bound = [self._bound(calls, ask, stream, library) for ask in asks]

    def _bound(self, calls: Calls, ask: Ask, stream: int, library: Library) -> Bound:
        if isinstance(ask, AskProduct):
            a, b, c = map(self._address, ask.matrices)
            return library().bound(ask.gemm, (a, b, c), stream)
        if isinstance(ask, AskCopy):
            return calls.bound_copy(self._address(ask.target), self._address(ask.source), ask.nbytes, stream)
        packer = Packer(ask.types)
        values = [0 if isinstance(value, Place) else value for value in ask.values]
        packer.pack_into(packer.slots, 0, *values)
        first = ctypes.addressof(self.table)
        for i, value in enumerate(ask.values):
            if isinstance(value, Place):
                packer.pointers[i] = first + _SLOT * value.number
        self._packers.append(packer)
        return calls.bound_launch(
            ask.function, ask.grid, ask.block, ask.shared, stream, packer.address, ask.cooperative
        )

    def _address(self, place: Place) -> ctypes.c_uint64:
        """Address at a place whenever the driver is called."""
        return ctypes.c_uint64.from_buffer(self.table, _SLOT * place.number)


class PreparedCalls:
    """`Driver.prepare` for the driver's library.

    A call takes a frame that no other call works with, be it of another thread or one within which it runs.

    Args:
        calls: functions of the driver.
        asks: what is asked for.
        places: how many addresses the table has.
        stream: in which.
        enter: makes the context current.
        failure: the error of an ask and its status.
        library: gives the one for matrix products.
    """

    def __init__(
        self,
        calls: Calls,
        asks: Sequence[Ask],
        places: int,
        stream: int,
        enter: Callable[[], None],
        failure: Callable[[Ask, int], DriverError],
        library: Library,
    ) -> None:
        self._calls, self._asks, self._places, self._stream = calls, asks, places, stream
        self._enter, self._failure, self._library = enter, failure, library
        self._free: list[_Frame] = []

    def __call__(self, addresses: Sequence[int]) -> None:
        """Asks for everything.

        Raises:
            DriverError: the driver refuses; it has the step.
        """
        self._enter()
        try:
            frame = self._free.pop()
        except IndexError:
            frame = _Frame(self._calls, self._asks, self._places, self._stream, self._library)
        frame.fill(frame.table, 0, *addresses)
        for number, call in enumerate(frame.bound):
            status = call()
            if status:
                ask = self._asks[number]
                raise self._failure(ask, status).at(ask.step)
        # The driver has copied the arguments. A frame that an error leaves behind is dropped.
        self._free.append(frame)
