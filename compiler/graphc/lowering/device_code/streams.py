# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers of the stream that draws on devices are made of: uniform, normal and exponential ones, one or more.

Uniform numbers take a word of the stream each, or none; those of float32 take halves of words. Normal and
exponential ones are NumPy's ziggurats, all at once. Exponentials and logarithms are those of the device:
numbers from tails may differ from NumPy's in the last digit.

Where draws take several words, what a draw at each word would take is found out for all words at once. An
orbit of the first word says at which one begins (`philox.Orbit`), and their positions are listed.

Source: G. Marsaglia, W. Tsang, "The ziggurat method for generating random variables" (2000), with NumPy's
tables.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from graphc.ir import build
from graphc.ir.value import as_index, converted, flag, larger, literal, smaller
from graphc.lowering import calls
from graphc.lowering.carried import carry, carry_while, either
from graphc.lowering.device_code.philox import (
    Bits,
    Orbit,
    Ranks,
    State,
    Words,
    here,
    running,
    vector_type,
    word_type,
    words_of,
)
from graphc.lowering.partial_reductions import elementwise, position
from graphc.lowering.structural import reshape
from graphc_dialects._mlir import ir
from graphc_runtime import npyrandom
from graphc_runtime.record import record

# Levels of a ziggurat, where the tails begin, and the inverse of that of the normal distribution.
_LEVELS = 256
_NORMAL_TAIL, _INVERSE = 3.6541528853610087963519472518, 0.27366123732975827203338247596
_EXPONENTIAL_TAIL = 7.69711747013104972
# Words for attempts that take more than one or give no number: of all draws 1 in so many powers of 2, where a
# normal one takes 1.023 on average, and an exponential one 1.034; some more; and for the last attempt.
_SHARE, _MORE, _LAST = 4, 256, 64
# Words of which one thread says where attempts begin, as bits; the words before from which it follows them:
# that it has not come to the stream's own beginnings by then happens once in 10**25 times; and the most words
# of an attempt that are told.
_GROUP, _BEFORE, _MOST = 6, 32, 127
# Words beyond those that draws take if no number is 0: each is 0 once in 2**53 times.
_SPARE = 8
# How many words an attempt takes, whether it gives a number, and the number.
Attempt: TypeAlias = "tuple[ir.Value, ir.Value, ir.Value]"


@record(frozen=True)
class Source:
    """Numbers of the stream, one a draw; all is asked for in the bodies of nests.

    Attributes:
        number: of a draw, an index, the number that it is made of.
        taken: how many words, or halves for float32, so many draws take, an i64.
    """

    number: Callable[[ir.Value], ir.Value]
    taken: Callable[[ir.Value], ir.Value]


@record(frozen=True)
class Format:
    """The format of the numbers: its name in NumPy's tables, and its dtype and that of bits.

    Attributes:
        mantissa: bits of a normal number.
        shift: how many bits of a word, or half a one, exponential numbers leave out.
        digits: of a uniform number, and how many bits it leaves out.
    """

    name: str
    dtype: str
    limit: str
    mantissa: int
    shift: int
    digits: tuple[int, int]

    @property
    def type(self) -> ir.Type:
        """The type of numbers."""
        return ir.F64Type.get() if self.dtype == "float64" else ir.F32Type.get()

    def bits(self, state: ir.Value, words: Bits | None, place: ir.Value) -> ir.Value:
        """The word, or the half, at a place after a state; `words` gives those that are there already."""
        if self.dtype == "float32":
            return State(state).half(place, words)
        return State(state).word(place) if words is None else words(place)

    def uniform(self, bits: ir.Value) -> ir.Value:
        """A number in [0, 1)."""
        return converted(bits >> self.digits[1], self.type) * 2.0 ** -self.digits[0]

    def rounded(self, function: str, x: ir.Value) -> ir.Value:
        """A function, computed in float64 and rounded, as the C library's of float32 nearly always are."""
        return converted(build.math(function, wide(x)), self.type)

    def log_of_rest(self, bits: ir.Value) -> ir.Value:
        """The logarithm of 1 - u, of a uniform number u."""
        return self.rounded("log1p", -self.uniform(bits))

    def table(self, name: str, of_bits: bool) -> ir.Value:
        """One of NumPy's tables, as a tensor."""
        dtype = np.dtype(self.limit if of_bits else self.dtype)
        address = npyrandom.address(f"{name}_{self.name}")
        raw = (ctypes.c_char * (dtype.itemsize * _LEVELS)).from_address(address).raw
        table = np.frombuffer(raw, dtype)
        kind = ir.RankedTensorType.get([_LEVELS], word_type() if of_bits else self.type)
        value = ir.DenseElementsAttr.get(table.astype(np.int64) if of_bits else table, type=kind)
        return build.create("arith.constant", [kind], [], value=value).result


DOUBLE = Format("double", "float64", "uint64", 0x000FFFFFFFFFFFFF, 3, (53, 11))
FLOAT = Format("float", "float32", "uint32", 0x007FFFFF, 1, (24, 8))


def wide(x: ir.Value) -> ir.Value:
    """A number in float64."""
    return converted(x, ir.F64Type.get())


# -- of one uniform number ----------------------------------------------------------------------------------


def uniforms(state: ir.Value, kind: Format = DOUBLE) -> Source:
    """A number in [0, 1) a draw."""
    return Source(lambda draw: kind.uniform(kind.bits(state, None, calls.number(draw))), calls.number)


def _uniform(state: ir.Value, place: ir.Value) -> ir.Value:
    return DOUBLE.uniform(State(state).word(place))


def positive(op: ir.Operation, state: ir.Value, count: ir.Value) -> Source:
    """A number in (0, 1) for each of so many draws: words that stand for 0 are left out."""

    def gives() -> ir.Value:
        return converted(build.const_i64(0).below(State(state).word(here()) >> 11), word_type())

    ranks = Ranks(op, count + _SPARE, gives)
    return Source(lambda draw: _uniform(state, calls.number(ranks.place(draw))), ranks.end)


def possible_alike(state: ir.Value, share: Callable[[], ir.Value]) -> Source:
    """A number in [0, 1) a draw, or for none, where their probability is 0."""
    return Source(uniforms(state).number, lambda count: build.select(share() > 0.0, calls.number(count), 0))


def possible(op: ir.Operation, state: ir.Value, share: ir.Value, sizes: list[ir.Value]) -> Source:
    """A number in [0, 1) for each draw whose probability is not 0; the others take no word.

    Probabilities are repeated along dimensions in which their type has 1, up to the sizes of the draws.
    """
    count = calls.product(sizes)
    kind = ir.RankedTensorType.get([build.DYNAMIC] * len(sizes), word_type())
    some = elementwise(
        [share], build.empty(kind, sizes), lambda given: converted(given[0] > 0.0, word_type())
    )
    until = running(op, reshape(some, vector_type(), [count]), count)

    def number(draw: ir.Value) -> ir.Value:
        # A draw that takes no word may look at any.
        place = until[draw] - 1
        return _uniform(state, build.select(calls.number(draw).below(place), 0, place))

    def taken(count: ir.Value) -> ir.Value:
        none, last, zero = count.equals(0), count - 1, build.const_i64(0)
        return either(none, [word_type()], lambda: [zero], lambda: [until[last]])[0]

    return Source(number, taken)


# -- of ziggurats -------------------------------------------------------------------------------------------


@record(frozen=True)
class Ziggurat:
    """A distribution: its letter in the names of NumPy's tables, an attempt, and the format of numbers."""

    letter: str
    attempt: Callable[[Format, Bits, ir.Value, list[ir.Value]], Attempt]
    format: Format

    def tables(self) -> list[ir.Value]:
        """The tables of limits, widths and heights of levels, as tensors."""
        return [self.format.table(f"{kind}{self.letter}", kind == "k") for kind in "kwf"]

    def attempt_at(self, words: Bits, place: ir.Value, tables: list[ir.Value]) -> Attempt:
        """Result of the attempt at a place, an index, with the tables."""
        return self.attempt(self.format, words, place, tables)


class Draws:
    """So many draws, an index, of a ziggurat; a `Source`.

    A draw begins with one word. Nearly always that is all; else it takes more words, or begins again after
    them. So where a draw begins depends on those before. But attempts that begin one after the other at any
    word come to a beginning of the stream's own soon, as 99 of 100 take one word, and follow it from there.
    All threads find out what an attempt at their word would take, and whether it gives a number; then, for
    some words each, from a few words before on, which of them attempts begin at. The positions of those that
    give numbers are listed, and each draw looks up where it is.
    """

    def __init__(self, op: ir.Operation, of: Ziggurat, state: ir.Value, count: ir.Value) -> None:
        self._of, self._tables = of, of.tables()
        self._size = count + (count >> _SHARE) + _MORE
        self._length = self._size + _LAST
        self._state, self._words = state, Words(state, self._length)
        self._codes = words_of(self._size, self._code, 8)
        self._begins = words_of((self._size + ((1 << _GROUP) - 1)) >> _GROUP, self._begin)
        self._ranks = Ranks(op, self._size, self._gives)

    def number(self, draw: ir.Value) -> ir.Value:
        """A draw, in the body of a nest."""
        return self._attempt(self._ranks.place(draw))[2]

    def taken(self, count: ir.Value) -> ir.Value:
        """Number of words that so many draws take, in the body of a nest; an i64."""
        return self._ranks.end(count, self._width)

    def _attempt(self, place: ir.Value) -> Attempt:
        last = self._length - 1

        def bits(at: ir.Value) -> ir.Value:
            return self._of.format.bits(self._state, self._words.word, calls.number(smaller(at, last)))

        return self._of.attempt_at(bits, place, self._tables)

    def _code(self) -> ir.Value:
        """Code of an attempt: twice the words that it takes, plus one if it gives a number."""
        taken, gives, _ = self._attempt(position(0))
        return (smaller(taken, _MOST) << 1) + converted(gives, word_type())

    def _code_of(self, place: ir.Value) -> ir.Value:
        return converted(self._codes[place], word_type())

    def _width(self, place: ir.Value) -> ir.Value:
        return self._code_of(place) >> 1

    def _begin(self) -> ir.Value:
        """A bit for each word of a group: 1 if an attempt begins there."""
        first = calls.number(position(0) << _GROUP)
        stop = smaller(first + (1 << _GROUP), calls.number(self._size))

        def step(values: list[ir.Value]) -> list[ir.Value]:
            at, bits = values
            bit = build.select(at < first, 0, build.const_i64(1) << (at - first))
            return [at + self._width(as_index(at)), bits | bit]

        start = larger(first - _BEFORE, 0)
        return carry_while([start, build.const_i64(0)], lambda values: values[0] < stop, step)[1]

    def _gives(self) -> ir.Value:
        """1 for words at which attempts that give numbers begin."""
        place = position(0)
        begins = self._begins[place >> _GROUP] >> calls.number(place & ((1 << _GROUP) - 1))
        return begins & self._code_of(place) & 1


def _normal(fmt: Format, words: Bits, place: ir.Value, tables: list[ir.Value]) -> Attempt:
    """NumPy's `random_standard_normal`, one round of its loop."""
    bits = words(place)
    level, rest = as_index(bits & (_LEVELS - 1)), bits >> 8
    size = (rest >> 1) & fmt.mantissa
    x = converted(size, fmt.type) * tables[1][level]
    x = build.select((rest & 1).equals(1), -x, x)

    def tail() -> Attempt:
        def pair(at: ir.Value) -> tuple[ir.Value, ir.Value]:
            logs = [fmt.log_of_rest(words(at + i)) for i in range(2)]
            return literal(-_INVERSE, fmt.type) * logs[0], -logs[1]

        def fails(values: list[ir.Value]) -> ir.Value:
            xx, yy = pair(values[0])
            return ~(xx * xx < yy + yy)

        (found,) = carry_while([place + 1], fails, lambda values: [values[0] + 2])
        far = literal(_NORMAL_TAIL, fmt.type) + pair(found)[0]
        low = ((size >> 8) & 1).equals(1)
        return calls.number(found + 2 - place), flag(True), build.select(low, -far, far)

    def density() -> ir.Value:
        # Of float32, too, NumPy takes the exponential in float64.
        exact = wide(x)
        return build.math("exp", -0.5 * exact * exact)

    return _by_level(fmt, words, place, tables, level, size, x, tail, density)


def _exponential(fmt: Format, words: Bits, place: ir.Value, tables: list[ir.Value]) -> Attempt:
    """NumPy's `random_standard_exponential`, one round of its recursion."""
    bits = words(place) >> fmt.shift
    level, size = as_index(bits & (_LEVELS - 1)), bits >> 8
    x = converted(size, fmt.type) * tables[1][level]

    def tail() -> Attempt:
        log = fmt.log_of_rest(words(place + 1))
        return build.const_i64(2), flag(True), literal(_EXPONENTIAL_TAIL, fmt.type) - log

    return _by_level(fmt, words, place, tables, level, size, x, tail, lambda: fmt.rounded("exp", -x))


def _by_level(
    fmt: Format,
    words: Bits,
    place: ir.Value,
    tables: list[ir.Value],
    level: ir.Value,
    size: ir.Value,
    x: ir.Value,
    tail: Callable[[], Attempt],
    density: Callable[[], ir.Value],
) -> Attempt:
    """A number inside its level is taken; else one of the tail is drawn, or a second word decides whether it
    is between the level and the curve.
    """
    limits, _, heights = tables

    def edge() -> Attempt:
        curve = density()
        step = heights[level - 1] - heights[level]
        height = step * fmt.uniform(words(place + 1)) + heights[level]
        return build.const_i64(2), wide(height) < wide(curve), x

    def rare() -> Sequence[ir.Value]:
        return either(level.equals(0), kinds, tail, edge)

    kinds, common = [word_type(), word_type(1), x.type], size.below(limits[level])
    taken, gives, value = either(common, kinds, lambda: (build.const_i64(1), flag(True), x), rare)
    return taken, gives, value


NORMAL, EXPONENTIAL = Ziggurat("i", _normal, DOUBLE), Ziggurat("e", _exponential, DOUBLE)
NORMAL_FLOAT, EXPONENTIAL_FLOAT = Ziggurat("i", _normal, FLOAT), Ziggurat("e", _exponential, FLOAT)


# -- of several numbers -------------------------------------------------------------------------------------

# How much longer than expected the stream is, a share of it, and some words. Draws take more words than that
# once in 10**19 times at most.
_SHARE_OF_SEVERAL, _MORE_OF_SEVERAL = 16, 768


class Stream:
    """The numbers of a draw, one after the other, in the body of a nest.

    Args:
        words: of the stream.
        length: how many there are, an index.

    Attributes:
        at: the place of the next word, an index.
    """

    def __init__(self, words: Words, length: ir.Value) -> None:
        self._words, self._length = words, length
        self._tables = {each.letter: each.tables() for each in (NORMAL, EXPONENTIAL)}
        self.at = length

    def _word(self, place: ir.Value) -> ir.Value:
        return self._words.word(calls.number(smaller(place, self._length - 1)))

    def uniform(self) -> ir.Value:
        """A number in [0, 1)."""
        x = DOUBLE.uniform(self._word(self.at))
        self.at = self.at + 1
        return x

    def normal(self) -> ir.Value:
        """A standard normal number."""
        return self._number(NORMAL)

    def exponential(self) -> ir.Value:
        """A standard exponential number."""
        return self._number(EXPONENTIAL)

    def _number(self, ziggurat: Ziggurat) -> ir.Value:
        def attempt() -> tuple[ir.Value, ir.Value]:
            taken, gives, x = ziggurat.attempt_at(self._word, self.at, self._tables[ziggurat.letter])
            self.at = self.at + as_index(taken)
            return gives, x

        return self.until(attempt)

    def is_inside(self, place: ir.Value) -> ir.Value:
        """True if a place is one of a word."""
        return place < self._length

    def until(self, attempt: Callable[[], tuple[ir.Value, ir.Value]]) -> ir.Value:
        """The number of the first of some attempts that says that it gives one.

        There are none beyond the end of the words, where no draw begins.
        """

        def step(values: list[ir.Value]) -> list[ir.Value]:
            self.at = values[0]
            gives, x = attempt()
            return [self.at, ~gives, x]

        self.at, _, x = carry_while(
            [self.at, flag(True), build.const_f64(0.0)],
            lambda values: self.is_inside(values[0]) & values[1],
            step,
        )
        return x

    def choose(
        self, condition: ir.Value, then: Callable[[], ir.Value], otherwise: Callable[[], ir.Value]
    ) -> ir.Value:
        """One of two numbers, of which only that one is drawn."""
        start = self.at

        def run(draw: Callable[[], ir.Value]) -> list[ir.Value]:
            self.at = start
            x = draw()
            return [x, self.at]

        kinds = [ir.F64Type.get(), build.index_type()]
        x, self.at = either(condition, kinds, lambda: run(then), lambda: run(otherwise))
        return x

    def two(self, draw: Callable[[ir.Value], ir.Value]) -> tuple[ir.Value, ir.Value]:
        """Two numbers, of which the code is there once; it takes whether it is the first."""

        def body(number: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
            self.at = values[0]
            x = draw(number.equals(0))
            return [self.at, values[2], x]

        zero = build.const_f64(0.0)
        self.at, x, y = carry(2, [self.at, zero, zero], body)
        return x, y


@record(frozen=True)
class Several:
    """A distribution whose draws take several words.

    Attributes:
        draw: gives a number of the stream, with the parameters.
        words: how many words a draw takes on average, at most, whatever the parameters are.
        same: which parameters `draw` needs, which say how many words it takes; all draws have the same.
        known: of these, if they are known, how many words a draw takes on average, at most.
    """

    draw: Callable[..., ir.Value]
    words: float
    same: tuple[int, ...]
    known: Callable[..., float] | None = None

    def words_of(self, given: list[float | None]) -> float:
        """Bound on the average number of words of a draw, of parameters as far as they are known."""
        return self.words if self.known is None or None in given else self.known(*given)

    def source(
        self,
        op: ir.Operation,
        state: ir.Value,
        count: ir.Value,
        given: Callable[[], list[ir.Value]],
        words: float,
    ) -> Source:
        """So many draws, an index, with parameters that are given in the bodies of nests.

        A draw takes so many words on average, at most.
        """
        size = (count * math.ceil(words * (_SHARE_OF_SEVERAL + 1))) // _SHARE_OF_SEVERAL + _MORE_OF_SEVERAL
        length = size + _LAST
        stream = Stream(Words(state, length), length)

        def drawn(place: ir.Value) -> ir.Value:
            stream.at = place
            return self.draw(stream, *given())

        def width() -> ir.Value:
            place = position(0)
            drawn(place)
            return calls.number(stream.at - place)

        widths = words_of(size, width)
        ranks = Ranks(op, size, Orbit(widths, size).begins)

        def taken(count: ir.Value) -> ir.Value:
            zero = build.const_i64(0)
            none = calls.number(count).equals(0)
            place = ranks.place(build.select(none, 0, count - 1))
            width = widths[place]
            return build.select(none | width.equals(0), zero, calls.number(place) + width)

        return Source(lambda draw: drawn(ranks.place(draw)), taken)
