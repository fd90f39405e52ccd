# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The units of a block as steps that read and make arrays, and how much memory they hold.

Operations and arrays are numbers here: a plan is tried hundreds of times, and only the best one is made. An
array that is computed again exists in several *versions*, each with a lifetime of its own.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from graphc.ir.constants import CONSTANTS, element_dtype
from graphc.ir.kinds import CHEAP, PRODUCTS, REDUCTIONS, flags_of, is_elementwise, static_shape
from graphc.ir.views import COUNTS, GATHERS
from graphc.ir.walk import inputs_of
from graphc.lowering.memory.liveness import ALIASES, root
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# What an element costs that is not cheap, and how many flops of a product take as long as one cheap element.
_FUNCTION, _PRODUCT = 10, 8


@record(frozen=True)
class Node:
    """An operation of the block.

    Attributes:
        op: the operation. unit: the number of its unit.
        reads: the arrays that its operands are, or are views of.
        direct: those that it reads as they are.
        makes: the arrays that it computes.
        shape: of the loop that computes it; None for what is no loop, or of unknown size.
        flops: operations, a function such as `exp` counting as one. cost: the same by the time they take.
        is_pure: whether it can be computed again.
    """

    op: ir.Operation
    unit: int
    reads: tuple[int, ...]
    direct: frozenset[int]
    makes: tuple[int, ...]
    shape: tuple[int, ...] | None
    flops: int
    cost: int
    is_pure: bool

    @property
    def is_fusible(self) -> bool:
        """True if a loop over its elements can compute it where it reads it."""
        return self.shape is not None and is_elementwise(self.op.name)


@record(frozen=True)
class Step:
    """A unit, or a part of one that is computed again.

    Attributes:
        nodes: its operations.
        reads: the version that is read of each array.
        makes: the version that is made of each array that others read.
        added: operations that are computed again in its loop, in the order of the program.
        direct: the arrays that are read only at the position that is written.
        is_copy: whether the operations are copies.
    """

    nodes: tuple[int, ...]
    reads: Mapping[int, int]
    makes: Mapping[int, int]
    direct: frozenset[int]
    added: tuple[int, ...] = ()
    is_copy: bool = False


class Program:
    """The operations and arrays of a block, and its steps as they are.

    Args:
        order: the members of the block's units, in the order in which they are done.
        kept: values in memory of the caller, such as results.
        lent: arguments that the caller allows to be overwritten.

    Attributes:
        nodes: the operations. arrays: what they compute, by number. sizes: bytes of each array, 0 where
            they are not known. kinds: their types, as numbers. made_by: the node of each, None for arguments.
        unknown: how many arrays of unknown size are stored. protected: what an operation may overwrite.
        steps: one for each unit. versions: the array that each version is of.
    """

    def __init__(
        self, order: Sequence[Sequence[ir.Operation]], kept: Sequence[ir.Value], lent: Sequence[ir.Value]
    ) -> None:
        self._kept = {root(value) for value in kept}
        self._numbers: dict[ir.Value, int] = {}
        self.nodes: list[Node] = []
        self.arrays: list[ir.Value] = []
        self.sizes: list[int] = []
        self.made_by: list[int | None] = []
        self.versions: list[int] = []
        self._unsized: set[int] = set()
        self._kinds: dict[ir.Type, int] = {}
        self.kinds: list[int] = []
        for value in lent:
            self._add(value, None, 0)
        for unit, members in enumerate(order):
            for op in members:
                self._node(op, unit)
        self.protected = self._protected()
        self.steps = self._steps(len(order))

    def version(self, array: int) -> int:
        """A new version of an array."""
        self.versions.append(array)
        return len(self.versions) - 1

    def is_inline(self, array: int, shape: tuple[int, ...]) -> bool:
        """True if a loop over a shape reads an array at its own position."""
        return static_shape(self.arrays[array]) == shape

    def _add(self, value: ir.Value, node: int | None, size: int | None) -> int:
        number = self._numbers[value] = len(self.arrays)
        self.arrays.append(value)
        self.sizes.append(size or 0)
        self.made_by.append(node)
        if size is None:
            self._unsized.add(number)
        self.kinds.append(self._kinds.setdefault(value.type, len(self._kinds)))
        return number

    def _node(self, op: ir.Operation, unit: int) -> None:
        reads: dict[int, bool] = {}
        # Who reads a view reads the array.
        if op.name != "tensor.dim" and op.name not in ALIASES:
            for operand in inputs_of(op):
                source = root(operand)
                number = self._numbers.get(source)
                if number is not None:
                    reads[number] = reads.get(number, True) and source == operand
        number = len(self.nodes)
        is_loop = op.name in REDUCTIONS or is_elementwise(op.name)
        makes = [self._add(r, number, _bytes(r)) for r in op.results if self._takes_memory(op, r)]
        domain = _domain(op) if is_loop else None
        flops, cost = _work(op, domain)
        direct = frozenset(
            array for array, is_direct in reads.items() if is_direct and op.name not in GATHERS
        )
        is_pure = (is_loop and op.name not in GATHERS) or op.name in PRODUCTS
        node = Node(op, unit, tuple(reads), direct, tuple(makes), domain, flops, cost, is_pure)
        self.nodes.append(node)

    def _takes_memory(self, op: ir.Operation, result: ir.Value) -> bool:
        if op.name in ALIASES or op.name in COUNTS or op.name in CONSTANTS or result in self._kept:
            return False
        return isinstance(result.type, ir.RankedTensorType) and _bytes(result) != 0

    def _protected(self) -> set[int]:
        """Arrays that something else than loops and products reads: it may compute in their memory."""
        harmless = {"func.return", "tensor.dim", "tensor.extract"}
        return {
            array
            for node in self.nodes
            for array in node.reads
            if not (node.is_pure or node.op.name in harmless)
        }

    def _steps(self, units: int) -> list[Step]:
        members: list[list[int]] = [[] for _ in range(units)]
        for number, node in enumerate(self.nodes):
            members[node.unit].append(number)
        read_outside = {
            array
            for node in self.nodes
            for array in node.reads
            if (maker := self.made_by[array]) is None or self.nodes[maker].unit != node.unit
        }
        current = {array: self.version(array) for array, maker in enumerate(self.made_by) if maker is None}
        steps = []
        for nodes in members:
            made = {a: self.version(a) for n in nodes for a in self.nodes[n].makes if a in read_outside}
            own = {array for n in nodes for array in self.nodes[n].makes}
            read = {a: current[a] for n in nodes for a in self.nodes[n].reads if a not in own}
            steps.append(Step(tuple(nodes), read, made, self.direct(nodes)))
            current.update(made)
        self.unknown = len(self._unsized & read_outside)
        return steps

    def direct(self, nodes: Collection[int]) -> frozenset[int]:
        """The arrays that some operations read as they are, in a loop."""
        if any(self.nodes[n].shape is None for n in nodes):
            return frozenset()
        views = {a for n in nodes for a in self.nodes[n].reads if a not in self.nodes[n].direct}
        return frozenset(a for n in nodes for a in self.nodes[n].direct) - views


class Memory:
    """Memory that steps hold.

    Attributes:
        usage: bytes in use during each step.
        made, last: where a version is made, and where it is read last.
    """

    def __init__(self, program: Program, steps: Sequence[Step]) -> None:
        self.made: dict[int, int] = {}
        self.last: dict[int, int] = {}
        for number, step in enumerate(steps):
            self.made.update(dict.fromkeys(step.makes.values(), number))
            self.last.update(dict.fromkeys(step.reads.values(), number))
        self.usage: list[int] = []
        sizes, versions, live = program.sizes, program.versions, 0
        for number, step in enumerate(steps):
            made = [array for array, version in step.makes.items() if version in self.last]
            ended = [versions[v] for v in step.reads.values() if self.last[v] == number]
            need = sum(sizes[array] for array in made)
            self.usage.append(live + need - _reused(program, step, made, ended))
            live += need - sum(sizes[array] for array in ended)

    @property
    def peak(self) -> int:
        """The most bytes in use at once."""
        return max(self.usage, default=0)

    def excess(self, limit: int) -> int:
        """By how much all steps together are above a limit."""
        return sum(use - limit for use in self.usage if use > limit)


def _reused(program: Program, step: Step, made: list[int], ended: list[int]) -> int:
    """The bytes of what is computed where an operand lies that nobody reads afterwards."""
    free = [program.kinds[array] for array in ended if array in step.direct]
    total = 0
    for array in made if free else ():
        if program.kinds[array] in free:
            free.remove(program.kinds[array])
            total += program.sizes[array]
    return total


def _bytes(value: ir.Value) -> int | None:
    """Bytes of a tensor; None where a size is not known."""
    shape = static_shape(value)
    known = [size for size in shape if size is not None]
    return (
        None
        if len(known) < len(shape)
        else math.prod(known) * element_dtype(value.type.element_type).itemsize
    )


def _domain(op: ir.Operation) -> tuple[int, ...] | None:
    """Iteration space of an operation; None where a size is not known."""
    shape = static_shape(op.operands[0] if op.name in REDUCTIONS else op.results[0])
    known = tuple(size for size in shape if size is not None)
    return known if len(known) == len(shape) else None


def _work(op: ir.Operation, domain: tuple[int, ...] | None) -> tuple[int, int]:
    """The flops of an operation, and its cost, in elements of cheap operations."""
    if domain is not None:
        count = math.prod(domain)
        return count, count * (1 if op.name in CHEAP or op.name in REDUCTIONS else _FUNCTION)
    if op.name not in PRODUCTS:
        return 0, 0
    transposed, _ = flags_of(op)
    sizes = [
        size or 1
        for size in (*static_shape(op.results[0]), static_shape(op.operands[0])[-2 if transposed else -1])
    ]
    return 2 * math.prod(sizes), 2 * math.prod(sizes) // _PRODUCT
