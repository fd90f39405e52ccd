# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Computes only the rows that are read of what is computed row by row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from graphc.ir.checks import CHECKS, SizeChecks
from graphc.ir.kinds import CHEAP, SUMS, reduced_axes
from graphc.ir.parts import LiftRule, Part, Parts, again, slice_of
from graphc.ir.rewrite import Rewriter, is_tensor, tensor_type
from graphc.ir.scan_view import mark_reread
from graphc.ir.traits import PARTS
from graphc.ir.views import (
    INLINED,
    JOINS,
    RESHAPES,
    SAME_ELEMENTS,
    TAKES_PART,
    UPDATES,
    UPDATES_PART,
    accumulates,
    axis_of,
    bounds_of,
    counted,
    repeated,
    reshaped,
)
from graphc.ir.walk import definition, functions, named_attributes, readers, seen_through, walk
from graphc.passes import Pass
from graphc.passes.graph.insert_checks import elementwise
from graphc_dialects._base import constant_value
from graphc_dialects._mlir import ir
from graphc_dialects.elementwise import ELEMENTWISE


def rule_of(op: ir.Operation) -> LiftRule | None:
    """The rule of an operation, None if it has none."""
    name = op.name
    if name.startswith("graphc.") and name[7:] in ELEMENTWISE and len(op.results) == 1:
        return _ELEMENTWISE_RULE
    return PARTS.get(name)


def check_of(rw: Rewriter, op: ir.Operation) -> None:
    """Checks the sizes that an operation relies on: for a part of it, fewer would be checked."""
    rule = rule_of(op)
    check = elementwise if rule is _ELEMENTWISE_RULE else CHECKS.get(op.name)
    if rule is not None and rule.relies and check is not None:
        check(SizeChecks(op.location), rw, op)


def _of_elementwise(rw: Rewriter, op: ir.Operation, parts: Parts) -> list[Parts] | None:
    shapes = [list(x.type.shape) for x in op.operands]
    if any(all(shape[axis] == 1 for shape in shapes) for axis in parts):
        return None
    return [{axis: part for axis, part in parts.items() if shape[axis] != 1} for shape in shapes]


_ELEMENTWISE_RULE = LiftRule(_of_elementwise, again, relies=True)


_MOST_OPERATIONS = 200
_MOST_SCATTERED = 4
_DEEPEST = 12
# Of each operand, in linear functions of matrices of one shape.
_SIGNS = {"graphc.neg": (-1,), "graphc.add": (1, 1), "graphc.sub": (1, -1)}
_MOST_SLICES = 4


class Lifting:
    """A rule for slices.

    Attributes:
        lifted: number of slices that were lifted.
        operations: number of operations they were lifted through.
    """

    def __init__(self) -> None:
        self.lifted = self.operations = 0

    def lift(self, rw: Rewriter, op: ir.Operation) -> ir.Value | None:
        """The slice of a result as the result of slices, None where it stays."""
        source = rw.defs.get(op.operands[0])
        if source is None or rule_of(source) is None:
            return None
        parts = parts_of(rw, op)
        if not is_only_reader(op):
            return None
        # Along one axis a slice may go further than along all of them.
        choices = [parts, *({axis: part} for axis, part in parts.items() if len(parts) > 1)]
        cone = max((_Cone(rw, op, choice) for choice in choices), key=_Cone.size)
        if not cone.pays:
            return None
        value = cone.build()
        self.lifted += 1
        self.operations += len(cone.wanted)
        return slice_of(rw, value, {axis: part for axis, part in parts.items() if axis not in cone.lifted})


def is_only_reader(op: ir.Operation) -> bool:
    """True if a slice is all that reads its operand, or one of few slices of one row."""
    others = [user for user in readers(op.operands[0]) if user != op.operation]
    thin = all(user.name in TAKES_PART and 1 in user.results[0].type.shape for user in others)
    one = 1 in op.results[0].type.shape
    return not others or (thin and one and len(others) < _MOST_SLICES)


def parts_of(rw: Rewriter, op: ir.Operation) -> Parts:
    """Parts that a slice takes along the axes that it does not leave as they are."""
    shape = op.results[0].type.shape
    found: Parts = {}
    for axis, (bound, have) in enumerate(zip(bounds_of(op), rw.dims.shape(op.operands[0]), strict=True)):
        part = Part(*bound, shape[axis])
        whole = rw.dims.same(rw.dims.size(part.size), have)
        if not (whole and rw.constant(part.offset) == 0 and rw.constant(part.stride) == 1):
            found[axis] = part
    return found


class _Cone:
    """The operations that a value is computed from, of whose results only parts are read.

    Args:
        rw: the rewriter. op: the slice. parts: what it takes.

    Attributes:
        wanted: the parts of the results of these operations.
        lifted: the axes of the slice that are taken care of.
    """

    def __init__(self, rw: Rewriter, op: ir.Operation, parts: Parts) -> None:
        self._rw = rw
        self._block = op.operation.block
        self._value = op.operands[0]
        self.wanted: dict[ir.Operation, Parts] = {}
        self._operands: dict[ir.Operation, list[Parts]] = {}
        self.lifted = self._first_axes(parts)
        self._collect({axis: parts[axis] for axis in self.lifted})
        while self._remove_shared():
            pass

    def size(self) -> int:
        """Number of operations."""
        return len(self.wanted)

    @property
    def pays(self) -> bool:
        """True if there is work, and not only views."""
        return any(
            op.name not in SAME_ELEMENTS and op.name not in INLINED and op.name not in JOINS
            for op in self.wanted
        )

    def _first_axes(self, parts: Parts) -> list[int]:
        """The axes of the slice along which its operand can be computed in part."""
        op = self._rw.defs[self._value]
        rule = rule_of(op)
        return [axis for axis in parts if rule and rule.operands(self._rw, op, {axis: parts[axis]})]

    def _collect(self, parts: Parts) -> None:
        """Adds everything that parts of would do, but for what else reads it."""
        pending = [(self._value, parts)]
        conflicts: set[ir.Operation] = set()
        while pending:
            value, parts = pending.pop()
            op = self._rw.defs.get(value)
            if op is None or not parts or op.block != self._block:
                continue
            if op in self.wanted:
                if self.wanted[op] != parts:
                    conflicts.add(op)
                continue
            rule = rule_of(op)
            operands = rule.operands(self._rw, op, parts) if rule else None
            if operands is None or len(self.wanted) == _MOST_OPERATIONS:
                continue
            self.wanted[op], self._operands[op] = parts, operands
            pending += zip(op.operands, operands, strict=False)
        for op in conflicts:
            del self.wanted[op]

    def _remove_shared(self) -> bool:
        """Removes operations whose results something else reads; whether there were any."""
        shared = [op for op in self.wanted if op.results[0] != self._value and not self._is_owned(op)]
        for op in shared:
            del self.wanted[op]
        return bool(shared)

    def _is_owned(self, op: ir.Operation) -> bool:
        """True if all that reads a result is in the cone, and wants the same part."""
        result, parts = op.results[0], self.wanted[op]
        return all(
            user in self.wanted
            and all(
                self._operands[user][position] == parts
                for position, x in enumerate(user.operands)
                if x == result
            )
            for user in readers(result)
        )

    def build(self) -> ir.Value:
        """The part of the slice's operand, after the checks of what is computed in part."""
        for op in reversed(self.wanted):
            check_of(self._rw, op)
        return self._rebuilt(self._rw.defs[self._value], {})

    def _rebuilt(self, op: ir.Operation, built: dict[ir.Operation, ir.Value]) -> ir.Value:
        operands = list(op.operands)
        for position, parts in enumerate(self._operands[op]):
            x = operands[position]
            source = self._rw.defs.get(x)
            if source in self.wanted and parts:
                operands[position] = built[source] if source in built else self._rebuilt(source, built)
            else:
                mark_reread(x)
                operands[position] = slice_of(self._rw, x, parts)
        rule = rule_of(op)
        assert rule is not None
        built[op] = rule.build(self._rw, op, self.wanted[op], operands)
        return built[op]


class Gathering:
    """A rule for takes: elementwise work of which only elements at an array of indices are read.

    Takes with the same indices of tensors of one shape are lifted together, because one value may be read by
    several of them. A tensor with several axes may be seen as one row of elements, as a reshape in front of
    the takes sees it. Sizes are static, and at most half of the elements are taken.

    Where each index is known to lie in a row of its own, the element of a slice of columns is one of a column
    further on, and that of joined columns, or of some that were set, one of one of them.

    Args:
        op: the first take of its kind.

    Attributes:
        takes: those of the kind, with the tensors that they read.
        cone: the operations of whose results nothing else is read, with the distances of the columns that
            are read of them to those that the takes read.
    """

    def __init__(self, op: ir.Operation) -> None:
        self._indices, self._axis = op.operands[1], axis_of(op)
        self._attributes = named_attributes(op)
        source, self._flat = _read_by(op)
        self._shape = list(source.type.shape)
        self._columns = _columns_of(op) if self._flat and self._shape[1:] == [_columns_of(op)] else 0
        self._block = op.operation.block
        self._built: dict[Any, ir.Value] = {}
        self.takes: dict[ir.Operation, ir.Value] = {}
        for user in readers(self._indices):
            if user.name != op.name or user.operands[1] != self._indices or axis_of(user) != self._axis:
                continue
            source, flat = _read_by(user)
            if user.block == self._block and flat == self._flat and list(source.type.shape) == self._shape:
                self.takes[user] = source
        self.cone: dict[ir.Operation, set[int]] = {}
        if self._pays():
            self._collect()
            self._remove_shared()

    def _pays(self) -> bool:
        taken, elements = self._indices.type.shape, self._shape if self._flat else [self._shape[self._axis]]
        return min([*taken, *self._shape], default=1) >= 0 and 2 * math.prod(taken) <= math.prod(elements)

    # -- what is read ----------------------------------------------------------------------------------------

    def _collect(self) -> None:
        pending = [(x, 0) for x in self.takes.values()]
        while pending and len(self.cone) < _MOST_OPERATIONS:
            value, shift = pending.pop()
            op = definition(value)
            parts = None if op is None or op.block != self._block else self._parts(op)
            if op is not None and parts is not None and shift not in self.cone.get(op, ()):
                self.cone.setdefault(op, set()).add(shift)
                pending += [(x, shift + further) for x, further in parts]

    def _parts(self, op: ir.Operation) -> list[tuple[ir.Value, int]] | None:
        """Operands whose same elements, or columns further on, are read for a result; None if unknown."""
        result, *shapes = [list(x.type.shape) for x in (*op.results, *op.operands) if is_tensor(x)]
        is_matrix = self._columns and result[:1] == self._shape[:1] and len(result) == 2 and result[1] > 1
        if not is_matrix and (self._columns or result != self._shape):
            return None
        if rule_of(op) is _ELEMENTWISE_RULE:
            alike = all(self._is_read_alike(shape, result) for shape in shapes)
            return [(x, 0) for x in op.operands if list(x.type.shape) == result] if alike else None
        if not is_matrix:
            return None
        operands = [seen_through(x, ("tensor.cast",)) for x in op.operands if is_tensor(x)]
        if op.name in JOINS and axis_of(op) == 1:
            sizes = [x.type.shape[1] for x in operands]
            return [(x, -sum(sizes[:i])) for i, x in enumerate(operands)] if min(sizes) > 0 else None
        if op.name not in TAKES_PART and not (op.name in UPDATES_PART and not accumulates(op)):
            return None
        place = _columns_from(op, len(operands))
        if place is None or place[1] != 1:
            return None
        further = (place[0],) if op.name in TAKES_PART else (0, -place[0])
        return list(zip(operands, further, strict=True))

    def _is_read_alike(self, shape: list[int], result: list[int]) -> bool:
        """True if elements of an operand are found by the same indices, or it has only one for all."""
        if self._columns:
            return all(size in (1, whole) for size, whole in zip(shape, result, strict=True))
        return shape == self._shape or (math.prod(shape) == 1 if self._flat else min(shape) >= 0)

    def _remove_shared(self) -> None:
        """Leaves operations whose results nothing else reads; none if it is little work."""

        def is_shared(op: ir.Operation) -> bool:
            if self._columns and op.name in CHEAP and not self._parts(op):
                return False  # of a row and a column: as soon computed as read
            pending, users = [op.results[0]], []
            while pending:
                for user in readers(pending.pop()):
                    if self._flat and (user.name == "tensor.cast" or user.name in RESHAPES):
                        pending.append(user.results[0])
                    else:
                        users.append(user)
            return any(user not in self.cone and user not in self.takes for user in users)

        while removed := [
            op for op, shifts in self.cone.items() if is_shared(op) or self._is_all(op, shifts)
        ]:
            for op in removed:
                del self.cone[op]
        if all(op.name in CHEAP for op in self.cone):
            self.cone = {}

    def _is_all(self, op: ir.Operation, shifts: set[int]) -> bool:
        """True if as many elements of a result are read as it has."""
        return self._columns > 0 and len(shifts) >= op.results[0].type.shape[1]

    # -- what is computed ------------------------------------------------------------------------------------

    def lift(self, rw: Rewriter, op: ir.Operation) -> ir.Value | None:
        """Work on what a take takes, None where the take stays."""
        source, shape = self.takes.get(op), op.results[0].type.shape
        if source is None or definition(source) not in self.cone:
            return None
        found = self._taken(rw, source, 0)
        if math.prod(found.type.shape) != math.prod(shape):
            return repeated(found, [rw.index(n) for n in shape], op.results[0].type, rw.create)
        return _reshaped_to(rw, found, shape)

    def _taken(self, rw: Rewriter, x: ir.Value, shift: int) -> ir.Value:
        """The taken elements of a value, along one axis for indices of any shape; in the columns so much
        further on, and any where there is none.
        """
        if (x, shift) not in self._built:
            op = definition(x)
            inside = op is not None and op in self.cone
            self._built[x, shift] = self._computed(rw, op, shift) if inside else self._read(rw, x, shift)
        return self._built[x, shift]

    def _computed(self, rw: Rewriter, op: Any, shift: int) -> ir.Value:
        number, element = math.prod(self._indices.type.shape), op.results[0].type.element_type
        parts = [(x, shift + further) for x, further in self._parts(op) or ()]
        if rule_of(op) is _ELEMENTWISE_RULE:
            operands = [self._taken(rw, x, shift) for x in op.operands]
            sizes = zip(*(x.type.shape for x in operands), strict=True)
            kind = tensor_type([0 if 0 in each else max(each) for each in sizes], element)
            return rw.create(op.name, operands, kind, **named_attributes(op))
        found = self._taken(rw, *parts[0])
        for x, begin in parts[1:]:
            inside = _compared(rw, "ge", self._column(rw, 0), -begin)
            if op.name not in JOINS:
                below = _compared(rw, "lt", self._column(rw, 0), x.type.shape[1] - begin)
                inside = rw.create("graphc.and", [inside, below], inside.type)
            values = [inside, self._taken(rw, x, begin), found]
            found = rw.create("graphc.switch", values, tensor_type([number], element))
        return found

    def _column(self, rw: Rewriter, shift: int) -> ir.Value:
        if shift not in self._built:
            self._built[shift] = _column(rw, self._indices, self._columns, shift)
        return self._built[shift]

    def _read(self, rw: Rewriter, x: ir.Value, shift: int) -> ir.Value:
        splat, shape, number = rw.splat(x), list(x.type.shape), math.prod(self._indices.type.shape)
        attributes = self._attributes
        if self._columns and splat is not None:
            return rw.literal(splat, tensor_type([1], x.type.element_type))
        x, axis = _reshaped_to(rw, x, [math.prod(shape)]) if self._flat else x, self._axis
        if self._columns and shape[1] > 1:
            indices = self._column(rw, shift)
            if shift < 0 or shift + self._columns > shape[1]:
                indices = _clipped(rw, indices, shape[1])
            attributes = _without_rows(attributes)
            if shape[0] == self._shape[0]:
                indices = rw.create("graphc.add", [indices, _steps(rw, indices, 0, shape[1])], indices.type)
                attributes["columns"] = ir.IntegerAttr.get(attributes["axis"].type, shape[1])
        elif self._columns or x.type.shape[axis] == 1:
            return x
        else:
            indices = _reshaped_to(rw, self._indices, [number])
        shape = list(x.type.shape)
        shape[axis] = number
        return rw.create("graphc.take", [x, indices], tensor_type(shape, x.type.element_type), **attributes)


def _read_by(take: ir.Operation) -> tuple[ir.Value, bool]:
    """The tensor that a take reads, behind a reshape to one axis; and whether there is that reshape."""
    x = take.operands[0]
    view = definition(x)
    if view is None or view.name not in RESHAPES or x.type.rank != 1:
        return x, False
    return view.operands[0], True


# -- sums of what has one element in each row ----------------------------------------------------------------


class _Scattered(NamedTuple):
    """Elements that were put into zeros, one in each row, as a matrix made of these zeros has them.

    Column j of the matrix is column ``first + step * j`` of the zeros, if that is from low to below high.
    """

    put: ir.Operation
    sign: int
    first: int
    step: int
    low: int
    high: int


def _sum_of_scattered(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """Sums of rows are the elements, those of columns are put into one row: a slope of `p[arange(n), y]`."""
    x, axes = op.operands[0], reduced_axes(op)
    if x.type.rank != 2 or len(axes) != 1 or not x.type.has_static_shape or op.results[0].type.rank != 1:
        return None
    if not isinstance(x.type.element_type, ir.F64Type):
        return None
    found = _scattered(rw, x)
    if not found:
        return None
    total, kind = None, op.results[0].type
    for each in found:
        rows, columns = x.type.shape[0], _columns_of(each.put)
        _, y, indices = each.put.operands
        at = _column(rw, indices, columns, -each.first)
        value, inside = _reshaped_to(rw, y, [rows]), []
        if each.low > 0:
            inside.append(_compared(rw, "ge", at, each.low - each.first))
        if each.high < columns:
            inside.append(_compared(rw, "lt", at, each.high - each.first))
        for condition in inside:
            zero = rw.scalar_like(0, value)
            value = rw.create("graphc.switch", [condition, value, zero], value.type)
        if each.sign < 0:
            value = rw.create("graphc.neg", [value], value.type)
        if axes[0]:
            total = value if total is None else rw.create("graphc.add", [total, value], value.type)
            continue
        at = at if each.step > 0 else rw.create("graphc.neg", [at], at.type)
        at = _clipped(rw, at, x.type.shape[1])
        before = rw.literal(0, kind) if total is None else total
        total = rw.create(
            each.put.name, [before, value, at], kind, **_without_rows(named_attributes(each.put))
        )
    return total


def _scattered(rw: Rewriter, x: ir.Value, depth: int = 0) -> list[_Scattered] | None:
    """All that a matrix has but zeros, None if that is not known."""
    x = seen_through(x, ("tensor.cast",))
    op = rw.defs.get(x)
    if rw.splat(x) == 0:
        return []
    if op is None or depth == _DEEPEST:
        return None
    tensors = [operand for operand in op.operands if is_tensor(operand)]
    if op.name in RESHAPES:
        put = rw.defined_by(tensors[0], UPDATES)
        if put is None or not accumulates(put) or rw.splat(put.operands[0]) != 0:
            return None
        columns = _columns_of(put)
        return [_Scattered(put, 1, 0, 1, 0, columns)] if columns and columns == x.type.shape[-1] else None
    linear = op.name in _SIGNS and all(operand.type == x.type for operand in tensors)
    if not linear and op.name not in TAKES_PART and not (op.name in UPDATES_PART and accumulates(op)):
        return None
    place = (0, 1) if linear else _columns_from(op, len(tensors))
    found: list[_Scattered] = []
    for position, operand in enumerate(tensors):
        part = None if place is None else _scattered(rw, operand, depth + 1)
        if part is None or place is None:
            return None
        if op.name in TAKES_PART:
            part = [_part(each, *place, x.type.shape[1]) for each in part]
        elif position and not linear:
            part = [each._replace(first=each.first - each.step * place[0]) for each in part]
        sign = _SIGNS[op.name][position] if linear else 1
        found += [each._replace(sign=each.sign * sign) for each in part]
    one_way = op.name in TAKES_PART or place is None or place[1] == 1
    return found if one_way and len(found) <= _MOST_SCATTERED else None


def _part(each: _Scattered, offset: int, step: int, size: int) -> _Scattered:
    """Those in a slice of columns."""
    first, step = each.first + each.step * offset, each.step * step
    low, high = sorted((first, first + step * (size - 1)))
    return each._replace(first=first, step=step, low=max(each.low, low), high=min(each.high, high + 1))


def _columns_of(op: ir.Operation) -> int:
    """The number of elements of each row of which one is taken; 0 if that is not known."""
    x, *_, indices = op.operands
    known = op.attributes
    if "columns" not in known or x.type.rank != 1 or min([*x.type.shape, *indices.type.shape], default=0) < 1:
        return 0
    columns = int(known["columns"].value)
    return columns if x.type.shape[0] == math.prod(indices.type.shape) * columns else 0


def _without_rows(known: dict[str, ir.Attribute]) -> dict[str, ir.Attribute]:
    """Attributes of indices that are in range."""
    return {name: value for name, value in known.items() if name != "columns"}


def _reshaped_to(rw: Rewriter, x: ir.Value, shape: Sequence[int]) -> ir.Value:
    """The elements of a tensor in another static shape."""
    if list(x.type.shape) == list(shape):
        return x
    return reshaped(x, list(map(rw.index, shape)), tensor_type(shape, x.type.element_type), rw.create)


def _columns_from(op: ir.Operation, tensors: int) -> tuple[int, int] | None:
    """The first column of a part of all rows, and the direction in which it goes."""
    rows, columns = ([constant_value(x) for x in bound] for bound in bounds_of(op, tensors))
    offset, size, step = columns
    if rows != [0, op.operands[0].type.shape[0], 1] or offset is None or not size or step not in (1, -1):
        return None
    return offset, step


def _column(rw: Rewriter, indices: ir.Value, columns: int, shift: int) -> ir.Value:
    """The columns of indices that lie in rows of their own, so much further on."""
    at = _reshaped_to(rw, indices, [math.prod(indices.type.shape)])
    return rw.create("graphc.add", [at, _steps(rw, at, shift, -columns)], at.type)


def _steps(rw: Rewriter, like: ir.Value, start: int, step: int) -> ir.Value:
    first, each = (rw.literal(number, tensor_type([], like.type.element_type)) for number in (start, step))
    return counted(first, each, rw.index(like.type.shape[0]), like.type, rw.create)


def _compared(rw: Rewriter, name: str, at: ir.Value, end: int) -> ir.Value:
    kind = tensor_type(at.type.shape, ir.IntegerType.get_signless(1))
    return rw.create(f"graphc.{name}", [at, rw.scalar_like(end, at)], kind)


def _clipped(rw: Rewriter, at: ir.Value, columns: int) -> ir.Value:
    for name, end in (("maximum", 0), ("minimum", columns - 1)):
        at = rw.create(f"graphc.{name}", [at, rw.scalar_like(end, at)], at.type)
    return at


class LiftSlices(Pass):
    """Takes slices before work instead of after it: `f(x)[-1]` becomes `f(x[-1:])[0]`.

    A slice goes up through operations whose result along the sliced axes needs the same part of their
    operands alone, together with all they are computed from in that way:

    * elementwise operations, casts, moved axes, broadcasts, slices, and joins along other axes;
    * reductions, `softmax` and `log_softmax` over other axes;
    * products: batches and rows from the left operand, batches and columns from the right one;
    * reshapes that join the first two axes, or divide the first one, such as work that left a loop has around
      its products.

    Takes at an array of indices go before elementwise work of which nothing else is read, where they take at
    most half of the elements: `log(p)[arange(n), y]` is n logarithms, with `p` seen as one row of elements.
    All sizes must be static there; in loops nothing is changed. Where constant indices are known to lie in
    rows of their own (the attribute `columns` says of how many elements), the element of a slice of columns,
    of joined columns or of an array with columns that were set is one element of what these are made of, and
    so on; the sums along rows and columns of what was put into zeros need no zeros then.

    It goes where nothing else reads what would be computed in full, except slices of one row (at most four,
    each with work of its own then), and sizes. So rows of a loop that only such work reads are seen to be
    read in part by scan-save-mem, which must run later. Parts of views alone stay as they are.

    Shape checks of the operations are made for all of the operands; results of products may be rounded
    differently, as those of a product with other sizes.

    Source: PyTensor's `local_subtensor_lift`, `local_subtensor_of_dot`, `local_subtensor_of_elemwise`.
    """

    stage = "graph"
    acts_on = frozenset({"graphc.take", *UPDATES, *TAKES_PART})

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            self._gather(function)
            sums = Rewriter(function, {name: [_sum_of_scattered] for name in SUMS})
            sums.run()
            self.count("sums of what was put into rows", sum(sums.counts.values()))
            for _ in range(_ROUNDS):
                lifting = Lifting()
                Rewriter(function, {name: [lifting.lift] for name in TAKES_PART}).run()
                if not lifting.lifted:
                    break
                self.count("slices lifted", lifting.lifted)
                self.count("operations after slices", lifting.operations)

    def _gather(self, function: ir.Operation) -> None:
        kinds: dict[ir.Operation, Gathering] = {}
        for op in walk(function):
            # What is the same in each step of a loop is hoisted instead.
            if op.name == "graphc.take" and op.operation.parent == function and op.operation not in kinds:
                kind = Gathering(op)
                kinds.update(dict.fromkeys(kind.takes, kind))
        if not any(kind.cone for kind in kinds.values()):
            return

        def lift_take(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
            return kinds[op.operation].lift(rw, op) if op.operation in kinds else None

        rewriter = Rewriter(function, {"graphc.take": [lift_take]})
        rewriter.run()
        self.count("takes lifted", sum(rewriter.counts.values()))


# What one slice leaves unused is gone in the next round, so that others may follow.
_ROUNDS = 4
