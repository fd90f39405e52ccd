# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Destinations of values: parts of buffers, rows of scans, the caller's arrays.

`write_buffer`, `write_split` and `write_view` only describe memory (graphc.lowering.memory.destinations). The
memref of a value's destination is made before the unit that computes the value; builders start from it
(`Destinations.start`) instead of from an empty tensor. Right after the unit the value is materialised
there, which is no copy if it was computed in place, and everything else reads it from there. Such a read is
not writable, so bufferisation never updates a destination in place.

Updates of one array, one after the other, become writes into its memory.

A tensor that is handed on from update to update makes bufferization compare each write with all reads of the
same memory, and look for what was written before each of them: time n cubed for n updates. Nobody else reads
what is between two updates, so memory is chosen before the first one: where the last result is wanted, else
new memory. Each update stores there, and the result is what is there after the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from itertools import pairwise
from typing import Any

from graphc.ir import build
from graphc.ir.kinds import PRODUCTS, REDUCTIONS, reduced_axes, static_shape
from graphc.ir.ownership import has_no_other_reader, updates_argument, updates_in_place
from graphc.ir.views import (
    INLINED,
    MOVES_AXES,
    REPEATS,
    RESHAPES,
    SAME_ARRAY,
    UPDATES,
    axes_order,
    inverse_order,
)
from graphc.ir.walk import definition, is_used_once, seen_through
from graphc.lowering.generic import GenericBuilder, is_one_element
from graphc.lowering.memory.layouts import metadata, reinterpret
from graphc.lowering.memory.units import Units, computed_with, heirs
from graphc.lowering.rules import STARTS_ANYWHERE, Conversion
from graphc.lowering.scalar_builder import ScalarBuilder
from graphc.lowering.scans.buffers import allocate, read, writable, write, write_apart
from graphc_dialects._mlir import ir
from graphc_dialects.check import raises
from graphc_dialects.conditional_shapes import is_unread
from graphc_dialects.write import is_write
from graphc_runtime.record import record

Size = Any  # an int, or an index value


@record(frozen=True)
class Destination:
    """Part of a buffer.

    Attributes:
        base: a memref; only its address and element type count.
        offset: the distance of elements from there to the first one.
        sizes: of each dimension.
        strides: of each dimension, in elements.
        contiguous: whether the elements lie side by side, in row-major order.
        is_lent: whether it must not be written earlier than here: an argument lives there until its last
            reader has run, or a check comes before.
        is_whole: whether it is all of the base, as that has it.
    """

    base: ir.Value
    offset: Size
    sizes: tuple[Size, ...]
    strides: tuple[Size, ...]
    contiguous: bool
    is_lent: bool = False
    is_whole: bool = False

    @classmethod
    def whole(
        cls, memref: ir.Value, sizes: Sequence[Size] | None = None, *, is_lent: bool = False
    ) -> Destination:
        """All of a contiguous buffer, which may begin anywhere."""
        kind = ir.MemRefType(memref.type)
        if sizes is None:
            sizes = build.dims(memref)
        offset: Size = kind.get_strides_and_offset()[1]
        is_whole = offset == 0
        if offset == ir.ShapedType.get_dynamic_stride_or_offset():
            memref, offset, _ = metadata(memref)
        return cls(memref, offset, tuple(sizes), _row_major(sizes), True, is_lent, is_whole)

    def part(self, axis: int, position: Size, size: Size) -> Destination:
        """`size` elements along an axis, from `position` on."""
        offset = self.offset + position * self.strides[axis]
        sizes = (*self.sizes[:axis], size, *self.sizes[axis + 1 :])
        contiguous = self.contiguous and all(_known(x) == 1 for x in self.sizes[:axis])
        return replace(self, offset=offset, sizes=sizes, contiguous=contiguous, is_whole=False)

    @property
    def is_empty(self) -> bool:
        """True if it is known to have no elements; upstream refuses views of such memory."""
        return any(_known(size) == 0 for size in self.sizes)

    @property
    def has_rows(self) -> bool:
        """True if neighbours in the last dimension, of those longer than 1, are neighbours in memory."""
        long = [i for i, size in enumerate(self.sizes) if _known(size) != 1]
        return not long or _known(self.strides[long[-1]]) == 1

    def reshaped(self, sizes: Sequence[Size]) -> Destination:
        """A contiguous part with another shape."""
        assert self.contiguous, "only contiguous parts are reshaped"
        return replace(self, sizes=tuple(sizes), strides=_row_major(sizes), is_whole=False)

    def permuted(self, order: Sequence[int]) -> Destination:
        """With axes as `dimshuffle` has them."""
        sizes = tuple(self.sizes[axis] if axis >= 0 else 1 for axis in order)
        strides = tuple(self.strides[axis] if axis >= 0 else 1 for axis in order)
        long = [axis for axis in order if axis >= 0 and _known(self.sizes[axis]) != 1]
        contiguous = self.contiguous and long == sorted(long)
        return replace(self, sizes=sizes, strides=strides, contiguous=contiguous, is_whole=False)

    def memref(self, shape: Sequence[int | None]) -> Any:
        """The part as a memref; `shape` has the sizes that are known of what is computed there."""
        sizes = [known if known is not None else size for size, known in zip(self.sizes, shape, strict=True)]
        strides = _row_major(sizes) if self.contiguous else self.strides
        return reinterpret(self.base, self.offset, sizes, list(strides))


def _known(size: Size) -> int | None:
    return size if isinstance(size, int) else build.constant_value(size)


def _row_major(sizes: Sequence[Size]) -> tuple[Size, ...]:
    strides: list[Size] = []
    step: Size = 1
    for size in reversed(sizes):
        strides.insert(0, step)
        known = _known(size)
        step = step * (size if known is None else known)
    return tuple(strides)


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
        # The memory of joins that lies where what takes it over is wanted.
        self._borrowed: dict[ir.Value, ir.Value] = {}
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
            placed = self._context.chains.place(result)
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
        users = [use.owner.operation for use in value.uses]
        # Of those outside the loop there is one, which moves axes: most values have none at all.
        if not any(user.name in MOVES_AXES for user in users) or not Units.is_loop(owner):
            return False
        fused = self._context.fused_with(owner) if len(users) > 1 else ()
        readers = [user for user in users if user not in fused]
        if len(readers) != 1 or readers[0].name not in MOVES_AXES or is_empty(value):
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

    def borrow(self, value: ir.Value, contiguous: bool) -> Destination | None:
        """Memory for a join: where what is computed of its result alone is wanted; or None.

        That overwrites the parts, so that they must have no other readers.
        """
        known = self.lend(value) if has_no_other_reader(value.owner.operation) else None
        if known is None or (contiguous and not known[0].contiguous):
            return None
        self._borrowed[value] = known[1]
        return known[0]

    def contents(self, value: ir.Value, memory: Destination) -> ir.Value:
        """The tensor of a join, once its memory has been written."""
        borrowed, kind = self._borrowed.get(value), build.storage_type(value.type)
        if borrowed is not None:
            return build.cast(writable(borrowed), kind)
        return read(memory.memref(static_shape(value)), kind)

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
        memref[[0] * len(static_shape(value))] = ScalarBuilder(ir).stored(scalar)
        return memref

    def _fits(self, value: ir.Value, part: Destination) -> bool:
        """True if a value should be computed there, and not be copied there afterwards.

        BLAS needs contiguous rows, of complex numbers a whole buffer. Accumulators that are visited again and
        again, for sums along other axes than the last, are slow where neighbours lie apart. What is stored
        once is not: elements are computed side by side in any case.
        """
        value = _source(value)
        made = definition(value)
        if made is None:
            return True
        if made.name in PRODUCTS:
            return part.has_rows and not isinstance(value.type.element_type, ir.ComplexType)
        return part.has_rows or all(
            op.name not in REDUCTIONS or len(static_shape(op.operands[0])) - 1 in reduced_axes(op)
            for op in self._context.fused_with(made)
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
            lent = position in self._context.arguments
            whole = Destination.whole(buffer, sizes, is_lent=lent)
            return whole, lambda: self._context.filled.add(position)
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
        if view.name in MOVES_AXES:
            found = self._find(view.results[0], None, False)
            if found is not None:
                part = found[0].permuted(inverse_order(axes_order(view), len(static_shape(value))))
                return None if contiguous and not part.contiguous else (part, found[1])
        return None


def starts_anywhere(op: ir.Operation) -> bool:
    """True if the lowering of an operation asks where to start."""
    return "cluster" in op.attributes or op.name in STARTS_ANYWHERE


def is_empty(value: ir.Value) -> bool:
    """True if a value statically has no elements."""
    return 0 in static_shape(value)


def _source(value: ir.Value) -> ir.Value:
    """The value before operations that leave it in its memory."""
    return seen_through(value, SAME_ARRAY)


@record()
class _Chain:
    """Updates, each of the result of the one before, which has no other reader.

    Attributes:
        updates: the operations in order.
        memory: a memref with the elements so far, once it has been chosen.
        is_lent: whether what takes over the result's memory is computed there, too.
    """

    updates: list[ir.Operation] = field(default_factory=list)
    memory: ir.Value | None = None
    is_lent: bool = False

    @property
    def base(self) -> ir.Value:
        """The value from which the first update starts."""
        return self.updates[0].operands[0]

    @property
    def result(self) -> ir.Value:
        """The result of the last update."""
        return self.updates[-1].results[0]


class Chains:
    """The chains of updates in one function.

    Args:
        context: the function conversion.
    """

    def __init__(self, context: Conversion) -> None:
        self._context = context
        self._by_update: dict[ir.Operation, _Chain] = {}
        self._by_base: dict[ir.Value, _Chain] = {}

    def enter(self, block: ir.Block) -> None:
        """Takes note of the chains in an old block, before it is converted."""
        found: dict[ir.Operation, _Chain] = {}
        for op in (view.operation for view in block.operations):
            is_chained = op.name in UPDATES and op.results[0] not in self._context.updates
            if is_chained and not is_empty(op.results[0]):
                chain = _continued(op, found) or _Chain()
                chain.updates.append(op)
                found[op] = chain
        for op, chain in found.items():
            if len(chain.updates) > 1:
                self._by_update[op] = chain
                if updates_in_place(chain.updates[0]):
                    self._by_base[chain.base] = chain

    def place(self, value: ir.Value) -> tuple[Destination, ir.Value] | None:
        """Place for the value that a chain of updates takes over, as described and as a memref, or None."""
        chain = self._by_base.get(value)
        if chain is None or not starts_anywhere(value.owner) or self._context.lent(value) is not None:
            return None
        destination, chain.memory = self._choose(chain)
        return destination, chain.memory

    def memory(self, op: ir.Operation) -> ir.Value | None:
        """The memory in which an update of a chain stores, with the older elements; None if it is in none."""
        state = self._context.updates.get(op.results[0])
        if state is not None:
            return state.memory
        chain = self._by_update.get(op)
        if chain is not None and chain.memory is None:
            chain.memory = self._start(chain)
        return None if chain is None else chain.memory

    def finish(self, op: ir.Operation) -> None:
        """Says that an update has stored; defines the result of the last one."""
        result, state = op.results[0], self._context.updates.get(op.results[0])
        if state is not None and state.memory is not None:
            self._context.define(result, read(state.memory, build.storage_type(result.type)))
            return
        chain = self._by_update[op]
        if result != chain.result:
            self._context.define_sizes(result, self._context.sizes_of(chain.base))
        elif chain.memory is not None:
            kind = build.storage_type(result.type)
            is_lent = chain.is_lent
            value = build.cast(writable(chain.memory), kind) if is_lent else read(chain.memory, kind)
            self._context.define(result, value)

    def _choose(self, chain: _Chain) -> tuple[Destination, ir.Value]:
        """Memory for a chain, as described and as a memref."""
        sizes = self._context.sizes_of(chain.base)
        found = self._context.destinations.claim(chain.result, sizes=sizes)
        if found is None:
            lent = self._context.destinations.lend(chain.result)
            if lent is not None:
                chain.is_lent = True
                return lent
            found = Destination.whole(allocate(build.storage_type(chain.base.type), sizes), sizes)
        # A copy of an argument into a result is known as such where the result is not seen as a part.
        is_plain = found.is_whole and found.base.type == _plain(build.storage_type(chain.base.type))
        return found, found.base if is_plain else found.memref(static_shape(chain.base))

    def _start(self, chain: _Chain) -> ir.Value:
        base, first = chain.base, chain.updates[0]
        if updates_in_place(first) or updates_argument(first, self._context.donated.get(first.results[0])):
            return _memory_of(self._context.tensor_of(base))
        shape, sizes = static_shape(base), self._context.sizes_of(base)
        lent = self._context.lent(first.results[0])
        memory = self._choose(chain)[1] if lent is None else _memory_of(lent)
        if is_fill(base) and not self._context.is_materialised(base):
            write(GenericBuilder(self._context, shape, sizes, []).copy(base), memory)
        else:
            # The base has other readers: it must not be computed in memory that changes.
            write_apart(self._context.tensor_of(base), memory)
        return memory


def _continued(op: ir.Operation, found: dict[ir.Operation, _Chain]) -> _Chain | None:
    """The chain whose last update's result an update takes over, or None."""
    older = op.operands[0]
    made = definition(older)
    if made is None or older.type != op.results[0].type or not is_used_once(older):
        return None
    return found.get(made)


def is_fill(value: ir.Value) -> bool:
    """True if a value repeats one element; in a loop that no canonicalization takes for a copy."""
    op = definition(value, *REPEATS)
    if op is None or op.name not in INLINED:
        return False
    return is_one_element(op.operands[0]) and not is_one_element(value)


def _memory_of(tensor: ir.Value) -> ir.Value:
    """The memory of a tensor that nobody else reads, to be written to."""
    return build.create("bufferization.to_buffer", [_plain(tensor.type)], [tensor]).result


def _plain(kind: ir.Type) -> ir.Type:
    """The memref of a tensor's type whose elements lie side by side."""
    return ir.MemRefType.get(kind.shape, kind.element_type)
