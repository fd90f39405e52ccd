# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accepted attempts in a stream (rejection sampling), and the start of each draw that takes several words.

The positions of attempts that give numbers are listed, and each draw looks up its own (`Ranks`). `Orbit`
finds the start offsets of draws of variable length by per-block exit tables of two levels.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from graphc.ir import build
from graphc.ir.value import as_index, converted
from graphc.library.arrays import KINDS
from graphc.library.define import kernel_call
from graphc.lowering import calls
from graphc.lowering.carried import carry_while, either
from graphc.lowering.device_code.philox import word_type
from graphc.lowering.partial_reductions import elementwise, position
from graphc.lowering.scans.buffers import allocate, read
from graphc.native import type_of_dtype
from graphc_dialects._mlir import ir

# Words of a block, blocks of a large one, and words at its beginning from which it is known where it is left.
SHIFT = 7


class Orbit:
    """The words that are reached from the first one.

    A draw at each word takes so many, and the next one begins after them. Draws that take two words or more
    leave no word that is sure to be a beginning; but all threads at once find out where those who come to a
    block of words leave it, from each of its words, and the same of blocks of blocks, from each of their
    first words. With these few steps lead from the first word of all to each block, and from there to each
    word: of 10**8 words 6,000 large blocks are left one after the other, then at most 128 blocks, then 128
    words.

    Args:
        widths: a vector: how many words further the next draw begins; 0 counts as 1.
        size: its length, at least 1.
    """

    def __init__(self, widths: ir.Value, size: ir.Value) -> None:
        self._widths, self._size = widths, size
        self._mask, self._block, self._large = (1 << SHIFT) - 1, SHIFT, 2 * SHIFT
        self._leaves = words_of(size, lambda: self._walk(self._here(), self._end(self._here()), self._next))
        count = self._parts(self._large)
        self._leaves_large = words_of(count << SHIFT, self._leave_large)
        self._large_entries = words_of(count, self._large_entry)
        self._entries = words_of(self._parts(self._block), self._entry)

    def begins(self) -> ir.Value:
        """1 for the word at hand if a draw begins there, else 0; in the body of a nest."""
        here = self._here()
        start = self._entries[here >> self._block]
        found = self._walk(start, here, self._next).equals(here)
        return converted(found, word_type())

    def _parts(self, shift: int) -> ir.Value:
        """Number of blocks."""
        return (self._size + ((1 << shift) - 1)) >> shift

    def _here(self) -> ir.Value:
        return calls.number(position(0))

    def _end(self, place: ir.Value) -> ir.Value:
        """The word after the block of a word."""
        return (place | self._mask) + 1

    def _walk(self, start: ir.Value, stop: ir.Value, step: Callable[[ir.Value], ir.Value]) -> ir.Value:
        """The first word that is not before one, or is beyond all."""
        size = calls.number(self._size)
        stop = build.select(stop.below(size), stop, size)
        return carry_while([start], lambda values: values[0].below(stop), lambda values: [step(values[0])])[0]

    def _next(self, place: ir.Value) -> ir.Value:
        width = self._widths[place]
        one = build.const_i64(1)
        return place + build.select(width.below(one), one, width)

    def _leave(self, place: ir.Value) -> ir.Value:
        return self._leaves[place]

    def _leave_large(self) -> ir.Value:
        """Exits from a large block for those who enter it at one of its first words."""
        here = self._here()
        begin = (here >> SHIFT) << self._large
        start = begin + (here & self._mask)
        return self._walk(start, begin + (1 << self._large), self._leave)

    def _far(self, place: ir.Value) -> ir.Value:
        """Exit from the large block, if the word is one of its first, else from the block."""
        inside = place & ((1 << self._large) - 1)
        row = (place >> self._large) << SHIFT

        def large() -> list[ir.Value]:
            return [self._leaves_large[row + inside]]

        is_first = inside.below(1 << SHIFT)
        return either(is_first, [word_type()], large, lambda: [self._leave(place)])[0]

    def _large_entry(self) -> ir.Value:
        """The first word of a large block that is reached."""
        return self._walk(build.const_i64(0), self._here() << self._large, self._far)

    def _entry(self) -> ir.Value:
        """The first word of a block that is reached."""
        here = self._here()
        start = self._large_entries[here >> SHIFT]
        return self._walk(start, here << self._block, self._leave)


def words_of(size: ir.Value, body: Callable[[], ir.Value], bits: int = 64) -> ir.Value:
    """A vector of words, or of their lowest bits, each computed in the body of a nest."""
    element = ir.IntegerType.get_signless(bits)
    kind = ir.RankedTensorType.get([build.DYNAMIC], element)
    return elementwise([], build.empty(kind, [size]), lambda _: converted(body(), element))


def running(op: ir.Operation, values: ir.Value, size: ir.Value) -> ir.Value:
    """A running sum of words.

    Args:
        op: in whose module the call is declared.
        values, size: a vector, and its length.
    """
    memory = allocate(ir.RankedTensorType(values.type), [size])
    word = type_of_dtype(np.dtype("int64"))
    callee = kernel_call("running", [word] * 2, {"kind": KINDS.index("add"), "reverse": 0})
    calls.call(op, callee, [calls.read_from(values), calls.write_to(memory)])
    return read(memory, values.type)


def positions(op: ir.Operation, mask: ir.Value, size: ir.Value) -> ir.Value:
    """Positions of the bytes that are not 0, in order: a vector that is as long, with anything after them.

    Args:
        op: in whose module the call is declared.
        mask, size: a vector of bytes, and its length.
    """
    vector = ir.RankedTensorType.get([build.DYNAMIC], word_type())
    memory = allocate(vector, [size])
    types = [type_of_dtype(np.dtype(name)) for name in ("uint8", "int64")]
    callee = kernel_call("flatnonzero", types, {})
    calls.call(op, callee, [calls.read_from(mask), calls.write_to(memory)])
    return read(memory, vector)


class Ranks:
    """The positions of accepted attempts.

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
        """Number of words that so many draws take, in the body of a nest; an i64.

        Args:
            count: of the draws, an index.
            width: gives the words that the attempt at a place takes.
        """
        none = count.equals(0)
        place = self.place(build.select(none, 0, count - 1))
        return build.select(none, 0, calls.number(place) + width(place))
