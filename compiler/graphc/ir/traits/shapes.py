# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shapes: `dimshuffle`, `reshape`, `broadcast_to`, `specify_shape`, `iota`."""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul
from typing import Any

import numpy as np

from graphc.ir.checks import CHECKS, SizeChecks, size_of
from graphc.ir.constants import constant_attribute, element_dtype
from graphc.ir.dims import broadcasts
from graphc.ir.parts import LiftRule, Part, Parts, again, part_type, same, sized
from graphc.ir.rewrite import Rewriter, tensor_type
from graphc.ir.totality import TOTAL, Totality, never_fails
from graphc.ir.traits import BATCH, PARTS, REFERENCE, SIZES, Batch, Batching, CannotBatch, Sizes, given_sizes
from graphc.ir.views import (
    COUNTS,
    INLINED,
    MOVES_AXES,
    RENAMES,
    REPEATS,
    RESHAPES,
    RESIZES,
    SAME_ARRAY,
    SAME_ELEMENTS,
    axes_order,
    repeated,
    reshaped,
    with_sizes,
)
from graphc_dialects._mlir import ir

TOTAL("graphc.dimshuffle", "graphc.iota")(never_fails)
MOVES_AXES("graphc.dimshuffle")
SAME_ELEMENTS("graphc.dimshuffle", "graphc.broadcast_to", "graphc.reshape", "graphc.specify_shape")
RENAMES("graphc.dimshuffle", "graphc.reshape", "graphc.specify_shape")
COUNTS("graphc.iota")
SAME_ARRAY("graphc.specify_shape")
RESIZES("graphc.broadcast_to", "graphc.reshape", "graphc.specify_shape")
REPEATS("graphc.broadcast_to")
RESHAPES("graphc.reshape")
INLINED("graphc.dimshuffle", "graphc.broadcast_to", "graphc.iota")


# -- dimshuffle ----------------------------------------------------------------------------------------------


@SIZES("graphc.dimshuffle")
def _dimshuffle_sizes(op: ir.Operation) -> Sizes:
    return [() if axis < 0 else ((op.operands[0], axis),) for axis in axes_order(op)]


@REFERENCE("graphc.dimshuffle")
def _dimshuffle(op: ir.Operation, x: np.ndarray) -> np.ndarray:
    order = axes_order(op)
    kept = [axis for axis in order if axis >= 0]
    dropped = tuple(axis for axis in range(x.ndim) if axis not in kept)
    ranks = {axis: position for position, axis in enumerate(sorted(kept))}
    moved = np.squeeze(x, dropped).transpose([ranks[axis] for axis in kept])
    return moved[tuple(np.newaxis if axis < 0 else slice(None) for axis in order)]


@BATCH("graphc.dimshuffle")
def _dimshuffle_rows(b: Batching, op: ir.Operation, xs: list[Batch]) -> ir.Value:
    order = [0, *(axis + 1 if axis >= 0 else -1 for axis in axes_order(op))]
    return b.cast(b.dimshuffle(xs[0].value, order), b.stack_type(op.results[0].type))


# -- operations that are given sizes -------------------------------------------------------------------------


@SIZES("graphc.reshape", "graphc.broadcast_to")
def _new_sizes(op: ir.Operation) -> Sizes:
    return given_sizes(list(op.operands)[1:])


@SIZES("graphc.specify_shape")
def _specified_sizes(op: ir.Operation) -> Sizes:
    x, *sizes = op.operands
    return [((size, -1), (x, axis)) for axis, size in enumerate(sizes)]


@REFERENCE("graphc.reshape")
def _reshape(op: ir.Operation, x: np.ndarray, *sizes: int) -> np.ndarray:
    return x.reshape(sizes)


@REFERENCE("graphc.broadcast_to")
def _broadcast_to(op: ir.Operation, x: np.ndarray, *sizes: int) -> np.ndarray:
    return np.broadcast_to(x, sizes)


@REFERENCE("graphc.specify_shape")
def _specify_shape(op: ir.Operation, x: np.ndarray, *sizes: int) -> np.ndarray:
    if x.shape != sizes:
        raise ValueError(f"specify_shape: {x.shape} is not {sizes}")
    return x


@TOTAL("graphc.broadcast_to", "graphc.specify_shape")
def _sizes_are_right(totality: Totality, op: ir.Operation) -> bool:
    """The sizes are those of the operand, or it broadcasts."""
    x, *sizes = op.operands
    lead = len(sizes) - len(x.type.shape)
    spread = op.name in REPEATS
    return totality.are_sizes(op, sizes) and all(
        (spread and broadcasts(x, axis)) or totality.has_size((x, axis), size)
        for axis, size in enumerate(sizes[lead:])
    )


@TOTAL("graphc.reshape")
def _keeps_elements(totality: Totality, op: ir.Operation) -> bool:
    """The number of elements stays the same."""
    x, *sizes = op.operands
    return totality.are_sizes(op, sizes) and totality.same_count(x, sizes)


@CHECKS("graphc.reshape")
def _reshape_checks(checks: SizeChecks, rw: Rewriter, op: ir.Operation) -> None:
    x, *sizes = op.operands
    have = rw.dims.count(rw.dims.shape(x))
    for size in sizes:
        checks.not_negative(rw, size, "reshape")
    if have == rw.dims.count(rw.dims.size(size) for size in sizes):
        return
    given = checks.product(rw, [size_of(rw, x, axis) for axis in range(len(x.type.shape))])
    expected = checks.product(rw, sizes, bounded=True)
    message = "reshape: cannot reshape an array of {given} elements into a shape of {expected} elements"
    checks.check(rw, checks.compare(rw, "eq", given, expected), given, expected, message, "ValueError")
    _static_sizes(checks, rw, op, sizes)


@CHECKS("graphc.broadcast_to")
def _broadcast_checks(checks: SizeChecks, rw: Rewriter, op: ir.Operation) -> None:
    x, *sizes = op.operands
    _static_sizes(checks, rw, op, sizes)
    for size in sizes:
        checks.not_negative(rw, size, "broadcast_to")
    checks.fits_memory(rw, sizes, "broadcast_to")
    lead = len(sizes) - len(x.type.shape)
    for axis, known in enumerate(x.type.shape):
        if known != 1:
            message = f"broadcast_to: dimension {axis} of size {{given}} cannot become {{expected}}"
            checks.equal_size(rw, (x, axis), sizes[lead + axis], message)


@CHECKS("graphc.specify_shape")
def _specify_checks(checks: SizeChecks, rw: Rewriter, op: ir.Operation) -> None:
    x, *sizes = op.operands
    name, error = "specify_shape", "ShapeError"
    if "index" in op.attributes:
        name, error = "index arrays, or a mask and what it selects from, do not fit", "IndexError"
    for axis, size in enumerate(sizes):
        message = f"{name}: dimension {axis} has size {{given}}, expected {{expected}}"
        if "state" in op.attributes:
            error = "ValueError"
            message = (
                f"scan: rows of the state '{op.attributes['state'].value}' start with size {{expected}} in "
                f"dimension {axis}, but go on with {{given}}"
            )
        checks.equal_size(rw, (x, axis), size, message, error)
    _static_sizes(checks, rw, op, sizes)


def _static_sizes(checks: SizeChecks, rw: Rewriter, op: ir.Operation, sizes: Sequence[ir.Value]) -> None:
    """Static sizes of the result type, for size operands."""
    for axis, (known, size) in enumerate(zip(op.results[0].type.shape, sizes, strict=True)):
        key = rw.dims.size(size)
        if known >= 0 and key != known:
            message = f"{op.name[7:]}: dimension {axis} must be {{expected}}, but {{given}} was asked for"
            checks.equal_sizes(rw, (key, known), size, rw.index(known), message)


@BATCH("graphc.reshape")
def _reshape_rows(b: Batching, op: ir.Operation, xs: list[Batch]) -> ir.Value:
    sizes = [b.rows, *(b.size(x) for x in list(op.operands)[1:])]
    return reshaped(xs[0].value, sizes, b.stack_type(op.results[0].type), b.create)


@BATCH("graphc.broadcast_to")
def _broadcast_rows(b: Batching, op: ir.Operation, xs: list[Batch]) -> ir.Value:
    sizes = [b.size(x) for x in list(op.operands)[1:]]
    _require_known(b, op, sizes)
    rank = len(xs[0].value.type.shape) - 1
    missing = len(sizes) - rank
    stack = xs[0].value
    for axis in range(rank):
        if stack.type.shape[1 + axis] != 1:
            stack = b.fit(stack, 1 + axis, sizes[missing + axis])
    stack = b.dimshuffle(stack, [0, *[-1] * missing, *range(1, rank + 1)])
    return repeated(stack, [b.rows, *sizes], b.stack_type(op.results[0].type), b.create)


@BATCH("graphc.specify_shape")
def _specify_rows(b: Batching, op: ir.Operation, xs: list[Batch]) -> ir.Value:
    sizes = [b.size(x) for x in list(op.operands)[1:]]
    _require_known(b, op, sizes)
    stack = xs[0].value
    for axis, size in enumerate(sizes, 1):
        stack = b.fit(stack, axis, size)
    return with_sizes(stack, [b.rows, *sizes], b.stack_type(op.results[0].type), b.create)


def _require_known(b: Batching, op: ir.Operation, sizes: list[ir.Value]) -> None:
    """Sizes that the result type knows are known to be those: otherwise that is checked, and may fail."""
    for known, size in zip(op.results[0].type.shape, sizes, strict=True):
        if known >= 0 and b.dims.size(size) != known:
            raise CannotBatch("a size that is asked for may not be the result's")


# -- iota ----------------------------------------------------------------------------------------------------


@SIZES("graphc.iota")
def _iota_sizes(op: ir.Operation) -> Sizes:
    return given_sizes([op.operands[2]])


@REFERENCE("graphc.iota")
def _iota(op: ir.Operation, start: np.ndarray, step: np.ndarray, length: int) -> np.ndarray:
    positions = np.arange(length).astype(start.dtype)
    return np.asarray(start + step * positions)


@CHECKS("graphc.iota")
def _iota_checks(checks: SizeChecks, rw: Rewriter, op: ir.Operation) -> None:
    checks.fits_memory(rw, [op.operands[2]], "arange")


@BATCH("graphc.iota")
def _iota_rows(b: Batching, op: ir.Operation, xs: list[Batch]) -> ir.Value:
    """`start + step * i` of columns."""
    result = op.results[0].type
    length = b.size(op.operands[2])
    scalar = tensor_type([], result.element_type)
    zero, one = (_literal(b, number, scalar) for number in (0, 1))
    positions = b.create("graphc.iota", [zero, one, length], tensor_type(result.shape, result.element_type))
    start, step = (b.dimshuffle(x.value, [0, -1] if x.stacked else [-1, -1]) for x in xs)
    row = b.dimshuffle(positions, [-1, 0])
    rows = step.type.shape[0]
    moved = b.create("graphc.mul", [step, row], tensor_type([rows, *result.shape], result.element_type))
    return b.create("graphc.add", [start, moved], b.stack_type(result))


def _literal(b: Batching, number: int, type_: ir.RankedTensorType) -> ir.Value:
    array = np.asarray(number, element_dtype(type_.element_type))
    name, attribute = constant_attribute(array, type_)
    return b.create(name, [], type_, value=attribute)


# -- in part -------------------------------------------------------------------------------------------------


def _of_moved_axes(rw: Rewriter, op: ir.Operation, parts: Parts) -> list[Parts] | None:
    order = axes_order(op)
    if any(order[axis] < 0 for axis in parts):
        return None
    return [{order[axis]: part for axis, part in parts.items()}]


def _of_broadcast(rw: Rewriter, op: ir.Operation, parts: Parts) -> list[Parts] | None:
    shape = list(op.operands[0].type.shape)
    lead = len(op.results[0].type.shape) - len(shape)
    return [{a - lead: part for a, part in parts.items() if a >= lead and shape[a - lead] != 1}]


def _of_reshape(rw: Rewriter, op: Any, parts: Parts) -> list[Parts] | None:
    """Whole rows; or, where the first two axes are joined, or the first one is divided, whole blocks."""
    x, *sizes = op.operands
    have, want = rw.dims.shape(x), [rw.dims.size(size) for size in sizes]
    if list(parts) != [0] or rw.dims.count(have) != rw.dims.count(want):
        return None
    part = parts[0]
    if have and rw.dims.same(have[0], want[0]):
        return [parts]
    if rw.constant(part.stride) != 1:
        return None
    if len(want) == len(have) + 1 and want[2:] == have[1:]:
        unit, known = sizes[1], op.results[0].type.shape[1]
        static = part.static * known if part.static >= 0 and known >= 0 else -1
        offset, size = (rw.build(mul, rows, unit) for rows in part[:2])
        return [{0: Part(offset, size, part.stride, static)}]
    if len(have) == len(want) + 1 and have[2:] == want[1:]:
        offset, size = (_quotient(rw, rows, have[1]) for rows in part[:2])
        if offset is None or size is None:
            return None
        known = rw.constant(size)
        return [{0: Part(offset, size, part.stride, -1 if known is None else int(known))}]
    return None


def _quotient(rw: Rewriter, value: ir.Value, unit: int) -> Any:
    """An index value divided by a size that is a factor of it, None if it is not known to be one."""
    known = rw.constant(value)
    if known is not None:
        divides = isinstance(unit, int) and unit > 0 and known % unit == 0
        return rw.index(known // unit) if divides else value if known == 0 else None
    if rw.dims.same(rw.dims.size(value), unit):
        return rw.index(1)
    product = rw.defining(value, "arith.muli")
    for x, y in () if product is None else (tuple(product.operands), tuple(product.operands)[::-1]):
        if rw.dims.same(rw.dims.size(y), unit):
            return x
    return None


def _reshape_part(rw: Rewriter, op: ir.Operation, parts: Parts, operands: list[ir.Value]) -> ir.Value:
    """Its checks hold for the part, as the number of elements is known to be right."""
    sizes = [parts[0].size, *operands[2:]]
    return reshaped(operands[0], sizes, part_type(op.results[0].type, parts), rw.create)


PARTS("graphc.dimshuffle")(LiftRule(_of_moved_axes, again))
PARTS("graphc.broadcast_to")(LiftRule(_of_broadcast, sized, relies=True))
PARTS("graphc.specify_shape")(LiftRule(same, sized, relies=True))
PARTS("graphc.reshape")(LiftRule(_of_reshape, _reshape_part))
