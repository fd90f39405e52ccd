# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic of all threads of a block at once: arith, math, complex and index on NumPy arrays.

Axis 0 of a value are threads, or has size 1 where all threads have the same value; vectors have a second
axis. Integers have the dtype of their type and wrap; they have no sign, and the operation says how it reads
them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from graphc.ir.constants import element_dtype
from graphc_dialects._mlir import ir

Array: TypeAlias = np.ndarray
Function: TypeAlias = Callable[..., Array]


def dtype_of(type_: ir.Type) -> np.dtype:
    """The dtype of a scalar, of a vector's elements, or of a memref's."""
    element = getattr(type_, "element_type", None)
    if isinstance(type_, ir.ComplexType) or element is None:
        return element_dtype(type_)
    return element_dtype(element)


def _unsigned(x: Array) -> Array:
    return x if x.dtype == bool else x.view(f"u{x.dtype.itemsize}")


def _signed(x: Array) -> Array:
    """A truth value is the number -1."""
    return -x.astype(np.int8) if x.dtype == bool else x


def _on_unsigned(function: Function) -> Function:
    def apply(a: Array, b: Array) -> Array:
        found = function(_unsigned(a), _unsigned(b))
        return found if found.dtype == bool else found.view(a.dtype)

    return apply


def _quotient(a: Array, b: Array) -> Array:
    """Towards zero; where b is 0, threads that do not take part compute it, and anything goes."""
    b = np.where(b == 0, 1, b)
    found = a // b
    return found + ((found < 0) & (found * b != a)).astype(a.dtype)


def _remainder(a: Array, b: Array) -> Array:
    return a - np.where(b == 0, 1, b) * _quotient(a, b)


def _floor(a: Array, b: Array) -> Array:
    return a // np.where(b == 0, 1, b)


def _ceil(a: Array, b: Array) -> Array:
    return -((-a) // np.where(b == 0, 1, b))


def _ceil_unsigned(a: Array, b: Array) -> Array:
    b = np.where(b == 0, 1, b).astype(a.dtype)
    return a // b + (a % b != 0).astype(a.dtype)


def _shift(function: Function) -> Function:
    def apply(a: Array, b: Array) -> Array:
        width = 8 * a.dtype.itemsize
        return function(a, np.where(_unsigned(b) < width, b, width - 1).astype(a.dtype))

    return apply


def _on_signed(function: Function) -> Function:
    return lambda a, b: function(_signed(a), _signed(b))


_ORDERS = (np.less, np.less_equal, np.greater, np.greater_equal)
_INTEGER_PREDICATES: list[Function] = [
    np.equal,
    np.not_equal,
    *(_on_signed(f) for f in _ORDERS),
    *(_on_unsigned(f) for f in _ORDERS),
]


def _ordered(function: Function) -> Function:
    return lambda a, b: function(a, b) & ~(np.isnan(a) | np.isnan(b))


def _unordered(function: Function) -> Function:
    return lambda a, b: function(a, b) | np.isnan(a) | np.isnan(b)


_COMPARISONS = (np.equal, np.greater, np.greater_equal, np.less, np.less_equal, np.not_equal)
_FLOAT_PREDICATES: list[Function] = [
    lambda a, b: np.zeros(np.broadcast(a, b).shape, bool),
    *(_ordered(f) for f in _COMPARISONS),
    lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    *(_unordered(f) for f in _COMPARISONS),
    lambda a, b: np.isnan(a) | np.isnan(b),
    lambda a, b: np.ones(np.broadcast(a, b).shape, bool),
]


def comparison(op: ir.Operation) -> Function:
    """The comparison that `arith.cmpi` or `arith.cmpf` computes."""
    predicates = _INTEGER_PREDICATES if op.name in ("arith.cmpi", "index.cmp") else _FLOAT_PREDICATES
    attribute = op.attributes["predicate" if "predicate" in op.attributes else "pred"]
    number = attribute.value if isinstance(attribute, ir.IntegerAttr) else _INDEX_PREDICATES[str(attribute)]
    return predicates[number]


_INDEX_PREDICATES = {
    f"#index<cmp_predicate {name}>": i
    for i, name in enumerate("eq ne slt sle sgt sge ult ule ugt uge".split())
}


def _convert(op: ir.Operation) -> Function:
    dtype, signed = dtype_of(op.results[0].type), op.name not in _FROM_UNSIGNED
    to_unsigned = op.name == "arith.fptoui"

    def apply(x: Array) -> Array:
        if x.dtype == bool:
            x = -x.astype(np.int8) if signed else x.astype(np.uint8)
        elif not signed:
            x = _unsigned(x)
        if dtype.kind == "b":
            return (x & 1).astype(bool)
        if to_unsigned:
            return x.astype(f"u{dtype.itemsize}").view(dtype)
        return x.astype(dtype)

    return apply


_FROM_UNSIGNED = frozenset(("arith.extui", "arith.index_castui", "arith.uitofp", "index.castu"))
_CONVERSIONS = (
    "arith.extsi arith.extui arith.trunci arith.index_cast arith.index_castui arith.sitofp arith.uitofp "
    "arith.fptosi arith.fptoui arith.extf arith.truncf index.casts index.castu"
).split()


def _bitcast(op: ir.Operation) -> Function:
    dtype = dtype_of(op.results[0].type)
    return lambda x: np.ascontiguousarray(x).view(dtype)


def _wide(function: Function) -> Function:
    """Evaluated in twice the precision where there is one, and rounded once."""

    def apply(*xs: Array) -> Array:
        dtype = xs[0].dtype
        wider = {"e": np.float32, "f": np.float64, "d": np.longdouble}.get(dtype.char, dtype)
        return function(*(x.astype(wider) for x in xs)).astype(dtype)

    return apply


def _double(function: Function) -> Function:
    """Evaluated in float64 and rounded: what has no accurate form in narrower types."""
    return lambda *xs: function(*(x.astype(np.float64) for x in xs)).astype(xs[0].dtype)


def _scalar(function: Callable[[float], float]) -> Function:
    return _double(np.vectorize(function, otypes=[np.float64]))


def _round_away(x: Array) -> Array:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def _propagating(function: Function) -> Function:
    """`arith.maximumf` and `minimumf`: NaN wins, and -0 is below 0."""

    def apply(a: Array, b: Array) -> Array:
        found = function(a, b)
        sign = function(np.copysign(1, a), np.copysign(1, b))
        return np.where((a == 0) & (b == 0), np.copysign(0, sign), found).astype(found.dtype)

    return apply


def _count(name: str) -> Function:
    def apply(x: Array) -> Array:
        width = 8 * x.dtype.itemsize
        number = _unsigned(x).astype(object)
        found = np.vectorize(lambda n: _bits(name, int(n), width), otypes=[object])(number)
        return found.astype(x.dtype)

    return apply


def _bits(name: str, n: int, width: int) -> int:
    if name == "ctpop":
        return n.bit_count()
    if name == "ctlz":
        return width - n.bit_length()
    return (n & -n).bit_length() - 1 if n else width


def _chosen(function: Function) -> Function:
    return lambda a, b: np.asarray(np.where(function(_signed(a), _signed(b)), a, b))


def _complex(real: Array, imag: Array) -> Array:
    made = np.empty(np.broadcast(real, imag).shape, np.result_type(real, np.complex64))
    made.real, made.imag = real, imag
    return made


_PLAIN: dict[str, Function] = {
    **dict.fromkeys(("arith.addi", "arith.addf", "index.add", "complex.add"), np.add),
    **dict.fromkeys(("arith.subi", "arith.subf", "index.sub", "complex.sub"), np.subtract),
    **dict.fromkeys(("arith.muli", "arith.mulf", "index.mul", "complex.mul"), np.multiply),
    **dict.fromkeys(("arith.divf", "complex.div"), np.divide),
    **dict.fromkeys(("arith.negf", "complex.neg"), np.negative),
    "arith.remf": np.fmod,
    **dict.fromkeys(("arith.divsi", "index.divs"), _quotient),
    **dict.fromkeys(("arith.remsi", "index.rems"), _remainder),
    **dict.fromkeys(("arith.divui", "index.divu"), _on_unsigned(_floor)),
    **dict.fromkeys(("arith.remui", "index.remu"), _on_unsigned(_remainder)),
    **dict.fromkeys(("arith.floordivsi", "index.floordivs"), _floor),
    **dict.fromkeys(("arith.ceildivsi", "index.ceildivs"), _ceil),
    **dict.fromkeys(("arith.ceildivui", "index.ceildivu"), _on_unsigned(_ceil_unsigned)),
    **dict.fromkeys(("arith.maxsi", "index.maxs"), _chosen(np.greater)),
    **dict.fromkeys(("arith.minsi", "index.mins"), _chosen(np.less)),
    **dict.fromkeys(("arith.maxui", "index.maxu"), _on_unsigned(np.maximum)),
    **dict.fromkeys(("arith.minui", "index.minu"), _on_unsigned(np.minimum)),
    **dict.fromkeys(("arith.andi", "index.and"), np.bitwise_and),
    **dict.fromkeys(("arith.ori", "index.or"), np.bitwise_or),
    **dict.fromkeys(("arith.xori", "index.xor"), np.bitwise_xor),
    **dict.fromkeys(("arith.shli", "index.shl"), _shift(np.left_shift)),
    **dict.fromkeys(("arith.shrsi", "index.shrs"), _shift(np.right_shift)),
    **dict.fromkeys(("arith.shrui", "index.shru"), _on_unsigned(_shift(np.right_shift))),
    "arith.maximumf": _propagating(np.maximum),
    "arith.minimumf": _propagating(np.minimum),
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
    "math.fma": _wide(lambda a, b, c: a * b + c),
    "math.absf": np.abs,
    "math.absi": np.abs,
    "math.copysign": np.copysign,
    "math.floor": np.floor,
    "math.ceil": np.ceil,
    "math.trunc": np.trunc,
    "math.round": _round_away,
    "math.roundeven": np.rint,
    "math.sqrt": np.sqrt,
    "math.rsqrt": _wide(lambda x: 1 / np.sqrt(x)),
    "math.isnan": np.isnan,
    "math.isinf": np.isinf,
    "math.isfinite": np.isfinite,
    "math.erf": _scalar(math.erf),
    "math.erfc": _scalar(math.erfc),
    "math.powf": _double(np.power),
    "math.fpowi": lambda a, b: np.power(a.astype(np.float64), b).astype(a.dtype),
    "math.atan2": _double(np.arctan2),
    **{f"math.{name}": _double(getattr(np, name)) for name in "exp exp2 expm1 log log2 log10 log1p".split()},
    **{f"math.{name}": _double(getattr(np, name)) for name in "sin cos tan sinh cosh tanh cbrt".split()},
    **{f"math.{name}": _double(getattr(np, f"arc{name[1:]}")) for name in "asin acos atan".split()},
    **{f"math.{name}": _double(getattr(np, f"arc{name[1:]}")) for name in "asinh acosh atanh".split()},
    **{f"math.{name}": _count(name) for name in ("ctpop", "ctlz", "cttz")},
    "complex.create": _complex,
    "complex.re": np.real,
    "complex.im": np.imag,
    "complex.abs": np.abs,
    "complex.conj": np.conj,
    **{f"complex.{name}": getattr(np, name) for name in "exp log sin cos tan tanh sqrt".split()},
    "complex.pow": np.power,
}
# By their names in `vector.reduction` and `gpu.subgroup_reduce`.
REDUCTIONS: dict[str, Function] = {
    "add": np.add,
    "mul": np.multiply,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    **dict.fromkeys(("maxsi", "maximumf"), np.maximum),
    **dict.fromkeys(("minsi", "minimumf"), np.minimum),
    "maxnumf": np.fmax,
    "minnumf": np.fmin,
}
_DIVISIONS = frozenset(
    "arith.divsi arith.remsi arith.divui arith.remui arith.floordivsi arith.ceildivsi arith.ceildivui".split()
)


def is_division(name: str) -> bool:
    """True if a divisor of 0 makes an operation undefined."""
    return name in _DIVISIONS


def function_of(op: ir.Operation) -> Function | None:
    """The function of an operation without attributes and regions; None if it is none of these dialects'."""
    name = op.name
    if name in ("arith.cmpi", "arith.cmpf", "index.cmp"):
        return comparison(op)
    if name in _CONVERSIONS:
        return _convert(op)
    if name == "arith.bitcast":
        return _bitcast(op)
    if name in ("complex.eq", "complex.neq"):
        return np.equal if name == "complex.eq" else np.not_equal
    return _PLAIN.get(name)
