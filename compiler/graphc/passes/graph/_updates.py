# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Updates of arrays, and of zeros that are added to arrays: rules by which they cost what they touch.

Derivatives of rows and parts are zeros with these rows or parts. What is linear, or 0 of 0, is computed of
the elements alone, and a sum with such zeros is an update, in place where the array is a state of a loop or a
shared variable. The algebraic-simplification pass lists the rules and their classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod

import numpy as np

from graphc.ir.build import compare_index, select
from graphc.ir.checks import SizeChecks
from graphc.ir.kinds import SUMS
from graphc.ir.parts import Part, part_type, slice_of
from graphc.ir.patterns import is_unit, kind, negated, registrar
from graphc.ir.references import evaluate
from graphc.ir.rewrite import Rewriter, RuleTable, tensor_type
from graphc.ir.scan_view import is_read, is_scan
from graphc.ir.traits.indexing import where_updated, with_part
from graphc.ir.views import (
    COUNTS,
    GATHERS,
    RESHAPES,
    TAKES_PART,
    UPDATES,
    UPDATES_PART,
    Bound,
    accumulates,
    bounds_of,
    dimshuffle,
    order_of,
    repeated,
    reshaped,
)
from graphc.ir.walk import is_used_once, named_attributes, readers
from graphc.passes.graph.insert_checks import elementwise
from graphc_dialects._base import const_index
from graphc_dialects._mlir import ir
from graphc_dialects.elementwise import ELEMENTWISE

RULES: RuleTable = {}
_rule = registrar(RULES)
# Linear in these operands, whatever the others are.
_LINEAR = {"graphc.neg": (0,), "graphc.mul": (0, 1), "graphc.true_div": (0,)}
_ZERO_OF_ZERO = "neg mul true_div sqr sqrt abs sign maximum minimum clip switch cast".split()
_FEW = 32
# `ult`: negative indices are large.
_BELOW = 6


def _reads_updates(rw: Rewriter, op: ir.Operation) -> bool:
    return any(name in UPDATES for name in rw.operands(op)[1])


def _in_loop(op: ir.Operation) -> bool:
    return is_scan(op.operation.parent)


def _is_small(op: ir.Operation) -> bool:
    """True if a result is known to have few elements: these cost nothing, in registers."""
    shape = op.results[0].type.shape
    return min(shape, default=0) >= 0 and prod(shape) < _FEW


def _updates_of_zeros(rw: Rewriter, value: ir.Value) -> list[ir.Operation] | None:
    """Updates, one after the other, that add to zeros and make a value; None if it is made otherwise."""
    found: list[ir.Operation] = []
    while True:
        update = rw.defined_by(value, UPDATES)
        base = value if update is None else update.operands[0]
        if update is None or not (len(readers(value)) < 2 or _is_thin(update)) or base.type != value.type:
            return None
        found.insert(0, update)
        if rw.splat(base) == 0:
            # What is set in zeros is added to them, where no position occurs twice.
            return found if update.name in UPDATES_PART or accumulates(update) else None
        if not accumulates(update):
            return None
        value = base


def _is_thin(update: ir.Operation) -> bool:
    """True if an update is known to touch one position along an axis: it may as well be made twice."""
    x, y, *_ = update.operands
    sizes = zip(x.type.shape, y.type.shape, strict=False)
    return update.name in UPDATES_PART and any(size == 1 != whole for whole, size in sizes)


def _updated(
    rw: Rewriter,
    x: ir.Value,
    updates: Sequence[ir.Operation],
    changed: Callable[[ir.Operation], ir.Value],
    accumulate: bool = False,
) -> ir.Value:
    """A tensor after updates, with what `changed` gives instead of the elements that they set or add."""
    for update in updates:
        attributes = named_attributes(update)
        if accumulate:
            attributes["accumulate"] = ir.BoolAttr.get(True)
        operands = [x, changed(update), *list(update.operands)[2:]]
        x = rw.create(update.name, operands, x.type, **attributes)
    return x


# -- zeros of which some elements were updated ---------------------------------------------------------------


@_rule("graphc.add", "graphc.sub")
def sum_with_updated_zeros(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """x + zeros with some elements increased, or x minus these: x with these changed, if neither of them
    broadcasts.
    """
    subtracts = op.name == "graphc.sub"
    if not _reads_updates(rw, op) or (subtracts and _is_small(op)):
        return None
    signed = partial(negated, rw) if subtracts else lambda y: y
    for x, other in (tuple(op.operands), tuple(op.operands)[::-1])[: 1 if subtracts else 2]:
        updates = _updates_of_zeros(rw, other)
        same = x.type == op.results[0].type and all(rw.can_replace(op, each) for each in (x, other))
        if updates is not None and same and (not subtracts or kind(rw, x) in "ifc"):
            return _updated(rw, x, updates, lambda update: signed(update.operands[1]), accumulate=True)
    return None


@_rule(*_ZERO_OF_ZERO)
def function_of_updated_zeros(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """A function that is 0 of 0, of zeros with some elements updated: zeros with the function of these.

    Outside of loops, where other operands are not numbers, the elements have to be known to be few.
    """
    if not _reads_updates(rw, op) or _is_small(op):
        return None
    for position, x in enumerate(op.operands):
        updates = _updates_of_zeros(rw, x) if _is_zero_at(rw, op, position) else None
        if updates is None or list(x.type.shape) != list(op.results[0].type.shape):
            continue
        is_one = len(updates) == 1 and updates[0].name in UPDATES_PART
        are_numbers = all(is_unit(value) or value == x for value in op.operands)
        is_cheap = are_numbers or _in_loop(op) or all(map(_is_thin, updates))
        if not is_cheap or not (is_one or position in _LINEAR.get(op.name, ())):
            continue
        if not rw.can_replace(op, x):
            elementwise(SizeChecks(op.location), rw, op)
        changed = partial(_function_at, rw, op, None if is_one else position)
        return _updated(rw, rw.full_like(0, op.results[0]), updates, partial(changed, x))
    return None


@_rule("graphc.add", "graphc.sub", *_ZERO_OF_ZERO)
def function_of_reshaped_updates(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """Of zeros that were updated in another shape, as by indices along several axes: computed in that one."""
    view = next((made for x in op.operands if (made := rw.defined_by(x, RESHAPES)) is not None), None)
    updates = None if view is None else _updates_of_zeros(rw, view.operands[0])
    # Matrices with a diagonal are what `graphc-linear-systems` looks for.
    if view is None or updates is None or any(update.name in UPDATES_PART for update in updates):
        return None
    x, shape, (inner, *sizes) = view.results[0], view.operands[0].type.shape, view.operands
    alike = all(is_unit(v) or list(v.type.shape) == list(x.type.shape) for v in (*op.operands, *op.results))
    if not alike or not rw.can_replace(op, x):
        return None

    def there(number: int, v: ir.Value) -> ir.Value:
        flat = [rw.dim(inner, axis) for axis in range(len(shape))]
        return inner if v == x else reshaped(v, flat, tensor_type(shape, v.type.element_type), rw.create)

    return reshaped(_elsewhere(rw, op, there, shape), sizes, op.results[0].type, rw.create)


def _is_zero_at(rw: Rewriter, op: ir.Operation, position: int) -> bool:
    """True if a result is 0 where an operand is."""
    if position in _LINEAR.get(op.name, ()):
        return True
    numbers = [rw.splat(value) for value in op.operands]
    numbers[position] = rw.dtype(op.operands[position]).type(0)
    if any(number is None for number in numbers):
        return False
    return bool(evaluate(op, numbers, rw.dtype(op.results[0])).item() == 0)


def _function_at(
    rw: Rewriter, op: ir.Operation, position: int | None, x: ir.Value, update: ir.Operation
) -> ir.Value:
    """An operation of the elements that are updated, and of those of its other operands at their places.

    Of several updates of one place, the operand at a position is a term, and others are the whole.
    """
    base, y, *_ = update.operands

    def there(number: int, value: ir.Value) -> ir.Value:
        if value == x and position in (None, number):
            return y
        return where_updated(update, rw.cast_static(value, base.type), rw.create)

    return _elsewhere(rw, op, there, y.type.shape)


def _elsewhere(
    rw: Rewriter, op: ir.Operation, there: Callable[[int, ir.Value], ir.Value], shape: Sequence[int]
) -> ir.Value:
    """An elementwise operation of numbers, in the rank of a shape, and of elements of other operands."""
    order = [-1] * len(shape)
    operands = [
        dimshuffle(value, order, create=rw.create) if is_unit(value) else there(number, value)
        for number, value in enumerate(op.operands)
    ]
    type_ = tensor_type(shape, op.results[0].type.element_type)
    return rw.create(op.name, operands, type_, **named_attributes(op))


@_rule(*GATHERS)
def elements_of_function(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """In a loop, elements at positions of a function of an array and of numbers: the function of these
    elements, where nothing else reads the function.
    """
    source = rw.defs.get(op.operands[0])
    if source is None or not _in_loop(op) or _is_small(source) or source.name[7:] not in ELEMENTWISE:
        return None
    arrays = {value for value in source.operands if not is_unit(value)}
    names = {reader.name for reader in readers(source.results[0])}
    if len(arrays) != 1 or not all(name in TAKES_PART or name in GATHERS for name in names):
        return None
    (x,) = arrays
    if list(x.type.shape) != list(source.results[0].type.shape):
        return None
    shape = op.results[0].type.shape
    type_ = tensor_type(shape, x.type.element_type)
    taken = rw.create(op.name, [x, *list(op.operands)[1:]], type_, **named_attributes(op))
    return _elsewhere(rw, source, lambda number, value: taken, shape)


@_rule(*SUMS)
def sum_of_updated_zeros(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """Over all axes: the sum of the elements that were updated."""
    x, type_ = op.operands[0], op.results[0].type
    updates = None if type_.shape or x not in rw.defs else _updates_of_zeros(rw, x)
    total = None
    for y in (update.operands[1] for update in updates or ()):
        axes = ir.DenseI64ArrayAttr.get(list(range(len(y.type.shape))))
        term = rw.create(op.name, [y], type_, **(named_attributes(op) | {"axes": axes}))
        total = term if total is None else rw.create("graphc.add", [total, term], type_)
    return total


# -- choices -------------------------------------------------------------------------------------------------


@_rule("graphc.switch")
def choice_of_an_update(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """By one condition, an array with a part changed or as it was: the part is chosen, and not the array."""
    condition, *choices = op.operands
    if not is_unit(condition):
        return None
    for number, value in enumerate(choices):
        update = rw.defined_by(value, UPDATES_PART)
        x = None if update is None else update.operands[0]
        if x is None or x != choices[1 - number] or not is_used_once(value):
            continue
        if x.type == value.type == op.results[0].type:
            y, old = update.operands[1], where_updated(update, x, rw.create)
            new = rw.create("graphc.add", [old, y], y.type) if accumulates(update) else y
            pair = (new, old) if number == 0 else (old, new)
            part = rw.create("graphc.switch", [condition, *pair], y.type)
            return with_part(x, part, bounds_of(update, 2), rw.create)
    return None


@_rule("graphc.switch")
def choice_at_a_position(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """In a loop, `where(arange(n) == i, y, x)`, of a state or zeros: x with a part of at most one element
    replaced.
    """
    condition, *choices = op.operands
    if not _in_loop(op) or _is_small(op):
        return None
    for test, (y, x) in (("graphc.eq", choices), ("graphc.ne", choices[::-1])):
        number = rw.splat(x)
        if not (_is_state(rw, x) if number is None else number == 0):
            continue
        x = x if number is None else rw.full_like(0, op.results[0])
        positions = _positions(rw, condition, test) if x.type == op.results[0].type else None
        if not positions:
            continue
        if not rw.can_replace(op, x):
            elementwise(SizeChecks(op.location), rw, op)
        return _replaced_at(rw, x, y, positions)
    return None


@_rule("graphc.cast")
def one_at_a_position(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """In a loop, `arange(n) == i` as numbers: zeros with a part of at most one element replaced."""
    positions = _positions(rw, op.operands[0], "graphc.eq") if _in_loop(op) and not _is_small(op) else None
    if not positions:
        return None
    zeros = rw.full_like(0, op.results[0])
    return _replaced_at(rw, zeros, rw.scalar_like(1, op.results[0]), positions)


def _replaced_at(rw: Rewriter, x: ir.Value, y: ir.Value, positions: Mapping[int, ir.Value]) -> ir.Value:
    """A tensor with what lies at positions along some axes replaced, if there is such a place."""
    parts = {axis: _part_at(rw, number, rw.dim(x, axis)) for axis, number in positions.items()}
    y = slice_of(rw, y, {axis: part for axis, part in parts.items() if y.type.shape[axis] != 1})
    bounds = [
        Bound(*parts[axis][:3]) if axis in parts else Bound(rw.index(0), rw.dim(x, axis), rw.index(1))
        for axis in range(len(x.type.shape))
    ]
    type_ = part_type(x.type, parts)
    if y.type != type_:
        y = repeated(y, [bound.size for bound in bounds], type_, rw.create)
    return with_part(x, y, bounds, rw.create)


def _is_state(rw: Rewriter, value: ir.Value) -> bool:
    """True of a row that a loop reads of its states, and of what updates such a row."""
    op = rw.defs.get(value)
    while op is not None and op.name in UPDATES:
        op = rw.defs.get(op.operands[0])
    return op is not None and is_read(op)


def _positions(rw: Rewriter, condition: ir.Value, test: str) -> dict[int, ir.Value] | None:
    """Numbers with which a condition compares positions along axes; None if it does anything else."""
    op = rw.defs.get(condition)
    order = order_of(op)
    if op is None:
        return None
    if order is not None:
        inner = _positions(rw, op.operands[0], test)
        # An axis of one position may be dropped.
        return {order.index(i): n for i, n in inner.items()} if inner and {*inner} <= {*order} else None
    if op.name in ("graphc.and", "graphc.logical_and") and test == "graphc.eq":
        first, second = (_positions(rw, value, test) for value in op.operands)
        if first is None or second is None or first.keys() & second.keys():
            return None
        return {**first, **second}
    if op.name != test:
        return None
    for counted, number in (tuple(op.operands), tuple(op.operands)[::-1]):
        axis = _counted_axis(rw, counted) if is_unit(number) and kind(rw, number) == "i" else None
        if axis is not None:
            return {axis: number}
    return None


def _counted_axis(rw: Rewriter, value: ir.Value) -> int | None:
    """The axis along which a value holds the positions, if it does."""
    array = rw.constant(value)
    if isinstance(array, np.ndarray):
        axis = int(np.argmax(array.shape)) if array.ndim else 0
        is_count = array.ndim and array.size == array.shape[axis]
        return axis if is_count and np.array_equal(array.ravel(), np.arange(array.size)) else None
    view = rw.defs.get(value)
    axes = order_of(view)
    count = rw.defined_by(value if axes is None or view is None else view.operands[0], COUNTS)
    if count is None or [rw.splat(number) for number in list(count.operands)[:2]] != [0, 1]:
        return None
    return 0 if axes is None else axes.index(0) if 0 in axes else None


def _part_at(rw: Rewriter, number: ir.Value, size: ir.Value) -> Part:
    """The part of an axis at a number: empty where the axis has no such position."""
    number = dimshuffle(number, [], create=rw.create)
    element = rw.create("tensor.extract", [number], number.type.element_type)
    position = rw.create("arith.index_cast", [element], ir.IndexType.get())

    def chosen(value: ir.Value) -> ir.Value:
        return select(compare_index(_BELOW, position, size), value, const_index(0))

    return Part(rw.build(chosen, position), rw.build(lambda: chosen(const_index(1))), rw.index(1), -1)
