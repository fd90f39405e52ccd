# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes of results, as index code."""

from __future__ import annotations

from typing import Any

import pytest

from graphc.backends.contexts import shared_context
from graphc_dialects._mlir import ir

HEADER = """func.func @f(%x: tensor<?x3xf64>, %y: tensor<1x3xf64>, %v: tensor<?xf64>, %i: tensor<?x2xi64>,
  %n: index, %m: index, %s: tensor<f64>, %a: tensor<?x?x?xf64>, %b: tensor<?x?x?xf64>,
  %p: tensor<4xf64>, %u: tensor<6xui64>) {\n"""

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
    ('"graphc.sort"(%v) : (tensor<?xf64>) -> tensor<?xf64>', 0, "dim v 0"),
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
    *(
        (
            (
                '"graphc.cumulative"(%x, %y, %n) {kind = "add", reverse = false, reassociate = false, '
                f"keep_initial = {keep}}} : (tensor<?x3xf64>, tensor<1x3xf64>, index) -> tensor<?x3xf64>"
            ),
            0,
            rows,
        )
        for keep, rows in (("false", "arg n"), ("true", "(arg n + 1)"))
    ),
    ('"graphc.scan_seq"(%a, %n) : (tensor<?x?x?xf64>, index) -> tensor<?x?xf64>', 1, "dim a 2"),
]
NAMES = ["x", "y", "v", "i", "n", "m", "s", "a", "b", "p", "u"]


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
    with shared_context(), ir.Location.unknown():
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


def test_draws_have_the_sizes_that_are_given() -> None:
    draw = (
        '"graphc.random"(%u, %v, %m) {distribution = "chisquare", cores = array<i64: 0>, support = 0 : i64, '
        "operandSegmentSizes = array<i32: 1, 1, 0, 0, 1>} : (tensor<6xui64>, tensor<?xf64>, index) -> "
        "(tensor<?xf64>, tensor<6xui64>)"
    )
    with shared_context(), ir.Location.unknown():
        module = ir.Module.parse(f"{HEADER}%r:2 = {draw}\nreturn }}")
        op = module.body.operations[0].regions[0].blocks[0].operations[0]
        assert _describe(op.reify(0)) == "arg m"
        with ir.InsertionPoint(op):
            assert _describe(op.reify(0, 1)) == "6"


def test_write_join_has_the_sizes_of_its_buffer() -> None:
    buffer = '"graphc.write_buffer"(%n) {type = tensor<?xf64>} : (index) -> !graphc.buffer\n'
    token = '%t = "graphc.write"(%v, %r) : (tensor<?xf64>, !graphc.buffer) -> !graphc.token\n'
    join = '%j = "graphc.write_join"(%r, %t) : (!graphc.buffer, !graphc.token) -> tensor<?xf64>'
    with shared_context(), ir.Location.unknown():
        module = ir.Module.parse(f"{HEADER}%r = {buffer}{token}{join}\nreturn }}")
        block = module.body.operations[0].regions[0].blocks[0]
        op = next(op for op in block.operations if op.operation.name == "graphc.write_join")
        assert _describe(op.reify(0)) == "arg n"


def test_every_operation_with_a_shape_rule_is_covered() -> None:
    from graphc_dialects._base import GraphcOp
    from graphc_dialects.dialect import operation_classes

    covered = {text.split('"')[1] for text, _, _ in CASES} | {
        "graphc.join",
        "graphc.constant",
        "graphc.random",
        "graphc.write_join",
    }
    covered |= {"graphc.scan_prev", "graphc.scan_trace", "graphc.write_join"}
    defining = {
        cls.reify_dynamic
        for name, cls in operation_classes().items()
        if name in covered and issubclass(cls, GraphcOp)
    }
    for name, cls in operation_classes().items():
        if issubclass(cls, GraphcOp):
            assert cls.reify_dynamic in defining, f"no case tests how {name} reifies its shape"


_SCAN = """
func.func @f(%x: tensor<?x?xf64>, %h: tensor<2x?xf64>, %n: index) -> (SHAPE) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %r = "graphc.scan_seq"(%x, %t) : (tensor<?x?xf64>, index) -> tensor<?xf64>
    %p = "graphc.scan_prev"(%t) {state = "h", tap = -2 : i64} : (index) -> tensor<?xf64>
    %y = "graphc.add"(%p, %r) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
    %e = "graphc.exp"(%r) : (tensor<?xf64>) -> tensor<?xf64>
    "graphc.scan_carry"(%h, %y) {state = "h", taps = array<i64: -2>, writes = array<i64: 0>, KEEP}
      : (tensor<2x?xf64>, tensor<?xf64>) -> ()
    "graphc.scan_collect"(%e) {state = "e", keep = "steps"} : (tensor<?xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %z = "graphc.scan_trace"(%s) {state = "STATE"} : (!graphc.loop) -> SHAPE
  return %z : SHAPE
}
"""


@pytest.mark.parametrize(
    ("state", "keep", "shape", "sizes"),
    [
        ("h", 'keep = "all"', "tensor<?x?xf64>", ["(%arg2 + 2)", "dim 1 1"]),
        ("h", 'keep = "steps"', "tensor<?x?xf64>", ["%arg2", "dim 1 1"]),
        ("h", 'keep = "last", rows = 2 : i64', "tensor<2x?xf64>", ["2", "dim 1 1"]),
        ("e", 'keep = "all"', "tensor<?x?xf64>", ["%arg2", "dim 0 1"]),
    ],
)
def test_sizes_of_a_trace(state: str, keep: str, shape: str, sizes: list[str]) -> None:
    text = _SCAN.replace("STATE", state).replace("KEEP", keep).replace("SHAPE", shape)
    with shared_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        block = module.body.operations[0].regions[0].blocks[0]
        trace = next(op for op in block.operations if op.operation.name == "graphc.scan_trace")
        with ir.InsertionPoint(trace):
            found = [_describe_scan_size(trace.reify(axis)) for axis in range(2)]
        module.operation.verify()
    assert found == sizes


def test_sizes_of_a_previous_row() -> None:
    text = _SCAN.replace("STATE", "e").replace("KEEP", 'keep = "all"').replace("SHAPE", "tensor<?x?xf64>")
    with shared_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        scan = module.body.operations[0].regions[0].blocks[0].operations[0]
        row = scan.regions[0].blocks[0].operations[1]
        with ir.InsertionPoint(row):
            assert _describe_scan_size(row.reify(0)) == "dim 1 1"


def _describe_scan_size(value: Any) -> str:
    if isinstance(value.owner, ir.Block):
        return f"%arg{ir.BlockArgument(value).arg_number}"
    op = value.owner
    if op.name == "arith.constant":
        return str(op.attributes["value"].value)
    operands = [_describe_scan_size(x) for x in op.operands]
    if op.name == "tensor.dim":
        return f"dim {operands[0][4:]} {operands[1]}"
    return f"({' + '.join(operands)})"
