# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic and functions of complex scalars, by real ones that vectorise; inverses call kernels.

Infinities, NaN and signed zeros are those of Annex G of the C standard, which are NumPy's. Errors are small
compared to the larger part of the result, and of logarithms and exponentials compared to each part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.native.value import Val

if TYPE_CHECKING:
    from graphc.lowering.scalar_builder import Scalar, ScalarBuilder


class Real(Val):
    """A floating-point `Scalar` and the `ScalarBuilder` that computes with it.

    Operators round each operation by itself; Python numbers are constants of the same dtype. Comparisons give
    flags, which `&`, `|` and `~` combine and `pick` consumes.

    Args:
        b: the builder.
        scalar: of a floating dtype, or a flag.
    """

    __slots__ = ("b", "scalar")

    def __init__(self, b: ScalarBuilder, scalar: Scalar) -> None:
        self.b = b
        self.scalar = scalar

    @property
    def value(self) -> Any:
        """The operation's result."""
        return self.scalar.value

    def like(self, value: Real | float) -> Real:
        """A constant of the same dtype; a `Real` as it is."""
        return value if isinstance(value, Real) else Real(self.b, self.b.const(value, self.scalar.dtype))

    def _apply(self, name: str, *operands: Real | float) -> Real:
        scalars = [self.like(x).scalar for x in operands]
        return Real(self.b, getattr(self.b, name)(*scalars))

    def isnan(self) -> Real:
        return self._apply("isnan", self)

    def isinf(self) -> Real:
        return self._apply("isinf", self)

    def fma(self, y: Real | float, z: Real | float) -> Real:
        """self * y + z, rounded once."""
        return self._apply("fma", self, y, z)

    def copysign(self, sign: Real | float) -> Real:
        return self._apply("copysign", self, sign)

    def at_least(self, other: Real | float) -> Real:
        """The larger one; NaN wins."""
        return self._apply("maximum", self, other)

    def at_most(self, other: Real | float) -> Real:
        """The smaller one; NaN wins."""
        return self._apply("minimum", self, other)

    def sign(self) -> Real:
        return self._apply("sign", self)

    def floor(self) -> Real:
        return self._apply("floor", self)

    def rint(self) -> Real:
        return self._apply("rint", self)

    def f(self, name: str, *others: Real | float) -> Real:
        """A function of the C library."""
        scalars = [self.like(x).scalar for x in others]
        return Real(self.b, self.b.math(name, self.scalar, *scalars))

    def pick(self, yes: Any, no: Any) -> Real:
        """Of a flag: the value where it holds, else the other one. At least one of them is a `Real`."""
        of = yes if isinstance(yes, Real) else no
        return Real(self.b, self.b.select(self.scalar, of.like(yes).scalar, of.like(no).scalar))

    @property
    def info(self) -> Any:
        """NumPy's `finfo` of the dtype."""
        return np.finfo(self.scalar.dtype)


Pair = tuple[Real, Real]


def two_sum(x: Real, y: Real | float) -> Pair:
    """x + y and its rounding error (D. Knuth, The Art of Computer Programming, volume 2, 4.2.2)."""
    total = x + y
    rest = total - x
    return total, (x - (total - rest)) + (y - rest)


def two_product(x: Real, y: Real | float) -> Pair:
    """x * y and its rounding error."""
    high = x * y
    return high, x.fma(y, -high)


# Of the real and imaginary parts of one operand or several.
Form = Callable[..., Pair]
_LN2, _LN10 = float(np.log(2.0)), float(np.log(10.0))
_LN2_LOW = 2.3190468138462996e-17
# Exponential functions of more than the first number are those of the second number less, times a constant:
# they overflow where their product with a sine or cosine does not.
_OVERFLOW = {"float64": (709.0, 400.0), "float32": (88.0, 60.0)}


def _size(x: Real, y: Real) -> Real:
    """The root of the sum of squares. Where these would overflow or vanish, the parts are multiplied by a
    power of two, which is exact.
    """
    a, b, one = abs(x), abs(y), x.like(1.0)
    high, down, low, up = (500, 600, -450, 600) if x.scalar.dtype.itemsize == 8 else (60, 75, -50, 100)
    big = a.at_least(b)
    is_large, is_little = big > 2.0**high, big < 2.0**low
    scale = is_large.pick(2.0**-down, is_little.pick(2.0**up, one))
    a, b = a * scale, b * scale
    length = (a * a + b * b).f("sqrt")
    back = is_large.pick(2.0**down, is_little.pick(2.0**-up, one))
    return (a.isinf() | b.isinf()).pick(np.inf, length * back)


def _product(a: Real, b: Real, c: Real, d: Real) -> Pair:
    return a * c - b * d, a * d + b * c


def _quotient(a: Real, b: Real, c: Real, d: Real) -> Pair:
    """Smith's method (R. L. Smith, Algorithm 116, CACM 1962), which NumPy uses too."""
    by_real = abs(c) >= abs(d)
    big, small = by_real.pick(c, d), by_real.pick(d, c)
    ratio = small / big
    scale = 1.0 / (big + small * ratio)
    real = by_real.pick(a + b * ratio, a * ratio + b) * scale
    imag = by_real.pick(b - a * ratio, b * ratio - a) * scale
    # Both parts zero: divide each part by |y| = 0, as NumPy does, for signed infinities and NaN.
    by_zero, length = c.equals(0.0) & d.equals(0.0), abs(c)
    return by_zero.pick(a / length, real), by_zero.pick(b / length, imag)


def _reciprocal(a: Real, b: Real) -> Pair:
    """1 / x by Smith's method, with NumPy's infinities and signs of zeros."""
    by_real = abs(a) >= abs(b)
    big, small = by_real.pick(a, b), by_real.pick(b, a)
    ratio = small / big
    below = big + small * ratio
    first, second = 1.0 / below, ratio / below
    return by_real.pick(first, second), -by_real.pick(second, first)


def _sign(a: Real, b: Real) -> Pair:
    """x / |x|, 0 for 0, and a unit for one infinite part (NumPy 2)."""
    # A quarter of large numbers has a length that does not overflow.
    large = abs(a).at_least(abs(b)) > float(a.info.max) / 4
    quarter, lone = large.pick(0.25, a.like(1.0)), a.isinf() ^ b.isinf()
    p, q = a * quarter, b * quarter
    length = _size(p, q)
    nothing = length.equals(0.0)
    safe = nothing.pick(1.0, length)

    def side(z: Real) -> Real:
        unit = z.isinf().pick(z.like(1.0).copysign(z), 0.0)
        return lone.pick(unit, nothing.pick(0.0, z / safe))

    return side(p), side(q)


def _ordered(name: str) -> Callable[..., Real]:
    """Lexicographic comparison, real part first; false where a part that it looks at is NaN."""

    def ordered(a: Real, b: Real, c: Real, d: Real) -> Real:
        known = ~(b.isnan() | d.isnan())
        return (a._apply(name[0] + "t", a, c) & known) | (a.equals(c) & b._apply(name, b, d))

    return ordered


def _chosen(flag: Real, yes: Pair, no: Pair) -> Pair:
    return flag.pick(yes[0], no[0]), flag.pick(yes[1], no[1])


def _not_finite(x: Real) -> Real:
    return ~(abs(x) < np.inf)


def _shifted(x: Real) -> tuple[Real, Real]:
    """x less a shift where its exponential overflows, and the factor that makes up for it."""
    limit, shift = _OVERFLOW[x.scalar.dtype.name]
    large = abs(x) > limit
    return large.pick(x - x.like(shift).copysign(x), x), large.pick(float(np.exp(shift)), x.like(1.0))


def _exp(x: Real, y: Real) -> Pair:
    positive = x > 0
    moved, factor = _shifted(x)
    size = positive.pick(moved, x).f("exp")
    factor = positive.pick(factor, 1.0)
    real, imag = (size * y.f("cos")) * factor, (size * y.f("sin")) * factor
    return _exponential_limits(x, y, real, imag)


def _exponential_limits(x: Real, y: Real, real: Real, imag: Real) -> Pair:
    """The parts of an exponential, also where the angle y is 0 or has no cosine."""
    unknown = _not_finite(y)
    vanishes = unknown & x.equals(-np.inf)
    real = (unknown & x.equals(np.inf)).pick(x, vanishes.pick(0.0, real))
    return real, (vanishes | y.equals(0.0)).pick(y.like(0.0).copysign(y), imag)


def _in_double(form: Form) -> Form:
    """The form computed in double precision, so that the result is only rounded."""

    def wide(*given: Real) -> Pair:
        narrow = given[0].scalar.dtype
        if narrow == np.float64:
            return form(*given)
        parts = form(*(Real(z.b, z.b.cast(z.scalar, np.dtype("float64"))) for z in given))
        real, imag = (Real(z.b, z.b.cast(z.scalar, narrow)) for z in parts)
        return real, imag

    return wide


@_in_double
def _exp2(x: Real, y: Real) -> Pair:
    """The angle is y log(2) with its rounding error, up to 1e10."""
    angle, rest = two_product(y, y.like(_LN2))
    rest = y.fma(_LN2_LOW, rest)
    rest = (abs(rest) < 1.0).pick(rest, 0.0)
    cosine, sine = angle.f("cos"), angle.f("sin")
    turn = 1.0 - 0.5 * (rest * rest)
    large = x > float(x.info.maxexp - 1)
    size = large.pick(x - 64.0, x).f("exp2")
    factor = large.pick(2.0**64, x.like(1.0))
    real = (size * (cosine * turn - rest * sine)) * factor
    imag = (size * (sine * turn + rest * cosine)) * factor
    return _exponential_limits(x, y, real, imag)


def _expm1(x: Real, y: Real) -> Pair:
    """expm1(x) cos(y) - 2 sin(y / 2)^2 for cosines near 1, and the imaginary part of the exponential."""
    real, imag = _exp(x, y)
    half = (y * 0.5).f("sin")
    square = half * half
    near = (0.0 - 2.0 * square) + x.f("expm1") * y.f("cos")  # 0 for a real part of -0, see `ops.table.explog`
    limit = _OVERFLOW[x.scalar.dtype.name][0]
    return ((abs(x) < limit) & (square < 0.25)).pick(near, real - 1.0), imag


def _log_size(x: Real, y: Real, excess: Real | None = None) -> Real:
    """log|x + i y|; near the unit circle log1p(|x + i y|^2 - 1) / 2.

    Args:
        x: real part.
        y: imaginary part.
        excess: |x + i y|^2 - 1, for where that is near 0.
    """
    a, b = abs(x), abs(y)
    big, small = a.at_least(b), a.at_most(b)
    p, p_low = two_product(big, big)
    q, q_low = two_product(small, small)
    size = p + q
    near = (size > 0.5) & (size < 2.0)
    if excess is None:
        high, low = two_sum(p - 1.0, q)
        excess = high + (low + (p_low + q_low))
    ratio = small / big.equals(0.0).pick(1.0, big)
    tail = 0.5 * near.pick(excess, ratio * ratio).f("log1p")
    value = near.pick(tail, near.pick(1.0, big).f("log") + tail)
    return (x.isinf() | y.isinf()).pick(np.inf, value)


def _log(x: Real, y: Real) -> Pair:
    return _log_size(x, y), y.f("atan2", x)


def _log1p(x: Real, y: Real) -> Pair:
    moved = x + 1.0
    return _log_size(moved, y, x.fma(x + 2.0, y * y)), y.f("atan2", moved)


def _sqrt(x: Real, y: Real) -> Pair:
    """t = sqrt((|x| + |z|) / 2) and |y| / (2 t), of z scaled by a power of 4."""
    a, b = abs(x), abs(y)
    big = a.at_least(b)
    info = x.info
    huge, tiny = big > float(info.max) / 4, big < float(info.tiny) * 2.0 ** (info.nmant + 3)
    bits = info.nmant + 2 + info.nmant % 2
    scale = huge.pick(1 / 16, tiny.pick(2.0 ** (2 * bits), x.like(1.0)))
    back = huge.pick(4.0, tiny.pick(2.0**-bits, x.like(1.0)))
    a, b, big = a * scale, b * scale, big * scale
    none = big.equals(0.0)
    ratio = a.at_most(b) / none.pick(1.0, big)
    length = big * (ratio.fma(ratio, 1.0)).f("sqrt")
    root = (0.5 * (a + length)).f("sqrt")
    other = none.pick(0.0, b / none.pick(1.0, root + root))
    root, other = root * back, other * back
    negative = x < 0
    real, imag = negative.pick(other, root), negative.pick(root, other).copysign(y)
    # An infinite part wins over whatever the other one is.
    infinite = x.isinf()
    flat = y.isnan().pick(y, 0.0)
    real = infinite.pick(negative.pick(flat, x), real)
    imag = infinite.pick(negative.pick(x, flat).copysign(y), imag)
    return y.isinf().pick(np.inf, real), y.isinf().pick(y, imag)


def _hyperbolic(x: Real) -> tuple[Real, Real, Real]:
    """sinh, cosh and a factor that both lack."""
    moved, factor = _shifted(x)
    return moved.f("sinh"), moved.f("cosh"), factor


def _sinh(x: Real, y: Real) -> Pair:
    sinh, cosh, factor = _hyperbolic(x)
    real, imag = (sinh * y.f("cos")) * factor, (cosh * y.f("sin")) * factor
    # A cosine whose sign is unknown leaves 0 and infinity as they are.
    lone = _not_finite(y) & (x.equals(0.0) | x.isinf())
    return lone.pick(x, real), y.equals(0.0).pick(y, imag)


def _cosh(x: Real, y: Real) -> Pair:
    sinh, cosh, factor = _hyperbolic(x)
    real, imag = (cosh * y.f("cos")) * factor, (sinh * y.f("sin")) * factor
    imag = y.equals(0.0).pick(y * x.like(1.0).copysign(x), imag)
    nowhere = _not_finite(y)
    return (nowhere & x.isinf()).pick(abs(x), real), (nowhere & x.equals(0.0)).pick(0.0, imag)


@_in_double
def _tanh(x: Real, y: Real) -> Pair:
    """With t = tan(y) and s = sinh(x), ((1 + t^2) s cosh(x) + i t) / (1 + (1 + t^2) s^2).

    Source: W. Kahan, "Branch cuts for complex elementary functions", 1987.
    """
    tangent, sinh = y.f("tan"), x.f("sinh")
    slope = tangent.fma(tangent, 1.0)
    square = sinh * sinh
    below = slope.fma(square, 1.0)
    real = (slope * (sinh * (square + 1.0).f("sqrt"))) / below
    imag = tangent / below
    far = abs(x) > 22.0
    nowhere = _not_finite(y)
    real = (far & ~(nowhere & ~x.isinf())).pick(x.like(1.0).copysign(x), real)
    real = (x.equals(0.0) & nowhere).pick(x, real)
    imag = x.isinf().pick(x.like(0.0).copysign(y), imag)
    return real, y.equals(0.0).pick(y, imag)


def _scaled(form: Form, factor: float) -> Form:
    """The function times a real number."""

    def scaled(x: Real, y: Real) -> Pair:
        real, imag = form(x, y)
        return real * factor, imag * factor

    return scaled


def _rotated(form: Form) -> Form:
    """f(i z) / i: sin from sinh, tan from tanh and so on."""

    def rotated(x: Real, y: Real) -> Pair:
        real, imag = form(-y, x)
        return imag, -real

    return rotated


def _kernel(name: str, x: Real, y: Real) -> Real:
    """A part of an inverse function, for operands that are not negative."""
    return Real(x.b, x.b.external(f"graphc_scalar.{name}", x.scalar, y.scalar))


def _asin(x: Real, y: Real) -> Pair:
    a, b = abs(x), abs(y)
    return _kernel("arcsin_real", a, b).copysign(x), _kernel("arcsin_imag", a, b).copysign(y)


def _acos(x: Real, y: Real) -> Pair:
    b = abs(y)
    return _kernel("arccos_real", x, b), _kernel("arcsin_imag", abs(x), b).copysign(-y)


def _acosh(x: Real, y: Real) -> Pair:
    b = abs(y)
    return _kernel("arcsin_imag", abs(x), b), _kernel("arccos_real", x, b).copysign(y)


def _atanh(x: Real, y: Real) -> Pair:
    a, b = abs(x), abs(y)
    return _kernel("arctanh_real", a, b).copysign(x), _kernel("arctanh_imag", a, b).copysign(y)


@_in_double
def _power(a: Real, b: Real, c: Real, d: Real) -> Pair:
    """exp(y log(x)); by products for whole exponents below 100, as in NumPy."""
    size, zero, one = abs(c), a.like(0.0), a.like(1.0)
    whole = d.equals(0.0) & c.equals(c.rint()) & (size < 100.0)
    bits = Real(a.b, a.b.cast(whole.pick(size, 0.0).scalar, np.dtype("int64")))
    power, base = (one, zero), (a, b)
    for bit in range(7):
        power = _chosen((bits & (1 << bit)).differs(0), _product(*power, *base) if bit else base, power)
        base = _product(*base, *base) if bit < 6 else base
    power = _chosen(c < 0.0, _quotient(one, zero, *power), power)
    general = _exp(*_product(c, d, *_log(a, b)))
    # Powers of 0 are 0 for positive real parts of the exponent, and otherwise unknown.
    unknown = (c > 0.0).pick(0.0, a.like(np.nan))
    of_zero = _chosen(c.equals(0.0) & d.equals(0.0), (one, zero), (unknown, unknown))
    return _chosen(a.equals(0.0) & b.equals(0.0), of_zero, _chosen(whole, power, general))


FUNCTIONS: dict[str, Callable[..., Pair | Real]] = {
    "abs": _size,
    "mul": _product,
    "truediv": _quotient,
    "reciprocal": _reciprocal,
    "pow": _power,
    "sign": _sign,
    **{name: _ordered(name) for name in ("lt", "le", "gt", "ge")},
    "exp": _exp,
    "exp2": _exp2,
    "expm1": _expm1,
    "log": _log,
    "log2": _scaled(_log, 1 / _LN2),
    "log10": _scaled(_log, 1 / _LN10),
    "log1p": _log1p,
    "sqrt": _sqrt,
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": _tanh,
    "sin": _rotated(_sinh),
    "cos": lambda x, y: _cosh(-y, x),
    "tan": _rotated(_tanh),
    "asin": _asin,
    "acos": _acos,
    "acosh": _acosh,
    "atanh": _atanh,
    "asinh": _rotated(_asin),
    "atan": _rotated(_atanh),
}


def apply(b: ScalarBuilder, name: str, *operands: Scalar) -> Scalar:
    """A function of complex scalars, by its name in the C library or as a method of the builder."""
    found = FUNCTIONS[name](*(Real(b, part(z)) for z in operands for part in (b.real, b.imag)))
    return found.scalar if isinstance(found, Real) else b.complex(found[0].scalar, found[1].scalar)
