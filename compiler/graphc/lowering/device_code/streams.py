# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws for devices that take several words of the stream one after the other.

A draw is a function of the word at which it begins, so that it is known for each word what a draw there would
take. `ranks.Orbit` finds those at which one begins, and a running sum numbers them. All draws share the
parameters that say how many words they take.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from graphc.ir import build
from graphc.ir.value import as_index, literal, smaller
from graphc.lowering import calls
from graphc.lowering.carried import carry, carry_while, either
from graphc.lowering.device_code.formulas import Formula, affine, half, inverse, scaled
from graphc.lowering.device_code.philox import Words, uniform
from graphc.lowering.device_code.ranks import Orbit, Ranks, words_of
from graphc.lowering.device_code.ziggurats import EXPONENTIAL, NORMAL, Ziggurat
from graphc.lowering.partial_reductions import position
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# How much longer than expected the stream is, a share of it, and some words; words after it that are read.
# Draws take more words than that once in 10**19 times at most.
_SHARE, _MORE, _LAST = 16, 768, 64

# A number, and the place of the word after those that it took.
Drawn: TypeAlias = "tuple[ir.Value, ir.Value]"
# Parameters, in the body of a nest.
Given: TypeAlias = "Callable[[], list[ir.Value]]"


class Stream:
    """Words by their place, an index, in the bodies of nests.

    Args:
        words: they.
        length: how many there are, an index.
    """

    def __init__(self, words: Words, length: ir.Value) -> None:
        self._words, self._length = words, length
        self._tables = {each.letter: each.tables() for each in (NORMAL, EXPONENTIAL)}

    def _word(self, place: ir.Value) -> ir.Value:
        return self._words.word(calls.number(smaller(place, self._length - 1)))

    def uniform(self, place: ir.Value) -> Drawn:
        """A number in [0, 1)."""
        return uniform(self._word(place)), place + 1

    def normal(self, place: ir.Value) -> Drawn:
        """A standard normal number."""
        return self._number(NORMAL, place)

    def exponential(self, place: ir.Value) -> Drawn:
        """A standard exponential number."""
        return self._number(EXPONENTIAL, place)

    def _number(self, ziggurat: Ziggurat, place: ir.Value) -> Drawn:
        def attempt(at: ir.Value) -> tuple[ir.Value, Drawn]:
            taken, gives, x = ziggurat.attempt_at(self._word, at, self._tables[ziggurat.letter])
            return gives, (x, at + as_index(taken))

        return self.until(place, attempt)

    def is_inside(self, place: ir.Value) -> ir.Value:
        """True if a place is one of a word."""
        return place < self._length

    def until(self, place: ir.Value, attempt: Callable[[ir.Value], tuple[ir.Value, Drawn]]) -> Drawn:
        """The number of the first of some attempts, one after the other, that says that it gives one.

        There are none beyond the end of the words, where no draw begins.
        """
        bit = ir.IntegerType.get_signless(1)
        fails = literal(1, bit)

        def goes_on(values: list[ir.Value]) -> ir.Value:
            return self.is_inside(values[0]) & values[1]

        def step(values: list[ir.Value]) -> list[ir.Value]:
            gives, (x, after) = attempt(values[0])
            return [after, ~gives, x]

        after, _, x = carry_while([place, fails, build.const_f64(0.0)], goes_on, step)
        return x, after


@record(frozen=True)
class Several:
    """A distribution whose draws take several words.

    Attributes:
        draw: gives a number of the stream, the place where it begins, and the parameters.
        words: how many words a draw takes on average, at most, whatever the parameters are.
        same: which parameters `draw` needs; all draws have the same.
        known: of these, if they are known, how many words a draw takes on average, at most.
    """

    draw: Callable[[Stream, ir.Value, list[ir.Value]], Drawn]
    words: float
    same: tuple[int, ...]
    known: Callable[..., float] | None = None

    def words_of(self, given: list[float | None]) -> float:
        """Bound on the average number of words of a draw.

        Args:
            given: the parameters that it needs, as far as they are known.
        """
        return self.words if self.known is None or None in given else self.known(*given)


class DrawsOfSeveral:
    """The draws of an operation.

    Args:
        op: the operation.
        kind: of what.
        state: the generator's words before the draws, a tensor.
        count: how many there are, an index.
        given: gives the parameters that all draws have.
        words: how many words a draw takes on average, at most.
    """

    def __init__(
        self, op: ir.Operation, kind: Several, state: ir.Value, count: ir.Value, given: Given, words: float
    ) -> None:
        self._kind, self._given = kind, given
        size = count * math.ceil(words * (_SHARE + 1))
        size = size // _SHARE
        size = size + _MORE
        length = size + _LAST
        self._stream = Stream(Words(state, length), length)
        self._widths = words_of(size, self._width)
        self._ranks = Ranks(op, size, Orbit(self._widths, size).begins)

    def number(self, draw: ir.Value) -> ir.Value:
        """A draw, in the body of a nest."""
        return self._draw(self._ranks.place(draw))[0]

    def taken(self, count: ir.Value) -> ir.Value:
        """Number of words that so many draws take, in the body of a nest; an i64."""
        none, zero = calls.number(count).equals(0), build.const_i64(0)
        place = self._ranks.place(build.select(none, 0, count - 1))
        width = self._widths[place]
        none = none | width.equals(0)
        return build.select(none, zero, calls.number(place) + width)

    def _draw(self, place: ir.Value) -> Drawn:
        return self._kind.draw(self._stream, place, self._given())

    def _width(self) -> ir.Value:
        here = position(0)
        return calls.number(self._draw(here)[1] - here)


# -- gamma numbers, and what is made of them ----------------------------------------------------------------
# NumPy's, in the order of its operations. Logarithms and powers are those of the device. Where one decides
# whether an attempt gives a number, and both sides of the comparison are as near as the last digit, the draw,
# and all after it, differ from NumPy's: less than once in 10**14 draws, up to a shape of 10**4. Sources:
# G. Marsaglia, W. Tsang, "A simple method for generating gamma variables" (2000); J. Ahrens, U. Dieter,
# "Computer methods for sampling from gamma, beta, Poisson and binomial distributions" (1974); M. Johnk,
# "Erzeugung von betaverteilten und gammaverteilten Zufallszahlen" (1964).

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
        return some & gives, (b * v, build.select(some, after, at))

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


def _gamma_of(shape: Callable[..., ir.Value]) -> Callable[..., Drawn]:
    """A standard gamma number, whose shape follows from the parameters."""
    return lambda stream, place, given: gamma(stream, place, shape(*given))


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
        return choose((a < _TINY) & (b < _TINY), tiny, lambda: _johnk(stream, place, a, b))

    return choose((a <= 1.0) & (b <= 1.0), small, ratio)


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

        fine = (x > 0.0) & (y > 0.0)
        (share,) = either(fine, [ir.F64Type.get()], lambda: [(x / (x + y))], by_logarithms)
        return (x + y <= 1.0) & (u + v > 0.0), (share, at)

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


GAMMA = Several(_gamma_of(lambda shape: shape), WORDS, (0,))
CAUCHY = Several(_cauchy, 2.06, ())

# By the distribution: of what, and how.
GAMMAS: dict[str, tuple[Several, Formula]] = {
    "standard_gamma": (GAMMA, lambda x, shape: x),
    "gamma": (GAMMA, lambda x, shape, scale: scaled(x, scale)),
    "invgamma": (GAMMA, lambda x, shape, scale: scale / x),
    "gengamma": (Several(_gamma_of(lambda alpha, p: alpha / p), WORDS, (0, 1)), _powers),
    "chisquare": (Several(_gamma_of(lambda df: df / 2.0), WORDS, (0,)), lambda x, df: 2.0 * x),
    "standard_t": (Several(_student, WORDS + 1.03, (0,)), lambda x, df: x),
    "t": (Several(_student, WORDS + 1.03, (0,)), lambda x, df, loc, scale: affine(x, loc, scale)),
    "f": (Several(_f, 2 * WORDS, (0, 1)), lambda x, above, below: x),
    "beta": (Several(_beta, 2 * WORDS, (0, 1)), lambda x, a, b: x),
    "standard_cauchy": (CAUCHY, lambda x: x),
    "cauchy": (CAUCHY, affine),
    "halfcauchy": (CAUCHY, half),
    "weibull": (Several(_weibull, 1.04, (0,)), _root),
}
