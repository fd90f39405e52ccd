# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes of results, as index code."""

from __future__ import annotations

from typing import Any

import pytest

from graphc_dialects._mlir import ir
from graphc_dialects.dialect import new_context

HEADER = """func.func @f(%x: tensor<?x3xf64>, %y: tensor<1x3xf64>, %v: tensor<?xf64>, %i: tensor<?x2xi64>,
  %n: index, %m: index, %s: tensor<f64>, %a: tensor<?x?x?xf64>, %b: tensor<?x?x?xf64>,
  %p: tensor<4xf64>) {\n"""

# Operation, result dimension, expected defining text: `dim ARGUMENT AXIS`, `arg NAME` or a constant.
CASES = [
    ('"graphc.add"(%y, %x) : (tensor<1x3xf64>, tensor<?x3xf64>) -> tensor<?x3xf64>', 0, "dim x 0"),
    ('"graphc.add"(%y, %x) : (tensor<1x3xf64>, tensor<?x3xf64>) -> tensor<?x3xf64>', 1, "3"),
    ('"graphc.reduce_sum"(%x) {axes = array<i64: 1>} : (tensor<?x3xf64>) -> tensor<?xf64>', 0, "dim x 0"),
    ('"graphc.argmax"(%a) {axis = 1 : i64} : (tensor<?x?x?xf64>) -> tensor<?x?xi64>', 1, "dim a 2"),
    ('"graphc.softmax"(%x) {axes = array<i64: 1>} : (tensor<?x3xf64>) -> tensor<?x3xf64>', 0, "dim x 0"),
    (
        '"graphc.dimshuffle"(%x) {order = array<i64: 1, -1, 0>} : (tensor<?x3xf64>) -> tensor<3x1x?xf64>',
        2,
        "dim x 0",
    ),
    ('"graphc.reshape"(%x, %n, %m) : (tensor<?x3xf64>, index, index) -> tensor<?x?xf64>', 1, "arg m"),
    ('"graphc.broadcast_to"(%v, %m, %n) : (tensor<?xf64>, index, index) -> tensor<?x?xf64>', 0, "arg m"),
    ('"graphc.specify_shape"(%v, %n) : (tensor<?xf64>, index) -> tensor<?xf64>', 0, "arg n"),
    ('"graphc.iota"(%s, %s, %n) : (tensor<f64>, tensor<f64>, index) -> tensor<?xf64>', 0, "arg n"),
    ('"graphc.slice"(%v, %n, %m, %n) : (tensor<?xf64>, index, index, index) -> tensor<?xf64>', 0, "arg m"),
    (
        (
            '"graphc.update_slice"(%v, %p, %n, %m, %n) {accumulate = true} : '
            "(tensor<?xf64>, tensor<4xf64>, index, index, index) -> tensor<?xf64>"
        ),
        0,
        "dim v 0",
    ),
    (
        '"graphc.take"(%x, %i) {axis = 1 : i64} : (tensor<?x3xf64>, tensor<?x2xi64>) -> tensor<?x?x2xf64>',
        0,
        "dim x 0",
    ),
    (
        '"graphc.take"(%x, %i) {axis = 1 : i64} : (tensor<?x3xf64>, tensor<?x2xi64>) -> tensor<?x?x2xf64>',
        1,
        "dim i 0",
    ),
    (
        '"graphc.take"(%a, %i) {axis = 1} : (tensor<?x?x?xf64>, tensor<?x2xi64>) -> tensor<?x?x2x?xf64>',
        3,
        "dim a 2",
    ),
    (
        (
            '"graphc.put"(%x, %a, %i) {axis = 1 : i64, accumulate = false} : '
            "(tensor<?x3xf64>, tensor<?x?x?xf64>, tensor<?x2xi64>) -> tensor<?x3xf64>"
        ),
        0,
        "dim x 0",
    ),
    (
        (
            '"graphc.matmul"(%a, %b) {transpose_a = false, transpose_b = false} : '
            "(tensor<?x?x?xf64>, tensor<?x?x?xf64>) -> tensor<?x?x?xf64>"
        ),
        0,
        "dim a 0",
    ),
    (
        (
            '"graphc.matmul"(%a, %b) {transpose_a = true, transpose_b = true} : '
            "(tensor<?x?x?xf64>, tensor<?x?x?xf64>) -> tensor<?x?x?xf64>"
        ),
        1,
        "dim a 2",
    ),
    (
        (
            '"graphc.matmul"(%a, %b) {transpose_a = true, transpose_b = true} : '
            "(tensor<?x?x?xf64>, tensor<?x?x?xf64>) -> tensor<?x?x?xf64>"
        ),
        2,
        "dim b 1",
    ),
]
NAMES = ["x", "y", "v", "i", "n", "m", "s", "a", "b", "p"]


def _describe(value: Any) -> str:
    if isinstance(value.owner, ir.Block):
        return f"arg {NAMES[ir.BlockArgument(value).arg_number]}"
    op = value.owner
    if op.name == "arith.constant":
        return str(op.attributes["value"].value)
    if op.name == "tensor.dim":
        return f"dim {_describe(op.operands[0])[4:]} {_describe(op.operands[1])}"
    return f"({' + '.join(_describe(operand) for operand in op.operands)})"


def _reify(text: str, dim: int) -> str:
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(f"{HEADER}%r = {text}\nreturn }}")
        block = module.body.operations[0].regions[0].blocks[0]
        op = next(op for op in block.operations if op.operation.name.startswith("graphc."))
        with ir.InsertionPoint.at_block_terminator(block):
            described = _describe(op.reify(dim))
        module.operation.verify()
        return described


@pytest.mark.parametrize(("text", "dim", "expected"), CASES)
def test_reify(text: str, dim: int, expected: str) -> None:
    assert _reify(text, dim) == expected


def test_join_adds_the_sizes_before_casts() -> None:
    cast = "tensor.cast %p : tensor<4xf64> to tensor<?xf64>\n%r2 = "
    join = '"graphc.join"(%r, %v) {axis = 0 : i64} : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>'
    assert _reify(cast + join, 0) == "(4 + dim v 0)"


def test_every_operation_with_a_shape_rule_is_covered() -> None:
    from graphc_dialects._base import GraphcOp
    from graphc_dialects.dialect import operation_classes

    covered = {text.split('"')[1] for text, _, _ in CASES} | {"graphc.join", "graphc.constant"}
    defining = {
        cls.reify_dynamic
        for name, cls in operation_classes().items()
        if name in covered and issubclass(cls, GraphcOp)
    }
    for name, cls in operation_classes().items():
        if issubclass(cls, GraphcOp):
            assert cls.reify_dynamic in defining, f"no case tests how {name} reifies its shape"
