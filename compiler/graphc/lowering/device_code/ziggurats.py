# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers of the stream that draws on devices are made of: uniform, normal and exponential ones.

Uniform numbers take a word of the stream each, or none; those of float32 take halves of words. Normal and
exponential ones are NumPy's ziggurats, all at once.

A draw begins with one word. Nearly always that is all; else it takes more words, or begins again after them.
So where a draw begins depends on those before. But attempts that begin one after the other at any word come
to a beginning of the stream's own soon, as 99 of 100 take one word, and follow it from there. All threads
find out what an attempt at their word would take, and whether it gives a number; then, for some words each,
from a few words before on, which of them attempts begin at. The positions of those that give numbers are
listed, and each draw looks up where it is.

Exponentials and logarithms are those of the device: numbers from
tails may differ from NumPy's in the last digit.

Source: G. Marsaglia, W. Tsang, "The ziggurat method for generating random variables" (2000), with NumPy's
tables.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeAlias

import numpy as np

from graphc.ir import build
from graphc.ir.value import as_index, converted, larger, literal, smaller
from graphc.lowering import calls
from graphc.lowering.carried import carry_while, either
from graphc.lowering.device_code import philox
from graphc.lowering.device_code.philox import Halves, State, uniform, uniform_of_half, word, word_type
from graphc.lowering.device_code.ranks import Ranks, running, words_of
from graphc.lowering.partial_reductions import elementwise, position
from graphc.lowering.structural import reshape
from graphc_dialects._mlir import ir
from graphc_runtime import npyrandom
from graphc_runtime.record import record

# Where the tails begin, and the inverse of that of the normal distribution.
_NORMAL_TAIL, _INVERSE = 3.6541528853610087963519472518, 0.27366123732975827203338247596
_EXPONENTIAL_TAIL = 7.69711747013104972
# Words for attempts that take more than one or give no number: of all draws 1 in so many powers of 2, where a
# normal one takes 1.023 on average, and an exponential one 1.034; some more; and for the last attempt.
_SHARE, _MORE, _LAST = 4, 256, 64
# Words of which one thread says where attempts begin, as bits; the words before from which it follows them:
# that it has not come to the stream's own beginnings by then happens once in 10**25 times; and the most words
# of an attempt that are told.
_GROUP, _BEFORE, _MOST = 6, 32, 127
# How many words an attempt takes, whether it gives a number, and the number.
Attempt: TypeAlias = "tuple[ir.Value, ir.Value, ir.Value]"
# The word, or the half, at a place.
Words: TypeAlias = "Callable[[ir.Value], ir.Value]"


# Of a ziggurat.
LEVELS = 256


@record(frozen=True)
class Format:
    """The format of the numbers.

    Attributes:
        name: in the names of NumPy's tables.
        dtype, limit: dtypes of these; of numbers, and of bits.
        mantissa: bits of a normal number.
        shift: how many bits of a word, or half a one, exponential numbers leave out.
        bits: of a state, and the word at each place after it, the word, or the half, at a place.
        uniform: a number in [0, 1) of these.
    """

    name: str
    dtype: str
    limit: str
    mantissa: int
    shift: int
    bits: Callable[[ir.Value, Words, ir.Value], ir.Value]
    uniform: Callable[[ir.Value], ir.Value]

    def type(self) -> ir.Type:
        """The type of numbers."""
        return ir.F64Type.get() if self.dtype == "float64" else ir.F32Type.get()

    def constant(self, value: float) -> ir.Value:
        """A number."""
        return literal(value, self.type())

    def convert(self, count: ir.Value) -> ir.Value:
        """An i64 as a number."""
        return converted(count, self.type())

    def rounded(self, function: str, x: ir.Value) -> ir.Value:
        """A function, computed in float64 and rounded, as the C library's of float32 nearly always are."""
        return converted(build.math(function, wide(x)), self.type())

    def table(self, name: str, of_bits: bool) -> ir.Value:
        """One of NumPy's tables, as a tensor."""
        dtype = np.dtype(self.limit if of_bits else self.dtype)
        address = npyrandom.address(f"{name}_{self.name}")
        raw = (ctypes.c_char * (dtype.itemsize * LEVELS)).from_address(address).raw
        table = np.frombuffer(raw, dtype)
        kind = ir.RankedTensorType.get([LEVELS], word_type() if of_bits else self.type())
        value = ir.DenseElementsAttr.get(table.astype(np.int64) if of_bits else table, type=kind)
        return build.create("arith.constant", [kind], [], value=value).result


def wide(x: ir.Value) -> ir.Value:
    """A number in float64."""
    return converted(x, ir.F64Type.get())


def _word(state: ir.Value, words: Words, place: ir.Value) -> ir.Value:
    return words(place)


def _half(state: ir.Value, words: Words, place: ir.Value) -> ir.Value:
    return Halves(state, words).bits(place)


DOUBLE = Format("double", "float64", "uint64", 0x000FFFFFFFFFFFFF, 3, _word, uniform)
FLOAT = Format("float", "float32", "uint32", 0x007FFFFF, 1, _half, uniform_of_half)


# Words beyond those that draws take if no number is 0: each is 0 once in 2**53 times.
_SPARE = 8


class Source(Protocol):
    """Numbers of the stream, one a draw; all is asked for in the bodies of nests."""

    def number(self, draw: ir.Value) -> ir.Value:
        """The number that a draw, an index, is made of."""

    def taken(self, count: ir.Value) -> ir.Value:
        """Number of words, or halves for float32, that so many draws take, an i64."""


class Uniforms:
    """A number in [0, 1) a draw.

    Args:
        state: the generator's words before the draws, a tensor.
        kind: of what.
    """

    def __init__(self, state: ir.Value, kind: Format = DOUBLE) -> None:
        self._state, self._kind = state, kind

    def number(self, draw: ir.Value) -> ir.Value:
        state = self._state
        return self._kind.uniform(self._kind.bits(state, partial(word, State(state)), calls.number(draw)))

    def taken(self, count: ir.Value) -> ir.Value:
        return calls.number(count)


class Positive:
    """A number in (0, 1) a draw: words that stand for 0 are left out.

    Args:
        op: the operation.
        state: the generator's words before the draws, a tensor.
        count: how many there are, an index.
    """

    def __init__(self, op: ir.Operation, state: ir.Value, count: ir.Value) -> None:
        self._state = state
        self._ranks = Ranks(op, count + _SPARE, self._gives)

    def _gives(self) -> ir.Value:
        bits = word(State(self._state), calls.number(position(0))) >> 11
        return converted(build.const_i64(0).below(bits), word_type())

    def number(self, draw: ir.Value) -> ir.Value:
        return uniform(word(State(self._state), calls.number(self._ranks.place(draw))))

    def taken(self, count: ir.Value) -> ir.Value:
        return self._ranks.end(count)


class PossibleAlike(Uniforms):
    """A number in [0, 1) a draw, or for none, where their probability is 0.

    Args:
        state: the generator's words before the draws, a tensor.
        share: gives the probability.
    """

    def __init__(self, state: ir.Value, share: Callable[[], ir.Value]) -> None:
        super().__init__(state)
        self._share = share

    def taken(self, count: ir.Value) -> ir.Value:
        return build.select(self._share() > 0.0, calls.number(count), 0)


class Possible:
    """A number in [0, 1) for each draw whose probability is not 0; the others take no word.

    Args:
        op: the operation.
        state: the generator's words before the draws, a tensor.
        share: the probabilities, a tensor that is repeated along dimensions in which its type has 1.
        sizes: of the draws.
    """

    def __init__(self, op: ir.Operation, state: ir.Value, share: ir.Value, sizes: list[ir.Value]) -> None:
        self._state = state
        count = calls.product(sizes)
        kind = ir.RankedTensorType.get([build.DYNAMIC] * len(sizes), word_type())
        some = elementwise([share], build.empty(kind, sizes), lambda given: _is_positive(given[0]))
        vector = ir.RankedTensorType.get([build.DYNAMIC], word_type())
        self._until = running(op, reshape(some, vector, [count]), count)

    def number(self, draw: ir.Value) -> ir.Value:
        # A draw that takes no word may look at any.
        place = self._until[draw] - 1
        none = calls.number(draw).below(place)
        return uniform(word(State(self._state), build.select(none, 0, place)))

    def taken(self, count: ir.Value) -> ir.Value:
        none = count.equals(0)
        last = count - 1
        zero = build.const_i64(0)
        return either(none, [word_type()], lambda: [zero], lambda: [self._until[last]])[0]


def _is_positive(share: ir.Value) -> ir.Value:
    return converted(share > 0.0, word_type())


@record(frozen=True)
class Ziggurat:
    """A distribution.

    Attributes:
        letter: in the names of NumPy's tables.
        attempt: what an attempt at a place gives, with the tables.
        format: of the numbers.
    """

    letter: str
    attempt: Callable[[Format, Words, ir.Value, list[ir.Value]], Attempt]
    format: Format

    def tables(self) -> list[ir.Value]:
        """The tables of limits, widths and heights of levels, as tensors."""
        return [self.format.table(f"{kind}{self.letter}", kind == "k") for kind in "kwf"]

    def attempt_at(self, words: Words, place: ir.Value, tables: list[ir.Value]) -> Attempt:
        """Result of the attempt at a place, with the tables."""
        return self.attempt(self.format, words, place, tables)


class Draws:
    """The draws of an operation, of one ziggurat.

    Args:
        op: the operation.
        ziggurat: of what.
        state: the generator's words before the draws, a tensor.
        count: how many there are, an index.
    """

    def __init__(
        self,
        op: ir.Operation,
        ziggurat: Ziggurat,
        state: ir.Value,
        count: ir.Value,
    ) -> None:
        self._of = ziggurat
        self._tables = ziggurat.tables()
        self._size = count + (count >> _SHARE) + _MORE
        self._length = self._size + _LAST
        self._state, self._words = state, philox.Words(state, self._length)
        self._codes = words_of(self._size, self._code, 8)
        groups = (self._size + ((1 << _GROUP) - 1)) >> _GROUP
        self._begins = words_of(groups, self._begin)
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
        size = calls.number(self._size)
        stop = smaller(first + (1 << _GROUP), size)

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


# -- attempts -----------------------------------------------------------------------------------------------


def _true(value: bool = True) -> ir.Value:
    return literal(int(value), ir.IntegerType.get_signless(1))


def _inside_level(
    fmt: Format,
    words: Words,
    place: ir.Value,
    x: ir.Value,
    level: ir.Value,
    heights: ir.Value,
    density: ir.Value,
) -> Attempt:
    """Between the level and the curve: a second word decides."""
    step = heights[level - 1] - heights[level]
    height = step * fmt.uniform(words(place + 1))
    height = height + heights[level]
    return build.const_i64(2), wide(height) < wide(density), x


def _normal(fmt: Format, words: Words, place: ir.Value, tables: list[ir.Value]) -> Attempt:
    """NumPy's `random_standard_normal`, one round of its loop."""
    limits, widths, heights = tables
    bits = words(place)
    level = as_index(bits & (LEVELS - 1))
    rest = bits >> 8
    size = (rest >> 1) & fmt.mantissa
    x = fmt.convert(size) * widths[level]
    x = build.select((rest & 1).equals(1), -x, x)

    def tail() -> Attempt:
        def pair(at: ir.Value) -> tuple[ir.Value, ir.Value]:
            logs = [_log_of_rest(fmt, words(at + i)) for i in range(2)]
            return fmt.constant(-_INVERSE) * logs[0], -logs[1]

        def fails(values: list[ir.Value]) -> ir.Value:
            xx, yy = pair(values[0])
            return ~(xx * xx < yy + yy)

        (found,) = carry_while([place + 1], fails, lambda values: [values[0] + 2])
        xx, _ = pair(found)
        far = fmt.constant(_NORMAL_TAIL) + xx
        low = ((size >> 8) & 1).equals(1)
        taken = found + 2 - place
        return calls.number(taken), _true(), build.select(low, -far, far)

    def edge() -> Attempt:
        # Of float32, too, NumPy takes the exponential in float64.
        exact = wide(x)
        half = -0.5 * exact * exact
        return _inside_level(fmt, words, place, x, level, heights, build.math("exp", half))

    return _by_level(level, size.below(limits[level]), x, tail, edge)


def _exponential(fmt: Format, words: Words, place: ir.Value, tables: list[ir.Value]) -> Attempt:
    """NumPy's `random_standard_exponential`, one round of its recursion."""
    limits, widths, heights = tables
    bits = words(place) >> fmt.shift
    level = as_index(bits & (LEVELS - 1))
    size = bits >> 8
    x = fmt.convert(size) * widths[level]

    def tail() -> Attempt:
        log = _log_of_rest(fmt, words(place + 1))
        return build.const_i64(2), _true(), fmt.constant(_EXPONENTIAL_TAIL) - log

    def edge() -> Attempt:
        density = fmt.rounded("exp", -x)
        return _inside_level(fmt, words, place, x, level, heights, density)

    return _by_level(level, size.below(limits[level]), x, tail, edge)


def _log_of_rest(fmt: Format, bits: ir.Value) -> ir.Value:
    """The logarithm of 1 - u, of a uniform number u."""
    return fmt.rounded("log1p", -fmt.uniform(bits))


def _by_level(
    level: ir.Value,
    common: ir.Value,
    x: ir.Value,
    tail: Callable[[], Sequence[ir.Value]],
    edge: Callable[[], Sequence[ir.Value]],
) -> Attempt:
    """A number inside its level is taken; else one of the tail is drawn, or the edge of the level decides."""

    def rare() -> Sequence[ir.Value]:
        return either(level.equals(0), kinds, tail, edge)

    kinds = [word_type(), ir.IntegerType.get_signless(1), x.type]
    taken, gives, value = either(common, kinds, lambda: (build.const_i64(1), _true(), x), rare)
    return taken, gives, value


NORMAL = Ziggurat("i", _normal, DOUBLE)
EXPONENTIAL = Ziggurat("e", _exponential, DOUBLE)
NORMAL_FLOAT = Ziggurat("i", _normal, FLOAT)
EXPONENTIAL_FLOAT = Ziggurat("e", _exponential, FLOAT)
