# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes at positions that an array says: which loops are such, and kernels for them."""

from __future__ import annotations

from collections.abc import Mapping

from graphc.ir import build
from graphc.ir.lifetimes import VIEWS, root_of
from graphc.ir.value import as_index, converted, larger, smaller
from graphc.ir.walk import copy_with, is_inside, slice_of
from graphc.lowering.calls import product
from graphc.lowering.carried import bisected, carry_in_groups, either, when
from graphc.passes import Pass
from graphc.passes.gpu._host import replace_loops
from graphc.passes.gpu._kernel import Kernel, allocate
from graphc.passes.gpu._notation import split
from graphc.passes.gpu.gpu_sort import Digits, RadixSort, demand_fewer
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

_ACCESSES = VIEWS | {"memref.load", "memref.store", "memref.dim"}
_COMPUTES = ("arith.", "math.", "complex.")


@record(frozen=True)
class Scatter:
    """Loops around one store, one of whose indices is read from memory.

    Attributes:
        op: the outermost loop.
        ops: what is computed, in order.
        store: the last of these.
        row: which index of the store depends on what is read.
        old: the load of the element that is written, if it is added to.
        indices: variables and sizes of loops that tell where the index is read.
        own: those of loops that are indices of the store themselves.
    """

    op: ir.Operation
    ops: list[ir.Operation]
    store: ir.Operation
    row: ir.Value
    old: ir.Operation | None
    indices: list[tuple[ir.Value, ir.Value]]
    own: list[tuple[ir.Value, ir.Value]]

    def copy(self, wanted: ir.Value, values: Mapping[ir.Value, ir.Value]) -> ir.Value:
        """Computes a value at the insertion point, from others that are given."""
        new = dict(values)
        for op in slice_of(self.ops, [wanted], new):
            copy_with(op, new)
        return new.get(wanted, wanted)


def as_scatter(op: ir.Operation) -> Scatter | None:
    """The scatter that loops are; None if they are something else."""
    found = _perfect_nest(op)
    if found is None:
        return None
    loops, ops = found
    stores = [inner for inner in ops if inner.name == "memref.store"]
    if len(stores) != 1 or any(is_inside(made.operands[1], op) for made in loops):
        return None
    store = stores[0]
    _, memory, *where = store.operands
    variables: list[ir.Value] = [made.regions[0].blocks[0].arguments[0] for made in loops]
    rows = [x for x in where if x not in variables and is_inside(x, op)]
    if len(rows) != 1 or len(set(where)) < len(where) or is_inside(memory, op):
        return None
    of_row = slice_of(ops, rows)
    used = {x for inner in of_row for x in inner.operands}
    loads = [inner for inner in ops if inner.name == "memref.load"]
    same = [inner for inner in loads if root_of(inner.operands[0]) == root_of(memory)]
    if used & (set(where) - set(rows)) or not any(inner in loads for inner in of_row):
        return None
    if len(same) > 1 or any(list(x.operands) != [memory, *where] or x in of_row for x in same):
        return None
    sizes = [(variable, made.operands[1]) for variable, made in zip(variables, loops, strict=True)]
    own = [pair for pair in sizes if pair[0] in where]
    indices = [pair for pair in sizes if pair[0] not in where]
    return Scatter(op, ops, store, rows[0], same[0] if same else None, indices, own)


def _perfect_nest(op: ir.Operation) -> tuple[list[ir.Operation], list[ir.Operation]] | None:
    """Loops from 0 in steps of 1, one inside the other, and what is computed in them."""
    loops, ops = [op], list[ir.Operation]()
    while True:
        lower, _, step = list(loops[-1].operands)[:3]
        if len(loops[-1].results) or (build.constant_value(lower), build.constant_value(step)) != (0, 1):
            return None
        *body, _ = [inner.operation for inner in loops[-1].regions[0].blocks[0].operations]
        inside = [inner for inner in body if inner.name == "scf.for"]
        rest = [inner for inner in body if inner.name != "scf.for"]
        if not all(inner.name.startswith(_COMPUTES) or inner.name in _ACCESSES for inner in rest):
            return None
        if len(inside) > 1 or (inside and any(inner.name == "memref.store" for inner in rest)):
            return None
        ops += rest
        if not inside:
            return loops, ops
        loops.append(inside[0])


# Additions of which operands are read together.
_AHEAD = 8


class ScatterKernels:
    """The kernels of a scatter: writes in the order of their rows, and what each row comes to.

    What is sorted are the rows, of 32 bits, with the number that is added to each, if that is all, or else
    with the number of the write.

    Args:
        scatter: its loops are to be erased afterwards.
        threads: of a block.
        sizes: of the sort.
    """

    def __init__(self, scatter: Scatter, threads: int, sizes: Digits) -> None:
        self._scatter, self._added = scatter, _addend(scatter)
        self._word = ir.IntegerType.get_signless(32)
        _, memory, *where = scatter.store.operands
        with ir.InsertionPoint(scatter.op), scatter.op.location:
            self._sizes = [size for _, size in scatter.indices]
            self._count = product(self._sizes)
            self._rows = build.dims(memory)[where.index(scatter.row)]
            for count, what in ((self._rows, "writes into {given} rows"), (self._count, "{given} writes")):
                demand_fewer(count, 1 << 32, f"set_subtensor or inc_subtensor: {what}")
            passes = one = build.const_index(1)
            for bits in range(sizes.bits, 32, sizes.bits):
                passes = passes + build.select(self._rows > (1 << bits), one, 0)
            types = [self._word, self._word if self._added is None else self._added.type]
            self._sorted = [allocate([self._count], kind) for kind in types]
        RadixSort(scatter.op, one, self._count, types, passes, self._read, self._keep, sizes)
        kernel = Kernel(scatter.op, "scatter")
        with kernel.host():
            self._width = product([size for _, size in scatter.own])
            # As many threads as rows, or as writes, if these are fewer.
            self._by_rows = self._rows < self._count
            work = smaller(self._rows, self._count) * self._width
        with kernel.each(work, threads) as number:
            self._write(number // self._width, number % self._width)

    def _read(self, row: ir.Value, number: ir.Value) -> list[ir.Value]:
        at = self._at(number)
        key = converted(self._scatter.copy(self._scatter.row, at), self._word)
        moved = number if self._added is None else self._scatter.copy(self._added, at)
        return [key, converted(moved, self._sorted[1].type.element_type)]

    def _keep(self, row: ir.Value, place: ir.Value, item: list[ir.Value]) -> None:
        for value, array in zip(item, self._sorted, strict=True):
            array[place] = value

    def _at(self, number: ir.Value) -> dict[ir.Value, ir.Value]:
        """The loops' variables where an index is read."""
        variables = [variable for variable, _ in self._scatter.indices]
        return dict(zip(variables, split(number, self._sizes), strict=True))

    def _write(self, number: ir.Value, column: ir.Value) -> None:
        """Applies all writes to a row, or, where the last one wins, that one."""
        kinds = [build.index_type()] * 2

        def of_row() -> list[ir.Value]:
            first = bisected(build.const_index(0), self._count, lambda at: self._row(at) < number)
            return [first, bisected(first, self._count, lambda at: self._row(at).equals(number))]

        def of_write() -> list[ir.Value]:
            """Nothing, if the write before is to the same row."""
            row = self._row(number)
            before = larger(number - 1, 0)
            is_first = number.equals(0) | self._row(before).differs(row)
            end = bisected(number + 1, self._count, lambda at: self._row(at).equals(row))
            return [build.select(is_first, number, end), end]

        first, end = either(self._by_rows, kinds, of_row, of_write)
        with when(first < end):
            self._write_row(first, end, column)

    def _write_row(self, first: ir.Value, end: ir.Value, column: ir.Value) -> None:
        scatter, row = self._scatter, self._row(first)
        variables = [variable for variable, _ in scatter.own]
        indices = split(column, [size for _, size in scatter.own])
        own = dict(zip(variables, indices, strict=True))
        new, memory, *where = scatter.store.operands
        place = [row if x == scatter.row else own.get(x, x) for x in where]

        def given(at: ir.Value) -> dict[ir.Value, ir.Value]:
            """Of a write: what it adds, or the variables of its loops."""
            found = self._sorted[1][at]
            return {self._added: found} if self._added is not None else self._at(_unsigned(found))

        if scatter.old is None:
            memory[place] = scatter.copy(new, {**own, **given(end - 1)})
            return
        old, leaf = scatter.old.results[0], _operand(scatter)

        def added(places: list[ir.Value], totals: list[ir.Value]) -> list[ir.Value]:
            ready = [{**own, **given(at)} for at in places]
            if leaf is not None:
                ready = [{leaf: scatter.copy(leaf, known)} for known in ready]
            (total,) = totals
            for known in ready:
                total = scatter.copy(new, {**known, old: total})
            return [total]

        (memory[place],) = carry_in_groups(first, end, _AHEAD, [memory[place]], added)

    def _row(self, at: ir.Value) -> ir.Value:
        """Target row of a write in order."""
        return _unsigned(self._sorted[0][at])


def _unsigned(number: ir.Value) -> ir.Value:
    return as_index(converted(number, ir.IntegerType.get_signless(64)))


def _operand(scatter: Scatter) -> ir.Value | None:
    """The operand that one operation, after which nothing comes, combines with the element that is there."""
    new = scatter.store.operands[0]
    if scatter.old is None or isinstance(new.owner, ir.Block) or new.owner.operation not in scatter.ops:
        return None
    old = scatter.old.results[0]
    others = [x for x in new.owner.operands if x != old]
    if len(others) != 1 or len(new.owner.operands) != 2 or len(new.owner.regions):
        return None
    # What the other one is computed of may have the element, too.
    used = slice_of(scatter.ops, others)
    return None if any(x == old for op in used for x in op.operands) else others[0]


def _addend(scatter: Scatter) -> ir.Value | None:
    """The same, if it is a number of each write that can be sorted with its row."""
    leaf = _operand(scatter)
    if leaf is None or scatter.own or not is_inside(leaf, scatter.op):
        return None
    kind = leaf.type
    fits = isinstance(kind, (ir.IntegerType, ir.FloatType)) and int(kind.width) >= 8
    return leaf if fits else None


@record()
class GpuScatter(Pass):
    """Makes kernels of loops that set or increase elements at positions which are read from an array.

    Positions may repeat, and then act in order: of several numbers that are set the last one stays, and sums
    are rounded as they are added up one after the other. So the positions are sorted, which keeps equal ones
    in their order, and of those that are equal one thread does all writes: results have the bits of a loop on
    one thread. Numbers that are added are sorted with their positions, by as many digits as the size of the
    array asks for. Rows are written by as many threads as they have elements, side by side. A thread finds
    out by bisection which writes it has to do. Where most positions are equal, few threads work. A check sees
    to it that an array has fewer than 2**32 rows, and fewer writes.

    Attributes:
        threads: threads of a block.
        bits: of a digit (`gpu_sort.Digits`).
        items: of a thread at a time.
        blocks: on a multiprocessor at a time.
    """

    threads: int = 128
    bits: int = 9
    items: int = 24
    blocks: int = 2

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        sizes = Digits(bits=self.bits, items=self.items, blocks=self.blocks)

        def replace(scatter: Scatter) -> None:
            ScatterKernels(scatter, self.threads, sizes)
            scatter.op.erase()

        self.count("loops", replace_loops(module, as_scatter, replace))
