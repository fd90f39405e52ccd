# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise values that one nest of loops alone reads, element by element, are computed there.

An update (`set_subtensor`, `inc_subtensor`) stores at computed positions, so it is no member of a cluster but
a nest of loops of its own. Where the stored value is elementwise, the array of it would be written and read
once for nothing. Memory is known here, after bufferization: an expression moves only past what does not write
what it reads, into a nest that does not either. So an array that is updated from its own elements, as a state
of a loop may be, still has the new ones in memory first.
"""

from __future__ import annotations

from graphc.ir import build
from graphc.ir.lifetimes import root_of
from graphc.ir.walk import copy_with, definition, is_defined_in, is_parameter, walk
from graphc.lowering.loops import APART, CHEAP
from graphc_dialects._mlir import ir
from graphc_dialects.check import raises

# They access no memory.
_PURE = ("arith.", "math.", "complex.")
_DESCRIBE = ("memref.alloc", "memref.dim", "memref.load", "scf.yield", "linalg.index", "linalg.yield")
# Of these no two overlap, nor does an argument of a function overlap another one.
_ORIGINS = ("memref.alloc", "memref.alloca", "memref.get_global")
# Views that join axes, or split them; those of one element are of no account.
_AXES = ("memref.expand_shape", "memref.collapse_shape")
# Operations that one is moved past: a long function has thousands.
_FAR = 200


class Producers:
    """Moves expressions in the blocks of a module."""

    def __init__(self) -> None:
        self._blocks: dict[ir.Block, tuple[list[ir.Operation | None], dict[ir.Operation, int]]] = {}

    def compute_where_read(self, generic: ir.Operation) -> bool:
        """Moves the expression of a generic into the nest of loops that alone reads its result.

        Args:
            generic: on buffers. If it moves, it is erased, and so is the memory of its result.

        Returns:
            Whether it moved.
        """
        inputs, outputs = list(ir.DenseI32ArrayAttr(generic.attributes["operandSegmentSizes"]))
        if outputs != 1:
            return False
        memory, block = generic.operands[inputs], generic.regions[0].blocks[0]
        load = _only_load(memory, generic)
        if load is None or len(list(block.arguments[inputs].uses)) or not _is_elementwise(generic):
            return False
        position = _position(load, memory)
        loops = [] if position is None else _loops_around(load, position, generic.block)
        if position is None or not loops or not self._may_move(generic, loops[-1]):
            return False
        if not _stays_fast(generic, loops[0]):
            return False
        view = load.operands[0]
        _move(generic, load, position)
        while view != memory:
            made, view = view.owner.operation, view.owner.operands[0]
            self._erase(made)
        self._erase(generic)
        self._erase(memory.owner.operation)
        return True

    def _erase(self, op: ir.Operation) -> None:
        operations, positions = self._known(op.block)
        operations[positions.pop(op)] = None
        op.erase()

    def _known(self, block: ir.Block) -> tuple[list[ir.Operation | None], dict[ir.Operation, int]]:
        """The operations of a block in order, None for those that are gone, and their positions."""
        if block not in self._blocks:
            found = [op.operation for op in block.operations]
            self._blocks[block] = list(found), {op: number for number, op in enumerate(found)}
        return self._blocks[block]

    def _may_move(self, generic: ir.Operation, nest: ir.Operation) -> bool:
        """True if nothing writes what a generic reads, between it and the nest, nor in the nest."""
        read = {root_of(x) for x in list(generic.operands)[:-1]}
        read |= {root_of(op.operands[0]) for op in walk(generic) if op.name == "memref.load"}
        operations, positions = self._known(generic.block)
        first, last = positions[generic] + 1, positions[nest]
        if last - first > _FAR or not all(map(_is_origin, read)):
            return False
        for op in operations[first : last + 1]:
            for inner in () if op is None else (op, *walk(op)):
                written = _written(inner)
                if written is None or not all(map(_is_origin, written)) or not read.isdisjoint(written):
                    return False
        return True


def _only_load(memory: ir.Value, generic: ir.Operation) -> ir.Operation | None:
    """The only operation besides a generic that accesses an allocation, if it loads an element; views with
    other axes are looked through.
    """
    if isinstance(memory.owner, ir.Block) or memory.owner.name != "memref.alloc":
        return None
    others = [use.owner.operation for use in memory.uses if use.owner.operation != generic]
    while len(others) == 1 and others[0].name in _AXES:
        others = [use.owner.operation for use in others[0].results[0].uses]
    return others[0] if len(others) == 1 and others[0].name == "memref.load" else None


def _position(load: ir.Operation, memory: ir.Value) -> list[ir.Value] | None:
    """The indices in an allocation of what a load reads; None if a view joins or splits axes."""
    buffer, *indices = load.operands
    while buffer != memory:
        view = buffer.owner.operation
        is_wider = view.name == "memref.expand_shape"
        shape = list((buffer if is_wider else view.operands[0]).type.shape)
        found: list[ir.Value] = []
        with ir.InsertionPoint(load), load.location:
            for number, axes in enumerate(_groups(view)):
                long = [axis for axis in axes if shape[axis] != 1]
                if len(long) > 1:
                    return None
                if is_wider:
                    found.append(indices[(long or axes)[0]])
                else:
                    found += [indices[number] if axis in long else build.const_index(0) for axis in axes]
        buffer, indices = view.operands[0], found
    return indices


def _groups(view: ir.Operation) -> list[list[int]]:
    return [[int(axis) for axis in group] for group in ir.ArrayAttr(view.attributes["reassociation"])]


def _is_elementwise(generic: ir.Operation) -> bool:
    """True if each element of the result is computed for itself, in an order that does not matter."""
    maps = [ir.AffineMapAttr(each).value for each in generic.attributes["indexing_maps"]]
    kinds = [str(kind) for kind in generic.attributes["iterator_types"]]
    return all("parallel" in kind for kind in kinds) and maps[-1] == ir.AffineMap.get_identity(len(kinds))


def _loops_around(load: ir.Operation, position: list[ir.Value], block: ir.Block) -> list[ir.Operation]:
    """The loops in a block around a load, the innermost one first, of which each position reads an element of
    its own; none if some read one twice.
    """
    loops: list[ir.Operation] = []
    op = load
    while op.block != block:
        op = op.parent.operation
        if op.name != "scf.for":
            return []
        loops.append(op)
    variables = [loop.regions[0].blocks[0].arguments[0] for loop in loops]
    return loops if all(position.count(variable) == 1 for variable in variables) else []


def _is_origin(memory: ir.Value) -> bool:
    return is_parameter(memory) or definition(memory, *_ORIGINS) is not None


def _written(op: ir.Operation) -> list[ir.Value] | None:
    """The origins of the memory that an operation itself writes; None if it is not known."""
    if op.name == "memref.store":
        return [root_of(op.operands[1])]
    if op.name == "memref.copy":
        return [root_of(op.operands[1])]
    if op.name == "linalg.generic":
        inputs = next(iter(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])))
        return [root_of(x) for x in list(op.operands)[inputs:]]
    if op.name == "linalg.fill":
        return [root_of(op.operands[1])]
    is_known = op.name.startswith(_PURE) or op.name in (*_DESCRIBE, "scf.for", "scf.if") or raises(op)
    return [] if is_known or (len(op.results) and root_of(op.results[0]) != op.results[0]) else None


def _stays_fast(generic: ir.Operation, nest: ir.Operation) -> bool:
    """True if what is computed is cheap, or is stored side by side: else the nest is not vectorised."""
    body = [op.name for op in walk(generic)]
    if not any(name.startswith(("math.", "complex.")) and name not in CHEAP for name in body):
        return True
    variable = nest.regions[0].blocks[0].arguments[0]
    stores = [list(op.operands)[2:] for op in walk(nest) if op.name == "memref.store"]
    if not stores or any(not where for where in stores):
        return False
    if all(_is_next(where[-1], variable) for where in stores):
        return True
    is_apart = all(x == variable or not is_defined_in(x, variable.owner) for where in stores for x in where)
    if is_apart and all(variable in where for where in stores):
        nest.attributes[APART] = ir.UnitAttr.get()
    return is_apart


def _is_next(index: ir.Value, variable: ir.Value) -> bool:
    """True if an index is the variable of a loop, or that plus something that is the same in the loop."""
    if index == variable:
        return True
    op = index.owner
    if isinstance(op, ir.Block) or op.name != "arith.addi":
        return False
    others = [x for x in op.operands if x != variable]
    return len(others) == 1 and not is_defined_in(others[0], variable.owner)


def _move(generic: ir.Operation, load: ir.Operation, position: list[ir.Value]) -> None:
    """Computes the element that a load reads in its place."""
    block = generic.regions[0].blocks[0]
    new: dict[ir.Value, ir.Value] = {}
    with ir.InsertionPoint(load), load.location:
        maps = [ir.AffineMapAttr(each).value for each in generic.attributes["indexing_maps"]]
        for argument, buffer, affine in zip(block.arguments, generic.operands, maps[:-1], strict=False):
            where = [
                position[ir.AffineDimExpr(each).position]
                if isinstance(each, ir.AffineDimExpr)
                else build.const_index(0)
                for each in affine.results
            ]
            if len(list(argument.uses)):
                new[argument] = build.create("memref.load", [argument.type], [buffer, *where]).result
        *body, end = (op.operation for op in block.operations)
        for op in body:
            if op.name == "linalg.index":
                new[op.results[0]] = position[ir.IntegerAttr(op.attributes["dim"]).value]
            else:
                copy_with(op, new)
    found = end.operands[0]
    load.results[0].replace_all_uses_with(new.get(found, found))
    load.erase()
