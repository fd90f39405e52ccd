# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel of a loop over a batch: a block of threads runs all iterations for its rows."""

from __future__ import annotations

from collections.abc import Callable

from graphc.ir import build
from graphc.lowering.carried import carry, loop
from graphc.passes.gpu._batch import BatchLoop, Segment, is_outside, knows_size, moved, size_before
from graphc.passes.gpu._block_product import BlockProduct, is_product, sides
from graphc.passes.gpu._kernel import Kernel, allocate, barrier, blocks_for, position
from graphc.passes.gpu._nest import Nest, Operand, load, store
from graphc.passes.gpu._reduce import on_condition
from graphc.passes.gpu._rows import product, split
from graphc.passes.gpu._shuffle import WARP
from graphc_dialects._mlir import ir

# Rows of a block, which is also how many groups of threads share the additions of a product.
ROWS = 4
# Threads of a group, at most.
COLUMNS = 256
_BLOCKS = (1 << 31) - 1


class BatchKernel:
    """Writes the kernel of a loop, and replaces the loop by its launch."""

    def __init__(self, work: BatchLoop) -> None:
        self._work, self._op = work, work.op
        self._kernel = Kernel(work.op, "recurrent")
        self._hoisted: set[ir.Value] = set()

    def lower(self) -> None:
        """The kernel, its launch, and arrays for what the loop gives."""
        work, op = self._work, self._op
        with self._kernel.host():
            grid, threads = self._blocks()
            turned = {nest: self._turned(nest) for nest in self._products()}
            for alloc in work.allocations:
                self._hoist(alloc)
        results = self._results()
        products = BlockProduct(self._kernel, ROWS, COLUMNS)
        with self._kernel.body():
            self._row = build.index_op("muli", position("block_id"), build.const_index(ROWS))
            self._kernel.take(op)
            for result, array in results:
                self._copy(result, array)
        for segment in work.segments:
            first = segment.nests[0]
            with ir.InsertionPoint(segment.nests[-1].op), first.op.location:
                if first in turned:
                    self._product(segment, products, turned[first])
                else:
                    self._elements(segment)
                barrier()
        for segment in work.segments:
            for nest in [*segment.nests, *([segment.fill] if segment.fill is not None else [])]:
                nest.op.erase()
        self._kernel.launch([grid], threads)

    def _products(self) -> list[Nest]:
        return [segment.nests[0] for segment in self._work.segments if is_product(segment.nests[0])]

    # -- on the host ---------------------------------------------------------------------------------------

    def _blocks(self) -> tuple[ir.Value, list[ir.Value]]:
        """How many blocks there are, and threads: in a group as many as the longest row has elements."""
        work = self._work
        rows, columns = build.const_index(0), build.const_index(1)
        for buffer in {n.outputs[0].buffer: n for s in work.segments for n in s.nests}:
            rows = build.index_op("maxsi", rows, size_before(work, buffer, 0))
            axes = range(1, ir.MemRefType(buffer.type).rank)
            if all(knows_size(work, buffer, axis) for axis in axes):
                columns = build.index_op(
                    "maxsi", columns, product([size_before(work, buffer, axis) for axis in axes])
                )
        warps = blocks_for(columns, build.const_index(WARP), COLUMNS // WARP)
        each = build.const_index(ROWS)
        return blocks_for(rows, each, _BLOCKS), [build.index_op("muli", warps, build.const_index(WARP)), each]

    def _turned(self, nest: Nest) -> Operand:
        """The matrix of a product, as a copy where neighbouring threads would not read neighbours."""
        matrix = sides(nest)[1]
        if matrix.axes[-1] != 2 or not is_outside(self._work, matrix.buffer):
            return matrix
        kind = ir.MemRefType(matrix.buffer.type)
        copy = allocate(build.dims(matrix.buffer)[::-1], kind.element_type)
        d0, d1 = ir.AffineExpr.get_dim(0), ir.AffineExpr.get_dim(1)
        maps = [ir.AffineMap.get(2, 0, [d1, d0]), ir.AffineMap.get_identity(2)]
        parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
        attributes = {
            "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(each) for each in maps]),
            "iterator_types": ir.ArrayAttr.get([parallel] * 2),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1]),
        }
        operands = [matrix.buffer, copy]
        made = ir.Operation.create("linalg.generic", operands=operands, attributes=attributes, regions=1)
        block = ir.Block.create_at_start(made.regions[0], [kind.element_type] * 2)
        with ir.InsertionPoint(block):
            build.create("linalg.yield", [], [block.arguments[0]])
        return Operand(copy, [2, 1], matrix.argument)

    def _hoist(self, alloc: ir.Operation) -> None:
        """Takes memory that each iteration would take before the loop."""
        kind = ir.MemRefType(alloc.results[0].type)
        given = iter(list(alloc.operands))
        sizes = [
            build.const_index(size) if size >= 0 else moved(self._work, next(given)) for size in kind.shape
        ]
        array = allocate(sizes, kind.element_type)
        if array.type != kind:
            array = build.create("memref.cast", [kind], [array]).result
        for segment in self._work.segments:
            for operand in [operand for nest in segment.nests for operand in nest.operands]:
                if operand.buffer == alloc.results[0]:
                    operand.buffer = array
        alloc.results[0].replace_all_uses_with(array)
        alloc.erase()
        self._hoisted.add(array)

    def _results(self) -> list[tuple[ir.Value, ir.Value]]:
        """What the loop gives and somebody uses, with arrays that take its place."""
        op = self._op
        found: list[tuple[ir.Value, ir.Value]] = []
        for result, initial in zip(op.results, list(op.operands)[3:], strict=True):
            if next(iter(result.uses), None) is None:
                continue
            with self._kernel.host():
                array = allocate(build.dims(initial), ir.MemRefType(result.type).element_type)
                cast = build.create("memref.cast", [result.type], [array]).result
            result.replace_all_uses_with(cast)
            found.append((result, array))
        return found

    # -- in the kernel -------------------------------------------------------------------------------------

    def _copy(self, source: ir.Value, target: ir.Value) -> None:
        """The block's rows of an array."""
        sizes, axes = build.dims(target), list(range(ir.MemRefType(target.type).rank))
        operands = [Operand(buffer, [*axes], buffer) for buffer in (source, target)]
        self._each(sizes, lambda indices: store(load(operands[0], indices), operands[1], indices))

    def _each(self, sizes: list[ir.Value], work: Callable[[list[ir.Value]], None]) -> None:
        """Does something with each element of the block's rows of an array of some sizes."""
        columns = product(sizes[1:])
        width = position("block_dim", 0)
        thread = build.index_op("muli", position("thread_id", 1), width)
        thread = build.index_op("addi", thread, position("thread_id", 0))
        threads = build.index_op("muli", width, build.const_index(ROWS))
        count = build.index_op("muli", columns, build.const_index(ROWS))
        _, block = loop(count, [], start=thread, step=threads)
        with ir.InsertionPoint(block):
            element = block.arguments[0]
            row = build.index_op("addi", self._row, build.index_op("divui", element, columns))
            with on_condition(build.compare_index(2, row, sizes[0])):
                work([row, *split(build.index_op("remui", element, columns), sizes[1:])])
            build.create("scf.yield", [], [])

    def _product(self, segment: Segment, products: BlockProduct, matrix: Operand) -> None:
        """A product, and what is done with its elements."""
        nest = segment.nests[0]
        output = nest.outputs[0]

        def finish(row: ir.Value, column: ir.Value, total: ir.Value) -> None:
            before = self._before(segment, [row, column])
            name = "arith.addi" if isinstance(total.type, ir.IntegerType) else "arith.addf"
            value = build.create(name, [total.type], [before, total]).result
            self._chain(segment, [row, column], {output.buffer: value})

        products.write(nest, matrix, self._row, finish)

    def _elements(self, segment: Segment) -> None:
        """Work on elements, with reductions that a thread does for itself."""
        nest = segment.nests[0]
        kept = [axis for axis in range(nest.rank) if not nest.reduction[axis]]
        sizes = [nest.extent(axis) for axis in range(nest.rank)]

        def element(indices: list[ir.Value]) -> None:
            if not any(nest.reduction):
                self._chain(segment, indices, {}, first=0)
                return
            place = dict(zip(kept, indices, strict=True))
            output = nest.outputs[0]

            def run(axes: list[int], values: list[ir.Value]) -> list[ir.Value]:
                if axes:

                    def body(number: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
                        place[axes[0]] = number
                        return run(axes[1:], carried)

                    return carry(sizes[axes[0]], values, body)
                where = [place[axis] for axis in range(nest.rank)]
                given = {output.argument: values[0]}
                return nest.compute(nest.yields, self._read(nest, where, given), where)

            reduced = [axis for axis in range(nest.rank) if nest.reduction[axis]]
            total = run(reduced, [self._before(segment, indices)])
            self._chain(segment, indices, {output.buffer: total[0]})

        self._each([sizes[axis] for axis in kept], element)

    def _before(self, segment: Segment, indices: list[ir.Value]) -> ir.Value:
        """What an element of the result of a reduction begins with."""
        if segment.fill is not None:
            return segment.fill.yields[0]
        output = segment.nests[0].outputs[0]
        return load(Operand(output.buffer, list(range(len(indices))), output.argument), indices)

    def _chain(
        self, segment: Segment, indices: list[ir.Value], held: dict[ir.Value, ir.Value], first: int = 1
    ) -> None:
        """The nests of a segment from one on, for an element; `held` is what buffers hold of it."""
        for buffer, value in held.items():
            self._store(segment, buffer, value, indices)
        for nest in segment.nests[first:]:
            whole = list(range(nest.rank))
            given = {
                o.argument: held[o.buffer] for o in nest.operands if o.axes == whole and o.buffer in held
            }
            found = nest.compute(nest.yields, self._read(nest, indices, given), indices)
            held = {buffer: value for buffer, value in held.items() if self._is_temporary(segment, buffer)}
            for operand, value in zip(nest.outputs, found, strict=True):
                held[operand.buffer] = value
                self._store(segment, operand.buffer, value, indices)

    def _read(
        self, nest: Nest, indices: list[ir.Value], given: dict[ir.Value, ir.Value]
    ) -> dict[ir.Value, ir.Value]:
        """The operands of a nest at an element."""
        values = dict(given)
        for operand in nest.needed(nest.yields):
            if operand.argument not in values:
                values[operand.argument] = load(operand, indices)
        return values

    def _store(self, segment: Segment, buffer: ir.Value, value: ir.Value, indices: list[ir.Value]) -> None:
        if not self._is_temporary(segment, buffer):
            store(value, Operand(buffer, list(range(len(indices))), buffer), indices)

    def _is_temporary(self, segment: Segment, buffer: ir.Value) -> bool:
        """Whether only the nests of a segment use an array, which lives for one iteration."""
        if buffer not in self._hoisted:
            return False
        inside = {nest.op for nest in segment.nests}
        if segment.fill is not None:
            inside.add(segment.fill.op)
        return all(use.owner.operation in inside or use.owner.name == "memref.dim" for use in buffer.uses)
