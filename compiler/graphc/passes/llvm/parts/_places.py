# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Places of buffers that only nests read: one loop over a table puts their addresses into the frame.

A kernel with hundreds of nests has hundreds of buffers. To find the place of one, put it into the frame and
end its lifetime takes LLVM a fifth of a millisecond, a row of a table nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphc.ir.helpers import callee_of
from graphc.library.memory.access import END, END_IN_FRAME, PLACE_ALL, PLANNED
from graphc.passes.llvm.parts._inner_loops import constant_of
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# With fewer, the loop is not worth it.
_FEWEST = 4
_KINDS = {PLACE_ALL: "!llvm.ptr, i64, !llvm.ptr, i64", END_IN_FRAME: "!llvm.ptr, i64, i64"}


@record(frozen=True)
class _Buffer:
    """A buffer that nests alone read.

    Attributes:
        place: the call that finds its place.
        read: the operation that takes the address out of the result.
        store: puts it into the frame.
        ends: the calls that end its lifetime.
        slot: the word of the frame.
        number: of the row of the workspace's table.
    """

    place: ir.Operation
    read: ir.Operation
    store: ir.Operation
    ends: tuple[ir.Operation, ...]
    slot: int
    number: int


def place_together(module: ir.Module, main: ir.Operation, slots: Mapping[object, int], to: ir.Value) -> None:
    """Finds the places of buffers at once, which are in a workspace with a table.

    That is done where the first of them was found: the workspace has memory for all, and the frame a word for
    each.

    Args:
        module: gains a table.
        main: the kernel, which has no loops.
        slots: what the words of the frame are for.
        to: the frame.
    """
    for block in main.regions[0].blocks:
        by_workspace: dict[ir.Value, list[_Buffer]] = {}
        for op in block.operations:
            buffer = _buffer(op.operation, slots)
            if buffer is not None:
                by_workspace.setdefault(buffer.place.operands[0], []).append(buffer)
        for workspace, buffers in by_workspace.items():
            if len(buffers) >= _FEWEST:
                _place(module, workspace, buffers, to)


def _buffer(op: ir.Operation, slots: Mapping[object, int]) -> _Buffer | None:
    if op.name != "llvm.call" or callee_of(op) != PLANNED:
        return None
    number, reads = constant_of(op.operands[1]), [use.owner.operation for use in op.result.uses]
    if number is None or len(reads) != 1 or reads[0].name != "llvm.extractvalue":
        return None
    slot = slots.get(reads[0].result)
    stores, ends = [], []
    for use in reads[0].result.uses:
        user = use.owner.operation
        if user.name == "llvm.store" and use.operand_number == 0 and user.block == op.block:
            stores.append(user)
        elif user.name == "llvm.call" and callee_of(user) == END:
            ends.append(user)
        else:
            return None
    if slot is None or len(stores) != 1:
        return None
    return _Buffer(op, reads[0], stores[0], tuple(ends), slot, number)


def _place(module: ir.Module, workspace: ir.Value, buffers: Sequence[_Buffer], to: ir.Value) -> None:
    pointer, i64 = ir.Type.parse("!llvm.ptr"), ir.IntegerType.get_signless(64)
    number = sum(1 for op in module.body.operations if op.operation.name == "llvm.mlir.global")
    name, count = f"graphc_places_{number}", 2 * len(buffers)
    words = ", ".join(f"{buffer.slot}, {buffer.number}" for buffer in buffers)
    before = ir.InsertionPoint.at_block_begin(module.body)
    before.insert(
        ir.Operation.parse(
            f"llvm.mlir.global private unnamed_addr constant @{name}(dense<[{words}]> : tensor<{count}xi32>)"
            f" : !llvm.array<{count} x i32>"
        )
    )
    for callee, kinds in _KINDS.items():
        _declare(module, callee, kinds)
    first = buffers[0].place
    with first.location, ir.InsertionPoint(first):
        attributes = {"global_name": ir.FlatSymbolRefAttr.get(name)}
        table = ir.Operation.create("llvm.mlir.addressof", [pointer], attributes=attributes).result
        rows = _number(i64, len(buffers))
        _call(PLACE_ALL, [to, workspace, table, rows])
    for buffer in buffers:
        for end in buffer.ends:
            with end.location, ir.InsertionPoint(end):
                _call(END_IN_FRAME, [to, _number(i64, buffer.slot), end.operands[1]])
            end.erase()
        address = buffer.store.operands[1].owner
        for op in (buffer.store, address, buffer.read, buffer.place):
            op.operation.erase()


def _number(kind: ir.Type, value: int) -> ir.Value:
    attributes = {"value": ir.IntegerAttr.get(kind, value)}
    return ir.Operation.create("llvm.mlir.constant", [kind], attributes=attributes).result


def _call(name: str, operands: Sequence[ir.Value]) -> None:
    attributes = {
        "callee": ir.FlatSymbolRefAttr.get(name),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
    }
    ir.Operation.create("llvm.call", [], list(operands), attributes)


def _declare(module: ir.Module, name: str, kinds: str) -> None:
    """Declares a function, once."""
    table = ir.SymbolTable(module.operation)
    if name not in table:
        ir.InsertionPoint.at_block_begin(module.body).insert(
            ir.Operation.parse(f"llvm.func @{name}({kinds})")
        )
