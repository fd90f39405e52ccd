# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws for devices: of a generator that counts, each number is computed from its place alone.

A uniform number takes one word of Philox. So all threads draw at once, the same numbers as NumPy does one
after the other, in the order of its operations. Where draws begin that take several words is found out first
(`streams`).

Logarithms and powers are those of the device. Where one decides whether an attempt gives a number, and both
sides of the comparison are as near as the last digit, the draw, and all after it, differ from NumPy's: of
gamma numbers less than once in 10**14 draws, up to a shape of 10**4; of Poisson numbers of rates r from 10
on, which compare sums of terms as large as r log r, at most once in 10**15 / (r log r).

Sources: G. Marsaglia, W. Tsang, "A simple method for generating gamma variables" (2000); J. Ahrens,
U. Dieter, "Computer methods for sampling from gamma, beta, Poisson and binomial distributions" (1974);
M. Johnk, "Erzeugung von betaverteilten und gammaverteilten Zufallszahlen" (1964); W. Hormann, "The
transformed rejection method for generating Poisson random variables" (1993); A. Kemp, "Efficient generation
of logarithmically distributed pseudo-random variables" (1981); D. Lemire, "Fast random integer generation in
an interval" (2019).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from graphc.ir import build
from graphc.ir.diagnostics import fail
from graphc.ir.known_rows import known_splat
from graphc.ir.traits import RANDOM
from graphc.ir.value import converted
from graphc.lowering import calls
from graphc.lowering.carried import carry, carry_while, either
from graphc.lowering.device_code.philox import BITS, MASK, Bits, Ranks, State, here, wide_product, word_type
from graphc.lowering.device_code.streams import (
    EXPONENTIAL,
    EXPONENTIAL_FLOAT,
    FLOAT,
    NORMAL,
    NORMAL_FLOAT,
    Draws,
    Several,
    Source,
    Stream,
    Ziggurat,
    positive,
    possible,
    possible_alike,
    uniforms,
)
from graphc.lowering.partial_reductions import elementwise, position
from graphc.lowering.random import taken
from graphc.lowering.rules import ON_DEVICES, Conversion
from graphc_dialects._mlir import ir
from graphc_dialects.random import GENERATORS

# Of a number of the stream, and the parameters, the draw; or of the number, and a row of probabilities.
Formula: TypeAlias = Callable[..., ir.Value]
# A probability, by its position.
Row: TypeAlias = Callable[..., ir.Value]

# -- formulas of one number ---------------------------------------------------------------------------------


def _same(x: ir.Value, *given: ir.Value) -> ir.Value:
    return x


def _affine(x: ir.Value, loc: ir.Value, scale: ir.Value) -> ir.Value:
    """loc + scale * x, rounded twice, as NumPy does."""
    return loc + scale * x


def _scaled(x: ir.Value, scale: ir.Value) -> ir.Value:
    return scale * x


def _half(x: ir.Value, loc: ir.Value, scale: ir.Value) -> ir.Value:
    return _affine(build.math("absf", x), loc, scale)


def _uniform(x: ir.Value, *given: ir.Value) -> ir.Value:
    """Of what is given the first one is the lower bound, and the other one the extent."""
    return _affine(x, *given) if given else x


def _share(x: ir.Value, shape: ir.Value) -> ir.Value:
    return build.math("expm1", x / shape)


def _truncated(x: ir.Value, bound: ir.Value, loc: ir.Value, scale: ir.Value) -> ir.Value:
    return _affine(-build.math("log1p", x * build.math("expm1", -bound)), loc, scale)


def _laplace(u: ir.Value, loc: ir.Value, scale: ir.Value) -> ir.Value:
    left = u < 0.5
    share = build.math("log", build.select(left, u + u, 2.0 - u - u))
    return build.select(left, _affine(share, loc, scale), loc - scale * share)


def _gumbel(u: ir.Value, loc: ir.Value, scale: ir.Value) -> ir.Value:
    return loc - scale * build.math("log", -build.math("log", 1.0 - u))


def _logistic(u: ir.Value, loc: ir.Value, scale: ir.Value) -> ir.Value:
    return _affine(build.math("log", u / (1.0 - u)), loc, scale)


def _triangular(u: ir.Value, left: ir.Value, mode: ir.Value, right: ir.Value) -> ir.Value:
    base, below, above = right - left, mode - left, right - mode
    is_low = u <= below / base
    share = build.select(is_low, u, 1.0 - u)
    root = build.math("sqrt", share * (build.select(is_low, below, above) * base))
    return build.select(is_low, left + root, right - root)


def _power(x: ir.Value, a: ir.Value) -> ir.Value:
    return build.math("powf", -build.math("expm1", -x), 1.0 / a)


def _root(x: ir.Value, a: ir.Value) -> ir.Value:
    return build.select(a.equals(0.0), 0.0, build.math("powf", x, 1.0 / a))


def _powers(x: ir.Value, alpha: ir.Value, p: ir.Value, scale: ir.Value) -> ir.Value:
    return scale * build.math("powf", x, 1.0 / p)


def _whole(x: ir.Value, *_: ir.Value) -> ir.Value:
    return converted(x, word_type())


def _saturated(x: ir.Value, *_: ir.Value) -> ir.Value:
    """A whole number; the largest one for numbers that are above all of int64."""
    return build.select(x < 9.223372036854776e18, _whole(x), (1 << 63) - 1)


def _bernoulli(u: ir.Value, p: ir.Value) -> ir.Value:
    """1 with a probability: the inversion that NumPy makes of a binomial draw of 1."""
    turned = p > 0.5
    rare = build.select(turned, 1.0 - p, p)
    found = converted(build.math("exp", build.math("log", 1.0 - rare)) < u, word_type())
    return build.select(turned, 1 - found, found)


# Of so many trials NumPy takes one uniform number, whatever the probability is.
_MOST_TRIALS = 60


def _binomial(u: ir.Value, trials: ir.Value, p: ir.Value) -> ir.Value:
    """Number of successes in a few trials: NumPy's inversion, from none on.

    NumPy draws again where a number is so large that more would succeed than is likely: of at most
    `_MOST_TRIALS`, less than once in 10**13 draws. Here it is the largest likely count then.
    """
    turned = p > 0.5
    n = build.as_f64(trials)
    rare = build.select(turned, 1.0 - p, p)
    often = 1.0 - rare
    mean = n * rare
    bound = build.math("floor", mean + 10.0 * build.math("sqrt", mean * often + 1.0))
    bound = build.select(n < bound, n, bound)

    def step(values: list[ir.Value]) -> list[ir.Value]:
        count, rest, share = values
        count = count + 1.0
        return [count, rest - share, (n - count + 1.0) * rare * share / (count * often)]

    none = build.math("exp", n * build.math("log1p", -rare))
    start = [build.const_f64(0.0), u, none]
    count = _whole(carry_while(start, lambda v: (v[2] < v[1]) & (v[0] < bound), step)[0])
    return build.select(turned, trials - count, count)


def _categorical(u: ir.Value, row: Row, count: ir.Value) -> ir.Value:
    """The first position at which the running sum of probabilities is not below a uniform number."""
    return _first(row, count, lambda total: total < u)


def _choice(u: ir.Value, row: Row, count: ir.Value) -> ir.Value:
    """The first position at which the running sum, divided by its last number, is above a uniform number."""
    (whole,) = carry(count, [build.const_f64(0.0)], lambda at, total: [total[0] + row(at)])
    return _first(row, count, lambda total: total / whole <= u)


def _first(row: Row, count: ir.Value, goes_on: Callable[[ir.Value], ir.Value]) -> ir.Value:
    """The first position at which a running sum is as it should be; the last one if none is."""
    last, none = count - 1, build.const_index(0)

    def step(values: list[ir.Value]) -> list[ir.Value]:
        at = values[0] + 1
        return [at, values[1] + row(at)]

    found = carry_while([none, 0.0 + row(none)], lambda v: (v[0] < last) & goes_on(v[1]), step)
    return calls.number(found[0])


# -- gamma numbers, and what is made of them ----------------------------------------------------------------

# Of the words that a gamma number takes on average, the most: near a shape of 0.5.
_GAMMA_WORDS = 2.32
# Two parameters of beta numbers below which NumPy draws 0 or 1.
_TINY = 3e-103


def _zero() -> ir.Value:
    return build.const_f64(0.0)


def _gamma(s: Stream, shape: ir.Value) -> ir.Value:
    """A standard gamma number."""

    def others() -> ir.Value:
        return s.choose(shape < 1.0, lambda: _small(s, shape), lambda: _large(s, shape))

    def some() -> ir.Value:
        return s.choose(shape.equals(1.0), s.exponential, others)

    return s.choose(shape.equals(0.0), _zero, some)


def _small(s: Stream, shape: ir.Value) -> ir.Value:
    """Of a shape below 1."""

    def attempt() -> tuple[ir.Value, ir.Value]:
        u, v = s.uniform(), s.exponential()
        rest = 1.0 - shape
        low = u <= rest
        y = build.select(low, 0.0, -build.math("log", (1.0 - u) / shape))
        x = build.math("powf", build.select(low, u, rest + shape * y), 1.0 / shape)
        return x <= v + y, x

    return s.until(attempt)


def _large(s: Stream, shape: ir.Value) -> ir.Value:
    """Of a shape above 1."""
    b = shape - 1.0 / 3.0
    c = 1.0 / build.math("sqrt", 9.0 * b)

    def attempt() -> tuple[ir.Value, ir.Value]:
        x = s.normal()
        at, root = s.at, 1.0 + c * x
        some = root > 0.0
        v = root * root * root
        u = s.uniform()
        quick = u < 1.0 - 0.0331 * (x * x) * (x * x)

        def is_below() -> list[ir.Value]:
            return [build.math("log", u) < 0.5 * x * x + b * (1.0 - v + build.math("log", v))]

        (gives,) = either(quick, [quick.type], lambda: [quick], is_below)
        s.at = build.select(some, s.at, at)
        return some & gives, b * v

    return s.until(attempt)


def _two_gamma(s: Stream, first: ir.Value, second: ir.Value) -> tuple[ir.Value, ir.Value]:
    return s.two(lambda is_first: _gamma(s, build.select(is_first, first, second)))


def _student(s: Stream, df: ir.Value) -> ir.Value:
    x, df = s.normal(), df / 2.0
    y = _gamma(s, df)
    return build.math("sqrt", df) * x / build.math("sqrt", y)


def _f(s: Stream, above: ir.Value, below: ir.Value) -> ir.Value:
    x, y = _two_gamma(s, above / 2.0, below / 2.0)
    return 2.0 * x * below / (2.0 * y * above)


def _beta(s: Stream, a: ir.Value, b: ir.Value) -> ir.Value:
    def ratio() -> ir.Value:
        x, y = _two_gamma(s, a, b)
        return x / (x + y)

    def tiny() -> ir.Value:
        return build.select((a + b) * s.uniform() < a, 1.0, 0.0)

    def small() -> ir.Value:
        return s.choose((a < _TINY) & (b < _TINY), tiny, lambda: _johnk(s, a, b))

    return s.choose((a <= 1.0) & (b <= 1.0), small, ratio)


def _johnk(s: Stream, a: ir.Value, b: ir.Value) -> ir.Value:
    """A beta number of two parameters that are not above 1."""

    def attempt() -> tuple[ir.Value, ir.Value]:
        u, v = s.uniform(), s.uniform()
        x, y = build.math("powf", u, 1.0 / a), build.math("powf", v, 1.0 / b)

        def by_logarithms() -> list[ir.Value]:
            # One of both is too small for a number.
            delta = build.math("log", u) / a - build.math("log", v) / b
            rest = -build.math("log1p", build.math("exp", -build.math("absf", delta)))
            return [build.math("exp", build.select(delta > 0.0, rest, delta + rest))]

        fine = (x > 0.0) & (y > 0.0)
        (share,) = either(fine, [ir.F64Type.get()], lambda: [x / (x + y)], by_logarithms)
        return (x + y <= 1.0) & (u + v > 0.0), share

    return s.until(attempt)


def _cauchy(s: Stream) -> ir.Value:
    x, y = s.two(lambda _: s.normal())
    return x / y


def _weibull(s: Stream, a: ir.Value) -> ir.Value:
    """The exponential number that is raised to a power, none for an exponent of 0."""
    return s.choose(a.equals(0.0), _zero, s.exponential)


# -- counts -------------------------------------------------------------------------------------------------

# The rate from which on attempts take two words each, and how many words numbers take there at most.
_RATE, _RATE_WORDS = 10.0, 2.65
# The probability from which on NumPy adds up probabilities instead of taking a logarithm.
_SEARCH = 0.333333333333333333333333
# Coefficients of 1/x, 1/x**3 and so on in the logarithm of the gamma function, and log(2 pi).
_STIRLING = (
    *(8.333333333333333e-02, -2.777777777777778e-03, 7.936507936507937e-04, -5.952380952380952e-04),
    *(8.417508417508418e-04, -1.917526917526918e-03, 6.410256410256410e-03, -2.955065359477124e-02),
    *(1.796443723688307e-01, -1.39243221690590e00),
)
_LOG_TURN = 1.8378770664093453


def _poisson(s: Stream, rate: ir.Value) -> ir.Value:
    def others() -> ir.Value:
        return s.choose(rate.equals(0.0), _zero, lambda: _by_products(s, rate))

    return s.choose(rate < _RATE, others, lambda: _by_rejection(s, rate))


def _negative_binomial(s: Stream, n: ir.Value, p: ir.Value) -> ir.Value:
    x = _gamma(s, n)
    return _poisson(s, (1.0 - p) / p * x)


def _by_products(s: Stream, rate: ir.Value) -> ir.Value:
    """Number of uniform numbers whose product is above exp(-rate)."""
    least = build.math("exp", -rate)

    def step(values: list[ir.Value]) -> list[ir.Value]:
        s.at = values[0]
        u = s.uniform()
        return [s.at, values[1] * u]

    first = s.uniform()
    start = s.at
    s.at, _ = carry_while([start, first], lambda v: s.is_inside(v[0]) & (least < v[1]), step)
    return build.as_f64(calls.number(s.at - start))


def _by_rejection(s: Stream, rate: ir.Value) -> ir.Value:
    root, log = build.math("sqrt", rate), build.math("log", rate)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    log_share = build.math("log", 1.1239 + 1.1328 / (b - 3.4))
    quick_below = 0.9277 - 3.6224 / (b - 2.0)

    def attempt() -> tuple[ir.Value, ir.Value]:
        u, v = s.uniform(), s.uniform()
        u = u - 0.5
        rest = 0.5 - build.math("absf", u)
        k = build.math("floor", (2.0 * a / rest + b) * u + rate + 0.43)
        quick = (rest >= 0.07) & (v <= quick_below)

        def by_density() -> list[ir.Value]:
            density = build.math("log", v) + log_share - build.math("log", a / (rest * rest) + b)
            whole_k = build.select(k < 0.0, 0.0, k)
            fine = density <= -rate + k * log - _log_gamma(whole_k + 1.0)
            return [(k >= 0.0) & fine & ~((rest < 0.013) & (rest < v))]

        (gives,) = either(quick, [quick.type], lambda: [quick], by_density)
        return gives, k

    return s.until(attempt)


def _log_gamma(x: ir.Value) -> ir.Value:
    """The logarithm of the gamma function of a whole number, as NumPy computes it here."""
    start = x + build.select(x < 7.0, build.math("floor", 7.0 - x), 0.0)
    square = (1.0 / start) * (1.0 / start)
    series = build.const_f64(_STIRLING[-1])
    for coefficient in reversed(_STIRLING[:-1]):
        series = series * square + coefficient
    found = series / start + 0.5 * _LOG_TURN + (start - 0.5) * build.math("log", start) - start

    def lower(values: list[ir.Value]) -> list[ir.Value]:
        below = values[0] - 1.0
        return [below, values[1] - build.math("log", below)]

    found = carry_while([start, found], lambda values: x < values[0], lower)[1]
    return build.select(x <= 2.0, 0.0, found)


def _geometric(s: Stream, p: ir.Value) -> ir.Value:
    def by_search() -> ir.Value:
        u = s.uniform()

        def step(values: list[ir.Value]) -> list[ir.Value]:
            number, total, share = values
            share = share * (1.0 - p)
            return [number + 1.0, total + share, share]

        # Where no probability is left, rounding has left the sum below the number.
        return carry_while([build.const_f64(1.0), p, p], lambda v: (v[1] < u) & (v[2] > 0.0), step)[0]

    def by_logarithm() -> ir.Value:
        return build.math("ceil", -s.exponential() / build.math("log1p", -p))

    return s.choose(p < _SEARCH, by_logarithm, by_search)


def _logarithmic(s: Stream, p: ir.Value) -> ir.Value:
    r = build.math("log1p", -p)

    def attempt() -> tuple[ir.Value, ir.Value]:
        v = s.uniform()
        at, one = s.at, p <= v
        q = -build.math("expm1", r * s.uniform())
        several = v <= q * q
        number = build.math("floor", 1.0 + build.math("log", v) / build.math("log", q))
        other = build.select(q <= v, 1.0, 2.0)
        fails = ~one & several & ~((number >= 1.0) & (v > 0.0))
        s.at = build.select(one, at, s.at)
        return ~fails, build.select(one, 1.0, build.select(several, number, other))

    return s.until(attempt)


def _words(rate: float) -> float:
    """Bound on the words that Poisson numbers of a rate take on average; checks refuse negative rates."""
    return 1.0 + max(rate, 0.0) if rate < _RATE else _RATE_WORDS


def _words_of_mixture(n: float, p: float) -> float:
    """The same of negative binomial numbers, and some more, as these vary; checks refuse other parameters."""
    mean = n * (1.0 - p) / p if p > 0 else _RATE
    return _GAMMA_WORDS + 1.5 + min(max(mean, 0.0), _RATE)


# -- integers between bounds --------------------------------------------------------------------------------

# At worst half of the attempts give no number; some more, so that there are always enough.
_QUARTERS, _MORE = 9, 256


class Integers:
    """Integers between bounds, all at once.

    Each attempt takes 32 bits, or 64 where there are more integers than 32 bits have. Integers of 16 and of 8
    bits take as many, the lowest ones first, of 32 that are the draws' own. An attempt gives no number where
    some would come more often than others. Halves of words that are left over are kept in the state.

    The extent is a tensor of one element, of their type: how far they are from the lowest one at most.
    """

    def __init__(self, op: ir.Operation, state: ir.Value, extent: ir.Value, count: ir.Value) -> None:
        self._state, self._extent = state, extent
        self._type = ir.RankedTensorType(extent.type).element_type
        # Bits of an attempt that takes no whole word, and how many such have 32.
        self._part = min(ir.IntegerType(self._type).width, BITS)
        self._parts = BITS // self._part
        size = (count * _QUARTERS) // 4 + _MORE
        self._ranks = Ranks(op, size, lambda: self._attempt(position(0))[0])

    def number(self, draw: ir.Value, low: ir.Value) -> ir.Value:
        """A draw, in the body of a nest."""
        return converted(self._attempt(self._ranks.place(draw))[1], low.type) + low

    def after(self, place: ir.Value, count: ir.Value) -> ir.Value:
        """A word of the state after the draws, in the body of a nest."""
        extent, wide = self._bounds()
        attempts = build.select(extent.equals(0), 0, self._ranks.end(count))

        def of_halves() -> ir.Value:
            return State(self._state).after_halves(place, (attempts + (self._parts - 1)) // self._parts)

        return self._by_width(wide, lambda: State(self._state).after(place, attempts), of_halves)

    def _by_width(
        self, wide: ir.Value, of_words: Callable[[], ir.Value], of_halves: Callable[[], ir.Value]
    ) -> ir.Value:
        """Something for attempts that take whole words, or for others."""
        if self._type != word_type():
            return of_halves()
        return either(wide, [word_type()], lambda: [of_words()], lambda: [of_halves()])[0]

    def _bounds(self) -> tuple[ir.Value, ir.Value]:
        """The extent, and whether an attempt takes a whole word."""
        extent = converted(_element(self._extent, 0)(), word_type())
        return extent, build.const_i64(MASK).below(extent)

    def _attempt(self, place: ir.Value) -> tuple[ir.Value, ir.Value]:
        """1 if an attempt gives a number, else 0; and how far that is from the lowest one."""
        extent, wide = self._bounds()
        bits = self._bits(calls.number(place), wide)
        span = extent + 1
        low, high = wide_product(bits, span)
        mask = (1 << self._part) - 1
        most = build.select(wide, build.const_i64(-1), mask)
        rest = build.select(wide, low, low & mask)
        all_words = span.equals(0)
        least = (most - extent) % build.select(all_words, 1, span)
        fails = converted(rest.below(least), word_type())
        value = build.select(wide, high, low >> self._part)
        return fails ^ 1, build.select(all_words, bits, value)

    def _bits(self, number: ir.Value, wide: ir.Value) -> ir.Value:
        """Bits of an attempt: a word, the next half of one, or a part of a half."""

        def part() -> ir.Value:
            half = State(self._state).half(number // self._parts)
            if self._parts == 1:
                return half
            return (half >> (number % self._parts * self._part)) & ((1 << self._part) - 1)

        return self._by_width(wide, lambda: State(self._state).word(number), part)


# -- distributions ------------------------------------------------------------------------------------------

# A uniform number, the same of float32, one that is not 0, and one for draws of which that parameter, a
# probability, is not 0.
_UNIFORM, _UNIFORM_FLOAT, _POSITIVE = "uniform", "uniform_f32", "positive"
_SHARES = {"bernoulli": 0, "binomial": 1}
_STUDENT = Several(_student, _GAMMA_WORDS + 1.03, (0,))
_CAUCHY = Several(_cauchy, 2.06, ())


def _of_gamma(
    formula: Formula, same: tuple[int, ...] = (0,), shape: Formula = _same
) -> tuple[Several, Formula]:
    """A formula of a standard gamma number, whose shape follows from parameters."""
    return Several(lambda s, *given: _gamma(s, shape(*given)), _GAMMA_WORDS, same), formula


# By the distribution: of what, and how.
_DISTRIBUTIONS: dict[str, tuple[str | Ziggurat | Several, Formula]] = {
    "standard_uniform": (_UNIFORM, _uniform),
    "standard_uniform_f32": (_UNIFORM_FLOAT, _same),
    "uniform": (_UNIFORM, _uniform),
    "truncexpon": (_UNIFORM, _truncated),
    "triangular": (_UNIFORM, _triangular),
    "bernoulli": (_UNIFORM, _bernoulli),
    "binomial": (_UNIFORM, _binomial),
    "categorical": (_UNIFORM, _categorical),
    "choice": (_UNIFORM, _choice),
    # NumPy draws a word again that stands for 0.
    "laplace": (_POSITIVE, _laplace),
    "gumbel": (_POSITIVE, _gumbel),
    "logistic": (_POSITIVE, _logistic),
    "standard_normal": (NORMAL, _same),
    "standard_normal_f32": (NORMAL_FLOAT, _same),
    "normal": (NORMAL, _affine),
    "halfnormal": (NORMAL, _half),
    "lognormal": (NORMAL, lambda x, loc, scale: build.math("exp", _affine(x, loc, scale))),
    "standard_exponential": (EXPONENTIAL, _same),
    "standard_exponential_f32": (EXPONENTIAL_FLOAT, _same),
    "exponential": (EXPONENTIAL, _scaled),
    "lomax": (EXPONENTIAL, _share),
    "pareto": (EXPONENTIAL, lambda x, shape, scale: scale * (1.0 + _share(x, shape))),
    "rayleigh": (EXPONENTIAL, lambda x, scale: scale * build.math("sqrt", 2.0 * x)),
    "power": (EXPONENTIAL, _power),
    "standard_gamma": _of_gamma(_same),
    "gamma": _of_gamma(lambda x, shape, scale: scale * x),
    "invgamma": _of_gamma(lambda x, shape, scale: scale / x),
    "gengamma": _of_gamma(_powers, (0, 1), lambda alpha, p: alpha / p),
    "chisquare": _of_gamma(lambda x, df: 2.0 * x, shape=lambda df: df / 2.0),
    "standard_t": (_STUDENT, _same),
    "t": (_STUDENT, lambda x, df, loc, scale: _affine(x, loc, scale)),
    "f": (Several(_f, 2 * _GAMMA_WORDS, (0, 1)), _same),
    "beta": (Several(_beta, 2 * _GAMMA_WORDS, (0, 1)), _same),
    "standard_cauchy": (_CAUCHY, _same),
    "cauchy": (_CAUCHY, _affine),
    "halfcauchy": (_CAUCHY, _half),
    "weibull": (Several(_weibull, 1.04, (0,)), _root),
    "poisson": (Several(_poisson, 1.0 + _RATE, (0,), _words), _whole),
    "negative_binomial": (
        Several(_negative_binomial, _GAMMA_WORDS + 1.5 + _RATE, (0, 1), _words_of_mixture),
        _whole,
    ),
    "geometric": (Several(_geometric, 1.04, (0,)), _saturated),
    "logseries": (Several(_logarithmic, 2.0, (0,)), _whole),
}
# Of a uniform number and a vector of probabilities.
_CHOICES = ("categorical", "choice")
_INTEGERS = ("integers_64", "integers_32", "integers_16", "integers_8")


def have_kernel(op: ir.Operation) -> bool:
    """True if draws are computed from their places: some distributions, of Philox.

    How many words a draw takes must not depend on what differs from draw to draw, except that some take none.
    Of binomial draws it is known for a few trials.
    """
    distribution = _distribution(op)
    words = ir.RankedTensorType(op.operands[0].type).shape[0]
    if GENERATORS[words] != "philox" or distribution not in (*_DISTRIBUTIONS, *_INTEGERS):
        return False
    if distribution == "binomial":
        trials = _known(op.operands[1])
        return trials is not None and 0 < trials <= _MOST_TRIALS
    kind = None if distribution in _INTEGERS else _DISTRIBUTIONS[distribution][0]
    same = (1,) if kind is None else kind.same if isinstance(kind, Several) else ()
    return all(_is_same(op.operands[1 + number]) for number in same)


def _is_same(parameter: ir.Value) -> bool:
    """True if all draws have the same element of a parameter, as its type says."""
    return set(ir.RankedTensorType(parameter.type).shape) <= {1}


def _known(parameter: ir.Value) -> float | None:
    """The number that all elements of a parameter are, if that is known."""
    found = known_splat(parameter)
    return None if found is None else float(np.frombuffer(found[2], found[1])[0])


def _distribution(op: ir.Operation) -> str:
    return str(ir.StringAttr(op.attributes["distribution"]).value)


@ON_DEVICES(RANDOM)
def random(context: Conversion, op: ir.Operation) -> None:
    """A nest that computes the draws, and one that computes the state after them."""
    state, parameters, sizes = taken(context, op)
    count = calls.product(sizes)
    if not have_kernel(op):
        fail(op, f"draws of '{_distribution(op)}' with this generator are not computed by kernels of devices")
    inputs, number, after = _plan(context, op, parameters, sizes, count)

    def draw(given: Sequence[ir.Value]) -> ir.Value:
        place = build.const_index(0)
        for axis, size in enumerate(sizes):
            place = place * size + position(axis)
        return number(place, *given)

    words_of_state = [build.const_index(state.type.shape[0])]
    for result, shape, operands, body in (
        (op.results[0], sizes, inputs, draw),
        (op.results[1], words_of_state, [], lambda _: after(here())),
    ):
        start = context.destinations.start(result, build.storage_type(result.type), shape)
        context.define(result, elementwise([context.tensor_of(x) for x in operands], start, body))


def _plan(
    context: Conversion, op: ir.Operation, parameters: list[ir.Value], sizes: list[ir.Value], count: ir.Value
) -> tuple[list[ir.Value], Formula, Bits]:
    """Parameters of which each draw takes an element; a draw by its number and these; the state after all."""
    words, distribution = context.tensor_of(op.operands[0]), _distribution(op)
    if distribution in _INTEGERS:
        integers = Integers(op, words, context.tensor_of(parameters[1]), count)
        return parameters[:1], integers.number, lambda place: integers.after(place, count)
    source, formula = _source(context, op, parameters, sizes, count), _DISTRIBUTIONS[distribution][1]

    def after(place: ir.Value) -> ir.Value:
        state = State(words)
        step = state.after_halves if distribution.endswith("_f32") else state.after
        return step(place, source.taken(count))

    def of_row(place: ir.Value) -> ir.Value:
        row = _element(context.tensor_of(parameters[0]), 1)
        return formula(source.number(place), row, context.sizes_of(parameters[0])[-1])

    if distribution in _CHOICES:
        return [], of_row, after
    return parameters, lambda place, *given: formula(source.number(place), *given), after


def _source(
    context: Conversion, op: ir.Operation, parameters: list[ir.Value], sizes: list[ir.Value], count: ir.Value
) -> Source:
    """The numbers that draws are made of."""
    words, distribution = context.tensor_of(op.operands[0]), _distribution(op)
    kind = _DISTRIBUTIONS[distribution][0]
    if isinstance(kind, Ziggurat):
        draws = Draws(op, kind, words, count)
        return Source(draws.number, draws.taken)
    if isinstance(kind, Several):
        rows = [_element(context.tensor_of(parameters[number]), 0) for number in kind.same]
        average = kind.words_of([_known(op.operands[1 + number]) for number in kind.same])
        return kind.source(op, words, count, lambda: [row() for row in rows], average)
    if distribution in _SHARES:
        share = context.tensor_of(parameters[_SHARES[distribution]])
        alike = _is_same(share)
        return possible_alike(words, _element(share, 0)) if alike else possible(op, words, share, sizes)
    if kind == _POSITIVE:
        return positive(op, words, count)
    return uniforms(words, FLOAT) if kind == _UNIFORM_FLOAT else uniforms(words)


def _element(tensor: ir.Value, rank: int) -> Row:
    """Element of the draw at hand, or its row of probabilities; sizes of 1 serve all."""
    kind = ir.RankedTensorType(tensor.type)
    lead = list(kind.shape)[: kind.rank - rank]
    indices = [build.const_index(0) if size == 1 else position(axis) for axis, size in enumerate(lead)]
    return lambda *place: tensor[*indices, *place]
