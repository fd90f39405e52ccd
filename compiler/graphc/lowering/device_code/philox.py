# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Words of Philox by their place, in the bodies of nests.

Philox encrypts a counter of 256 bits to four words. Source: J. Salmon et al., "Parallel random numbers: as
easy as 1, 2, 3" (2011).
"""

from __future__ import annotations

from graphc.ir import build
from graphc.library.random.generators import PHILOX_MULTIPLIERS, PHILOX_ROUNDS, PHILOX_STEPS
from graphc_dialects._mlir import ir

# Places in the state (`graphc_runtime.generators`): four words of the counter, two of the key, four that have
# been made, and how many of these are used up.
_KEY, _MADE, _USED = 4, 6, 10
_BLOCK = 4
_UNIT = 2.0**-53
EQUAL, LESS_SIGNED, LESS, NOT_MORE = 0, 2, 6, 7


def word_type() -> ir.Type:
    """64 bits."""
    return ir.IntegerType.get_signless(64)


def _value(x: ir.Value | int) -> ir.Value:
    return build.const_i64(x) if isinstance(x, int) else x


def of(name: str, x: ir.Value, y: ir.Value | int) -> ir.Value:
    """`arith.<name>` of words."""
    return build.create(f"arith.{name}", [word_type()], [x, _value(y)]).result


def compare(predicate: int, x: ir.Value, y: ir.Value | int) -> ir.Value:
    """`arith.cmpi` of words."""
    return build.compare_index(predicate, x, _value(y))


class State:
    """The words of a state, read in the body of a nest."""

    def __init__(self, words: ir.Value) -> None:
        self._words = words
        self.counter = [self.read(build.const_i64(i)) for i in range(_KEY)]
        self.key = [self.read(build.const_i64(i)) for i in range(_KEY, _MADE)]
        self.used = self.read(build.const_i64(_USED))
        self.left = of("subi", build.const_i64(_BLOCK), self.used)

    def read(self, place: ir.Value) -> ir.Value:
        """One word."""
        index = build.create("arith.index_cast", [build.index_type()], [place]).result
        return build.create("tensor.extract", [word_type()], [self._words, index]).result

    def block(self, steps: ir.Value) -> tuple[list[ir.Value], list[ir.Value]]:
        """The counter some steps further, and the four words that it stands for."""
        counter, carry = [], steps
        for word in self.counter:
            total = of("addi", word, carry)
            # A sum has wrapped around if it is less than what was added.
            carry = build.create("arith.extui", [word_type()], [compare(LESS, total, carry)]).result
            counter.append(total)
        words, key = counter, self.key
        for number in range(PHILOX_ROUNDS):
            if number:
                key = [of("addi", k, step) for k, step in zip(key, PHILOX_STEPS, strict=True)]
            words = _round(words, key)
        return counter, words


def _round(words: list[ir.Value], key: list[ir.Value]) -> list[ir.Value]:
    (low0, high0), (low1, high1) = (
        build.create(
            "arith.mului_extended", [word_type(), word_type()], [word, build.const_i64(factor)]
        ).results
        for word, factor in zip((words[0], words[2]), PHILOX_MULTIPLIERS, strict=True)
    )
    first = of("xori", of("xori", high1, words[1]), key[0])
    third = of("xori", of("xori", high0, words[3]), key[1])
    return [first, low1, third, low0]


def _chosen(words: list[ir.Value], number: ir.Value) -> ir.Value:
    found = words[0]
    for i, word in enumerate(words[1:], 1):
        found = build.select(compare(EQUAL, number, i), word, found)
    return found


def word(state: State, place: ir.Value) -> ir.Value:
    """The word of a draw: one of those that have been made, or of a block further on."""
    is_made = compare(LESS, place, state.left)
    further = of("subi", place, state.left)
    _, words = state.block(of("addi", of("shrui", further, 2), 1))
    made = build.select(is_made, of("addi", state.used, place), build.const_i64(0))
    return build.select(
        is_made, state.read(of("addi", made, _MADE)), _chosen(words, of("andi", further, _BLOCK - 1))
    )


def state_after(state: State, place: ir.Value, count: ir.Value) -> ir.Value:
    """A word of the state after some draws."""
    suffice = compare(NOT_MORE, count, state.left)
    further = of("subi", count, state.left)
    blocks = of("shrui", of("addi", further, _BLOCK - 1), 2)
    counter, words = state.block(build.select(suffice, build.const_i64(0), blocks))
    used = of("addi", of("andi", of("subi", further, 1), _BLOCK - 1), 1)
    kept = state.read(place)
    found = build.select(compare(LESS, place, _KEY), _chosen(counter, place), kept)
    is_made = build.create(
        "arith.andi",
        [suffice.type],
        [compare(LESS, of("subi", place, _MADE), _BLOCK), compare(LESS, state.left, count)],
    ).result
    found = build.select(is_made, _chosen(words, of("subi", place, _MADE)), found)
    used = build.select(suffice, of("addi", state.used, count), used)
    return build.select(compare(EQUAL, place, _USED), used, found)


def uniform(bits: ir.Value) -> ir.Value:
    """A number in [0, 1) of the upper 53 bits."""
    return build.as_f64(of("shrui", bits, 11)) * _UNIT
