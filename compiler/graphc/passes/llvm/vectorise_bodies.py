# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that do nothing but call single loops over elements are written with vectors here.

LLVM takes two thirds of the time of such a compilation: of one addition it makes three loops, looks for
what to simplify before and after each, and finds nothing that MLIR's passes have left. What this pass writes
is final: LLVM inlines the glue around it and selects instructions.

The invariant on which that rests: an operation of `_LANEWISE` does to each lane of a vector what it does to
a number, an access is the element of a buffer at the induction variable, and what is stored to is a buffer
that does not overlap the others. A kernel with any other loop is left to LLVM as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from graphc.ir.walk import symbol_of
from graphc.passes import Pass
from graphc.passes.llvm._inner_loops import constant_of
from graphc.passes.llvm.define_splits import SINGLE
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# On a `@main` whose loops are final.
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
_BITS = {"f64": 64, "f32": 32, "i64": 64, "i32": 32, "i16": 16, "i8": 8, "i1": 1}
# A body with at most as many vector operations is written several times, so that its latencies overlap.
_COPIES = ((8, 4), (19, 2))
_LESS, _BELOW = 2, 6  # predicates of llvm.icmp: slt, ult
_SLE = 3
_DYNAMIC = -(2**31)


@record()
class VectoriseBodies(Pass):
    """Writes the loop of each `@graphc_body_<n>` with vectors, if `@main` is `graphc.single`.

    Each becomes a loop over whole vectors, with a few copies of a short body, and one over the rest, whose
    accesses are masked. `@main` is marked as `graphc.vectorised`: LLVM runs no passes over such a kernel.
    Nothing changes if a loop has operations that do not work on lanes, accesses that are not next to each
    other, or stores that other accesses may see.

    Attributes:
        bytes: of a vector; 0 for machines without masks.
        widest: of a vector in modules whose loops compute much (`graphc.wide`).
    """

    bytes: int = 0
    widest: int = 0

    stage = "llvm"

    def run(self, module: ir.Module) -> None:
        functions = {symbol_of(op): op.operation for op in module.body.operations}
        main = functions.get("main")
        if not self.bytes or main is None or SINGLE not in main.attributes:
            return
        bodies = [op for name, op in functions.items() if name.startswith("graphc_body_")]
        found = [_loop(body) for body in bodies]
        loops = [loop for loop in found if loop is not None]
        if len(loops) < len(found):
            return
        much = "graphc.wide" in module.operation.attributes
        for body, loop in zip(bodies, loops, strict=True):
            is_wide = much and "passthrough" not in body.attributes
            _Vectors(loop, self.widest if is_wide else self.bytes).write()
            self.count("loops")
        main.attributes[VECTORISED] = ir.UnitAttr.get()


@record()
class _Loop:
    """A loop that can be written with vectors.

    Attributes:
        blocks: before the loop, its head, its body, and after it.
        inside: the operations of the body, without the next number and the branch.
        pointers: base and element type of each address.
        bits: of the widest element.
        work: how many operations work on vectors.
    """

    blocks: list[Any]
    inside: list[Any] = field(default_factory=list)
    pointers: dict[Any, tuple[Any, Any]] = field(default_factory=dict)
    bits: int = 8
    work: int = 0


def _loop(function: ir.Operation) -> _Loop | None:
    """The only loop of a function; None if it is of another form, or does what vectors cannot."""
    blocks = list(function.regions[0].blocks)
    if len(blocks) != 4:
        return None
    before, head, body, after = blocks
    test, *others = [op.operation for op in head.operations]
    ends = (before, head, body)
    if [_last(block).name for block in ends] != ["llvm.br", "llvm.cond_br", "llvm.br"] or len(others) != 1:
        return None
    branch, again = others[0], _last(body)
    is_counted = (
        len(head.arguments) == 1
        and test.name == "llvm.icmp"
        and int(test.attributes["predicate"].value) == _LESS
        and test.operands[0] == head.arguments[0]
        and test.operands[1].owner != head
        and branch.operands[0] == test.results[0]
        and len(branch.operands) == 1
        and list(branch.successors) == [body, after]
        and list(again.successors) == [head]
        and list(_last(before).successors) == [head]
        and "loop_annotation" not in again.attributes
    )
    if not is_counted:
        return None
    found = _Loop(blocks)
    return found if _scan(found, again, _apart(function)) else None


def _last(block: ir.Block) -> Any:
    return block.operations[-1].operation


def _apart(function: ir.Operation) -> set[Any]:
    """The parameters of a function that do not overlap others."""
    if "arg_attrs" not in function.attributes:
        return set()
    arguments = function.regions[0].blocks[0].arguments
    given = zip(arguments, function.attributes["arg_attrs"], strict=True)
    return {value for value, attributes in given if "llvm.noalias" in attributes}


def _scan(loop: _Loop, again: ir.Operation, apart: set[Any]) -> bool:
    """Fills in what a loop does; False where vectors cannot."""
    before, head, body, _ = loop.blocks
    number, step = head.arguments[0], again.operands[0]
    for op in [op.operation for op in body.operations][:-1]:
        operands, name = list(op.operands), op.name
        if name == "llvm.getelementptr":
            element = ir.TypeAttr(op.attributes["elem_type"]).value
            plain = operands[1:] == [number] and list(op.attributes["rawConstantIndices"]) == [_DYNAMIC]
            # Only parameters: a pointer that is computed may lie in the buffer of another one.
            if not plain or operands[0] not in list(before.arguments):
                return False
            loop.pointers[op.results[0]] = operands[0], element
        elif op.results and op.results[0] == step:
            one = name == "llvm.add" and operands[0] == number and constant_of(operands[1]) == 1
            if not one or sum(1 for _ in step.uses) != 1:
                return False
            continue
        elif number in operands:
            return False
        elif name == "llvm.load" or name == "llvm.store":
            if operands[-1] not in loop.pointers or not _is_plain(op):
                return False
            base, element = loop.pointers[operands[-1]]
            value = op.results[0] if name == "llvm.load" else operands[0]
            if value.type != element or (name == "llvm.store" and base not in apart):
                return False
            if not _count(loop, value.type):
                return False
        elif name in _LANEWISE:
            kinds = [value.type for value in (*operands, *op.results)]
            if not all(_count(loop, kind) for kind in kinds):
                return False
        else:
            return False
        loop.work += name != "llvm.getelementptr"
        loop.inside.append(op)
    # Elements of one size: the same number is the same address then. Nothing is read after the loop.
    sizes = dict(loop.pointers.values())
    return all(sizes[base] == element for base, element in loop.pointers.values()) and all(
        use.owner.operation.block in (head, body) for use in number.uses
    )


def _is_plain(op: ir.Operation) -> bool:
    """True if an access is neither volatile nor atomic."""
    return all(name in ("alignment", "ordering") for name in op.attributes) and (
        "ordering" not in op.attributes or int(op.attributes["ordering"].value) == 0
    )


def _count(loop: _Loop, kind: ir.Type) -> bool:
    """Takes a type of numbers into account; False if it is another one."""
    bits = _BITS.get(str(kind))
    if bits is None:
        return False
    loop.bits = max(loop.bits, bits)
    return True


class _Vectors:
    """Writes a loop again.

    Args:
        loop: is replaced.
        size: bytes of a vector.
    """

    def __init__(self, loop: _Loop, size: int) -> None:
        self._loop = loop
        self._lanes = 8 * size // loop.bits
        self._copies = next((copies for most, copies in _COPIES if loop.work <= most), 1)
        self._i64, self._i8 = (ir.IntegerType.get_signless(bits) for bits in (64, 8))
        self._pointer = ir.Type.parse("!llvm.ptr")
        self._kinds: dict[ir.Type, Any] = {}
        self._splats: dict[ir.Value, Any] = {}

    def write(self) -> None:
        """Replaces the loop: the first block takes whole vectors, the last one what is left."""
        before, check, rest, after = self._loop.blocks
        leaving, (test, branch) = _last(before), (op.operation for op in check.operations)
        start, bound = leaving.operands[0], test.operands[1]
        old = [op.operation for op in rest.operations]
        main = check.create_before(self._i64)
        number = rest.add_argument(self._i64, leaving.location)
        with leaving.location:
            with ir.InsertionPoint(leaving):
                stride, step = self._word(self._copies * self._lanes), self._word(self._lanes)
                last = _create("llvm.sub", self._i64, [bound, stride])
                counted = f"dense<[{', '.join(map(str, range(self._lanes)))}]> : vector<{self._lanes}xi8>"
                lanes = _constant(ir.Attribute.parse(counted))
                self._spread()
                _branch(_compare(_SLE, start, last), main, check, start)
            with ir.InsertionPoint(main):
                self._body(main.arguments[0], self._copies, None)
                again = _create("llvm.add", self._i64, [main.arguments[0], stride])
                _branch(_compare(_SLE, again, last), main, check, again)
            with ir.InsertionPoint(old[-1]):
                # As many as fit in a byte: at most four vectors of bytes.
                left = _create("llvm.trunc", self._i8, [_create("llvm.sub", self._i64, [bound, number])])
                mask = _compare(_BELOW, lanes, self._splat(left))
                self._body(number, 1, mask)
                if self._copies > 1:
                    again = _create("llvm.add", self._i64, [number, step])
                    _branch(_compare(_LESS, again, bound), rest, after, again)
                else:
                    ir.Operation.create("llvm.br", [], [], {}, [after])
            for op in [leaving, *reversed(old), branch, test]:
                op.erase()
            with ir.InsertionPoint(check):
                _branch(_compare(_LESS, check.arguments[0], bound), rest, after, check.arguments[0])

    def _word(self, value: int) -> ir.Value:
        return _constant(ir.IntegerAttr.get(self._i64, value))

    def _vector(self, kind: ir.Type) -> ir.Type:
        """The type of a vector of numbers of a type."""
        if kind not in self._kinds:
            self._kinds[kind] = ir.VectorType.get([self._lanes], kind)
        return self._kinds[kind]

    def _spread(self) -> None:
        """Makes vectors of the numbers from outside that the loop uses."""
        for op in self._loop.inside:
            if op.name != "llvm.getelementptr" and op.name != "llvm.load":
                for value in list(op.operands)[: 1 if op.name == "llvm.store" else None]:
                    if _is_outside(value, self._loop.blocks[2]) and value not in self._splats:
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

    def _body(self, number: ir.Value, copies: int, mask: ir.Value | None) -> None:
        """The operations of an iteration on vectors, each for all copies before the next one."""
        new: list[dict[ir.Value, ir.Value]] = [dict(self._splats) for _ in range(copies)]
        for op in self._loop.inside:
            with op.location:
                for copy in range(copies):
                    self._copy(op, number, copy, new, mask)

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
            given, found = _named(op), [operands[0], number]
            if copy:
                given["rawConstantIndices"] = ir.DenseI32ArrayAttr.get([copy * self._lanes])
                found = [new[0][result]]
            values[result] = _create(name, result.type, found, given)
        elif name == "llvm.load":
            values[result] = self._load(values[operands[0]], result.type, mask)
        else:
            found = [values[value] for value in operands]
            values[result] = _create(name, self._vector(result.type), found, _named(op))

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


def _is_outside(value: ir.Value, body: ir.Block) -> bool:
    owner = value.owner
    return isinstance(owner, ir.Block) or owner.operation.block != body


def _named(op: ir.Operation) -> dict[str, ir.Attribute]:
    return {name: op.attributes[name] for name in op.attributes}


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


def _branch(condition: ir.Value, then: ir.Block, otherwise: ir.Block, number: ir.Value) -> None:
    """Goes on in a block; blocks with a parameter get the number."""
    passed = [[number] if len(block.arguments) else [] for block in (then, otherwise)]
    segments = ir.DenseI32ArrayAttr.get([1, *map(len, passed)])
    operands, given = [condition, *passed[0], *passed[1]], {"operandSegmentSizes": segments}
    ir.Operation.create("llvm.cond_br", [], operands, given, [then, otherwise])
