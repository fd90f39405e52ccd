# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of MLIR's values: `start + 2 * length` makes operations of `arith` at the insertion point, and
`memory[i, j]` a load.

The bindings' class of values has no operators; it gets those of `graphc.native.value.Val` when this module is
imported. (Upstream would have one register a class for each type, which costs a call of Python whenever an
operand is read.) Arithmetic on sizes is folded where operands are literals, with the numbers of 64 bits that
the operations would have given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import and_, mul
from typing import cast, overload

from graphc.ir.size import Size
from graphc.native.value import OPERATORS
from graphc_dialects._base import const_index, constant_value
from graphc_dialects._mlir import ir
from graphc_runtime.index_arithmetic import BINARY, COMPARISONS, addi, muli, subi

# By the names of `Val`: the operation on integers, and on floating-point numbers.
OPERATIONS = {
    "add": ("arith.addi", "arith.addf"),
    "sub": ("arith.subi", "arith.subf"),
    "mul": ("arith.muli", "arith.mulf"),
    "floordiv": ("arith.divui", ""),
    "mod": ("arith.remui", ""),
    "truediv": ("", "arith.divf"),
    "neg": ("", "arith.negf"),
    "abs": ("math.absi", "math.absf"),
    "shl": ("arith.shli", ""),
    "shr": ("arith.shrui", ""),
    "and_": ("arith.andi", ""),
    "or_": ("arith.ori", ""),
    "xor": ("arith.xori", ""),
    "minimum": ("arith.minsi", "arith.minimumf"),
    "maximum": ("arith.maxsi", "arith.maximumf"),
}
# Predicates of `arith.cmpi` (signed, but for two) and `arith.cmpf` (ordered, but for "ne").
_PREDICATES = {"eq": (0, 1), "ne": (1, 13), "lt": (2, 4), "le": (3, 5), "gt": (4, 2), "ge": (5, 3)}
_UNSIGNED = {"ult": 6, "ugt": 8}
_FOLDED: dict[str, Callable[[int, int], int]] = {
    "add": addi,
    "sub": subi,
    "mul": muli,
    "floordiv": BINARY["divui"],
    "mod": BINARY["remui"],
    "minimum": min,
    "maximum": max,
}
# The operand on either side that changes nothing.
_NEUTRAL_LEFT = {"add": 0, "mul": 1}
_NEUTRAL_RIGHT = {"add": 0, "sub": 0, "mul": 1, "floordiv": 1}


def literal(value: complex, kind: ir.Type) -> ir.Value:
    """A constant of an index, integer, floating-point or complex type."""
    if isinstance(kind, ir.IndexType):
        return const_index(int(value.real))
    if isinstance(kind, ir.ComplexType):
        parts = [ir.FloatAttr.get(kind.element_type, float(x)) for x in (value.real, value.imag)]
        return ir.Operation.create("complex.constant", [kind], [], {"value": ir.ArrayAttr.get(parts)}).result
    if isinstance(kind, ir.IntegerType):
        half = 1 << (kind.width - 1)
        attribute: ir.Attribute = ir.IntegerAttr.get(kind, (int(value.real) + half) % (2 * half) - half)
    else:
        attribute = ir.FloatAttr.get(kind, float(value.real))
    return ir.Operation.create("arith.constant", [kind], [], {"value": attribute}).result


def flag(holds: int) -> ir.Value:
    """A condition that is known."""
    return literal(holds, ir.IntegerType.get_signless(1))


def as_index(value: ir.Value | int) -> ir.Value:
    """An index value; a Python number becomes a constant, and an integer is cast."""
    return as_indices([value])[0]


def as_indices(values: Iterable[ir.Value | int]) -> list[ir.Value]:
    """`as_index` of each of several."""
    kind, found = ir.IndexType.get(), list[ir.Value]()
    for x in values:
        if isinstance(x, int):
            found.append(const_index(x))
        else:
            found.append(x if x.type == kind else converted(x, kind))
    return found


@overload
def smaller(a: ir.Value, b: ir.Value | int) -> ir.Value: ...
@overload
def smaller(a: ir.Value | int, b: ir.Value | int) -> ir.Value | int: ...
def smaller(a: ir.Value | int, b: ir.Value | int) -> ir.Value | int:
    """`min(a, b)` of sizes or other numbers."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return _apply(a if isinstance(a, ir.Value) else cast("ir.Value", b), "minimum", a, b)


@overload
def larger(a: ir.Value, b: ir.Value | int) -> ir.Value: ...
@overload
def larger(a: ir.Value | int, b: ir.Value | int) -> ir.Value | int: ...
def larger(a: ir.Value | int, b: ir.Value | int) -> ir.Value | int:
    """`max(a, b)` of sizes or other numbers."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return _apply(a if isinstance(a, ir.Value) else cast("ir.Value", b), "maximum", a, b)


def parts_of(count: ir.Value, each: ir.Value | int) -> ir.Value:
    """Number of parts of `each` that hold a count: the quotient of sizes, rounded up."""
    size, part = constant_value(count), constant_value(each)
    if size is not None and part:
        return const_index(BINARY["ceildivsi"](size, part))
    return _made("arith.ceildivsi", ir.IndexType.get(), count, each)


def all_of(conditions: Sequence[ir.Value]) -> ir.Value:
    """True if every one of some conditions holds."""
    known = [constant_value(x) for x in conditions]
    if 0 in known:
        return conditions[known.index(0)]
    unknown = [x for x, number in zip(conditions, known, strict=True) if number is None]
    return reduce(and_, unknown or conditions[:1])


def converted(value: ir.Value, kind: ir.Type) -> ir.Value:
    """A number of another type.

    Integers of other widths get zeros, or are cut off, and count as signed where they become numbers of
    floating point; these are rounded, and towards 0 where they become integers.
    """
    if value.type == kind:
        return value
    if ir.IndexType.get() in (value.type, kind):
        name = "index_cast"
    else:
        wider = kind.width > value.type.width
        is_integer, becomes_integer = (isinstance(x, ir.IntegerType) for x in (value.type, kind))
        if is_integer and becomes_integer:
            name = "extui" if wider else "trunci"
        elif is_integer or becomes_integer:
            name = "sitofp" if is_integer else "fptosi"
        else:
            name = "extf" if wider else "truncf"
    return ir.Operation.create(f"arith.{name}", [kind], [value]).result


def bits_as(value: ir.Value, kind: ir.Type) -> ir.Value:
    """The number of another type, of the same width, that has the same bits."""
    return ir.Operation.create("arith.bitcast", [kind], [value]).result


def built(size: Size) -> ir.Value:
    """A sum of products of index values, at the insertion point."""
    total = const_index(size.constant)
    for product, count in size.terms.items():
        total = total + reduce(mul, cast("Iterable[ir.Value]", product)) * count
    return total


def _apply(self: ir.Value, name: str, *operands: ir.Value | float) -> ir.Value:
    kind = self.type
    if name in _PREDICATES or name in _UNSIGNED:
        return _compared(kind, name, *operands)
    if isinstance(kind, ir.IndexType) and name in _FOLDED:
        return _on_sizes(name, *operands)
    is_integer = isinstance(kind, (ir.IndexType, ir.IntegerType))
    if is_integer and name in ("neg", "invert"):
        return 0 - self if name == "neg" else _made("arith.xori", kind, self, -1)
    made = OPERATIONS.get(name, ("", ""))[not is_integer]
    if not made:
        raise TypeError(f"there is no {name} of values of type {kind}")
    return _made(made, kind, *operands)


def _on_sizes(name: str, a: ir.Value | float, b: ir.Value | float) -> ir.Value:
    x, y = constant_value(a), constant_value(b)
    if x is not None and y is not None and (y or name not in ("floordiv", "mod")):
        return const_index(_FOLDED[name](x, y))
    if y is not None and y == _NEUTRAL_RIGHT.get(name):
        assert isinstance(a, ir.Value), "two numbers are a number"
        return a
    if name == "mul" and 0 in (x, y):
        return const_index(0)
    if x is not None and x == _NEUTRAL_LEFT.get(name):
        assert isinstance(b, ir.Value), "two numbers are a number"
        return b
    left = a if isinstance(a, ir.Value) else const_index(int(a))
    right = b if isinstance(b, ir.Value) else const_index(int(b))
    return ir.Operation.create(OPERATIONS[name][0], [ir.IndexType.get()], [left, right]).result


def _made(name: str, kind: ir.Type, *operands: ir.Value | float) -> ir.Value:
    values = [x if isinstance(x, ir.Value) else literal(x, kind) for x in operands]
    return ir.Operation.create(name, [kind], values).result


def _compared(kind: ir.Type, name: str, a: ir.Value | float, b: ir.Value | float) -> ir.Value:
    is_integer = isinstance(kind, (ir.IndexType, ir.IntegerType))
    known = [constant_value(x) for x in (a, b)] if isinstance(kind, ir.IndexType) else [None]
    if None not in known:
        return flag(COMPARISONS[name if name in COMPARISONS else f"s{name}"](*known))
    a, b = (x if isinstance(x, ir.Value) else literal(x, kind) for x in (a, b))
    which = _UNSIGNED[name] if name in _UNSIGNED else _PREDICATES[name][not is_integer]
    predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), which)
    made = "arith.cmpi" if is_integer else "arith.cmpf"
    return ir.Operation.create(
        made, [ir.IntegerType.get_signless(1)], [a, b], {"predicate": predicate}
    ).result


Place = ir.Value | int | Sequence[ir.Value | int]


def _where(memory: ir.Value, place: Place) -> list[ir.Value]:
    indices = [place] if isinstance(place, (int, ir.Value)) else place
    return [memory, *as_indices(indices)]


def _read(memory: ir.Value, place: Place) -> ir.Value:
    """`memory[i, j]`, of a buffer or a tensor."""
    name = "tensor.extract" if isinstance(memory.type, ir.RankedTensorType) else "memref.load"
    return ir.Operation.create(name, [memory.type.element_type], _where(memory, place)).result


def _write(memory: ir.Value, place: Place, value: ir.Value) -> None:
    """`memory[i, j] = value`, of a buffer."""
    ir.Operation.create("memref.store", [], [value, *_where(memory, place)])


# Without `__iter__` Python would take what has elements by number for a sequence, one without end.
_ELEMENTS = {"__getitem__": _read, "__setitem__": _write, "__iter__": None}
for _name, _operator in {**OPERATORS, "_apply": _apply, **_ELEMENTS}.items():
    setattr(ir.Value, _name, _operator)
