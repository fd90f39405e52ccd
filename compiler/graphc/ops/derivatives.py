# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values that the gradient drivers build: zeros, ones, sums, and derivatives of matching dtype."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from graphc.config import config
from graphc.graph.basic import Apply, Maybe, Variable, Variables
from graphc.graph.op import Op
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.undefined import kind_of
from graphc.ops.create import zeros_like as zeros_like_
from graphc.ops.math import cast, conj, real
from graphc.ops.shape import shape_source
from graphc.ops.shaping import batch_in_front

if TYPE_CHECKING:
    from graphc_runtime.thunk import Register


def gradient_dtype(x: Variable) -> str:
    """Dtype of a gradient with respect to ``x``: its own when continuous, else ``floatX``."""
    return str(x.type.dtype) if kind_of(x) in ("f", "c") else str(config.floatX)


def zeros_like(x: Variable) -> Variable:
    """Zeros of the shape of ``x`` in the dtype of its gradient."""
    if kind_of(x) == "":
        if hasattr(x, "zeros_like"):
            return x.zeros_like()
        raise TypeError(
            f"cannot make a zero gradient for {x} of type {x.type}: its variables have no zeros_like(); "
            "pass return_disconnected='none'"
        )
    return zeros_like_(shape_source(x), dtype=gradient_dtype(x))


def one_like(cost: Variable) -> Variable:
    """The constant 1 in the dtype of the gradient of a 0-d ``cost``."""
    return as_tensor_variable(np.ones((), dtype=gradient_dtype(cost)))


def match_dtype(x: Variable, g: Variable) -> Variable:
    """Cast a derivative to the dtype of the continuous variable it belongs to.

    Integer variables leave ``g`` as it is: their derivatives are floats. The derivative of a real variable
    that was
    widened to complex is the real part.
    """
    kind, g_kind = kind_of(x), kind_of(g)
    if g_kind == "" or kind == "" or x.type.dtype == g.type.dtype:
        return g
    if g_kind == "c" and kind != "c":
        g = real(g)
    if kind in ("f", "c") and g.type.dtype != x.type.dtype:
        return cast(g, x.type.dtype)
    return g


class WithDerivativesOf(Op):
    """The first input, with the derivatives of the second: another form of the same, which is not computed.

    So a form that is fast but cannot be differentiated everywhere has the derivatives of one that can.
    """

    __props__ = ()
    absent: ClassVar[dict[str, str]] = {"emit": "the compiler puts the graph it stands for in its place"}
    view_map = {0: [0]}
    depends_on = (1,)

    def make_node(self, value: Variable, other: Variable) -> Apply:
        return Apply(self, [value, other], [value.type.make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        output_storage[0][0] = inputs[0]

    def inline_on(self, inputs: Sequence[Variable]) -> list[Variable]:
        """The executed variable: the value."""
        return [inputs[0]]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        return [None, cotangents[0]]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        return [tangents[1]]

    batch = batch_in_front


def total(terms: Sequence[Variable]) -> Variable | None:
    """Sum of the terms; None, which stands for zero, when there are none."""
    return reduce(lambda a, b: a + b, terms) if terms else None


def conjugate(g: Variable) -> Variable:
    """The complex conjugate; real variables are returned as they are.

    Rules of ops transpose without conjugation, so one rule serves real and complex dtypes. The public
    functions speak of gradients ``dL/da + i dL/db`` of ``z = a + ib`` (PyTensor's convention), which are the
    conjugates.
    """
    return conj(g) if kind_of(g) == "c" else g
