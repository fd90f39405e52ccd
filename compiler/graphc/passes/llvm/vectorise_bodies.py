# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inner loops over elements are written with vectors here, and LLVM only makes code of them.

LLVM takes two thirds of the time of such a compilation: of one addition it makes three loops, looks for
what to simplify before and after each, and finds nothing that MLIR's passes have left. What this pass writes
is final: LLVM inlines the glue around it and selects instructions.

The invariant on which that rests: an operation of `LANEWISE` does to each lane of a vector what it does to
a number, as do libmvec's functions for those of libm; an access is the element of a buffer at a number that
the iterations count, up or down; what is stored lies in a buffer that does not overlap the others, and is
read in the same iteration alone; and an accumulator is only added to, in an order that does not matter.
Loops whose iterations wait for each other are final as they are. A kernel with other loops is left to LLVM.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from graphc.ir.helpers import callee_of
from graphc.ir.walk import symbol_of
from graphc.library.markers import PLACES
from graphc.passes import Pass
from graphc.passes.llvm._code import LANEWISE, Loop, called, constant_of, counted, inner_loops, last_of
from graphc.passes.llvm._inner_loops import apart_from_others
from graphc.passes.llvm.divide_kernel import EXPORTS
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# On a `@main` whose loops are final, and on modules; on a `@main` that is inlined and still made better.
VECTORISED, INLINED = "graphc.vectorised", "graphc.inlined"
# Of what AVX2 has no vectors: the instructions that make up for it take longer than numbers one by one.
_SLOW = {
    **dict.fromkeys(("llvm.sitofp", "llvm.fptosi", "llvm.mul"), ("i64", "i8")),
    **dict.fromkeys(("llvm.uitofp", "llvm.fptoui"), ("i64", "i32")),
    **dict.fromkeys(("llvm.shl", "llvm.lshr", "llvm.ashr"), ("i8", "i16")),
}
_DYNAMIC = -(2**31)
# Of what vectors have: to print a type takes ten times as long as to look at it.
_NUMBERS, _WIDTHS = (ir.IntegerType, ir.F64Type, ir.F32Type), frozenset((1, 8, 16, 32, 64))
# Blocks of a function with one loop: entry, head, body, end.
_ONE_LOOP = 4
# Iterations, at most, of blocks of loops (see `graphc.lowering.partial_reductions`) that are long ones.
_LONG = 1024
# What a number of the iteration before may become, by operations whose order counts.
_ORDERED = frozenset(f"llvm.{name}" for name in ("fadd", "fsub", "fmul", "fdiv", "intr.fma", "intr.fmuladd"))
# What a declaration says of a function.
_DECLARED = ("sym_name", "function_type", "visibility_", "linkage")


@record()
class VectoriseBodies(Pass):
    """Writes the inner loops of a kernel with vectors, if there is nothing that LLVM's passes do for others.

    Each becomes a loop over whole vectors, with a few copies of a short body, and one over the rest, whose
    accesses are masked. Without masks, vectors one by one follow the copies, and the loop as it was takes
    what is left. `@main` is marked as `graphc.vectorised`: LLVM inlines what it calls and cleans up, and
    looks at no loop. In the modules of a divided kernel, functions with such a loop go to a module of their
    own that is final.

    Nothing changes if a loop has operations that do not work on lanes, accesses that are not next to each
    other, or stores that other accesses may see, unless its iterations wait for each other (a recurrence, a
    sum in its order): such a loop stays as it is, also where no others are written. Nor does it if a loop is
    in another one and need not be long: LLVM moves conditions out of both.

    Attributes:
        bytes: of a vector; 0 leaves all loops to LLVM.
        widest: of a vector in modules whose loops compute much (`graphc.wide`).
        masks: whether accesses have masks, and all operations forms of vectors.
        libmvec: functions of vectors are called for those of libm.
    """

    bytes: int = 0
    widest: int = 0
    masks: bool = True
    libmvec: bool = False

    stage = "llvm"

    def run(self, module: ir.Module) -> None:
        widest = self.widest if "graphc.wide" in module.operation.attributes else self.bytes
        operations = [op.operation for op in module.body.operations]
        functions = {symbol_of(op): op for op in operations}
        main = functions.get("main")
        if main is not None and (loops := self._final(functions)) is not None:
            self._write(loops, widest)
            main.attributes[VECTORISED] = ir.UnitAttr.get()
            if not {"always_inline", "no_inline"} & {*main.attributes}:
                main.attributes["always_inline"] = main.attributes[INLINED] = ir.UnitAttr.get()
        for op in operations if self.bytes else ():
            if op.name == "builtin.module":
                self._divide(op, widest)

    def _final(self, functions: dict[str, ir.Operation]) -> list[Loop] | None:
        """The loops to write with vectors; None if there are loops for which LLVM could do something else."""
        found = []
        for op in functions.values():
            if op.name == "builtin.module" or "optimize_none" in op.attributes:
                continue
            inner = inner_loops(op)
            apart = _apart(op) if inner else set[ir.Value]()
            for blocks, is_inside in inner:
                loop = self._loop(op, blocks, apart, _LONG if is_inside else 0)
                if loop is not None:
                    found.append(loop)
                elif not _is_final(blocks):
                    return None
        return found

    def _loop(
        self, function: ir.Operation, blocks: list[Any], apart: set[ir.Value], least: int = 0
    ) -> Loop | None:
        """A loop with blocks of at least so many iterations, if it can be written with vectors."""
        found = counted(blocks) if self.bytes else None
        if found is None or (least and not found.ends_block(least)):
            return None
        loop = Loop(function, found)
        return loop if _Scan(loop, self.libmvec, self.masks).succeeds(apart) else None

    def _only(self, function: ir.Operation) -> Loop | None:
        """The loop of a function that has no other, if it can be written with vectors."""
        if "always_inline" in function.attributes or len(list(function.regions[0].blocks)) != _ONE_LOOP:
            return None
        loops = [blocks for blocks, _ in inner_loops(function)]
        return self._loop(function, loops[0], _apart(function)) if loops else None

    def _write(self, loops: Iterable[Loop], widest: int) -> None:
        declared: set[str] = set()
        for loop in loops:
            loop.write(self.bytes, widest, self.masks, declared)
            self.count("loops")

    def _divide(self, piece: ir.Operation, widest: int) -> None:
        """Moves the functions of a module that are final to one of their own, unless all others are, too."""
        block = piece.regions[0].blocks[0]
        functions = [op.operation for op in block.operations if op.operation.name == "llvm.func"]
        loops = [loop for op in functions if (loop := self._only(op)) is not None]
        written = {symbol_of(loop.function) for loop in loops}
        others = [op for op in functions if symbol_of(op) not in written]
        if all(_is_settled(blocks, written) for op in others for blocks, _ in inner_loops(op)):
            piece.attributes[VECTORISED] = ir.UnitAttr.get()
        elif loops:
            self._move(loops, functions, piece)
        self._write(loops, widest)

    def _move(self, loops: list[Loop], functions: list[ir.Operation], piece: ir.Operation) -> None:
        """Moves the functions of loops to a module after theirs, which declares them."""
        names = [loop.function.attributes["sym_name"] for loop in loops]
        marks = {EXPORTS: ir.ArrayAttr.get(names), VECTORISED: ir.UnitAttr.get()}
        marks["sym_name"] = ir.StringAttr.get(f"{symbol_of(piece)}_final")
        ip = ir.InsertionPoint.after(piece)
        final = ir.Operation.create("builtin.module", attributes=marks, regions=1, ip=ip)
        body = ir.Block.create_at_start(final.regions[0], [])
        for loop in loops:
            function = loop.function
            function.attributes["visibility_"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 1)
            function.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<external>")
            shared = {name: function.attributes[name] for name in _DECLARED}
            ir.Operation.create("llvm.func", attributes=shared, regions=1, ip=ir.InsertionPoint(function))
            body.append(function)
        if not self.masks:  # the loops stay, with what they call
            inside = (op for loop in loops for op in loop.inside)
            callees = {callee_of(op) for op in inside if op.name == "llvm.call"}
            for op in [op for op in functions if symbol_of(op) in callees]:
                body.append(op.clone())


def _is_settled(blocks: Sequence[Any], written: set[str]) -> bool:
    """True if LLVM could do nothing for a loop: it is final, or calls one that is."""
    calls = (op.operation for block in blocks for op in block.operations if op.name == "llvm.call")
    return any(callee_of(op) in written for op in calls) or _is_final(blocks)


def _is_final(blocks: Sequence[Any]) -> bool:
    """True if LLVM could only write a loop several times.

    It works on vectors, or each iteration waits for the one before it: a number of floating point follows
    from that of the iteration before by operations whose order counts. Where nothing is called, what is
    stored depends on the iteration, so that no number is kept in memory.
    """
    head, *_ = blocks
    operations = [op.operation for block in blocks for op in block.operations]
    has_vectors = any(isinstance(value.type, ir.VectorType) for op in operations for value in op.results)
    if any(op.name == "llvm.call" for op in operations):
        return has_vectors
    moving: set[ir.Value] = {*head.arguments}
    ordered: set[ir.Value] = set()
    for op in operations:
        if op.name == "llvm.store" and op.operands[1] not in moving:
            return False
        if not moving.isdisjoint(op.operands):
            moving.update(op.results)
            if op.name in _ORDERED and not _is_free(op):
                ordered.update(op.results)
    return has_vectors or any(value in ordered for value in last_of(blocks[-1]).operands)


def _is_free(op: ir.Operation) -> bool:
    """True if the order of additions does not matter."""
    return "fastmathFlags" in op.attributes and "reassoc" in str(op.attributes["fastmathFlags"])


def _apart(function: ir.Operation) -> set[ir.Value]:
    """Pointers to what does not overlap others: parameters, and buffers of the workspace."""
    return apart_from_others(function) | {
        op.operation.results[0]
        for block in function.regions[0].blocks
        for op in block.operations
        if op.name == "llvm.call" and callee_of(op.operation) in PLACES
    }


class _Scan:
    """Fills in what a loop does.

    Args:
        loop: gains what is found.
        libmvec: whether functions of libm have those of vectors.
        all_lanes: whether the machine has all of `LANEWISE` for vectors.
    """

    def __init__(self, loop: Loop, libmvec: bool, all_lanes: bool) -> None:
        self._libmvec, self._all_lanes = libmvec, all_lanes
        self._loop, self._head, self._body = loop, loop.counted.header, loop.counted.body
        self._number, *self._sums = self._head.arguments
        self._step, *self._next = last_of(self._body).operands
        self._bits: dict[ir.Type, int] = {}
        self._own: set[ir.Value] = {*self._head.arguments}

    def succeeds(self, apart: set[ir.Value]) -> bool:
        """False where vectors cannot do it.

        Args:
            apart: pointers to what does not overlap others.
        """
        loop = self._loop
        loop.numbers[self._number] = 1
        for op in [op.operation for op in self._body.operations][:-1]:
            operands = list(op.operands)
            if op.name in ("llvm.add", "llvm.sub") and not loop.numbers.keys().isdisjoint(operands):
                if not self._counts(op, operands):
                    return False
                if op.results[0] == self._step and sum(1 for _ in self._step.uses) == 1:
                    continue
            elif self._own.isdisjoint(operands) and _is_number(op):
                loop.constant.append(op)
                continue
            elif not self._takes(op, operands):
                return False
            else:
                loop.work += op.name != "llvm.getelementptr"
            self._own.update(op.results)
            loop.inside.append(op)
        inside = (self._head, self._body)
        return (
            self._is_step()
            and self._meet_nothing(apart)
            and all(use.owner.operation.block in inside for use in self._number.uses)
            and all(self._is_sum(value, after) for value, after in zip(self._sums, self._next, strict=True))
        )

    def _is_step(self) -> bool:
        """True if the next number is that after this one."""
        op = self._step.owner
        if isinstance(op, ir.Block) or op.name != "llvm.add" or op.operation.block != self._body:
            return False
        return op.operands[0] == self._number and constant_of(op.operands[1]) == 1

    def _counts(self, op: ir.Operation, operands: list[ir.Value]) -> bool:
        """Takes a sum or difference of a counted number and one from outside into account."""
        counted, (first, second) = self._loop.numbers, operands
        sign = counted.get(first, 0)
        if second in counted:
            sign = -counted[second] if op.name == "llvm.sub" else counted[second]
            first, second = second, first
        counted[op.results[0]] = sign
        return first in counted and second not in self._own

    def _takes(self, op: ir.Operation, operands: list[ir.Value]) -> bool:
        name, loop = op.name, self._loop
        if name == "llvm.getelementptr":
            element = ir.TypeAttr(op.attributes["elem_type"]).value
            loop.pointers[op.results[0]] = operands[0], element
            plain = len(operands) == 2 and list(op.attributes["rawConstantIndices"]) == [_DYNAMIC]
            return plain and operands[1] in loop.numbers and operands[0] not in self._own
        if not loop.numbers.keys().isdisjoint(operands):
            return False
        if name in LANEWISE or (self._libmvec and called(op)):
            values = *operands, *op.results
            slow = () if self._all_lanes else _SLOW.get(name, ())
            counted = all(map(self._count, values))
            return counted and not (slow and any(str(value.type) in slow for value in values))
        if name not in ("llvm.load", "llvm.store") or operands[-1] not in loop.pointers or not _is_plain(op):
            return False
        value = op.results[0] if name == "llvm.load" else operands[0]
        return value.type == loop.pointers[operands[-1]][1] and self._count(value)

    def _meet_nothing(self, apart: set[ir.Value]) -> bool:
        """True if what is stored is read in the same iteration alone.

        It lies in a buffer that does not overlap others, and all accesses to this buffer are to the same
        element of the same size.
        """
        places: dict[ir.Value | None, set[tuple[object, ...]]] = {}
        for pointer, (base, element) in self._loop.pointers.items():
            place = base, pointer.owner.operands[1], element
            places.setdefault(_buffer_of(base), set()).add(place)
        stored = [op.operands[1] for op in self._loop.inside if op.name == "llvm.store"]
        buffers = {_buffer_of(self._loop.pointers[pointer][0]) for pointer in stored}
        return not buffers or (
            None not in places and all(b in apart and len(places[b]) == 1 for b in buffers)
        )

    def _count(self, value: ir.Value) -> bool:
        """Takes a value into account; False if it is no number."""
        kind = value.type
        bits = self._bits.get(kind)
        if bits is None:
            bits = kind.width if isinstance(kind, _NUMBERS) and kind.width in _WIDTHS else 0
            self._bits[kind] = bits
            self._loop.bits = max(self._loop.bits, bits)
        return bits > 0

    def _is_sum(self, value: ir.Value, after: ir.Value) -> bool:
        """True if an accumulator is only added to, and it does not matter in which order."""
        op = after.owner
        if isinstance(op, ir.Block) or op.operation.block != self._body:
            return False
        uses = [use.owner.operation for use in value.uses if use.owner.operation.block == self._body]
        is_free = op.name == "llvm.add" or (op.name == "llvm.fadd" and _is_free(op))
        self._loop.sums.append(op.operation)
        return is_free and uses == [op.operation] and sum(1 for _ in after.uses) == 1


def _buffer_of(pointer: ir.Value) -> ir.Value | None:
    """The parameter or the buffer of the workspace in which a pointer points; None if that is not known."""
    owner = pointer.owner
    while not isinstance(owner, ir.Block) and owner.name in ("llvm.getelementptr", "llvm.extractvalue"):
        pointer = owner.operands[0]
        owner = pointer.owner
    if isinstance(owner, ir.Block):
        return pointer if owner == owner.region.blocks[0] else None
    return pointer if owner.name == "llvm.call" and callee_of(owner.operation) in PLACES else None


def _is_number(op: ir.Operation) -> bool:
    """True if an operation has no effect but a number of floating point, or an address.

    One that depends on no iteration is done once: the product that fills what a recurrence has not changed
    any more may be denormal, for which some processors take a hundred cycles.
    """
    is_float = op.name in LANEWISE and isinstance(op.results[0].type, ir.FloatType)
    return is_float or op.name == "llvm.getelementptr"


def _is_plain(op: ir.Operation) -> bool:
    """True if an access is neither volatile nor atomic."""
    return all(name in ("alignment", "ordering") for name in op.attributes) and (
        "ordering" not in op.attributes or int(op.attributes["ordering"].value) == 0
    )
