# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise kernels over contiguous memory, with accesses of 16 bytes."""

from __future__ import annotations

from collections.abc import Sequence

from graphc.ir import build
from graphc.ir.types import dtype_of
from graphc.lowering.carried import loop
from graphc.lowering.memory.layouts import is_contiguous
from graphc.lowering.pointers import address
from graphc.passes.gpu._kernel import Kernel, blocks_for, global_position
from graphc.passes.gpu._nest import Nest, Operand, load, store, where
from graphc_dialects._mlir import ir

# The widest access of a thread, in bytes.
WIDTH = 16
# More blocks than any device runs at a time; threads stride over what is left.
_BLOCKS = 1 << 16


def is_flat(nest: Nest) -> bool:
    """True if all operands are contiguous along the one dimension, or single elements; results are whole."""
    if nest.rank != 1 or nest.reduction[0] or nest.indexed:
        return False
    if not all(operand.axes == [0] for operand in nest.outputs):
        return False
    return all(is_whole(operand) or 0 not in operand.axes for operand in nest.operands)


def lower(nest: Nest, kernel: Kernel, threads: int) -> None:
    """Writes the kernel and its launch."""
    vectors = [operand for operand in nest.operands if operand.axes == [0]]
    lanes = lanes_of(vectors)
    with kernel.host():
        extent = nest.extent(0)
        each = build.const_index(threads * lanes)
        grid = blocks_for(extent, each, _BLOCKS)
        width = build.const_index(threads)
    with kernel.body():
        first, stride = global_position()
        tail = first
        if lanes > 1:
            whole = build.index_op("divui", extent, build.const_index(lanes))
            count = build.select(are_aligned(vectors, lanes), whole, build.const_index(0))
            _, block = loop(count, [], start=first, step=stride)
            with ir.InsertionPoint(block):
                _vector(nest, block.arguments[0], lanes)
                build.create("scf.yield", [], [])
            done = build.index_op("muli", count, build.const_index(lanes))
            tail = build.index_op("addi", done, first)
        _, block = loop(extent, [], start=tail, step=stride)
        with ir.InsertionPoint(block):
            position = block.arguments[0]
            for operand, value in zip(nest.outputs, _values(nest, position, {}), strict=True):
                store(value, operand, [position])
            build.create("scf.yield", [], [])
    kernel.launch([grid], [width])


def is_whole(operand: Operand) -> bool:
    """True if an operand is contiguous along the one dimension."""
    return operand.axes == [0] and is_contiguous(operand.buffer)


def _itemsize(operand: Operand) -> int:
    return int(dtype_of(ir.MemRefType(operand.buffer.type).element_type).itemsize)


def lanes_of(operands: Sequence[Operand]) -> int:
    """Elements of a thread at a time: 16 bytes of the widest operand; 1 for types without vectors."""
    if any(isinstance(ir.MemRefType(o.buffer.type).element_type, ir.ComplexType) for o in operands):
        return 1
    return WIDTH // max(map(_itemsize, operands)) if operands else 1


def are_aligned(operands: Sequence[Operand], lanes: int) -> ir.Value:
    """True if the memory of all operands begins at a multiple of a vector."""
    bits, seen = build.const_index(0), set()
    for operand in operands:
        if operand.buffer not in seen:
            seen.add(operand.buffer)
            mask = build.const_index(lanes * _itemsize(operand) - 1)
            bits = build.index_op("ori", bits, build.index_op("andi", address(operand.buffer), mask))
    return build.compare_index(0, bits, build.const_index(0))


def _values(nest: Nest, position: ir.Value, given: dict[ir.Value, ir.Value]) -> list[ir.Value]:
    """Values of the results at a position."""
    values = dict(given)
    for operand in nest.needed(nest.yields):
        if operand.argument not in values:
            values[operand.argument] = load(operand, [position])
    return nest.compute(nest.yields, values, [position])


def _vector(nest: Nest, number: ir.Value, lanes: int) -> None:
    """One vector of each operand."""
    start = build.index_op("muli", number, build.const_index(lanes))
    loaded = {o.argument: load_vector(o, [start], lanes) for o in nest.needed(nest.yields) if o.axes == [0]}
    found: list[list[ir.Value]] = [[] for _ in nest.outputs]
    for lane in range(lanes):
        given = {argument: extract(vector, lane) for argument, vector in loaded.items()}
        for values, value in zip(found, _values(nest, start, given), strict=True):
            values.append(value)
    for operand, values in zip(nest.outputs, found, strict=True):
        store_vector(values, operand, [start])


def load_vector(operand: Operand, indices: Sequence[ir.Value], lanes: int) -> ir.Value:
    """Neighbouring elements of an operand, from indices of the nest on."""
    kind = ir.VectorType.get([lanes], ir.MemRefType(operand.buffer.type).element_type)
    place, alignment = where(operand, indices), _alignment(operand, lanes)
    return build.create("vector.load", [kind], [operand.buffer, *place], alignment=alignment).result


def store_vector(values: Sequence[ir.Value], operand: Operand, indices: Sequence[ir.Value]) -> None:
    """Writes neighbouring elements of an operand, from indices of the nest on."""
    place, alignment = where(operand, indices), _alignment(operand, len(values))
    build.create("vector.store", [], [vector_of(values), operand.buffer, *place], alignment=alignment)


def vector_of(values: Sequence[ir.Value]) -> ir.Value:
    """A vector of elements."""
    kind = ir.VectorType.get([len(values)], values[0].type)
    return build.create("vector.from_elements", [kind], list(values)).result


def extract(vector: ir.Value, lane: int) -> ir.Value:
    static = ir.DenseI64ArrayAttr.get([lane])
    element = ir.VectorType(vector.type).element_type
    return build.create("vector.extract", [element], [vector], static_position=static).result


def _alignment(operand: Operand, lanes: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), lanes * _itemsize(operand))
