# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builders of elementwise operations: typed functions of array-like operands, which ``graphc.tensor`` has as
they are. NumPy's rules for dtypes hold (NEP 50).

An operation is declared here, with the names of its operands; what there is to know of it, derivatives too,
says its row (``ops/table/*.py``). Rows are made of these builders, and nothing here of rows.
"""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING

import numpy as np

from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.tensor.type import parse_dtype
from graphc.graph.undefined import is_discrete
from graphc.hooks import publish
from graphc.ops.elementwise import cast_to, declare

if TYPE_CHECKING:
    from graphc.graph.tensor import DTypeLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable


# Operands, in their order.
def _unary(x: TensorLike) -> TensorVariable: ...
def _binary(x: TensorLike, y: TensorLike) -> TensorVariable: ...
def _several(x: TensorLike, y: TensorLike, *more: TensorLike) -> TensorVariable: ...
def _clip(x: TensorLike, min: TensorLike | None = None, max: TensorLike | None = None) -> TensorVariable: ...
def _switch(cond: TensorLike, ift: TensorLike, iff: TensorLike) -> TensorVariable: ...
def _parts(real: TensorLike, imag: TensorLike) -> TensorVariable: ...
def _angle(y: TensorLike, x: TensorLike) -> TensorVariable: ...
def _scaled(x: TensorLike, n: TensorLike) -> TensorVariable: ...
def _order(v: TensorLike, x: TensorLike) -> TensorVariable: ...
def _degree(n: TensorLike, x: TensorLike) -> TensorVariable: ...
def _ab(a: TensorLike, b: TensorLike) -> TensorVariable: ...
def _ax(a: TensorLike, x: TensorLike) -> TensorVariable: ...
def _abx(a: TensorLike, b: TensorLike, x: TensorLike) -> TensorVariable: ...
def _dfp(df: TensorLike, p: TensorLike) -> TensorVariable: ...
def _um(u: TensorLike, m: TensorLike) -> TensorVariable: ...
def _phim(phi: TensorLike, m: TensorLike) -> TensorVariable: ...
def _nmtheta(n: TensorLike, m: TensorLike, theta: TensorLike) -> TensorVariable: ...
def _abcz(a: TensorLike, b: TensorLike, c: TensorLike, z: TensorLike) -> TensorVariable: ...


# Arithmetic, extremes and selection.
add = declare("add", _several)
sub = declare("sub", _binary)
mul = declare("mul", _several)
true_div = declare("true_div", _binary)
floor_div = declare("floor_div", _binary)
mod = declare("mod", _binary)
pow = declare("pow", _binary)
neg = declare("neg", _unary)
abs = declare("abs", _unary)
sign = declare("sign", _unary)
maximum = declare("maximum", _several)
minimum = declare("minimum", _several)
sqr = declare("sqr", _unary)
reciprocal = declare("reciprocal", _unary)
copysign = declare("copysign", _binary)
angle = declare("angle", _unary)
clip = declare("clip", _clip)
switch = declare("switch", _switch)
tensor_copy = declare("identity", _unary)
second = declare("second", _binary)

# Comparisons, logic and bits.
eq = declare("eq", _binary)
ne = declare("ne", _binary)
lt = declare("lt", _binary)
le = declare("le", _binary)
gt = declare("gt", _binary)
ge = declare("ge", _binary)
logical_and = declare("logical_and", _binary)
logical_or = declare("logical_or", _binary)
logical_xor = declare("logical_xor", _binary)
logical_not = declare("logical_not", _unary)
bitwise_and = declare("and", _binary)
bitwise_or = declare("or", _binary)
bitwise_xor = declare("xor", _binary)
invert = declare("invert", _unary)
left_shift = declare("left_shift", _binary)
right_shift = declare("right_shift", _binary)
isnan = declare("isnan", _unary)
isinf = declare("isinf", _unary)
isfinite = declare("isfinite", _unary)
signbit = declare("signbit", _unary)

# Parts of numbers.
ldexp = declare("ldexp", _scaled)
_frexp_mantissa = declare("frexp_mantissa", _unary)
_frexp_exponent = declare("frexp_exponent", _unary)
_rough_log = declare("rough_log", _unary)
nextafter = declare("nextafter", _binary)
spacing = declare("spacing", _unary)
gcd = declare("gcd", _binary)
lcm = declare("lcm", _binary)
floor = declare("floor", _unary)
ceil = declare("ceil", _unary)
trunc = declare("trunc", _unary)
round_half_to_even = declare("round", _unary)
round_half_away_from_zero = declare("round_half_away", _unary)
real = declare("real", _unary)
imag = declare("imag", _unary)
conj = declare("conj", _unary)
complex = declare("complex", _parts)

# Exponentials and logarithms.
exp = declare("exp", _unary)
exp2 = declare("exp2", _unary)
expm1 = declare("expm1", _unary)
log = declare("log", _unary)
log2 = declare("log2", _unary)
log10 = declare("log10", _unary)
log1p = declare("log1p", _unary)
sqrt = declare("sqrt", _unary)
cbrt = declare("cbrt", _unary)
sigmoid = declare("sigmoid", _unary)
softplus = declare("softplus", _unary)
log1mexp = declare("log1mexp", _unary)
logaddexp = declare("logaddexp", _binary)

# Trigonometric and hyperbolic functions.
sin = declare("sin", _unary)
cos = declare("cos", _unary)
tan = declare("tan", _unary)
arcsin = declare("arcsin", _unary)
arccos = declare("arccos", _unary)
arctan = declare("arctan", _unary)
sinh = declare("sinh", _unary)
cosh = declare("cosh", _unary)
tanh = declare("tanh", _unary)
arcsinh = declare("arcsinh", _unary)
arccosh = declare("arccosh", _unary)
arctanh = declare("arctanh", _unary)
arctan2 = declare("arctan2", _angle)
hypot = declare("hypot", _binary)
deg2rad = declare("deg2rad", _unary)
rad2deg = declare("rad2deg", _unary)

# Special functions.
erf = declare("erf", _unary)
erfc = declare("erfc", _unary)
erfcx = declare("erfcx", _unary)
erfi = declare("erfi", _unary)
erfinv = declare("erfinv", _unary)
erfcinv = declare("erfcinv", _unary)
dawsn = declare("dawsn", _unary)
ndtr = declare("ndtr", _unary)
ndtri = declare("ndtri", _unary)
log_ndtr = declare("log_ndtr", _unary)
ndtri_exp = declare("ndtri_exp", _unary)
owens_t = declare("owens_t", _binary)
j0 = declare("j0", _unary)
j1 = declare("j1", _unary)
jv = declare("jv", _order)
y0 = declare("y0", _unary)
y1 = declare("y1", _unary)
yv = declare("yv", _order)
i0 = declare("i0", _unary)
i1 = declare("i1", _unary)
iv = declare("iv", _order)
i0e = declare("i0e", _unary)
i1e = declare("i1e", _unary)
ive = declare("ive", _order)
k0 = declare("k0", _unary)
k1 = declare("k1", _unary)
kv = declare("kv", _order)
k0e = declare("k0e", _unary)
k1e = declare("k1e", _unary)
kve = declare("kve", _order)
xlogy = declare("xlogy", _binary)
xlog1py = declare("xlog1py", _binary)
entr = declare("entr", _unary)
rel_entr = declare("rel_entr", _binary)
kl_div = declare("kl_div", _binary)
logit = declare("logit", _unary)
logaddexp2 = declare("logaddexp2", _binary)
sinc = declare("sinc", _unary)
gamma = declare("gamma", _unary)
gammaln = declare("gammaln", _unary)
digamma = declare("digamma", _unary)
trigamma = declare("trigamma", _unary)
polygamma = declare("polygamma", _degree)
zeta = declare("zeta", _binary)
rgamma = declare("rgamma", _unary)
beta = declare("beta", _ab)
betaln = declare("betaln", _ab)
poch = declare("poch", _binary)
binom = declare("binom", _binary)
gammainc = declare("gammainc", _ax)
gammaincc = declare("gammaincc", _ax)
gammainc_da = declare("gammainc_da", _ax)
gammaincinv = declare("gammaincinv", _ax)
gammainccinv = declare("gammainccinv", _ax)
betainc = declare("betainc", _abx)
betaincc = declare("betaincc", _abx)
betainc_da = declare("betainc_da", _abx)
betainc_db = declare("betainc_db", _abx)
betaincinv = declare("betaincinv", _abx)
hyp2f1 = declare("hyp2f1", _abcz)
hyp2f1_da = declare("hyp2f1_da", _abcz)
hyp2f1_dc = declare("hyp2f1_dc", _abcz)
hyp1f1 = declare("hyp1f1", _abx)
exprel = declare("exprel", _unary)
expi = declare("expi", _unary)
exp1 = declare("exp1", _unary)
spence = declare("spence", _unary)
ellipk = declare("ellipk", _unary)
ellipe = declare("ellipe", _unary)
ellipkm1 = declare("ellipkm1", _unary)
ellipkinc = declare("ellipkinc", _phim)
ellipeinc = declare("ellipeinc", _phim)
stdtrit = declare("stdtrit", _dfp)


def cast(x: TensorLike, dtype: DTypeLike) -> TensorVariable:
    """The elements converted to ``dtype``, as NumPy's ``astype``.

    Raises:
        TypeError: from complex to a real dtype; take `real`, `imag` or `abs` instead.

    Examples:
        >>> pt.cast([1.7, -1.7], "int64").eval()
        array([ 1, -1])
    """
    return cast_to(as_tensor_variable(x), parse_dtype(dtype))


def round(x: TensorLike, decimals: int | str = 0, mode: str | None = None) -> TensorVariable:
    """Nearest integers, or multiples of a power of ten, in the dtype of x.

    Args:
        x: array-like.
        decimals: digits kept after the point; negative ones are before it. A ``mode`` may stand here, as in
            PyTensor. As in NumPy, what is rounded is x times the power of ten.
        mode: ``half_to_even`` (default) or ``half_away_from_zero``.

    Examples:
        >>> pt.round([0.5, 1.5, 2.5]).eval()
        array([0., 2., 2.])
    """
    if isinstance(decimals, str):
        return round(x, 0, decimals)
    decimals = index(decimals or 0)
    if mode not in (None, "half_to_even", "half_away_from_zero"):
        raise ValueError(f"mode must be half_to_even or half_away_from_zero, got {mode!r}")
    rounded = round_half_away_from_zero if mode == "half_away_from_zero" else round_half_to_even
    if not decimals:
        return rounded(x)
    x = as_tensor_variable(x)
    if x.type.kind in "biu":
        return x if decimals > 0 else _round_integer(x, 10**-decimals, mode)
    power = np.asarray(10.0 ** np.abs(decimals), x.type.numpy_dtype.type(0).real.dtype)
    scaled, back = (mul, true_div) if decimals > 0 else (true_div, mul)
    return back(rounded(scaled(x, power)), power)


def _round_integer(x: TensorVariable, unit: int, mode: str | None) -> TensorVariable:
    """The nearest multiple of a unit, in integers: floats do not hold all of them."""
    if unit > np.iinfo(x.type.numpy_dtype).max:
        return second(x, 0)
    below = floor_div(x, unit)
    rest = x - below * unit
    up = gt(rest, unit - rest)
    tie = eq(rest, unit - rest)
    on_tie = ge(x, 0) if mode == "half_away_from_zero" else ne(mod(below, 2), 0)
    return (below + bitwise_or(up, bitwise_and(tie, on_tie))) * unit


def frexp(x: TensorLike) -> tuple[TensorVariable, TensorVariable]:
    """Mantissa, of a magnitude in [0.5, 1), and int32 exponent of 2, as ``numpy.frexp``.

    Examples:
        >>> [v.eval().tolist() for v in pt.frexp([8.0])]
        [[0.5], [4]]
    """
    return _frexp_mantissa(x), _frexp_exponent(x)


def divmod(x: TensorLike, y: TensorLike) -> tuple[TensorVariable, TensorVariable]:
    """Floor division and remainder.

    Examples:
        >>> [v.eval().tolist() for v in pt.divmod([7, -7], 2)]
        [[3, -4], [1, 1]]
    """
    return floor_div(x, y), mod(x, y)


def complex_from_polar(magnitude: TensorLike, angle: TensorLike) -> TensorVariable:
    """The complex number of a magnitude and an angle in radians.

    Examples:
        >>> pt.complex_from_polar(2.0, 0.0).eval()
        array(2.+0.j)
    """
    return complex(mul(magnitude, cos(angle)), mul(magnitude, sin(angle)))


def isclose(
    x: TensorLike, y: TensorLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> TensorVariable:
    """True where elements agree within tolerances, as ``numpy.isclose``; integers and booleans as float64.

    Examples:
        >>> pt.isclose([1.0, 2.0], [1.0, 2.1]).eval()
        array([ True, False])
    """
    # Differences of integers overflow, and those of booleans are not defined.
    x, y = (cast_to(v, "float64") if is_discrete(v) else v for v in map(as_tensor_variable, (x, y)))
    magnitude = abs(y)
    close = le(abs(x - y), atol + rtol * magnitude)
    close = bitwise_and(close, isfinite(y))
    close = bitwise_or(close, eq(x, y))
    if equal_nan:
        close = bitwise_or(close, bitwise_and(isnan(x), isnan(y)))
    return close


publish(globals())
