# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integers between bounds for devices: NumPy's, all at once.

Each attempt takes 32 bits, or 64 where there are more integers than 32 bits have. Integers of 16 and of 8
bits take as many, the lowest ones first, of 32 that are the draws' own. An attempt gives no number where some
would come more often than others. How many attempts do follows from a running sum. Halves of words that are
left over are kept in the state.

Source: D. Lemire, "Fast random integer generation in an interval" (2019).
"""

from __future__ import annotations

from collections.abc import Callable

from graphc.ir import build
from graphc.lowering import calls
from graphc.lowering.carried import either
from graphc.lowering.device_halves import Halves
from graphc.lowering.device_philox import (
    EQUAL,
    LESS,
    State,
    compare,
    of,
    state_after,
    word,
    word_type,
)
from graphc.lowering.device_ranks import Ranks
from graphc.lowering.nests import position
from graphc_dialects._mlir import ir

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
        quarters = build.index_op("muli", count, build.const_index(_QUARTERS))
        size = build.index_op("divui", quarters, build.const_index(4))
        size = build.index_op("addi", size, build.const_index(_MORE))
        self._ranks = Ranks(op, size, lambda: self._attempt(position(0))[0])

    def number(self, draw: ir.Value, low: ir.Value) -> ir.Value:
        """A draw, in the body of a nest."""
        found = self._attempt(self._ranks.place(draw))[1]
        if found.type != low.type:
            found = build.create("arith.trunci", [low.type], [found]).result
        return build.create("arith.addi", [low.type], [found, low]).result

    def after(self, place: ir.Value, count: ir.Value) -> ir.Value:
        """A word of the state after the draws, in the body of a nest."""
        extent, wide = self._bounds()
        last = build.index_op(
            "subi", build.index_op("maxsi", count, build.const_index(1)), build.const_index(1)
        )
        attempts = of("addi", calls.number(self._ranks.place(last)), 1)
        none = _or(compare(EQUAL, calls.number(count), 0), compare(EQUAL, extent, 0))
        attempts = build.select(none, build.const_i64(0), attempts)

        def of_halves() -> ir.Value:
            halves = of("divui", of("addi", attempts, self._parts - 1), self._parts)
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
        extent = build.create("tensor.extract", [self._type], [self._extent, *[zero] * rank]).result
        if self._type != word_type():
            extent = build.create("arith.extui", [word_type()], [extent]).result
        return extent, compare(LESS, build.const_i64(_HALF_MASK), extent)

    def _attempt(self, place: ir.Value) -> tuple[ir.Value, ir.Value]:
        """1 if an attempt gives a number, else 0; and how far that is from the lowest one."""
        extent, wide = self._bounds()
        bits = self._bits(calls.number(place), wide)
        span = of("addi", extent, 1)
        low, high = build.create("arith.mului_extended", [word_type()] * 2, [bits, span]).results
        mask = (1 << self._part) - 1
        most = build.select(wide, build.const_i64(-1), build.const_i64(mask))
        rest = build.select(wide, low, of("andi", low, mask))
        all_words = compare(EQUAL, span, 0)
        safe = build.select(all_words, build.const_i64(1), span)
        least = of("remui", of("subi", most, extent), safe)
        fails = build.create("arith.extui", [word_type()], [compare(LESS, rest, least)]).result
        value = build.select(wide, high, of("shrui", low, self._part))
        return of("xori", fails, 1), build.select(all_words, bits, value)

    def _bits(self, number: ir.Value, wide: ir.Value) -> ir.Value:
        """What an attempt takes: a word, the next half of one, or a part of a half."""

        def part() -> ir.Value:
            half = Halves(self._state).bits(of("divui", number, self._parts))
            if self._parts == 1:
                return half
            shift = of("muli", of("remui", number, self._parts), self._part)
            return of("andi", of("shrui", half, shift), (1 << self._part) - 1)

        return self._by_width(wide, lambda: word(State(self._state), number), part)


def _or(a: ir.Value, b: ir.Value) -> ir.Value:
    return build.create("arith.ori", [a.type], [a, b]).result
