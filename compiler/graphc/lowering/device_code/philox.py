# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Words of Philox by their place, and halves of words, in the bodies of nests.

Philox encrypts a counter of 256 bits to four words. Source: J. Salmon et al., "Parallel random numbers: as
easy as 1, 2, 3" (2011).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from graphc.ir import build
from graphc.ir.value import as_index, converted
from graphc.library.random.registers import PHILOX_MULTIPLIERS, PHILOX_ROUNDS, PHILOX_STEPS
from graphc.lowering.partial_reductions import nest, position
from graphc_dialects._mlir import ir

# In the state: whether half a word is left, and the half.
_HAS, _HALF = 11, 12
_BITS, _MASK = 32, (1 << 32) - 1
_UNIT_OF_HALF = 2.0**-24


class Halves:
    """The halves of words that come after a state: what draws of 32 bits and less take.

    Of a word the lower half comes first. The other one is kept in the state, and is the first of later draws.

    Args:
        state: the generator's words, a tensor.
        words: gives the word at a place; it is made if this is None.
    """

    def __init__(self, state: ir.Value, words: Callable[[ir.Value], ir.Value] | None = None) -> None:
        self._state = State(state)
        self._word = partial(word, self._state) if words is None else words
        self._has = self._state.read(_HAS)

    def bits(self, place: ir.Value) -> ir.Value:
        """The half at a place, an i64; as one too."""
        zero = build.const_i64(0)
        is_left = place.below(self._has)
        further = build.select(is_left, zero, place - self._has)
        bits = self._word(further >> 1)
        half = build.select((further & 1).equals(1), bits >> _BITS, bits & _MASK)
        return build.select(is_left, self._state.read(_HALF), half)

    def after(self, place: ir.Value, count: ir.Value) -> ir.Value:
        """A word of the state after so many halves, an i64."""
        zero, one = build.const_i64(0), build.const_i64(1)
        none = count.equals(0)
        taken = count - (self._has & converted(zero.below(count), word_type()))
        words = (taken + one) >> 1
        # NumPy keeps the half of the last word that it has taken apart, used up or not.
        is_whole = words.equals(0)
        last = self._word(build.select(is_whole, zero, words - one))
        kept = build.select(is_whole, self._state.read(_HALF), last >> _BITS)
        left = build.select(none, self._has, taken & one)
        found = state_after(self._state, place, words)
        found = build.select(place.equals(_HAS), left, found)
        return build.select(place.equals(_HALF), kept, found)


def uniform_of_half(bits: ir.Value) -> ir.Value:
    """A number of float32 in [0, 1) of the upper 24 of 32 bits."""
    kind = ir.F32Type.get()
    return converted(bits >> 8, kind) * _UNIT_OF_HALF


# Places in the state (`graphc_runtime.generators`): four words of the counter, two of the key, four that have
# been made, and how many of these are used up.
_KEY, _MADE, _USED = 4, 6, 10
_BLOCK = 4
_UNIT = 2.0**-53


def word_type() -> ir.Type:
    """64 bits."""
    return ir.IntegerType.get_signless(64)


class State:
    """The words of a state, read in the body of a nest."""

    def __init__(self, words: ir.Value) -> None:
        self._words = words
        self.counter = [words[i] for i in range(_KEY)]
        self.key = [words[i] for i in range(_KEY, _MADE)]
        self.used = words[_USED]
        self.left = _BLOCK - self.used

    def read(self, place: ir.Value | int) -> ir.Value:
        """One word."""
        return self._words[place]

    def block(self, steps: ir.Value) -> tuple[list[ir.Value], list[ir.Value]]:
        """The counter some steps further, and the four words that it stands for."""
        counter, carry = [], steps
        for word in self.counter:
            total = word + carry
            # A sum has wrapped around if it is less than what was added.
            carry = converted(total.below(carry), word_type())
            counter.append(total)
        words, key = counter, self.key
        for number in range(PHILOX_ROUNDS):
            if number:
                key = [k + step for k, step in zip(key, PHILOX_STEPS, strict=True)]
            words = _round(words, key)
        return counter, words


def _round(words: list[ir.Value], key: list[ir.Value]) -> list[ir.Value]:
    (low0, high0), (low1, high1) = (
        build.create(
            "arith.mului_extended", [word_type(), word_type()], [word, build.const_i64(factor)]
        ).results
        for word, factor in zip((words[0], words[2]), PHILOX_MULTIPLIERS, strict=True)
    )
    return [high1 ^ words[1] ^ key[0], low1, high0 ^ words[3] ^ key[1], low0]


def _chosen(words: list[ir.Value], number: ir.Value) -> ir.Value:
    found = words[0]
    for i, word in enumerate(words[1:], 1):
        found = build.select(number.equals(i), word, found)
    return found


def word(state: State, place: ir.Value) -> ir.Value:
    """The word of a draw: one of those that have been made, or of a block further on."""
    is_made = place.below(state.left)
    further = place - state.left
    _, words = state.block((further >> 2) + 1)
    made = build.select(is_made, state.used + place, 0)
    return build.select(is_made, state.read(made + _MADE), _chosen(words, further & (_BLOCK - 1)))


class Words:
    """The words that come after a state, of which the four of a block are made together, in vectors.

    Args:
        state: the generator's words, a tensor.
        size: how many there are, an index.
    """

    def __init__(self, state: ir.Value, size: ir.Value) -> None:
        self._state = state
        kind = ir.RankedTensorType.get([build.DYNAMIC], word_type())
        # The first block is that of which some may be used up.
        count = ((size + (_BLOCK - 1)) // _BLOCK) + 1
        outputs = [(build.empty(kind, [count]), [0]) for _ in range(_BLOCK)]
        self._parts = nest([], outputs, [False], lambda _: self._block(position(0))).results

    def _block(self, number: ir.Value) -> list[ir.Value]:
        state, steps = State(self._state), converted(number, word_type())
        made = [state.read(_MADE + i) for i in range(_BLOCK)]
        return [build.select(steps.equals(0), x, y) for x, y in zip(made, state.block(steps)[1], strict=True)]

    def word(self, place: ir.Value) -> ir.Value:
        """The word at a place, an i64; in the body of a nest."""
        number = place + State(self._state).used
        block = as_index(number >> 2)
        return _chosen([part[block] for part in self._parts], number & (_BLOCK - 1))


def state_after(state: State, place: ir.Value, count: ir.Value) -> ir.Value:
    """A word of the state after some draws."""
    suffice = ~count.above(state.left)
    further = count - state.left
    blocks = (further + (_BLOCK - 1)) >> 2
    counter, words = state.block(build.select(suffice, 0, blocks))
    used = ((further - 1) & (_BLOCK - 1)) + 1
    kept = state.read(place)
    found = build.select(place.below(_KEY), _chosen(counter, place), kept)
    is_made = (place - _MADE).below(_BLOCK) & state.left.below(count)
    found = build.select(is_made, _chosen(words, place - _MADE), found)
    used = build.select(suffice, state.used + count, used)
    return build.select(place.equals(_USED), used, found)


def uniform(bits: ir.Value) -> ir.Value:
    """A number in [0, 1) of the upper 53 bits."""
    return build.as_f64(bits >> 11) * _UNIT
