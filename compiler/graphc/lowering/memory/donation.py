# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Donated arguments: which of them lend their memory to which results, and why the others do not.

A result is computed in the memory of an argument of the same type and sizes when everything that reads the
argument can come before what first writes there (`graphc.lowering.memory.donation` finds that). What writes
may read the argument itself only where nothing is lost: an elementwise loop and an update at the position
that they write, a scan before it stores its last rows, or row by row. These are the conditions for it to pay;
where tensors are concerned, bufferisation tests again what makes it right, and copies where it has doubts.

An argument that nobody reads is a *spare*: its array becomes the result in calls in which it has the right
sizes, so these need not be known when compiling.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple

from graphc.ir import build
from graphc.ir.affine import as_long
from graphc.ir.diagnostics import fail
from graphc.ir.donations import OFFERED, Donated, Donation, offered
from graphc.ir.kinds import PRODUCTS, REDUCTIONS, static_shape
from graphc.ir.ownership import renames, updates_argument, updates_in_place
from graphc.ir.scan_view import ScanView, is_state, is_trace, name_of, retention, scans, traced, writes_of
from graphc.ir.traits import Dimension
from graphc.ir.views import GATHERS, INLINED, JOINS, RENAMES, TAKES_ROW, UPDATES
from graphc.ir.walk import definition, seen_through, symbol_of, walk, within
from graphc.lowering.memory.units import Units, ancestors
from graphc.lowering.memory.vanishing import may_vanish
from graphc.lowering.scans.recurrences import RECURRENCES, cheap_chain
from graphc.lowering.scans.scan import FEW, declared_sizes
from graphc.lowering.structural import is_vector_product
from graphc_dialects._base import constant_value
from graphc_dialects._mlir import ir
from graphc_dialects.check import checks_in, raises
from graphc_dialects.scan_verify import DECLARATIONS
from graphc_dialects.write import is_write, reads_buffer, root_of


class Refused(Exception):
    """A result cannot be computed in an argument; the message says why."""


class Reads(Enum):
    """Reads that an operation may make of the memory in which it computes a result."""

    NOTHING = "it writes elements before it has read all"
    HERE = "the element that it writes"
    ROW = "the row that it writes, which is stored at the end of an iteration"
    ALL = "it writes after its last read"


class Start(NamedTuple):
    """The start of a result.

    Attributes:
        value: the first of the values that are computed in its memory, one from the other.
        writer: the operation that first writes there.
        reads: what the writer may read there.
        waits: whether the writer asks for the memory itself, as for that of other results; else it starts
            from the argument's tensor.
    """

    value: Any
    writer: Any
    reads: Reads
    waits: bool = False


def find_start(value: ir.Value, x: ir.Value, block: ir.Block) -> Start:
    """The first operation of a result that is made in the memory of x.

    Args:
        value: the result.
        x: the argument.
        block: of the function.

    Raises:
        Refused: it is not known, or takes a copy in any case.
    """
    view = is_updated = None
    while True:
        op = definition(value)
        if op is None or op.block != block:
            raise Refused("the result of its type is not computed here")
        if any(is_write(use.owner) for use in value.uses):
            raise Refused("the result of its type is part of a joined array")
        if renames(op) and not is_updated:
            view = op
        elif op.name not in UPDATES or updates_argument(op, x) or not updates_in_place(op):
            break
        else:
            is_updated = op
        value = op.operands[0]
    start = _start_at(value, op, x)
    if view is not None and not start.waits and op.name not in UPDATES:
        start = start._replace(reads=Reads.NOTHING)
    if is_updated is not None and start.waits:
        raise Refused(f"what {op.name} computes for the result is then updated")
    return start


def _start_at(value: ir.Value, op: ir.Operation, x: ir.Value) -> Start:
    if op.name in UPDATES:
        return Start(value, op, Reads.HERE if updates_argument(op, x) else Reads.NOTHING)
    if Units.is_loop(op):
        return Start(value, op, Reads.NOTHING if op.name in REDUCTIONS else Reads.HERE)
    if op.name in PRODUCTS:
        return Start(value, op, Reads.NOTHING, waits=is_vector_product(op))
    if op.name in RECURRENCES:
        return Start(value, op, Reads.NOTHING)
    if op.name in JOINS or op.name == "scf.if":
        return Start(value, op, Reads.NOTHING, waits=True)
    if reads_buffer(op):
        return Start(value, root_of(op.operands[0]), Reads.NOTHING, waits=True)
    if is_trace(op):
        return _start_of_trace(value, op)
    if op.name in INLINED:
        return Start(value, op.block.operations[-1].operation, Reads.NOTHING)
    raise Refused(f"the result of its type comes from {op.name}, which has memory of its own")


def _start_of_trace(value: ir.Value, op: ir.Operation) -> Start:
    view, declaration = traced(op)
    keep, _ = retention(declaration)
    if keep == "last":
        return Start(value, view.op, Reads.ALL, waits=True)
    writes = writes_of(declaration)
    if view.stop is not None or (keep == "steps" and len(writes) > 1):
        raise Refused(f"the rows of its type are a part of those that {view.op.name} stores")
    is_row = keep == "steps" and len(writes) == 1
    return Start(value, view.op, Reads.ROW if is_row else Reads.NOTHING, waits=True)


def require_harmless(start: Start, use: Any, value: ir.Value, x: ir.Value, reader: ir.Operation) -> None:
    """Refuses a use of x in the operations that write the result, unless it comes before what it reads is
    overwritten.

    Args:
        start: where the result begins.
        use: of `value`, in an operation that takes part in writing the result.
        value: x, or a view of it.
        x: the argument.
        reader: the operation that reads it on account of this use.

    Raises:
        Refused: what it reads may have been overwritten.
    """
    if start.reads is Reads.NOTHING:
        raise Refused(f"{reader.name} reads it while the result is computed")
    if start.reads is Reads.HERE:
        _require_same_position(use, value, x)
    elif start.reads is Reads.ROW:
        _require_same_row(use, value, x, start.writer, reader)


def _require_same_position(use: Any, value: ir.Value, x: ir.Value) -> None:
    """Refuses an operation that does not read x just where it writes."""
    op = use.owner.operation
    if op.name in UPDATES:
        # A view of it is copied before the update.
        if value == x and use.operand_number:
            raise Refused(f"{op.name} reads it while it is updated")
        return
    domain = x if op.name in REDUCTIONS else op.results[0]
    if value != x or op.name in GATHERS or static_shape(domain) != static_shape(x):
        raise Refused(f"{op.name} reads other elements of it than the one it writes")


def _require_same_row(
    use: Any, value: ir.Value, x: ir.Value, scan: ir.Operation, reader: ir.Operation
) -> None:
    """Refuses a scan that reads another row than the one that the iteration stores at its end."""
    op = use.owner.operation
    is_seq = op.name in TAKES_ROW and value == x
    if reader != op or (not is_seq and not _is_of_row(value)):
        raise Refused(f"{op.name} reads rows that have been overwritten")
    if is_seq and op.operands[1] != ScanView(scan).index:
        raise Refused(f"{scan.name} reads other rows of it than the one it stores")
    # What an iteration stores or carries on is read when it stores.
    if op.parent.operation == scan and op.name in DECLARATIONS:
        raise Refused(f"{scan.name} stores a row of it as it is")


def _is_of_row(value: ir.Value) -> bool:
    """True if a value is a row of a sequence, or a view of such a row."""
    return definition(seen_through(value, {*INLINED, *RENAMES} - {*TAKES_ROW}), *TAKES_ROW) is not None


_ALIASES = frozenset({*INLINED, *RENAMES})

RowSizes = Mapping[Any, Mapping[str, list[Any]]]


class Donations:
    """The decisions for one function.

    Args:
        function: a graph-stage `func.func`.
        requests: what may be overwritten.

    Attributes:
        pairs: result position by argument position.
        spares: the same for arguments that are not read, where the sizes are compared in each call.
        lent: for the first value that is computed in an argument's memory, the argument.
        waiting: arguments whose memory is claimed by the operation that computes the result (a scan, a join).
        claimed: the values that these operations compute.
        apart: traces of scans whose rows must not be computed where they are stored.
        after: pairs of operations; the first must come after the second.
        notes: for each argument that stays as it is, the reason.
    """

    def __init__(self, function: ir.Operation, requests: Iterable[Donation]) -> None:
        self.pairs: dict[int, int] = {}
        self.spares: dict[int, int] = {}
        self.lent: dict[ir.Value, ir.Value] = {}
        self.waiting: set[int] = set()
        self.claimed: set[ir.Value] = set()
        self.apart: set[ir.Value] = set()
        self.after: list[tuple[ir.Operation, ir.Operation]] = []
        self.notes: dict[int, str] = {}
        requests = list(requests)
        if not requests:
            return
        self._loops = list(scans(function))
        self._row_sizes = {op.results[0]: declared_sizes(op) for op in self._loops}
        self._block = function.regions[0].blocks[0]
        self._results = list(self._block.operations[-1].operands)
        self._started: set[ir.Value] = set()
        self._read_again = _read_again(function)
        for request in requests:
            self._decide(request)
        for request in requests:
            self._spare(request)

    @classmethod
    def of_module(cls, module: ir.Module, function: ir.Operation) -> Donations:
        """The decisions for a function by what its module offers, which is about `@main`."""
        if symbol_of(function) != "main":
            return cls(function, ())
        return cls(function, _requests(module, function))

    @property
    def outcome(self) -> Donated:
        """Outcome for the entry and for the reader of the report."""
        pairs, spares = tuple(sorted(self.pairs.items())), tuple(sorted(self.spares.items()))
        return Donated(pairs, spares, tuple(sorted(self.notes.items())))

    def is_itself(self, argument: int, result: ir.Value) -> bool:
        """True if a result is an argument as it is."""
        return bool(self._block.arguments[argument] == result)

    # -- decisions -------------------------------------------------------------------------------------------

    def _decide(self, request: Donation) -> None:
        x = self._block.arguments[request.argument]
        reasons = []
        for position in request.results:
            value = self._results[position]
            if value.type != x.type or position in self.pairs.values():
                continue
            try:
                self._try(request, x, value)
            except Refused as refusal:
                reasons.append(str(refusal))
            else:
                self.pairs[request.argument] = position
                return
        self.notes[request.argument] = next(iter(reasons), "no result has its type")

    def _spare(self, request: Donation) -> None:
        """Lets an argument that nobody reads be a result where it has its sizes; cells must survive."""
        x = self._block.arguments[request.argument]
        if request.argument in self.pairs or request.keeps_on_failure:
            return
        if any(use.owner.operation.name != "tensor.dim" for use in x.uses):
            return
        taken = {*self.pairs.values(), *self.spares.values()}
        for position in request.results:
            if position not in taken and self._results[position].type == x.type:
                self.spares[request.argument] = position
                del self.notes[request.argument]
                return

    def _try(self, request: Donation, x: ir.Value, value: ir.Value) -> None:
        """Lends x to a result.

        Raises:
            Refused: it is not possible, or it would take a copy.
        """
        if value == x:
            return
        if request.keeps_on_failure and any(map(_is_long, self._loops)):
            raise Refused("a loop can be interrupted, and other threads run during it")
        start = find_start(value, x, self._block)
        if start.value in self._started:
            raise Refused("its result is computed in another argument already")
        units = Units(self._block, self._extra(), self.after)
        own = set(units.members_with(start.writer))
        if not have_same_sizes(value, x, self._row_sizes):
            raise Refused("the sizes of the result may differ")
        earlier = [op for op in self._readers(x, own, start) if op not in own]
        if request.keeps_on_failure:
            failing = self._failing()
            if start.reads is not Reads.ALL and not own.isdisjoint(failing):
                raise Refused(f"{start.writer.name} can fail while it writes the result")
            earlier += [op for op in failing if op not in own]
        needs, unit = units.needs(), units.unit_of(start.writer)
        for op in earlier:
            if unit in ancestors(needs, units.unit_of(op)):
                what = "can fail" if raises(op) else "reads it"
                raise Refused(f"{op.name} {what} after the result has been computed")
        self._lend(request.argument, x, start, any(op in own for op in self._readers(x, own, start)))
        self.after += [(start.writer, op) for op in earlier]

    def _lend(self, argument: int, x: ir.Value, start: Start, is_read_too: bool) -> None:
        self._started.add(start.value)
        if not start.waits:
            self.lent[start.value] = x
            return
        self.waiting.add(argument)
        self.claimed.add(start.value)
        if is_read_too:
            self.apart.add(start.value)

    def _extra(self) -> dict[ir.Value, list[Any]]:
        return {
            scan: [size for row in sizes.values() for size in row] for scan, sizes in self._row_sizes.items()
        }

    # -- what reads an argument, and what can fail -----------------------------------------------------------

    def _readers(self, x: ir.Value, own: set[ir.Operation], start: Start) -> list[ir.Operation]:
        """The operations of the block that read x, a view of it, or what may turn out to be x.

        Raises:
            Refused: one of `own` reads what has been overwritten.
        """
        found, pending = [], [x]
        while pending:
            value = pending.pop()
            for use in value.uses:
                op = use.owner.operation
                if op.name == "tensor.dim":
                    continue
                for reader in (op, *self._read_again.get(op, ())):
                    outer = within(reader, self._block)
                    if outer in own:
                        require_harmless(start, use, value, x, reader)
                    found.append(outer)
                is_view = op.name in _ALIASES or op.name in TAKES_ROW
                # What writes there itself is nothing that bufferisation can look through.
                if is_view or (start.waits and may_vanish(op)):
                    pending += list(op.results)
        return found

    def _failing(self) -> list[ir.Operation]:
        """The operations of the block in which a check is."""
        return [
            op.operation for op in self._block.operations if raises(op.operation) or checks_in(op.operation)
        ]


def _is_long(scan: ir.Operation) -> bool:
    """True if a loop may end early by a signal (see `graphc.passes.buffer.poll_interrupts`)."""
    steps = constant_value(scan.operands[0])
    return steps is None or steps > FEW


def _requests(module: ir.Module, function: ir.Operation) -> list[Donation]:
    """Donations that a module offers.

    Raises:
        PassError: an argument or a result does not exist, or the attribute is something else.
    """
    block = function.regions[0].blocks[0]
    arguments, results = len(block.arguments), len(block.operations[-1].operands)
    try:
        requests = offered(module)
    except ValueError as error:
        fail(module.operation, str(error))
    for request in requests:
        if not 0 <= request.argument < arguments or any(not 0 <= r < results for r in request.results):
            fail(
                module.operation,
                f"'{OFFERED}' must name arguments below {arguments} and results below {results}, but has "
                f"argument {request.argument} for results {list(request.results)}",
            )
    return requests


def _read_again(function: ir.Operation) -> dict[Any, list[Any]]:
    """Operations that a recurrence computes again where it reads them, and these recurrences."""
    found: dict[Any, list[Any]] = {}
    for op in walk(function):
        for operand in op.operands if op.name in RECURRENCES else ():
            for cheap in cheap_chain(operand):
                found.setdefault(cheap, []).append(op)
    return found


def have_same_sizes(value: ir.Value, x: ir.Value, row_sizes: RowSizes) -> bool:
    """True if two values of one type have the same shape.

    Only what the first is made from is looked at: its checks have passed when it is computed.

    Args:
        value: of the graph stage, in the same block as x.
        x: another value.
        row_sizes: index values for the rows of the outputs of each scan, by its first result and their name.
    """
    return all(
        size is not None or _leads_to((value, axis), (x, axis), row_sizes)
        for axis, size in enumerate(static_shape(x))
    )


def _leads_to(start: Dimension, goal: Dimension, row_sizes: RowSizes) -> bool:
    pending, seen = [start], {start}
    while pending:
        size = pending.pop()
        if size == goal:
            return True
        new = [equal for equal in _equal(size, row_sizes) if equal not in seen]
        seen.update(new)
        pending += new
    return False


def _equal(size: Dimension, row_sizes: RowSizes) -> Iterator[Dimension]:
    """Sizes that a size is made from without a change."""
    value, axis = size
    op = value.owner
    if isinstance(op, ir.Block):
        return
    if axis < 0:
        known = build.constant_value(op.operands[1]) if op.name == "tensor.dim" else None
        if known is not None:
            yield op.operands[0], known
    elif is_trace(op):
        yield from _of_trace(op, axis, row_sizes)
    else:
        yield from as_long(op, axis)


def _of_trace(op: ir.Operation, axis: int, row_sizes: RowSizes) -> Iterator[Dimension]:
    view, declaration = traced(op)
    if axis == 0:
        if retention(declaration)[0] == "steps" and view.stop is None:
            yield view.steps, -1
    elif is_state(declaration):
        yield declaration.operands[0], axis
    else:
        yield row_sizes[op.operands[0]][name_of(op)][axis - 1], -1
