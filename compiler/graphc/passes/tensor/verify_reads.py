# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Refuses a write to memory of which the older contents are read later.

It refuses only what is certain to be wrong in some call: two parts have an element in common where they begin
at the same one, where one was cut out of the other, or where numbers say so. It does not find parts of
unknown sizes that overlap otherwise, single elements of them, nor reads and writes of one kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from graphc.ir.build import predicate_of
from graphc.ir.diagnostics import fail
from graphc.ir.walk import (
    ancestors,
    block_of,
    blocks_of,
    definition,
    functions,
    incoming,
    is_inside,
    is_used,
    walk,
)
from graphc.passes import Pass
from graphc.passes.tensor._regions import (
    LOOPS,
    VIEWS,
    Region,
    Regions,
    Slot,
    body_of,
    end_of,
    slot_of,
    start_of,
)
from graphc_dialects._mlir import ir
from graphc_dialects.check import raises
from graphc_dialects.memory import is_address, is_written
from graphc_runtime.record import record

# Their result is another name of the first operand, which bufferization reads where the result is read.
_NAMES = (
    "tensor.cast",
    "tensor.extract_slice",
    "tensor.collapse_shape",
    "tensor.expand_shape",
    "tensor.reshape",
)
_SEEN = (*VIEWS, "memref.cast", "memref.reinterpret_cast", "memref.memory_space_cast")
_SIZES = ("memref.dim", "tensor.dim", "memref.rank", "tensor.rank", "memref.extract_strided_metadata")
# They give their second operand with the first one put into it.
_INSERTS = ("tensor.insert", "tensor.insert_slice")
_WRITTEN = {"bufferization.materialize_in_destination": 1, "memref.copy": 1, "memref.store": 1}


@record(frozen=True)
class _Place:
    """A place where a tensor may lie.

    Attributes:
        region: of memory. base: the `to_tensor` that began it, or the tensor that was first computed there.
        is_writable: whether what is computed from it may be computed there.
    """

    region: Region
    base: ir.Value | ir.Operation
    is_writable: bool = True


@record(frozen=True)
class _Write:
    """A write.

    Attributes:
        op: the operation. region: what it writes. base: as in `_Place`, if bufferization knows that
            it writes there. value: the tensor that is put there, if it is one.
    """

    op: ir.Operation
    region: Region
    base: ir.Value | ir.Operation | None = None
    value: ir.Value | None = None


@record(frozen=True)
class _Order:
    """The ways in which a write comes before a read.

    Attributes:
        is_first: in the same iteration of all loops around both, or at the same time.
        loops: in an earlier iteration of one of these.
    """

    is_first: bool
    loops: tuple[ir.Operation, ...] = ()


@record()
class VerifyReads(Pass):
    """Checks that a tensor that lies in memory is not read after something else was written there.

    `bufferization.to_tensor` says what memory holds *now*, and bufferization reads it wherever the tensor is
    read, on the promise (`restrict`) that nobody changes it: loops over rows, updates, kernels, donated
    arguments and joined parts must keep it. This pass tests the promise, for tensors that are read from
    memory and for those that are computed in memory that was given to them. It knows nothing of why they are
    there: order, memory and positions are those of the operations.

    An error says which write comes between a tensor and its reader. The pass refuses only what is certain to
    go wrong in some run: of two parts of a buffer that it cannot tell apart (`_regions.py`), or of sizes that
    may be zero, it says nothing. It also refuses a row of a loop that is written before the loop checks the
    row's size.

    It runs in tests, with the setting `verify_memory`: after the conversion, and before bufferization, when
    empty tensors have become destinations.

    Source: the conflicts of MLIR's One-Shot Bufferize, and its contract for `to_tensor`.
    """

    stage = "tensor"

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            checked = _Function(function)
            checked.verify()
            self.count("tensors in memory", checked.tensors)


class _Function:
    """The check of one function."""

    def __init__(self, function: ir.Operation) -> None:
        self.tensors = 0
        self._operations = walk(function)
        self._places: dict[ir.Value, list[_Place]] = {}
        # They come before what their regions contain.
        self._positions = {op: number for number, op in enumerate(self._operations)}
        self._checks: dict[ir.Operation, list[ir.Operation]] = {}
        for op in self._operations:
            if raises(op) and op.parent.name in LOOPS:
                self._checks.setdefault(op.parent.operation, []).append(op)
        self._regions = Regions(
            lambda tensor: [place.region for place in self.places(tensor)], self._positions
        )

    def verify(self) -> None:
        """Raises PassError at the first write that changes what is read later."""
        written: dict[ir.Value | Slot, list[_Write]] = {}
        for op in self._operations:
            for write in self._writes(op):
                self._verify_size(write)
                for root in self._regions.roots(write.region):
                    written.setdefault(root, []).append(write)
        if not written:
            return
        for op in self._operations:
            for tensor in [*op.results, *(a for b in blocks_of(op) for a in b.arguments)]:
                if isinstance(tensor.type, ir.RankedTensorType) and op.name not in _NAMES:
                    self._verify(tensor, written)

    def _verify(self, tensor: ir.Value, written: dict[ir.Value | Slot, list[_Write]]) -> None:
        places = self.places(tensor)
        roots = [root for place in places for root in self._regions.roots(place.region)]
        writes = {id(w): w for root in roots for w in written.get(root, ())}
        bases = [place.base for place in places]
        others = [w for w in writes.values() if w.base is None or all(w.base != base for base in bases)]
        if not others:
            return
        self.tensors += 1
        for name, reader, number in self._reads(tensor):
            read = self._read(name, reader)
            for write in others:
                if write.value is not None and _is_name_of(write.value, tensor):
                    continue
                order = self._order(tensor, write.op, reader)
                if order is not None and any(self._meet(r, write, reader, number, order) for r in read):
                    _refuse(tensor, write.op, reader)

    def _read(self, name: ir.Value, reader: ir.Operation) -> list[Region]:
        """The regions that an operation reads of a tensor or memref."""
        if not isinstance(name.type, ir.RankedTensorType):
            return self._regions.of(name)
        found = [place.region for place in self.places(name)]
        if reader.name == "tensor.extract":
            return [self._regions.element(reader, name, region) for region in found]
        return found

    def _meet(self, read: Region, write: _Write, reader: ir.Operation, number: int, order: _Order) -> bool:
        """True if a write changes what is read."""
        for loop in order.loops:
            if any(
                self._regions.meet(read, x) for x in self._regions.in_other_iterations(write.region, loop)
            ):
                return True
        if not order.is_first or not self._regions.meet(read, write.region):
            return False
        return write.op != reader or not _may_write_what_it_reads(reader, number)

    def _verify_size(self, write: _Write) -> None:
        """Raises PassError if a loop checks the size of a row after it has written the row."""
        sizes = [size for size, _ in write.region.dims]
        for loop in (x for x in ancestors(write.op) if x in self._checks):
            root, written = write.region.root, _in_block(write.op, body_of(loop))
            is_inner = root.loop != loop if isinstance(root, Slot) else is_inside(root, loop)
            if is_inner or written is None:
                continue
            for check in self._checks[loop]:
                test = check.operands[0].owner
                if self._positions[check] < self._positions[written] or not _is_equality(test):
                    continue
                given, wanted = map(self._regions.value, test.operands)
                if given != wanted and (given in sizes or wanted in sizes):
                    fail(write.op, f"'{write.op.name}' writes a row whose size {check.location} checks later")

    # -- where tensors lie -----------------------------------------------------------------------------------

    def places(self, tensor: ir.Value) -> list[_Place]:
        """The places where a tensor may lie."""
        if tensor not in self._places:
            self._places[tensor] = []  # for what a loop hands back to itself
            self._places[tensor] = self._find(tensor)
        return self._places[tensor]

    def _find(self, tensor: ir.Value) -> list[_Place]:
        own = [_Place(Region(tensor, None, (), None, True), tensor)]
        if isinstance(tensor.owner, ir.Block):
            loop = tensor.owner.owner.operation
            return self._carried(tensor, loop) if loop.name in LOOPS else own
        op = tensor.owner.operation
        if op.name == "bufferization.to_tensor":
            regions = self._regions.of(op.operands[0])
            return [_Place(region, op, "writable" in op.attributes) for region in regions]
        if op.name in _NAMES:
            found = self.places(op.operands[0])
            return [replace(place, region=self._regions.seen(op, place.region)) for place in found]
        if op.name in LOOPS:
            return self._carried(tensor, op)
        if op.name in ("scf.if", "arith.select"):
            return [place for x in incoming(tensor) for place in self.places(x)]
        start = _start(op, tensor)
        return (
            [place for place in self.places(start) if place.is_writable] or own if start is not None else own
        )

    def _carried(self, tensor: ir.Value, loop: ir.Operation) -> list[_Place]:
        slot = slot_of(tensor)
        own = [_Place(Region(tensor, None, (), None, True), tensor)]
        if slot < 0:
            return own
        found = self.places(start_of(loop, slot))
        # What is updated in the loop is copied before it, unless it may be written where it is.
        end = end_of(loop, slot)
        is_updated = not isinstance(end.owner, ir.Block) or slot_of(end) != slot
        return [place for place in found if place.is_writable or not is_updated] or own

    # -- events ----------------------------------------------------------------------------------------------

    def _writes(self, op: ir.Operation) -> Iterator[_Write]:
        name = op.name
        if name in _WRITTEN:
            target = op.operands[_WRITTEN[name]]
            value = op.operands[0] if name.startswith("bufferization") else None
            for region in self._regions.of(target):
                yield _Write(
                    op,
                    region if name != "memref.store" else self._regions.element(op, target, region),
                    None,
                    value,
                )
        elif is_written(op):
            for use in op.results[0].uses:
                for region in self._regions.of(op.operands[0]):
                    yield _Write(use.owner.operation, region)
        elif _computes(op) or name in _INSERTS:
            for target in _outputs_of(op) if _computes(op) else [op.operands[1]]:
                if isinstance(target.type, ir.RankedTensorType):
                    for place in self.places(target):
                        if place.is_writable:
                            yield _Write(op, place.region, place.base)
                else:
                    for region in self._regions.of(target):
                        yield _Write(op, region)

    def _reads(self, tensor: ir.Value) -> Iterator[tuple[ir.Value, ir.Operation, int]]:
        """The readers of a tensor: the name that each reads, the operation, the number of the operand."""
        pending, seen = [tensor], {tensor}
        while pending:
            value = pending.pop()
            for use in value.uses:
                op, number = use.owner.operation, use.operand_number
                name = op.name
                names = list(op.results) if name in _NAMES or name in _SEEN else []
                if name == "bufferization.to_buffer":
                    if "read_only" not in op.attributes:
                        continue  # who writes there may read what it writes
                    names = list(op.results)
                elif is_address(op):
                    yield from ((value, call.owner.operation, number) for call in op.results[0].uses)
                    continue
                elif name in _SIZES or _is_unread(op, number):
                    continue
                elif not names:
                    yield value, op, number
                fresh = [x for x in names if x not in seen]
                seen.update(fresh)
                pending += fresh

    # -- order -----------------------------------------------------------------------------------------------

    def _order(self, tensor: ir.Value, write: ir.Operation, read: ir.Operation) -> _Order | None:
        """The ways in which a write comes after a tensor and before a read of it; None if there is none."""
        block, made = block_of(tensor), definition(tensor)
        start = -1 if made is None else self._positions[made]
        writer, reader = _in_block(write, block), _in_block(read, block)
        if writer is None or reader is None or self._positions[writer] < start:
            return None
        if self._positions[writer] == start and write != read:
            return None
        loops: list[ir.Operation] = []
        while writer == reader and write != writer and read != reader:
            if writer.name in LOOPS:
                loops.append(writer)
            inner = next(b for b in blocks_of(writer) if _in_block(write, b) is not None)
            writer, reader = _in_block(write, inner), _in_block(read, inner)
            if reader is None or writer is None:  # the other branch
                return _Order(False, tuple(loops)) if loops else None
        is_first = write == read or self._positions[writer] < self._positions[reader]
        return _Order(is_first, tuple(loops)) if is_first or loops else None


def _is_equality(test: ir.Block | ir.Operation) -> bool:
    """True if a condition is that two integers are equal."""
    return not isinstance(test, ir.Block) and test.name == "arith.cmpi" and not predicate_of(test)


def _computes(op: ir.Operation) -> bool:
    """True if an operation is one of linalg's that has inputs and outputs."""
    return bool(op.name.startswith("linalg.")) and op.name not in ("linalg.yield", "linalg.index")


def _outputs_of(op: ir.Operation) -> list[ir.Value]:
    """The operands of a `linalg` operation for its results."""
    if "operandSegmentSizes" not in op.attributes:
        return list(op.operands)[-1:]
    return list(op.operands)[ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])[0] :]


def _in_block(op: ir.Operation, block: ir.Block) -> ir.Operation | None:
    """The operation of a block that an operation is, or is in."""
    return next((x for x in ancestors(op) if x.block == block), None)


def _is_name_of(name: ir.Value, tensor: ir.Value) -> bool:
    while name != tensor and (op := definition(name, *_NAMES)) is not None:
        name = op.operands[0]
    return bool(name == tensor)


def _start(op: ir.Operation, tensor: ir.Value) -> ir.Value | None:
    """The tensor in whose memory a result may be computed."""
    if _computes(op):
        return _outputs_of(op)[ir.OpResult(tensor).result_number]
    return op.operands[1] if op.name in _INSERTS else None


def _is_unread(op: ir.Operation, number: int) -> bool:
    """True if an operand only says where to compute."""
    if op.name == "linalg.fill":
        return number == 1
    if op.name != "linalg.generic" or number < len(op.operands) - len(_outputs_of(op)):
        return False
    return not is_used(op.regions[0].blocks[0].arguments[number])


def _may_write_what_it_reads(op: ir.Operation, number: int) -> bool:
    """True if an operation may read each element right before it writes it."""
    if op.name != "linalg.generic":
        return True
    maps = list(op.attributes["indexing_maps"])
    is_reduction = "reduction" in str(op.attributes["iterator_types"])
    return not is_reduction and all(maps[number] == x for x in maps[len(maps) - len(_outputs_of(op)) :])


def _refuse(tensor: ir.Value, write: ir.Operation, reader: ir.Operation) -> None:
    made = definition(tensor) or tensor.owner.owner
    fail(
        write,
        f"'{write.name}' overwrites a value that is read later: what '{made.name}' at {made.location} placed "
        f"there is read by '{reader.name}' at {reader.location}; one of them needs memory of its own",
    )
