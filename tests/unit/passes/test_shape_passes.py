# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""shape-simplification, insert-checks and outline-shapes keep what programs compute and when they fail."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphc.backends.interpret.interpreter import run_function
from graphc.ir.diagnostics import PassError
from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir

from ._semantics import assert_same, context, function, outcome

SHAPES = "graphc-shape-simplification"
CHECKS = "graphc-insert-checks"
ALL = f"{SHAPES},{CHECKS},{SHAPES},canonicalize,cse"
V, M = "tensor<?xf64>", "tensor<?x?xf64>"
RNG = np.random.default_rng(0)

PROGRAMS: dict[str, tuple[str, list[tuple[list[Any], bool]]]] = {
    "elementwise": (
        function(f"%x: {V}, %y: {V}", f'  %0 = "graphc.add"(%x, %y) : ({V}, {V}) -> {V}', f"%0 : {V}"),
        [
            ([np.ones(3), np.ones(3)], True),
            ([np.ones(3), np.ones(1)], False),
            ([np.ones(0), np.ones(0)], True),
        ],
    ),
    "static against dynamic": (
        function(
            f"%x: {V}, %y: tensor<3xf64>",
            f'  %0 = "graphc.add"(%x, %y) : ({V}, tensor<3xf64>) -> tensor<3xf64>',
            "%0 : tensor<3xf64>",
        ),
        [([np.ones(3), np.ones(3)], True), ([np.ones(2), np.ones(3)], False)],
    ),
    "matmul": (
        function(
            f"%x: {M}, %y: {M}",
            f'  %0 = "graphc.matmul"(%x, %y) {{transpose_a = true, transpose_b = false}} : ({M}, {M}) -> {M}',
            f"%0 : {M}",
        ),
        [([np.ones((2, 3)), np.ones((2, 4))], True), ([np.ones((2, 3)), np.ones((3, 4))], False)],
    ),
    "reshape": (
        function(
            f"%x: {M}, %n: index, %m: index",
            f'  %0 = "graphc.reshape"(%x, %n, %m) : ({M}, index, index) -> {M}',
            f"%0 : {M}",
        ),
        [
            ([np.arange(6.0).reshape(2, 3), 3, 2], True),
            ([np.ones((2, 3)), 4, 2], False),
            ([np.ones((2, 3)), -3, -2], False),
        ],
    ),
    "ravel": (
        function(
            f"%x: {M}",
            f"""  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : {M}
  %m = tensor.dim %x, %c1 : {M}
  %p = arith.muli %m, %n : index
  %0 = "graphc.reshape"(%x, %p) : ({M}, index) -> {V}""",
            f"%0 : {V}",
        ),
        [([np.ones((2, 3))], True), ([np.ones((2, 0))], True)],
    ),
    "broadcast_to": (
        function(
            f"%x: {V}, %n: index, %m: index",
            f'  %0 = "graphc.broadcast_to"(%x, %n, %m) : ({V}, index, index) -> {M}',
            f"%0 : {M}",
        ),
        [([np.arange(3.0), 2, 3], True), ([np.ones(3), 3, 2], False), ([np.ones(3), -1, 3], False)],
    ),
    "specify_shape": (
        function(
            f"%x: {M}, %n: index",
            f"""  %c = arith.constant 3 : index
  %0 = "graphc.specify_shape"(%x, %n, %c) : ({M}, index, index) -> tensor<?x3xf64>""",
            "%0 : tensor<?x3xf64>",
        ),
        [([np.ones((2, 3)), 2], True), ([np.ones((2, 3)), 3], False), ([np.ones((2, 4)), 2], False)],
    ),
    "join": (
        function(
            f"%x: {M}, %y: {M}",
            f'  %0 = "graphc.join"(%x, %y) {{axis = 0 : i64}} : ({M}, {M}) -> {M}',
            f"%0 : {M}",
        ),
        [([np.ones((2, 3)), np.ones((4, 3))], True), ([np.ones((2, 3)), np.ones((4, 2))], False)],
    ),
    "take": (
        function(
            f"%x: {M}, %i: tensor<?xi64>",
            f'  %0 = "graphc.take"(%x, %i) {{axis = 1 : i64}} : ({M}, tensor<?xi64>) -> {M}',
            f"%0 : {M}",
        ),
        [
            ([np.ones((2, 3)), np.array([0, -3, 2])], True),
            ([np.ones((2, 3)), np.array([0, 3])], False),
            ([np.ones((2, 3)), np.array([-4])], False),
            ([np.ones((2, 0)), np.zeros(0, np.int64)], True),
        ],
    ),
    "put": (
        function(
            f"%x: {V}, %y: {V}, %i: tensor<?xi64>",
            '  %0 = "graphc.put"(%x, %y, %i) {axis = 0 : i64, accumulate = true} : '
            f"({V}, {V}, tensor<?xi64>) -> {V}",
            f"%0 : {V}",
        ),
        [
            ([np.ones(3), np.ones(2), np.array([1, 1])], True),
            ([np.ones(3), np.ones(1), np.array([1, 1])], False),
            ([np.ones(3), np.ones(1), np.array([3])], False),
        ],
    ),
    "update_slice": (
        function(
            f"%x: {V}, %y: {V}, %o: index, %n: index, %s: index",
            '  %0 = "graphc.update_slice"(%x, %y, %o, %n, %s) {accumulate = false} : '
            f"({V}, {V}, index, index, index) -> {V}",
            f"%0 : {V}",
        ),
        [([np.ones(5), np.zeros(2), 3, 2, -2], True), ([np.ones(5), np.zeros(3), 3, 2, -2], False)],
    ),
    "max of nothing": (
        function(
            f"%x: {M}", f'  %0 = "graphc.reduce_max"(%x) {{axes = array<i64: 1>}} : ({M}) -> {V}', f"%0 : {V}"
        ),
        [([np.ones((2, 3))], True), ([np.ones((2, 0))], False), ([np.ones((0, 0))], False)],
    ),
    "argmin": (
        function(
            f"%x: {V}",
            f'  %0 = "graphc.argmin"(%x) {{axis = 0 : i64}} : ({V}) -> tensor<i64>',
            "%0 : tensor<i64>",
        ),
        [([np.array([2.0, 1.0, 3.0])], True), ([np.ones(0)], False)],
    ),
    "iota": (
        function(
            "%n: tensor<i64>",
            """  %zero = arith.constant dense<0> : tensor<i64>
  %one = arith.constant dense<1> : tensor<i64>
  %e = tensor.extract %n[] : tensor<i64>
  %i = arith.index_cast %e : i64 to index
  %0 = "graphc.iota"(%zero, %one, %i) : (tensor<i64>, tensor<i64>, index) -> tensor<?xi64>
  %1 = "graphc.add"(%0, %0) : (tensor<?xi64>, tensor<?xi64>) -> tensor<?xi64>""",
            "%1 : tensor<?xi64>",
        ),
        [([np.array(4)], True), ([np.array(0)], True)],
    ),
}
CALLS = [
    pytest.param(text, inputs, valid, id=f"{name}-{i}")
    for name, (text, calls) in PROGRAMS.items()
    for i, (inputs, valid) in enumerate(calls)
]


def wanted(text: str, inputs: list[Any], valid: bool) -> Any:
    with context(), ir.Location.unknown():
        return outcome(ir.Module.parse(text), inputs) if valid else None


@pytest.mark.parametrize(("text", "inputs", "valid"), CALLS)
@pytest.mark.parametrize("passes", [CHECKS, ALL])
def test_checks_raise_exactly_where_needed(text: str, inputs: list[Any], valid: bool, passes: str) -> None:
    if valid:
        assert_same(text, inputs, passes)
        return
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_pipeline(module, [passes])
        with pytest.raises((ValueError, IndexError), match=r"^\w+"):
            run_function(module, inputs)


@pytest.mark.parametrize(("text", "inputs", "valid"), CALLS)
def test_outlined_sizes(text: str, inputs: list[Any], valid: bool) -> None:
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_pipeline(module, [ALL, "graphc-outline-shapes", "canonicalize,cse"])
        sizes = outcome_of(module, inputs, "shapes")
        results = outcome_of(module, inputs, "main") if not isinstance(sizes, str) else sizes
        assert isinstance(results, str) != valid, f"{results}\n{module}"
        if valid:
            want = wanted(text, inputs, valid)
            types = next(iter(module.body.operations)).regions[0].blocks[0].operations
            returned = [value.type for value in list(types)[-1].operands]
            dynamic = [
                n
                for array, type_ in zip(want, returned, strict=True)
                for n, static in zip(array.shape, type_.shape, strict=True)
                if static < 0
            ]
            assert sizes == dynamic
            for have, expected in zip(results, want, strict=True):
                np.testing.assert_array_equal(have, expected)


def outcome_of(module: Any, inputs: list[Any], name: str) -> Any:
    try:
        return run_function(module, inputs, name)
    except (ValueError, IndexError) as error:
        return type(error).__name__


def count_checks(text: str, passes: str = CHECKS) -> int:
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_pipeline(module, [passes])
        return str(module).count("graphc.check")


def test_no_check_for_what_is_certain() -> None:
    body = f"""  %0 = "graphc.exp"(%x) : ({V}) -> {V}
  %1 = "graphc.add"(%0, %x) : ({V}, {V}) -> {V}
  %2 = "graphc.mul"(%1, %0) : ({V}, {V}) -> {V}"""
    assert count_checks(function(f"%x: {V}", body, f"%2 : {V}")) == 0
    assert count_checks(PROGRAMS["ravel"][0]) == 0


def test_one_check_for_equal_conditions() -> None:
    body = f"""  %0 = "graphc.add"(%x, %y) : ({V}, {V}) -> {V}
  %1 = "graphc.mul"(%y, %x) : ({V}, {V}) -> {V}
  %2 = "graphc.mul"(%0, %1) : ({V}, {V}) -> {V}"""
    assert count_checks(function(f"%x: {V}, %y: {V}", body, f"%2 : {V}")) == 1


def test_shapes_do_not_compute_values() -> None:
    with context(), ir.Location.unknown():
        flags = "{transpose_a = false, transpose_b = false}"
        body = f"""  %0 = "graphc.matmul"(%x, %y) {flags} : ({M}, {M}) -> {M}
  %1 = "graphc.exp"(%0) : ({M}) -> {M}"""
        module = ir.Module.parse(function(f"%x: {M}, %y: {M}", body, f"%1 : {M}"))
        run_pipeline(module, [CHECKS, "graphc-outline-shapes"])
        main, shapes = str(module).split("func.func @shapes")
        assert "graphc.matmul" not in shapes and "graphc.exp" not in shapes
        assert "graphc.check" in shapes and "graphc.check" not in main


def test_outlining_twice_is_refused() -> None:
    with context(), ir.Location.unknown():
        module = ir.Module.parse(PROGRAMS["elementwise"][0])
        run_pipeline(module, ["graphc-outline-shapes"])
        with pytest.raises(PassError, match="there is one already"):
            run_pipeline(module, ["graphc-outline-shapes"])


def test_shape_simplification_is_deep() -> None:
    """A chain longer than Python's stack."""
    lines = "\n".join(f'  %{i + 1} = "graphc.exp"(%{i}) : ({V}) -> {V}' for i in range(3000))
    text = function(f"%x: {V}", f'  %0 = "graphc.exp"(%x) : ({V}) -> {V}\n{lines}', f"%3000 : {V}")
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_pipeline(module, ["graphc-outline-shapes"])
        assert run_function(module, [np.zeros(2)], "shapes") == [2]
