# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Workspaces at run time: places, reuse, threads, limits, unloading. Allocations are counted."""

from __future__ import annotations

import ctypes
import gc
import threading
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.library.places import Interval, aligned, pack
from graphc.library.workspace import SLOTS, WorkspaceTable

from ._memory_code import POINTER, SIZE, function, load

pytestmark = pytest.mark.usefixtures("no_cache")


class Plan:
    """Calls of a workspace with a table."""

    def __init__(self, rows: list[tuple[int, int, int, int]], keys: int) -> None:
        self.table = WorkspaceTable(0, keys, tuple(rows))
        self.loaded = load(self.table)
        kinds = [POINTER] * 4 + [SIZE] * 3
        self._plan = function(self.loaded, "graphc_plan_0", *kinds)
        self._release = function(self.loaded, "graphc_release", None, POINTER)

    def __call__(self, sizes: list[int]) -> tuple[list[int], int] | None:
        """Offsets and used bytes; None if there is no memory."""
        context, array = (ctypes.c_uint64 * 3)(), (ctypes.c_int64 * len(sizes))(*sizes)
        block = self._plan(ctypes.addressof(context), None, ctypes.addressof(array), 0, len(sizes), 1)
        if not block:
            return None
        words = (ctypes.c_int64 * (6 + len(sizes) + len(self.table.rows))).from_address(block)
        memory, used, offsets = words[2], words[4], list(words[6 + len(sizes) :])
        assert memory % 64 == 0 and block + self.table.header + 64 <= memory
        self._release(ctypes.addressof(context))
        return offsets, used


def test_places_are_those_of_the_compiler() -> None:
    rng = np.random.default_rng(0)
    for count in (1, 2, 5, 12, 40, 420):
        keys = int(rng.integers(1, 5))
        rows = []
        for _ in range(count):
            first = int(rng.integers(0, 60))
            life = first, first + int(rng.integers(0, 25))
            rows.append((*life, int(rng.integers(1, 40)), int(rng.integers(keys))))
        plan = Plan(rows, keys)
        for _ in range(4):
            sizes = [int(n) for n in rng.integers(0, 200, keys)]
            lengths = [aligned(units * sizes[key]) for _, _, units, key in rows]
            layout = pack(lengths, [Interval(first, last) for first, last, _, _ in rows])
            for _ in range(2):  # the second time from the table
                assert plan(sizes) == (layout.offsets, layout.size)


def test_a_size_that_is_too_large_for_memory() -> None:
    plan = Plan([(0, 1, 8, 0), (0, 1, 8, 1)], 2)
    assert plan([3, -1]) is None
    assert plan([1 << 45, 1 << 45]) is None  # 2**49 bytes: more than any address space
    assert plan([3, 4]) == ([64, 0], 128) or plan([3, 4]) == ([0, 64], 128)
    assert plan([-1, 4]) is None
    assert plan([3, 4]) is not None


def test_damage_is_found() -> None:
    loaded = load(WorkspaceTable(0), poison=True)
    take = function(loaded, "graphc_workspace_0", POINTER, POINTER, SIZE)
    intact = function(loaded, "graphc_intact", ctypes.c_int64, POINTER)
    release = function(loaded, "graphc_release", None, POINTER)
    for offset, status in ((-1, -2), (-64, -2), (100, -2), (163, -2), (0, 0), (99, 0), (50, 0)):
        context = (ctypes.c_uint64 * 3)()
        at = ctypes.addressof(context)
        memory = take(at, 100)
        assert (ctypes.c_uint8 * 100).from_address(memory)[:] == [0xFF] * 100
        assert intact(at) == 0
        ctypes.c_uint8.from_address(memory + offset).value = 1
        assert intact(at) == status, offset
        release(at)


def test_slots_serve_calls_that_run_at_the_same_time(heap: Any) -> None:
    loaded = load(WorkspaceTable(0))
    take = function(loaded, "graphc_workspace_0", POINTER, POINTER, SIZE)
    release = function(loaded, "graphc_release", None, POINTER)
    contexts = [(ctypes.c_uint64 * 3)() for _ in range(SLOTS + 3)]
    for _ in range(3):
        memories = {take(ctypes.addressof(context), 1000) for context in contexts}
        assert len(memories) == len(contexts)
        for context in contexts:
            release(ctypes.addressof(context))
    # The first round makes all of them; later ones only those that have no slot.
    assert heap.calls == SLOTS + 3 * 3 and heap.freed == 3 * 3
    loaded.__del__()
    assert heap.freed == heap.calls


def perceptron(
    layers: int = 3, shape: tuple[int | None, int | None] = (None, None)
) -> tuple[list[Any], list[Any]]:
    x, w = pt.tensor("x", dtype="float64", shape=shape), pt.matrix("w")
    h = x
    for _ in range(layers):
        h = pt.tanh(pt.dot(h, w))
    return [x, w], [h, graphc.grad(h.sum(), w)]


def values(n: int, m: int) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    return [rng.normal(size=(n, m)), rng.normal(size=(m, m)) / m]


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
def test_repeated_calls_allocate_nothing(heap: Any, mode: str) -> None:
    f = graphc.function(*perceptron(), mode=mode)
    for n, m in ((5, 40), (30, 20)):
        f(*values(n, m))
        before = heap.calls
        for _ in range(50):
            f(*values(n, m))
        assert heap.calls == before > 0
    f(*values(3, 10))  # smaller: what there is is enough
    assert heap.calls == before
    assert heap.freed < heap.calls
    del f
    gc.collect()
    assert heap.freed == heap.calls


def test_a_failed_check_gives_the_workspace_back(heap: Any) -> None:
    x, i = pt.matrix("x"), pt.lvector("i")
    f = graphc.function([x, i], pt.dot(pt.tanh(pt.dot(x, x)), x).sum(axis=0)[i * 2])
    f(np.eye(20), np.array([1]))
    before = heap.calls
    for _ in range(20):
        with pytest.raises(IndexError):
            f(np.eye(20), np.array([10]))
    assert heap.calls == before


def test_functions_without_intermediate_buffers_have_no_workspace(heap: Any) -> None:
    x = pt.vector("x")
    f = graphc.function([x], [pt.exp(x) * 2, x.sum()])
    f(np.ones(1000))
    executable = f.executor.executable
    assert heap.calls == 0 and "graphc_unload" not in executable.loaded
    assert "realloc" not in executable.manifest.symbols


def test_large_workspaces_are_not_kept(heap: Any) -> None:
    with graphc.config.change_flags(workspace_limit_mb=1):
        f = graphc.function(*perceptron())
    f(*values(600, 100))
    assert heap.freed == heap.calls > 0
    f(*values(3, 10))
    before = heap.calls
    f(*values(3, 10))
    assert heap.calls == before


def test_threads(heap: Any) -> None:
    f = graphc.function(*perceptron())
    given = [values(n, 150) for n in (200, 250, 300, 350)]
    expected = [f(*arrays) for arrays in given]
    wrong: list[int] = []

    def work(i: int) -> None:
        for _ in range(8):
            for got, want in zip(f(*given[i]), expected[i], strict=True):
                if not np.array_equal(got, want):
                    wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(given))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_loops_over_buffers_of_a_workspace_are_vectorised() -> None:
    x = pt.vector("x", shape=(300,))
    parts = [pt.exp(x), pt.all(x > 0), pt.log(x), pt.gammaln(x), pt.sqrt(x), pt.tanh(x), x > 1]
    mixed = pt.switch(parts[1], parts[0] - parts[2], parts[3])
    f = graphc.function([x], [pt.cumsum(mixed * v) for v in (parts[0], *parts[2:])])
    optimised = dict(f.ir_stages())["llvm-opt"]
    assert "@graphc_buffer" not in optimised and "@graphc_end" not in optimised
    # LLVM's vectoriser names its blocks.
    assert "vector.body" in optimised and "@llvm.exp.f64" not in optimised
    sample = np.linspace(0.5, 3, 300)
    np.testing.assert_allclose(f(sample)[0], np.cumsum((np.exp(sample) - np.log(sample)) * np.exp(sample)))
