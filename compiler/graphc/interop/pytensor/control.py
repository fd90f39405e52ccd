# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conditionals, checks, prints and ops that are graphs of their own."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
from pytensor.graph.basic import Apply

import graphc
import graphc.tensor as pt
from graphc import printing, raise_op
from graphc.interop.pytensor.convert import Converter, NoConversion, Values, converts

if TYPE_CHECKING:
    from pytensor.graph.op import Op

    from graphc.graph.tensor.variable import TensorVariable
    from graphc.interop.pytensor.convert import Result


@converts("IfElse")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    condition, *sides = inputs
    results = graphc.ifelse(condition, sides[: op.n_outs], sides[op.n_outs :])
    return list(results) if isinstance(results, (list, tuple)) else [results]


@converts("LazyIfElse")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """The form of `ifelse` from PyTensor 3.2 on, with a graph for each side."""
    condition, *values = inputs
    graphs = [side.fgraph for side in (op.true_branch, op.false_branch)]
    yes, no = (c.inner(graph.inputs, graph.outputs, values) for graph in graphs)
    results = graphc.ifelse(condition, yes, no)
    return list(results) if isinstance(results, (list, tuple)) else [results]


@converts("CheckAndRaise")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    return raise_op.CheckAndRaise(op.exc_type, op.msg)(*inputs)


@converts("CheckParameterValue", module="pymc")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """As the caller asked for by the names of PyMC's rewrites, see `Converter`."""
    value, *conditions = inputs
    if c.checks == "remove":
        return value
    if c.checks == "raise" or not getattr(op, "can_be_replaced_by_ninf", False):
        return raise_op.CheckAndRaise(op.exc_type, op.msg)(*inputs)
    true: TensorVariable = pt.constant(np.True_)
    met = reduce(pt.bitwise_and, (pt.all(pt.cast(x, "bool")) for x in conditions), true)
    return pt.switch(met, value, pt.constant(np.asarray(-np.inf, dtype=value.type.dtype)))


@converts("OpFromGraph", "SymbolicOp", "TensorSymbolicOp", "SymbolicRandomVariable")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    inner = op.fgraph
    if inner is None:
        raise NoConversion("the op has no graph of its own")
    return c.inner(inner.inputs, inner.outputs, inputs)


@converts("Print")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    if op.global_fn.__name__ != "_print_fn":
        raise NoConversion("it prints with a function of the user's")
    return printing.Print(op.message, op.attrs)(inputs[0])
