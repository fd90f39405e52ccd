# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds what can be computed after a slice, and computes it there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.ir.parts import Part, Parts, slice_of
from graphc.ir.rewrite import Rewriter
from graphc.ir.scan_view import mark_reread
from graphc.ir.views import INLINED, JOINS, SAME_ELEMENTS, TAKES_PART, bounds_of
from graphc.passes.graph.joins._lift_rules import check_of, rule_of

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir

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
    """Whether a slice is all that reads its operand, or one of few slices of one row."""
    readers = [user for user in _users(op.operands[0]) if user != op.operation]
    thin = all(user.name in TAKES_PART and 1 in user.results[0].type.shape for user in readers)
    one = 1 in op.results[0].type.shape
    return not readers or (thin and one and len(readers) < _MOST_SLICES)


def parts_of(rw: Rewriter, op: ir.Operation) -> Parts:
    """What a slice takes along the axes that it does not leave as they are."""
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
        """How many operations there are."""
        return len(self.wanted)

    @property
    def pays(self) -> bool:
        """Whether there is work, and not only views."""
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
        """Whether all that reads a result is in the cone, and wants the same part."""
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
        built: dict[ir.Operation, ir.Value] = {}
        order = self._order()
        for op in order:
            check_of(self._rw, op)
        for op in order:
            built[op] = self._rebuild(op, built)
        return built[self._rw.defs[self._value]]

    def _order(self) -> list[ir.Operation]:
        """The operations, operands first."""
        found: dict[ir.Operation, None] = {}
        pending = [(self._rw.defs[self._value], False)]
        while pending:
            op, ready = pending.pop()
            if ready:
                found[op] = None
            elif op not in found:
                pending.append((op, True))
                pending += [(self._rw.defs[x], False) for x in op.operands if self._is_inside(x)]
        return list(found)

    def _is_inside(self, value: ir.Value) -> bool:
        return self._rw.defs.get(value) in self.wanted

    def _rebuild(self, op: ir.Operation, built: dict[ir.Operation, ir.Value]) -> ir.Value:
        operands = list(op.operands)
        for position, parts in enumerate(self._operands[op]):
            x = operands[position]
            if self._is_inside(x) and parts:
                operands[position] = built[self._rw.defs[x]]
            else:
                mark_reread(x)
                operands[position] = slice_of(self._rw, x, parts)
        rule = rule_of(op)
        assert rule is not None
        return rule.build(self._rw, op, self.wanted[op], operands)


def _users(value: ir.Value) -> list[ir.Operation]:
    """The operations that read more of a value than its sizes, and are read themselves."""
    found = []
    for use in value.uses:
        user = use.owner.operation
        unread = len(user.results) and all(next(x.uses, None) is None for x in user.results)
        if user.name != "tensor.dim" and not unread:
            found.append(user)
    return found
