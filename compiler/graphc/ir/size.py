# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The one symbolic integer: sizes as sums of products of names, in a normal form.

A `Size` is a constant and how often each product of names is added to it, so that equal sums compare equal,
whatever order they were written in. Names are anything hashable: keys of dimensions (`graphc.ir.dims`), the
one unknown of `graphc.ir.affine`, texts of reports. There are two readers: `SizesOf` makes sizes of the index
values of a function, `Recorded` of the expressions that an artifact keeps (`passes/buffer/_expressions.py`
writes them). Both leave the operations that are no sums to `combined` and `compared`, which decide minima,
maxima, comparisons and quotients where it is certain how these come out: sizes are not negative.

The method is that of normal forms of polynomials, as in JAX's shape polymorphism and MLIR's affine maps.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphc_runtime.index_arithmetic import BINARY, COMPARISONS, SIGNS, addi, muli, subi

if TYPE_CHECKING:
    from graphc.ir.rewrite import Rewriter
    from graphc_dialects._mlir import ir

# Factors up to here: sums of sizes cannot overflow in practice.
_LARGEST = 2**31
# Products of sums with more terms stay names of their own.
_MOST_TERMS = 8
_DEPTH = 32
_EXACT_QUOTIENTS = frozenset(("divsi", "floordivsi", "ceildivsi"))
_COMPARISONS = tuple(COMPARISONS.values())
Product = tuple[Hashable, ...]
Number = int | None


class Size:
    """An integer: `constant + sum of count * product`.

    Attributes:
        constant: a number.
        terms: how often each product of names is added, never 0.
    """

    def __init__(self, constant: int = 0, terms: Mapping[Product, int] | None = None) -> None:
        self.constant = constant
        self.terms: Mapping[Product, int] = terms or {}

    @classmethod
    def of(cls, value: Hashable) -> Size:
        """A number, or what has a name."""
        return cls(value) if isinstance(value, int) else cls(0, {(value,): 1})

    @property
    def number(self) -> Number:
        """The value, where it has no names."""
        return None if self.terms else self.constant

    @property
    def slope(self) -> int:
        """Coefficient of the only name; 0 if there is none."""
        for count in self.terms.values():
            return count
        return 0

    def count(self, name: Hashable) -> int:
        """Coefficient of a name, without its products."""
        return self.terms.get((name,), 0)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, int):
            return not self.terms and self.constant == other
        return isinstance(other, Size) and (self.constant, self.terms) == (other.constant, other.terms)

    def __hash__(self) -> int:
        return hash((self.constant, frozenset(self.terms.items()))) if self.terms else hash(self.constant)

    def __add__(self, other: Size | int) -> Size:
        if isinstance(other, int):
            return Size(self.constant + other, self.terms)
        if not other.terms:
            return Size(self.constant + other.constant, self.terms)
        terms = dict(self.terms)
        for product, count in other.terms.items():
            total = terms.get(product, 0) + count
            if total:
                terms[product] = total
            else:
                del terms[product]
        return Size(self.constant + other.constant, terms)

    def __mul__(self, other: Size | int) -> Size:
        if not isinstance(other, int) and not other.terms:
            other = other.constant
        if isinstance(other, int):
            if not other:
                return Size()
            return Size(
                self.constant * other, {product: count * other for product, count in self.terms.items()}
            )
        found = other * self.constant
        for a, times in self.terms.items():
            for b, count in other.terms.items():
                found += Size(0, {tuple(sorted((*a, *b), key=_order)): times * count})
            found += Size(0, {a: times * other.constant} if other.constant else {})
        return found

    def __neg__(self) -> Size:
        return self * -1

    def __sub__(self, other: Size | int) -> Size:
        if isinstance(other, int):
            return Size(self.constant - other, self.terms)
        if not other.terms:
            return Size(self.constant - other.constant, self.terms)
        return self + other * -1

    def __radd__(self, other: int) -> Size:
        return self + other

    def __rsub__(self, other: int) -> Size:
        return -self + other

    __rmul__ = __mul__

    def at(self, sizes: Mapping[Any, int]) -> Number:
        """The value for given sizes; None if a name is none of them."""
        total = self.constant
        for product, count in self.terms.items():
            for name in product:
                if name not in sizes:
                    return None
                count *= sizes[name]
            total += count
        return total

    def divided(self, by: int) -> Size | None:
        """The quotient by a positive number that divides every part; None if it does not."""
        if self.constant % by or any(count % by for count in self.terms.values()):
            return None
        return Size(self.constant // by, {product: count // by for product, count in self.terms.items()})

    def __str__(self) -> str:
        parts = [(count, "*".join(map(str, product))) for product, count in self.terms.items()]
        parts.sort(key=lambda part: part[0] < 0)
        if self.constant or not parts:
            parts.append((self.constant, ""))
        text = ""
        for count, name in parts:
            shown = name if abs(count) == 1 and name else f"{abs(count)}*{name}" if name else str(abs(count))
            sign = "-" if count < 0 else "+"
            text += f" {sign} {shown}" if text else f"-{shown}" if count < 0 else shown
        return text

    __repr__ = __str__


def _order(name: Hashable) -> tuple[bool, Any]:
    """Products have one order; that of texts is the same in every process."""
    return (True, name) if isinstance(name, str) else (False, hash(name))


Certain = Callable[[Size], bool]


def combined(name: str, a: Size, b: Size, certain: Certain) -> Size | None:
    """The result of an operation of the arith dialect; None if it is no sum of sizes.

    Args:
        name: of the operation, without the dialect's.
        a, b: its operands.
        certain: whether a sum is certainly not negative.
    """
    x, y = a.number, b.number
    if x is not None and y is not None and name in BINARY:
        try:
            return Size(BINARY[name](x, y))
        except ZeroDivisionError:
            return None
    if name == addi.__name__:
        return a + b
    if name == subi.__name__:
        return a - b
    if name == muli.__name__:
        factor = x if y is None else y
        if factor is not None:
            return a * b if abs(factor) <= _LARGEST else None
        return a * b if len(a.terms) * len(b.terms) <= _MOST_TERMS else None
    if name in ("maxsi", "minsi"):
        low, high = (a, b) if certain(b - a) else (b, a)
        if not certain(high - low):
            return None
        return high if name == "maxsi" else low
    if name in _EXACT_QUOTIENTS and y is not None and y > 0:
        return a.divided(y)
    return None


def compared(predicate: int, a: Size, b: Size, certain: Certain) -> bool | None:
    """The outcome of an `arith.cmpi` (see its predicates); None if it is not certain."""
    if a.number is not None and b.number is not None:
        return bool(_COMPARISONS[predicate](a.number, b.number))
    if predicate < 2:
        if a == b:
            return predicate == 0
        differ = certain(a - b - 1) or certain(b - a - 1)
        return predicate == 1 if differ else None
    if predicate > 5:
        return None
    if predicate > 3:
        a, b, predicate = b, a, predicate - 2
    strict = int(predicate == 2)
    if certain(b - a - strict):
        return True
    return False if certain(a - b - 1 + strict) else None


class SizesOf:
    """Sizes that the index values of a function are.

    Args:
        rewriter: knows definitions and keys of sizes.
    """

    def __init__(self, rewriter: Rewriter) -> None:
        self._rw = rewriter
        self._found: dict[ir.Value, Size] = {}

    def of(self, value: ir.Value, depth: int = 0) -> Size:
        """The size that an index value is."""
        if value not in self._found:
            self._found[value] = self._read(value, depth)
        return self._found[value]

    def of_dim(self, tensor: ir.Value, axis: int) -> Size:
        """A size of a tensor."""
        key = self._rw.dims.shape(tensor)[axis]
        return self.of(key[1], 1) if not isinstance(key, int) and key[0] == "index" else Size.of(key)

    def not_negative(self, size: Size) -> bool:
        """True if a sum of sizes is certainly not negative."""
        return size.constant >= 0 and all(
            count > 0 and all(map(self._is_size, product)) for product, count in size.terms.items()
        )

    def at_most(self, a: Size, b: Size) -> bool:
        """True if certainly a <= b."""
        return self.not_negative(b - a)

    def _is_size(self, key: Any) -> bool:
        return key[0] == "dim" or (key[0] == "index" and bool(self._rw.dims.is_size(key[1])))

    def _read(self, value: ir.Value, depth: int) -> Size:
        key = self._rw.dims.size(value)
        op = self._rw.defs.get(key[1]) if not isinstance(key, int) and key[0] == "index" else None
        found = self._of_op(op, depth + 1) if op is not None and depth < _DEPTH else None
        return Size.of(key) if found is None else found

    def _of_op(self, op: ir.Operation, depth: int) -> Size | None:
        dialect, _, name = op.name.partition(".")
        if dialect != "arith":
            return None
        if name == "select":
            condition, *sides = op.operands
            test = self._rw.defining(condition, "arith.cmpi")
            if test is None:
                return None
            holds = self._holds(test, depth)
            return None if holds is None else self.of(sides[not holds], depth)
        if name not in BINARY:
            return None
        a, b = (self.of(x, depth) for x in op.operands)
        return combined(name, a, b, self.not_negative)

    def _holds(self, test: ir.Operation, depth: int = 0) -> bool | None:
        a, b = (self.of(x, depth) for x in test.operands)
        return compared(int(test.attributes["predicate"].value), a, b, self.not_negative)

    def without_empty(self, offset: ir.Value, size: ir.Value) -> ir.Value:
        """The offset of a slice, without the select that moves an empty slice to 0."""
        op = self._rw.defining(offset, "arith.select")
        test = None if op is None else self._rw.defining(op.operands[0], "arith.cmpi")
        if op is None or test is None or int(test.attributes["predicate"].value) != 0:
            return offset
        if self._rw.constant(op.operands[1]) != 0 or self._rw.constant(test.operands[1]) != 0:
            return offset
        return op.operands[2] if self.of(test.operands[0]) == self.of(size) else offset


class Argument:
    """An argument of a kernel, as far as it is known.

    Args:
        name: how texts call it.
        shape: its sizes, None where unknown.
        value: its value if it is a number.
    """

    def __init__(self, name: str, shape: Sequence[Number], value: Number = None) -> None:
        self.name, self.shape, self.value = name, tuple(shape), value


class Recorded:
    """The expressions of a record, for given arguments: as numbers and as text.

    Args:
        nodes: the expressions, see `graphc.passes.buffer._expressions`.
        arguments: of the kernel: inputs, then results.
    """

    def __init__(self, nodes: Sequence[Sequence[Any]], arguments: Sequence[Argument]) -> None:
        self._nodes, self._arguments = nodes, arguments
        self._values: dict[int, Number] = {}
        self._sizes: dict[int, Size | None] = {}
        self._not_negative: set[Hashable] = set()

    def value(self, number: int) -> Number:
        """The value of an expression, None if it is not known."""
        if number not in self._values:
            self._values[number] = self._value(number)
        return self._values[number]

    def _value(self, number: int) -> Number:
        name, *operands = self._nodes[number]
        if name in ("const", "dim", "value", "?"):
            return self._leaf(name, operands)
        predicate = operands.pop(0) if name == "cmpi" else 0
        values = [self.value(operand) for operand in operands]
        if name == "select":
            return None if values[0] is None else values[1] if values[0] else values[2]
        a, b = values
        if a is None or b is None:
            return None
        if name == "cmpi":
            return int(_COMPARISONS[predicate](a, b))
        try:
            return BINARY[name](a, b)
        except ZeroDivisionError:
            return None

    def _leaf(self, name: str, operands: Sequence[int]) -> Number:
        if name == "const":
            return int(operands[0])
        if name == "dim":
            return self._arguments[operands[0]].shape[operands[1]]
        return self._arguments[operands[0]].value if name == "value" else None

    def product(self, numbers: Sequence[int]) -> Number:
        """The product of sizes; one that is negative counts as 0."""
        result = 1
        for number in numbers:
            value = self.value(number)
            if value is None:
                return None
            result *= max(value, 0)
        return result

    def text(self, number: int) -> str:
        """An expression the way one would write it in Python, or that only the data tell."""
        size = self.size(number)
        return "data-dependent" if size is None else str(size)

    def size(self, number: int) -> Size | None:
        """The normal form of an expression; None if it depends on more than arguments."""
        if number not in self._sizes:
            self._sizes[number] = self._size(number)
        return self._sizes[number]

    def _certain(self, size: Size) -> bool:
        return size.constant >= 0 and all(
            count > 0 and self._not_negative.issuperset(product) for product, count in size.terms.items()
        )

    def _named(self, name: str, not_negative: bool) -> Size:
        if not_negative:
            self._not_negative.add(name)
        return Size.of(name)

    def _size(self, number: int) -> Size | None:
        name, *operands = self._nodes[number]
        if name in ("const", "dim", "value", "?"):
            known = self._leaf(name, operands)
            if known is not None or name == "?":
                return None if known is None else Size(known)
            called = self._arguments[operands[0]].name
            return self._named(f"{called}.shape[{operands[1]}]" if name == "dim" else called, name == "dim")
        predicate = operands.pop(0) if name == "cmpi" else 0
        sizes = [self.size(operand) for operand in operands]
        if name == "select":
            return self._select(*sizes)
        a, b = sizes
        if a is None or b is None:
            return None
        if name == "cmpi":
            holds = compared(predicate, a, b, self._certain)
            return self._named(f"{a} against {b}", False) if holds is None else Size(holds)
        found = combined(name, a, b, self._certain)
        return self._operation(name, a, b) if found is None else found

    def _select(self, condition: Size | None, a: Size | None, b: Size | None) -> Size | None:
        if condition is not None and condition.number is not None:
            return a if condition.number else b
        if a is None or b is None or a == b:
            return None if b is None else a
        return self._named(f"({a} or {b})", self._certain(a) and self._certain(b))

    def _operation(self, name: str, a: Size, b: Size) -> Size:
        both = self._certain(a) and self._certain(b)
        if name in SIGNS:
            return self._named(f"({_operand(a)} {SIGNS[name]} {_operand(b)})", both)
        short = name.removesuffix("si").removesuffix("ui")
        either = short == "max" and (self._certain(a) or self._certain(b))
        return self._named(f"{short}({a}, {b})", both or either)


def _operand(size: Size) -> str:
    is_sum = len(size.terms) + bool(size.constant) > 1 or "*" in str(size)
    return f"({size})" if is_sum else str(size)
