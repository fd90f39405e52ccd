# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""graphc-plan-memory: lifetimes, places, and what random functions compute with them."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphc.ir.walk import functions, walk
from graphc.library.places import Interval, Layout, _place, aligned, live_bytes, pack
from graphc.passes.buffer._workspace import Buffer, Size
from graphc.passes.buffer.plan_memory import Planner, Room, lend
from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir
from graphc_tools.legality import check

from ._buffer_machine import Machine
from ._buffer_modules import generate
from ._semantics import context

PLAN = "graphc-plan-memory{record=true}"
INTERVALS = st.tuples(st.integers(0, 20), st.integers(0, 8)).map(lambda p: Interval(p[0], p[0] + p[1]))
BUFFERS = st.lists(st.tuples(st.integers(0, 30).map(lambda n: 64 * n), INTERVALS), max_size=25)


def assert_apart(lifetimes: list[Any], layout: Layout, sizes: list[int]) -> None:
    """Asserts that buffers that live together share no memory, and that all are inside."""
    for i, j in itertools.combinations(range(len(sizes)), 2):
        if lifetimes[i].overlaps(lifetimes[j]):
            a, b = layout.offsets[i], layout.offsets[j]
            assert a + sizes[i] <= b or b + sizes[j] <= a or not sizes[i] or not sizes[j], (i, j)
    assert all(offset >= 0 for offset in layout.offsets)
    assert max((a + n for a, n in zip(layout.offsets, sizes, strict=True)), default=0) <= layout.size


@given(BUFFERS)
def test_buffers_that_live_together_are_apart(buffers: list[tuple[int, Interval]]) -> None:
    sizes, lifetimes = [size for size, _ in buffers], [life for _, life in buffers]
    layout = pack(sizes, lifetimes)
    assert_apart(lifetimes, layout, sizes)
    assert live_bytes(sizes, lifetimes) <= layout.size <= sum(sizes)
    assert all(offset % 64 == 0 for offset in layout.offsets)


def test_buffers_one_after_the_other_need_the_largest_only() -> None:
    sizes = [640, 64, 1280, 320]
    layout = pack(sizes, [Interval(2 * i, 2 * i + 1) for i in range(4)])
    assert layout == Layout([0, 0, 0, 0], 1280)


def test_the_smallest_gap_is_taken() -> None:
    # Gaps of 192 and of 128 bytes remain between the buffers that live throughout.
    sizes = [640, 192, 640, 128, 640, 128]
    lifetimes = [Interval(*life) for life in ((0, 9), (0, 3), (0, 9), (0, 3), (0, 9), (5, 6))]
    assert _place(range(6), sizes, lifetimes) == Layout([0, 640, 832, 1472, 1600, 1472], 2240)


def in_result(interval: Interval, size: int, element: str) -> Buffer:
    kind = SimpleNamespace(type=SimpleNamespace(element_type=element))
    return Buffer(SimpleNamespace(results=[kind]), interval, Size(size, ()))


SCRATCH = st.lists(
    st.tuples(st.integers(1, 40), INTERVALS, st.sampled_from(["f64", "f32", "i1"])).map(
        lambda b: in_result(b[1], 8 * b[0], b[2])
    ),
    max_size=20,
)
ROOMS = st.lists(
    st.tuples(st.integers(0, 80), st.sampled_from([1, 4, 8]), st.integers(0, 30)), min_size=1, max_size=4
)


@given(SCRATCH, ROOMS)
def test_buffers_in_results_are_gone_before_these_are_written(
    buffers: list[Buffer], sizes: list[tuple[int, int, int]]
) -> None:
    """Apart from each other, within the result and as aligned as it; others need no more than before."""
    rooms = [Room(None, i, 8 * size, item, until) for i, (size, item, until) in enumerate(sizes)]
    left = lend(rooms, buffers, 40)
    assert len(left) + sum(len(room.buffers) for room in rooms) == len(buffers)
    for room in rooms:
        lives = [buffer.interval for buffer in room.buffers]
        lengths = [buffer.size.units for buffer in room.buffers]
        assert_apart(lives, Layout([buffer.offset for buffer in room.buffers], room.bytes), lengths)
        for buffer in room.buffers:
            element = buffer.alloc.results[0].type.element_type
            assert buffer.interval.last < room.until and room.item >= {"f64": 8, "f32": 4, "i1": 1}[element]

    def alive(those: list[Buffer]) -> int:
        return live_bytes([buffer.size.units for buffer in those], [buffer.interval for buffer in those])

    assert alive(left) <= alive(buffers)


def test_results_hold_as_many_buffers_as_fit() -> None:
    """Two that live together side by side, and one after them; the rest stays."""
    lives = [Interval(0, 2), Interval(1, 3), Interval(4, 5), Interval(4, 9), Interval(0, 9)]
    buffers = [in_result(life, 64, "f64") for life in lives]
    room = Room(None, 0, 128, 8, 6)
    left = lend([room], buffers, 10)
    assert [b in left for b in buffers] == [False, False, False, True, True]
    assert sorted(buffer.offset for buffer in room.buffers) == [0, 0, 64]


def parse(text: str) -> Any:
    return ir.Module.parse(text)


def arguments(seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(4, 40)), int(rng.integers(4, 40))
    return [np.asarray(n), np.zeros(m), np.asarray(1), np.zeros(4)]


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("seed", range(60))
def test_random_functions(seed: int, static: bool) -> None:
    text = generate(seed, static=static)
    with context(), ir.Location.unknown():
        before, after, plan = parse(text), parse(text), parse(text)
        run_pipeline(after, [PLAN], verify_each=True, check=check)
        given, expected = arguments(seed), arguments(seed)
        machine = Machine(before)
        machine.run("main", expected)
        Machine(after).run("main", given)
        np.testing.assert_array_equal(given[3], expected[3], err_msg=f"{text}\n{after}")
        assert not [op for op in walk(after.operation) if op.name == "memref.alloc"]
        assert_plan_holds(plan, machine.accesses, f"{text}\n{after}")


def assert_plan_holds(module: Any, accesses: list[set[int]], text: str) -> None:
    """Asserts that lifetimes cover all accesses that were made, and that what overlaps is apart."""
    (function,) = functions(module)
    block = function.regions[0].blocks[0]
    allocations = [op.operation for op in block.operations if op.operation.name == "memref.alloc"]
    for workspace in Planner(module, block).plan(0):
        sizes = [aligned(b.size.units * 64) for b in workspace.buffers]
        lifetimes = [b.interval for b in workspace.buffers]
        for buffer in workspace.buffers:
            made = accesses[allocations.index(buffer.alloc)]
            assert all(buffer.interval.first <= at <= buffer.interval.last for at in made), text
        layout = pack(sizes, lifetimes)
        if workspace.is_fixed:
            layout = Layout([b.offset for b in workspace.buffers], workspace.peak)
            sizes = [b.size.units for b in workspace.buffers]
        real = [Interval(min(made), max(made)) for made in _made(workspace, allocations, accesses)]
        assert_apart(real, layout, sizes)


def _made(workspace: Any, allocations: list[Any], accesses: list[set[int]]) -> list[set[int]]:
    made = [accesses[allocations.index(b.alloc)] for b in workspace.buffers]
    # A buffer that no operation reads or writes lives nowhere.
    return [positions or {-1 - i} for i, positions in enumerate(made)]


def planned(text: str) -> tuple[Any, dict[str, int]]:
    """The text after the pass, and its statistics."""
    with context(), ir.Location.unknown():
        module = parse(text)
        report = run_pipeline(module, ["graphc-plan-memory"], verify_each=True)
        return str(module), report.runs[0].statistics


def test_what_stays_with_the_arena() -> None:
    text = """
func.func @main(%n: index) -> memref<?xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0.0 : f64
  %returned = memref.alloc(%n) : memref<?xf64>
  %strided = memref.alloc() : memref<4x4xf64, strided<[1, 4]>>
  %unused = memref.alloc(%n) : memref<?xf64>
  memref.dealloc %unused : memref<?xf64>
  memref.store %z, %strided[%c0, %c1] : memref<4x4xf64, strided<[1, 4]>>
  scf.for %i = %c0 to %n step %c1 {
    %inner = memref.alloc(%i) : memref<?xf64>
    memref.store %z, %inner[%c0] : memref<?xf64>
  }
  return %returned : memref<?xf64>
}
"""
    after, statistics = planned(text)
    assert statistics == {
        "buffers returned": 1,
        "buffers of other layouts": 1,
        "buffers never used": 1,
    }
    assert after.count("memref.alloc(") == 3
    assert "dealloc" not in after and "graphc_" not in after


def test_an_address_that_is_stored_lives_to_the_end() -> None:
    text = """
func.func @main(%where: !llvm.ptr, %o: memref<f64>) {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f64
  %a = memref.alloc() : memref<64xf64>
  %i = memref.extract_aligned_pointer_as_index %a : memref<64xf64> -> index
  %w = arith.index_cast %i : index to i64
  llvm.store %w, %where : i64, !llvm.ptr
  %b = memref.alloc() : memref<64xf64>
  memref.store %z, %b[%c0] : memref<64xf64>
  return
}
"""
    after, _ = planned(text)
    assert after.index("memref.store %cst, %view") < after.index("call @graphc_end") < after.index("return")
    assert "arith.constant 1024 : index" in after


def test_sizes_of_one_factor_are_placed_when_compiling() -> None:
    text = """
func.func @main(%x: memref<?x?xf64>, %o: memref<f64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0.0 : f64
  %n = memref.dim %x, %c0 : memref<?x?xf64>
  %m = memref.dim %x, %c1 : memref<?x?xf64>
  %nm = arith.muli %n, %m : index
  %a = memref.alloc(%n, %m) : memref<?x?xf64>
  memref.store %z, %a[%c0, %c0] : memref<?x?xf64>
  %b = memref.alloc(%nm) : memref<?xf32>
  %f = arith.constant 0.0 : f32
  memref.store %f, %b[%c0] : memref<?xf32>
  return
}
"""
    after, statistics = planned(text)
    assert statistics == {"buffers": 2, "workspaces": 1} and "graphc_workspace_0" in after


def test_what_depends_on_a_computed_element_has_a_workspace_of_its_own() -> None:
    text = """
func.func @main(%x: memref<4xi64>, %o: memref<f64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<64xi64>
  %v = memref.load %x[%c0] : memref<4xi64>
  memref.store %v, %a[%c1] : memref<64xi64>
  %w = memref.load %a[%c1] : memref<64xi64>
  %n = arith.index_cast %w : i64 to index
  %b = memref.alloc(%n) : memref<?xi64>
  memref.store %v, %b[%c0] : memref<?xi64>
  return
}
"""
    after, statistics = planned(text)
    assert statistics == {"buffers": 2, "workspaces": 2}
    assert after.index("call @graphc_workspace_0") < after.index("call @graphc_workspace_1")


def test_a_size_is_not_divided_before_its_check() -> None:
    """The division could trap; it stays after the first use of the other buffer."""
    text = """
func.func @main(%n: index, %d: index, %o: memref<f64>) {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f64
  %a = memref.alloc(%n) : memref<?xf64>
  memref.store %z, %a[%c0] : memref<?xf64>
  %s = arith.divsi %n, %d : index
  %b = memref.alloc(%s) : memref<?xf64>
  memref.store %z, %b[%c0] : memref<?xf64>
  return
}
"""
    after, statistics = planned(text)
    assert statistics["workspaces"] == 2
    assert after.index("call @graphc_end") < after.index("arith.divsi")
