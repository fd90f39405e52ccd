# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops whose states are the same elementwise work at each step: all iterations of an element by one thread.

A thread that reads the element of a step when it gets there waits for memory in each step. So elements of
arrays that the loop does not write are read some steps ahead, and handed on in registers. The loop is
unrolled by as many steps: a register that memory is still to fill cannot be moved to another one, and need
not be then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from graphc.ir import build
from graphc.ir.lifetimes import VIEWS, root_of
from graphc.ir.walk import copy_with, definition, is_inside
from graphc.lowering.calls import product
from graphc.lowering.carried import either, loop
from graphc.lowering.loops import Operand
from graphc.passes import Pass
from graphc.passes.gpu._host import HostLoop, replace_loops
from graphc.passes.gpu._kernel import Kernel
from graphc.passes.gpu._nest import Nest, load, store, whole
from graphc.passes.gpu._notation import split, zero
from graphc.passes.gpu.gpu_elementwise import all_generic
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# Elements that a thread has asked for at a time, of all arrays together, and operations of an unrolled loop;
# how many a function of the math dialect becomes, about.
_ELEMENTS, _OPERATIONS, _FUNCTION = 16, 128, 16
_FUNCTIONS = ("math.", "complex.", "func.")
_OF_THREADS = VIEWS | {"linalg.generic", "memref.alloc", "memref.dim"}
_OF_PLACES = VIEWS | {"memref.dim", "linalg.index"}
# By the values of nests that they are.
Elements: TypeAlias = "dict[ir.Value, ir.Value]"


@record()
class Read:
    """An element that each iteration reads: the operand of a nest, or the load in its body; `names` are what
    it is called in the bodies of nests, `chain` what it depends on, in order; it `moves` if it is another one
    in each.
    """

    source: Operand | ir.Operation
    names: list[ir.Value]
    chain: list[ir.Operation]
    moves: bool


class Reads:
    """The arrays of a loop that it only reads."""

    def __init__(self, scan: Scan) -> None:
        self._scan, self._block = scan, scan.op.regions[0].blocks[0]
        nests, written = scan.nests.values(), scan.written()
        reads = [read for nest in nests for read in self._of_nest(nest, written)]
        self._fixed = [read for read in reads if not read.moves]
        self._moving = [read for read in reads if read.moves]
        names = [op.name for nest in nests for op in nest.body]
        work = sum(_FUNCTION if name.startswith(_FUNCTIONS) else 1 for name in names)
        most = min(_ELEMENTS // max(len(self._moving), 1), _OPERATIONS // max(work, 1))
        self._ahead = 1 << max(most.bit_length() - 1, 0)

    def unroll(self, loop: ir.Operation) -> None:
        """As many steps as elements are read ahead, if there are any."""
        if self._moving and self._ahead > 1:
            text = f"#llvm.loop_annotation<unroll = <count = {self._ahead} : i32>>"
            loop.attributes["loop_annotation"] = ir.Attribute.parse(text)

    def _of_nest(self, nest: Nest, written: set[ir.Value]) -> Iterator[Read]:
        found: dict[tuple[ir.Value, tuple[int | None, ...]], Read] = {}
        for operand in nest.needed(nest.yields):
            key = operand.buffer, tuple(operand.axes)
            if key in found:
                found[key].names.append(operand.argument)
            elif root_of(operand.buffer) not in written:
                read = self._read(operand, operand.argument, [operand.buffer])
                found |= {} if read is None else {key: read}
        yield from found.values()
        for op in nest.body:
            if op.name == "memref.load" and root_of(op.operands[0]) not in written:
                read = self._read(op, op.results[0], list(op.operands))
                yield from [] if read is None else [read]

    def _read(self, source: Operand | ir.Operation, name: ir.Value, needs: list[ir.Value]) -> Read | None:
        """The value that is read, if its place is known without what other iterations have done."""
        chain: dict[ir.Operation, None] = {}
        if not all(self._follow(value, chain) for value in needs):
            return None
        used = [*needs, *(operand for op in chain for operand in op.operands)]
        return Read(source, [name], list(chain), self._scan.index in used)

    def _follow(self, value: ir.Value, chain: dict[ir.Operation, None]) -> bool:
        """True if a value is made of the index and of what is outside; adds what makes it."""
        op = definition(value)
        if value == self._scan.index or not self._is_inside(value.owner if op is None else op.block):
            return True
        if op is None or (op.name not in _OF_PLACES and not op.name.startswith("arith.")):
            return False
        known = all(self._follow(operand, chain) for operand in op.operands)
        chain.setdefault(op)
        return known

    def _is_inside(self, block: ir.Block) -> bool:
        """True if a block is the loop's, or one of its nests'."""
        return block == self._block or block.owner.operation.block == self._block

    def first(self, element: Sequence[ir.Value]) -> tuple[Elements, list[ir.Value]]:
        """Elements that stay the same, and what the first iteration is handed.

        Arrays of a loop without iterations may have no elements at all.
        """
        moving = [(read, step) for read in self._moving for step in range(self._ahead)]
        names = [read.names[0] for read in self._fixed] + [read.names[0] for read, _ in moving]
        kinds = [name.type for name in names]
        some = self._scan.lower < self._scan.upper

        def read() -> list[ir.Value]:
            values = [self._load(read, self._scan.lower, element) for read in self._fixed]
            return values + [
                self._load(read, self._later(self._scan.lower, step), element) for read, step in moving
            ]

        results = either(some, kinds, read, lambda: list(map(zero, kinds)))
        count = len(self._fixed)
        fixed = zip(self._fixed, results[:count], strict=True)
        return {name: value for read, value in fixed for name in read.names}, results[count:]

    def now(self, given: Sequence[ir.Value]) -> Elements:
        """The elements of an iteration, of what was handed to it."""
        reads = zip(self._moving, given[:: self._ahead], strict=True)
        return {name: value for read, value in reads for name in read.names}

    def then(self, index: ir.Value, given: Sequence[ir.Value], element: Sequence[ir.Value]) -> list[ir.Value]:
        """Values that an iteration hands on; it reads the elements of a later one."""
        found: list[ir.Value] = []
        at = self._later(index, self._ahead)
        for number, read in enumerate(self._moving):
            kept = given[number * self._ahead + 1 : (number + 1) * self._ahead]
            found += [*kept, self._load(read, at, element)]
        return found

    def _later(self, index: ir.Value, steps: int) -> ir.Value:
        """The index of a later iteration; the same one if there is none."""
        if not steps:
            return index
        at = index + self._scan.step * steps
        return build.select(at < self._scan.upper, at, index)

    def _load(self, read: Read, index: ir.Value, element: Sequence[ir.Value]) -> ir.Value:
        new: Elements = {self._scan.index: index}
        for op in read.chain:
            if op.name == "linalg.index":
                new[op.results[0]] = element[ir.IntegerAttr(op.attributes["dim"]).value]
            else:
                copy_with(op, new)
        if isinstance(read.source, Operand):
            buffer = new.get(read.source.buffer, read.source.buffer)
            return load(Operand(buffer, read.source.axes, read.source.argument), element)
        return copy_with(read.source, new).results[0]


_BLOCKS = 1 << 16


class Scan(HostLoop):
    """A loop that a thread can run for its own elements; `nests` are its elementwise work."""

    # A buffer from outside of the loop that has the shape of all nests.
    shape: ir.Value
    # A thread has its elements of what is carried: no iteration reads or writes the memory of these.
    in_registers = False

    def __init__(self, op: ir.Operation) -> None:
        super().__init__(op)
        self.nests = {inner: Nest(inner) for inner in self.body if inner.name == "linalg.generic"}

    @property
    def rank(self) -> int:
        return ir.MemRefType(self.shape.type).rank

    def is_window(self) -> bool:
        """True if what is carried are rows that take turns, and nothing else reads what is left there."""
        carried = self.carried
        if any(value not in carried for value in self.yields):
            return False
        if not all(_is_forgotten(root_of(value), self.op) for value in self.initial):
            return False
        return all(
            inner in self.nests or not any(value in carried for value in inner.operands)
            for inner in self.body
            if inner.name != "memref.dim"
        )

    def written(self) -> set[ir.Value]:
        """Memory that the loop writes, or may."""
        found = {root_of(o.buffer) for nest in self.nests.values() for o in nest.outputs}
        # What a state is given may be any memory that was handed on before.
        found.update(root_of(x) for x in [*self.carried, *self.initial, *self.yields])
        return found

    def is_own(self, operand: Operand) -> bool:
        """True if an operand has the element of the thread."""
        return operand.axes == list(range(self.rank))


def _is_forgotten(memory: ir.Value, loop: ir.Operation) -> bool:
    """True if an array is new where a loop stands, and after it nothing reads it under any name.

    That of an enclosing loop has elements of the iteration before.
    """
    made = definition(memory, "memref.alloc")
    if made is None or made.block != loop.block:
        return False
    names = [memory]
    while names:
        for user in (use.owner.operation for use in names.pop().uses):
            if user.name in VIEWS:
                names += user.results
            elif user != loop and user.name not in ("memref.dealloc", "memref.dim"):
                # What has results may give it another name.
                if len(user.results) or user.block != loop.block or not user.is_before_in_block(loop):
                    return False
    return True


def as_scan(op: ir.Operation) -> Scan | None:
    """The loop as work on elements; None if it is something else."""
    all_generic(op)
    scan = Scan(op)
    nests = scan.nests
    if not nests or not all(map(_is_known, scan.body)) or not scan.carries_arrays:
        return None
    groups = _Groups()
    ranks = {nest.rank for nest in nests.values()}
    if len(ranks) > 1 or any(any(nest.reduction) for nest in nests.values()):
        return None
    scan.shape = next(iter(nests.values())).outputs[0].buffer
    rank = ranks.pop()
    for nest in nests.values():
        own = [o.buffer for o in nest.operands if o.axes == list(range(rank))]
        groups.join(own)
    for value, before, after in zip(scan.carried, scan.initial, scan.yields, strict=True):
        groups.join([value, before, after])
    outside = [x for x in groups.of(scan.shape) if not is_inside(x, op)]
    if not outside or any(o.buffer not in groups.of(scan.shape) for n in nests.values() for o in n.outputs):
        return None
    scan.shape = outside[0]
    scan.in_registers = scan.is_window()
    known = scan.in_registers or not _chooses_memory(scan)
    return scan if known and _is_elementwise(scan) else None


def _chooses_memory(scan: Scan) -> bool:
    """True if buffers of different arrays take turns, as in windows of several rows next to a trace.

    An iteration would not know which memory it reads. It need not know of what is in registers.
    """
    carried = scan.carried
    if not any(value in carried for value in scan.yields):
        return False
    given = [*scan.initial, *(value for value in scan.yields if value not in carried)]
    return len({root_of(value) for value in given}) > 1


def _is_known(op: ir.Operation) -> bool:
    """True if a thread can do for itself what an operation does, or what it needs is the same for all."""
    return op.name in _OF_THREADS or op.name.startswith("arith.")


def _is_elementwise(scan: Scan) -> bool:
    """True if memory that the loop writes is read and written at the thread's element only."""
    nests, written = scan.nests.values(), scan.written()
    others = [o for n in nests for o in n.operands if not scan.is_own(o)]
    outputs = [o for n in nests for o in n.outputs]
    read = [*(o.buffer for o in others), *(buffer for n in nests for buffer in n.gathered)]
    return all(map(scan.is_own, outputs)) and not any(root_of(buffer) in written for buffer in read)


class _Groups:
    """Buffers that are known to have one shape; in order, as code may not depend on where values lie."""

    def __init__(self) -> None:
        self._group: dict[ir.Value, dict[ir.Value, None]] = {}

    def join(self, buffers: Iterable[ir.Value]) -> None:
        """These have one shape."""
        joined: dict[ir.Value, None] = {}
        for buffer in buffers:
            joined |= self.of(buffer)
        for buffer in joined:
            self._group[buffer] = joined

    def of(self, buffer: ir.Value) -> dict[ir.Value, None]:
        """All that have the shape of a buffer."""
        return self._group.setdefault(buffer, {buffer: None})


class ScanKernel:
    """Writes the kernel of a loop, and replaces the loop by its launch."""

    def __init__(self, scan: Scan, threads: int) -> None:
        self._scan, self._threads = scan, threads
        self._kernel = Kernel(scan.op, "steps")
        self._in_registers = set(scan.carried) if scan.in_registers else set[ir.Value]()
        # Values of the body of the loop in the kernel, and what buffers hold at the thread's element.
        self._new: dict[ir.Value, ir.Value] = {}
        self._held: dict[ir.Value, ir.Value] = {}
        # Elements of arrays that the loop does not write.
        self._reads = Reads(scan)
        self._known: Elements = {}

    def lower(self) -> None:
        """The kernel, its launch, and arrays for what the loop gives."""
        scan, op = self._scan, self._scan.op
        with self._kernel.host():
            sizes = build.dims(scan.shape)
            count = product(sizes)
            results = scan.arrays(lambda _: sizes)
        with self._kernel.each(count, self._threads, _BLOCKS) as number:
            self._element = split(number, sizes)
            self._loop(results)
        op.erase()

    def _loop(self, results: dict[int, ir.Value]) -> None:
        """All iterations for one element."""
        scan, initial = self._scan, self._scan.initial
        read = {o.buffer for nest in scan.nests.values() for o in nest.needed(nest.yields) if scan.is_own(o)}
        if self._in_registers:
            read |= self._needed(read, results)
        places = [i for i, value in enumerate(scan.carried) if value in read]
        held = [self._load(initial[i]) for i in places]
        # Elements that are in registers have no memory that is handed on.
        rows = [] if self._in_registers else initial
        fixed, ahead = self._reads.first(self._element)
        made, block = loop(scan.upper, [*rows, *held, *ahead], start=scan.lower, step=scan.step)
        self._reads.unroll(made)
        with ir.InsertionPoint(block):
            index, *given = block.arguments
            ahead = given[len(rows) + len(held) :]
            self._known = {**fixed, **self._reads.now(ahead)}
            following = self._reads.then(index, ahead, self._element)
            self._new[scan.index] = index
            self._new.update(zip(scan.carried, given[: len(rows)] or initial, strict=True))
            for i, own in zip(places, given[len(rows) : len(rows) + len(held)], strict=True):
                self._held[scan.carried[i]] = own
            for inner in scan.body:
                if inner in scan.nests:
                    self._nest(scan.nests[inner])
                elif inner.name != "memref.alloc":  # which is a register here
                    copy_with(inner, self._new)
            yields = [self._new.get(value, value) for value in scan.yields if rows]
            found = [self._value(scan.yields[i]) for i in places]
            build.create("scf.yield", [], [*yields, *found, *following])
        for number, array in results.items():
            held_at = len(rows) + places.index(number) if number in places else None
            value = self._load(made.results[number]) if held_at is None else made.results[held_at]
            self._store(value, array)

    def _needed(self, read: set[ir.Value], results: dict[int, ir.Value]) -> set[ir.Value]:
        """The rows of a window whose elements are carried: those read now or later, and those given."""
        scan, needed = self._scan, set(read)
        written = {o.buffer for nest in scan.nests.values() for o in nest.outputs}
        needed.update(scan.carried[number] for number in results)
        for _ in scan.carried:
            rows = zip(scan.carried, scan.yields, strict=True)
            needed.update(after for row, after in rows if row in needed and after not in written)
        return needed

    def _nest(self, nest: Nest) -> None:
        values = {}
        for operand in nest.needed(nest.yields):
            if operand.argument not in self._known:
                own = self._scan.is_own(operand)
                values[operand.argument] = self._value(operand.buffer) if own else self._other(operand)
        found = nest.compute(nest.yields, {**self._new, **self._known, **values}, self._element)
        # What is known through other names of the memory is forgotten.
        written = [operand.buffer for operand in nest.outputs]
        self._held = {x: value for x, value in self._held.items() if x not in written and self._is_own(x)}
        for buffer, value in zip(written, found, strict=True):
            self._held[buffer] = value
            if not self._is_own(buffer):
                self._store(value, self._new.get(buffer, buffer))

    def _is_own(self, buffer: ir.Value) -> bool:
        """True if elements are in registers alone: they are carried, or only nests use the array, which lives
        for one iteration.
        """
        if definition(buffer, "memref.alloc") is None or not is_inside(buffer, self._scan.op):
            return buffer in self._in_registers
        return all(use.owner.name in ("linalg.generic", "memref.dim") for use in buffer.uses)

    def _value(self, buffer: ir.Value) -> ir.Value:
        """Element of a buffer of the body at the thread's position."""
        if buffer not in self._held:
            return self._load(self._new.get(buffer, buffer))
        return self._held[buffer]

    def _load(self, buffer: ir.Value) -> ir.Value:
        return load(whole(buffer), self._element)

    def _store(self, value: ir.Value, buffer: ir.Value) -> None:
        store(value, whole(buffer), self._element)

    def _other(self, operand: Operand) -> ir.Value:
        """An element of an array that the loop only reads."""
        buffer = self._new.get(operand.buffer, operand.buffer)
        return load(Operand(buffer, operand.axes, operand.argument), self._element)


@record()
class GpuScan(Pass):
    """Makes one kernel of a loop, in which each thread runs all iterations for its own elements.

    That is so where everything in the body is elementwise over one shape, such as that of a batch of chains,
    and no element of a state is computed from other elements. States stay in registers from step to step;
    rows that are kept are written as they are computed. Elements of arrays that the loop does not write are
    read up to 16 steps ahead, so that a step does not wait for memory. Without it, each step would be a
    launch. Arrays that live for one iteration disappear.

    Attributes:
        threads: threads of a block; few, so that small batches use many multiprocessors.
    """

    threads: int = 64

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        count = replace_loops(module, as_scan, lambda scan: ScanKernel(scan, self.threads).lower())
        self.count("kernels", count)
