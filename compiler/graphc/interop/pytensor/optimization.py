# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Minima and roots: SciPy searches, graphc compiles what it evaluates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.graph.basic import Apply

from graphc.interop.pytensor.convert import Converter, NoConversion, Values, converts
from graphc.tensor import optimize

if TYPE_CHECKING:
    from pytensor.graph.op import Op

    from graphc.interop.pytensor.convert import Result

_MODULE = "pytensor.tensor.optimize"


def _solved(op: Op, inputs: Values, c: Converter, made_by: Any, role: str, *options: str) -> Any:
    """The results of graphc's op of the same search.

    Args:
        op: PyTensor's.
        inputs: of the node.
        c: what converts its graph.
        made_by: the class of graphc's op.
        role: of the value of the inner graph, which is minimised or zero.
        options: attributes that both ops have.
    """
    if getattr(op, "bound_kwargs", ()):
        raise NoConversion("bounds that are computed")
    converter = Converter(c)
    inner = [converter.new_input(variable) for variable in op.fgraph.inputs]
    (value,) = converter.convert(op.fgraph.outputs[:1])
    made = made_by(*inner, **{role: value}, **{name: getattr(op, name) for name in options})
    return list(made.make_node(*inputs).outputs)


@converts("MinimizeScalarOp", module=_MODULE)
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    return _solved(op, inputs, c, optimize.MinimizeScalarOp, "objective", "method", "optimizer_kwargs")


@converts("MinimizeOp", module=_MODULE)
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    if op.hessp:
        raise NoConversion("products of the Hessian with vectors")
    options = ("method", "jac", "hess", "use_vectorized_jac", "optimizer_kwargs")
    return _solved(op, inputs, c, optimize.MinimizeOp, "objective", *options)


@converts("RootScalarOp", module=_MODULE)
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    options = ("method", "jac", "hess", "optimizer_kwargs")
    return _solved(op, inputs, c, optimize.RootScalarOp, "equation", *options)


@converts("RootOp", module=_MODULE)
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    options = ("method", "jac", "use_vectorized_jac", "optimizer_kwargs")
    return _solved(op, inputs, c, optimize.RootOp, "equations", *options)
