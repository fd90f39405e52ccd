# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Equality of graphs; source: PyTensor's ``equal_computations``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphc.graph.basic import Constant, Variable

if TYPE_CHECKING:
    from graphc.graph.tensor.like import TensorLike


def equal_computations(
    xs: Sequence[TensorLike],
    ys: Sequence[TensorLike],
    in_xs: Sequence[Variable] | None = None,
    in_ys: Sequence[Variable] | None = None,
    strict_dtype: bool = True,
) -> bool:
    """True if two lists of variables are computed by equal ops from the same variables.

    Args:
        xs, ys: variables, or arrays, which stand for constants.
        in_xs, in_ys: variables of the first graphs and those of the second that stand for them; each pair
            must have one type.
        strict_dtype: compare dtypes of constants, not only values.

    Raises:
        ValueError: the lists have different lengths.

    Examples:
        >>> x = pt.vector("x")
        >>> graphc.graph.equal_computations([pt.exp(x)], [pt.exp(x)])
        True
    """
    if len(xs) != len(ys) or len(in_xs or ()) != len(in_ys or ()):
        raise ValueError(f"equal_computations takes lists of equal lengths, got {len(xs)} and {len(ys)}")
    same = {(x, y) for x, y in zip(in_xs or (), in_ys or (), strict=True) if x.type == y.type}
    given = {*(in_xs or ()), *(in_ys or ())}
    todo: list[tuple[TensorLike, TensorLike]] = list(zip(xs, ys, strict=True))
    seen: set[tuple[Variable, Variable]] = set()
    while todo:
        x, y = todo.pop()
        if x is y:
            continue
        if not isinstance(x, Variable) or not isinstance(y, Variable):
            if not _equal_values(x, y, strict_dtype):
                return False
            continue
        if (x, y) in same or (x, y) in seen:
            continue
        seen.add((x, y))
        if x in given or y in given:
            return False
        if isinstance(x, Constant) or isinstance(y, Constant):
            if not _equal_values(x, y, strict_dtype):
                return False
        elif (
            x.owner is None
            or y.owner is None
            or x.owner.op != y.owner.op
            or x.index != y.index
            or len(x.owner.inputs) != len(y.owner.inputs)
        ):
            return False
        else:
            todo.extend(zip(x.owner.inputs, y.owner.inputs, strict=True))
    return True


def _equal_values(x: TensorLike, y: TensorLike, strict_dtype: bool) -> bool:
    if any(isinstance(v, Variable) and not isinstance(v, Constant) for v in (x, y)):
        return False
    if isinstance(x, Constant) and isinstance(y, Constant):
        if x.type.in_same_class(y.type) or not strict_dtype:
            return bool(np.array_equal(x.data, y.data)) if hasattr(x.data, "dtype") else x.data == y.data
        return False
    a, b = (np.asarray(v.data if isinstance(v, Constant) else v) for v in (x, y))
    return (not strict_dtype or a.dtype == b.dtype) and bool(np.array_equal(a, b))


def same_graph(
    in_xs: Sequence[Variable], xs: Sequence[TensorLike], in_ys: Sequence[Variable], ys: Sequence[TensorLike]
) -> bool:
    """True if two graphs, each with inputs of its own, compute the same from inputs of the same types."""
    if len(in_xs) != len(in_ys) or len(xs) != len(ys):
        return False
    if any(x.type != y.type for x, y in zip(in_xs, in_ys, strict=True)):
        return False
    return equal_computations(xs, ys, in_xs, in_ys)
