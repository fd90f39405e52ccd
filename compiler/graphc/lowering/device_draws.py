# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws for devices: of a generator that counts, each number is computed from its place alone.

Philox encrypts a counter of 256 bits to four words; a uniform number takes one word. So all threads draw at
once, the same numbers as NumPy does one after the other. Source: J. Salmon et al., "Parallel random numbers:
as easy as 1, 2, 3" (2011).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphc.ir import build
from graphc.ir.traits.draws import RANDOM
from graphc.library.random.generators import PHILOX_MULTIPLIERS, PHILOX_ROUNDS, PHILOX_STEPS
from graphc.lowering import calls
from graphc.lowering.nests import elementwise, position
from graphc.lowering.random import taken
from graphc.lowering.rules import ON_DEVICES
from graphc_dialects._mlir import ir
from graphc_dialects.random import GENERATORS

if TYPE_CHECKING:
    from graphc.lowering.converter import FunctionConverter

# Places in the state (`graphc_runtime.generators`): four words of the counter, two of the key, four that have
# been made, and how many of these are used up.
_KEY, _MADE, _USED = 4, 6, 10
_BLOCK = 4
_UNIT = 2.0**-53
_EQUAL, _LESS, _NOT_MORE = 0, 6, 7


def have_kernel(op: ir.Operation) -> bool:
    """Whether draws are computed from their places: uniform numbers in float64, of Philox."""
    distribution = ir.StringAttr(op.attributes["distribution"]).value
    words = ir.RankedTensorType(op.operands[0].type).shape[0]
    return GENERATORS[words] == "philox" and distribution in ("standard_uniform", "uniform")


@ON_DEVICES(RANDOM)
def random(context: FunctionConverter, op: ir.Operation) -> None:
    """A nest that computes the draws, and one that computes the state after them."""
    state, parameters, sizes = taken(context, op)
    draws, following = op.results
    words = context.tensor_of(state)

    def draw(given: Sequence[ir.Value]) -> ir.Value:
        place = build.const_index(0)
        for axis, size in enumerate(sizes):
            place = build.index_op("addi", build.index_op("muli", place, size), position(axis))
        number = _uniform(_word(_State(words), calls.number(place)))
        for name, x in zip(("arith.mulf", "arith.addf"), given[::-1], strict=True) if given else ():
            number = build.create(name, [x.type], [x, number]).result
        return number

    def after(given: Sequence[ir.Value]) -> ir.Value:
        return _after(_State(words), calls.number(position(0)), calls.number(calls.product(sizes)))

    for result, shape, inputs, body in (
        (draws, sizes, parameters, draw),
        (following, [build.const_index(state.type.shape[0])], [], after),
    ):
        start = context.destinations.start(result, build.storage_type(result.type), shape)
        context.define(result, elementwise([context.tensor_of(x) for x in inputs], start, body))


# -- words of 64 bits ----------------------------------------------------------------------------------------


def _i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)


def _value(x: ir.Value | int) -> ir.Value:
    return build.const_i64(x) if isinstance(x, int) else x


def _of(name: str, x: ir.Value, y: ir.Value | int) -> ir.Value:
    return build.create(f"arith.{name}", [_i64()], [x, _value(y)]).result


def _compare(predicate: int, x: ir.Value, y: ir.Value | int) -> ir.Value:
    return build.compare_index(predicate, x, _value(y))


class _State:
    """The words of a state, read in the body of a nest."""

    def __init__(self, words: ir.Value) -> None:
        self._words = words
        self.counter = [self.read(build.const_i64(i)) for i in range(_KEY)]
        self.key = [self.read(build.const_i64(i)) for i in range(_KEY, _MADE)]
        self.used = self.read(build.const_i64(_USED))
        self.left = _of("subi", build.const_i64(_BLOCK), self.used)

    def read(self, place: ir.Value) -> ir.Value:
        """One word."""
        index = build.create("arith.index_cast", [build.index_type()], [place]).result
        return build.create("tensor.extract", [_i64()], [self._words, index]).result

    def block(self, steps: ir.Value) -> tuple[list[ir.Value], list[ir.Value]]:
        """The counter some steps further, and the four words that it stands for."""
        counter, carry = [], steps
        for word in self.counter:
            total = _of("addi", word, carry)
            # A sum has wrapped around if it is less than what was added.
            carry = build.create("arith.extui", [_i64()], [_compare(_LESS, total, carry)]).result
            counter.append(total)
        words, key = counter, self.key
        for number in range(PHILOX_ROUNDS):
            if number:
                key = [_of("addi", k, step) for k, step in zip(key, PHILOX_STEPS, strict=True)]
            words = _round(words, key)
        return counter, words


def _round(words: list[ir.Value], key: list[ir.Value]) -> list[ir.Value]:
    (low0, high0), (low1, high1) = (
        build.create("arith.mului_extended", [_i64(), _i64()], [word, build.const_i64(factor)]).results
        for word, factor in zip((words[0], words[2]), PHILOX_MULTIPLIERS, strict=True)
    )
    first = _of("xori", _of("xori", high1, words[1]), key[0])
    third = _of("xori", _of("xori", high0, words[3]), key[1])
    return [first, low1, third, low0]


def _chosen(words: list[ir.Value], number: ir.Value) -> ir.Value:
    found = words[0]
    for i, word in enumerate(words[1:], 1):
        found = build.select(_compare(_EQUAL, number, i), word, found)
    return found


def _word(state: _State, place: ir.Value) -> ir.Value:
    """The word of a draw: one of those that have been made, or of a block further on."""
    is_made = _compare(_LESS, place, state.left)
    further = _of("subi", place, state.left)
    _, words = state.block(_of("addi", _of("shrui", further, 2), 1))
    made = build.select(is_made, _of("addi", state.used, place), build.const_i64(0))
    return build.select(
        is_made, state.read(_of("addi", made, _MADE)), _chosen(words, _of("andi", further, _BLOCK - 1))
    )


def _after(state: _State, place: ir.Value, count: ir.Value) -> ir.Value:
    """A word of the state after some draws."""
    suffice = _compare(_NOT_MORE, count, state.left)
    further = _of("subi", count, state.left)
    blocks = _of("shrui", _of("addi", further, _BLOCK - 1), 2)
    counter, words = state.block(build.select(suffice, build.const_i64(0), blocks))
    used = _of("addi", _of("andi", _of("subi", further, 1), _BLOCK - 1), 1)
    kept = state.read(place)
    found = build.select(_compare(_LESS, place, _KEY), _chosen(counter, place), kept)
    is_made = build.create(
        "arith.andi",
        [suffice.type],
        [_compare(_LESS, _of("subi", place, _MADE), _BLOCK), _compare(_LESS, state.left, count)],
    ).result
    found = build.select(is_made, _chosen(words, _of("subi", place, _MADE)), found)
    used = build.select(suffice, _of("addi", state.used, count), used)
    return build.select(_compare(_EQUAL, place, _USED), used, found)


def _uniform(word: ir.Value) -> ir.Value:
    """A number in [0, 1) of the upper 53 bits."""
    f64 = ir.F64Type.get()
    number = build.create("arith.sitofp", [f64], [_of("shrui", word, 11)]).result
    unit = build.create("arith.constant", [f64], [], value=ir.FloatAttr.get(f64, _UNIT)).result
    return build.create("arith.mulf", [f64], [number, unit]).result
