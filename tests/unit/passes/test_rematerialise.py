# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""graphc-rematerialise: what random programs compute, and how much memory they hold."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphc.backends.interpret.interpreter import run_function
from graphc.ir.plain import attached
from graphc.ir.walk import functions
from graphc.lowering.memory.units import Units
from graphc.passes.graph.rematerialise import Memory, Program, search
from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir

from ._semantics import context

N = 8
MATRIX, ROW, SINGLE = f"tensor<{N}x{N}xf64>", f"tensor<1x{N}xf64>", f"tensor<{N}x{N}xf32>"
BYTES = 8 * N * N


def matmul(name: str, a: str, b: str, flags: str = "transpose_a = false, transpose_b = false") -> str:
    return f'{name} = "graphc.matmul"({a}, {b}) {{{flags}}} : ({MATRIX}, {MATRIX}) -> {MATRIX}'


def unary(name: str, op: str, x: str) -> str:
    return f'{name} = "graphc.{op}"({x}) : ({MATRIX}) -> {MATRIX}'


def binary(name: str, op: str, a: str, b: str, b_type: str = MATRIX) -> str:
    return f'{name} = "graphc.{op}"({a}, {b}) : ({MATRIX}, {b_type}) -> {MATRIX}'


class Generator:
    """Random programs of matrices: each value is read by what comes soon after, and by what comes last."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._known = ["%x", "%w"]
        self._lines: list[str] = []

    def _name(self) -> str:
        return f"%v{len(self._lines)}"

    def _add(self, line: str) -> str:
        self._lines.append(line)
        return line.partition(" ")[0]

    def _pick(self) -> str:
        return self._rng.choice(self._known if self._rng.random() < 0.4 else self._known[-2:])

    def _mean_row(self, x: str) -> str:
        """Sums of columns as a row."""
        sums, axes, order = f"tensor<{N}xf64>", "{axes = array<i64: 0>}", "{order = array<i64: -1, 0>}"
        total = self._add(f'{self._name()} = "graphc.reduce_sum"({x}) {axes} : ({MATRIX}) -> {sums}')
        return self._add(f'{self._name()} = "graphc.dimshuffle"({total}) {order} : ({sums}) -> {ROW}')

    def _single(self, x: str) -> str:
        """With fewer digits."""
        cast = self._add(f'{self._name()} = "graphc.cast"({x}) : ({MATRIX}) -> {SINGLE}')
        return self._add(f'{self._name()} = "graphc.cast"({cast}) : ({SINGLE}) -> {MATRIX}')

    def _bounded(self, x: str) -> str:
        """A value between -1 and 1, so that long programs do not overflow."""
        return self._add(unary(self._name(), "sin", x))

    def _step(self) -> str:
        x, kind = self._pick(), self._rng.randrange(7)
        if kind < 2:
            flags = self._rng.choice(["true", "false"])
            return self._add(
                matmul(self._name(), x, self._pick(), f"transpose_a = {flags}, transpose_b = false")
            )
        if kind == 2:
            return self._add(unary(self._name(), self._rng.choice(["tanh", "sin", "sigmoid"]), x))
        if kind == 3:
            return self._add(binary(self._name(), self._rng.choice(["add", "mul", "sub"]), x, self._pick()))
        if kind == 4:
            row = self._mean_row(x)
            return self._add(binary(self._name(), "mul", self._pick(), row, ROW))
        if kind == 5:
            order = "{order = array<i64: 1, 0>}"
            return self._add(f'{self._name()} = "graphc.dimshuffle"({x}) {order} : ({MATRIX}) -> {MATRIX}')
        return self._single(x)

    def text(self, size: int) -> str:
        for _ in range(size):
            self._known.append(self._bounded(self._step()))
        last = self._known[-1]
        for name in self._rng.sample(self._known[2:], min(size // 2 + 1, size)):
            product = self._bounded(self._add(matmul(self._name(), last, name)))
            last = self._add(binary(self._name(), "add", product, name))
        results = [last, self._rng.choice(self._known)]
        body = "\n".join(f"  {line}" for line in self._lines)
        return (
            f"func.func @main(%x: {MATRIX}, %w: {MATRIX}) -> ({MATRIX}, {MATRIX}) {{\n{body}\n"
            f"  return {', '.join(results)} : {MATRIX}, {MATRIX}\n}}\n"
        )


def held(module: ir.Module) -> tuple[Program, int]:
    """The steps of @main, in the order of the text, and the most bytes that are in use."""
    (function,) = functions(module)
    block = function.regions[0].blocks[0]
    kept = None if "graphc.scheduled" in function.attributes else list(list(block.operations)[-1].operands)
    results = list(list(block.operations)[-1].operands)
    program = Program(Units(block, {}).order(kept), results, [])
    return program, Memory(program, program.steps).peak


def inputs() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal((N, N)), rng.standard_normal((N, N))]


@given(st.integers(0, 10**6), st.integers(2, 14), st.integers(0, 12), st.booleans())
def test_random_programs(seed: int, size: int, budget: int, fused: bool) -> None:
    """The same bits, and the memory that the search has promised."""
    text = Generator(seed).text(size)
    passes = ["graphc-fusion"] if fused else []
    with context(), ir.Location.unknown():
        before, after = ir.Module.parse(text), ir.Module.parse(text)
        run_pipeline(before, passes or ["canonicalize"])
        program, peak = held(before)
        promised = search(program, budget * BYTES).memory.peak
        run_pipeline(after, [*passes, f"graphc-rematerialise{{budget={budget * BYTES}}}"], verify_each=True)
        assert promised <= peak
        if peak > budget * BYTES:
            # What made an array that nobody reads any more is gone, with what only that read.
            assert held(after)[1] <= promised, str(after)
        for want, have in zip(run_function(before, inputs()), run_function(after, inputs()), strict=True):
            np.testing.assert_array_equal(have, want, err_msg=str(after))


def chain(layers: int) -> str:
    """Layers of tanh, each of which is read again on the way back."""
    lines, h = [], "%x"
    for i in range(layers):
        lines += [matmul(f"%p{i}", h, "%w"), unary(f"%h{i}", "tanh", f"%p{i}")]
        h = f"%h{i}"
    g = h
    for i in reversed(range(layers)):
        lines += [binary(f"%d{i}", "mul", g, f"%h{i}"), matmul(f"%g{i}", f"%d{i}", "%w")]
        g = f"%g{i}"
    body = "\n".join(lines)
    return f"func.func @main(%x: {MATRIX}, %w: {MATRIX}) -> {MATRIX} {{\n{body}\nreturn {g} : {MATRIX}\n}}\n"


@pytest.mark.parametrize(("budget", "most"), [(12, 0), (6, 5), (4, 12), (3, 25)])
def test_fewer_arrays_cost_more_products(budget: int, most: int) -> None:
    """Nothing where there is memory for all; a product for each array that is not kept, then chains."""
    with context(), ir.Location.unknown():
        module = ir.Module.parse(chain(9))
        run_pipeline(module, ["graphc-fusion", f"graphc-rematerialise{{budget={budget * BYTES}}}"])
        assert held(module)[1] <= budget * BYTES
        again = attached(module)["flops"]
        assert isinstance(again, int) and again <= most * 2 * N**3 * 1.2
        assert (again == 0) == (most == 0)


def test_the_least_is_found_where_the_budget_is_too_small() -> None:
    """A product reads two matrices and makes a third, of which the argument counts for nothing."""
    with context(), ir.Location.unknown():
        module = ir.Module.parse(chain(6))
        run_pipeline(module, ["graphc-fusion", "graphc-rematerialise{budget=0}"])
        assert held(module)[1] == 3 * BYTES


def test_equal_operations_stay_apart() -> None:
    """Passes that follow in the pipeline do not undo it: the buffers are as few as the budget says."""
    from graphc.backends.cpu.pipeline import pipeline
    from graphc.backends.stages import Request
    from graphc.library.places import planned_bytes
    from graphc.passes.buffer.plan_memory import attached as plans

    with context(), ir.Location.unknown():
        for budget in (12, 4):
            module = ir.Module.parse(
                chain(6).replace(f"x{N}x", "xMx").replace(f"{N}x", "64x").replace("xMx", "x64x")
            )
            request = Request(has_scan=False, budget=budget * 64 * 64 * 8)
            entries: list[Any] = pipeline("fast_run", request)
            names = [name for name, _ in entries]
            (plan,) = (i for i, name in enumerate(names) if name.startswith("graphc-plan-memory"))
            run_pipeline(module, entries[: plan + 1])
            needed = planned_bytes(plans(module))
            assert needed is not None and needed <= budget * 64 * 64 * 8
            assert needed > 5 * 64 * 64 * 8 or budget == 4


def test_what_may_be_overwritten_is_not_relied_on() -> None:
    """An update takes over the memory of what it starts from: that is not held for a later computation."""
    types = ", ".join([MATRIX, ROW, *["index"] * 6])
    bounds = f"%c0, %c0, %c1, %c8, %c1, %c1) {{accumulate = false}} : ({types})"
    text = f"""
    func.func @main(%x: {MATRIX}, %w: {MATRIX}, %r: {ROW}) -> ({MATRIX}, {MATRIX}) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant {N} : index
      {unary("%a", "tanh", "%x")}
      {unary("%b", "exp", "%a")}
      %u = "graphc.update_slice"(%a, %r, {bounds} -> {MATRIX}
      {matmul("%p", "%u", "%w")}
      {matmul("%q", "%p", "%w")}
      {matmul("%s", "%q", "%w")}
      {binary("%t", "mul", "%s", "%b")}
      return %t, %q : {MATRIX}, {MATRIX}
    }}
    """
    with context(), ir.Location.unknown():
        before, after = ir.Module.parse(text), ir.Module.parse(text)
        run_pipeline(after, ["graphc-fusion", "graphc-rematerialise{budget=0}"], verify_each=True)
        assert str(after).count("graphc.tanh") == 2
        given_values = [*inputs(), np.ones((1, N))]
        for want, have in zip(
            run_function(before, given_values), run_function(after, given_values), strict=True
        ):
            np.testing.assert_array_equal(have, want)
