# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arena at run time: what loops give back is used again. Allocations are counted."""

from __future__ import annotations

import ctypes
import random
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as pt

from ._memory_code import POINTER, SIZE, function, load

pytestmark = pytest.mark.usefixtures("no_cache")


class Arena:
    """The functions of an arena, called with one context."""

    def __init__(self) -> None:
        self._loaded = load(keep_bytes=0)
        self._context = (ctypes.c_uint64 * 3)()
        self._alloc = self._function("graphc_alloc", POINTER, POINTER, SIZE)
        self._mark = self._function("graphc_mark", SIZE, POINTER)
        self._release_to = self._function("graphc_release_to", None, POINTER, SIZE)
        self._release = self._function("graphc_release", None, POINTER)

    def _function(self, name: str, *kinds: Any) -> Any:
        called = function(self._loaded, name, *kinds)
        return lambda *arguments: called(ctypes.addressof(self._context), *arguments)

    def alloc(self, size: int) -> int:
        address: int = self._alloc(size)
        return address

    def mark(self) -> int:
        mark: int = self._mark()
        return mark

    def release_to(self, mark: int) -> None:
        self._release_to(mark)

    def release(self) -> None:
        self._release()


def test_buffers_are_apart_and_all_is_freed(heap: Any) -> None:
    rng, arena = random.Random(0), Arena()
    for _ in range(20):
        alive: list[list[tuple[int, int]]] = [[]]
        marks: list[int] = []
        for _ in range(60):
            action = rng.random()
            if action < 0.6:
                size = rng.choice([0, 1, 8, 100, 4000, rng.randrange(10_000)])
                address = arena.alloc(size)
                assert address % 64 == 0
                for start, length in (buffer for frame in alive for buffer in frame):
                    assert address + size <= start or start + length <= address or 0 in (size, length)
                ctypes.memset(address, 0xFF, size)
                alive[-1].append((address, size))
            elif action < 0.8 or not marks:
                marks.append(arena.mark())
                alive.append([])
            else:
                arena.release_to(marks.pop())
                alive.pop()
        arena.release()
        assert heap.freed == heap.calls
    assert arena.alloc(-1) is None and arena.alloc(1 << 61) is None


def test_a_steady_loop_takes_its_memory_once(heap: Any) -> None:
    arena = Arena()
    arena.alloc(100)
    for _ in range(50):
        mark = arena.mark()
        arena.alloc(1000)
        for _ in range(3):
            inner = arena.mark()
            arena.alloc(10)
            arena.alloc(5000)
            arena.release_to(inner)
        arena.alloc(2000)
        arena.release_to(mark)
    # The third block of the outer loop is the larger one of those that the inner one has given back.
    assert heap.calls == 4 and heap.freed == 0
    arena.release()
    assert heap.freed == heap.calls


def test_growing_buffers_take_memory_a_few_times(heap: Any) -> None:
    arena = Arena()
    for n in range(1, 2000):
        mark = arena.mark()
        arena.alloc(8 * n)
        arena.alloc(16 * n)
        arena.release_to(mark)
    assert heap.calls < 2 * 40 and heap.calls - heap.freed == 2
    arena.release()
    assert heap.freed == heap.calls


def test_a_loop_whose_buffers_change_their_size(heap: Any) -> None:
    x, n = pt.dvector("x"), pt.lscalar("n")

    def step(i: Any, total: Any, x: Any) -> Any:
        u = pt.exp(x[: i + 1])
        v = pt.concatenate([u, u * 2.0])
        return total + (u / u.sum()).max() + v.max()

    total = graphc.scan(step, [n - 1 - pt.arange(n)], [pt.constant(0.0)], [x], return_updates=False)[-1]
    f = graphc.function([x, n], total)
    values = np.random.default_rng(0).normal(size=300)
    counts = []
    for steps in (10, 300):
        before = heap.calls
        found = f(values, steps)
        counts.append(heap.calls - before)
        parts = [np.exp(values[: i + 1]) for i in range(steps)]
        np.testing.assert_allclose(found, sum((u / u.sum()).max() + 2 * u.max() for u in parts))
    # A workspace is kept for the next call.
    assert counts[0] == counts[1] and heap.calls - heap.freed <= 1
