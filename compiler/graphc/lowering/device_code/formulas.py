# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws for devices that are a formula of one number of the stream: NumPy's, in their order of operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from graphc.ir import build
from graphc.lowering.device_code.choices import bernoulli, binomial
from graphc_dialects._mlir import ir

# Of a number of the stream, and the parameters, the draw.
Formula: TypeAlias = "Callable[..., ir.Value]"


def affine(x: ir.Value, loc: ir.Value, scale: ir.Value) -> ir.Value:
    """loc + scale * x, rounded twice, as NumPy does."""
    return loc + scale * x


def scaled(x: ir.Value, scale: ir.Value) -> ir.Value:
    """scale * x."""
    return scale * x


def half(x: ir.Value, loc: ir.Value, scale: ir.Value) -> ir.Value:
    """loc + scale * |x|."""
    return affine(build.math("absf", x), loc, scale)


def inverse(x: ir.Value) -> ir.Value:
    """1 / x."""
    return 1.0 / x


def _minus(x: ir.Value, loc: ir.Value, scale: ir.Value) -> ir.Value:
    return loc - scale * x


def _uniform(x: ir.Value, *given: ir.Value) -> ir.Value:
    """Of what is given the first one is the lower bound, and the other one the extent."""
    return affine(x, *given) if given else x


def _share(x: ir.Value, shape: ir.Value) -> ir.Value:
    return build.math("expm1", x / shape)


def _pareto(x: ir.Value, shape: ir.Value, scale: ir.Value) -> ir.Value:
    return scale * (1.0 + _share(x, shape))


def _truncated(x: ir.Value, bound: ir.Value, loc: ir.Value, scale: ir.Value) -> ir.Value:
    return affine(-build.math("log1p", x * build.math("expm1", -bound)), loc, scale)


def _laplace(u: ir.Value, loc: ir.Value, scale: ir.Value) -> ir.Value:
    left = u < 0.5
    share = build.math("log", build.select(left, u + u, 2.0 - u - u))
    return build.select(left, affine(share, loc, scale), _minus(share, loc, scale))


def _gumbel(u: ir.Value, loc: ir.Value, scale: ir.Value) -> ir.Value:
    return _minus(build.math("log", -build.math("log", 1.0 - u)), loc, scale)


def _logistic(u: ir.Value, loc: ir.Value, scale: ir.Value) -> ir.Value:
    return affine(build.math("log", u / (1.0 - u)), loc, scale)


def _triangular(u: ir.Value, left: ir.Value, mode: ir.Value, right: ir.Value) -> ir.Value:
    base, below = right - left, mode - left
    above = right - mode
    is_low = u <= below / base
    share = build.select(is_low, u, 1.0 - u)
    root = build.math("sqrt", share * (build.select(is_low, below, above) * base))
    return build.select(is_low, left + root, right - root)


def _rayleigh(x: ir.Value, scale: ir.Value) -> ir.Value:
    return scaled(build.math("sqrt", 2.0 * x), scale)


def _power(x: ir.Value, a: ir.Value) -> ir.Value:
    return build.math("powf", -build.math("expm1", -x), inverse(a))


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
    "lognormal": lambda x, loc, scale: build.math("exp", affine(x, loc, scale)),
}
OF_EXPONENTIAL: dict[str, Formula] = {
    "standard_exponential": lambda x: x,
    "exponential": scaled,
    "lomax": _share,
    "pareto": _pareto,
    "rayleigh": _rayleigh,
    "power": _power,
}
