# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts of several words each for devices, as NumPy draws them.

Logarithms are those of the device. Where one decides whether an attempt gives a number, and both sides of the
comparison are as near as the last digit, the draw, and all after it, differ from NumPy's. Poisson numbers of
rates r from 10 on compare sums of terms as large as r log r: that is so at most once in 10**15 / (r log r)
draws.

Sources: W. Hormann, "The transformed rejection method for generating Poisson random variables" (1993);
A. Kemp, "Efficient generation of logarithmically distributed pseudo-random variables" (1981).
"""

from __future__ import annotations

from graphc.ir import build
from graphc.lowering import calls
from graphc.lowering.carried import carry_while, either
from graphc.lowering.device_formulas import Formula
from graphc.lowering.device_gammas import WORDS as GAMMA_WORDS
from graphc.lowering.device_gammas import gamma
from graphc.lowering.device_philox import word_type
from graphc.lowering.device_rejections import both, choose, opposite
from graphc.lowering.device_streams import Drawn, Several, Stream
from graphc_dialects._mlir import ir

# The rate from which on attempts take two words each, and how many words numbers take there at most.
_LARGE, _LARGE_WORDS = 10.0, 2.65
# The probability from which on NumPy adds up probabilities instead of taking a logarithm.
_SEARCH = 0.333333333333333333333333
# Coefficients of 1/x, 1/x**3 and so on in the logarithm of the gamma function, and log(2 pi).
_STIRLING = (
    8.333333333333333e-02,
    -2.777777777777778e-03,
    7.936507936507937e-04,
    -5.952380952380952e-04,
    8.417508417508418e-04,
    -1.917526917526918e-03,
    6.410256410256410e-03,
    -2.955065359477124e-02,
    1.796443723688307e-01,
    -1.39243221690590e00,
)
_LOG_TURN = 1.8378770664093453
# The least number in float64 that is above all of int64.
_BEYOND, _MOST = 9.223372036854776e18, (1 << 63) - 1


def whole(x: ir.Value, *_: ir.Value) -> ir.Value:
    """A whole number as an i64."""
    return build.create("arith.fptosi", [word_type()], [x]).result


def _saturated(x: ir.Value, *_: ir.Value) -> ir.Value:
    """The same; the largest one for numbers that are too large."""
    return build.select(x < _BEYOND, whole(x), build.const_i64(_MOST))


def _steps(start: ir.Value, after: ir.Value) -> ir.Value:
    """How many words are between two places."""
    count = calls.number(build.index_op("subi", after, start))
    return build.as_f64(count)


def _poisson(stream: Stream, place: ir.Value, given: list[ir.Value]) -> Drawn:
    (rate,) = given

    def others() -> Drawn:
        none = rate.equals(0.0)
        return choose(none, lambda: (build.const_f64(0.0), place), lambda: _by_products(stream, place, rate))

    return choose(rate < _LARGE, others, lambda: _by_rejection(stream, place, rate))


def _negative_binomial(stream: Stream, place: ir.Value, given: list[ir.Value]) -> Drawn:
    n, p = given
    x, after = gamma(stream, place, n)
    return _poisson(stream, after, [(1.0 - p) / p * x])


def _by_products(stream: Stream, place: ir.Value, rate: ir.Value) -> Drawn:
    """How many uniform numbers have a product above exp(-rate)."""
    least = build.math("exp", -rate)

    def goes_on(values: list[ir.Value]) -> ir.Value:
        return both(stream.is_inside(values[0]), least < values[1])

    def step(values: list[ir.Value]) -> list[ir.Value]:
        u, after = stream.uniform(values[0])
        return [after, values[1] * u]

    first, after = stream.uniform(place)
    end, _ = carry_while([after, first], goes_on, step)
    return _steps(after, end), end


def _by_rejection(stream: Stream, place: ir.Value, rate: ir.Value) -> Drawn:
    root, log = build.math("sqrt", rate), build.math("log", rate)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    log_share = build.math("log", 1.1239 + 1.1328 / (b - 3.4))
    quick_below = 0.9277 - 3.6224 / (b - 2.0)

    def attempt(at: ir.Value) -> tuple[ir.Value, Drawn]:
        u, at = stream.uniform(at)
        v, at = stream.uniform(at)
        u = u - 0.5
        rest = 0.5 - build.math("absf", u)
        k = build.math("floor", (2.0 * a / rest + b) * u + rate + 0.43)
        quick = both(rest >= 0.07, v <= quick_below)

        def by_density() -> list[ir.Value]:
            density = build.math("log", v) + log_share - build.math("log", a / (rest * rest) + b)
            whole_k = build.select(k < 0.0, 0.0, k)
            fine = density <= -rate + k * log - _log_gamma(whole_k + 1.0)
            return [both(both(k >= 0.0, fine), opposite(both(rest < 0.013, rest < v)))]

        (gives,) = either(quick, [quick.type], lambda: [quick], by_density)
        return gives, (k, at)

    return stream.until(place, attempt)


def _log_gamma(x: ir.Value) -> ir.Value:
    """The logarithm of the gamma function of a whole number, as NumPy computes it here."""
    raised = build.select(x < 7.0, build.math("floor", 7.0 - x), 0.0)
    start = x + raised
    square = (1.0 / start) * (1.0 / start)
    series = build.const_f64(_STIRLING[-1])
    for coefficient in reversed(_STIRLING[:-1]):
        series = series * square + coefficient
    found = series / start + 0.5 * _LOG_TURN + (start - 0.5) * build.math("log", start) - start

    def lower(values: list[ir.Value]) -> list[ir.Value]:
        below = values[0] - 1.0
        return [below, values[1] - build.math("log", below)]

    values = [start, found]
    found = carry_while(values, lambda values: x < values[0], lower)[1]
    return build.select(x <= 2.0, 0.0, found)


def _geometric(stream: Stream, place: ir.Value, given: list[ir.Value]) -> Drawn:
    (p,) = given

    def by_search() -> Drawn:
        u, after = stream.uniform(place)

        def goes_on(values: list[ir.Value]) -> ir.Value:
            # Where no probability is left, rounding has left the sum below the number.
            return both(values[1] < u, values[2] > 0.0)

        def step(values: list[ir.Value]) -> list[ir.Value]:
            number, total, share = values
            share = share * (1.0 - p)
            return [number + 1.0, total + share, share]

        return carry_while([build.const_f64(1.0), p, p], goes_on, step)[0], after

    def by_logarithm() -> Drawn:
        x, after = stream.exponential(place)
        return build.math("ceil", -x / build.math("log1p", -p)), after

    return choose(p < _SEARCH, by_logarithm, by_search)


def _logarithmic(stream: Stream, place: ir.Value, given: list[ir.Value]) -> Drawn:
    (p,) = given
    r = build.math("log1p", -p)

    def attempt(at: ir.Value) -> tuple[ir.Value, Drawn]:
        v, at = stream.uniform(at)
        one = p <= v
        u, after = stream.uniform(at)
        q = -build.math("expm1", r * u)
        several = v <= q * q
        number = build.math("floor", 1.0 + build.math("log", v) / build.math("log", q))
        other = build.select(q <= v, 1.0, 2.0)
        fails = both(
            both(opposite(one), several),
            opposite(both(number >= 1.0, v > 0.0)),
        )
        x = build.select(one, 1.0, build.select(several, number, other))
        return opposite(fails), (x, build.select(one, at, after))

    return stream.until(place, attempt)


def _words(rate: float) -> float:
    """How many words Poisson numbers of a rate take on average, at most; checks refuse negative rates."""
    return 1.0 + max(rate, 0.0) if rate < _LARGE else _LARGE_WORDS


def _words_of_mixture(n: float, p: float) -> float:
    """The same of negative binomial numbers, and some more, as these vary; checks refuse other parameters."""
    mean = n * (1.0 - p) / p if p > 0 else _LARGE
    return GAMMA_WORDS + 1.5 + min(max(mean, 0.0), _LARGE)


# By the distribution: of what, and how.
COUNTS: dict[str, tuple[Several, Formula]] = {
    "poisson": (Several(_poisson, 1.0 + _LARGE, (0,), _words), whole),
    "negative_binomial": (
        Several(_negative_binomial, GAMMA_WORDS + 1.5 + _LARGE, (0, 1), _words_of_mixture),
        whole,
    ),
    "geometric": (Several(_geometric, 1.04, (0,)), _saturated),
    "logseries": (Several(_logarithmic, 2.0, (0,)), whole),
}
