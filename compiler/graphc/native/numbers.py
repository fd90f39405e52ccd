# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers of the kernel language in LLVM IR: arithmetic, conversion and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from graphc.native.blocks import Blocks
from graphc.native.types import BOOL, F64, I64, Operand, Static, Type, Value, literal, natural_type

if TYPE_CHECKING:
    import ast

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
        """Whether a number is not zero."""
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
