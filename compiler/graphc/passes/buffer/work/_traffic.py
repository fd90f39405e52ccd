# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a kernel moves: the elements that it reads and writes, each counted once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from graphc.ir.helpers import callee_of
from graphc.ir.lifetimes import VIEWS
from graphc.ir.work import Place
from graphc.library.helpers import BlockProduct, Gemm, Helper, KernelCall
from graphc.passes.buffer._expressions import Expressions
from graphc.passes.buffer.memory._buffer_sizes import item_size
from graphc.passes.buffer.work._arithmetic import product_sizes
from graphc_dialects._mlir import ir
from graphc_dialects.signatures import SIGNATURES

# Operations that lead from an address to what it points into, by their first operand.
_ADDRESSES = frozenset(
    {
        *VIEWS,
        *("memref.view", "memref.memory_space_cast", "memref.extract_strided_metadata"),
        *("memref.extract_aligned_pointer_as_index", "arith.index_cast", "arith.addi", "arith.select"),
        *("llvm.inttoptr", "llvm.getelementptr"),
    }
)
_BEFORE = ("memref.alloca",)


class Traffic:
    """The places that one kernel reads and writes.

    A place is a buffer with an address in it that is used again and again. It counts as many elements as the
    address has values: one for each iteration of those loops that it depends on. What a kernel has written
    before costs nothing to read, nor do buffers on the stack.

    Args:
        expressions: see `graphc.passes.buffer.work._arithmetic.Arithmetic`.
        helpers: the same.
        roots: gains the buffers, by number.

    Attributes:
        places: by what is the same for equal ones.
    """

    def __init__(
        self, expressions: Expressions, helpers: Mapping[str, Helper], roots: dict[ir.Value, int]
    ) -> None:
        self._expressions, self._helpers, self._roots = expressions, helpers, roots
        self._loops: list[ir.Operation] = []
        self._written: set[ir.Value] = set()
        self._depends: dict[ir.Value, frozenset[int]] = {}
        self.places: dict[tuple[object, ...], Place] = {}

    def visit(self, op: ir.Operation) -> None:
        """Adds what an operation, or one in it, reads and writes."""
        if op.name == "memref.load":
            self._element(op.operands[0], list(op.operands), write=False)
        elif op.name == "memref.store":
            self._element(op.operands[1], list(op.operands)[1:], write=True)
        elif op.name == "memref.copy":
            self._whole(op.operands[0], write=False)
            self._whole(op.operands[1], write=True)
        elif op.name == "func.call":
            self._call(op)
        else:
            loop = op.name in ("scf.for", "scf.while")
            if loop:
                self._loops.append(op)
            for region in op.regions:
                for block in region.blocks:
                    for inner in block.operations:
                        self.visit(inner.operation)
            if loop:
                self._loops.pop()

    def _element(self, memref: ir.Value, address: list[ir.Value], *, write: bool) -> None:
        self._place(memref, item_size(memref.type.element_type) or 0, [], address, write=write)

    def _whole(self, memref: ir.Value, *, write: bool) -> None:
        sizes = [self._expressions.size(memref, axis) for axis in range(memref.type.rank)]
        self._place(memref, item_size(memref.type.element_type) or 0, sizes, [memref], write=write)

    def _call(self, op: ir.Operation) -> None:
        helper = self._helpers.get(callee_of(op))
        if isinstance(helper, Gemm | BlockProduct):
            m, n, k = (self._expressions.number(size) for size in product_sizes(op, helper))
            item = {"s": 4, "d": 8, "c": 8, "z": 16}[helper.letter]
            first = 5 if isinstance(helper, Gemm) else 0
            a, b, c = list(op.operands)[first : first + 6 : 2]
            self._place(a, item, [m, k], [a], write=False)
            self._place(b, item, [k, n], [b], write=False)
            accumulates = op.operands[first + 6].owner.operation.attributes["value"]
            if ir.BoolAttr(accumulates).value:
                self._place(c, item, [m, n], [c], write=False)
            self._place(c, item, [m, n], [c], write=True)
        elif isinstance(helper, KernelCall):
            self._kernel(op, helper)

    def _kernel(self, op: ir.Operation, helper: KernelCall) -> None:
        """Operands and results of a kernel, for each element of its batch."""
        signature = SIGNATURES[helper.name]
        cores = [*signature.operands, *signature.results]
        values = list(op.operands)
        sizes = dict(zip(signature.dims, values[len(values) - len(signature.dims) :], strict=True))
        batch = values[len(values) - len(signature.dims) - 3]
        for number, core in enumerate(cores):
            count = [self._expressions.number(size) for size in (batch, *(sizes[dim] for dim in core))]
            item = _ITEMS.get(helper.types[number], 8)
            pointer = values[number]
            self._place(pointer, item, count, [pointer], write=number >= len(signature.operands))

    def _place(
        self, source: ir.Value, item: int, count: list[int], address: list[ir.Value], *, write: bool
    ) -> None:
        root = root_of(source)
        if write:
            self._written.add(root)
        elif root in self._written:
            return
        if not isinstance(root.owner, ir.Block) and root.owner.name in _BEFORE:
            return
        depends = frozenset[int]().union(*map(self._dependencies, address))
        key = (root, write, tuple(address), tuple(count))
        loops = [self._loop(loop) for i, loop in enumerate(self._loops) if i in depends]
        number = self._roots.setdefault(root, len(self._roots))
        place: Place = {"root": number, "written": write, "item": item, "count": count, "loops": loops}
        self.places.setdefault(key, place)

    def _loop(self, loop: ir.Operation) -> list[int]:
        """A loop as a variable and bounds; one of unknown length has bounds that nobody knows."""
        if loop.name == "scf.while":
            return [-1, *(self._expressions.number(None) for _ in range(3))]
        variables = self._expressions.variables
        variable = loop.regions[0].blocks[0].arguments[0]
        number = variables.setdefault(variable, len(variables))
        return [number, *(self._expressions.number(bound) for bound in list(loop.operands)[:3])]

    def _dependencies(self, value: ir.Value) -> frozenset[int]:
        """Positions in the loops around of those that a value changes with."""
        stack = [value]
        while stack:
            current = stack[-1]
            if current in self._depends:
                stack.pop()
                continue
            own, operands = self._direct(current)
            missing = [x for x in operands if x not in self._depends and x not in stack]
            if missing:
                stack += missing
                continue
            known = (self._depends.get(x, frozenset()) for x in operands)
            self._depends[current] = own.union(*known)
            stack.pop()
        return self._depends[value]

    def _direct(self, value: ir.Value) -> tuple[frozenset[int], list[ir.Value]]:
        """The loop that a value is an argument of, and the values that it is computed from."""
        if isinstance(value.owner, ir.Block):
            owner = value.owner.owner.operation
            if owner not in self._loops:
                return frozenset(), []
            position = self._loops.index(owner)
            if owner.name == "scf.while":
                return frozenset({position}), []
            first = value.arg_number
            more = list(owner.operands)[:3] if first == 0 else [owner.operands[2 + first]]
            return frozenset({position}), more
        return frozenset(), list(_inputs(value.owner.operation))


_ITEMS = {"float": 4, "double": 8, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "i1": 1, "cfloat": 8, "cdouble": 16}


def _inputs(op: ir.Operation) -> Iterator[ir.Value]:
    yield from op.operands
    if op.name == "scf.if":
        for region in op.regions:
            for block in region.blocks:
                yield from block.operations[-1].operands


def root_of(value: ir.Value) -> ir.Value:
    """The buffer that an address points into: an argument, an allocation, or what a call or a conditional
    gave.
    """
    while True:
        owner = value.owner
        if isinstance(owner, ir.Block):
            loop = owner.owner.operation
            if loop.name == "scf.for" and value.arg_number > 0:
                value = loop.operands[2 + value.arg_number]
                continue
            return value
        op = owner.operation
        if op.name == "scf.for":
            value = op.operands[3 + ir.OpResult(value).result_number]
        elif op.name in _ADDRESSES:
            value = op.operands[1] if op.name == "arith.select" else op.operands[0]
        else:
            return value
