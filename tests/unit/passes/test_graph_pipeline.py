# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs mean the same after every graph-stage pass, alone and one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ._semantics import assert_same, function

PASSES = [
    "graphc-constant-folding",
    "graphc-algebraic-simplification",
    "graphc-stabilize",
    "graphc-shape-simplification",
    "graphc-blas-recognition",
    "graphc-decompose",
    "graphc-insert-checks",
]
PIPELINE = ",".join(
    [*PASSES[:4], "canonicalize,cse", *PASSES[1:], "graphc-outline-shapes", "canonicalize,cse"]
)

UNARY = [
    "neg",
    "abs",
    "sqr",
    "tanh",
    "sigmoid",
    "softplus",
    "exp",
    "log1p",
    "expm1",
    "sign",
    "floor",
    "log",
    "sqrt",
]
BINARY = ["add", "sub", "mul", "true_div", "maximum", "minimum"]
CONSTANTS = [0.0, 1.0, -1.0, 2.0, 0.5, 3.0, -4.0]
M = "tensor<?x?xf64>"


class Program:
    """Text of a random function of two matrices, built by drawing operations."""

    def __init__(self, draw: Any) -> None:
        self._draw = draw
        self.lines: list[str] = []
        self._matrices = ["%x", "%y"]
        for _ in range(draw(st.integers(2, 12))):
            draw(
                st.sampled_from(
                    [self._unary, self._binary, self._constant, self._view, self._reduce, self._softmax]
                )
            )()

    def _new(self, op: str, signature: str) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {op} : {signature}")
        return name

    def _pick(self) -> str:
        return str(self._draw(st.sampled_from(self._matrices[-5:])))

    def _unary(self) -> None:
        name = self._draw(st.sampled_from(UNARY))
        self._matrices.append(self._new(f'"graphc.{name}"({self._pick()})', f"({M}) -> {M}"))

    def _binary(self) -> None:
        name = self._draw(st.sampled_from(BINARY))
        operands = f"{self._pick()}, {self._pick()}"
        self._matrices.append(self._new(f'"graphc.{name}"({operands})', f"({M}, {M}) -> {M}"))

    def _constant(self) -> None:
        name, number = self._draw(st.sampled_from([*BINARY, "pow"])), self._draw(st.sampled_from(CONSTANTS))
        constant = self._new(f"arith.constant dense<{number}>", "tensor<1x1xf64>")
        if name == "pow" or self._draw(st.booleans()):
            op, types = f'"graphc.{name}"({self._pick()}, {constant})', f"{M}, tensor<1x1xf64>"
        else:
            op, types = f'"graphc.{name}"({constant}, {self._pick()})', f"tensor<1x1xf64>, {M}"
        self._matrices.append(self._new(op, f"({types}) -> {M}"))

    def _view(self) -> None:
        view = self._new(f'"graphc.dimshuffle"({self._pick()}) {{order = array<i64: 1, 0>}}', f"({M}) -> {M}")
        if self._draw(st.booleans()):
            product = f'"graphc.matmul"({view}, {self._pick()}) {{transpose_a = false, transpose_b = false}}'
            view = self._new(product, f"({M}, {M}) -> {M}")
        self._matrices.append(view)

    def _reduce(self) -> None:
        name, axis = self._draw(st.sampled_from(["sum", "max", "prod"])), self._draw(st.integers(0, 1))
        source = self._pick()
        axes = f"axes = array<i64: {axis}>"
        total = self._new(f'"graphc.reduce_{name}"({source}) {{{axes}}}', f"({M}) -> tensor<?xf64>")
        kept = "tensor<1x?xf64>" if axis == 0 else "tensor<?x1xf64>"
        order = "-1, 0" if axis == 0 else "0, -1"
        wide = self._new(
            f'"graphc.dimshuffle"({total}) {{order = array<i64: {order}>}}', f"(tensor<?xf64>) -> {kept}"
        )
        op = self._draw(st.sampled_from(["true_div", "sub", "add"]))
        self._matrices.append(self._new(f'"graphc.{op}"({source}, {wide})', f"({M}, {kept}) -> {M}"))

    def _softmax(self) -> None:
        name = self._draw(st.sampled_from(["softmax", "log_softmax"]))
        self._matrices.append(
            self._new(f'"graphc.{name}"({self._pick()}) {{axes = array<i64: 1>}}', f"({M}) -> {M}")
        )

    def text(self) -> str:
        return function(f"%x: {M}, %y: {M}", "\n".join(self.lines), f"{self._matrices[-1]} : {M}")


@st.composite
def programs(draw: Any) -> str:
    return Program(draw).text()


@pytest.mark.fuzz
@pytest.mark.parametrize("passes", [*PASSES, PIPELINE], ids=[*PASSES, "pipeline"])
@settings(max_examples=25, deadline=None)
@given(text=programs(), sizes=st.tuples(st.integers(1, 3), st.integers(1, 3)), seed=st.integers(0, 2**16))
def test_random_programs(passes: str, text: str, sizes: tuple[int, int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    square = [rng.normal(size=(3, 3)).round(2), rng.normal(size=(3, 3)).round(2)]
    assert_same(text, square, passes, rtol=1e-6)
    oblong = [rng.normal(size=sizes), rng.normal(size=sizes)]
    assert_same(text, oblong, passes, rtol=1e-6, errors=False)
