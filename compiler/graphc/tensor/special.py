# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Special functions: PyTensor's ``tensor.special``."""

from __future__ import annotations

from typing import Any

from graphc.graph.basic import Variable
from graphc.ops.axes import normalize_axes
from graphc.ops.softmax import LogSoftmax, Softmax
from graphc.tensor.basic import as_tensor_variable
from graphc.tensor.math import logit
from graphc.tensor.reductions import logsumexp

__all__ = ["log_softmax", "logit", "logsumexp", "softmax"]


def softmax(c: Any, axis: Any = None) -> Variable:
    """exp(c) / sum(exp(c)), without overflow.

    Args:
        c: array-like; integers become float64.
        axis: axes over which the result sums to 1; None for all.
    """
    c = as_tensor_variable(c)
    return Softmax(normalize_axes(axis, c.type.ndim, "softmax"))(c)


def log_softmax(c: Any, axis: Any = None) -> Variable:
    """log(softmax(c)), without overflow; arguments as `softmax`."""
    c = as_tensor_variable(c)
    return LogSoftmax(normalize_axes(axis, c.type.ndim, "log_softmax"))(c)
