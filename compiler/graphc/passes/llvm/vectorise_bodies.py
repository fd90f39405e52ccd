# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inner loops over elements are written with vectors here, and LLVM only makes code of them.

LLVM takes two thirds of the time of such a compilation: of one addition it makes three loops, looks for
what to simplify before and after each, and finds nothing that MLIR's passes have left. What this pass writes
is final: LLVM inlines the glue around it and selects instructions.

The invariant on which that rests: an operation of `_LANEWISE` does to each lane of a vector what it does to
a number, as do libmvec's functions for those of libm; an access is the element of a buffer at a number that
the iterations count, up or down; what is stored lies in a buffer that does not overlap the others, and is
read in the same iteration alone; and an accumulator is only added to, in an order that does not matter.
Loops whose iterations wait for each other are final as they are. A kernel with other loops is left to LLVM.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any, ClassVar

from graphc.ir.helpers import callee_of
from graphc.ir.walk import named_attributes, symbol_of
from graphc.library.markers import PLACES
from graphc.passes import Pass
from graphc.passes.llvm._inner_loops import (
    Counted,
    apart_from_others,
    call_of,
    constant_of,
    counted,
    inner_loops,
    last_of,
)
from graphc.passes.llvm.divide_kernel import EXPORTS
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# On a `@main` whose loops are final, and on modules; on a `@main` that is inlined and still made better.
VECTORISED, INLINED = "graphc.vectorised", "graphc.inlined"
_LANEWISE = frozenset(
    f"llvm.{name}"
    for name in (
        "fadd fsub fmul fdiv fneg fcmp icmp select add sub mul and or xor shl lshr ashr bitcast sitofp "
        "uitofp fptosi fptoui fpext fptrunc sext zext trunc intr.fma intr.fmuladd intr.fabs intr.sqrt "
        "intr.copysign intr.minnum intr.maxnum intr.minimum intr.maximum intr.smin intr.smax intr.umin "
        "intr.umax intr.abs intr.floor intr.ceil intr.trunc intr.rint intr.nearbyint intr.roundeven"
    ).split()
)
# Of libm: what glibc's libmvec has for vectors, at most 4 units in the last place off (docs/math.md has
# measured errors), and the number of arguments. Those with an expansion of their own only get here if
# `expand-math` was told to keep them.
_UNARY = (
    "acos acosh asin asinh atan atanh cbrt cos cosh erf erfc exp exp2 expm1 log log10 log1p log2 sin "
    "sinh tan tanh"
)
FUNCTIONS = dict.fromkeys(_UNARY.split(), 1) | dict.fromkeys(("atan2", "pow"), 2)
# Letters of its instruction sets by bytes of a vector.
_LETTERS = {16: "b", 32: "d", 64: "e"}
_BITS = {"f64": 64, "f32": 32, "i64": 64, "i32": 32, "i16": 16, "i8": 8, "i1": 1}
# Of what AVX2 has no vectors: the instructions that make up for it take longer than numbers one by one.
_SLOW = {
    **dict.fromkeys(("llvm.sitofp", "llvm.fptosi", "llvm.mul"), ("i64", "i8")),
    **dict.fromkeys(("llvm.uitofp", "llvm.fptoui"), ("i64", "i32")),
    **dict.fromkeys(("llvm.shl", "llvm.lshr", "llvm.ashr"), ("i8", "i16")),
}
_Copies = tuple[tuple[int, int], ...]
_LESS, _SLE, _BELOW = 2, 3, 6  # predicates of llvm.icmp: slt, sle, ult
_DYNAMIC = -(2**31)
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
            apart = _apart(op)
            for blocks, is_inside in inner_loops(op):
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


@record()
class Loop:
    """A loop that can be written with vectors.

    Attributes:
        function: that it is in.
        counted: its blocks.
        inside: the operations of the body that depend on the iteration, without the branch.
        constant: its other ones.
        numbers: those that count with the iterations, up or down: 1 or -1.
        sums: those of them that add to the accumulators of the loop, in their order.
        pointers: base and element type of each address.
        bits: of the widest element.
        work: how many operations work on vectors.
    """

    function: ir.Operation
    counted: Counted
    inside: list[Any] = field(default_factory=list)
    constant: list[Any] = field(default_factory=list)
    numbers: dict[Any, int] = field(default_factory=dict)
    sums: list[Any] = field(default_factory=list)
    pointers: dict[Any, tuple[Any, Any]] = field(default_factory=dict)
    bits: int = 8
    work: int = 0

    def write(self, size: int, widest: int, masks: bool, declared: set[str]) -> None:
        """Replaces the loop.

        Args:
            size: bytes of a vector.
            widest: the same in functions that compute much.
            masks: whether a vector may be less than whole.
            declared: functions that the module declares; gains those that are called.
        """
        size = size if "passthrough" in self.function.attributes else widest
        (_Masked if masks else _Vectors)(self, size, declared).write()


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
        all_lanes: whether the machine has all of `_LANEWISE` for vectors.
    """

    def __init__(self, loop: Loop, libmvec: bool, all_lanes: bool) -> None:
        self._libmvec, self._all_lanes = libmvec, all_lanes
        self._loop, self._head, self._body = loop, loop.counted.header, loop.counted.body
        self._number, *self._sums = self._head.arguments
        self._step, *self._next = last_of(self._body).operands
        self._bits: dict[ir.Type, int | None] = {}
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
        if name in _LANEWISE or (self._libmvec and called(op)):
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
        if kind not in self._bits:
            self._bits[kind] = _BITS.get(str(kind))
            self._loop.bits = max(self._loop.bits, self._bits[kind] or 0)
        return self._bits[kind] is not None

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


def called(op: ir.Operation) -> str:
    """The function of libm, as libmvec names it, that an operation calls; empty if it is something else."""
    if op.name == "llvm.call":
        name = callee_of(op)
    elif op.name.startswith("llvm.intr.") and op.results:
        name = op.name.removeprefix("llvm.intr.") + ("f" if str(op.results[0].type) == "f32" else "")
    else:
        return ""
    kind = "f64" if name in FUNCTIONS else "f32" if name.removesuffix("f") in FUNCTIONS else ""
    return name if kind and op.results and str(op.results[0].type) == kind else ""


def _is_number(op: ir.Operation) -> bool:
    """True if an operation has no effect but a number of floating point, or an address.

    One that depends on no iteration is done once: the product that fills what a recurrence has not changed
    any more may be denormal, for which some processors take a hundred cycles.
    """
    is_float = op.name in _LANEWISE and isinstance(op.results[0].type, ir.FloatType)
    return is_float or op.name == "llvm.getelementptr"


def _is_plain(op: ir.Operation) -> bool:
    """True if an access is neither volatile nor atomic."""
    return all(name in ("alignment", "ordering") for name in op.attributes) and (
        "ordering" not in op.attributes or int(op.attributes["ordering"].value) == 0
    )


class _Vectors:
    """Writes a loop again.

    A body with at most as many vector operations is written several times, so that its latencies overlap: one
    that stores (`COPIES`), and one that adds up, where the next copy also waits for the sum.

    Args:
        loop: is replaced.
        size: bytes of a vector.
        declared: see `Loop.write`.
    """

    COPIES: ClassVar[_Copies] = ((8, 4),)
    COPIES_OF_SUMS: ClassVar[_Copies] = ((8, 4), (60, 2))

    def __init__(self, loop: Loop, size: int, declared: set[str]) -> None:
        self._loop, self._declared = loop, declared
        self._attributes = {op: named_attributes(op) for op in loop.inside}
        self._lanes = 8 * size // loop.bits
        once = "loop_annotation" in last_of(loop.counted.body).attributes
        table = self.COPIES_OF_SUMS if loop.sums else self.COPIES
        self._copies = 1 if once else next((copies for most, copies in table if loop.work <= most), 1)
        self._i64, self._i8 = (ir.IntegerType.get_signless(bits) for bits in (64, 8))
        self._kinds: dict[ir.Type, Any] = {}
        self._splats: dict[ir.Value, Any] = {}

    def write(self) -> None:
        """Replaces the loop: `main` takes whole vectors, `rest` what is left, `done` adds up the lanes."""
        head, bound = self._loop.counted.header, self._loop.counted.bound
        leaving = last_of(self._loop.counted.before)
        start, *initial = leaving.operands
        for op in self._loop.constant:
            op.move_before(leaving)
        kinds = [self._vector(op.results[0].type) for op in self._loop.sums]
        main = head.create_before(self._i64, *kinds * self._copies)
        check, done = (head.create_before(self._i64, *kinds * many) for many in (self._copies, 1))
        with leaving.location:
            with ir.InsertionPoint(leaving):
                stride, step = self._word(self._copies * self._lanes), self._word(self._lanes)
                last = _create("llvm.sub", self._i64, [bound, stride])
                self._spread()
                zeros = [_constant(ir.DenseElementsAttr.get_splat(kind, _zero(kind))) for kind in kinds]
                given, limit = [start, *zeros * self._copies], self._limit(bound, step)
                _branch(_compare(_SLE, start, last), (main, given), (check, given))
            with ir.InsertionPoint(main):
                first, *sums = main.arguments
                sums = self._body(first, sums, self._copies)
                given = [_create("llvm.add", self._i64, [first, stride]), *sums]
                _branch(_compare(_SLE, given[0], last), (main, given), (check, given))
            with ir.InsertionPoint(check):
                first, *sums = check.arguments
                self._rest([first, *self._joined(sums)], limit, step, zeros, done)
            with ir.InsertionPoint(done):
                first, *sums = done.arguments
                found = [
                    _total(op, value, vector)
                    for op, value, vector in zip(self._loop.sums, initial, sums, strict=True)
                ]
                _go(head, [first, *found])
            leaving.erase()

    def _limit(self, bound: ir.Value, step: ir.Value) -> ir.Value:
        """The last number with a whole vector."""
        return _create("llvm.sub", self._i64, [bound, step])

    def _rest(
        self, given: list[ir.Value], limit: ir.Value, step: ir.Value, zeros: list[ir.Value], done: ir.Block
    ) -> None:
        """Takes whole vectors one by one, at the insertion point; the loop stays, for what is less.

        Args:
            given: the number, and the accumulators.
            limit: see `_limit`.
            step: how many elements a vector has.
            zeros: what changes no accumulator.
            done: where the loop takes over.
        """
        if self._copies == 1:
            _go(done, given)
            return
        rest = done.create_before(*[value.type for value in given])
        _branch(_compare(_SLE, given[0], limit), (rest, given), (done, given))
        with ir.InsertionPoint(rest):
            number, *left = list[ir.Value](rest.arguments)
            given = [_create("llvm.add", self._i64, [number, step]), *self._body(number, left, 1)]
            _branch(_compare(_SLE, given[0], limit), (rest, given), (done, given))

    def _joined(self, sums: list[ir.Value]) -> list[ir.Value]:
        """The accumulators of all copies as those of one."""
        count = len(self._loop.sums)
        found = sums[:count]
        for copy in range(1, self._copies):
            found = [
                _create(op.name, value.type, [value, sums[copy * count + i]], self._attributes[op])
                for i, (op, value) in enumerate(zip(self._loop.sums, found, strict=True))
            ]
        return found

    def _word(self, value: int) -> ir.Value:
        return _constant(ir.IntegerAttr.get(self._i64, value))

    def _vector(self, kind: ir.Type) -> ir.Type:
        """The type of a vector of numbers of a type."""
        if kind not in self._kinds:
            self._kinds[kind] = ir.VectorType.get([self._lanes], kind)
        return self._kinds[kind]

    def _spread(self) -> None:
        """Makes vectors of the numbers from outside that the loop uses."""
        own = {*self._loop.counted.header.arguments}
        for op in self._loop.inside:
            own.update(op.results)
            if op.name not in ("llvm.getelementptr", "llvm.load") and not self._is_counted(op):
                for value in list(op.operands)[: 1 if op.name == "llvm.store" else None]:
                    if value not in own and value not in self._splats:
                        self._splats[value] = self._splat(value)

    def _is_counted(self, op: Any) -> bool:
        """True if an operation makes a number that counts with the iterations."""
        return bool(op.results) and op.results[0] in self._loop.numbers

    def _splat(self, value: ir.Value) -> ir.Value:
        """A number in all lanes."""
        kind, owner = self._vector(value.type), value.owner
        if not isinstance(owner, ir.Block) and owner.name == "llvm.mlir.constant":
            return _constant(ir.DenseElementsAttr.get_splat(kind, owner.attributes["value"]))
        nothing = ir.Operation.create("llvm.mlir.poison", [kind]).result
        first = _create("llvm.insertelement", kind, [nothing, value, self._word(0)])
        mask = {"mask": ir.DenseI32ArrayAttr.get([0] * self._lanes)}
        return ir.Operation.create("llvm.shufflevector", [kind], [first, nothing], mask).result

    def _body(
        self,
        number: ir.Value,
        sums: list[ir.Value],
        copies: int,
        mask: ir.Value | None = None,
        zeros: Sequence[ir.Value] = (),
    ) -> list[ir.Value]:
        """The operations of an iteration on vectors, each for all copies before the next one.

        Returns:
            The accumulators of all copies.
        """
        adding = self._loop.sums
        own = list(self._loop.counted.header.arguments)[1:]
        new = []
        for copy in range(copies):
            mine = sums[copy * len(own) : (copy + 1) * len(own)]
            new.append({**self._splats, **dict(zip(own, mine, strict=True))})
        falls = -1 in self._loop.numbers.values()
        masks = mask, self._reversed(mask) if mask is not None and falls else mask
        new[0][self._loop.counted.header.arguments[0]] = number
        for op in self._loop.inside:
            with op.location:
                if self._is_counted(op):
                    one = [new[0].get(value, value) for value in op.operands]
                    new[0][op.results[0]] = _create(op.name, self._i64, one, self._attributes[op])
                    continue
                if mask is not None and op in adding:
                    place = adding.index(op)
                    (value,) = [x for x in op.operands if x != own[place]]
                    kept = _create("llvm.select", zeros[place].type, [mask, new[0][value], zeros[place]])
                    new[0][value] = kept
                for copy in range(copies):
                    self._copy(op, copy, new, masks)
        return [values[op.results[0]] for values in new for op in adding]

    def _copy(
        self, op: Any, copy: int, new: list[dict[ir.Value, ir.Value]], masks: tuple[ir.Value | None, ...]
    ) -> None:
        """An operation on the vectors of a copy, whose values it adds to."""
        name, operands, values = op.name, list(op.operands), new[copy]
        if name in ("llvm.load", "llvm.store"):
            pointer = operands[-1]
            falls = self._loop.numbers[pointer.owner.operands[1]] < 0
            mask, address = masks[falls], values[pointer]
            if name == "llvm.load":
                value = self._load(address, op.results[0].type, mask)
                values[op.results[0]] = self._reversed(value) if falls else value
            else:
                value = values[operands[0]]
                self._store(self._reversed(value) if falls else value, address, operands[0].type, mask)
            return
        result = op.results[0]
        if name == "llvm.getelementptr":
            falls = self._loop.numbers[operands[1]] < 0
            given, found = {**self._attributes[op]}, [operands[0], new[0][operands[1]]]
            moved = copy * self._lanes
            if falls:
                # The first lane is the last in memory, and masked ones may be before the buffer.
                moved = -moved or 1 - self._lanes
                given = {key: given[key] for key in ("elem_type", "rawConstantIndices")}
                found = found if copy else [_create(name, result.type, found, given)]
            if moved:
                given["rawConstantIndices"] = ir.DenseI32ArrayAttr.get([moved])
                found = [new[0][result]] if copy else found[:1]
            values[result] = _create(name, result.type, found, given)
        elif name not in _LANEWISE:
            values[result] = self._call(called(op), [values[value] for value in operands])
        else:
            found = [values[value] for value in operands]
            values[result] = _create(name, self._vector(result.type), found, self._attributes[op])

    def _reversed(self, value: ir.Value) -> ir.Value:
        """A vector, the last lane first."""
        order = {"mask": ir.DenseI32ArrayAttr.get(range(self._lanes - 1, -1, -1))}
        return ir.Operation.create("llvm.shufflevector", [value.type], [value, value], order).result

    def _call(self, name: str, operands: list[ir.Value]) -> ir.Value:
        """A function of vectors, which the module declares."""
        kind, count = operands[0].type, len(operands)
        letter = _LETTERS[self._lanes * _BITS[str(kind.element_type)] // 8]
        symbol = f"_ZGV{letter}N{self._lanes}{'v' * count}_{name}"
        if symbol not in self._declared:
            text = f"llvm.func @{symbol}({', '.join([str(kind)] * count)}) -> {kind} attributes {{no_unwind}}"
            made = ir.Operation.parse(text)
            ir.InsertionPoint.at_block_begin(self._loop.function.block).insert(made)
            self._declared.add(symbol)
        return call_of(symbol, operands, [kind]).result

    def _load(self, address: ir.Value, element: ir.Type, mask: ir.Value | None) -> ir.Value:
        kind, given = self._vector(element), {"alignment": _alignment(element, mask)}
        if mask is None:
            return _create("llvm.load", kind, [address], given)
        zero = ir.Operation.create("llvm.mlir.zero", [kind]).result
        return _create("llvm.intr.masked.load", kind, [address, mask, zero], given)

    def _store(self, value: ir.Value, address: ir.Value, element: ir.Type, mask: ir.Value | None) -> None:
        given = {"alignment": _alignment(element, mask)}
        if mask is None:
            ir.Operation.create("llvm.store", [], [value, address], given)
        else:
            ir.Operation.create("llvm.intr.masked.store", [], [value, address, mask], given)


class _Masked(_Vectors):
    """Writes a loop again, of which nothing stays."""

    COPIES: ClassVar[_Copies] = ((8, 4), (60, 2))
    COPIES_OF_SUMS: ClassVar[_Copies] = ((60, 4), (120, 2))

    def write(self) -> None:
        """Replaces the loop."""
        head = self._loop.counted.header
        test, branch = (op.operation for op in head.operations)
        after, leave = branch.successors[1], list(branch.operands)[1:]
        super().write()
        branch.erase()
        test.erase()
        with ir.InsertionPoint(head), head.owner.location:
            _go(after, leave)

    def _limit(self, bound: ir.Value, step: ir.Value) -> ir.Value:
        """The numbers of the lanes."""
        counted = f"dense<[{', '.join(map(str, range(self._lanes)))}]> : vector<{self._lanes}xi8>"
        return _constant(ir.Attribute.parse(counted))

    def _rest(
        self, given: list[ir.Value], limit: ir.Value, step: ir.Value, zeros: list[ir.Value], done: ir.Block
    ) -> None:
        """Takes the rest with masks, in the body of the loop as it was."""
        rest, bound = self._loop.counted.body, self._loop.counted.bound
        old = [op.operation for op in rest.operations]
        number, *left = [rest.add_argument(value.type, old[-1].location) for value in given]
        _branch(_compare(_LESS, given[0], bound), (rest, given), (done, given))
        with ir.InsertionPoint(old[-1]):
            # As many as fit in a byte: at most four vectors of bytes.
            few = _create("llvm.trunc", self._i8, [_create("llvm.sub", self._i64, [bound, number])])
            mask = _compare(_BELOW, limit, self._splat(few))
            given = [
                _create("llvm.add", self._i64, [number, step]),
                *self._body(number, left, 1, mask, zeros),
            ]
            _branch(_compare(_LESS, given[0], bound), (rest, given), (done, given))
        for op in reversed(old):
            op.erase()


def _alignment(element: ir.Type, mask: ir.Value | None) -> ir.IntegerAttr:
    """Elements, not vectors, are aligned; masked accesses have another form of the attribute."""
    kind = ir.IntegerType.get_signless(64 if mask is None else 32)
    return ir.IntegerAttr.get(kind, _BITS[str(element)] // 8)


def _create(
    name: str, kind: ir.Type, operands: Sequence[ir.Value], attributes: dict[str, Any] | None = None
) -> ir.Value:
    return ir.Operation.create(name, [kind], operands, attributes or {}).result


def _constant(value: ir.Attribute) -> ir.Value:
    return ir.Operation.create("llvm.mlir.constant", [value.type], [], {"value": value}).result


def _compare(predicate: int, a: ir.Value, b: ir.Value) -> ir.Value:
    """`llvm.icmp` of numbers, or of vectors."""
    bit, kind = ir.IntegerType.get_signless(1), a.type
    result = ir.VectorType.get(kind.shape, bit) if isinstance(kind, ir.VectorType) else bit
    attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)
    return _create("llvm.icmp", result, [a, b], {"predicate": attribute})


def _zero(kind: ir.Type) -> ir.Attribute:
    """What changes no sum; that of floating-point numbers is negative."""
    element = kind.element_type
    return (
        ir.IntegerAttr.get(element, 0)
        if isinstance(element, ir.IntegerType)
        else ir.FloatAttr.get(element, -0.0)
    )


def _total(op: ir.Operation, initial: ir.Value, vector: ir.Value) -> ir.Value:
    """The sum of a number and all lanes of a vector."""
    if op.name == "llvm.fadd":
        return _create("llvm.intr.vector.reduce.fadd", initial.type, [initial, vector], named_attributes(op))
    total = _create("llvm.intr.vector.reduce.add", initial.type, [vector])
    return _create("llvm.add", initial.type, [initial, total])


def _go(block: ir.Block, given: Sequence[ir.Value]) -> None:
    ir.Operation.create("llvm.br", [], given, {}, [block])


_Way = tuple[ir.Block, Sequence[ir.Value]]


def _branch(condition: ir.Value, then: _Way, otherwise: _Way) -> None:
    """Goes on in one of two blocks, which get values."""
    segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, len(then[1]), len(otherwise[1])])}
    operands = [condition, *then[1], *otherwise[1]]
    ir.Operation.create("llvm.cond_br", [], operands, segments, [then[0], otherwise[0]])
