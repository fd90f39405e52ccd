# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the iterations of a loop read of arrays that it does not write: it is known before they begin.

A thread that reads the element of a step when it gets there waits for memory in each step. So elements are
read some steps ahead, and handed on from step to step in registers. The loop is unrolled by as many steps: a
register that memory is still to fill cannot be moved to another one, and need not be then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from graphc.ir import build
from graphc.ir.copies import copy_with
from graphc.ir.lifetimes import VIEWS, root_of
from graphc.passes.gpu._nest import Nest, Operand, load
from graphc.passes.gpu._product import zero
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# Elements that a thread has asked for at a time, of all arrays together, and operations of an unrolled loop;
# how many a function of the math dialect becomes, about.
_ELEMENTS, _OPERATIONS, _FUNCTION = 16, 128, 16
_FUNCTIONS = ("math.", "complex.", "func.")
_OF_PLACES = VIEWS | {"memref.dim", "linalg.index"}
# By the values of nests that they are.
Elements: TypeAlias = "dict[ir.Value, ir.Value]"


@record()
class Read:
    """An element that each iteration reads.

    Attributes:
        source: the operand of a nest, or the load in its body.
        names: what it is called in the bodies of nests.
        chain: operations that it depends on, in order.
        moves: whether it is another one in each iteration.
    """

    source: Operand | ir.Operation
    names: list[ir.Value]
    chain: list[ir.Operation]
    moves: bool


class Reads:
    """The arrays of a loop.

    Args:
        op: the `scf.for`.
        nests: its elementwise work.
        written: memory that it writes.
    """

    def __init__(self, op: ir.Operation, nests: Sequence[Nest], written: set[ir.Value]) -> None:
        self._lower, self._upper, self._step = list(op.operands)[:3]
        self._block = op.regions[0].blocks[0]
        self._index = self._block.arguments[0]
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
                if read is not None:
                    found[key] = read
        yield from found.values()
        for op in nest.body:
            if op.name == "memref.load" and root_of(op.operands[0]) not in written:
                read = self._read(op, op.results[0], list(op.operands))
                if read is not None:
                    yield read

    def _read(self, source: Operand | ir.Operation, name: ir.Value, needs: list[ir.Value]) -> Read | None:
        """What is read, if it is known where without what other iterations have done."""
        chain: dict[ir.Operation, None] = {}
        if not all(self._follow(value, chain) for value in needs):
            return None
        used = [*needs, *(operand for op in chain for operand in op.operands)]
        return Read(source, [name], list(chain), self._index in used)

    def _follow(self, value: ir.Value, chain: dict[ir.Operation, None]) -> bool:
        """Whether a value is made of the index and of what is outside; adds what makes it."""
        owner = value.owner
        if value == self._index:
            return True
        if isinstance(owner, ir.Block):
            return not self._is_inside(owner)
        op = owner.operation
        if not self._is_inside(op.block):
            return True
        if op.name not in _OF_PLACES and not op.name.startswith("arith."):
            return False
        known = all(self._follow(operand, chain) for operand in op.operands)
        chain.setdefault(op)
        return known

    def _is_inside(self, block: ir.Block) -> bool:
        """Whether a block is the loop's, or one of its nests'."""
        return block == self._block or block.owner.operation.block == self._block

    def first(self, element: Sequence[ir.Value]) -> tuple[Elements, list[ir.Value]]:
        """Elements that stay the same, and what the first iteration is handed.

        Arrays of a loop without iterations may have no elements at all.
        """
        moving = [(read, step) for read in self._moving for step in range(self._ahead)]
        names = [read.names[0] for read in self._fixed] + [read.names[0] for read, _ in moving]
        kinds = [name.type for name in names]
        some = build.compare_index(2, self._lower, self._upper)
        made = ir.Operation.create("scf.if", results=kinds, operands=[some], regions=2)
        with ir.InsertionPoint(ir.Block.create_at_start(made.regions[0], [])):
            values = [self._load(read, self._lower, element) for read in self._fixed]
            values += [self._load(read, self._later(self._lower, step), element) for read, step in moving]
            build.create("scf.yield", [], values)
        with ir.InsertionPoint(ir.Block.create_at_start(made.regions[1], [])):
            build.create("scf.yield", [], [zero(kind) for kind in kinds])
        count, results = len(self._fixed), list[ir.Value](made.results)
        fixed = zip(self._fixed, results[:count], strict=True)
        return {name: value for read, value in fixed for name in read.names}, results[count:]

    def now(self, given: Sequence[ir.Value]) -> Elements:
        """The elements of an iteration, of what was handed to it."""
        reads = zip(self._moving, given[:: self._ahead], strict=True)
        return {name: value for read, value in reads for name in read.names}

    def then(self, index: ir.Value, given: Sequence[ir.Value], element: Sequence[ir.Value]) -> list[ir.Value]:
        """What an iteration hands on; it reads the elements of a later one."""
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
        further = build.index_op("muli", self._step, build.const_index(steps))
        at = build.index_op("addi", index, further)
        return build.select(build.compare_index(2, at, self._upper), at, index)

    def _load(self, read: Read, index: ir.Value, element: Sequence[ir.Value]) -> ir.Value:
        new: Elements = {self._index: index}
        for op in read.chain:
            if op.name == "linalg.index":
                new[op.results[0]] = element[ir.IntegerAttr(op.attributes["dim"]).value]
            else:
                copy_with(op, new)
        if isinstance(read.source, Operand):
            buffer = new.get(read.source.buffer, read.source.buffer)
            return load(Operand(buffer, read.source.axes, read.source.argument), element)
        found: ir.Value = copy_with(read.source, new).results[0]
        return found
