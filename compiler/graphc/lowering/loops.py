# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Turns one bufferised `linalg.generic` into an `scf.for` nest.

Order and shape of the nest:

* dimensions of static size 1 need no loop;
* neighbouring dimensions of one kind collapse into one loop when every operand walks them contiguously, so
  that an elementwise operation on contiguous arrays is one flat loop, whatever the rank;
* loops keep the order of the dimensions, that of memory for row-major arrays, but for short ones (see
  graphc.lowering.loops); accumulators of the trailing reduction loops live in registers, those of outer
  reductions in the result buffer (a column sum adds whole rows);
* every load sits in the outermost loop that knows its indices;
* a long reduction to one element is computed in parts, and a column sum in blocks of columns (see
  graphc.lowering.partial_reductions);
* a float sum in registers is accumulated in blocks of 4096 elements whose partial sums are then added: the
  error grows with n / 4096 instead of n, and inside a block LLVM may reassociate, hence vectorise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from graphc.errors import CompileError
from graphc.ir import build
from graphc.ir.value import literal, smaller
from graphc.ir.walk import is_used
from graphc.lowering import partial_reductions
from graphc.lowering.carried import bit_in, bit_of_byte, byte_of_bit, carry, loop, span
from graphc.lowering.memory.layouts import collapse, is_row_major
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# A loop of fewer iterations than a register has lanes stays scalar, or fills a part of one; LLVM's vectoriser
# looks at no outer loop. LLVM unrolls it and vectorises the loop around it, but not with a long body, nor if
# several results are stored beside a sum.
_SHORT, _LONG, _MANY, _SHORT_SUM, _FUNCTIONS, _MUCH = 3, 16, 3, 6, 2, 12
# Functions of these few instructions do not pay for loads and stores with a stride.
CHEAP = frozenset(("math.absf", "math.absi", "math.copysign", "math.fma", "math.isnan", "math.isinf"))


def swap_short_loop(
    groups: list[list[int]],
    sizes: Sequence[int | None],
    reduced: Sequence[bool],
    body: Iterable[ir.Operation],
    several: bool = False,
) -> bool:
    """Makes the loop around the innermost one of a nest the innermost one.

    It does so where the innermost one is too short for the vectoriser, the one around it is not, and the body
    has several functions: it is too long to be unrolled, and takes longer than memory read with a stride. A
    sum along the short loop then adds columns to a result in memory, and one along the other has its
    accumulator in a register.

    Args:
        groups: the dimensions of each loop, outermost first.
        sizes: the static size of each dimension, if known.
        reduced: whether each dimension is reduced.
        body: what is computed of each element.
        several: whether that has several results.

    Returns:
        Whether they changed places.
    """
    if len(groups) < 2:
        return False
    whole = _extent([axis for group in groups for axis in group], sizes)
    if all(reduced[group[0]] for group in groups) and (whole is None or whole > partial_reductions.LEAST):
        return False  # it is done in parts of the outermost loop
    outer, inner = (_extent(group, sizes) for group in groups[-2:])
    by_outer, by_inner = (reduced[group[0]] for group in groups[-2:])
    sums = by_outer or by_inner
    if inner is None or inner > (_SHORT_SUM if sums else _SHORT) or (outer is not None and outer < _LONG):
        return False
    many = sum(op.name.startswith("math.") and op.name not in CHEAP for op in body)
    if many < (_FUNCTIONS if sums else _MANY) or (by_inner and not several and many * inner < _MUCH):
        return False
    groups[-2:] = groups[:-3:-1]
    return True


def _extent(group: Sequence[int], sizes: Sequence[int | None]) -> int | None:
    known = [sizes[axis] for axis in group]
    return None if None in known else math.prod(filter(None, known))


# On an innermost `scf.for` of independent iterations that store where neighbours lie apart.
APART = "graphc.apart"
SUM_BLOCK = 4096
# What the additions of a sum may do. Vectorisation needs no more than `reassoc`. With `nsz` beside it LLVM
# also looks through the addition into what is added and removes x - x, which is NaN where x is not finite.
SUM_FLAGS = "#arith.fastmath<reassoc,contract>"


@record()
class Operand:
    """A buffer and, for each of its dimensions, the one of the nest that indexes it (None: index 0)."""

    buffer: Any
    axes: list[int | None]
    argument: Any


class Generic:
    """A bufferised `linalg.generic`.

    Attributes:
        op: the operation.
        reduction: whether each dimension is reduced.
        inputs, outputs: the buffers, by the dimensions that index them.
        body, end: what is computed of each element, and the operation that yields it to the outputs.
        indexed: the dimensions whose index the body asks for.
    """

    def __init__(self, op: ir.Operation) -> None:
        self.op = op
        attributes = op.attributes
        self.reduction = ["reduction" in str(kind) for kind in attributes["iterator_types"]]
        block = op.regions[0].blocks[0]
        *self.body, self.end = [op.operation for op in block.operations]
        count = next(iter(ir.DenseI32ArrayAttr(attributes["operandSegmentSizes"])))
        maps = [ir.AffineMapAttr(a).value for a in attributes["indexing_maps"]]
        operands = [
            Operand(buffer, [_axis_of(e) for e in affine.results], argument)
            for buffer, affine, argument in zip(op.operands, maps, block.arguments, strict=True)
        ]
        self.inputs, self.outputs = operands[:count], operands[count:]
        self.indexed = {dimension_of(op) for op in self.body if op.name == "linalg.index"}

    @property
    def operands(self) -> list[Operand]:
        return [*self.inputs, *self.outputs]


def dimension_of(op: ir.Operation) -> int:
    """The dimension whose index an operation gives."""
    return ir.IntegerAttr(op.attributes["dim"]).value


class LoopNest(Generic):
    """Lowers one generic; the generic is erased."""

    def lower(self) -> None:
        with ir.InsertionPoint(self.op), self.op.location:
            self._sizes = self._extents()
            self._groups = self._collapse()
            several = len(self.outputs) > 1
            swapped = swap_short_loop(self._groups, self._static, self.reduction, self.body, several)
            self._apply_groups()
            removed = [self.reduction[group[0]] for group in self._groups]
            self._suffix = len(removed)
            while self._suffix and removed[self._suffix - 1]:
                self._suffix -= 1
            self._starts: dict[int, ir.Value] = {}
            if (swapped and not removed[-1]) or self._sums_columns():
                self._column_blocks()
            else:
                self._nest(0, [])
        self.op.erase()

    # -- preparation -----------------------------------------------------------------------------------------

    def _extents(self) -> list[ir.Value]:
        """One size per dimension; a static one wherever some operand knows it.

        The size of an allocation folds to the value it was made with, so that loops over one array and over
        what was computed from it have equal bounds and can be fused.
        """
        found: list[Any] = [None] * len(self.reduction)
        from_allocation = [False] * len(self.reduction)
        static: list[int | None] = [None] * len(self.reduction)
        for operand in self.operands:
            shape, allocated = operand.buffer.type.shape, None
            for position, axis in enumerate(operand.axes):
                if axis is None:
                    continue
                if not from_allocation[axis]:
                    allocated = _is_allocated(operand.buffer) if allocated is None else allocated
                    if allocated or found[axis] is None:
                        found[axis], from_allocation[axis] = (operand.buffer, position), allocated
                if shape[position] >= 0:
                    static[axis] = shape[position]
        self._static = static
        return [
            build.const_index(known) if known is not None else build.dim(*where)
            for known, where in zip(static, found, strict=True)
        ]

    def _collapse(self) -> list[list[int]]:
        """Groups of dimensions that become one loop each; dimensions of size 1 vanish."""
        groups: list[list[int]] = []
        for axis in range(len(self.reduction)):
            if self._static[axis] == 1 and axis not in self.indexed:
                continue
            if groups and self._mergeable(groups[-1][-1], axis):
                groups[-1].append(axis)
            else:
                groups.append([axis])
        return groups

    def _mergeable(self, left: int, right: int) -> bool:
        alike = self.reduction[left] == self.reduction[right] and right == left + 1
        if not alike or {left, right} & self.indexed:
            return False
        for operand in self.operands:
            has_left, has_right = left in operand.axes, right in operand.axes
            if has_left != has_right:
                return False
            if has_left and operand.axes.index(right) != operand.axes.index(left) + 1:
                return False
            if has_left and not is_row_major(operand.buffer):
                return False
        return True

    def _apply_groups(self) -> None:
        """Collapses the operands' buffers and renumbers their axes to loop numbers."""
        loop_of = {axis: number for number, group in enumerate(self._groups) for axis in group}
        wide = [group for group in self._groups if len(group) > 1]
        for operand in self.operands:
            merged: list[list[int]] = []
            axes: list[int | None] = []
            for position, axis in enumerate(operand.axes):
                if axis is not None and any(axis in g[1:] for g in wide):
                    merged[-1].append(position)
                    continue
                merged.append([position])
                axes.append(loop_of.get(axis) if axis is not None else None)
            if len(merged) < len(operand.axes):
                operand.buffer = collapse(operand.buffer, merged)
            operand.axes = axes
        self._bounds = [
            math.prod((self._sizes[axis] for axis in rest), start=self._sizes[first])
            for first, *rest in self._groups
        ]
        self._loop_of = loop_of

    # -- emission --------------------------------------------------------------------------------------------

    def _nest(self, depth: int, indices: list[ir.Value]) -> None:
        """Emits loop `depth` and everything inside; loads that are ready are emitted first."""
        self._load_ready(depth, indices)
        if depth == self._suffix:
            self._innermost(depth, indices)
            return
        made, block = loop(self._bounds[depth], [], start=self._starts.get(depth))
        if depth + 1 == len(self._groups) and any(self._lies_apart(x, depth) for x in self.outputs):
            made.attributes[APART] = ir.UnitAttr.get()
        with ir.InsertionPoint(block):
            self._nest(depth + 1, [*indices, block.arguments[0]])
            build.create("scf.yield", [], [])

    def _lies_apart(self, output: Operand, depth: int) -> bool:
        """True if an output is not known to lie side by side along a loop."""
        if depth not in output.axes or self._accumulates(output):
            return False
        strides = ir.MemRefType(output.buffer.type).get_strides_and_offset()[0]
        return bool(strides[output.axes.index(depth)] != 1)

    def _sums_columns(self) -> bool:
        """True if rows are added to a result that has many columns."""
        last = len(self._groups) - 1
        if last < 1 or self._suffix <= last or not self.reduction[self._groups[0][0]]:
            return False
        columns = build.constant_value(self._bounds[last])
        long = columns is None or columns > partial_reductions.COLUMNS
        return long and not partial_reductions.is_in_loop(self.op)

    def _column_blocks(self) -> None:
        """A loop over blocks of columns around the nest."""
        last = len(self._groups) - 1
        stop, width = self._bounds[last], build.const_index(partial_reductions.COLUMNS)
        with span(stop, 0, width) as start:
            self._starts[last], self._bounds[last] = start, smaller(start + width, stop)
            self._nest(0, [])

    def _load_ready(self, depth: int, indices: list[ir.Value]) -> None:
        for operand in self.inputs:
            needed = max((axis for axis in operand.axes if axis is not None), default=-1) + 1
            if needed == depth and is_used(operand.argument):
                operand.argument.replace_all_uses_with(self._load(operand, indices))

    def _load(self, operand: Operand, indices: list[ir.Value]) -> ir.Value:
        return operand.buffer[self._where(operand, indices)]

    def _where(self, operand: Operand, indices: list[ir.Value]) -> list[ir.Value]:
        return [build.const_index(0) if axis is None else indices[axis] for axis in operand.axes]

    def _innermost(self, depth: int, indices: list[ir.Value]) -> None:
        """The body, wrapped in the trailing reduction loops if there are any."""
        accumulators = [operand for operand in self.outputs if self._accumulates(operand)]
        initial = [self._load(operand, indices) for operand in accumulators]
        self._are_bits = [bit_in(self._yielded(operand)) is not None for operand in accumulators]
        initial = [bit_of_byte(v) if bit else v for v, bit in zip(initial, self._are_bits, strict=True)]
        self._sum_positions = [
            i for i, operand in enumerate(accumulators) if self._combiner(operand) is not None
        ]
        combiners = self._part_combiners(accumulators) if depth == 0 < len(self._groups) else []
        if combiners:
            final = self._in_parts(initial, accumulators, combiners)
        elif depth < len(self._groups):
            final = self._reduce(depth, indices, initial, accumulators)
        else:
            final = self._body(indices, initial, accumulators)
        for operand, value, bit in zip(accumulators, final, self._are_bits, strict=True):
            operand.buffer[self._where(operand, indices)] = byte_of_bit(value) if bit else value

    def _part_combiners(self, accumulators: list[Operand]) -> list[partial_reductions.Combiner]:
        """Combiners for the parts of a long reduction; none if it is short or cannot be split."""
        sizes = [build.constant_value(bound) for bound in self._bounds]
        if None not in sizes and math.prod(filter(None, sizes)) <= partial_reductions.LEAST:
            return []
        if partial_reductions.is_in_loop(self.op):
            return []
        yielded = list(self.end.operands)
        arguments = [operand.argument for operand in self.outputs]
        found = [
            partial_reductions.combiner(yielded[arguments.index(operand.argument)], operand.argument)
            for operand in accumulators
        ]
        return [] if None in found else [each for each in found if each is not None]

    def _in_parts(
        self,
        initial: list[ir.Value],
        accumulators: list[Operand],
        combiners: list[partial_reductions.Combiner],
    ) -> list[ir.Value]:
        """Reduces parts of the outermost loop, then their results, in order."""
        extent = self._bounds[0]
        length = partial_reductions.part_length(extent, SUM_BLOCK if len(self._groups) == 1 else 1)
        count = partial_reductions.part_count(extent, length)
        buffers = [partial_reductions.part_buffer(value.type, self.op) for value in initial]
        with span(count) as part:
            start = self._starts[0] = part * length
            self._bounds[0] = smaller(start + length, extent)
            neutral = [each.constant(value.type) for each, value in zip(combiners, initial, strict=True)]
            for value, buffer in zip(self._reduce(0, [], neutral, accumulators), buffers, strict=True):
                buffer[part] = value

        def combine(part: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            pairs = zip(combiners, carried, buffers, strict=True)
            return [each.combine(value, buffer[part]) for each, value, buffer in pairs]

        return carry(count, initial, combine)

    def _accumulates(self, operand: Operand) -> bool:
        """True if the output is reduced over some loop."""
        return any(
            self.reduction[g[0]] and number not in operand.axes for number, g in enumerate(self._groups)
        )

    def _combiner(self, operand: Operand) -> ir.Operation | None:
        """The addition of floats to this output's accumulator, if that is how it is combined."""
        owner = self._yielded(operand).owner
        if isinstance(owner, ir.Block) or owner.name not in ("arith.addf", "complex.add"):
            return None
        return owner if operand.argument in list(owner.operands) else None

    def _yielded(self, operand: Operand) -> ir.Value:
        return self.end.operands[next(i for i, other in enumerate(self.outputs) if other is operand)]

    def _reduce(
        self, depth: int, indices: list[ir.Value], values: list[ir.Value], accumulators: list[Operand]
    ) -> list[ir.Value]:
        last = depth == len(self._groups) - 1
        if last and self._sum_positions:
            return self._blocked(depth, indices, values, accumulators)
        return self._loop(depth, indices, values, accumulators)

    def _loop(
        self,
        depth: int,
        indices: list[ir.Value],
        values: list[ir.Value],
        accumulators: list[Operand],
        *,
        bounds: tuple[ir.Value, ir.Value] | None = None,
    ) -> list[ir.Value]:
        """One loop of a reduction, and those inside."""
        start, stop = bounds or (self._starts.get(depth), self._bounds[depth])

        def body(position: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            inner = [*indices, position]
            self._load_ready(depth + 1, inner)
            if depth == len(self._groups) - 1:
                return self._body(inner, carried, accumulators)
            return self._reduce(depth + 1, inner, carried, accumulators)

        return carry(stop, values, body, start=start)

    def _blocked(
        self, depth: int, indices: list[ir.Value], values: list[ir.Value], accumulators: list[Operand]
    ) -> list[ir.Value]:
        bound = self._bounds[depth]
        number = build.constant_value(bound)
        if number is not None and number <= SUM_BLOCK:
            return self._loop(depth, indices, values, accumulators, bounds=(build.const_index(0), bound))
        width = build.const_index(SUM_BLOCK)

        def body(start: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            stop = smaller(start + width, bound)
            begin = [
                literal(0.0, value.type) if i in self._sum_positions else value
                for i, value in enumerate(carried)
            ]
            partial = self._loop(depth, indices, begin, accumulators, bounds=(start, stop))
            return [
                _add(value, part) if i in self._sum_positions else part
                for i, (value, part) in enumerate(zip(carried, partial, strict=True))
            ]

        return carry(bound, values, body, start=self._starts.get(depth), step=width)

    def _body(
        self, indices: list[ir.Value], values: list[ir.Value], accumulators: list[Operand]
    ) -> list[ir.Value]:
        """Moves the body here; returns the new accumulators and stores the other outputs."""
        for operand in accumulators:
            combiner = self._combiner(operand)
            if combiner is not None:
                combiner.attributes["fastmath"] = ir.Attribute.parse(SUM_FLAGS)
        for operand, value, bit in zip(accumulators, values, self._are_bits, strict=True):
            operand.argument.replace_all_uses_with(byte_of_bit(value) if bit else value)
        for operand in self.outputs:
            if is_used(operand.argument):
                # A sum over a dimension of size 1, or what is computed in an argument's memory.
                operand.argument.replace_all_uses_with(self._load(operand, indices))
        anchor = build.const_index(0).owner
        for op in self.body:
            if op.name == "linalg.index":
                number = self._loop_of[ir.IntegerAttr(op.attributes["dim"]).value]
                op.results[0].replace_all_uses_with(indices[number])
            else:
                op.move_before(anchor)
        anchor.erase()
        results: list[Any] = []
        for operand, value in zip(self.outputs, self.end.operands, strict=True):
            if any(operand is other for other in accumulators):
                results.append(bit_in(value) if self._are_bits[len(results)] else value)
            else:
                operand.buffer[self._where(operand, indices)] = value
        return results


def _axis_of(expression: ir.AffineExpr) -> int | None:
    if isinstance(expression, ir.AffineDimExpr):
        return expression.position
    if isinstance(expression, ir.AffineConstantExpr) and expression.value == 0:
        return None
    raise CompileError(f"there is no code for the index {expression} of a nest; please report this")


def _is_allocated(buffer: ir.Value) -> bool:
    owner = buffer.owner
    return not isinstance(owner, ir.Block) and owner.name == "memref.alloc"


def _add(a: ir.Value, b: ir.Value) -> ir.Value:
    name = "complex.add" if isinstance(a.type, ir.ComplexType) else "arith.addf"
    return build.create(name, [a.type], [a, b]).result
