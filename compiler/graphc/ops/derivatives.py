# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the gradient drivers build: zeros, ones, sums, and derivatives of matching dtype."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from graphc.config import config
from graphc.graph.basic import Variable
from graphc.graph.undefined import kind_of
from graphc.ops.sizes import shape_source
from graphc.public import pt


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
    return pt.zeros_like(shape_source(x), dtype=gradient_dtype(x))


def one_like(cost: Variable) -> Variable:
    """The constant 1 in the dtype of the gradient of a 0-d ``cost``."""
    return pt.as_tensor_variable(np.ones((), dtype=gradient_dtype(cost)))


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
        g = pt.real(g)
    if kind in ("f", "c") and g.type.dtype != x.type.dtype:
        return pt.cast(g, x.type.dtype)
    return g


def total(terms: Sequence[Variable]) -> Variable | None:
    """Sum of the terms; None, which stands for zero, when there are none."""
    return reduce(lambda a, b: a + b, terms) if terms else None


def conjugate(g: Variable) -> Variable:
    """The complex conjugate; real variables are returned as they are.

    Rules of ops transpose without conjugation, so one rule serves real and complex dtypes. The public
    functions speak of gradients ``dL/da + i dL/db`` of ``z = a + ib`` (PyTensor's convention), which are the
    conjugates.
    """
    return pt.conj(g) if kind_of(g) == "c" else g
