# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise functions of ``graphc.tensor``. Operands are array-like; NumPy's rules for dtypes hold (NEP
50).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.tensor.type import parse_dtype
from graphc.ops import rows  # noqa: F401  (fills the table)
from graphc.ops.elementwise import OPS, cast_to, is_discrete
from graphc.public import pt

if TYPE_CHECKING:
    from graphc.graph.tensor.like import DTypeLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable

# PyTensor's and NumPy's names of table rows.
ALIASES = {
    "subtract": "sub",
    "multiply": "mul",
    "divide": "true_div",
    "true_divide": "true_div",
    "int_div": "floor_div",
    "floor_divide": "floor_div",
    "remainder": "mod",
    "power": "pow",
    "negative": "neg",
    "absolute": "abs",
    "sgn": "sign",
    "square": "sqr",
    "neq": "ne",
    "not_equal": "ne",
    "equal": "eq",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "bitwise_and": "and",
    "and_": "and",
    "bitwise_or": "or",
    "or_": "or",
    "bitwise_xor": "xor",
    "bitwise_not": "invert",
    "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atan2": "arctan2",
    "atanh": "arctanh",
    "conjugate": "conj",
    "expit": "sigmoid",
    "log1pexp": "softplus",
    "psi": "digamma",
    "tri_gamma": "trigamma",
    "lgamma": "gammaln",
    "jn": "jv",
    "yn": "yv",
    "kn": "kv",
    "tensor_copy": "identity",
    "fill": "second",
    "degrees": "rad2deg",
    "radians": "deg2rad",
    "rint": "round",
}
# Rows whose name is a keyword of Python or whose function takes other arguments.
_HIDDEN = {
    *("and", "or", "identity", "round", "round_half_away", "frexp_mantissa", "frexp_exponent"),
    *("lambertw0", "lambertw1"),
}
_FUNCTIONS = {name: op for name, op in OPS.items() if name not in _HIDDEN}
_FUNCTIONS.update((alias, OPS[name]) for alias, name in ALIASES.items())
globals().update(_FUNCTIONS)


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
    names = {None: "round", "half_to_even": "round", "half_away_from_zero": "round_half_away"}
    if mode not in names:
        raise ValueError(f"mode must be half_to_even or half_away_from_zero, got {mode!r}")
    if not decimals:
        return OPS[names[mode]](x)
    x = as_tensor_variable(x)
    if x.type.numpy_dtype.kind in "biu":
        return x if decimals > 0 else _round_integer(x, 10**-decimals, mode)
    power = np.asarray(10.0 ** np.abs(decimals), x.type.numpy_dtype.type(0).real.dtype)
    scaled, back = (OPS["mul"], OPS["true_div"]) if decimals > 0 else (OPS["true_div"], OPS["mul"])
    return back(OPS[names[mode]](scaled(x, power)), power)


def _round_integer(x: TensorVariable, unit: int, mode: str | None) -> TensorVariable:
    """The nearest multiple of a unit, in integers: floats do not hold all of them."""
    if unit > np.iinfo(x.type.numpy_dtype).max:
        return OPS["second"](x, 0)
    below = OPS["floor_div"](x, unit)
    rest = x - below * unit
    up = OPS["gt"](rest, unit - rest)
    tie = OPS["eq"](rest, unit - rest)
    on_tie = OPS["ge"](x, 0) if mode == "half_away_from_zero" else OPS["ne"](OPS["mod"](below, 2), 0)
    return (below + OPS["or"](up, OPS["and"](tie, on_tie))) * unit


def where(condition: TensorLike, x: TensorLike | None = None, y: TensorLike | None = None) -> TensorVariable:
    """``x`` where the condition holds, ``y`` elsewhere; the same as ``switch``. Without both, the
    positions of nonzero elements, as `nonzero` returns them.

    Examples:
        >>> pt.where([True, False], [1, 2], [10, 20]).eval()
        array([ 1, 20])
    """
    if x is None and y is None:
        return pt.nonzero(condition)
    if x is None or y is None:
        raise ValueError("where takes a condition and two values, or a condition alone")
    return OPS["switch"](condition, x, y)


def frexp(x: TensorLike) -> tuple[TensorVariable, TensorVariable]:
    """Mantissa, of a magnitude in [0.5, 1), and int32 exponent of 2, as ``numpy.frexp``.

    Examples:
        >>> [v.eval().tolist() for v in pt.frexp([8.0])]
        [[0.5], [4]]
    """
    return OPS["frexp_mantissa"](x), OPS["frexp_exponent"](x)


def divmod(x: TensorLike, y: TensorLike) -> tuple[TensorVariable, TensorVariable]:
    """Floor division and remainder.

    Examples:
        >>> [v.eval().tolist() for v in pt.divmod([7, -7], 2)]
        [[3, -4], [1, 1]]
    """
    return OPS["floor_div"](x, y), OPS["mod"](x, y)


def complex_from_polar(magnitude: TensorLike, angle: TensorLike) -> TensorVariable:
    """The complex number of a magnitude and an angle in radians.

    Examples:
        >>> pt.complex_from_polar(2.0, 0.0).eval()
        array(2.+0.j)
    """
    return OPS["complex"](OPS["mul"](magnitude, OPS["cos"](angle)), OPS["mul"](magnitude, OPS["sin"](angle)))


def isclose(
    x: TensorLike, y: TensorLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> TensorVariable:
    """Whether elements agree within tolerances, as ``numpy.isclose``; integers and booleans as float64.

    Examples:
        >>> pt.isclose([1.0, 2.0], [1.0, 2.1]).eval()
        array([ True, False])
    """
    # Differences of integers overflow, and those of booleans are not defined.
    x, y = (cast_to(v, "float64") if is_discrete(v) else v for v in map(as_tensor_variable, (x, y)))
    magnitude = OPS["abs"](y)
    close = OPS["le"](OPS["abs"](x - y), atol + rtol * magnitude)
    close = OPS["and"](close, OPS["isfinite"](y))
    close = OPS["or"](close, OPS["eq"](x, y))
    if equal_nan:
        close = OPS["or"](close, OPS["and"](OPS["isnan"](x), OPS["isnan"](y)))
    return close


pi, e, inf, nan, newaxis = np.pi, np.e, np.inf, np.nan, None

_OWN = ("cast", "round", "where", "divmod", "frexp", "complex_from_polar", "isclose")
__all__ = [*_FUNCTIONS, *_OWN, "pi", "e", "inf", "nan", "newaxis"]
