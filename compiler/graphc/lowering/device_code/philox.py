# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Words of Philox by their place, halves of them, and the words at which draws begin; in the bodies of nests.

Philox encrypts a counter of 256 bits to four words, so that each word follows from its place alone. Source:
J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from graphc.ir import build
from graphc.ir.value import as_index, converted
from graphc.library.arrays import KINDS
from graphc.library.define import kernel_call
from graphc.library.random.registers import PHILOX_MULTIPLIERS, PHILOX_ROUNDS, PHILOX_STEPS
from graphc.lowering import calls
from graphc.lowering.carried import carry_while, either
from graphc.lowering.partial_reductions import elementwise, nest, position
from graphc.lowering.scans.buffers import allocate, read
from graphc.native import type_of_dtype
from graphc_dialects._mlir import ir

# Places in the state (`graphc_runtime.generators`): four words of the counter, two of the key, four that have
# been made, how many of these are used up, whether half a word is left, and the half.
_KEY, _MADE, _USED, _HAS, _HALF = 4, 6, 10, 11, 12
_BLOCK = 4
BITS, MASK = 32, (1 << 32) - 1

# The word, or the half, at a place, an i64.
Bits: TypeAlias = Callable[[ir.Value], ir.Value]


def word_type(bits: int = 64) -> ir.Type:
    """Integers of so many bits."""
    return ir.IntegerType.get_signless(bits)


def vector_type() -> ir.Type:
    """A vector of words."""
    return ir.RankedTensorType.get([build.DYNAMIC], word_type())


def here() -> ir.Value:
    """The place at hand in a nest over a vector, an i64."""
    return calls.number(position(0))


class State:
    """A generator's words, and those that come after them.

    Of a word the lower half comes first. The other one is kept in the state, and is the first of later draws.
    """

    def __init__(self, words: ir.Value) -> None:
        self._words = words
        self._counter = [words[i] for i in range(_KEY)]
        self._key = [words[i] for i in range(_KEY, _MADE)]
        self.used = words[_USED]
        self._left = _BLOCK - self.used

    def block(self, steps: ir.Value) -> tuple[list[ir.Value], list[ir.Value]]:
        """The counter some steps further, and the four words that it stands for."""
        counter, carry = [], steps
        for word in self._counter:
            total = word + carry
            # A sum has wrapped around if it is less than what was added.
            carry = converted(total.below(carry), word_type())
            counter.append(total)
        words, key = counter, self._key
        for number in range(PHILOX_ROUNDS):
            if number:
                key = [k + step for k, step in zip(key, PHILOX_STEPS, strict=True)]
            (low0, high0), (low1, high1) = (
                wide_product(word, build.const_i64(factor))
                for word, factor in zip(words[::2], PHILOX_MULTIPLIERS, strict=True)
            )
            words = [high1 ^ words[1] ^ key[0], low1, high0 ^ words[3] ^ key[1], low0]
        return counter, words

    def made(self) -> list[ir.Value]:
        """The four words that have been made."""
        return [self._words[_MADE + i] for i in range(_BLOCK)]

    def word(self, place: ir.Value) -> ir.Value:
        """The word at a place: one of those that have been made, or of a block further on."""
        is_made = place.below(self._left)
        further = place - self._left
        _, words = self.block((further >> 2) + 1)
        made = build.select(is_made, self.used + place, 0)
        return build.select(is_made, self._words[made + _MADE], chosen(words, further & (_BLOCK - 1)))

    def half(self, place: ir.Value, word: Bits | None = None) -> ir.Value:
        """The half at a place, an i64; `word` gives words that are there already."""
        has = self._words[_HAS]
        is_left = place.below(has)
        further = build.select(is_left, 0, place - has)
        bits = (word or self.word)(further >> 1)
        half = build.select((further & 1).equals(1), bits >> BITS, bits & MASK)
        return build.select(is_left, self._words[_HALF], half)

    def after(self, place: ir.Value, count: ir.Value) -> ir.Value:
        """The state's word at a place after some words."""
        suffice = ~count.above(self._left)
        further = count - self._left
        blocks = (further + (_BLOCK - 1)) >> 2
        counter, words = self.block(build.select(suffice, 0, blocks))
        used = ((further - 1) & (_BLOCK - 1)) + 1
        found = build.select(place.below(_KEY), chosen(counter, place), self._words[place])
        is_made = (place - _MADE).below(_BLOCK) & self._left.below(count)
        found = build.select(is_made, chosen(words, place - _MADE), found)
        used = build.select(suffice, self.used + count, used)
        return build.select(place.equals(_USED), used, found)

    def after_halves(self, place: ir.Value, count: ir.Value) -> ir.Value:
        """The same after some halves."""
        has, zero = self._words[_HAS], build.const_i64(0)
        taken = count - (has & converted(zero.below(count), word_type()))
        words = (taken + 1) >> 1
        # NumPy keeps the half of the last word that it has taken apart, used up or not.
        is_whole = words.equals(0)
        last = self.word(build.select(is_whole, zero, words - 1))
        kept = build.select(is_whole, self._words[_HALF], last >> BITS)
        left = build.select(count.equals(0), has, taken & 1)
        found = build.select(place.equals(_HAS), left, self.after(place, words))
        return build.select(place.equals(_HALF), kept, found)


def wide_product(a: ir.Value, b: ir.Value) -> Sequence[ir.Value]:
    """The low and the high word of a product."""
    return list(build.create("arith.mului_extended", [word_type()] * 2, [a, b]).results)


def chosen(words: list[ir.Value], number: ir.Value) -> ir.Value:
    """One of some words, by its number."""
    found = words[0]
    for i, word in enumerate(words[1:], 1):
        found = build.select(number.equals(i), word, found)
    return found


class Words:
    """So many words after a state, an index, of which the four of a block are made together, in vectors."""

    def __init__(self, state: ir.Value, size: ir.Value) -> None:
        self._state = state
        # The first block is that of which some may be used up.
        count = ((size + (_BLOCK - 1)) // _BLOCK) + 1
        outputs = [(build.empty(vector_type(), [count]), [0]) for _ in range(_BLOCK)]
        self._parts = nest([], outputs, [False], lambda _: self._block(here())).results

    def _block(self, steps: ir.Value) -> list[ir.Value]:
        state = State(self._state)
        pairs = zip(state.made(), state.block(steps)[1], strict=True)
        return [build.select(steps.equals(0), x, y) for x, y in pairs]

    def word(self, place: ir.Value) -> ir.Value:
        """The word at a place, an i64; in the body of a nest."""
        number = place + State(self._state).used
        block = as_index(number >> 2)
        return chosen([part[block] for part in self._parts], number & (_BLOCK - 1))


# -- where draws begin --------------------------------------------------------------------------------------


def words_of(size: ir.Value, body: Callable[[], ir.Value], bits: int = 64) -> ir.Value:
    """A vector of words, or of their lowest bits, each computed in the body of a nest."""
    kind = ir.RankedTensorType.get([build.DYNAMIC], word_type(bits))
    return elementwise([], build.empty(kind, [size]), lambda _: converted(body(), kind.element_type))


def _called(
    op: ir.Operation, name: str, given: str, source: ir.Value, size: ir.Value, **attributes: int
) -> ir.Value:
    """Result of a library kernel on a vector, as many words; the call is declared in `op`'s module."""
    memory = allocate(vector_type(), [size])
    types = [type_of_dtype(np.dtype(dtype)) for dtype in (given, "int64")]
    calls.call(op, kernel_call(name, types, attributes), [calls.read_from(source), calls.write_to(memory)])
    return read(memory, vector_type())


def running(op: ir.Operation, values: ir.Value, size: ir.Value) -> ir.Value:
    """Running sums of a vector of words of some length."""
    return _called(op, "running", "int64", values, size, kind=KINDS.index("add"), reverse=0)


def positions(op: ir.Operation, mask: ir.Value, size: ir.Value) -> ir.Value:
    """Positions of bytes that are not 0, in order: a vector that is as long, with anything after them."""
    return _called(op, "flatnonzero", "uint8", mask, size)


class Ranks:
    """The positions of attempts that give numbers, each of which is a draw's (rejection sampling).

    Args:
        op: in whose module calls are declared.
        size: how many attempts there are; there have to be enough that give numbers.
        gives: computes 1 for those that do, and 0 for others.
    """

    def __init__(self, op: ir.Operation, size: ir.Value, gives: Callable[[], ir.Value]) -> None:
        self._places = positions(op, words_of(size, gives, 8), size)

    def place(self, draw: ir.Value) -> ir.Value:
        """The attempt that a draw is, an index."""
        return as_index(self._places[draw])

    def end(self, count: ir.Value, width: Callable[[ir.Value], ir.Value | int] = lambda place: 1) -> ir.Value:
        """Number of words that so many draws take, an i64, where an attempt takes its `width` of words."""
        none = count.equals(0)
        place = self.place(build.select(none, 0, count - 1))
        return build.select(none, 0, calls.number(place) + width(place))


# Words of a block, blocks of a large one, and words at its beginning from which it is known where it is left.
SHIFT = 7


class Orbit:
    """The words that are reached from the first one, where the next draw begins after as many as one takes.

    Draws that take two words or more leave no word that is sure to be a beginning; but all threads at once
    find out where those who come to a block of words leave it, from each of its words, and the same of blocks
    of blocks, from each of their first words (exit tables of two levels). With these few steps lead from the
    first word of all to each block, and from there to each word: of 10**8 words 6,000 large blocks are left
    one after the other, then at most 128 blocks, then 128 words.

    Args:
        widths: a vector: how many words further the next draw begins; 0 counts as 1.
        size: its length, at least 1.
    """

    def __init__(self, widths: ir.Value, size: ir.Value) -> None:
        self._widths, self._size, self._large = widths, size, 2 * SHIFT
        self._leaves = words_of(size, lambda: self._walk(here(), (here() | ((1 << SHIFT) - 1)) + 1))
        count = self._parts(self._large)
        self._leaves_large = words_of(count << SHIFT, self._leave_large)
        self._large_entries = words_of(
            count, lambda: self._walk(build.const_i64(0), here() << self._large, self._far)
        )
        self._entries = words_of(self._parts(SHIFT), self._entry)

    def begins(self) -> ir.Value:
        """1 for the word at hand if a draw begins there, else 0; in the body of a nest."""
        place = here()
        return converted(self._walk(self._entries[place >> SHIFT], place).equals(place), word_type())

    def _parts(self, shift: int) -> ir.Value:
        """Number of blocks."""
        return (self._size + ((1 << shift) - 1)) >> shift

    def _walk(self, start: ir.Value, stop: ir.Value, step: Bits | None = None) -> ir.Value:
        """The first word, of those that steps lead to, that is not before one, or is beyond all."""
        size, step = calls.number(self._size), step or self._next
        stop = build.select(stop.below(size), stop, size)
        return carry_while([start], lambda values: values[0].below(stop), lambda values: [step(values[0])])[0]

    def _next(self, place: ir.Value) -> ir.Value:
        width = self._widths[place]
        return place + build.select(width.below(1), 1, width)

    def _leave_large(self) -> ir.Value:
        """Exits from a large block for those who enter it at one of its first words."""
        place = here()
        begin = (place >> SHIFT) << self._large
        start = begin + (place & ((1 << SHIFT) - 1))
        return self._walk(start, begin + (1 << self._large), lambda at: self._leaves[at])

    def _far(self, place: ir.Value) -> ir.Value:
        """Exit from the large block, if the word is one of its first, else from the block."""
        inside = place & ((1 << self._large) - 1)
        row = (place >> self._large) << SHIFT
        leaves, large = self._leaves, self._leaves_large
        is_first = inside.below(1 << SHIFT)
        return either(is_first, [word_type()], lambda: [large[row + inside]], lambda: [leaves[place]])[0]

    def _entry(self) -> ir.Value:
        """The first word of a block that is reached."""
        block = here()
        start = self._large_entries[block >> SHIFT]
        return self._walk(start, block << SHIFT, lambda at: self._leaves[at])
