# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws for devices that take a word of the stream each, or none.

Numbers of float64, which take words of the stream, and of float32, which take halves of words.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Protocol

import numpy as np

from graphc.ir import build
from graphc.ir.value import converted
from graphc.lowering import calls
from graphc.lowering.carried import either
from graphc.lowering.device_code import halves, philox
from graphc.lowering.device_code.philox import State, uniform, word, word_type
from graphc.lowering.device_code.ranks import Ranks, element, running
from graphc.lowering.nests import elementwise, position
from graphc.lowering.structural import reshape
from graphc_dialects._mlir import ir
from graphc_runtime import npyrandom
from graphc_runtime.record import record

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
        bits: of a state the word, or the half, at a place.
        uniform: a number in [0, 1) of these.
    """

    name: str
    dtype: str
    limit: str
    mantissa: int
    shift: int
    bits: Callable[[ir.Value, ir.Value], ir.Value]
    uniform: Callable[[ir.Value], ir.Value]

    def type(self) -> ir.Type:
        """The type of numbers."""
        return ir.F64Type.get() if self.dtype == "float64" else ir.F32Type.get()

    def constant(self, value: float) -> ir.Value:
        """A number."""
        attribute = ir.FloatAttr.get(self.type(), value)
        return build.create("arith.constant", [self.type()], [], value=attribute).result

    def convert(self, count: ir.Value) -> ir.Value:
        """An i64 as a number."""
        return build.create("arith.sitofp", [self.type()], [count]).result

    def rounded(self, function: str, x: ir.Value) -> ir.Value:
        """A function, computed in float64 and rounded, as the C library's of float32 nearly always are."""
        found = build.math(function, wide(x))
        if self.dtype == "float64":
            return found
        return build.create("arith.truncf", [self.type()], [found]).result

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
    double = ir.F64Type.get()
    return x if x.type == double else build.create("arith.extf", [double], [x]).result


def _word(state: ir.Value, place: ir.Value) -> ir.Value:
    return philox.word(philox.State(state), place)


def _half(state: ir.Value, place: ir.Value) -> ir.Value:
    return halves.Halves(state).bits(place)


DOUBLE = Format("double", "float64", "uint64", 0x000FFFFFFFFFFFFF, 3, _word, philox.uniform)
FLOAT = Format("float", "float32", "uint32", 0x007FFFFF, 1, _half, halves.uniform)


# Words beyond those that draws take if no number is 0: each is 0 once in 2**53 times.
_MORE = 8


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
        return self._kind.uniform(self._kind.bits(self._state, calls.number(draw)))

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
        self._ranks = Ranks(op, count + _MORE, self._gives)

    def _gives(self) -> ir.Value:
        bits = word(State(self._state), calls.number(position(0))) >> 11
        return converted(build.const_i64(0).below(bits), word_type())

    def number(self, draw: ir.Value) -> ir.Value:
        return uniform(word(State(self._state), calls.number(self._ranks.place(draw))))

    def taken(self, count: ir.Value) -> ir.Value:
        none = count.equals(0)
        place = self._ranks.place(build.select(none, 0, count - 1))
        return build.select(none, 0, calls.number(place) + 1)


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
        self._until = running(op, "add", reshape(some, vector, [count]), count)

    def number(self, draw: ir.Value) -> ir.Value:
        # A draw that takes no word may look at any.
        place = element(self._until, draw) - 1
        none = calls.number(draw).below(place)
        return uniform(word(State(self._state), build.select(none, 0, place)))

    def taken(self, count: ir.Value) -> ir.Value:
        none = count.equals(0)
        last = count - 1
        zero = build.const_i64(0)
        return either(none, [word_type()], lambda: [zero], lambda: [element(self._until, last)])[0]


def _is_positive(share: ir.Value) -> ir.Value:
    return converted(share > 0.0, word_type())
