# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Computes only the rows that are read of what is computed row by row."""

from __future__ import annotations

import math
from collections.abc import Sequence

from graphc.ir.checks import CHECKS, SizeChecks
from graphc.ir.kinds import CHEAP
from graphc.ir.parts import LiftRule, Part, Parts, again, slice_of
from graphc.ir.rewrite import Rewriter, tensor_type
from graphc.ir.scan_view import mark_reread
from graphc.ir.traits import PARTS
from graphc.ir.views import INLINED, JOINS, RESHAPES, SAME_ELEMENTS, TAKES_PART, axis_of, bounds_of, reshaped
from graphc.ir.walk import definition, functions, named_attributes, walk
from graphc.passes import Pass
from graphc.passes.graph.insert_checks import elementwise
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
    readers = [user for user in _users(op.operands[0]) if user != op.operation]
    thin = all(user.name in TAKES_PART and 1 in user.results[0].type.shape for user in readers)
    one = 1 in op.results[0].type.shape
    return not readers or (thin and one and len(readers) < _MOST_SLICES)


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
            for user in _users(result)
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
        return built.setdefault(op, rule.build(self._rw, op, self.wanted[op], operands))


def _users(value: ir.Value) -> list[ir.Operation]:
    """The operations that read more of a value than its sizes, and are read themselves."""
    found = []
    for use in value.uses:
        user = use.owner.operation
        unread = len(user.results) and all(next(x.uses, None) is None for x in user.results)
        if user.name != "tensor.dim" and not unread:
            found.append(user)
    return found


class Gathering:
    """A rule for takes: elementwise work of which only elements at an array of indices are read.

    Takes with the same indices of tensors of one shape are lifted together, because one value may be read by
    several of them. A tensor with several axes may be seen as one row of elements, as a reshape in front of
    the takes sees it. Sizes are static, and at most half of the elements are taken.

    Args:
        op: the first take of its kind.

    Attributes:
        takes: those of the kind, with the tensors that they read.
        cone: the operations of whose results nothing else is read.
    """

    def __init__(self, op: ir.Operation) -> None:
        self._indices, self._axis = op.operands[1], axis_of(op)
        self._attributes = named_attributes(op)
        source, self._flat = _read_by(op)
        self._shape = list(source.type.shape)
        self._block = op.operation.block
        self._built: dict[ir.Value, ir.Value] = {}
        self.takes: dict[ir.Operation, ir.Value] = {}
        for user in _users(self._indices):
            if user.name != op.name or user.operands[1] != self._indices or axis_of(user) != self._axis:
                continue
            source, flat = _read_by(user)
            if user.block == self._block and flat == self._flat and list(source.type.shape) == self._shape:
                self.takes[user] = source
        self.cone = self._owned(self._collect()) if self._pays() else set()

    def _pays(self) -> bool:
        taken, elements = self._indices.type.shape, self._shape if self._flat else [self._shape[self._axis]]
        return min([*taken, *self._shape], default=1) >= 0 and 2 * math.prod(taken) <= math.prod(elements)

    def _collect(self) -> set[ir.Operation]:
        """The elementwise operations that the takes read something of."""
        found: set[ir.Operation] = set()
        pending = list(self.takes.values())
        while pending and len(found) < _MOST_OPERATIONS:
            op = definition(pending.pop())
            if op is None or op in found or op.block != self._block or rule_of(op) is not _ELEMENTWISE_RULE:
                continue
            shapes = [list(x.type.shape) for x in (*op.results, *op.operands)]
            if shapes[0] == self._shape and all(map(self._is_read_alike, shapes)):
                found.add(op)
                pending += op.operands
        return found

    def _is_read_alike(self, shape: list[int]) -> bool:
        """True if elements of an operand are found by the same indices, or it has only one for all."""
        return shape == self._shape or (math.prod(shape) == 1 if self._flat else min(shape) >= 0)

    def _owned(self, cone: set[ir.Operation]) -> set[ir.Operation]:
        """The operations of a cone whose results nothing else reads; none if it is little work."""

        def is_shared(op: ir.Operation) -> bool:
            users = _users(op.results[0])
            flat = [x for x in users if self._flat and x.name in RESHAPES]
            readers = [x for x in users if x not in flat] + [
                x for view in flat for x in _users(view.results[0])
            ]
            return any(x not in cone and x not in self.takes for x in readers)

        while shared := [op for op in cone if is_shared(op)]:
            cone.difference_update(shared)
        return cone if any(op.name not in CHEAP for op in cone) else set()

    def lift(self, rw: Rewriter, op: ir.Operation) -> ir.Value | None:
        """Work on what a take takes, None where the take stays."""
        source = self.takes.get(op)
        if source is None or definition(source) not in self.cone:
            return None
        return _reshaped(rw, self._taken(rw, source), op.results[0].type.shape)

    def _taken(self, rw: Rewriter, x: ir.Value) -> ir.Value:
        """The taken elements of a value, along one axis for indices of any shape."""
        if x not in self._built:
            self._built[x] = self._take(rw, x)
        return self._built[x]

    def _take(self, rw: Rewriter, x: ir.Value) -> ir.Value:
        number, shape = math.prod(self._indices.type.shape), list(x.type.shape)
        op, element = definition(x), x.type.element_type
        if op is not None and op in self.cone:
            shape = [number] if self._flat else [*shape[: self._axis], number, *shape[self._axis + 1 :]]
            operands = [self._taken(rw, operand) for operand in op.operands]
            return rw.create(op.name, operands, tensor_type(shape, element), **named_attributes(op))
        x, axis = (_reshaped(rw, x, [math.prod(shape)]), 0) if self._flat else (x, self._axis)
        shape = list(x.type.shape)
        if shape[axis] == 1:
            return x
        shape[axis], indices = number, _reshaped(rw, self._indices, [number])
        return rw.create("graphc.take", [x, indices], tensor_type(shape, element), **self._attributes)


def _read_by(take: ir.Operation) -> tuple[ir.Value, bool]:
    """The tensor that a take reads, behind a reshape to one axis; and whether there is that reshape."""
    x = take.operands[0]
    view = definition(x)
    if view is None or view.name not in RESHAPES or x.type.rank != 1:
        return x, False
    return view.operands[0], True


def _reshaped(rw: Rewriter, x: ir.Value, shape: Sequence[int]) -> ir.Value:
    if list(x.type.shape) == list(shape):
        return x
    return reshaped(x, list(map(rw.index, shape)), tensor_type(shape, x.type.element_type), rw.create)


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
    All sizes must be static there; in loops nothing is changed.

    It goes where nothing else reads what would be computed in full, except slices of one row (at most four,
    each with work of its own then), and sizes. So rows of a loop that only such work reads are seen to be
    read in part by scan-save-mem, which must run later. Parts of views alone stay as they are.

    Shape checks of the operations are made for all of the operands; results of products may be rounded
    differently, as those of a product with other sizes.

    Source: PyTensor's `local_subtensor_lift`, `local_subtensor_of_dot`, `local_subtensor_of_elemwise`.
    """

    stage = "graph"
    acts_on = frozenset({"graphc.take", *TAKES_PART})

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            self._gather(function)
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
