# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers of the kernel language in LLVM IR: arithmetic, conversion and memory.

Its blocks are in SSA form, so each variable has one value where control flow meets.

A variable is a name for a value, another one after each assignment. Control flow is structured, so the values
that meet at the beginning of a block are known when it begins, but for those that come back at the end of a
loop: variables that the loop assigns get a phi at its head, which learns of these at the end, and of its type
at the first assignment. Phis that nothing reads are not written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from graphc.native import BOOL, F64, I64, Operand, Static, Type, Value, literal, natural_type

if TYPE_CHECKING:
    import ast

    from graphc.native.translate import Translator


_UNKNOWN = Type("unknown")


class Phi:
    """A value that depends on where control comes from.

    Attributes:
        name: of the variable, whose type it has.
        kinds: the types of variables.
        value: it, of a type that is not known yet.
        incoming: what it is for each block that control comes from; None if it has no value there.
        guess: the type if the variable is only read; None where that is not known either.
        is_read: whether an instruction has it as operand.
    """

    def __init__(
        self, name: str, kinds: dict[str, Type], value: Value, incoming: Iterable[tuple[str, Operand | None]]
    ) -> None:
        self.name, self.kinds, self.value = name, kinds, value
        self.incoming = [*incoming]
        self.guess: Type | None = None
        self.is_read = False

    def __str__(self) -> str:
        kind = self.kinds[self.name]
        pairs = ", ".join(f"[ {_operand(x, kind)}, %{block} ]" for block, x in self.incoming)
        return f"  {self.value.text} = phi {kind.llvm} {pairs}\n"


class Loop:
    """A loop being written.

    Attributes:
        head: the label that its iterations begin at.
        before: the block from which it is entered.
        place: of its phis among the lines.
        phis: of the variables that it assigns.
    """

    def __init__(self, head: str, before: str, place: int) -> None:
        self.head, self.before, self.place = head, before, place
        self.phis: dict[str, Phi] = {}


class Blocks:
    """The lines of one function.

    Attributes:
        names: the values of variables at this point: `Value` or `Static`.
        kinds: the types of variables that are no `Static`.
        block: the one being written; empty where control never comes.
    """

    def __init__(self, translator: Translator) -> None:
        self.translator = translator
        self.names: dict[str, Any] = {}
        self.kinds: dict[str, Type] = {}
        self.block = "entry"
        self._allocas: list[str] = []
        self._lines: list[str | Phi] = []
        self._phis: dict[str, Phi] = {}
        self._edges: dict[str, list[tuple[str, dict[str, Any]]]] = {}
        self._count = 0

    # -- lines -----------------------------------------------------------------------------------------------

    def text(self) -> str:
        """Everything written."""
        used = [phi for phi in self._phis.values() if phi.is_read]
        while used:
            for _, x in used.pop().incoming:
                phi = self._phis.get(x.text) if isinstance(x, Value) else None
                if phi is not None and not phi.is_read:
                    phi.is_read = True
                    used.append(phi)
        lines = (str(x) for x in self._lines if isinstance(x, str) or x.is_read)
        return "".join(["entry:\n", *self._allocas, *lines])

    def emit(self, text: str) -> None:
        if self.block:
            self._lines.append(f"  {text}\n")

    def assign(self, text: str, type_: Type) -> Value:
        """A new value."""
        name = self._name()
        self.emit(f"{name} = {text}")
        return Value(name, type_)

    def alloca(self, kind: str) -> str:
        """Memory on the stack, taken once when the function begins."""
        name = self._name()
        self._allocas.append(f"  {name} = alloca {kind}\n")
        return name

    def read(self, name: str) -> Any:
        """Value of a variable here; None if there is none of this name."""
        known = self.names.get(name)
        if not isinstance(known, Value) or known.text not in self._phis:
            return known
        phi = self._phis[known.text]
        if known.type is not _UNKNOWN:
            phi.is_read = True
            return known
        kind = self.kinds.get(name, phi.guess)
        if kind is None:
            return None
        self.kinds[name], phi.is_read = kind, True
        return Value(known.text, kind)

    def _name(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    # -- control flow ----------------------------------------------------------------------------------------

    def label(self) -> str:
        self._count += 1
        return f"b{self._count}"

    def jump(self, label: str) -> None:
        if self.block:
            self._leave(label)
            self.end(f"br label %{label}")

    def branch(self, condition: Value, then: str, other: str) -> None:
        if condition.text in ("true", "false"):
            self.jump(then if condition.text == "true" else other)
        elif self.block:
            self._leave(then)
            self._leave(other)
            self.end(f"br i1 {condition.text}, label %{then}, label %{other}")

    def end(self, text: str) -> None:
        """Writes the instruction that ends a block."""
        self.emit(text)
        self.block = ""

    def start(self, label: str) -> None:
        """Begins a block after all jumps to it; without any, control never comes there."""
        edges = self._edges.pop(label, [])
        if len(edges) == 1 and self._lines[-1] == f"  br label %{label}\n":
            # What was being written goes on.
            self._lines.pop()
            self.block, self.names = edges[0]
            return
        self.block = label if edges else ""
        if edges:
            self._lines.append(f"{label}:\n")
            self.names = self._met(edges)

    def either(self, label: str, values: Sequence[tuple[str, object]]) -> Any:
        """Begins a block; the value, or tuple of values, is that of the block from which control comes."""
        blocks = {block for block, _ in self._edges.get(label, ())}
        self.start(label)
        return self._either([(block, x) for block, x in values if block in blocks])

    def _either(self, values: Sequence[tuple[str, Any]]) -> Any:
        first = values[0][1]
        if isinstance(first, tuple):
            places = range(len(first))
            return tuple(self._either([(block, x[place]) for block, x in values]) for place in places)
        if all(x == first for _, x in values):
            return first
        incoming = ", ".join(f"[ {x.text}, %{block} ]" for block, x in values)
        return self.assign(f"phi {first.type.llvm} {incoming}", first.type)

    def _leave(self, label: str) -> None:
        self._edges.setdefault(label, []).append((self.block, dict(self.names)))

    def _met(self, edges: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
        """The variables where edges meet; one that is no number is what it is on all of them."""
        first = edges[0][1]
        if all(names == first for _, names in edges[1:]):
            return first
        found = {}
        for name in dict.fromkeys(name for _, names in edges for name in names):
            incoming = [(block, names.get(name)) for block, names in edges]
            known = incoming[0][1]
            if any(x != known for _, x in incoming):
                known = self._phi(name, incoming, len(self._lines)).value
            found[name] = known
        return found

    def _phi(self, name: str, incoming: Sequence[tuple[str, Operand | None]], place: int) -> Phi:
        """A value of a variable where others meet; its type is that of the variable when it is read."""
        phi = Phi(name, self.kinds, Value(self._name(), _UNKNOWN), incoming)
        for _, x in incoming:
            before = self._phis.get(x.text) if isinstance(x, Value) else None
            phi.guess = phi.guess or (before.guess if before else None)
            phi.guess = phi.guess or (natural_type(x.value) if isinstance(x, Static) else None)
        self._phis[phi.value.text] = phi
        self._lines.insert(place, phi)
        return phi

    # -- loops -----------------------------------------------------------------------------------------------

    def start_loop(self, head: str, assigned: Iterable[str]) -> Loop:
        """Begins the head of a loop that is entered from here.

        Args:
            head: its label.
            assigned: the variables that the loop may assign.
        """
        before = self.block
        self.emit(f"br label %{head}")
        self._lines.append(f"{head}:\n")
        self.block = head
        loop = Loop(head, before, len(self._lines))
        for name in assigned:
            phi = self._phi(name, [(before, self.names.get(name))], loop.place)
            loop.phis[name], self.names[name] = phi, phi.value
        return loop

    def close_loop(self, loop: Loop) -> None:
        """Goes back to the head of a loop, and tells its phis of all that comes there."""
        self.jump(loop.head)
        for block, names in self._edges.pop(loop.head, []):
            for name, phi in loop.phis.items():
                phi.incoming.append((block, names.get(name)))


def _operand(x: Operand | None, kind: Type) -> str:
    if x is None:
        return "undef"
    return literal(x.value, kind) if isinstance(x, Static) else x.text


_FLOAT = {"Add": "fadd", "Sub": "fsub", "Mult": "fmul", "Div": "fdiv"}
_INTEGER = {
    "Add": "add",
    "Sub": "sub",
    "Mult": "mul",
    "BitAnd": "and",
    "BitOr": "or",
    "BitXor": "xor",
    "LShift": "shl",
}
_COMPARE = {"Eq": "eq", "NotEq": "ne", "Lt": "lt", "LtE": "le", "Gt": "gt", "GtE": "ge"}


class Numbers(Blocks):
    """Operations on typed values."""

    def fail(self, node: Any, message: str) -> NoReturn:
        raise NotImplementedError

    # -- memory ----------------------------------------------------------------------------------------------

    def address(self, pointer: Value, index: Operand, node: ast.expr) -> str:
        if not pointer.type.pointer:
            self.fail(node, "only arrays have elements")
        if isinstance(index, Static) and index.value == 0:
            return pointer.text
        number = self.convert(index, I64, node)
        return self.assign(
            f"getelementptr {pointer.type.element.stored}, ptr {pointer.text}, i64 {number.text}", I64
        ).text

    def load(self, pointer: Value, address: str) -> Value:
        kind = pointer.type.element
        loaded = self.assign(f"load {kind.stored}, ptr {address}", kind)
        return self.assign(f"icmp ne i8 {loaded.text}, 0", BOOL) if kind.is_bool else loaded

    def store(self, value: Value, address: str) -> None:
        if value.type.is_bool:
            value = self.assign(f"zext i1 {value.text} to i8", value.type)
        self.emit(f"store {value.type.stored} {value.text}, ptr {address}")

    # -- conversion ------------------------------------------------------------------------------------------

    def value(self, x: Operand, node: ast.AST | None) -> Value:
        """A static number as a value of its natural type."""
        if isinstance(x, Value):
            return x
        kind = natural_type(x.value)
        if kind is None:
            self.fail(node, f"{x.value!r} is no number")
        return Value(literal(x.value, kind), kind)

    def truth(self, x: Value, node: ast.AST) -> Value:
        """True if a number is not zero."""
        value = self.value(x, node)
        if value.type.lanes > 1:
            self.fail(node, "a vector is neither true nor false")
        return (
            value
            if value.type.is_bool
            else self.compare("NotEq", value, self.convert(Static(0), value.type, node), node)
        )

    def promote(self, a: Operand, b: Operand, node: ast.expr) -> tuple[Value, Value]:
        """Two numbers in their common type; a static number takes the type of the other one."""
        if isinstance(a, Static) and isinstance(b, Static):
            return self.value(a, node), self.value(b, node)
        if isinstance(a, Static):
            assert isinstance(b, Value)
            kind = self._joined(a, b.type)
        elif isinstance(b, Static):
            kind = self._joined(b, a.type)
        else:
            kind = _common(a.type, b.type)
        return self.convert(a, kind, node), self.convert(b, kind, node)

    def _joined(self, static: Static, kind: Type) -> Type:
        if isinstance(static.value, float) and kind.is_integer:
            return F64.over(kind.lanes)
        return I64.over(kind.lanes) if kind.is_bool and not isinstance(static.value, bool) else kind

    def convert(self, x: Operand, kind: Type, node: ast.AST | None, explicit: bool = False) -> Value:
        """A number in a type; what loses information must be asked for."""
        if isinstance(x, Static):
            if not isinstance(x.value, bool | int | float | complex):
                self.fail(node, f"{x.value!r} is no number")
            if isinstance(x.value, float) and kind.is_integer and not explicit:
                self.fail(node, f"{x.value!r} is no integer; use cast")
            return Value(literal(x.value, kind), kind)
        have = x.type
        if have == kind:
            return x
        if have.pointer or kind.pointer:
            self.fail(node, "pointers are not converted; use view")
        if have.lanes != kind.lanes:
            if have.lanes > 1:
                self.fail(node, f"a vector of {have.lanes} lanes does not fit into {kind.lanes}")
            return self.spread(self.convert(x, kind.element, node, explicit), kind.lanes)
        if kind.is_complex:
            part = kind.real
            if have.is_complex:
                return self.complex(
                    *(self.convert(self.part(x, p), part, node, explicit) for p in ("real", "imag"))
                )
            return self.complex(self.convert(x, part, node, explicit), Value(literal(0, part), part))
        if not explicit and (have.is_float > kind.is_float or have.is_complex):
            self.fail(node, f"a {have.name} does not fit into a {kind.name}; use cast")
        return self._converted(x, kind)

    def spread(self, x: Value, lanes: int) -> Value:
        """A number in all lanes of a vector."""
        kind = x.type.over(lanes)
        first = self.assign(f"insertelement {kind.llvm} poison, {x.type.llvm} {x.text}, i64 0", kind)
        return self.assign(
            f"shufflevector {kind.llvm} {first.text}, {kind.llvm} poison, <{lanes} x i32> zeroinitializer",
            kind,
        )

    def _converted(self, x: Value, kind: Type) -> Value:
        have = x.type
        if have.is_complex:
            return self._converted(self.part(x, "real"), kind)
        if kind.is_bool:
            zero = literal(0, have)
            text = f"fcmp une {have.llvm}" if have.is_float else f"icmp ne {have.llvm}"
            return self.assign(f"{text} {x.text}, {zero}", kind)
        if have.is_float and kind.is_float:
            if have == kind:
                return x
            how = "fpext" if kind.bits > have.bits else "fptrunc"
        elif have.is_float:
            how = "fptosi" if kind.signed else "fptoui"
        elif kind.is_float:
            how = "sitofp" if have.signed else "uitofp"
        elif have.is_bool:
            how = "zext"
        elif have.bits == kind.bits:
            return Value(x.text, kind)
        else:
            how = "trunc" if kind.bits < have.bits else "sext" if have.signed else "zext"
        return self.assign(f"{how} {have.llvm} {x.text} to {kind.llvm}", kind)

    # -- arithmetic ------------------------------------------------------------------------------------------

    def complex(self, real: Value, imag: Value) -> Value:
        kind = Type(f"c{real.type.bits * 2}")
        half = self.assign(f"insertvalue {kind.llvm} undef, {real.type.llvm} {real.text}, 0", kind)
        return self.assign(f"insertvalue {kind.llvm} {half.text}, {imag.type.llvm} {imag.text}, 1", kind)

    def part(self, z: Value, which: str) -> Value:
        index = 0 if which == "real" else 1
        return self.assign(f"extractvalue {z.type.llvm} {z.text}, {index}", z.type.real)

    def negate(self, x: Value) -> Value:
        if x.type.is_complex:
            return self.complex(self.negate(self.part(x, "real")), self.negate(self.part(x, "imag")))
        if x.type.is_float:
            return self.assign(f"fneg{self.translator.flags} {x.type.llvm} {x.text}", x.type)
        return self.assign(f"sub {x.type.llvm} 0, {x.text}", x.type)

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        kind = a.type.llvm
        return self.assign(f"select i1 {condition.text}, {kind} {a.text}, {kind} {b.text}", a.type)

    def intrinsic(self, name: str, values: list[Value]) -> Value:
        kind = values[0].type
        full = f"{name}.{kind.mangled}"
        types = ", ".join(x.type.llvm for x in values)
        self.translator.declarations.add(f"declare {kind.llvm} @{full}({types})")
        return self.assign(
            f"call {kind.llvm} @{full}({', '.join(f'{x.type.llvm} {x.text}' for x in values)})", kind
        )

    def arithmetic(self, op: str, a: Value, b: Value, node: ast.BinOp) -> Value:
        kind = a.type
        if kind.is_complex:
            return self._complex_arithmetic(op, a, b, node)
        if kind.is_float:
            if op not in _FLOAT:
                self.fail(node, f"{op} is not defined for floats")
            return self.assign(f"{_FLOAT[op]}{self.translator.flags} {kind.llvm} {a.text}, {b.text}", kind)
        if op == "Div":
            return self.arithmetic(op, self._converted(a, F64), self._converted(b, F64), node)
        if op in ("FloorDiv", "Mod"):
            return self._division(op, a, b)
        text = _INTEGER.get(op) or ("ashr" if kind.signed else "lshr")
        if op not in (*_INTEGER, "RShift"):
            self.fail(node, f"{op} is not defined for integers")
        # Positions in arrays: without overflow, so that LLVM can follow them through loops.
        wrap = " nsw" if kind == I64 and op in ("Add", "Sub", "Mult") else ""
        return self.assign(f"{text}{wrap} {kind.llvm} {a.text}, {b.text}", kind)

    def _division(self, op: str, a: Value, b: Value) -> Value:
        """Integers are divided towards minus infinity, as in Python."""
        kind = a.type
        if not kind.signed:
            return self.assign(
                f"{'udiv' if op == 'FloorDiv' else 'urem'} {kind.llvm} {a.text}, {b.text}", kind
            )
        rest = self.assign(f"srem {kind.llvm} {a.text}, {b.text}", kind)
        signs = self.assign(f"xor {kind.llvm} {rest.text}, {b.text}", kind)
        differ = self.assign(f"icmp slt {kind.llvm} {signs.text}, 0", BOOL)
        some = self.assign(f"icmp ne {kind.llvm} {rest.text}, 0", BOOL)
        adjust = self.assign(f"and i1 {differ.text}, {some.text}", BOOL)
        if op == "Mod":
            shifted = self.assign(f"add {kind.llvm} {rest.text}, {b.text}", kind)
            return self.select(adjust, shifted, rest)
        quotient = self.assign(f"sdiv {kind.llvm} {a.text}, {b.text}", kind)
        less = self.assign(f"sub {kind.llvm} {quotient.text}, 1", kind)
        return self.select(adjust, less, quotient)

    def _complex_arithmetic(self, op: str, a: Value, b: Value, node: ast.BinOp) -> Value:
        (ar, ai), (br, bi) = ([self.part(z, which) for which in ("real", "imag")] for z in (a, b))

        def do(name: str, x: Value, y: Value) -> Value:
            return self.arithmetic(name, x, y, node)

        if op in ("Add", "Sub"):
            return self.complex(do(op, ar, br), do(op, ai, bi))
        if op == "Mult":
            real = do("Sub", do("Mult", ar, br), do("Mult", ai, bi))
            return self.complex(real, do("Add", do("Mult", ar, bi), do("Mult", ai, br)))
        if op == "Div":
            # Scaled by the larger part of the divisor, so that its square does not overflow.
            sizes = [self.intrinsic("llvm.fabs", [x]) for x in (br, bi)]
            size = self.intrinsic("llvm.maxnum", sizes)
            br, bi = do("Div", br, size), do("Div", bi, size)
            square = do("Mult", do("Add", do("Mult", br, br), do("Mult", bi, bi)), size)
            real = do("Div", do("Add", do("Mult", ar, br), do("Mult", ai, bi)), square)
            return self.complex(real, do("Div", do("Sub", do("Mult", ai, br), do("Mult", ar, bi)), square))
        self.fail(node, f"{op} is not defined for complex numbers")

    def compare(self, op: str, a: Value, b: Value, node: ast.AST) -> Value:
        kind = a.type
        name = _COMPARE.get(op)
        if name is None:
            self.fail(node, f"{op} is not a comparison of numbers")
        if kind.is_complex:
            parts = [
                self.compare("Eq", self.part(a, which), self.part(b, which), node)
                for which in ("real", "imag")
            ]
            same = self.assign(f"and i1 {parts[0].text}, {parts[1].text}", BOOL)
            if op not in ("Eq", "NotEq"):
                self.fail(node, "complex numbers are compared by their parts")
            return same if op == "Eq" else self.assign(f"xor i1 {same.text}, true", BOOL)
        if kind.is_float:
            ordered = "une" if name == "ne" else f"o{name}"
            return self.assign(f"fcmp {ordered} {kind.llvm} {a.text}, {b.text}", BOOL.over(kind.lanes))
        if name not in ("eq", "ne"):
            name = ("s" if kind.signed else "u") + name
        return self.assign(f"icmp {name} {kind.llvm} {a.text}, {b.text}", BOOL.over(kind.lanes))


def _common(a: Type, b: Type) -> Type:
    if a == b:
        return a
    if a.lanes != b.lanes:
        return _common(a.element, b.element).over(max(a.lanes, b.lanes))
    if a.is_complex or b.is_complex:
        return max((x for x in (a, b) if x.is_complex), key=lambda x: x.bits)
    floats = [x for x in (a, b) if x.is_float]
    if floats:
        return max(floats, key=lambda x: x.bits)
    return I64
