# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loop nests of long functions become functions of their own.

How long a loop runs is estimated from the sizes that are known when it begins.

Times are picoseconds of vectorised code on one core, for double precision; they only have to tell work that
is worth waking a second core for from work that is not. A cost is a `Size` whose names are index values that
are known at run time only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphc.ir import build
from graphc.ir.helpers import callee_of
from graphc.ir.lifetimes import ROW, VIEWS
from graphc.ir.size import Size
from graphc.ir.value import as_index, built
from graphc.ir.walk import blocks_outside_loops, copy_with, functions, walk, walk_for
from graphc.library.helpers import BlockProduct, Gemm, Helper
from graphc.library.markers import PLACES
from graphc.lowering.memory.layouts import stated
from graphc.passes import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

if TYPE_CHECKING:
    from types import ModuleType


# Iterations of an inner loop whose bounds are only known inside.
_GUESS = 16
_MATH_DEFAULT = 1500
# Static sizes can make longer times than an index can hold: 50 days are enough.
_MOST = 2**62
_COSTS = {
    "memref.load": 100,
    "memref.store": 200,
    "arith.divf": 400,
    "arith.remf": 5000,
    "arith.divsi": 1500,
    "arith.divui": 1500,
    "arith.remsi": 1500,
    "arith.remui": 1500,
    "arith.constant": 0,
    "arith.index_cast": 0,
    "memref.dim": 0,
    "scf.yield": 0,
    "math.exp": 500,
    "math.log": 700,
    "math.sqrt": 400,
    "math.absf": 40,
    "math.floor": 80,
    "math.ceil": 80,
    "math.trunc": 80,
    "math.roundeven": 80,
    "math.copysign": 40,
    "math.fma": 40,
    "math.powf": 4000,
}
_ARITHMETIC = 40
# Calls are products of matrices.
_CALL, _MULTIPLY_ADD = 5_000, 40
_NOTHING = Size()


def cost_value(cost: Size) -> ir.Value:
    """A cost as an index value, at the insertion point."""
    terms = {product: min(count, _MOST) for product, count in cost.terms.items()}
    return built(Size(min(cost.constant, _MOST), terms))


def _repeated(cost: Size, count: ir.Value | int) -> Size:
    """The cost of `count` repetitions."""
    return cost * count if isinstance(count, int) else Size.of(cost_value(cost) * count)


def unit_cost(loop: ir.Operation, helpers: Mapping[str, Helper]) -> Size:
    """The cost of a step of 1 of the loop's variable; index code is made at the insertion point.

    Args:
        loop: an `scf.for` after the insertion point.
        helpers: by name, what the module declares.
    """
    return _Estimate(loop, helpers).unit(loop)


class _Estimate:
    """Estimates loops inside `outer`; what is defined in `outer` is unknown before it."""

    def __init__(self, outer: ir.Operation, helpers: Mapping[str, Helper]) -> None:
        self._outer, self._helpers = outer, helpers
        self._outside: dict[ir.Block, bool] = {}

    def unit(self, loop: ir.Operation) -> Size:
        block = loop.regions[0].blocks[0]
        step = build.constant_value(loop.operands[2]) or 1
        total, blocks = self._block(block, block.arguments[0])
        if step == 1:
            return total + blocks
        cost = Size(-(-total.constant // step))
        for product, count in total.terms.items():
            part = cost_value(Size(0, {product: count}))
            cost += Size.of(part // step)
        return cost + blocks

    def _block(self, block: ir.Block, variable: ir.Value) -> tuple[Size, Size]:
        """Size of an iteration, and of the loops over the `step` positions that it stands for."""
        total, blocks, plain = _NOTHING, _NOTHING, 0
        for op in [op.operation for op in block.operations]:
            if op.name == "scf.for":
                if op.operands[0] == variable:
                    blocks = blocks + self.unit(op)
                else:
                    total = total + _repeated(self.unit(op), self._extent(op))
            elif len(op.regions):
                for inner in (block for region in op.regions for block in region.blocks):
                    more, nested = self._block(inner, variable)
                    total, blocks = total + more, blocks + nested
            elif op.name == "func.call":
                total = total + self._call(op)
            else:
                plain += _cost_of(op)
        return total + plain, blocks

    def _call(self, call: ir.Operation) -> Size:
        helper = self._helpers.get(callee_of(call))
        if isinstance(helper, Gemm):
            return self._product(call)
        sizes = helper.sizes if isinstance(helper, BlockProduct) else ()
        return Size(_CALL + _MULTIPLY_ADD * math.prod(sizes))

    def _product(self, call: ir.Operation) -> Size:
        """A product of any sizes."""
        fixed, known, unknown = _CALL, _MULTIPLY_ADD, []
        for size in list(call.operands)[2:5]:
            number = build.constant_value(size)
            if number is not None:
                known *= number
            elif self._is_outside(size):
                unknown.append(build.create("arith.index_cast", [build.index_type()], [size]).result)
            else:
                known *= _GUESS
        if not unknown:
            return Size(fixed + known)
        total = as_index(known)
        for size in unknown:
            total = total * size
        return Size.of(total) + fixed

    def _extent(self, loop: ir.Operation) -> ir.Value | int:
        lower, upper = loop.operands[0], loop.operands[1]
        low, high = build.constant_value(lower), build.constant_value(upper)
        if low is not None and high is not None:
            return max(high - low, 0)
        if not (self._is_outside(lower) and self._is_outside(upper)):
            return self._width(lower, upper)
        return upper if low == 0 else upper - lower

    def _width(self, lower: ir.Value, upper: ir.Value) -> ir.Value | int:
        """The extent of a loop from `lower` to the minimum of `lower + width` and an end."""
        for least in minimum_of(upper):
            owner = least.owner
            if not isinstance(owner, ir.Block) and owner.name == "arith.addi" and lower in owner.operands:
                width = next(x for x in owner.operands if x != lower)
                if self._is_outside(width):
                    known = build.constant_value(width)
                    return width if known is None else known
        return _GUESS

    def _is_outside(self, value: ir.Value) -> bool:
        """True if a value is defined before the outer loop."""
        block = value.owner if isinstance(value.owner, ir.Block) else value.owner.operation.block
        known = self._outside.get(block)
        if known is None:
            parent: ir.Operation = block.owner.operation
            while parent != self._outer and parent.name not in ("func.func", "builtin.module"):
                parent = parent.parent.operation
            known = self._outside[block] = parent != self._outer
        return known


def minimum_of(value: ir.Value) -> list[ir.Value]:
    """The values that a value is the minimum of."""
    owner = value.owner
    is_minimum = not isinstance(owner, ir.Block) and owner.name == "arith.minsi"
    return list(owner.operands) if is_minimum else [value]


def _cost_of(op: ir.Operation) -> int:
    name = op.name
    if name in _COSTS:
        return _COSTS[name]
    return _MATH_DEFAULT if name.startswith("math.") else _ARITHMETIC


_HARMLESS = ("arith.", "math.", "complex.", "scf.for", "scf.if", "scf.yield", "memref.dim")
_STEP = "llvm.getelementptr"
_ADDRESSES = ("memref.extract_aligned_pointer_as_index", "arith.index_cast", "llvm.inttoptr", _STEP)
_ALL_VIEWS = frozenset({*VIEWS, "memref.view", "memref.extract_strided_metadata"})
# A position of an index and an expression that differs from iteration to iteration.
_Key = tuple[Any, ...]
_Places = frozenset[tuple[int, _Key]]


def is_independent(loop: ir.Operation, helpers: Mapping[str, Helper]) -> bool:
    """True if no iteration touches what another one writes.

    That is so if the loop carries no values, contains nothing but arithmetic, loops and accesses of memory
    whose origin is known (arguments, allocations, places of a workspace: these do not overlap), and every
    buffer that it writes, but for rows that belong to one iteration, is always indexed, in one position, by
    the induction variable: itself, times a number that is not 0, plus something that is the same in all
    iterations, or the variable of a loop over the positions up to the next value, or over a part of as many
    positions in each iteration.

    Args:
        loop: an `scf.for`.
        helpers: by name, what the module declares.
    """
    return not len(loop.results) and _Accesses(loop, helpers).independent


def is_view(op: ir.Operation) -> bool:
    """True if an operation gives an address in its first operand's memory, and does nothing else."""
    return op.name in _ALL_VIEWS


class _Accesses:
    """The memory that a loop reads and writes."""

    def __init__(self, loop: Any, helpers: Mapping[str, Helper]) -> None:
        self._loop, self._helpers = loop, helpers
        inside = walk(loop)
        block = loop.regions[0].blocks[0]
        self._inside: set[ir.Value] = {result for op in inside for result in op.results}
        for op in [loop, *inside]:
            self._inside.update(a for region in op.regions for b in region.blocks for a in b.arguments)
        self._variable = block.arguments[0]
        self._keys: dict[ir.Value, _Key] = {self._variable: ()}
        self._multiples: dict[ir.Value, int] = {}
        # Variables of loops over a part of the positions, and the upper bounds of these loops.
        self._ends: dict[ir.Value, ir.Value] = {}
        # A loop accesses memory through pointers of products, or through memrefs, which do not alias them.
        self._ways: set[str] = set()
        self._step = build.constant_value(loop.operands[2])
        self._written: set[Any] = set()
        self._accesses: dict[ir.Value, list[tuple[Any, _Places]]] = {}
        self.independent = all(self._visit(op) for op in inside) and self._disjoint()

    def _disjoint(self) -> bool:
        if len(self._ways) > 1:
            return False
        for root in self._written:
            accesses = self._accesses[root]
            if len({base for base, _ in accesses}) > 1:
                return False
            if not frozenset.intersection(*(places for _, places in accesses)):
                return False
        return True

    def _visit(self, op: ir.Operation) -> bool:
        """Notes what an operation does; False if it is not understood."""
        name = op.name
        if name == "memref.load":
            return self._access(op.operands[0], list(op.operands)[1:], writes=False)
        if name == "memref.store":
            return self._access(op.operands[1], list(op.operands)[2:], writes=True)
        if name == "memref.copy":
            return self._access(op.operands[0], [], writes=False) and self._access(
                op.operands[1], [], writes=True
            )
        if name == "scf.for":
            self._enter(op)
        elif name in ("arith.addi", "arith.subi"):
            self._shift(op)
        elif name == "arith.index_cast" and op.operands[0] in self._keys:
            if str(op.results[0].type) in ("index", "i64"):  # a narrower type has fewer values
                self._keys[op.results[0]] = self._keys[op.operands[0]]
        elif name == "arith.muli":
            self._scale(op)
        elif name == "func.call":
            return self._product(op)
        elif name == _STEP:
            return True
        return name.startswith(_HARMLESS) or name in _ALL_VIEWS

    def _enter(self, loop: ir.Operation) -> None:
        """A loop over the positions between two values of the induction variable, or in a part of them."""
        lower, bounds = loop.operands[0], minimum_of(loop.operands[1])
        variable = loop.regions[0].blocks[0].arguments[0]
        if lower == self._variable:
            if any(self._is_next(x) for x in bounds):
                self._keys[variable] = ()
        elif lower in self._ends:
            if self._ends[lower] in bounds:
                self._keys[variable], self._ends[variable] = self._keys[lower], loop.operands[1]
        else:
            length = self._other(lower, "arith.muli", self._variable)
            if length is None or length in self._inside:
                return
            if length in [y for x in bounds if (y := self._other(x, "arith.addi", lower)) is not None]:
                self._keys[variable], self._ends[variable] = ("part", length), loop.operands[1]

    def _other(self, value: ir.Value, name: str, operand: ir.Value) -> ir.Value | None:
        """The other operand of the operation of this name that makes a value from one."""
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.name != name:
            return None
        a, b = owner.operands
        return b if a == operand else a if b == operand else None

    def _is_next(self, value: ir.Value) -> bool:
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.name != "arith.addi":
            return False
        others = [x for x in owner.operands if x != self._variable]
        return len(others) == 1 and self._step is not None and build.constant_value(others[0]) == self._step

    def _shift(self, op: ir.Operation) -> None:
        a, b = op.operands
        if a in self._keys and b not in self._inside:
            self._keys[op.results[0]] = (*self._keys[a], op.name, b)
        elif b in self._keys and a not in self._inside:
            # What is subtracted from differs in another way than what something is subtracted from.
            name = op.name if op.name == "arith.addi" else "from"
            self._keys[op.results[0]] = (*self._keys[b], name, a)

    def _scale(self, op: ir.Operation) -> None:
        a, b = op.operands
        factor = build.constant_value(b)
        if factor is not None and self._keys.get(a) == ():
            self._multiples[op.results[0]] = factor
        if factor and a in self._keys:
            self._keys[op.results[0]] = (*self._keys[a], op.name, factor)

    def _product(self, call: ir.Operation) -> bool:
        """A product of matrices, one in each iteration of a loop over a batch."""
        self._ways.add("pointers")
        helper = self._helpers.get(callee_of(call))
        if isinstance(helper, BlockProduct):
            return self._block_product(call, helper.sizes)
        if not isinstance(helper, Gemm):
            return False
        a, b, c = call.operands[5], call.operands[7], call.operands[9]
        target = self._matrix(c)
        # No two positions in the leading dimensions of a buffer are the same memory.
        apart = target is not None and target[1] is not None and self._moves(target[1])
        return apart and target is not None and self._note_matrices(a, b, target[0])

    def _moves(self, offset: ir.Value) -> bool:
        """True if an offset is a sum of which one part is a multiple of the induction variable."""
        owner = offset.owner
        if isinstance(owner, ir.Block):
            return False
        if owner.name == "arith.addi":
            return any(self._moves(part) for part in owner.operands)
        a = owner.operands[0] if owner.name == "arith.muli" else offset
        return self._keys.get(a) == ()

    def _block_product(self, call: ir.Operation, sizes: tuple[int, int, int]) -> bool:
        a, _, b, _, c, row, _ = call.operands
        columns = build.constant_value(row)
        target = self._matrix(c)
        if columns is None or target is None or target[1] is None:
            return False
        buffer, distance = target[0], self._multiples.get(target[1])
        shape = ir.MemRefType(buffer.type).shape
        apart = (sizes[0] - 1) * columns + sizes[1] <= (distance or 0) == math.prod(shape[1:])
        return apart and min(shape[1:]) > 0 and self._note_matrices(a, b, buffer)

    def _note_matrices(self, a: ir.Value, b: ir.Value, target: ir.Value) -> bool:
        for pointer in (a, b):
            found = self._matrix(pointer)
            if found is None or not self._note(found[0], frozenset(), writes=False):
                return False
        return self._note(target, frozenset({(0, ())}), writes=True)

    def _matrix(self, pointer: ir.Value) -> tuple[Any, Any | None] | None:
        """The memref that a pointer points into, and the offset that depends on the iteration."""
        offset = None
        op = pointer.owner
        while not isinstance(op, ir.Block) and op.name in _ADDRESSES:
            if op.name == _ADDRESSES[0]:
                return op.operands[0], offset
            if op.name == _STEP and op.results[0] in self._inside:
                if offset is not None or len(op.operands) != 2:
                    return None
                offset = op.operands[1]
            op = op.operands[0].owner
        return None

    def _note(self, buffer: ir.Value, places: _Places, *, writes: bool) -> bool:
        root = root_of(buffer)
        if root is None or buffer in self._inside:
            return False
        if not isinstance(root.owner, ir.Block) and ROW in root.owner.attributes:
            return True
        self._accesses.setdefault(root, []).append((buffer, places))
        if writes:
            self._written.add(root)
        return True

    def _access(self, buffer: ir.Value, indices: list[ir.Value], *, writes: bool) -> bool:
        self._ways.add("memrefs")
        places = {(i, self._keys[x]) for i, x in enumerate(indices) if x in self._keys}
        while buffer in self._inside:
            owner = buffer.owner
            if isinstance(owner, ir.Block) or owner.name not in ("memref.cast", "memref.subview"):
                return False
            if owner.name == "memref.subview":
                places = self._through_subview(owner.operation, places)
            buffer = owner.operands[0]
        return self._note(buffer, frozenset(places), writes=writes)

    def _through_subview(self, op: ir.Operation, places: set[tuple[int, _Key]]) -> set[tuple[int, _Key]]:
        """Positions in the source of a subview; kept are those where the subview has one row."""
        offsets, sizes, strides = stated(op)
        found = {
            (position, self._keys[offset])
            for position, (offset, size) in enumerate(zip(offsets, sizes, strict=True))
            if isinstance(size, int) and size == 1 and offset in self._keys
        }
        numbers = ((offsets, 0), (strides, 1))
        kept = all(isinstance(x, int) and x == number for given, number in numbers for x in given)
        is_whole = len(sizes) == len(ir.MemRefType(op.results[0].type).shape)
        return found | (places if kept and is_whole else set())


def root_of(buffer: ir.Value) -> ir.Value | None:
    """The memory that a chain of views shows, or None if it might be that of several values."""
    while True:
        owner = buffer.owner
        if isinstance(owner, ir.Block):
            return buffer if owner.owner.operation.name == "func.func" else None
        if owner.name in _ALL_VIEWS:
            buffer = owner.operands[0]
            continue
        if owner.name in ("memref.alloc", "memref.alloca", "memref.get_global"):
            return buffer
        if owner.name == "func.call":
            callee = callee_of(owner)
            return buffer if callee in PLACES else None
        return None


class Captured:
    """The values that operations of one block need as arguments.

    Memory is captured as a whole; views of it, constants and rows of single iterations are made again.

    Args:
        ops: the operations, each followed by those in its regions.
        without: values that they get in another way.

    Attributes:
        values: roots of memory and scalars, each once.
    """

    def __init__(self, ops: Sequence[ir.Operation], without: Sequence[ir.Value] = ()) -> None:
        self.values: list[ir.Value] = []
        self._again: list[ir.Operation] = []
        self._uses: list[tuple[ir.Operation, int, ir.Value]] = []
        seen: set[ir.Value] = set()
        own: set[ir.Value] = set()
        for op in ops:
            for i, value in enumerate(op.operands):
                if value not in own:
                    self._uses.append((op, i, value))
                    if value not in seen and value not in without:
                        self._need(value, seen)
            own.update(op.results)
            for region in op.regions:
                own.update(*(block.arguments for block in region.blocks))

    def _need(self, value: ir.Value, seen: set[ir.Value]) -> None:
        """Captures a value, or notes the operation that makes it, after those that make its operands."""
        owner = value.owner
        if isinstance(owner, ir.Block) or not _is_made_again(owner):
            seen.add(value)
            self.values.append(value)
            return
        seen.update(owner.results)
        for operand in owner.operands:
            if operand not in seen:
                self._need(operand, seen)
        self._again.append(owner.operation)

    def replace(self, arguments: Sequence[ir.Value]) -> None:
        """Makes the operations use arguments, and copies at the insertion point of what makes the rest."""
        new = dict(zip(self.values, arguments, strict=True))
        for op in self._again:
            copy_with(op, new)
        for op, i, value in self._uses:
            if value in new:
                op.operands[i] = new[value]


def _is_made_again(op: ir.Operation) -> bool:
    return bool(op.name == "arith.constant" or is_view(op) or ROW in op.attributes)


# What a nest may contain: nothing that needs the context of a call or may end it.
_ALLOWED = (
    "arith.",
    "math.",
    "complex.",
    "scf.for",
    "scf.if",
    "scf.yield",
    "memref.load",
    "memref.store",
    "memref.dim",
)
_ALLOCATIONS = ("memref.alloc", "memref.alloca")


@record()
class OutlineLoops(Pass):
    """Moves the loop nests of a long function to functions `@graphc_part_<n>(captured...)`.

    They are in the function's block, or in branches of conditionals there.

    Many of LLVM's passes look at a whole function for each of its loops, so that a function with n loops
    takes time n squared. A part is an `scf.for` with the stores of its results after it. It gets the memory
    that it uses as arguments, which do not overlap: different arguments of the function, allocations, or
    places of a workspace. Parts are not inlined; as LLVM drops arguments that nothing reads, calling one
    takes some ten nanoseconds. Functions with fewer than `minimum` such nests stay as they are.

    Left in their place are nests with calls, checks or allocations, those that use memory of unknown origin,
    and those whose results are used for anything but stores.

    Attributes:
        minimum: functions with this many nests are long.
    """

    minimum: int = 48

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        if len(walk_for(module.operation, ("scf.for",))) < self.minimum:
            return
        for function in functions(module):
            parts = [part for block in blocks_outside_loops(function) for part in _find(block)]
            if len(parts) >= self.minimum:
                for ops, captured in parts:
                    _outline(module, ops, captured, self.statistics.get("parts", 0))
                    self.count("parts")


def _find(block: ir.Block) -> list[tuple[list[Any], Any]]:
    """The nests of a block that can be parts, with the stores of their results."""
    operations = [op.operation for op in block.operations]
    found = []
    for position, op in enumerate(operations):
        if op.name != "scf.for":
            continue
        inside = walk(op)
        if not all(inner.name.startswith(_ALLOWED) or is_view(inner) for inner in inside):
            continue
        stores = _stores(operations, position)
        if stores is None:
            continue
        captured = Captured([op, *inside, *stores])
        if all(_is_known(ir, value) for value in captured.values):
            found.append(([op, *stores], captured))
    return found


def _stores(operations: list[ir.Operation], position: int) -> list[ir.Operation] | None:
    """The operations directly after a loop that store its results; None if others use them too."""
    results = set(operations[position].results)
    uses = sum(1 for result in results for _ in result.uses)
    stores = []
    for op in operations[position + 1 :] if results else ():
        if op.name != "memref.store" or op.operands[0] not in results:
            break
        stores.append(op)
    return stores if len(stores) == uses else None


def _is_known(ir: ModuleType, value: ir.Value) -> bool:
    """True if a value is a scalar, or memory that no other captured value overlaps."""
    if not isinstance(value.type, ir.MemRefType):
        return str(value.type) in ("index", "i1", "i8", "i16", "i32", "i64", "f16", "f32", "f64")
    owner = value.owner
    if isinstance(owner, ir.Block):
        return bool(owner.owner.operation.name == "func.func")
    if owner.name == "func.call":
        return callee_of(owner) in PLACES
    return owner.name in _ALLOCATIONS


def _outline(module: ir.Module, ops: list[ir.Operation], captured: Captured, number: int) -> None:
    """Moves operations to a new function, and calls it in their place."""
    name = f"graphc_part_{number}"
    types = [value.type for value in captured.values]
    with ops[0].location:
        with ir.InsertionPoint(module.body):
            attributes = {
                "sym_name": ir.StringAttr.get(name),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [])),
                "sym_visibility": ir.StringAttr.get("private"),
                "graphc.part": ir.UnitAttr.get(),
                "llvm.no_inline": ir.UnitAttr.get(),
            }
            part = ir.Operation.create("func.func", attributes=attributes, regions=1)
        with ir.InsertionPoint(ops[0]):
            build.call(name, [], captured.values)
        body = ir.Block.create_at_start(part.regions[0], types)
        with ir.InsertionPoint(body):
            end = ir.Operation.create("func.return")
        for op in ops:
            op.move_before(end)
        with ir.InsertionPoint(ops[0]):
            captured.replace(list(body.arguments))
