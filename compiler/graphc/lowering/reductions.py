# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How each reduction combines a value with its accumulators."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc.lowering.scalar import Scalar, ScalarBuilder

_INT64 = np.dtype("int64")


def _lowest(dtype: np.dtype) -> float:
    if dtype.kind in "fc":
        return -np.inf
    return False if dtype == np.bool_ else np.iinfo(dtype).min


def _highest(dtype: np.dtype) -> float:
    if dtype.kind in "fc":
        return np.inf
    return True if dtype == np.bool_ else np.iinfo(dtype).max


@record(frozen=True)
class Reducer:
    """One reduction.

    Attributes:
        accumulators: from the operand's dtype, the (dtype, initial value) of each accumulator; the last is
            the result.
        combine: (builder, value, accumulators, position) -> new accumulators.
        needs_position: whether `position` (an int64 Scalar, the index along the reduced axis) is used.
    """

    accumulators: Callable[[np.dtype], list[tuple[np.dtype, Any]]]
    combine: Callable[[Any, Any, list[Any], Any], list[Any]]
    needs_position: bool = False


def _simple(initial: Callable[[np.dtype], object], method: str) -> Reducer:
    def combine(
        b: ScalarBuilder, value: Scalar, accumulators: list[Scalar], position: object
    ) -> list[Scalar]:
        return [getattr(b, method)(accumulators[0], value)]

    return Reducer(lambda dtype: [(dtype, initial(dtype))], combine)


def _arg(initial: Callable[[np.dtype], object], method: str) -> Reducer:
    """First position of the extreme; a NaN beats every number and the first NaN stays."""

    def combine(
        b: ScalarBuilder, value: Scalar, accumulators: list[Scalar], position: Scalar
    ) -> list[Scalar]:
        best, index = accumulators
        better = getattr(b, method)(value, best)
        if value.dtype.kind in "fc":
            better = b.logical_or(better, b.isnan(value))
            better = b.logical_and(better, b.logical_not(b.isnan(best)))
        return [b.select(better, value, best), b.select(better, position, index)]

    return Reducer(lambda dtype: [(dtype, initial(dtype)), (_INT64, 0)], combine, needs_position=True)


REDUCERS: dict[str, Reducer] = {
    "graphc.reduce_sum": _simple(lambda dtype: 0, "add"),
    "graphc.reduce_prod": _simple(lambda dtype: 1, "mul"),
    "graphc.reduce_max": _simple(_lowest, "maximum"),
    "graphc.reduce_min": _simple(_highest, "minimum"),
    "graphc.reduce_and": _simple(lambda dtype: True, "logical_and"),
    "graphc.reduce_or": _simple(lambda dtype: False, "logical_or"),
    "graphc.argmax": _arg(_lowest, "gt"),
    "graphc.argmin": _arg(_highest, "lt"),
}
