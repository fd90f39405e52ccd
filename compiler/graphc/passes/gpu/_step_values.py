# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values in a loop of the host as arithmetic on the number of the step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from graphc.ir import build
from graphc.ir.copies import copy_with
from graphc.ir.lifetimes import VIEWS
from graphc.ir.value import larger, parts_of
from graphc.ir.walk import walk
from graphc.passes.gpu._loops import is_poll
from graphc_dialects._mlir import ir

# What can be computed in a kernel as well as on the host.
_VIEWS = VIEWS | {"memref.dim", "memref.extract_strided_metadata"}
_OTHERS = frozenset(("gpu.launch_func", "scf.if", "scf.for", "scf.while", "scf.yield", "scf.condition"))
Known = Callable[[ir.Value], ir.Value]


def is_pure(op: ir.Operation) -> bool:
    """True if an operation gives a number or a view that depends on nothing but its operands."""
    return op.name in _VIEWS or op.name.startswith("arith.")


class StepValues:
    """The body of an `scf.for` whose steps are launches.

    Args:
        op: the loop.
        polls: functions that ask whether the user wants to stop.
    """

    def __init__(self, op: ir.Operation, polls: frozenset[str]) -> None:
        self.op = op
        self.lower, self.upper, self.step, *self.initial = op.operands
        block = op.regions[0].blocks[0]
        self.index, *self.carried = block.arguments
        *_, end = block.operations
        self.yields: Sequence[ir.Value] = list(end.operation.operands)
        self._varying: set[ir.Value] = {self.index, *self.carried}
        self.inside = [inner for inner in walk(op) if not is_poll(inner, polls)]
        for inner in self.inside:
            if any(operand in self._varying for operand in inner.operands):
                self._varying.update(inner.results)

    def varies(self, value: ir.Value) -> bool:
        """True if a value depends on the step."""
        return value in self._varying

    def count(self) -> ir.Value:
        """Number of steps, at the insertion point."""
        return larger(parts_of(self.upper - self.lower, self.step), 0)

    def are_computable(self) -> bool:
        """True if launches are all that happens in a step, and what varies are arguments of launches alone,
        which kernels can compute.
        """
        names = {inner.name for inner in self.inside}
        if "gpu.launch_func" not in names or "memref.alloc" in names:
            return False
        end = self.inside[-1]
        for inner in self.inside:
            if not is_pure(inner) and inner.name not in _OTHERS:
                return False
            varying = [k for k, operand in enumerate(inner.operands) if self.varies(operand)]
            if not varying or is_pure(inner) or inner == end:
                continue
            # Sizes of grids and blocks are the first operands.
            if inner.name != "gpu.launch_func" or varying[0] < 6:
                return False
        return all(self._is_computable(k) for k in range(len(self.carried)))

    def _is_computable(self, k: int) -> bool:
        kind, after = self.carried[k].type, self.yields[k]
        if after in self.carried:
            return isinstance(kind, ir.MemRefType) or after == self.carried[k]
        return isinstance(kind, ir.MemRefType) and self._needs_index_only(after)

    def _needs_index_only(self, value: ir.Value) -> bool:
        if not self.varies(value) or value == self.index:
            # What a step allocates is not the same for the next one.
            return isinstance(value.owner, ir.Block) or value.owner.operation not in self.inside
        if isinstance(value.owner, ir.Block):
            return False
        return all(self.varies(x) is False or self._needs_index_only(x) for x in value.owner.operands)

    def fix_sizes(self) -> None:
        """Sizes of views become what the views were made with, and those of carried arrays the sizes of the
        initial ones: states keep theirs, which is checked before loops.
        """
        for inner in self.inside:
            if inner.name == "memref.dim" and self.varies(inner.operands[0]):
                axis = build.constant_value(inner.operands[1])
                assert axis is not None, "axes are constants"
                size = self._size(inner, inner.operands[0], axis)
                if size is not None:
                    inner.results[0].replace_all_uses_with(size)

    def _size(self, where: ir.Operation, array: ir.Value, axis: int) -> ir.Value | None:
        if array in self.carried:
            with ir.InsertionPoint(self.op), self.op.location:
                return build.dim(self.initial[self.carried.index(array)], axis)
        owner = array.owner
        if isinstance(owner, ir.Block):
            return None
        if owner.name == "memref.cast":
            return self._size(where, owner.operands[0], axis)
        if owner.name != "memref.reinterpret_cast":
            return None
        sizes = list(ir.DenseI64ArrayAttr(owner.attributes["static_sizes"]))
        if sizes[axis] != build.DYNAMIC:
            with ir.InsertionPoint(where), where.location:
                return build.const_index(sizes[axis])
        offsets = list(ir.DenseI64ArrayAttr(owner.attributes["static_offsets"]))
        place = offsets.count(build.DYNAMIC) + sizes[:axis].count(build.DYNAMIC)
        return owner.operands[1 + place]

    def copy(
        self, value: ir.Value, number: ir.Value, known: Known, copies: dict[ir.Value, ir.Value]
    ) -> ir.Value:
        """A value of the step with a number, at the insertion point.

        Args:
            value: in the body.
            number: of the step, from 0 on.
            known: gives what stands there for a value that does not vary.
            copies: of the same step.
        """
        if value in copies:
            return copies[value]
        if not self.varies(value):
            found = known(value)
        elif value == self.index:
            found = known(self.lower) + number * known(self.step)
        elif value in self.carried:
            found = self.carried_at(self.carried.index(value), number, known)
        else:
            owner = value.owner.operation
            for operand in owner.operands:
                self.copy(operand, number, known, copies)
            copy_with(owner, copies)
            return copies[value]
        copies[value] = found
        return found

    def carried_at(self, k: int, number: ir.Value, known: Known) -> ir.Value:
        """Values carried into the step with a number: initial arrays in turn, or the results of a
        step before.
        """
        way = [k]
        while (after := self.yields[way[-1]]) in self.carried and self.carried.index(after) not in way:
            way.append(self.carried.index(after))
        count = build.const_index(len(way))
        if after in self.carried:
            at = self._place(number, way.index(self.carried.index(after)), len(way))
            found = known(self.initial[way.pop()])
        else:
            # Before there was such a step, its number is of no account.
            at, found = number, self.copy(after, larger(number - count, 0), known, {})
        for place in reversed(range(len(way))):
            here = at.equals(place)
            found = build.select(here, known(self.initial[way[place]]), found)
        return found

    @staticmethod
    def _place(number: ir.Value, first: int, count: int) -> ir.Value:
        """A place among `count`, of which those from `first` on come in turn."""
        period = build.const_index(count - first)
        turn = build.index_op("remsi", number - first, period)
        if not first:
            return turn
        return build.select(number < first, number, turn + first)


def leaves(values: StepValues, arguments: Sequence[ir.Value]) -> Mapping[ir.Value, None]:
    """The values that do not vary, from which those that do are computed, in order; constants apart."""
    found: dict[ir.Value, None] = {}
    seen: set[ir.Value] = set()
    open_ = list(reversed(arguments))
    while open_:
        value = open_.pop()
        if value in seen:
            continue
        seen.add(value)
        if not values.varies(value):
            if build.constant_value(value) is None:
                found[value] = None
        elif value == values.index:
            open_ += [values.step, values.lower]
        elif value in values.carried:
            k = values.carried.index(value)
            open_ += [values.yields[k], values.initial[k]]
        else:
            open_ += reversed(list(value.owner.operands))
    return found
