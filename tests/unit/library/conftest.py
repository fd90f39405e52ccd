# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts what machine code allocates."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from graphc_runtime import symbols

_POINTER, _SIZE = ctypes.c_void_p, ctypes.c_size_t


@dataclass
class Heap:
    """What objects that were loaded meanwhile allocate."""

    sizes: list[int] = field(default_factory=list)
    freed: int = 0
    known: set[int] = field(default_factory=set)

    @property
    def calls(self) -> int:
        return len(self.sizes)


@pytest.fixture
def heap() -> Iterator[Heap]:
    """Counts calls of malloc, realloc and free by machine code that is loaded during the test."""
    counts = Heap()
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = _POINTER, [_SIZE]
    libc.realloc.restype, libc.realloc.argtypes = _POINTER, [_POINTER, _SIZE]
    libc.free.restype, libc.free.argtypes = None, [_POINTER]

    def malloc(size: int) -> int | None:
        counts.sizes.append(size)
        return libc.malloc(size)

    def realloc(old: int | None, size: int) -> int | None:
        counts.sizes.append(size)
        counts.freed += old is not None
        return libc.realloc(old, size)

    def free(address: int | None) -> None:
        counts.freed += address is not None
        libc.free(address)

    kinds = {
        "malloc": ctypes.CFUNCTYPE(_POINTER, _SIZE)(malloc),
        "realloc": ctypes.CFUNCTYPE(_POINTER, _POINTER, _SIZE)(realloc),
        "free": ctypes.CFUNCTYPE(None, _POINTER)(free),
    }
    for name, function in kinds.items():
        symbols.register(name, ctypes.cast(function, _POINTER).value or 0, function)
    try:
        yield counts
    finally:
        for name in kinds:
            symbols._REGISTERED.pop(name)
            symbols.ADDRESSES.pop(name, None)
