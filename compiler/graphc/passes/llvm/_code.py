# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Code of the llvm dialect: single operations, at the insertion point, and loops with vectors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any, ClassVar

from graphc.ir.build import constant_value, predicate_of
from graphc.ir.helpers import callee_of
from graphc.ir.walk import named_attributes
from graphc_dialects._mlir import ir
from graphc_runtime.record import record


def constant_of(value: ir.Value) -> int | None:
    """The number that a value is, if it is known."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "llvm.mlir.constant":
        return constant_value(value)
    attribute = owner.attributes["value"]
    return int(attribute.value) if isinstance(attribute, ir.IntegerAttr) else None


def call_of(name: str, operands: Sequence[ir.Value], results: Sequence[ir.Type] = ()) -> ir.Operation:
    """A call."""
    attributes = {
        "callee": ir.FlatSymbolRefAttr.get(name),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
    }
    return ir.Operation.create("llvm.call", list(results), list(operands), attributes)


def create(
    name: str, kind: ir.Type, operands: Sequence[ir.Value], attributes: dict[str, Any] | None = None
) -> ir.Value:
    """The result of an operation."""
    return ir.Operation.create(name, [kind], operands, attributes or {}).result


def constant(value: ir.Attribute) -> ir.Value:
    """The value of a typed attribute."""
    return ir.Operation.create("llvm.mlir.constant", [value.type], [], {"value": value}).result


def compare(predicate: int, a: ir.Value, b: ir.Value) -> ir.Value:
    """`llvm.icmp` of numbers, or of vectors."""
    bit, kind = ir.IntegerType.get_signless(1), a.type
    result = ir.VectorType.get(kind.shape, bit) if isinstance(kind, ir.VectorType) else bit
    attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)
    return create("llvm.icmp", result, [a, b], {"predicate": attribute})


def word(value: int) -> ir.Value:
    """An i64."""
    return constant(ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value))


def word_at(pointer: ir.Value, position: int) -> ir.Value:
    """The address of a word of 64 bits, of those that a pointer points at."""
    attributes = {
        "elem_type": ir.TypeAttr.get(ir.IntegerType.get_signless(64)),
        "rawConstantIndices": ir.DenseI32ArrayAttr.get([position]),
    }
    return create("llvm.getelementptr", pointer.type, [pointer], attributes)


def struct_of(kind: ir.Type, parts: Iterable[tuple[Sequence[int], ir.Value]]) -> ir.Value:
    """A struct of values at positions."""
    whole = create("llvm.mlir.poison", kind, [])
    for position, value in parts:
        at = {"position": ir.DenseI64ArrayAttr.get(list(position))}
        whole = create("llvm.insertvalue", kind, [whole, value], at)
    return whole


def part_of(struct: ir.Value, position: Sequence[int], kind: ir.Type) -> ir.Value:
    """The value at a position of a struct."""
    return create("llvm.extractvalue", kind, [struct], {"position": ir.DenseI64ArrayAttr.get(list(position))})


def add_to(module: ir.Module, text: str) -> None:
    """Adds an operation, given as text, at the beginning of a module."""
    ir.InsertionPoint.at_block_begin(module.body).insert(ir.Operation.parse(text))


def table_in(module: ir.Module, name: str, values: Sequence[int]) -> ir.Value:
    """The address of a constant array of 32-bit numbers, which a module gains."""
    numbers = f"dense<[{', '.join(map(str, values))}]> : tensor<{len(values)}xi32>"
    kind = f"!llvm.array<{len(values)} x i32>"
    add_to(module, f"llvm.mlir.global private unnamed_addr constant @{name}({numbers}) : {kind}")
    symbol = {"global_name": ir.FlatSymbolRefAttr.get(name)}
    return create("llvm.mlir.addressof", ir.Type.parse("!llvm.ptr"), [], symbol)


def go(block: ir.Block, given: Sequence[ir.Value]) -> ir.Operation:
    """Goes on in a block, which gets values."""
    return ir.Operation.create("llvm.br", [], given, {}, [block])


_Way = tuple[ir.Block, Sequence[ir.Value]]


def branch_to(condition: ir.Value, then: _Way, otherwise: _Way) -> None:
    """Goes on in one of two blocks, which get values."""
    segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, len(then[1]), len(otherwise[1])])}
    operands = [condition, *then[1], *otherwise[1]]
    ir.Operation.create("llvm.cond_br", [], operands, segments, [then[0], otherwise[0]])


def last_of(block: ir.Block) -> Any:
    """The operation at the end of a block."""
    return block.operations[-1].operation


def inner_loops(function: ir.Operation) -> list[tuple[list[Any], bool]]:
    """The blocks of each loop that has no others in it, the header first, and whether it is in another."""
    blocks = list(function.regions[0].blocks)
    numbers = {block: number for number, block in enumerate(blocks)}
    spans = [
        (numbers[first], last)
        for last, block in enumerate(blocks)
        for first in last_of(block).successors
        if numbers[first] <= last and _leads_to(first, block)
    ]

    def within(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
        return outer[0] < inner[0] <= outer[1]  # the header, which may also be the end of the other one

    return [
        (blocks[span[0] : span[1] + 1], any(within(span, other) for other in spans))
        for span in spans
        if not any(within(other, span) for other in spans)
    ]


def _leads_to(first: ir.Block, last: ir.Block) -> bool:
    """True if there is a way from a block to another one: not each branch to a block above closes a loop."""
    seen, left = {first}, [first]
    while left and last not in seen:
        left = [block for block in last_of(left.pop()).successors if block not in seen] + left
        seen.update(left)
    return last in seen


def counted(blocks: list[Any]) -> Counted | None:
    """A loop over numbers one after the other, if these blocks are one."""
    header, body = blocks[0], blocks[-1]
    outside = [block for block in header.predecessors if block != body]
    branch, again = last_of(header), last_of(body)
    if len(blocks) != 2 or len(outside) != 1 or branch.name != "llvm.cond_br":
        return None
    test, *others = (op.operation for op in header.operations)
    is_loop = (
        test.name == "llvm.icmp"
        and predicate_of(test) == _LESS
        and test.operands[0] == header.arguments[0]
        and test.operands[1].owner != header
        and branch.operands[0] == test.results[0]
        and len(others) == 1
        and branch.successors[0] == body
        and not len(body.arguments)
        and list(body.predecessors) == [header]
        and last_of(outside[0]).name == again.name == "llvm.br"
    )
    return Counted(outside[0], header, body, test.operands[1]) if is_loop else None


LANEWISE = frozenset(
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
_Copies = tuple[tuple[int, int], ...]
_LESS, _SLE, _BELOW = 2, 3, 6  # predicates of llvm.icmp: slt, sle, ult


@record()
class Counted:
    """A loop of two blocks over the numbers below a bound.

    Attributes:
        before: leads to the header.
        header: compares the number with the bound.
        body: does one iteration, without branches.
        bound: where it ends.
    """

    before: Any
    header: Any
    body: Any
    bound: Any

    def ends_block(self, least: int) -> bool:
        """True if it ends where a block of so many iterations does: the loop around it counts for little."""
        end = self.bound.owner
        if isinstance(end, ir.Block) or end.name != "llvm.intr.smin":
            return False
        after = end.operands[0].owner
        is_sum = not isinstance(after, ir.Block) and after.name == "llvm.add"
        return is_sum and (constant_of(after.operands[1]) or 0) >= least


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


def called(op: ir.Operation) -> str:
    """The function of libm, as libmvec names it, that an operation calls; empty if it is something else."""
    if op.name == "llvm.call":
        name = callee_of(op)
    elif op.name.startswith("llvm.intr.") and op.results:
        name = op.name.removeprefix("llvm.intr.") + "f" * isinstance(op.results[0].type, ir.F32Type)
    else:
        return ""
    kind = ir.F64Type if name in FUNCTIONS else ir.F32Type if name.removesuffix("f") in FUNCTIONS else None
    return name if kind and op.results and isinstance(op.results[0].type, kind) else ""


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
                stride, step = word(self._copies * self._lanes), word(self._lanes)
                last = create("llvm.sub", self._i64, [bound, stride])
                self._spread()
                zeros = [constant(ir.DenseElementsAttr.get_splat(kind, _zero(kind))) for kind in kinds]
                given, limit = [start, *zeros * self._copies], self._limit(bound, step)
                branch_to(compare(_SLE, start, last), (main, given), (check, given))
            with ir.InsertionPoint(main):
                first, *sums = main.arguments
                sums = self._body(first, sums, self._copies)
                given = [create("llvm.add", self._i64, [first, stride]), *sums]
                branch_to(compare(_SLE, given[0], last), (main, given), (check, given))
            with ir.InsertionPoint(check):
                first, *sums = check.arguments
                self._rest([first, *self._joined(sums)], limit, step, zeros, done)
            with ir.InsertionPoint(done):
                first, *sums = done.arguments
                found = [
                    _total(op, value, vector)
                    for op, value, vector in zip(self._loop.sums, initial, sums, strict=True)
                ]
                go(head, [first, *found])
            leaving.erase()

    def _limit(self, bound: ir.Value, step: ir.Value) -> ir.Value:
        """The last number with a whole vector."""
        return create("llvm.sub", self._i64, [bound, step])

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
            go(done, given)
            return
        rest = done.create_before(*[value.type for value in given])
        branch_to(compare(_SLE, given[0], limit), (rest, given), (done, given))
        with ir.InsertionPoint(rest):
            number, *left = list[ir.Value](rest.arguments)
            given = [create("llvm.add", self._i64, [number, step]), *self._body(number, left, 1)]
            branch_to(compare(_SLE, given[0], limit), (rest, given), (done, given))

    def _joined(self, sums: list[ir.Value]) -> list[ir.Value]:
        """The accumulators of all copies as those of one."""
        count = len(self._loop.sums)
        found = sums[:count]
        for copy in range(1, self._copies):
            found = [
                create(op.name, value.type, [value, sums[copy * count + i]], self._attributes[op])
                for i, (op, value) in enumerate(zip(self._loop.sums, found, strict=True))
            ]
        return found

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
            return constant(ir.DenseElementsAttr.get_splat(kind, owner.attributes["value"]))
        nothing = ir.Operation.create("llvm.mlir.poison", [kind]).result
        first = create("llvm.insertelement", kind, [nothing, value, word(0)])
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
                    new[0][op.results[0]] = create(op.name, self._i64, one, self._attributes[op])
                    continue
                if mask is not None and op in adding:
                    place = adding.index(op)
                    (value,) = [x for x in op.operands if x != own[place]]
                    kept = create("llvm.select", zeros[place].type, [mask, new[0][value], zeros[place]])
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
                found = found if copy else [create(name, result.type, found, given)]
            if moved:
                given["rawConstantIndices"] = ir.DenseI32ArrayAttr.get([moved])
                found = [new[0][result]] if copy else found[:1]
            values[result] = create(name, result.type, found, given)
        elif name not in LANEWISE:
            values[result] = self._call(called(op), [values[value] for value in operands])
        else:
            found = [values[value] for value in operands]
            values[result] = create(name, self._vector(result.type), found, self._attributes[op])

    def _reversed(self, value: ir.Value) -> ir.Value:
        """A vector, the last lane first."""
        order = {"mask": ir.DenseI32ArrayAttr.get(range(self._lanes - 1, -1, -1))}
        return ir.Operation.create("llvm.shufflevector", [value.type], [value, value], order).result

    def _call(self, name: str, operands: list[ir.Value]) -> ir.Value:
        """A function of vectors, which the module declares."""
        kind, count = operands[0].type, len(operands)
        letter = _LETTERS[self._lanes * kind.element_type.width // 8]
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
            return create("llvm.load", kind, [address], given)
        zero = ir.Operation.create("llvm.mlir.zero", [kind]).result
        return create("llvm.intr.masked.load", kind, [address, mask, zero], given)

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
            go(after, leave)

    def _limit(self, bound: ir.Value, step: ir.Value) -> ir.Value:
        """The numbers of the lanes."""
        counted = f"dense<[{', '.join(map(str, range(self._lanes)))}]> : vector<{self._lanes}xi8>"
        return constant(ir.Attribute.parse(counted))

    def _rest(
        self, given: list[ir.Value], limit: ir.Value, step: ir.Value, zeros: list[ir.Value], done: ir.Block
    ) -> None:
        """Takes the rest with masks, in the body of the loop as it was."""
        rest, bound = self._loop.counted.body, self._loop.counted.bound
        old = [op.operation for op in rest.operations]
        number, *left = [rest.add_argument(value.type, old[-1].location) for value in given]
        branch_to(compare(_LESS, given[0], bound), (rest, given), (done, given))
        with ir.InsertionPoint(old[-1]):
            # As many as fit in a byte: at most four vectors of bytes.
            few = create("llvm.trunc", self._i8, [create("llvm.sub", self._i64, [bound, number])])
            mask = compare(_BELOW, limit, self._splat(few))
            given = [
                create("llvm.add", self._i64, [number, step]),
                *self._body(number, left, 1, mask, zeros),
            ]
            branch_to(compare(_LESS, given[0], bound), (rest, given), (done, given))
        for op in reversed(old):
            op.erase()


def _alignment(element: ir.Type, mask: ir.Value | None) -> ir.IntegerAttr:
    """Elements, not vectors, are aligned; masked accesses have another form of the attribute."""
    kind = ir.IntegerType.get_signless(64 if mask is None else 32)
    return ir.IntegerAttr.get(kind, element.width // 8)


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
        return create("llvm.intr.vector.reduce.fadd", initial.type, [initial, vector], named_attributes(op))
    total = create("llvm.intr.vector.reduce.add", initial.type, [vector])
    return create("llvm.add", initial.type, [initial, total])
