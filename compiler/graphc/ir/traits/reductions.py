# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions, and what is computed along axes: `reduce_*`, `argmax`, `argmin`, `softmax`, `log_softmax`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from graphc.ir.checks import CHECKS, SizeChecks, size_of
from graphc.ir.kinds import FOLDS, REDUCTIONS, SUMS, reduced_axes
from graphc.ir.parts import LiftRule, Parts, again
from graphc.ir.rewrite import Rewriter
from graphc.ir.totality import TOTAL, Totality, never_fails
from graphc.ir.traits import (
    BATCH,
    EXPENSIVE,
    PARTS,
    REFERENCE,
    SIZES,
    Batch,
    Batching,
    Sizes,
    always_expensive,
    sizes_of,
)
from graphc.ir.walk import named_attributes
from graphc.ops.reduce import extreme_of_nothing
from graphc_dialects._base import const_index
from graphc_dialects._mlir import ir

_UFUNCS: dict[str, np.ufunc] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
}
_FOLDS = tuple(f"graphc.reduce_{name}" for name in ("sum", "prod", "and", "or"))
_EXTREMES = ("graphc.reduce_max", "graphc.reduce_min", "graphc.argmax", "graphc.argmin")
_SAME_SHAPE = ("graphc.softmax", "graphc.log_softmax")

_REDUCTIONS = (*_FOLDS, *_EXTREMES)

TOTAL(*_FOLDS, *_SAME_SHAPE)(never_fails)
REDUCTIONS(*_REDUCTIONS)
FOLDS(*_FOLDS, *_EXTREMES[:2])
SUMS("graphc.reduce_sum")
EXPENSIVE(*_REDUCTIONS, *_SAME_SHAPE)(always_expensive)


@SIZES(*_REDUCTIONS)
def _sizes(op: ir.Operation) -> Sizes:
    removed = reduced_axes(op)
    return [size for axis, size in enumerate(sizes_of(op.operands[0])) if axis not in removed]


@SIZES(*_SAME_SHAPE)
def _same_sizes(op: ir.Operation) -> Sizes:
    return sizes_of(op.operands[0])


@TOTAL(*_EXTREMES)
def _has_elements(totality: Totality, op: ir.Operation) -> bool:
    """There is an element along each reduced axis."""
    shape = op.operands[0].type.shape
    return "allow_empty" in op.attributes or all(shape[axis] > 0 for axis in reduced_axes(op))


@CHECKS(*_EXTREMES)
def _checks(checks: SizeChecks, rw: Rewriter, op: ir.Operation) -> None:
    """Reductions without a neutral element need an element, as in NumPy even where there is no result."""
    if "allow_empty" not in op.attributes:
        _require_elements(checks, rw, op, list(reduced_axes(op)), op.name[7:].removeprefix("reduce_"))


@CHECKS("graphc.arg_extreme")
def _row_checks(checks: SizeChecks, rw: Rewriter, op: ir.Operation) -> None:
    """As `graphc.argmax` along the last axis, also where there is no row whose kernel could fail."""
    name = "argmin" if op.attributes["smallest"].value else "argmax"
    _require_elements(checks, rw, op, [len(op.operands[0].type.shape) - 1], name)


def _require_elements(checks: SizeChecks, rw: Rewriter, op: ir.Operation, axes: list[int], name: str) -> None:
    x = op.operands[0]
    shape = rw.dims.shape(x)
    risky = [axis for axis in axes if not isinstance(shape[axis], int) or shape[axis] == 0]
    if not risky:
        return
    zero = rw.index(0)
    count = checks.product(rw, [size_of(rw, x, axis) for axis in risky])
    condition = checks.compare(rw, "gt", count, zero)
    message = f"{name}: the reduced axes have no elements, and {name} of nothing is undefined"
    checks.check(rw, condition, count, zero, message, "ValueError")


# -- references ----------------------------------------------------------------------------------------------


def _reduction(ufunc: np.ufunc) -> Callable[[ir.Operation, np.ndarray], np.ndarray]:
    def reduce(op: ir.Operation, x: np.ndarray) -> np.ndarray:
        axes = tuple(reduced_axes(op))
        if ufunc in (np.maximum, np.minimum) and any(x.shape[axis] == 0 for axis in axes):
            start = extreme_of_nothing("max" if ufunc is np.maximum else "min", x.dtype)
            return np.asarray(ufunc.reduce(x, axis=axes, initial=start))
        return np.asarray(ufunc.reduce(x, axis=axes, dtype=x.dtype))

    return reduce


for _name, _ufunc in _UFUNCS.items():
    REFERENCE(f"graphc.reduce_{_name}")(_reduction(_ufunc))


@REFERENCE("graphc.argmax", "graphc.argmin")
def _position(op: ir.Operation, x: np.ndarray) -> np.ndarray:
    find = np.argmax if op.name == "graphc.argmax" else np.argmin
    return np.asarray(find(x, axis=reduced_axes(op)[0]))


def _shifted(op: ir.Operation, x: np.ndarray) -> np.ndarray:
    top = np.max(x, axis=tuple(reduced_axes(op)), keepdims=True, initial=-np.inf)
    if "guarded" in op.attributes and bool(op.attributes["guarded"].value):
        top = np.where(np.isfinite(top), top, 0)
    return np.asarray(x - top)


@REFERENCE("graphc.softmax")
def _softmax(op: ir.Operation, x: np.ndarray) -> np.ndarray:
    e = np.exp(_shifted(op, x))
    return np.asarray(e / np.sum(e, axis=tuple(reduced_axes(op)), keepdims=True))


@REFERENCE("graphc.log_softmax")
def _log_softmax(op: ir.Operation, x: np.ndarray) -> np.ndarray:
    shifted = _shifted(op, x)
    return np.asarray(shifted - np.log(np.sum(np.exp(shifted), axis=tuple(reduced_axes(op)), keepdims=True)))


# -- in loops ------------------------------------------------------------------------------------------------


@BATCH(*_FOLDS, *_SAME_SHAPE)
def _rows(b: Batching, op: ir.Operation, xs: list[Batch]) -> ir.Value:
    return _reduced(b, op, xs[0].value)


@BATCH(*_EXTREMES)
def _extreme_rows(b: Batching, op: ir.Operation, xs: list[Batch]) -> ir.Value:
    stack = xs[0].value
    if "allow_empty" not in op.attributes:
        for axis in reduced_axes(op):
            if stack.type.shape[axis + 1] <= 0:
                stack = b.fit(stack, axis + 1, const_index(1))
    return _reduced(b, op, stack)


def _reduced(b: Batching, op: ir.Operation, stack: ir.Value) -> ir.Value:
    attributes = named_attributes(op)
    axes = [axis + 1 for axis in reduced_axes(op)]
    if "axes" in attributes:
        attributes["axes"] = ir.DenseI64ArrayAttr.get(axes)
    else:
        attributes["axis"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), axes[0])
    return b.create(op.name, [stack], b.stack_type(op.results[0].type), **attributes)


# -- in part -------------------------------------------------------------------------------------------------


def _of_softmax(rw: Rewriter, op: ir.Operation, parts: Parts) -> list[Parts] | None:
    return None if set(parts) & set(reduced_axes(op)) else [parts]


def _of_reduction(rw: Rewriter, op: ir.Operation, parts: Parts) -> list[Parts] | None:
    removed = reduced_axes(op)
    kept = [axis for axis in range(len(op.operands[0].type.shape)) if axis not in removed]
    return [{kept[axis]: part for axis, part in parts.items()}]


PARTS(*_SAME_SHAPE)(LiftRule(_of_softmax, again))
PARTS(*_REDUCTIONS)(LiftRule(_of_reduction, again))
