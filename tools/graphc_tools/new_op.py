# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Output of `graphc-new op NAME`: a structured operation that works, in four files, and its tests.

It gives the rows of an array in reverse order, and wants one row at least. All rules are there, so that each
has its place: what the operation does is then yours to write.
"""

from __future__ import annotations

DIALECT = '''"""{summary}"""

from graphc_dialects._base import GraphcOp, Tensor, check_shape, dim_of, fail, tensor_types
from graphc_dialects._mlir import ext, ir
from graphc_dialects.shape import same_elements


class {cls}Op(GraphcOp, name="{name}", traits=[ext.Pure]):
    """{summary}"""

    x: ext.Operand[Tensor]
    res: ext.Result[Tensor]

    def verify_invariants(self) -> bool:
        """Checks the rank, the element type and the static part of the shape."""
        types = tensor_types(self)
        if types is None or not same_elements(self, types):
            return False
        x, result = types
        return check_shape(self, result.shape, x.shape) if x.rank else fail(self, "x must have rows")

    def reify_dynamic(self, dim: int) -> ir.Value:
        """The size of x."""
        return dim_of(self.x, dim)
'''

GRAPH = '''"""{summary}"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphc.graph.basic import Apply, Variable
from graphc.graph.op import Op
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.ops.shaping import swapaxes

if TYPE_CHECKING:
    from graphc.emit.emitter import Emitter
    from graphc.graph.tensor import TensorLike


class {cls}(Op):
    """{summary}"""

    __props__ = ()

    def make_node(self, x: TensorLike) -> Apply:
        """One array with at least one dimension."""
        x = as_tensor_variable(x)
        if x.type.ndim == 0:
            raise TypeError(f"{{self}} takes an array with rows, got {{x}} of type {{x.type}}")
        return Apply(self, [x], [x.type.make_variable()])

    def perform(
        self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[list[np.ndarray]]
    ) -> None:
        (x,) = inputs
        if not len(x):
            raise ValueError("{name}: there are no rows")
        output_storage[0][0] = np.ascontiguousarray(x[::-1])

    def pullback(
        self, inputs: Sequence[Variable], outputs: Sequence[Variable], cotangents: Sequence[Variable | None]
    ) -> list[Variable | None]:
        (g,) = cotangents
        return [None if g is None else self(g)]

    def pushforward(
        self, inputs: Sequence[Variable], outputs: Sequence[Variable], tangents: Sequence[Variable | None]
    ) -> list[Variable | None]:
        (t,) = tangents
        return [None if t is None else self(t)]

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        types = [e.type_of(v) for v in node.inputs]
        return [e.op("graphc.{name}", operands, types, e.type_of(node.outputs[0]))]

    def batch(
        self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool], size: Variable
    ) -> list[Variable]:
        """The new axis goes after the first."""
        return [swapaxes(self(swapaxes(inputs[0], 0, 1)), 0, 1)]
'''

TRAITS = '''"""`graphc.{name}`."""

from __future__ import annotations

import numpy as np

from graphc.ir.checks import CHECKS, SizeChecks, size_of
from graphc.ir.rewrite import Rewriter
from graphc.ir.totality import TOTAL, Totality
from graphc.ir.traits import BATCH, REFERENCE, SIZES, Batch, Batching, CannotBatch, Sizes, sizes_of
from graphc_dialects._mlir import ir

OP = "graphc.{name}"


@SIZES(OP)
def _sizes(op: ir.Operation) -> Sizes:
    return sizes_of(op.operands[0])


@REFERENCE(OP)
def _reference(op: ir.Operation, x: np.ndarray) -> np.ndarray:
    return x[::-1]


@TOTAL(OP)
def _is_total(totality: Totality, op: ir.Operation) -> bool:
    """There are rows."""
    return op.operands[0].type.shape[0] > 0


@CHECKS(OP)
def _checks(checks: SizeChecks, rw: Rewriter, op: ir.Operation) -> None:
    """There are rows."""
    x = op.operands[0]
    if x.type.shape[0] > 0:
        return
    rows, zero = size_of(rw, x, 0), rw.index(0)
    condition = checks.compare(rw, "gt", rows, zero)
    checks.check(rw, condition, rows, zero, "{name}: there are no rows", "ValueError")


@BATCH(OP)
def _rows(b: Batching, op: ir.Operation, xs: list[Batch]) -> ir.Value:
    """The rows of all iterations side by side."""
    x = xs[0].value
    if x.type.shape[1] <= 0:
        raise CannotBatch("there may be no rows, which only an iteration may find out")
    order = [1, 0, *range(2, len(x.type.shape))]
    moved = b.dimshuffle(x, order)
    return b.cast(b.dimshuffle(b.create(OP, [moved], moved.type), order), b.stack_type(op.results[0].type))
'''

LOWERING = '''"""Lowering of `graphc.{name}`: a nest of loops that carries the result."""

from __future__ import annotations

from graphc.ir import build
from graphc.lowering.carried import loop
from graphc.lowering.rules import Conversion, lowers
from graphc_dialects._mlir import ir


@lowers("graphc.{name}", starts_anywhere=True)
def {name}(context: Conversion, op: ir.Operation) -> None:
    """{summary}"""
    x, sizes = context.tensor_of(op.operands[0]), context.sizes_of(op.operands[0])
    type_ = build.storage_type(op.results[0].type)
    result = context.destinations.start(op.results[0], type_, sizes)
    last = sizes[0] - 1
    context.define(op.results[0], build.cast(_loops(x, result, last, sizes, []), type_))


def _loops(
    x: ir.Value, result: ir.Value, last: ir.Value, sizes: list[ir.Value], where: list[ir.Value]
) -> ir.Value:
    """Copies all elements at the positions that begin with `where`."""
    if len(where) == len(sizes):
        source = [last - where[0], *where[1:]]
        element = build.create("tensor.extract", [x.type.element_type], [x, *source]).result
        return build.create("tensor.insert", [result.type], [element, result, *where]).result
    nest, block = loop(sizes[len(where)], [result])
    with ir.InsertionPoint(block):
        i, carried = block.arguments
        build.create("scf.yield", [], [_loops(x, carried, last, sizes, [*where, i])])
    return nest.results[0]
'''

TEST = '''"""`{cls}`: values, errors, derivatives, batches, and rows in loops."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.ops.{name} import {cls}
from graphc.transforms.vectorize import vectorize_graph

X = pt.dmatrix("x")
VALUE = np.arange(6.0).reshape(3, 2)


@pytest.mark.parametrize("mode", ["fast_run", "interpret"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool", "complex128"])
def test_values(mode, dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None, None))
    f = graphc.function([x], {cls}()(x), mode=mode)
    for value in (VALUE, VALUE[:1], VALUE[:, :0], VALUE.T):
        np.testing.assert_array_equal(f(value.astype(dtype)), value.astype(dtype)[::-1])


@pytest.mark.parametrize("mode", ["fast_run", "interpret"])
def test_no_rows(mode):
    with pytest.raises(ValueError, match="there are no rows"):
        graphc.function([X], {cls}()(X), mode=mode)(VALUE[:0])


def test_derivatives():
    weights = np.arange(1.0, 7).reshape(3, 2)
    gradient = graphc.grad(({cls}()(X) * weights).sum(), X)
    np.testing.assert_array_equal(graphc.function([X], gradient)(VALUE), weights[::-1])


def test_batches():
    xs = pt.dtensor3("xs")
    (rows,) = vectorize_graph([{cls}()(X)], {{X: xs}})
    value = np.arange(12.0).reshape(2, 3, 2)
    np.testing.assert_array_equal(graphc.function([xs], rows)(value), value[:, ::-1])


@pytest.mark.parametrize("rows", [3, None])
@pytest.mark.parametrize("iterations", [0, 4])
def test_rows_in_loops(iterations, rows):
    xs = pt.tensor("xs", dtype="float64", shape=(None, rows, 2))
    outputs = graphc.scan(lambda x: {cls}()(pt.exp(x)), sequences=[xs], return_updates=False)
    value = np.arange(iterations * 6.0).reshape(iterations, 3, 2)
    np.testing.assert_allclose(graphc.function([xs], outputs)(value), np.exp(value)[:, ::-1])
'''

VALID = """// RUN: graphc-opt %s | filecheck %s

// CHECK-LABEL: func.func @{name}
func.func @{name}(%x: tensor<?x2xf64>) -> tensor<?x2xf64> {{
  // CHECK: "graphc.{name}"(%{{{{.*}}}})
  %0 = "graphc.{name}"(%x) : (tensor<?x2xf64>) -> tensor<?x2xf64>
  return %0 : tensor<?x2xf64>
}}
"""

INVALID = """// RUN: graphc-opt --split-input-file --verify-diagnostics %s

func.func @rank(%x: tensor<f64>) {{
  // expected-error @below {{{{x must have rows}}}}
  %0 = "graphc.{name}"(%x) : (tensor<f64>) -> tensor<f64>
  return
}}

// -----

func.func @shape(%x: tensor<3xf64>) {{
  // expected-error @below {{{{result dimension 0 must be 3, but is 2}}}}
  %0 = "graphc.{name}"(%x) : (tensor<3xf64>) -> tensor<2xf64>
  return
}}
"""

# By path: the first four are the operation.
FILES = {
    "dialects/graphc_dialects/{name}.py": DIALECT,
    "compiler/graphc/ops/{name}.py": GRAPH,
    "compiler/graphc/ir/traits/{name}.py": TRAITS,
    "compiler/graphc/lowering/{name}.py": LOWERING,
    "tests/unit/ops/test_{name}.py": TEST,
    "tests/lit/dialect/{name}.mlir": VALID,
    "tests/lit/dialect/{name}_invalid.mlir": INVALID,
}
