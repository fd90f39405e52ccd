# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gamma numbers for devices, and what is made of them: NumPy's, in the order of its operations.

Logarithms and powers are those of the device. Where one decides whether an attempt gives a number, and both
sides of the comparison are as near as the last digit, the draw, and all after it, differ from NumPy's: less
than once in 10**14 draws, up to a shape of 10**4.

Source: G. Marsaglia, W. Tsang, "A simple method for generating gamma variables" (2000); J. Ahrens, U. Dieter,
"Computer methods for sampling from gamma, beta, Poisson and binomial distributions" (1974); M. Johnk,
"Erzeugung von betaverteilten und gammaverteilten Zufallszahlen" (1964).
"""

from __future__ import annotations

from graphc.ir import build
from graphc.lowering.carried import carry, either
from graphc.lowering.device_formulas import Formula, affine, half, inverse, scaled
from graphc.lowering.device_philox import EQUAL
from graphc.lowering.device_rejections import both, choose
from graphc.lowering.device_streams import Drawn, Several, Stream
from graphc.lowering.real_numbers import Real, chosen, real
from graphc_dialects._mlir import ir

# Of the words that a gamma number takes on average, the most: near a shape of 0.5.
WORDS = 2.32
# Two parameters of beta numbers below which NumPy draws 0 or 1.
_TINY = 3e-103


def gamma(stream: Stream, place: ir.Value, shape: Real) -> Drawn:
    """A standard gamma number."""

    def others() -> Drawn:
        return choose(shape < 1.0, lambda: _small(stream, place, shape), lambda: _large(stream, place, shape))

    def some() -> Drawn:
        return choose(shape.equals(1.0), lambda: stream.exponential(place), others)

    return choose(shape.equals(0.0), lambda: (Real(0.0), place), some)


def _small(stream: Stream, place: ir.Value, shape: Real) -> Drawn:
    """Of a shape below 1."""

    def attempt(at: ir.Value) -> tuple[ir.Value, Drawn]:
        u, at = stream.uniform(at)
        v, at = stream.exponential(at)
        rest = 1.0 - shape
        low = u <= rest
        y = chosen(low, 0.0, -((1.0 - u) / shape).of("log"))
        x = chosen(low, u, rest + shape * y).power(1.0 / shape)
        return x <= v + y, (x, at)

    return stream.until(place, attempt)


def _large(stream: Stream, place: ir.Value, shape: Real) -> Drawn:
    """Of a shape above 1."""
    b = shape - 1.0 / 3.0
    c = 1.0 / (9.0 * b).of("sqrt")

    def attempt(at: ir.Value) -> tuple[ir.Value, Drawn]:
        x, at = stream.normal(at)
        root = 1.0 + c * x
        some = root > 0.0
        v = root * root * root
        u, after = stream.uniform(at)
        quick = u < 1.0 - 0.0331 * (x * x) * (x * x)

        def is_below() -> list[ir.Value]:
            return [u.of("log") < 0.5 * x * x + b * (1.0 - v + v.of("log"))]

        (gives,) = either(quick, [quick.type], lambda: [quick], is_below)
        return both(some, gives), (b * v, build.select(some, after, at))

    return stream.until(place, attempt)


def _two(stream: Stream, place: ir.Value, first: Real, second: Real) -> tuple[Real, Real, ir.Value]:
    """Two gamma numbers, of which the code is there once."""

    def body(number: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
        is_first = build.compare_index(EQUAL, number, build.const_index(0))
        x, after = gamma(stream, values[0], chosen(is_first, first, second))
        return [after, values[2], x.value]

    zero = Real(0.0).value
    after, x, y = carry(build.const_index(2), [place, zero, zero], body)
    return Real(x), Real(y), after


def _standard_gamma(stream: Stream, place: ir.Value, given: list[Real]) -> Drawn:
    return gamma(stream, place, given[0])


def _chisquare(stream: Stream, place: ir.Value, given: list[Real]) -> Drawn:
    x, after = gamma(stream, place, given[0] / 2.0)
    return 2.0 * x, after


def _gengamma(stream: Stream, place: ir.Value, given: list[Real]) -> Drawn:
    return gamma(stream, place, given[0] / given[1])


def _powers(x: ir.Value, alpha: ir.Value, p: ir.Value, scale: ir.Value) -> ir.Value:
    return scaled(real("math.powf", x, inverse(p)), scale)


def _student(stream: Stream, place: ir.Value, given: list[Real]) -> Drawn:
    x, after = stream.normal(place)
    df = given[0] / 2.0
    y, after = gamma(stream, after, df)
    return df.of("sqrt") * x / y.of("sqrt"), after


def _f(stream: Stream, place: ir.Value, given: list[Real]) -> Drawn:
    above, below = given
    x, y, after = _two(stream, place, above / 2.0, below / 2.0)
    return 2.0 * x * below / (2.0 * y * above), after


def _beta(stream: Stream, place: ir.Value, given: list[Real]) -> Drawn:
    a, b = given

    def ratio() -> Drawn:
        x, y, after = _two(stream, place, a, b)
        return x / (x + y), after

    def tiny() -> Drawn:
        u, after = stream.uniform(place)
        return chosen((a + b) * u < a, 1.0, 0.0), after

    def small() -> Drawn:
        return choose(both(a < _TINY, b < _TINY), tiny, lambda: _johnk(stream, place, a, b))

    return choose(both(a <= 1.0, b <= 1.0), small, ratio)


def _johnk(stream: Stream, place: ir.Value, a: Real, b: Real) -> Drawn:
    """A beta number of two parameters that are not above 1."""

    def attempt(at: ir.Value) -> tuple[ir.Value, Drawn]:
        u, at = stream.uniform(at)
        v, at = stream.uniform(at)
        x, y = u.power(1.0 / a), v.power(1.0 / b)

        def by_logarithms() -> list[ir.Value]:
            # One of both is too small for a number.
            delta = u.of("log") / a - v.of("log") / b
            size = -delta.of("absf")
            rest = -size.of("exp").of("log1p")
            return [chosen(delta > 0.0, rest, delta + rest).of("exp").value]

        fine = both(x > 0.0, y > 0.0)
        (share,) = either(fine, [ir.F64Type.get()], lambda: [(x / (x + y)).value], by_logarithms)
        return both(x + y <= 1.0, u + v > 0.0), (Real(share), at)

    return stream.until(place, attempt)


def _cauchy(stream: Stream, place: ir.Value, given: list[Real]) -> Drawn:
    def body(_: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
        x, after = stream.normal(values[0])
        return [after, values[2], x.value]

    zero = Real(0.0).value
    after, x, y = carry(build.const_index(2), [place, zero, zero], body)
    return Real(x) / Real(y), after


def _weibull(stream: Stream, place: ir.Value, given: list[Real]) -> Drawn:
    """The exponential number that is raised to a power, none for an exponent of 0."""
    return choose(given[0].equals(0.0), lambda: (Real(0.0), place), lambda: stream.exponential(place))


def _root(x: ir.Value, a: ir.Value) -> ir.Value:
    return chosen(Real(a).equals(0.0), 0.0, Real(x).power(1.0 / Real(a))).value


GAMMA = Several(_standard_gamma, WORDS, (0,))
CAUCHY = Several(_cauchy, 2.06, ())

# By the distribution: of what, and how.
GAMMAS: dict[str, tuple[Several, Formula]] = {
    "standard_gamma": (GAMMA, lambda x, shape: x),
    "gamma": (GAMMA, lambda x, shape, scale: scaled(x, scale)),
    "invgamma": (GAMMA, lambda x, shape, scale: real("arith.divf", scale, x)),
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
