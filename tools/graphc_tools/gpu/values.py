# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values of all threads of a block: arrays along axis 0, and memrefs whose parts are such arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from graphc_tools.gpu.memory import BoundsError, KernelError, Region


@dataclass(frozen=True)
class Memref:
    """An array in memory; all numbers have one entry a thread, or one for all.

    Attributes:
        region: the memory; None for a pointer to no memory, which arrays without elements may have.
        base: the byte of the region that offsets count from.
        offset, sizes, strides: in elements.
        dtype: of the elements.
    """

    region: Region | None
    base: np.ndarray
    offset: np.ndarray
    sizes: tuple[np.ndarray, ...]
    strides: tuple[np.ndarray, ...]
    dtype: np.dtype

    def pointer(self) -> np.ndarray:
        """The address that offsets count from."""
        return self.base + (0 if self.region is None else self.region.address)

    def starts(
        self, indices: Sequence[np.ndarray], lanes: np.ndarray, count: int, where: str
    ) -> tuple[Region, np.ndarray]:
        """The bytes at which the elements of these threads begin.

        Raises:
            BoundsError: an index, or one of `count` in a row, is outside of the array.
        """
        at = self.offset
        for axis, (index, size, stride) in enumerate(zip(indices, self.sizes, self.strides, strict=True)):
            last = index + (count - 1 if axis == len(indices) - 1 else 0)
            wrong = spread((index < 0) | (last >= size), lanes)
            if wrong.any():
                thread = int(lanes[wrong][0])
                found = [int(spread(i, lanes)[wrong][0]) for i in indices]
                sizes = [int(spread(n, lanes)[wrong][0]) for n in self.sizes]
                raise BoundsError(f"{where}: thread {thread} has index {found} in an array of shape {sizes}")
            at = at + index * stride
        if self.region is None:
            raise BoundsError(f"{where}: the array has no memory")
        return self.region, spread(self.base + at * self.dtype.itemsize, lanes)


Value: TypeAlias = "np.ndarray | Memref"


def spread(x: np.ndarray, lanes: np.ndarray) -> np.ndarray:
    """The entries of some threads."""
    if x.shape[0] == 1:
        return np.broadcast_to(x, (len(lanes), *x.shape[1:]))
    found: np.ndarray = x[lanes]
    return found


def uniform(x: np.ndarray, lanes: np.ndarray) -> bool:
    """True if these threads have the same value."""
    return x.shape[0] == 1 or not np.any(x[lanes] != x[lanes[0]])


def merged(chosen: np.ndarray, a: Value, b: Value) -> Value:
    """`a` where a thread has chosen, else `b`.

    Raises:
        KernelError: they are memrefs in different memory.
    """
    if isinstance(a, Memref) and isinstance(b, Memref):
        if a.region is not b.region:
            raise KernelError("arrays in different memory are chosen by thread")
        parts = [np.where(chosen, x, y) for x, y in zip(numbers(a), numbers(b), strict=True)]
        rank = len(a.sizes)
        sizes, strides = tuple(parts[2 : 2 + rank]), tuple(parts[2 + rank :])
        return replace(a, base=parts[0], offset=parts[1], sizes=sizes, strides=strides)
    assert isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
    return np.where(chosen.reshape(-1, *[1] * (a.ndim - 1)), a, b)


def numbers(memref: Memref) -> Iterator[np.ndarray]:
    """All numbers of a memref."""
    yield from (memref.base, memref.offset, *memref.sizes, *memref.strides)


def one(value: int) -> np.ndarray:
    """An integer that all threads have."""
    return np.array([value], np.int64)
