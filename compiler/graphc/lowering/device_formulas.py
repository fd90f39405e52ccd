# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws for devices that are a formula of one number of the stream: NumPy's, in their order of operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from graphc.ir import build
from graphc.lowering.device_choices import bernoulli, binomial
from graphc.lowering.real_numbers import is_less, real, real_constant
from graphc_dialects._mlir import ir

# Of a number of the stream, and the parameters, the draw.
Formula: TypeAlias = "Callable[..., ir.Value]"


def affine(x: ir.Value, loc: ir.Value, scale: ir.Value) -> ir.Value:
    """loc + scale * x, rounded twice, as NumPy does."""
    return real("arith.addf", loc, real("arith.mulf", scale, x))


def scaled(x: ir.Value, scale: ir.Value) -> ir.Value:
    """scale * x."""
    return real("arith.mulf", scale, x)


def half(x: ir.Value, loc: ir.Value, scale: ir.Value) -> ir.Value:
    """loc + scale * |x|."""
    return affine(real("math.absf", x), loc, scale)


def inverse(x: ir.Value) -> ir.Value:
    """1 / x."""
    return real("arith.divf", real_constant(1.0), x)


def _minus(x: ir.Value, loc: ir.Value, scale: ir.Value) -> ir.Value:
    return real("arith.subf", loc, real("arith.mulf", scale, x))


def _uniform(x: ir.Value, *given: ir.Value) -> ir.Value:
    """Of what is given the first one is the lower bound, and the other one the extent."""
    return affine(x, *given) if given else x


def _share(x: ir.Value, shape: ir.Value) -> ir.Value:
    return real("math.expm1", real("arith.divf", x, shape))


def _pareto(x: ir.Value, shape: ir.Value, scale: ir.Value) -> ir.Value:
    return real("arith.mulf", scale, real("arith.addf", real_constant(1.0), _share(x, shape)))


def _truncated(x: ir.Value, bound: ir.Value, loc: ir.Value, scale: ir.Value) -> ir.Value:
    share = real("math.expm1", real("arith.negf", bound))
    log = real("math.log1p", real("arith.mulf", x, share))
    return affine(real("arith.negf", log), loc, scale)


def _laplace(u: ir.Value, loc: ir.Value, scale: ir.Value) -> ir.Value:
    left = is_less(u, real_constant(0.5))
    rest = real("arith.subf", real("arith.subf", real_constant(2.0), u), u)
    share = real("math.log", build.select(left, real("arith.addf", u, u), rest))
    return build.select(left, affine(share, loc, scale), _minus(share, loc, scale))


def _gumbel(u: ir.Value, loc: ir.Value, scale: ir.Value) -> ir.Value:
    log = real("math.log", real("arith.subf", real_constant(1.0), u))
    return _minus(real("math.log", real("arith.negf", log)), loc, scale)


def _logistic(u: ir.Value, loc: ir.Value, scale: ir.Value) -> ir.Value:
    odds = real("arith.divf", u, real("arith.subf", real_constant(1.0), u))
    return affine(real("math.log", odds), loc, scale)


def _triangular(u: ir.Value, left: ir.Value, mode: ir.Value, right: ir.Value) -> ir.Value:
    base, below = real("arith.subf", right, left), real("arith.subf", mode, left)
    above = real("arith.subf", right, mode)
    is_low = is_less(u, real("arith.divf", below, base), or_equal=True)
    share = build.select(is_low, u, real("arith.subf", real_constant(1.0), u))
    side = real("arith.mulf", build.select(is_low, below, above), base)
    root = real("math.sqrt", real("arith.mulf", share, side))
    return build.select(is_low, real("arith.addf", left, root), real("arith.subf", right, root))


def _rayleigh(x: ir.Value, scale: ir.Value) -> ir.Value:
    return scaled(real("math.sqrt", real("arith.mulf", real_constant(2.0), x)), scale)


def _power(x: ir.Value, a: ir.Value) -> ir.Value:
    share = real("arith.negf", real("math.expm1", real("arith.negf", x)))
    return real("math.powf", share, inverse(a))


# Of one uniform number.
OF_UNIFORM: dict[str, Formula] = {
    "standard_uniform": _uniform,
    "uniform": _uniform,
    "truncexpon": _truncated,
    "triangular": _triangular,
    "bernoulli": bernoulli,
    "binomial": binomial,
}
# Of one uniform number, which is drawn again while it is 0.
OF_POSITIVE: dict[str, Formula] = {"laplace": _laplace, "gumbel": _gumbel, "logistic": _logistic}
OF_NORMAL: dict[str, Formula] = {
    "standard_normal": lambda x: x,
    "normal": affine,
    "halfnormal": half,
    "lognormal": lambda x, loc, scale: real("math.exp", affine(x, loc, scale)),
}
OF_EXPONENTIAL: dict[str, Formula] = {
    "standard_exponential": lambda x: x,
    "exponential": scaled,
    "lomax": _share,
    "pareto": _pareto,
    "rayleigh": _rayleigh,
    "power": _power,
}
