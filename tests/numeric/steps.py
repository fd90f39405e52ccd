# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise steps and reductions of random graphs, and the table with all steps."""

from __future__ import annotations

from typing import Any

import steps_arrays
from step_table import STEPS, Result, fits_elementwise, is_float, is_integer, is_number, kind, step, with_rank

import graphc.tensor as pt

__all__ = ["STEPS", "steps_arrays"]

# Elementwise --------------------------------------------------------------------------------------

# Functions of reals that are defined and moderate everywhere.
SMOOTH = {
    "exp": lambda x: pt.exp(pt.clip(x, -3, 3)),
    "expm1": lambda x: pt.expm1(pt.minimum(x, 2)),
    "log": lambda x: pt.log(abs(x) + 0.5),
    "log1p": lambda x: pt.log1p(x * x),
    "sqrt": lambda x: pt.sqrt(abs(x) + 0.1),
    "sin": pt.sin,
    "cos": pt.cos,
    "arctan": pt.arctan,
    "tanh": pt.tanh,
    "arcsinh": pt.arcsinh,
    "sigmoid": pt.sigmoid,
    "softplus": pt.softplus,
    "abs": abs,
    "neg": lambda x: -x,
    "square": lambda x: x**2,
    "power": lambda x: (abs(x) + 0.5) ** 1.5,
    "reciprocal": lambda x: 1 / (abs(x) + 0.5),
    "affine": lambda x: x * 2 - 1,
}


@step
def unary(b: Any) -> Result:
    x = b.operand(is_float)
    if x is None:
        return None
    name = b.choices.pick(list(SMOOTH))
    return SMOOTH[name](x), name in ("abs", "neg") and x in b.exact


@step
def binary(b: Any) -> Result:
    x = b.operand(is_number)
    y = x if x is None else b.operand(lambda y: is_number(y) and fits_elementwise(b, x, y))
    if y is None:
        return None
    f = b.choices.pick(
        [
            pt.add,
            pt.mul,
            pt.sub,
            lambda x, y: x / (abs(y) + 1) if kind(y) != "c" else x * y,
            lambda x, y: pt.maximum(x, y) if "c" not in (kind(x), kind(y)) else x + y,
            lambda x, y: pt.minimum(x, y) if "c" not in (kind(x), kind(y)) else x - y,
        ]
    )
    integers = is_integer(x) and is_integer(y)
    result = f(x, y)
    return result, integers and is_integer(result) and x in b.exact and y in b.exact


@step
def compare(b: Any) -> Result:
    x = b.operand(lambda v: v in b.exact and kind(v) != "c")
    y = x if x is None else b.operand(lambda y: y in b.exact and kind(y) != "c" and fits_elementwise(b, x, y))
    if y is None:
        return None
    return b.choices.pick([pt.lt, pt.le, pt.gt, pt.ge, pt.eq, pt.neq])(x, y), True


@step
def select(b: Any) -> Result:
    condition = b.operand(lambda v: kind(v) == "b")
    if condition is None:
        return None
    x = b.operand(lambda v: is_number(v) and fits_elementwise(b, condition, v))
    if x is None:
        return None
    return pt.where(condition, x, b.choices.pick([0, 1])), x in b.exact


@step
def logical(b: Any) -> Result:
    x = b.operand(lambda v: kind(v) == "b")
    y = x if x is None else b.operand(lambda y: kind(y) == "b" and fits_elementwise(b, x, y))
    if y is None:
        return None
    return b.choices.pick([lambda x, y: x & y, lambda x, y: x | y, lambda x, y: x ^ y, lambda x, y: ~x])(
        x, y
    ), True


@step
def rounding(b: Any) -> Result:
    x = b.operand(lambda v: v in b.exact and is_float(v))
    return None if x is None else (b.choices.pick([pt.floor, pt.ceil, pt.sign, pt.trunc])(x), True)


@step
def integers(b: Any) -> Result:
    x = b.operand(lambda v: is_integer(v) and v in b.exact)
    if x is None:
        return None
    return b.choices.pick(
        [lambda x: x // 3, lambda x: x % 3, lambda x: x * x, lambda x: -x, lambda x: x & 5]
    )(x), True


@step
def cast(b: Any) -> Result:
    x = b.operand(lambda v: kind(v) != "c")
    if x is None:
        return None
    exact = x in b.exact
    # A negative number has no value in unsigned types, and an inexact one may round to either side.
    targets = ["float64", "float32"]
    if exact:
        targets += ["int64", "int32", "bool"]
    target = b.choices.pick(targets)
    return x.astype(target), exact


@step
def complex_parts(b: Any) -> Result:
    z = b.operand(lambda v: kind(v) == "c")
    if z is None:
        x = b.operand(lambda v: v.type.dtype == "float64")
        return None if x is None else (x * 1j + 1, False)
    return b.choices.pick([pt.real, pt.imag, abs, pt.conj, lambda z: z * z, lambda z: z + 1j])(z), False


# Reductions ---------------------------------------------------------------------------------------


def _axes(b: Any, x: Any) -> Any:
    if b.choices.chance(3):
        return None
    axes = [axis for axis in range(x.type.ndim) if b.choices.chance(2)]
    return tuple(axes) or b.choices.index(x.type.ndim)


@step
def reduction(b: Any) -> Result:
    x = b.operand(lambda v: with_rank(v) and kind(v) in "fiu")
    if x is None:
        return None
    axis, keepdims = _axes(b, x), b.choices.chance(2)
    names = ["sum", "mean", "max", "min", "prod", "var"]
    if 0 in b.shape(x):
        names = ["sum", "prod"]
    name = b.choices.pick(names)
    exact = x in b.exact and (name in ("max", "min") or (is_integer(x) and name in ("sum", "prod")))
    return getattr(pt, name)(x, axis=axis, keepdims=keepdims), exact


@step
def logsumexp(b: Any) -> Result:
    x = b.operand(lambda v: with_rank(v) and is_float(v) and 0 not in b.shape(v))
    return None if x is None else (pt.logsumexp(x, axis=b.choices.index(x.type.ndim)), False)


@step
def softmax(b: Any) -> Result:
    x = b.operand(lambda v: with_rank(v) and is_float(v) and 0 not in b.shape(v))
    return None if x is None else (pt.softmax(x, axis=b.choices.index(x.type.ndim)), False)


@step
def any_all(b: Any) -> Result:
    x = b.operand(lambda v: with_rank(v) and kind(v) == "b")
    return None if x is None else (b.choices.pick([pt.any, pt.all])(x, axis=_axes(b, x)), True)


@step
def argument(b: Any) -> Result:
    x = b.operand(lambda v: with_rank(v) and v in b.exact and kind(v) in "fiu" and 0 not in b.shape(v))
    if x is None:
        return None
    return b.choices.pick([pt.argmax, pt.argmin])(x, axis=b.choices.index(x.type.ndim)), True
