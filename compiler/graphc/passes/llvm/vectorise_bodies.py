# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Single loops over elements are written with vectors here.

LLVM takes two thirds of the time of such a compilation: of one addition it makes three loops, looks for
what to simplify before and after each, and finds nothing that MLIR's passes have left. What this pass writes
is final: LLVM inlines the glue around it and selects instructions.

The invariant on which that rests: an operation of `_LANEWISE` does to each lane of a vector what it does to
a number, as do libmvec's functions for those of libm; an access is the element of a buffer at the induction
variable; what is stored to is a buffer that does not overlap the others; and an accumulator is only added to,
in an order that does not matter. A function with any other loop is left to LLVM, and what is in one module
with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

from graphc.ir.helpers import callee_of
from graphc.ir.walk import named_attributes, symbol_of
from graphc.passes import Pass
from graphc.passes.llvm._inner_loops import ONCE, constant_of, last_of
from graphc.passes.llvm.define_splits import SINGLE
from graphc.passes.llvm.divide_kernel import EXPORTS
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# On a `@main` whose loops are final, and on modules.
VECTORISED = "graphc.vectorised"
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
# A body with at most as many vector operations is written several times, so that its latencies overlap.
_COPIES = ((8, 4), (19, 2))
_LESS, _SLE, _BELOW = 2, 3, 6  # predicates of llvm.icmp: slt, sle, ult
_DYNAMIC = -(2**31)
# What a declaration says of a function.
_DECLARED = ("sym_name", "function_type", "visibility_", "linkage")


@record()
class VectoriseBodies(Pass):
    """Writes the loop of each `@graphc_body_<n>` with vectors, if `@main` is `graphc.single`.

    Each becomes a loop over whole vectors, with a few copies of a short body, and one over the rest, whose
    accesses are masked. `@main` is marked as `graphc.vectorised`: LLVM runs no passes over such a kernel.
    In the modules of a divided kernel, functions with such a loop go to a module of their own that is final.

    Nothing changes if a loop has operations that do not work on lanes, accesses that are not next to each
    other, or stores that other accesses may see.

    Attributes:
        bytes: of a vector; 0 for machines without masks.
        widest: of a vector in modules whose loops compute much (`graphc.wide`).
        libmvec: functions of vectors are called for those of libm.
    """

    bytes: int = 0
    widest: int = 0
    libmvec: bool = False

    stage = "llvm"

    def run(self, module: ir.Module) -> None:
        if not self.bytes:
            return
        widest = self.widest if "graphc.wide" in module.operation.attributes else self.bytes
        operations = [op.operation for op in module.body.operations]
        functions = {symbol_of(op): op for op in operations}
        main = functions.get("main")
        if main is not None and SINGLE in main.attributes:
            bodies = [op for name, op in functions.items() if name.startswith("graphc_body_")]
            loops = [loop_of(body, self.libmvec) for body in bodies]
            if None not in loops:
                self._write(filter(None, loops), widest)
                main.attributes[VECTORISED] = ir.UnitAttr.get()
        for op in operations:
            if op.name == "builtin.module":
                self._divide(op, widest)

    def _write(self, loops: Iterable[Loop], widest: int) -> None:
        declared: set[str] = set()
        for loop in loops:
            loop.write(self.bytes, widest, declared)
            self.count("loops")

    def _divide(self, piece: ir.Operation, widest: int) -> None:
        """Moves the functions of a module that are final to one of their own."""
        block = piece.regions[0].blocks[0]
        functions = [op.operation for op in block.operations if op.operation.name == "llvm.func"]
        found = [loop_of(op, self.libmvec) for op in functions if "always_inline" not in op.attributes]
        loops = [loop for loop in found if loop is not None]
        if not loops:
            return
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
        self._write(loops, widest)


@record()
class Loop:
    """A loop that can be written with vectors.

    Attributes:
        function: that it is in.
        blocks: before the loop, its head, its body, and after it.
        inside: the operations of the body, without the next number and the branch.
        sums: those of them that add to the accumulators of the loop, in their order.
        pointers: base and element type of each address.
        bits: of the widest element.
        work: how many operations work on vectors.
    """

    function: ir.Operation
    blocks: list[Any]
    inside: list[Any] = field(default_factory=list)
    sums: list[Any] = field(default_factory=list)
    pointers: dict[Any, tuple[Any, Any]] = field(default_factory=dict)
    bits: int = 8
    work: int = 0

    def write(self, size: int, widest: int, declared: set[str]) -> None:
        """Replaces the loop.

        Args:
            size: bytes of a vector.
            widest: the same in functions that compute much.
            declared: functions that the module declares; gains those that are called.
        """
        _Vectors(self, size if "passthrough" in self.function.attributes else widest, declared).write()


def loop_of(function: ir.Operation, libmvec: bool) -> Loop | None:
    """The only loop of a function; None if it is of another form, or does what vectors cannot.

    Args:
        function: any function with blocks.
        libmvec: whether functions of libm have those of vectors.
    """
    blocks = list(function.regions[0].blocks)
    if len(blocks) != 4:
        return None
    before, head, body, after = blocks
    test, *others = [op.operation for op in head.operations]
    ends = (before, head, body)
    if [last_of(block).name for block in ends] != ["llvm.br", "llvm.cond_br", "llvm.br"] or len(others) != 1:
        return None
    branch, again = others[0], last_of(body)
    annotation = again.attributes.get("loop_annotation")
    is_counted = (
        test.name == "llvm.icmp"
        and int(test.attributes["predicate"].value) == _LESS
        and test.operands[0] == head.arguments[0]
        and test.operands[1].owner != head
        and branch.operands[0] == test.results[0]
        and not len(body.arguments)
        and list(branch.successors) == [body, after]
        and list(again.successors) == [head]
        and list(last_of(before).successors) == [head]
        and (annotation is None or str(annotation) == ONCE)
    )
    if not is_counted:
        return None
    found = Loop(function, blocks)
    return found if _Scan(found, libmvec).succeeds(_apart(function)) else None


def _apart(function: ir.Operation) -> set[Any]:
    """The parameters of a function that do not overlap others."""
    if "arg_attrs" not in function.attributes:
        return set()
    arguments = function.regions[0].blocks[0].arguments
    given = zip(arguments, function.attributes["arg_attrs"], strict=True)
    return {value for value, attributes in given if "llvm.noalias" in attributes}


class _Scan:
    """Fills in what a loop does.

    Args:
        loop: gains what is found.
        libmvec: see `loop_of`.
    """

    def __init__(self, loop: Loop, libmvec: bool) -> None:
        self._libmvec = libmvec
        before, head, body, _ = loop.blocks
        self._loop, self._head, self._body = loop, head, body
        self._parameters = {*before.arguments}
        self._number, *self._sums = head.arguments
        self._step, *self._next = last_of(body).operands
        self._bits: dict[ir.Type, int | None] = {}

    def succeeds(self, apart: set[Any]) -> bool:
        """False where vectors cannot do it.

        Args:
            apart: parameters that do not overlap others.
        """
        loop = self._loop
        for op in [op.operation for op in self._body.operations][:-1]:
            if op.results and op.results[0] == self._step:
                if not self._is_step(op):
                    return False
                continue
            if not self._takes(op, list(op.operands), apart):
                return False
            loop.work += op.name != "llvm.getelementptr"
            loop.inside.append(op)
        # Elements of one size: the same number is the same address then. Nothing is read after the loop.
        sizes = dict(loop.pointers.values())
        same = all(sizes[base] == element for base, element in loop.pointers.values())
        inside = (self._head, self._body)
        return (
            same
            and all(use.owner.operation.block in inside for use in self._number.uses)
            and all(self._is_sum(value, after) for value, after in zip(self._sums, self._next, strict=True))
        )

    def _is_step(self, op: ir.Operation) -> bool:
        is_next = op.name == "llvm.add" and op.operands[0] == self._number
        return is_next and constant_of(op.operands[1]) == 1 and sum(1 for _ in self._step.uses) == 1

    def _takes(self, op: ir.Operation, operands: list[ir.Value], apart: set[Any]) -> bool:
        name, pointers = op.name, self._loop.pointers
        if name == "llvm.getelementptr":
            element = ir.TypeAttr(op.attributes["elem_type"]).value
            pointers[op.results[0]] = operands[0], element
            plain = operands[1:] == [self._number] and list(op.attributes["rawConstantIndices"]) == [_DYNAMIC]
            # Only parameters: a pointer that is computed may lie in the buffer of another one.
            return plain and operands[0] in self._parameters
        if self._number in operands:
            return False
        if name in _LANEWISE or (self._libmvec and called(op)):
            return all(self._count(value) for value in (*operands, *op.results))
        if name not in ("llvm.load", "llvm.store") or operands[-1] not in pointers or not _is_plain(op):
            return False
        base, element = pointers[operands[-1]]
        value = op.results[0] if name == "llvm.load" else operands[0]
        return value.type == element and (name == "llvm.load" or base in apart) and self._count(value)

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
        is_free = op.name == "llvm.add" or (
            op.name == "llvm.fadd"
            and "fastmathFlags" in op.attributes
            and "reassoc" in str(op.attributes["fastmathFlags"])
        )
        self._loop.sums.append(op.operation)
        return is_free and uses == [op.operation] and sum(1 for _ in after.uses) == 1


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


def _is_plain(op: ir.Operation) -> bool:
    """True if an access is neither volatile nor atomic."""
    return all(name in ("alignment", "ordering") for name in op.attributes) and (
        "ordering" not in op.attributes or int(op.attributes["ordering"].value) == 0
    )


class _Vectors:
    """Writes a loop again.

    Args:
        loop: is replaced.
        size: bytes of a vector.
        declared: see `Loop.write`.
    """

    def __init__(self, loop: Loop, size: int, declared: set[str]) -> None:
        self._loop, self._declared = loop, declared
        self._lanes = 8 * size // loop.bits
        once = "loop_annotation" in last_of(loop.blocks[2]).attributes
        self._copies = 1 if once else next((copies for most, copies in _COPIES if loop.work <= most), 1)
        self._i64, self._i8 = (ir.IntegerType.get_signless(bits) for bits in (64, 8))
        self._pointer = ir.Type.parse("!llvm.ptr")
        self._kinds: dict[ir.Type, Any] = {}
        self._splats: dict[ir.Value, Any] = {}

    def write(self) -> None:
        """Replaces the loop: `main` takes whole vectors, `rest` what is left, `done` adds up the lanes."""
        before, head, rest, after = self._loop.blocks
        leaving, (test, branch) = last_of(before), (op.operation for op in head.operations)
        (start, *initial), bound = list(leaving.operands), test.operands[1]
        leave = list(branch.operands)[1:]
        old = [op.operation for op in rest.operations]
        kinds = [self._vector(op.results[0].type) for op in self._loop.sums]
        main = head.create_before(self._i64, *kinds * self._copies)
        check, done = (head.create_before(self._i64, *kinds * many) for many in (self._copies, 1))
        number, *left = [rest.add_argument(kind, leaving.location) for kind in (self._i64, *kinds)]
        with leaving.location:
            with ir.InsertionPoint(leaving):
                stride, step = self._word(self._copies * self._lanes), self._word(self._lanes)
                last = _create("llvm.sub", self._i64, [bound, stride])
                counted = f"dense<[{', '.join(map(str, range(self._lanes)))}]> : vector<{self._lanes}xi8>"
                lanes = _constant(ir.Attribute.parse(counted))
                self._spread()
                zeros = [_constant(ir.DenseElementsAttr.get_splat(kind, _zero(kind))) for kind in kinds]
                given = [start, *zeros * self._copies]
                _branch(_compare(_SLE, start, last), (main, given), (check, given))
            with ir.InsertionPoint(main):
                first, *sums = main.arguments
                sums = self._body(first, sums, None)
                given = [_create("llvm.add", self._i64, [first, stride]), *sums]
                _branch(_compare(_SLE, given[0], last), (main, given), (check, given))
            with ir.InsertionPoint(check):
                first, *sums = check.arguments
                given = [first, *self._joined(sums)]
                _branch(_compare(_LESS, first, bound), (rest, given), (done, given))
            with ir.InsertionPoint(old[-1]):
                # As many as fit in a byte: at most four vectors of bytes.
                few = _create("llvm.trunc", self._i8, [_create("llvm.sub", self._i64, [bound, number])])
                mask = _compare(_BELOW, lanes, self._splat(few))
                given = [number, *self._body(number, left, mask, zeros)]
                if self._copies > 1:
                    given[0] = _create("llvm.add", self._i64, [number, step])
                    _branch(_compare(_LESS, given[0], bound), (rest, given), (done, given))
                else:
                    _go(done, given)
            with ir.InsertionPoint(done):
                first, *sums = done.arguments
                found = [
                    _total(op, value, vector)
                    for op, value, vector in zip(self._loop.sums, initial, sums, strict=True)
                ]
                _go(head, [first, *found])
            for op in [leaving, *reversed(old), branch, test]:
                op.erase()
            with ir.InsertionPoint(head):
                _go(after, leave)

    def _joined(self, sums: list[ir.Value]) -> list[ir.Value]:
        """The accumulators of all copies as those of one."""
        count = len(self._loop.sums)
        found = sums[:count]
        for copy in range(1, self._copies):
            found = [
                _create(op.name, value.type, [value, sums[copy * count + i]], named_attributes(op))
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
        own = {*self._loop.blocks[1].arguments}
        for op in self._loop.inside:
            own.update(op.results)
            if op.name != "llvm.getelementptr" and op.name != "llvm.load":
                for value in list(op.operands)[: 1 if op.name == "llvm.store" else None]:
                    if value not in own and value not in self._splats:
                        self._splats[value] = self._splat(value)

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
        self, number: ir.Value, sums: list[ir.Value], mask: ir.Value | None, zeros: Sequence[ir.Value] = ()
    ) -> list[ir.Value]:
        """The operations of an iteration on vectors, each for all copies before the next one.

        Returns:
            The accumulators of all copies.
        """
        copies, adding = 1 if mask else self._copies, self._loop.sums
        own = list(self._loop.blocks[1].arguments)[1:]
        new = []
        for copy in range(copies):
            mine = sums[copy * len(own) : (copy + 1) * len(own)]
            new.append({**self._splats, **dict(zip(own, mine, strict=True))})
        for op in self._loop.inside:
            with op.location:
                if mask is not None and op in adding:
                    place = adding.index(op)
                    (value,) = [x for x in op.operands if x != own[place]]
                    kept = _create("llvm.select", zeros[place].type, [mask, new[0][value], zeros[place]])
                    new[0][value] = kept
                for copy in range(copies):
                    self._copy(op, number, copy, new, mask)
        return [values[op.results[0]] for values in new for op in adding]

    def _copy(
        self, op: Any, number: ir.Value, copy: int, new: list[dict[ir.Value, ir.Value]], mask: ir.Value | None
    ) -> None:
        """An operation on the vectors of a copy, whose values it adds to."""
        name, operands, values = op.name, list(op.operands), new[copy]
        if name == "llvm.store":
            self._store(values[operands[0]], values[operands[1]], operands[0].type, mask)
            return
        result = op.results[0]
        if name == "llvm.getelementptr":
            given, found = named_attributes(op), [operands[0], number]
            if copy:
                given["rawConstantIndices"] = ir.DenseI32ArrayAttr.get([copy * self._lanes])
                found = [new[0][result]]
            values[result] = _create(name, result.type, found, given)
        elif name == "llvm.load":
            values[result] = self._load(values[operands[0]], result.type, mask)
        elif name not in _LANEWISE:
            values[result] = self._call(called(op), [values[value] for value in operands])
        else:
            found = [values[value] for value in operands]
            values[result] = _create(name, self._vector(result.type), found, named_attributes(op))

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
        given = {
            "callee": ir.FlatSymbolRefAttr.get(symbol),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([count, 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        }
        return _create("llvm.call", kind, operands, given)

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
