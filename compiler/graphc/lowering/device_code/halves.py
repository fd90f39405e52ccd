# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Halves of words of Philox by their place, in the bodies of nests: what draws of 32 bits and less take.

Of a word the lower half comes first. The other one is kept in the state, and is the first of later draws.
"""

from __future__ import annotations

from graphc.ir import build
from graphc.ir.value import converted, literal
from graphc.lowering.device_code.philox import State, state_after, word, word_type
from graphc_dialects._mlir import ir

# In the state: whether half a word is left, and the half.
_HAS, _HALF = 11, 12
_BITS, _MASK = 32, (1 << 32) - 1
_UNIT = 2.0**-24


class Halves:
    """The halves that come after a state.

    Args:
        state: the generator's words, a tensor.
    """

    def __init__(self, state: ir.Value) -> None:
        self._state = State(state)
        self._has = self._state.read(_HAS)

    def bits(self, place: ir.Value) -> ir.Value:
        """The half at a place, an i64; as one too."""
        zero = build.const_i64(0)
        is_left = place.below(self._has)
        further = build.select(is_left, zero, place - self._has)
        bits = word(self._state, further >> 1)
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
        last = word(self._state, build.select(is_whole, zero, words - one))
        kept = build.select(is_whole, self._state.read(_HALF), last >> _BITS)
        left = build.select(none, self._has, taken & one)
        found = state_after(self._state, place, words)
        found = build.select(place.equals(_HAS), left, found)
        return build.select(place.equals(_HALF), kept, found)


def uniform(bits: ir.Value) -> ir.Value:
    """A number of float32 in [0, 1) of the upper 24 of 32 bits."""
    kind = ir.F32Type.get()
    number = build.create("arith.sitofp", [kind], [bits >> 8]).result
    return build.create("arith.mulf", [kind], [number, literal(_UNIT, kind)]).result
