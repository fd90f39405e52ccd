# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Indexing: `graphc.slice`, `graphc.update_slice`, `graphc.take`, `graphc.put`."""

from __future__ import annotations

from collections.abc import Sequence
from operator import add, mul, sub
from typing import Any

import numpy as np

from graphc.ir.checks import CHECKS, SizeChecks, size_of
from graphc.ir.constants import CONSTANTS, read_constant
from graphc.ir.kinds import PER_ELEMENT
from graphc.ir.parts import LiftRule, Part, Parts, part_type, slice_of
from graphc.ir.rewrite import Rewriter, tensor_type
from graphc.ir.totality import TOTAL, Totality
from graphc.ir.traits import (
    BATCH,
    PARTS,
    POSITIONAL,
    REFERENCE,
    SIZES,
    Batch,
    Batching,
    CannotBatch,
    Sizes,
    given_sizes,
    sizes_of,
)
from graphc.ir.views import (
    GATHERS,
    INLINED,
    SELECTS,
    TAKES_PART,
    UPDATES,
    UPDATES_PART,
    Bound,
    Create,
    accumulates,
    axis_of,
    bounds_of,
    is_in_range,
)
from graphc.ir.walk import definition, named_attributes
from graphc_dialects._base import const_index, constant_value
from graphc_dialects._mlir import ir

POSITIONAL("graphc.slice", "graphc.update_slice")
TAKES_PART("graphc.slice")
GATHERS("graphc.take")
PER_ELEMENT("graphc.take")
SELECTS("graphc.slice", "graphc.take", "graphc.gather", "graphc.compress", "graphc.sort", "graphc.partition")
UPDATES("graphc.update_slice", "graphc.put")
UPDATES_PART("graphc.update_slice")
INLINED("graphc.slice")


def where_updated(op: ir.Operation, x: ir.Value, create: Create) -> ir.Value:
    """The elements of a tensor at the places that an operation of `UPDATES` updates."""
    _, y, *rest = op.operands
    if op.name in UPDATES_PART:
        return create("graphc.slice", [x, *rest], y.type)
    known = {name: value for name, value in named_attributes(op).items() if name != "accumulate"}
    return create("graphc.take", [x, *rest], y.type, **known)


def where_taken(op: ir.Operation, x: ir.Value, y: ir.Value, create: Create) -> ir.Value:
    """A tensor with other elements at the places that an operation of `TAKES_PART` takes."""
    return with_part(x, y, bounds_of(op), create)


def with_part(x: ir.Value, y: ir.Value, bounds: Sequence[Bound], create: Create) -> ir.Value:
    """A tensor with a part replaced."""
    places = [value for values in zip(*bounds, strict=True) for value in values]
    no = ir.BoolAttr.get(False)
    return create("graphc.update_slice", [x, y, *places], x.type, accumulate=no)


# -- slices --------------------------------------------------------------------------------------------------


@SIZES("graphc.slice")
def _slice_sizes(op: ir.Operation) -> Sizes:
    return given_sizes(bound.size for bound in bounds_of(op))


@SIZES("graphc.update_slice", "graphc.put")
def _sizes_of_first(op: ir.Operation) -> Sizes:
    return sizes_of(op.operands[0])


def positions(x: np.ndarray, bounds: Sequence[int]) -> tuple[np.ndarray, ...]:
    """Open mesh of the positions that normalised offsets, sizes and strides select."""
    rank = x.ndim
    offsets, sizes, strides = bounds[:rank], bounds[rank : 2 * rank], bounds[2 * rank :]
    selected = [o + s * np.arange(n) for o, n, s in zip(offsets, sizes, strides, strict=True)]
    return np.ix_(*selected) if rank else ()


@REFERENCE("graphc.slice")
def _slice(op: ir.Operation, x: np.ndarray, *bounds: int) -> np.ndarray:
    return np.asarray(x[positions(x, bounds)])


@REFERENCE("graphc.update_slice")
def _update_slice(op: ir.Operation, x: np.ndarray, y: np.ndarray, *bounds: int) -> np.ndarray:
    where, result = positions(x, bounds), x.copy()
    result[where] = result[where] + y if accumulates(op) else y
    return result


@TOTAL("graphc.slice")
def _slice_is_total(totality: Totality, op: ir.Operation) -> bool:
    """Bounds are valid by the way they are computed, as the dialect demands, unless a check precedes."""
    return True


@TOTAL("graphc.update_slice")
def _update_is_total(totality: Totality, op: ir.Operation) -> bool:
    """The new values have the size of the slice."""
    y = op.operands[1]
    return all(totality.has_size((y, axis), bound.size) for axis, bound in enumerate(bounds_of(op, 2)))


@CHECKS("graphc.update_slice")
def _update_checks(checks: SizeChecks, rw: Rewriter, op: ir.Operation) -> None:
    y = op.operands[1]
    for axis, bound in enumerate(bounds_of(op, 2)):
        message = f"set_subtensor: values have size {{given}} in dimension {axis}, the slice has {{expected}}"
        checks.equal_size(rw, (y, axis), bound.size, message)


@BATCH("graphc.slice")
def _slice_rows(b: Batching, op: ir.Operation, xs: list[Batch]) -> ir.Value:
    _require_safe_bounds(b, op.operands[0], list(op.operands)[1:])
    bounds = _bounds(b, list(op.operands)[1:])
    return b.create("graphc.slice", [xs[0].value, *bounds], b.stack_type(op.results[0].type))


@BATCH("graphc.update_slice")
def _update_rows(b: Batching, op: ir.Operation, xs: list[Batch]) -> ir.Value:
    _require_safe_bounds(b, op.operands[0], list(op.operands)[2:])
    bounds = _bounds(b, list(op.operands)[2:])
    x, y = (b.repeated(batch) for batch in xs)
    rank = len(y.type.shape)
    for axis in range(1, rank):
        y = b.fit(y, axis, bounds[rank + axis])
    return b.create(
        op.name, [x, y, *bounds], b.stack_type(op.results[0].type), accumulate=op.attributes["accumulate"]
    )


def _bounds(b: Batching, bounds: list[ir.Value]) -> list[ir.Value]:
    """Offsets, sizes and strides with those of the rows before."""
    rank = len(bounds) // 3
    offsets, sizes, strides = bounds[:rank], bounds[rank : 2 * rank], bounds[2 * rank :]
    return [
        const_index(0),
        *(b.index(x) for x in offsets),
        b.rows,
        *(b.size(x) for x in sizes),
        const_index(1),
        *(b.index(x) for x in strides),
    ]


def _require_safe_bounds(b: Batching, x: ir.Value, bounds: list[ir.Value]) -> None:
    """Bounds are inside the array by construction, or literals that are: a check in the body would come too
    late for what is done before the loop.
    """
    if not b.checked_in_body:
        return
    rank = len(bounds) // 3
    for axis, size in enumerate(x.type.shape):
        offset, count, stride = (constant_value(bounds[axis + i * rank]) for i in range(3))
        if size < 0 or offset is None or count is None or stride is None:
            raise CannotBatch("a slice may rely on what the body checks")
        last = offset + stride * (count - 1)
        if count and not (0 <= offset < size and 0 <= last < size):
            raise CannotBatch("a slice may rely on what the body checks")


def _of_slice(rw: Rewriter, op: ir.Operation, parts: Parts) -> list[Parts] | None:
    """Parts of parts; along other axes nothing changes."""
    bounds = bounds_of(op)
    found = {}
    for axis, part in parts.items():
        offset, _, stride = bounds[axis]
        if rw.constant(stride) != 1:
            part = part._replace(
                offset=rw.build(mul, part.offset, stride),
                stride=rw.build(mul, part.stride, stride),
            )
        if rw.constant(offset) != 0:
            part = part._replace(offset=rw.build(add, offset, part.offset))
        found[axis] = part
    return [found]


def _slice_part(rw: Rewriter, op: ir.Operation, parts: Parts, operands: list[ir.Value]) -> ir.Value:
    """The slice along other axes."""
    type_ = op.results[0].type
    others = {
        axis: Part(*bound, type_.shape[axis]) for axis, bound in enumerate(bounds_of(op)) if axis not in parts
    }
    return rw.cast_static(slice_of(rw, operands[0], others), part_type(type_, parts))


PARTS("graphc.slice")(LiftRule(_of_slice, _slice_part))


# -- arrays of indices ---------------------------------------------------------------------------------------


@SIZES("graphc.take")
def _take_sizes(op: ir.Operation) -> Sizes:
    axis = axis_of(op)
    source, indices = (sizes_of(x) for x in op.operands)
    return [*source[:axis], *indices, *source[axis + 1 :]]


@REFERENCE("graphc.take")
def _take(op: ir.Operation, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
    return np.take(x, indices, axis=axis_of(op))


@REFERENCE("graphc.put")
def _put(op: ir.Operation, x: np.ndarray, y: np.ndarray, indices: np.ndarray) -> np.ndarray:
    axis, result = axis_of(op), x.copy()
    front: tuple[Any, ...] = (slice(None),) * axis
    trailing = x.ndim - axis - 1
    for position in np.ndindex(indices.shape):
        row = y[front + position + (slice(None),) * trailing]
        target = (*front, indices[position])
        result[target] = result[target] + row if accumulates(op) else row
    return result


@TOTAL("graphc.take")
def _take_is_total(totality: Totality, op: ir.Operation) -> bool:
    """Literal indices within a static size."""
    return is_in_range(op) or _in_range(op.operands[1], op.operands[0].type.shape[axis_of(op)])


def _in_range(indices: ir.Value, size: int) -> bool:
    op = definition(indices, *CONSTANTS)
    known = None if op is None or size < 0 else read_constant(op)
    return isinstance(known, np.ndarray) and bool(np.all((known >= -size) & (known < size)))


@CHECKS("graphc.take")
def _take_checks(checks: SizeChecks, rw: Rewriter, op: ir.Operation) -> None:
    _check_indices(checks, rw, op)


@CHECKS("graphc.put")
def _put_checks(checks: SizeChecks, rw: Rewriter, op: ir.Operation) -> None:
    x, y, indices = op.operands
    axis, rank = axis_of(op), len(indices.type.shape)
    _check_indices(checks, rw, op)
    for dim in range(len(y.type.shape)):
        inside = axis <= dim < axis + rank
        source = (indices, dim - axis) if inside else (x, dim if dim < axis else dim - rank + 1)
        message = f"set_subtensor: values have size {{given}} in dimension {dim}, {{expected}} are selected"
        checks.equal(rw, (y, dim), source, message)


def _check_indices(checks: SizeChecks, rw: Rewriter, op: ir.Operation) -> None:
    """-n <= index < n for the smallest and the largest index; no index at all is in range."""
    x, indices, axis = op.operands[0], op.operands[len(op.operands) - 1], axis_of(op)
    if checks.only_sizes or is_in_range(op):
        return
    key, known = rw.dims.shape(x)[axis], rw.constant(indices)
    if isinstance(known, np.ndarray) and isinstance(key, int):
        if known.size == 0 or (-key <= known.min() and known.max() < key):
            return
    size = size_of(rw, x, axis)
    done = ("in range", indices, key)
    if done in rw.reified:
        return
    rw.reified[done] = size
    low = rw.build(sub, 0, size)
    message = f"index {{given}} is out of bounds for axis {axis} with size {{expected}}"
    lowest, highest = checks.extreme(rw, "min", indices), checks.extreme(rw, "max", indices)
    empty = checks.is_empty(rw, indices)
    for value, predicate, bound in ((lowest, "ge", low), (highest, "lt", size)):
        condition = checks.compare(rw, predicate, value, bound)
        if empty is not None:
            condition = rw.create("arith.ori", [condition, empty], condition.type)
        checks.check(rw, condition, value, size, message, "IndexError")


@BATCH("graphc.take")
def _take_rows(b: Batching, op: ir.Operation, xs: list[Batch]) -> ir.Value:
    axis = axis_of(op)
    x, indices = xs
    type_, i64 = b.stack_type(op.results[0].type), op.attributes["axis"].type
    if not indices.stacked:
        if not _in_range(op.operands[1], op.operands[0].type.shape[axis]):
            raise CannotBatch("an index may be out of range")
        return b.create(op.name, [x.value, indices.value], type_, axis=ir.IntegerAttr.get(i64, axis + 1))
    if x.stacked:
        raise CannotBatch("rows are gathered from rows")
    shape = list(x.value.type.shape)
    taken = tensor_type([*shape[:axis], *indices.value.type.shape, *shape[axis + 1 :]], type_.element_type)
    result = b.create(op.name, [x.value, indices.value], taken, axis=ir.IntegerAttr.get(i64, axis))
    order = [axis, *(i for i in range(taken.rank) if i != axis)]
    return b.cast(b.dimshuffle(result, order), type_)
