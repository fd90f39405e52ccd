# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Minima and roots: SciPy searches, graphc compiles what it evaluates."""

from __future__ import annotations

from typing import Any

from pytensor.graph.basic import Apply

from graphc.interop.pytensor.convert import Converter, NoConversion, Values, converts
from graphc.ops import optimize

_MODULE = "pytensor.tensor.optimize"


def _inner(op: Any, c: Converter) -> tuple[Values, Any]:
    """The variables of the inner graph, the one that is solved for first, and what is minimised or zero."""
    converter = Converter(c)
    inputs = [converter.new_input(variable) for variable in op.fgraph.inputs]
    (value,) = converter.convert(op.fgraph.outputs[:1])
    return inputs, value


@converts("MinimizeScalarOp", module=_MODULE)
def _(op: Any, node: Apply, inputs: Values, c: Converter) -> Any:
    inner, value = _inner(op, c)
    made = optimize.MinimizeScalarOp(
        *inner, objective=value, method=op.method, optimizer_kwargs=op.optimizer_kwargs
    )
    return list(made.make_node(*inputs).outputs)


@converts("MinimizeOp", module=_MODULE)
def _(op: Any, node: Apply, inputs: Values, c: Converter) -> Any:
    if op.hessp:
        raise NoConversion("products of the Hessian with vectors")
    inner, value = _inner(op, c)
    made = optimize.MinimizeOp(
        *inner,
        objective=value,
        method=op.method,
        jac=op.jac,
        hess=op.hess,
        use_vectorized_jac=op.use_vectorized_jac,
        optimizer_kwargs=op.optimizer_kwargs,
    )
    return list(made.make_node(*inputs).outputs)


@converts("RootScalarOp", module=_MODULE)
def _(op: Any, node: Apply, inputs: Values, c: Converter) -> Any:
    inner, value = _inner(op, c)
    made = optimize.RootScalarOp(
        *inner,
        equation=value,
        method=op.method,
        jac=op.jac,
        hess=op.hess,
        optimizer_kwargs=op.optimizer_kwargs,
    )
    return list(made.make_node(*inputs).outputs)


@converts("RootOp", module=_MODULE)
def _(op: Any, node: Apply, inputs: Values, c: Converter) -> Any:
    inner, value = _inner(op, c)
    made = optimize.RootOp(
        *inner,
        equations=value,
        method=op.method,
        jac=op.jac,
        use_vectorized_jac=op.use_vectorized_jac,
        optimizer_kwargs=op.optimizer_kwargs,
    )
    return list(made.make_node(*inputs).outputs)
