# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Destinations of values: parts of buffers, rows of scans, the caller's arrays.

`write_buffer`, `write_split` and `write_view` only describe memory (graphc.lowering.memory.destination). The
memref of a value's destination is made before the unit that computes the value; builders start from it
(`Destinations.start`) instead of from an empty tensor. Right after the unit the value is materialised
there, which is no copy if it was computed in place, and everything else reads it from there. Such a read is
not writable, so bufferisation never updates a destination in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from graphc.ir import build
from graphc.ir.kinds import PRODUCTS, REDUCTIONS, reduced_axes, static_shape
from graphc.ir.views import RESHAPES, SAME_ARRAY, inverse_order, order_of
from graphc.lowering.generic import ScalarWork
from graphc.lowering.memory.destination import Destination, Size
from graphc.lowering.memory.inheritance import computed_with, heirs
from graphc.lowering.memory.units import Units
from graphc.lowering.rules import STARTS_ANYWHERE, Conversion
from graphc.lowering.scans.buffers import read, writable, write, write_apart
from graphc_dialects._mlir import ir
from graphc_dialects.check import raises
from graphc_dialects.conditional_shapes import is_unread
from graphc_dialects.write import is_write

Found = tuple[Destination, Callable[[], None]]


class Destinations:
    """Known facts about destinations in one function.

    Args:
        context: the function conversion.
    """

    def __init__(self, context: Conversion) -> None:
        self._context = context
        self._parts: dict[ir.Value, Destination] = {}
        self._writes: dict[ir.Value, list[ir.Operation]] = {}
        self._involved: set[ir.Value] = set()
        self._rows: dict[Any, Any] = {}
        self._checked_late: set[ir.Value] = set()
        # Destinations of what is being computed, as described and as memrefs.
        self._open: dict[ir.Value, tuple[Destination, ir.Value]] = {}
        self._memrefs: dict[ir.Operation, tuple[Destination, ir.Value]] = {}
        # Values that are overwritten by another one in a destination of that one, and the other way round.
        self._passed_on: set[ir.Value] = set()
        self._lenders: dict[ir.Value, Any] = {}
        # Values that had been computed when their destination was given.
        self._early: set[ir.Value] = set()
        # Writes, and values stored in rows, for which nothing is left to do.
        self._done: set[Any] = set()

    def enter(self, block: ir.Block) -> None:
        """Takes note of what is written in an old block, before it is converted."""
        for op in block.operations:
            if is_write(op):
                value = op.operation.operands[0]
                if is_unread(value):
                    self._done.add(op.operation)
                    continue
                self._writes.setdefault(value, []).append(op.operation)
                self._involved.update(computed_with(value))

    def describe(self, buffer: ir.Value, destination: Destination) -> None:
        """Says what a value of type `!graphc.buffer` is."""
        self._parts[buffer] = destination

    def of_buffer(self, buffer: ir.Value) -> Destination:
        """The tensor of a value of type `!graphc.buffer`."""
        return self._parts[buffer]

    def offer_row(self, value: ir.Value, pointer: ir.Value) -> None:
        """Says that a value of a scan's body is going to be stored in a row: it may be computed there."""
        self._rows.setdefault(value, pointer)

    def refuse_rows(self, values: set[ir.Value]) -> None:
        """Says which values of a scan's body are there before it is known that they fit into a row."""
        self._checked_late |= values

    def is_checked_late(self, value: ir.Value) -> bool:
        """True if a value must not be computed in a row."""
        return value in self._checked_late

    def is_in_row(self, value: ir.Value, pointer: ir.Value) -> bool:
        """True if a value has been computed in a row that was offered."""
        return value in self._done and self._rows.get(value) == pointer

    def is_done(self, op: ir.Operation) -> bool:
        """True if a `graphc.write` has happened, or somebody has promised it."""
        return op in self._done

    # -- values that are computed in place -------------------------------------------------------------------

    def begin(self, members: list[ir.Operation]) -> list[Any]:
        """Makes the memrefs in which results of a unit are to be computed; returns these results."""
        found = []
        for result in (result for op in members for result in op.results):
            placed = self._context.place_of_chain(result)
            if placed is not None:
                self._open[result] = placed
                found.append(result)
            elif (self._writes and self._begin_result(result)) or self._begin_permuted(result):
                found.append(result)
        return found

    def _begin_result(self, value: ir.Value) -> bool:
        wanted = self._next_write(value)
        if wanted is not None:
            self.begin_write(wanted)
            return True
        return value in self._involved and self._inherit(value)

    def _begin_permuted(self, value: ir.Value) -> bool:
        """Lets elements be computed where nothing but their permutation is wanted: in a result, or a row."""
        owner = value.owner.operation
        if not Units.is_loop(owner) or is_empty(value):
            return False
        users = [use.owner.operation for use in value.uses]
        fused = self._context.fused_with(owner) if len(users) > 1 else ()
        readers = [user for user in users if user not in fused]
        if len(readers) != 1 or order_of(readers[0]) is None:
            return False
        part = self.claim(value, lent=False)
        if part is None:
            return False
        self.begin_part(value, part)
        return True

    def _inherit(self, value: ir.Value) -> bool:
        """Lets a value be computed where what takes over its memory is wanted."""
        known = self.lend(value) if starts_anywhere(value.owner) and not is_empty(value) else None
        if known is None:
            return False
        self._open[value] = known
        self._passed_on.add(value)
        return True

    def lend(self, value: ir.Value) -> tuple[Destination, ir.Value] | None:
        """Destination that the one who takes over a value's memory wants, or None; the value is to be
        computed there, and then overwritten.

        Each value on the way there takes over the memory of one other: two would be there at the same time.
        """
        path = heirs(value)
        wanted = self._next_write(path[-1]) if path else None
        if wanted is None:
            return None
        known = self._memref(wanted)
        lenders = {heir: (lender, known) for lender, heir in pairwise([value, *path])}
        if not self._fits(value, known[0]):
            return None
        if any(self._lenders.get(heir, lender) != lender for heir, lender in lenders.items()):
            return None
        self._lenders.update(lenders)
        return known

    def inherited(self, value: ir.Value) -> ir.Value | None:
        """The tensor of a value that was computed in this one's destination, to be overwritten; or None."""
        lender, known = self._lenders.get(value, (None, None))
        if lender is None or self._open.get(value) is not known:
            return None
        return self._context.tensor_of(lender)

    def is_final(self, value: ir.Value) -> bool:
        """True if what is computed now is what is wanted in its destination."""
        return value not in self._passed_on

    def begin_part(self, value: ir.Value, part: Destination) -> None:
        """Makes the memref for a value that is put into a part now."""
        self._note_early(value)
        self._open[value] = part, part.memref(static_shape(value))

    def begin_write(self, op: ir.Operation) -> None:
        """Makes the memref for one `graphc.write`."""
        self._done.add(op)
        self._note_early(op.operands[0])
        self._open[op.operands[0]] = self._memref(op)

    def _note_early(self, value: ir.Value) -> None:
        if self._context.is_materialised(_source(value)):
            self._early.add(value)

    def _memref(self, op: ir.Operation) -> tuple[Destination, ir.Value]:
        if op not in self._memrefs:
            value, buffer = op.operands
            part = self._parts[buffer]
            self._memrefs[op] = part, part.memref(static_shape(value))
        return self._memrefs[op]

    def _next_write(self, value: ir.Value) -> ir.Operation | None:
        for op in self._writes.get(value, ()):
            part = self._parts.get(op.operands[1])
            if part is not None and op not in self._done and not part.is_empty and not is_empty(value):
                return op
        return None

    def start(self, value: ir.Value, tensor_type: ir.Type, sizes: Sequence[ir.Value]) -> ir.Value:
        """The tensor, without contents, that the computation of a value starts from."""
        lent = self._context.lent(value)
        if lent is not None:
            return lent
        known = self._open.get(value)
        if known is None or not self._fits(value, known[0]):
            return build.empty(tensor_type, sizes)
        return build.cast(writable(known[1]), tensor_type)

    def is_open(self, value: ir.Value) -> bool:
        """True if a value is being computed that has a destination."""
        return value in self._open

    def take(self, value: ir.Value) -> Destination | None:
        """The destination of the value being computed; the asker promises to fill it, and to define the value
        as what is read from there.
        """
        known = self._open.get(value)
        if known is None or not self._fits(value, known[0]):
            return None
        del self._open[value]
        return known[0]

    def finish(self, values: list[ir.Value]) -> None:
        """Puts results of a unit into their destinations, if they are not there, and reads them there."""
        for value in values:
            if value not in self._open:
                continue
            if value in self._passed_on:
                del self._open[value]
                continue
            memref = self.copy(value)
            if self._context.scalar_of(value) is None:
                self._context.define(value, read(memref, build.storage_type(value.type)))

    def copy(self, value: ir.Value) -> ir.Value:
        """Puts a value into its destination, a memref, which is returned."""
        part, memref = self._open.pop(value)
        scalar = self._context.scalar_of(value)
        if scalar is None:
            tensor = self._context.tensor_of(value)
            # What is computed before a region must not be computed in memory that another one may write.
            # A cast in the region is the same memory as what it casts, wherever that was computed.
            in_place = self._fits(value, part) and self._context.is_computed_here(_source(value))
            # What was computed earlier must not be computed where readers of an argument came meanwhile.
            in_place = in_place and not (part.is_lent and value in self._early)
            (write if in_place else write_apart)(tensor, memref)
            return memref
        stored = ScalarWork(self._context, []).stored(scalar)
        zeros = [build.const_index(0)] * len(static_shape(value))
        build.create("memref.store", [], [stored, memref, *zeros])
        return memref

    def _fits(self, value: ir.Value, part: Destination) -> bool:
        """True if a value should be computed there, and not be copied there afterwards.

        BLAS needs contiguous rows, of complex numbers a whole buffer. Accumulators that are visited again and
        again, for sums along other axes than the last, are slow where neighbours lie apart. What is stored
        once is not: elements are computed side by side in any case.
        """
        value = _source(value)
        owner = value.owner
        if isinstance(owner, ir.Block):
            return True
        if owner.name in PRODUCTS:
            return part.has_rows and not isinstance(value.type.element_type, ir.ComplexType)
        return part.has_rows or all(
            op.name not in REDUCTIONS or _last_axis(op) in reduced_axes(op)
            for op in self._context.fused_with(owner.operation)
        )

    def buffer(self, value: ir.Value) -> ir.Value | None:
        """Contiguous memory where a value is wanted that something else than a loop computes, or None.

        The asker promises to fill it, and to define the value as what is read from there.
        """
        known = self._open.get(value)
        if known is None:
            return self.claim_buffer(value)
        if value in self._passed_on or not known[0].contiguous:
            return None
        part = self.take(value)
        return None if part is None else part.memref(static_shape(value))

    # -- buffers ---------------------------------------------------------------------------------------------

    def claim(
        self,
        value: ir.Value,
        *,
        sizes: list[Size] | None = None,
        contiguous: bool = False,
        lent: bool = True,
    ) -> Destination | None:
        """A destination of a value that is not computed yet, or None.

        The asker promises to fill it in time: what is written to a part, stored in a row or returned is not
        copied there then.

        Args:
            value: of the graph stage. What is done to a view of it counts too.
            sizes: of the value, if they are known already.
            contiguous: accept only contiguous memory.
            lent: accept memory that an argument lives in until its last reader has run.
        """
        found = self._find(value, sizes, contiguous)
        if found is None or (found[0].is_lent and not lent):
            return None
        destination, commit = found
        commit()
        return destination

    def claim_buffer(self, value: ir.Value, *, lent: bool = True) -> ir.Value | None:
        """Like `claim`, as a contiguous memref; without `lent` none that an argument may live in."""
        destination = self.claim(value, contiguous=True, lent=lent)
        return None if destination is None else destination.memref(static_shape(value))

    def _find(self, value: ir.Value, sizes: list[Size] | None, contiguous: bool) -> Found | None:
        position = self._context.free_output(value)
        if position is not None:
            buffer = self._context.outputs[position]
            lent = self._context.is_argument(position)
            whole = Destination.whole(buffer, sizes, is_lent=lent)
            return whole, lambda: self._context.fill_output(position)
        wanted = self._next_write(value)
        if wanted is not None and value not in self._open:
            part = self._parts[wanted.operands[1]]
            if part.contiguous or not contiguous:
                return part, lambda: self._done.add(wanted)
        if value in self._rows and value not in self._done and value not in self._checked_late:
            # What was computed before a check must not be computed there: it may not fit.
            is_lent = any(raises(op.operation) for op in value.owner.operation.block.operations)
            row = Destination.whole(self._rows[value], sizes, is_lent=is_lent)
            return row, lambda: self._done.add(value)
        for use in value.uses:
            found = self._through(use.owner.operation, value, sizes, contiguous)
            if found is not None:
                return found
        return None

    def _through(
        self, view: ir.Operation, value: ir.Value, sizes: list[Size] | None, contiguous: bool
    ) -> Found | None:
        """The destination of a view of a value, seen the other way round."""
        if view.block != value.owner.operation.block:
            return None
        if view.name in SAME_ARRAY and view.operands[0] == value:
            return self._find(view.results[0], sizes, contiguous)
        if view.name in RESHAPES and sizes is not None and view.operands[0] == value:
            found = self._find(view.results[0], None, True)
            return None if found is None else (found[0].reshaped(sizes), found[1])
        order = order_of(view)
        if order is not None:
            found = self._find(view.results[0], None, False)
            if found is not None:
                part = found[0].permuted(inverse_order(order, len(static_shape(value))))
                return None if contiguous and not part.contiguous else (part, found[1])
        return None


def starts_anywhere(op: ir.Operation) -> bool:
    """True if the lowering of an operation asks where to start."""
    return "cluster" in op.attributes or op.name in STARTS_ANYWHERE


def _last_axis(op: ir.Operation) -> int:
    return len(static_shape(op.operands[0])) - 1


def is_empty(value: ir.Value) -> bool:
    """True if a value statically has no elements."""
    return 0 in static_shape(value)


def _source(value: ir.Value) -> ir.Value:
    """The value before operations that leave it in its memory."""
    while not isinstance(value.owner, ir.Block) and value.owner.name in SAME_ARRAY:
        value = value.owner.operands[0]
    return value
