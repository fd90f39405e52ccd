# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes that operations tell, and the values that control flow brings."""

from __future__ import annotations

import pytest

from graphc.ir.size import Size
from graphc.ir.walk import definition, incoming, walk
from graphc.lowering.memory.layouts import Sizes, size_of
from graphc_dialects._mlir import ir
from graphc_dialects.dialect import new_context

VIEWS = """
func.func @f(%x: memref<?x4xf64>, %n: index, %k: index) {
  %zero = arith.constant 0 : index
  %a = memref.alloc(%n, %k) : memref<?x?xf64>
  %cast = memref.cast %a : memref<?x?xf64> to memref<?x?xf64, strided<[?, 1], offset: ?>>
  %flat = memref.collapse_shape %a [[0, 1]] : memref<?x?xf64> into memref<?xf64>
  %wide = memref.expand_shape %flat [[0, 1]] output_shape [%n, %k] : memref<?xf64> into memref<?x?xf64>
  %part = memref.subview %x[0, 0] [%k, 1] [1, 1] : memref<?x4xf64> to memref<?xf64, strided<[4]>>
  %again = memref.reinterpret_cast %x to offset: [0], sizes: [%n], strides: [1]
    : memref<?x4xf64> to memref<?xf64, strided<[1]>>
  return
}
"""
FLOW = """
func.func @f(%b: i1, %n: index, %x: f64, %y: f64) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %picked = arith.select %b, %x, %y : f64
  %branch = scf.if %b -> f64 {
    scf.yield %x : f64
  } else {
    scf.yield %y : f64
  }
  %loop = scf.for %i = %zero to %n step %one iter_args(%s = %x) -> f64 {
    %new = math.exp %s : f64
    scf.yield %new : f64
  }
  %while = scf.while (%t = %y) : (f64) -> f64 {
    scf.condition(%b) %t : f64
  } do {
  ^bb0(%u: f64):
    %next = math.tanh %u : f64
    scf.yield %next : f64
  }
  return
}
"""


def parsed(text: str) -> tuple[ir.Module, list[ir.Value], dict[str, ir.Operation]]:
    """The module, the arguments of its function, and its operations by name, the last of each."""
    module = ir.Module.parse(text, context=new_context())
    (function,) = (op for op in walk(module.operation) if op.name == "func.func")
    return module, list(function.regions[0].blocks[0].arguments), {op.name: op for op in walk(function)}


def test_views_tell_their_sizes() -> None:
    _module, (x, n, k), ops = parsed(VIEWS)
    results = {name.partition(".")[2]: op.results[0] for name, op in ops.items() if len(op.results)}
    assert size_of(x, 0) == (x, 0)
    assert size_of(x, 1) == 4
    for name in ("alloc", "cast", "expand_shape"):
        assert [size_of(results[name], axis) for axis in range(2)] == [n, k], name
    assert size_of(results["collapse_shape"], 0) == [n, k]
    assert size_of(results["subview"], 0) == k
    assert size_of(results["reinterpret_cast"], 0) == n
    assert Sizes().size(results["collapse_shape"], 0) == Size.of(n) * Size.of(k)


@pytest.mark.parametrize("name", ["arith.select", "scf.if"])
def test_one_of_two(name: str) -> None:
    _module, (_, _, x, y), ops = parsed(FLOW)
    assert incoming(ops[name].results[0]) == [x, y]


def test_loops_bring_what_they_start_with_and_what_a_step_leaves() -> None:
    _module, (_, _, x, y), ops = parsed(FLOW)
    loop, other = ops["scf.for"], ops["scf.while"]
    index, state = loop.regions[0].blocks[0].arguments
    left = ops["math.exp"].results[0]
    assert incoming(loop.results[0]) == incoming(state) == [x, left]
    before, after = (region.blocks[0].arguments[0] for region in other.regions)
    assert incoming(before) == [y, ops["math.tanh"].results[0]]
    assert incoming(after) == incoming(other.results[0]) == [before]
    assert [incoming(value) for value in (index, x, left)] == [[], [], []]
    assert definition(x) is None
