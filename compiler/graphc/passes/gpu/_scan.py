# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A loop of elementwise work as one kernel: all iterations of an element by one thread."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphc.ir import build
from graphc.ir.copies import copy_with
from graphc.ir.lifetimes import VIEWS, root_of
from graphc.ir.walk import is_inside
from graphc.lowering.carried import loop
from graphc.passes.gpu._kernel import Kernel, blocks_for, global_position
from graphc.passes.gpu._loops import is_poll
from graphc.passes.gpu._nest import Nest, Operand, load, store
from graphc.passes.gpu._rows import product, split
from graphc.passes.gpu._scan_reads import Elements, Reads
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

_BLOCKS = 1 << 16


@record()
class Scan:
    """A loop that a thread can run for its own elements.

    Attributes:
        op: the `scf.for`.
        body: the operations of its body that do something, and the nests that are elementwise work.
        nests: by their operation.
        shape: a buffer from outside of the loop that has the shape of all nests.
    """

    op: ir.Operation
    body: list[ir.Operation]
    nests: dict[ir.Operation, Nest]
    shape: ir.Value

    @property
    def rank(self) -> int:
        return ir.MemRefType(self.shape.type).rank

    @property
    def carried(self) -> Sequence[ir.Value]:
        """What an iteration is given, without its index."""
        return list(self.op.regions[0].blocks[0].arguments)[1:]

    @property
    def yields(self) -> Sequence[ir.Value]:
        """What an iteration hands on."""
        *_, end = self.op.regions[0].blocks[0].operations
        return list(end.operation.operands)

    def written(self) -> set[ir.Value]:
        """Memory that the loop writes, or may."""
        found = {root_of(o.buffer) for nest in self.nests.values() for o in nest.outputs}
        # What a state is given may be any memory that was handed on before.
        found.update(root_of(x) for x in [*self.carried, *list(self.op.operands)[3:], *self.yields])
        return found

    def is_own(self, operand: Operand) -> bool:
        """Whether an operand has the element of the thread."""
        return operand.axes == list(range(self.rank))


def as_scan(op: ir.Operation, polls: frozenset[str]) -> Scan | None:
    """The loop as work on elements; None if it is something else."""
    block = op.regions[0].blocks[0]
    body = [inner.operation for inner in block.operations][:-1]
    body = [inner for inner in body if not is_poll(inner, polls)]
    nests = {inner: Nest(inner) for inner in body if inner.name == "linalg.generic"}
    if not nests or not all(_is_known(inner) for inner in body):
        return None
    if not all(isinstance(value.type, ir.MemRefType) for value in list(block.arguments)[1:]):
        return None
    groups = _Groups()
    ranks = {nest.rank for nest in nests.values()}
    if len(ranks) > 1 or any(any(nest.reduction) for nest in nests.values()):
        return None
    scan = Scan(op, body, nests, next(iter(nests.values())).outputs[0].buffer)
    rank = ranks.pop()
    for nest in nests.values():
        own = [o.buffer for o in nest.operands if o.axes == list(range(rank))]
        groups.join(own)
    for value, before, after in zip(scan.carried, list(op.operands)[3:], scan.yields, strict=True):
        groups.join([value, before, after])
    outside = [x for x in groups.of(scan.shape) if not is_inside(x, op)]
    if not outside or any(o.buffer not in groups.of(scan.shape) for n in nests.values() for o in n.outputs):
        return None
    scan.shape = outside[0]
    return scan if _is_elementwise(scan) and not _chooses_memory(scan) else None


def _chooses_memory(scan: Scan) -> bool:
    """Whether buffers of different arrays take turns, as in windows of several rows next to a trace.

    An iteration would not know which memory it reads.
    """
    carried = list(scan.carried)
    if not any(value in carried for value in scan.yields):
        return False
    given = [*list(scan.op.operands)[3:], *(value for value in scan.yields if value not in carried)]
    return len({root_of(value) for value in given}) > 1


def _is_known(op: ir.Operation) -> bool:
    """Whether a thread can do for itself what an operation does, or what it needs is the same for all."""
    if op.name in ("linalg.generic", "memref.alloc", "memref.dim") or op.name in VIEWS:
        return True
    return op.name.startswith("arith.")


def _is_elementwise(scan: Scan) -> bool:
    """Whether memory that the loop writes is read and written at the thread's element only."""
    nests, written = scan.nests.values(), scan.written()
    for nest in nests:
        if any(not scan.is_own(operand) for operand in nest.outputs):
            return False
        if any(root_of(o.buffer) in written and not scan.is_own(o) for o in nest.inputs):
            return False
        if any(root_of(buffer) in written for buffer in nest.gathered):
            return False
    return True


class _Groups:
    """Buffers that are known to have one shape."""

    def __init__(self) -> None:
        self._group: dict[ir.Value, set[ir.Value]] = {}

    def join(self, buffers: Iterable[ir.Value]) -> None:
        """These have one shape."""
        joined = set[ir.Value]()
        for buffer in buffers:
            joined |= self.of(buffer)
        for buffer in joined:
            self._group[buffer] = joined

    def of(self, buffer: ir.Value) -> set[ir.Value]:
        """All that have the shape of a buffer."""
        return self._group.setdefault(buffer, {buffer})


class ScanKernel:
    """Writes the kernel of a loop, and replaces the loop by its launch."""

    def __init__(self, scan: Scan, threads: int) -> None:
        self._scan, self._threads = scan, threads
        self._kernel = Kernel(scan.op, "steps")
        # Values of the body of the loop in the kernel, and what buffers hold at the thread's element.
        self._new: dict[ir.Value, ir.Value] = {}
        self._held: dict[ir.Value, ir.Value] = {}
        # Elements of arrays that the loop does not write.
        self._reads = Reads(scan.op, list(scan.nests.values()), scan.written())
        self._known: Elements = {}

    def lower(self) -> None:
        """The kernel, its launch, and arrays for what the loop gives."""
        scan, op = self._scan, self._scan.op
        used = [r for r in op.results if next(iter(r.uses), None) is not None]
        with self._kernel.host():
            sizes = build.dims(scan.shape)
            count = product(sizes)
            grid = blocks_for(count, build.const_index(self._threads), _BLOCKS)
            results: dict[ir.Value, ir.Value] = {result: _array_like(result, sizes) for result in used}
            width = build.const_index(self._threads)
        with self._kernel.body():
            first, stride = global_position()
            _, block = loop(count, [], start=first, step=stride)
            with ir.InsertionPoint(block):
                self._element = split(block.arguments[0], sizes)
                self._loop(results)
                build.create("scf.yield", [], [])
        self._kernel.launch([grid], [width])
        with ir.InsertionPoint(op), op.location:
            for result, array in results.items():
                cast = build.create("memref.cast", [result.type], [array]).result
                result.replace_all_uses_with(cast)
        op.erase()

    def _loop(self, results: dict[ir.Value, ir.Value]) -> None:
        """All iterations for one element."""
        scan, op = self._scan, self._scan.op
        lower, upper, step, *initial = list(op.operands)
        read = {o.buffer for nest in scan.nests.values() for o in nest.needed(nest.yields) if scan.is_own(o)}
        places = [i for i, value in enumerate(scan.carried) if value in read]
        held = [self._load(initial[i]) for i in places]
        fixed, ahead = self._reads.first(self._element)
        made, block = loop(upper, [*initial, *held, *ahead], start=lower, step=step)
        self._reads.unroll(made)
        with ir.InsertionPoint(block):
            index, *given = block.arguments
            ahead = given[len(initial) + len(held) :]
            self._known = {**fixed, **self._reads.now(ahead)}
            following = self._reads.then(index, ahead, self._element)
            self._new[op.regions[0].blocks[0].arguments[0]] = index
            for value, own in zip(scan.carried, given[: len(initial)], strict=True):
                self._new[value] = own
            for i, own in zip(places, given[len(initial) : len(initial) + len(held)], strict=True):
                self._held[scan.carried[i]] = own
            for inner in scan.body:
                self._one(inner)
            yields = [self._new.get(value, value) for value in scan.yields]
            found = [self._value(scan.yields[i]) for i in places]
            build.create("scf.yield", [], [*yields, *found, *following])
        for number, result in enumerate(op.results):
            if result in results:
                value = (
                    made.results[len(initial) + places.index(number)]
                    if number in places
                    else self._load(made.results[number])
                )
                self._store(value, results[result])

    def _one(self, op: ir.Operation) -> None:
        """One operation of the body."""
        nest = self._scan.nests.get(op)
        if nest is not None:
            self._nest(nest)
        elif op.name != "memref.alloc":  # which is a register here
            copy_with(op, self._new)

    def _nest(self, nest: Nest) -> None:
        values = {}
        for operand in nest.needed(nest.yields):
            if operand.argument not in self._known:
                own = self._scan.is_own(operand)
                values[operand.argument] = self._value(operand.buffer) if own else self._other(operand)
        found = nest.compute(nest.yields, {**self._new, **self._known, **values}, self._element)
        for operand in nest.outputs:
            self._forget(operand.buffer)
        for operand, value in zip(nest.outputs, found, strict=True):
            self._held[operand.buffer] = value
            if not _is_temporary(operand.buffer, self._scan.op):
                self._store(value, self._new.get(operand.buffer, operand.buffer))

    def _value(self, buffer: ir.Value) -> ir.Value:
        """What a buffer of the body holds at the thread's element."""
        if buffer not in self._held:
            return self._load(self._new.get(buffer, buffer))
        return self._held[buffer]

    def _forget(self, written: ir.Value) -> None:
        """What other names of the memory may be for is not known any more."""
        self._held = {
            buffer: value for buffer, value in self._held.items() if _is_temporary(buffer, self._scan.op)
        }
        self._held.pop(written, None)

    def _load(self, buffer: ir.Value) -> ir.Value:
        return load(Operand(buffer, list(range(self._scan.rank)), buffer), self._element)

    def _store(self, value: ir.Value, buffer: ir.Value) -> None:
        store(value, Operand(buffer, list(range(self._scan.rank)), buffer), self._element)

    def _other(self, operand: Operand) -> ir.Value:
        """An element of an array that the loop only reads."""
        buffer = self._new.get(operand.buffer, operand.buffer)
        return load(Operand(buffer, operand.axes, operand.argument), self._element)


def _is_temporary(buffer: ir.Value, op: ir.Operation) -> bool:
    """Whether an array lives for one iteration, and only its nests use it."""
    owner = buffer.owner
    if isinstance(owner, ir.Block) or owner.name != "memref.alloc" or not is_inside(buffer, op):
        return False
    return all(use.owner.name in ("linalg.generic", "memref.dim") for use in buffer.uses)


def _array_like(result: ir.Value, sizes: Sequence[ir.Value]) -> ir.Value:
    """A new array for a result of the loop."""
    memref = ir.MemRefType(result.type)
    dynamic = [size for size, known in zip(sizes, memref.shape, strict=True) if known < 0]
    kind = ir.MemRefType.get(memref.shape, memref.element_type)
    segments = ir.DenseI32ArrayAttr.get([len(dynamic), 0])
    return build.create("memref.alloc", [kind], dynamic, operandSegmentSizes=segments).result
