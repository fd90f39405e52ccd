# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws for devices: of a generator that counts, each number is computed from its place alone.

A uniform number takes one word of Philox. So all threads draw at once, the same numbers as NumPy does one
after the other. Where draws begin that take several words is found out first: normal and exponential numbers
(`device_ziggurats`), and what is made of several numbers (`device_streams`).

Integers between bounds for devices: NumPy's, all at once.

Each attempt takes 32 bits, or 64 where there are more integers than 32 bits have. Integers of 16 and of 8
bits take as many, the lowest ones first, of 32 that are the draws' own. An attempt gives no number where some
would come more often than others. How many attempts do follows from a running sum. Halves of words that are
left over are kept in the state.

Source: D. Lemire, "Fast random integer generation in an interval" (2019).

Counts of several words each for devices, as NumPy draws them.

Logarithms are those of the device. Where one decides whether an attempt gives a number, and both sides of the
comparison are as near as the last digit, the draw, and all after it, differ from NumPy's. Poisson numbers of
rates r from 10 on compare sums of terms as large as r log r: that is so at most once in 10**15 / (r log r)
draws.

Sources: W. Hormann, "The transformed rejection method for generating Poisson random variables" (1993);
A. Kemp, "Efficient generation of logarithmically distributed pseudo-random variables" (1981).
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
from graphc.lowering.carried import carry_while, either
from graphc.lowering.device_code.formulas import (
    MOST_TRIALS,
    OF_EXPONENTIAL,
    OF_NORMAL,
    OF_POSITIVE,
    OF_UNIFORM,
    Formula,
    Row,
    categorical,
    choice,
)
from graphc.lowering.device_code.philox import Halves, State, state_after, word, word_type
from graphc.lowering.device_code.ranks import Ranks
from graphc.lowering.device_code.streams import (
    GAMMAS,
    Drawn,
    DrawsOfSeveral,
    Several,
    Stream,
    choose,
    gamma,
)
from graphc.lowering.device_code.streams import WORDS as GAMMA_WORDS
from graphc.lowering.device_code.ziggurats import (
    EXPONENTIAL,
    EXPONENTIAL_FLOAT,
    FLOAT,
    NORMAL,
    NORMAL_FLOAT,
    Draws,
    Positive,
    Possible,
    PossibleAlike,
    Source,
    Uniforms,
    Ziggurat,
)
from graphc.lowering.partial_reductions import elementwise, position
from graphc.lowering.random import taken
from graphc.lowering.rules import ON_DEVICES, Conversion
from graphc_dialects._mlir import ir
from graphc_dialects.random import GENERATORS

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
    return converted(x, word_type())


def _saturated(x: ir.Value, *_: ir.Value) -> ir.Value:
    """The same; the largest one for numbers that are too large."""
    return build.select(x < _BEYOND, whole(x), _MOST)


def _steps(start: ir.Value, after: ir.Value) -> ir.Value:
    """Number of words between two places."""
    return build.as_f64(calls.number(after - start))


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
    """Number of uniform numbers whose product is above exp(-rate)."""
    least = build.math("exp", -rate)

    def goes_on(values: list[ir.Value]) -> ir.Value:
        return stream.is_inside(values[0]) & (least < values[1])

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
        quick = (rest >= 0.07) & (v <= quick_below)

        def by_density() -> list[ir.Value]:
            density = build.math("log", v) + log_share - build.math("log", a / (rest * rest) + b)
            whole_k = build.select(k < 0.0, 0.0, k)
            fine = density <= -rate + k * log - _log_gamma(whole_k + 1.0)
            return [(k >= 0.0) & fine & ~((rest < 0.013) & (rest < v))]

        (gives,) = either(quick, [quick.type], lambda: [quick], by_density)
        return gives, (k, at)

    return stream.until(place, attempt)


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

    values = [start, found]
    found = carry_while(values, lambda values: x < values[0], lower)[1]
    return build.select(x <= 2.0, 0.0, found)


def _geometric(stream: Stream, place: ir.Value, given: list[ir.Value]) -> Drawn:
    (p,) = given

    def by_search() -> Drawn:
        u, after = stream.uniform(place)

        def goes_on(values: list[ir.Value]) -> ir.Value:
            # Where no probability is left, rounding has left the sum below the number.
            return (values[1] < u) & (values[2] > 0.0)

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
        fails = ~one & several & ~((number >= 1.0) & (v > 0.0))
        x = build.select(one, 1.0, build.select(several, number, other))
        return ~fails, (x, build.select(one, at, after))

    return stream.until(place, attempt)


def _words(rate: float) -> float:
    """Bound on the words that Poisson numbers of a rate take on average; checks refuse negative rates."""
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


_HALF_BITS, _HALF_MASK = 32, (1 << 32) - 1
# At worst half of the attempts give no number; some more, so that there are always enough.
_QUARTERS, _MORE = 9, 256


class Integers:
    """The draws of an operation.

    Args:
        op: the operation.
        state: the generator's words before the draws, a tensor.
        extent: a tensor of one element: how far integers are from the lowest one at most; of their type.
        count: how many there are, an index.
    """

    def __init__(self, op: ir.Operation, state: ir.Value, extent: ir.Value, count: ir.Value) -> None:
        self._state, self._extent = state, extent
        self._type = ir.RankedTensorType(extent.type).element_type
        # Bits of an attempt that takes no whole word, and how many such have 32.
        self._part = min(ir.IntegerType(self._type).width, _HALF_BITS)
        self._parts = _HALF_BITS // self._part
        size = (count * _QUARTERS) // 4
        size = size + _MORE
        self._ranks = Ranks(op, size, lambda: self._attempt(position(0))[0])

    def number(self, draw: ir.Value, low: ir.Value) -> ir.Value:
        """A draw, in the body of a nest."""
        found = self._attempt(self._ranks.place(draw))[1]
        if found.type != low.type:
            found = converted(found, low.type)
        return found + low

    def after(self, place: ir.Value, count: ir.Value) -> ir.Value:
        """A word of the state after the draws, in the body of a nest."""
        extent, wide = self._bounds()
        attempts = build.select(extent.equals(0), 0, self._ranks.end(count))

        def of_halves() -> ir.Value:
            halves = (attempts + (self._parts - 1)) // self._parts
            return Halves(self._state).after(place, halves)

        return self._by_width(wide, lambda: state_after(State(self._state), place, attempts), of_halves)

    def _by_width(
        self, wide: ir.Value, of_words: Callable[[], ir.Value], of_halves: Callable[[], ir.Value]
    ) -> ir.Value:
        """Something for attempts that take whole words, or for others."""
        if self._type != word_type():
            return of_halves()
        return either(wide, [word_type()], lambda: [of_words()], lambda: [of_halves()])[0]

    def _bounds(self) -> tuple[ir.Value, ir.Value]:
        """The extent, and whether an attempt takes a whole word."""
        zero = build.const_index(0)
        rank = ir.RankedTensorType(self._extent.type).rank
        extent = self._extent[[zero] * rank]
        if self._type != word_type():
            extent = converted(extent, word_type())
        return extent, build.const_i64(_HALF_MASK).below(extent)

    def _attempt(self, place: ir.Value) -> tuple[ir.Value, ir.Value]:
        """1 if an attempt gives a number, else 0; and how far that is from the lowest one."""
        extent, wide = self._bounds()
        bits = self._bits(calls.number(place), wide)
        span = extent + 1
        low, high = build.create("arith.mului_extended", [word_type()] * 2, [bits, span]).results
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
            half = Halves(self._state).bits(number // self._parts)
            if self._parts == 1:
                return half
            shift = number % self._parts * self._part
            return (half >> shift) & ((1 << self._part) - 1)

        return self._by_width(wide, lambda: word(State(self._state), number), part)


# Parameters of which each draw takes an element, a draw by its number and these elements, and a word of the
# state after all draws.
Number: TypeAlias = "Callable[[ir.Value, Sequence[ir.Value]], ir.Value]"
Plan: TypeAlias = "tuple[list[ir.Value], Number, Callable[[ir.Value], ir.Value]]"

# Draws that take several words.
_SEVERAL = {**GAMMAS, **COUNTS}
# Draws of float32, of halves of words.
_FLOAT = "_f32"
_FLOATS: dict[str, Ziggurat | None] = {
    f"standard_uniform{_FLOAT}": None,
    f"standard_normal{_FLOAT}": NORMAL_FLOAT,
    f"standard_exponential{_FLOAT}": EXPONENTIAL_FLOAT,
}
# Of numbers that take a word, or as many as it takes.
_FORMULAS = {
    **OF_UNIFORM,
    **OF_POSITIVE,
    **OF_NORMAL,
    **OF_EXPONENTIAL,
    **dict.fromkeys(_FLOATS, lambda x: x),
    **{name: formula for name, (_, formula) in _SEVERAL.items()},
}
# Of a uniform number and a vector of probabilities.
_CHOICES: dict[str, Callable[[ir.Value, Row, ir.Value], ir.Value]] = {
    "categorical": categorical,
    "choice": choice,
}
# Which parameter is a probability, of draws that take no word if it is 0.
_SHARES = {"bernoulli": 0, "binomial": 1}
_INTEGERS = ("integers_64", "integers_32", "integers_16", "integers_8")


# Parameters that have to be the same for all draws.
_SAME = {**dict.fromkeys(_INTEGERS, (1,)), **{name: kind.same for name, (kind, _) in _SEVERAL.items()}}


def have_kernel(op: ir.Operation) -> bool:
    """True if draws are computed from their places: some distributions, of Philox.

    How many words a draw takes must not depend on what differs from draw to draw, except that some take none.
    Of binomial draws it is known for a few trials.
    """
    distribution = _distribution(op)
    words = ir.RankedTensorType(op.operands[0].type).shape[0]
    if GENERATORS[words] != "philox" or distribution not in (*_FORMULAS, *_CHOICES, *_INTEGERS):
        return False
    if distribution == "binomial":
        trials = _known(op.operands[1])
        return trials is not None and 0 < trials <= MOST_TRIALS
    return all(_is_same(op.operands[1 + number]) for number in _SAME.get(distribution, ()))


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
    draws, following = op.results
    inputs, number, after = _plan(context, op, parameters, sizes)

    def draw(given: Sequence[ir.Value]) -> ir.Value:
        place = build.const_index(0)
        for axis, size in enumerate(sizes):
            place = place * size + position(axis)
        return number(place, given)

    for result, shape, operands, body in (
        (draws, sizes, inputs, draw),
        (
            following,
            [build.const_index(state.type.shape[0])],
            [],
            lambda _: after(calls.number(position(0))),
        ),
    ):
        start = context.destinations.start(result, build.storage_type(result.type), shape)
        context.define(result, elementwise([context.tensor_of(x) for x in operands], start, body))


def _plan(context: Conversion, op: ir.Operation, parameters: list[ir.Value], sizes: list[ir.Value]) -> Plan:
    words, count = context.tensor_of(op.operands[0]), calls.product(sizes)
    distribution = _distribution(op)
    if not have_kernel(op):
        fail(op, f"draws of '{distribution}' with this generator are not computed by kernels of devices")
    if distribution in _INTEGERS:
        integers = Integers(op, words, context.tensor_of(parameters[1]), count)
        return (
            parameters[:1],
            lambda place, given: integers.number(place, given[0]),
            lambda place: integers.after(place, count),
        )
    source = _source(context, op, parameters, sizes, count)

    def after(place: ir.Value) -> ir.Value:
        if distribution in _FLOATS:
            return Halves(words).after(place, source.taken(count))
        return state_after(State(words), place, source.taken(count))

    choose = _CHOICES.get(distribution)
    if choose is None:
        formula = _FORMULAS[distribution]
        return parameters, lambda place, given: formula(source.number(place), *given), after
    chosen = choose

    def number(place: ir.Value, given: Sequence[ir.Value]) -> ir.Value:
        row = _row(context.tensor_of(parameters[0]))
        return chosen(source.number(place), row, context.sizes_of(parameters[0])[-1])

    return [], number, after


def _source(
    context: Conversion,
    op: ir.Operation,
    parameters: list[ir.Value],
    sizes: list[ir.Value],
    count: ir.Value,
) -> Source:
    """The numbers that draws are made of."""
    words, distribution = context.tensor_of(op.operands[0]), _distribution(op)
    if distribution in _SHARES:
        share = context.tensor_of(parameters[_SHARES[distribution]])
        if _is_same(share):
            return PossibleAlike(words, _row(share, 0))
        return Possible(op, words, share, sizes)
    if distribution in OF_POSITIVE:
        return Positive(op, words, count)
    if distribution in OF_NORMAL or distribution in OF_EXPONENTIAL:
        return Draws(op, NORMAL if distribution in OF_NORMAL else EXPONENTIAL, words, count)
    if distribution in _FLOATS:
        ziggurat = _FLOATS[distribution]
        return Uniforms(words, FLOAT) if ziggurat is None else Draws(op, ziggurat, words, count)
    if distribution in _SEVERAL:
        kind = _SEVERAL[distribution][0]
        given = [_row(context.tensor_of(parameters[number]), 0) for number in kind.same]
        average = kind.words_of([_known(op.operands[1 + number]) for number in kind.same])
        return DrawsOfSeveral(op, kind, words, count, lambda: [each() for each in given], average)
    return Uniforms(words)


def _row(tensor: ir.Value, rank: int = 1) -> Row:
    """The probabilities of the draw at hand; dimensions of size 1 serve all."""
    kind = ir.RankedTensorType(tensor.type)
    lead = list(kind.shape)[: kind.rank - rank]
    indices = [build.const_index(0) if size == 1 else position(axis) for axis, size in enumerate(lead)]
    return lambda *place: tensor[*indices, *place]
