# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions made of loops take pointers and sizes in the place of descriptors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from graphc.ir.build import constant_value
from graphc.ir.helpers import callee_of
from graphc.ir.walk import LOOPS, definition, signature_of, symbol_of
from graphc.library.markers import END, PLACES
from graphc.passes import Pass
from graphc.passes.llvm._code import struct_of
from graphc_dialects._mlir import ir

# Positions in a descriptor, as `llvm.extractvalue` takes them: the pointer to the elements, and the offset.
# After those, (3, i) is size i and (4, i) stride i.
_Position = tuple[int, ...]
_POINTER: _Position = (1,)
_OFFSET: _Position = (2,)
_SIZE: _Position = (3, 0)
# What is passed for an argument; None if it is not a buffer.
_Parts = tuple[_Position, ...] | None
# Operations that read the pointer of their operand, and make their own sizes and strides.
_READ_POINTER = frozenset(
    {"memref.view", "memref.reinterpret_cast", "memref.extract_aligned_pointer_as_index"}
)
_ACCESSES = frozenset({"memref.load", "memref.store"})


class UnpackArguments(Pass):
    """Makes `@graphc_part_<n>`, `@graphc_body_<n>` and `@graphc_split_<n>` take only what is read of memory.

    Upstream passes a descriptor for each buffer: two pointers, an offset, and all sizes and strides. Loops
    capture dozens of buffers (see outline-loops and parallel-loops), and hardly read more than the pointer
    to the elements. After this pass an argument is that pointer, followed by the sizes and strides that an
    operation of the function reads. Buffers whose layout is not the identity, or that operations use which
    the pass does not know, keep their offset and all sizes and strides.

    `@graphc_end` (see plan-memory) gets the pointer and the bytes.

    The list `graphc.buffers` (see kernel-abi, which runs before) names the new positions of the pointers.
    """

    stage = "llvm"

    def run(self, module: ir.Module) -> None:
        operations = [op.operation for op in module.body.operations]
        functions = {symbol_of(op): op for op in operations if op.name == "func.func"}
        rewrite = _Rewrite()
        plans: dict[str, list[_Parts]] = {}
        for name, op in functions.items():
            if "graphc.part" in op.attributes:
                plans[name] = rewrite.define(op)
            elif name.startswith("graphc_body_"):
                number = name.removeprefix("graphc_body_")
                names = (f"graphc_split_{number}", f"graphc_split_products_{number}")
                split = next(filter(functions.__contains__, names), None)
                if split is not None:
                    # Three arguments before what is captured here, four there: none is a buffer.
                    plans[split] = [None, *rewrite.define(op)]
                    rewrite.declare(functions[split], plans[split])
        if END in functions:
            plans[END] = [(_POINTER, _SIZE)]
            rewrite.declare(functions[END], plans[END])
        # Loops that were made functions call none of these.
        callers = [op for name, op in functions.items() if plans and not name.startswith(LOOPS)]
        for call in [call for function in callers for call in _calls(function)]:
            parts = plans.get(callee_of(call))
            if parts is not None:
                rewrite.call(call, parts)
        self.count("functions", len(plans))


def _calls(function: ir.Operation) -> list[ir.Operation]:
    operations = [op.operation for block in function.regions[0].blocks for op in block.operations]
    return [op for op in operations if op.name == "func.call"]


class _Buffer(NamedTuple):
    """Values that all memrefs of a type share.

    Attributes:
        struct: the type of its descriptor.
        rank: of the memref.
        strides: positions of those that an access reads, as the type does not tell them.
        is_plain: whether the layout is the identity.
    """

    struct: Any
    rank: int
    strides: tuple[_Position, ...]
    is_plain: bool


class _Rewrite:
    """Rewrites functions and calls."""

    def __init__(self) -> None:
        self._pointer = ir.Type.parse("!llvm.ptr")
        self._i64 = ir.IntegerType.get_signless(64)
        self._buffers: dict[ir.Type, _Buffer | None] = {}
        # In the functions with calls: the descriptors of buffers, and what was read of them.
        self._descriptors: dict[ir.Value, ir.Value] = {}
        self._read: dict[tuple[object, _Position], ir.Value] = {}
        self._words: dict[ir.Value, ir.Value] = {}

    def define(self, function: ir.Operation) -> list[_Parts]:
        """Rewrites the arguments of a function; returns what each of the old ones has become."""
        entry = function.regions[0].blocks[0]
        old = list(entry.arguments)
        plan: list[_Parts] = []
        pointers = []
        # Bindings append arguments only at the end.
        with ir.InsertionPoint.at_block_begin(entry), function.location as location:
            for argument in old:
                buffer = self._buffer(argument.type)
                parts = None if buffer is None else _needed(argument, buffer)
                plan.append(parts)
                new = [entry.add_argument(kind, location) for kind in self._types(argument.type, parts)]
                if buffer is None or parts is None:
                    argument.replace_all_uses_with(new[0])
                    continue
                pointers.append(len(entry.arguments) - len(old) - len(new))
                value = struct_of(buffer.struct, zip(parts, new, strict=True))
                argument.replace_all_uses_with(_cast(value, argument.type))
        for _ in old:
            entry.erase_argument(0)
        self.declare(function, plan)
        function.attributes["graphc.buffers"] = ir.DenseI32ArrayAttr.get(pointers)
        return plan

    def call(self, call: ir.Operation, plan: Sequence[_Parts]) -> None:
        """Rewrites a call."""
        operands: list[ir.Value] = []
        with call.location:
            for value, parts in zip(call.operands, plan, strict=True):
                if parts is None:
                    operands.append(value)
                else:
                    operands += [self._part(value, position) for position in parts]
            attributes = {"callee": call.attributes["callee"]}
            ir.Operation.create("func.call", [], operands, attributes, ip=ir.InsertionPoint(call))
        call.erase()

    def declare(self, function: ir.Operation, plan: Sequence[_Parts]) -> None:
        """Rewrites the type of a function."""
        old = signature_of(function)
        inputs = [
            new for kind, parts in zip(old.inputs, plan, strict=True) for new in self._types(kind, parts)
        ]
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, old.results))

    def _types(self, kind: ir.Type, parts: _Parts) -> list[ir.Type]:
        if parts is None:
            return [kind]
        return [self._pointer if position == _POINTER else self._i64 for position in parts]

    def _part(self, value: ir.Value, position: _Position) -> ir.Value:
        """A part of a buffer's descriptor, read once, where the buffer is made."""
        found = self._read.get((value, position))
        if found is not None:
            return found
        if position == _SIZE and self._is_place(value):
            found = self._read[value, position] = self._word(value.owner.operands[-1])
            return found
        descriptor = self._descriptors.get(value)
        if descriptor is None:
            with self._after_definition(value):
                descriptor = _cast(value, self._buffer(value.type).struct)  # type: ignore[union-attr]
            self._descriptors[value] = descriptor
        kind = self._pointer if position == _POINTER else self._i64
        with ir.InsertionPoint.after(descriptor.owner):
            attributes = {"position": ir.DenseI64ArrayAttr.get(list(position))}
            found = ir.Operation.create("llvm.extractvalue", [kind], [descriptor], attributes).result
        self._read[value, position] = found
        return found

    def _is_place(self, value: ir.Value) -> bool:
        """True if a buffer is the result of a function that is told its bytes."""
        op = definition(value, "func.call")
        return op is not None and callee_of(op) in PLACES

    def _word(self, index: ir.Value) -> ir.Value:
        """An index as the integer that it will be."""
        found = self._words.get(index)
        if found is None:
            with self._after_definition(index):
                found = ir.Operation.create("arith.index_cast", [self._i64], [index]).result
            self._words[index] = found
        return found

    def _after_definition(self, value: ir.Value) -> ir.InsertionPoint:
        """The insertion point after what makes a value."""
        owner = value.owner
        is_argument = isinstance(owner, ir.Block)
        return ir.InsertionPoint.at_block_begin(owner) if is_argument else ir.InsertionPoint.after(owner)

    def _buffer(self, kind: ir.Type) -> _Buffer | None:
        """About a type; None if it is not that of a buffer."""
        if kind not in self._buffers:
            self._buffers[kind] = self._describe(kind)
        return self._buffers[kind]

    def _describe(self, kind: ir.Type) -> _Buffer | None:
        if not isinstance(kind, ir.MemRefType):
            return None
        memref = ir.MemRefType(kind)
        rank = memref.rank
        arrays = f", array<{rank} x i64>, array<{rank} x i64>" if rank else ""
        struct = ir.Type.parse(f"!llvm.struct<(ptr, ptr, i64{arrays})>")
        is_plain = memref.layout == ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank))
        # Those of the identity are products of sizes; the last one is 1.
        known = [all(size >= 0 for size in memref.shape[i + 1 :]) for i in range(rank)]
        strides = tuple((4, i) for i in range(rank) if not known[i])
        return _Buffer(struct, rank, strides, is_plain)


def _cast(value: ir.Value, kind: ir.Type) -> ir.Value:
    return ir.Operation.create("builtin.unrealized_conversion_cast", [kind], [value]).result


def _needed(argument: ir.Value, buffer: _Buffer) -> tuple[_Position, ...]:
    """The parts of a buffer's descriptor that a function reads, in their order there."""
    everything = [_OFFSET, *((field, i) for field in (3, 4) for i in range(buffer.rank))]
    needed = {_POINTER}
    for use in argument.uses:
        read = _read(use, buffer) if buffer.is_plain else None
        needed.update(everything if read is None else read)
    return tuple(sorted(needed))


def _read(use: Any, buffer: _Buffer) -> Iterable[_Position] | None:
    """Parts of an operand's descriptor that an operation reads besides the pointer; None if that is not
    known.
    """
    op = use.owner
    name = op.name
    if name in _ACCESSES and use.operand_number == (name == "memref.store"):
        return buffer.strides
    if name in _READ_POINTER:
        return ()
    if name == "memref.dim":
        axis = constant_value(op.operands[1])
        return None if axis is None else ((3, axis),)
    if name == "memref.extract_strided_metadata":
        rank = buffer.rank
        places = [(), _OFFSET, *((field, i) for field in (3, 4) for i in range(rank))]
        uses = zip(places, op.results, strict=True)
        return [place for place, result in uses if place and any(True for _ in result.uses)]
    return None
