# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gamma numbers for devices, and what is made of them: NumPy's, in the order of its operations.

Logarithms and powers are those of the device. Where one decides whether an attempt gives a number, and both
sides of the comparison are as near as the last digit, the draw, and all after it, differ from NumPy's: less
than once in 10**14 draws, up to a shape of 10**4.

Source: G. Marsaglia, W. Tsang, "A simple method for generating gamma variables" (2000); J. Ahrens, U. Dieter,
"Computer methods for sampling from gamma, beta, Poisson and binomial distributions" (1974); M. Johnk,
"Erzeugung von betaverteilten und gammaverteilten Zufallszahlen" (1964).

Conditions and choices in draws for devices that take several words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from graphc.ir import build
from graphc.ir.value import literal
from graphc.lowering.carried import carry, either
from graphc.lowering.device_code.formulas import Formula, affine, half, inverse, scaled
from graphc.lowering.device_code.streams import Drawn, Several, Stream
from graphc_dialects._mlir import ir

DrawnLater: TypeAlias = "Callable[[], Drawn]"


def _kinds() -> list[ir.Type]:
    return [ir.F64Type.get(), build.index_type()]


def choose(condition: ir.Value, then: DrawnLater, otherwise: DrawnLater) -> Drawn:
    """One of two draws."""

    def parts(draw: DrawnLater) -> list[ir.Value]:
        x, place = draw()
        return [x, place]

    x, place = either(condition, _kinds(), lambda: parts(then), lambda: parts(otherwise))
    return x, place


def both(a: ir.Value, b: ir.Value) -> ir.Value:
    """True if two conditions hold."""
    return a & b


def opposite(a: ir.Value) -> ir.Value:
    """True if a condition does not hold."""
    return a ^ literal(1, a.type)


# Of the words that a gamma number takes on average, the most: near a shape of 0.5.
WORDS = 2.32
# Two parameters of beta numbers below which NumPy draws 0 or 1.
_TINY = 3e-103


def gamma(stream: Stream, place: ir.Value, shape: ir.Value) -> Drawn:
    """A standard gamma number."""

    def others() -> Drawn:
        return choose(shape < 1.0, lambda: _small(stream, place, shape), lambda: _large(stream, place, shape))

    def some() -> Drawn:
        return choose(shape.equals(1.0), lambda: stream.exponential(place), others)

    return choose(shape.equals(0.0), lambda: (build.const_f64(0.0), place), some)


def _small(stream: Stream, place: ir.Value, shape: ir.Value) -> Drawn:
    """Of a shape below 1."""

    def attempt(at: ir.Value) -> tuple[ir.Value, Drawn]:
        u, at = stream.uniform(at)
        v, at = stream.exponential(at)
        rest = 1.0 - shape
        low = u <= rest
        y = build.select(low, 0.0, -build.math("log", (1.0 - u) / shape))
        x = build.math("powf", build.select(low, u, rest + shape * y), 1.0 / shape)
        return x <= v + y, (x, at)

    return stream.until(place, attempt)


def _large(stream: Stream, place: ir.Value, shape: ir.Value) -> Drawn:
    """Of a shape above 1."""
    b = shape - 1.0 / 3.0
    c = 1.0 / build.math("sqrt", 9.0 * b)

    def attempt(at: ir.Value) -> tuple[ir.Value, Drawn]:
        x, at = stream.normal(at)
        root = 1.0 + c * x
        some = root > 0.0
        v = root * root * root
        u, after = stream.uniform(at)
        quick = u < 1.0 - 0.0331 * (x * x) * (x * x)

        def is_below() -> list[ir.Value]:
            return [build.math("log", u) < 0.5 * x * x + b * (1.0 - v + build.math("log", v))]

        (gives,) = either(quick, [quick.type], lambda: [quick], is_below)
        return both(some, gives), (b * v, build.select(some, after, at))

    return stream.until(place, attempt)


def _two(
    stream: Stream, place: ir.Value, first: ir.Value, second: ir.Value
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Two gamma numbers, of which the code is there once."""

    def body(number: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
        is_first = number.equals(0)
        x, after = gamma(stream, values[0], build.select(is_first, first, second))
        return [after, values[2], x]

    zero = build.const_f64(0.0)
    after, x, y = carry(2, [place, zero, zero], body)
    return x, y, after


def _standard_gamma(stream: Stream, place: ir.Value, given: list[ir.Value]) -> Drawn:
    return gamma(stream, place, given[0])


def _chisquare(stream: Stream, place: ir.Value, given: list[ir.Value]) -> Drawn:
    x, after = gamma(stream, place, given[0] / 2.0)
    return 2.0 * x, after


def _gengamma(stream: Stream, place: ir.Value, given: list[ir.Value]) -> Drawn:
    return gamma(stream, place, given[0] / given[1])


def _powers(x: ir.Value, alpha: ir.Value, p: ir.Value, scale: ir.Value) -> ir.Value:
    return scaled(build.math("powf", x, inverse(p)), scale)


def _student(stream: Stream, place: ir.Value, given: list[ir.Value]) -> Drawn:
    x, after = stream.normal(place)
    df = given[0] / 2.0
    y, after = gamma(stream, after, df)
    return build.math("sqrt", df) * x / build.math("sqrt", y), after


def _f(stream: Stream, place: ir.Value, given: list[ir.Value]) -> Drawn:
    above, below = given
    x, y, after = _two(stream, place, above / 2.0, below / 2.0)
    return 2.0 * x * below / (2.0 * y * above), after


def _beta(stream: Stream, place: ir.Value, given: list[ir.Value]) -> Drawn:
    a, b = given

    def ratio() -> Drawn:
        x, y, after = _two(stream, place, a, b)
        return x / (x + y), after

    def tiny() -> Drawn:
        u, after = stream.uniform(place)
        return build.select((a + b) * u < a, 1.0, 0.0), after

    def small() -> Drawn:
        return choose(both(a < _TINY, b < _TINY), tiny, lambda: _johnk(stream, place, a, b))

    return choose(both(a <= 1.0, b <= 1.0), small, ratio)


def _johnk(stream: Stream, place: ir.Value, a: ir.Value, b: ir.Value) -> Drawn:
    """A beta number of two parameters that are not above 1."""

    def attempt(at: ir.Value) -> tuple[ir.Value, Drawn]:
        u, at = stream.uniform(at)
        v, at = stream.uniform(at)
        x, y = build.math("powf", u, 1.0 / a), build.math("powf", v, 1.0 / b)

        def by_logarithms() -> list[ir.Value]:
            # One of both is too small for a number.
            delta = build.math("log", u) / a - build.math("log", v) / b
            rest = -build.math("log1p", build.math("exp", -build.math("absf", delta)))
            return [build.math("exp", build.select(delta > 0.0, rest, delta + rest))]

        fine = both(x > 0.0, y > 0.0)
        (share,) = either(fine, [ir.F64Type.get()], lambda: [(x / (x + y))], by_logarithms)
        return both(x + y <= 1.0, u + v > 0.0), (share, at)

    return stream.until(place, attempt)


def _cauchy(stream: Stream, place: ir.Value, given: list[ir.Value]) -> Drawn:
    def body(_: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
        x, after = stream.normal(values[0])
        return [after, values[2], x]

    zero = build.const_f64(0.0)
    after, x, y = carry(2, [place, zero, zero], body)
    return x / y, after


def _weibull(stream: Stream, place: ir.Value, given: list[ir.Value]) -> Drawn:
    """The exponential number that is raised to a power, none for an exponent of 0."""
    return choose(
        given[0].equals(0.0), lambda: (build.const_f64(0.0), place), lambda: stream.exponential(place)
    )


def _root(x: ir.Value, a: ir.Value) -> ir.Value:
    return build.select(a.equals(0.0), 0.0, build.math("powf", x, 1.0 / a))


GAMMA = Several(_standard_gamma, WORDS, (0,))
CAUCHY = Several(_cauchy, 2.06, ())

# By the distribution: of what, and how.
GAMMAS: dict[str, tuple[Several, Formula]] = {
    "standard_gamma": (GAMMA, lambda x, shape: x),
    "gamma": (GAMMA, lambda x, shape, scale: scaled(x, scale)),
    "invgamma": (GAMMA, lambda x, shape, scale: scale / x),
    "gengamma": (Several(_gengamma, WORDS, (0, 1)), _powers),
    "chisquare": (Several(_chisquare, WORDS, (0,)), lambda x, df: x),
    "standard_t": (Several(_student, WORDS + 1.03, (0,)), lambda x, df: x),
    "t": (Several(_student, WORDS + 1.03, (0,)), lambda x, df, loc, scale: affine(x, loc, scale)),
    "f": (Several(_f, 2 * WORDS, (0, 1)), lambda x, above, below: x),
    "beta": (Several(_beta, 2 * WORDS, (0, 1)), lambda x, a, b: x),
    "standard_cauchy": (CAUCHY, lambda x: x),
    "cauchy": (CAUCHY, affine),
    "halfcauchy": (CAUCHY, half),
    "weibull": (Several(_weibull, 1.04, (0,)), _root),
}
