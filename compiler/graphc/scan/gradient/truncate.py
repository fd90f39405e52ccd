# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients over the last iterations only (truncated backpropagation through time)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphc.graph.basic import Variable
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.ops.create import zeros as zeros_
from graphc.ops.join import concatenate
from graphc.ops.math import minimum
from graphc.ops.sizes import known_size, size_of

if TYPE_CHECKING:
    from graphc.graph.tensor.like import TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc.scan.op import Scan


def truncated(op: Scan, taken: TensorVariable) -> tuple[Variable, Variable | None]:
    """How far a gradient goes back.

    Args:
        op: a `Scan`; the gradient goes back over at most ``op.truncate_gradient`` iterations.
        taken: number of iterations that the loop makes.

    Returns:
        The number of iterations, and how many there are before these; None for none.

    Raises:
        NotImplementedError: the loop rewrites rows of its states (mit-mot), so that the rows before the first
            of these iterations are not known.
    """
    limit = op.truncate_gradient
    known = known_size(taken)
    if limit < 0 or (known is not None and known <= limit):
        return taken, None
    if any(len(state.writes) > 1 for state in op.spec.states):
        raise NotImplementedError(
            f"{op} has truncate_gradient={limit} and states that rewrite older rows (mit-mot); its gradient "
            "cannot be limited to the last iterations. Leave truncate_gradient at -1"
        )
    n_steps = as_tensor_variable(limit if known is not None else minimum(taken, limit))
    n_steps = n_steps.astype("int64")
    return n_steps, taken - n_steps


def initial_rows(window: Any, skipped: TensorLike) -> Variable:
    """The cotangent of the initial rows of a loop from that of the rows before the last iterations.

    Args:
        window: cotangent of the K rows before the first iteration that the gradient reaches, oldest first.
        skipped: number of iterations before that one. The rows that these computed count as constants.
    """
    rows = size_of(window, 0)
    before = minimum(skipped, rows)
    zeros = zeros_(
        (before, *(size_of(window, axis) for axis in range(1, window.type.ndim))), window.type.dtype
    )
    return concatenate([zeros, window[: rows - before]])
