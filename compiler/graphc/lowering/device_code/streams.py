# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws for devices that take several words of the stream one after the other.

A draw is a function of the word at which it begins, so that it is known for each word what a draw there would
take. `device_orbits` finds those at which one begins, and a running sum numbers them. All draws share the
parameters that say how many words they take.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from graphc.ir import build
from graphc.ir.value import as_index, literal, smaller
from graphc.lowering import calls
from graphc.lowering.carried import carry_while
from graphc.lowering.device_code.orbits import Orbit
from graphc.lowering.device_code.philox import State, uniform, word
from graphc.lowering.device_code.ranks import Ranks, element, words_of
from graphc.lowering.device_code.ziggurats import EXPONENTIAL, NORMAL, Ziggurat
from graphc.lowering.nests import position
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
        words: a vector of them.
        length: its length, an index.
    """

    def __init__(self, words: ir.Value, length: ir.Value) -> None:
        self._words, self._length = words, length
        self._tables = {each.letter: each.tables() for each in (NORMAL, EXPONENTIAL)}

    def _word(self, place: ir.Value) -> ir.Value:
        return element(self._words, smaller(place, self._length - 1))

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
            return [after, gives ^ literal(1, bit), x]

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
        self._stream = Stream(words_of(length, lambda: word(State(state), calls.number(position(0)))), length)
        self._widths = words_of(size, self._width)
        self._ranks = Ranks(op, size, Orbit(self._widths, size).begins)

    def number(self, draw: ir.Value) -> ir.Value:
        """A draw, in the body of a nest."""
        return self._draw(self._ranks.place(draw))[0]

    def taken(self, count: ir.Value) -> ir.Value:
        """Number of words that so many draws take, in the body of a nest; an i64."""
        none, zero = calls.number(count).equals(0), build.const_i64(0)
        place = self._ranks.place(build.select(none, 0, count - 1))
        width = element(self._widths, place)
        none = none | width.equals(0)
        return build.select(none, zero, calls.number(place) + width)

    def _draw(self, place: ir.Value) -> Drawn:
        return self._kind.draw(self._stream, place, self._given())

    def _width(self) -> ir.Value:
        here = position(0)
        return calls.number(self._draw(here)[1] - here)
