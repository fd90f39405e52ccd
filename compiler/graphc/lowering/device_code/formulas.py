# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws for devices of one number of the stream: NumPy's, in their order of operations.

Formulas of a uniform, normal or exponential number; positions, bits and small counts of a uniform one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from graphc.ir import build
from graphc.ir.value import converted
from graphc.lowering import calls
from graphc.lowering.carried import carry, carry_while
from graphc.lowering.device_code.philox import word_type
from graphc_dialects._mlir import ir

# A probability, by its position.
Row: TypeAlias = "Callable[..., ir.Value]"
# Of so many trials NumPy takes one uniform number, whatever the probability is.
MOST_TRIALS = 60


def categorical(u: ir.Value, row: Row, count: ir.Value) -> ir.Value:
    """The first position at which the running sum of probabilities is not below a uniform number."""
    return _first(row, count, lambda total: total < u)


def choice(u: ir.Value, row: Row, count: ir.Value) -> ir.Value:
    """The first position at which the running sum, divided by its last number, is above a uniform number."""

    def add(position: ir.Value, total: list[ir.Value]) -> list[ir.Value]:
        return [total[0] + row(position)]

    (whole,) = carry(count, [build.const_f64(0.0)], add)
    return _first(row, count, lambda total: total / whole <= u)


def _first(row: Row, count: ir.Value, goes_on: Callable[[ir.Value], ir.Value]) -> ir.Value:
    """The first position at which a running sum is as it should be; the last one if none is."""
    last = count - 1

    def condition(values: list[ir.Value]) -> ir.Value:
        return (values[0] < last) & goes_on(values[1])

    def step(values: list[ir.Value]) -> list[ir.Value]:
        position = values[0] + 1
        return [position, values[1] + row(position)]

    none = build.const_index(0)
    return calls.number(carry_while([none, 0.0 + row(none)], condition, step)[0])


def bernoulli(u: ir.Value, p: ir.Value) -> ir.Value:
    """1 with a probability: the inversion that NumPy makes of a binomial draw of 1."""
    one, bits = build.const_f64(1.0), word_type()
    turned = p > 0.5
    rare = build.select(turned, one - p, p)
    found = converted(build.math("exp", build.math("log", one - rare)) < u, bits)
    return build.select(turned, 1 - found, found)


def binomial(u: ir.Value, trials: ir.Value, p: ir.Value) -> ir.Value:
    """Number of successes in a few trials: NumPy's inversion, from none on.

    NumPy draws again where a number is so large that more would succeed than is likely: of at most
    `MOST_TRIALS`, less than once in 10**13 draws. Here it is the largest likely count then.
    """
    turned = p > 0.5
    n = build.as_f64(trials)
    rare = build.select(turned, 1.0 - p, p)
    often = 1.0 - rare
    mean = n * rare
    bound = build.math("floor", mean + 10.0 * build.math("sqrt", mean * often + 1.0))
    bound = build.select(n < bound, n, bound)

    def goes_on(values: list[ir.Value]) -> ir.Value:
        count, rest, share = values
        more, fine = share < rest, count < bound
        return more & fine

    def step(values: list[ir.Value]) -> list[ir.Value]:
        count, rest, share = values
        count = count + 1.0
        following = (n - count + 1.0) * rare * share / (count * often)
        return [count, rest - share, following]

    none = build.math("exp", n * build.math("log1p", -rare))
    found = carry_while([build.const_f64(0.0), u, none], goes_on, step)[0]
    count = converted(found, word_type())
    return build.select(turned, trials - count, count)


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
