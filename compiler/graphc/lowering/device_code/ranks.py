# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks of accepted attempts in a stream (rejection sampling): a prefix sum numbers them, each draw looks up
its own.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from graphc.ir import build
from graphc.library.arrays.running import KINDS
from graphc.library.define import kernel_call
from graphc.lowering import calls
from graphc.lowering.carried import carry_while
from graphc.lowering.device_code.philox import word_type
from graphc.lowering.nests import elementwise
from graphc.lowering.scans.buffers import allocate, read
from graphc.native.types import type_of_dtype
from graphc_dialects._mlir import ir


def words_of(size: ir.Value, body: Callable[[], ir.Value]) -> ir.Value:
    """A vector of words, each computed in the body of a nest."""
    kind = ir.RankedTensorType.get([build.DYNAMIC], word_type())
    return elementwise([], build.empty(kind, [size]), lambda _: body())


def running(op: ir.Operation, kind: str, values: ir.Value, size: ir.Value) -> ir.Value:
    """A running sum ("add") or maximum ("max") of words.

    Args:
        op: in whose module the call is declared.
        kind: which.
        values, size: a vector, and its length.
    """
    memory = allocate(ir.RankedTensorType(values.type), [size])
    word = type_of_dtype(np.dtype("int64"))
    callee = kernel_call("running", [word] * 2, {"kind": KINDS.index(kind), "reverse": 0})
    calls.call(op, callee, [calls.read_from(values), calls.write_to(memory)])
    return read(memory, values.type)


def element(tensor: ir.Value, place: ir.Value) -> ir.Value:
    """An element of a vector, in the body of a nest."""
    return tensor[place]


class Ranks:
    """Prefix sums of accepted attempts.

    Args:
        op: in whose module calls are declared.
        size: how many attempts there are; there have to be enough that give numbers.
        gives: computes 1 for those that do, and 0 for others.
    """

    def __init__(self, op: ir.Operation, size: ir.Value, gives: Callable[[], ir.Value]) -> None:
        self._size = size
        self._ranks = running(op, "add", words_of(size, gives), size)

    def place(self, draw: ir.Value) -> ir.Value:
        """The attempt that a draw is: the first one up to which there are enough numbers."""
        number = calls.number(draw)

        def halve(bounds: list[ir.Value]) -> list[ir.Value]:
            low, high = bounds
            middle = (low + high) // 2
            few = ~element(self._ranks, middle).above(number)
            above = middle + 1
            return [build.select(few, above, low), build.select(few, high, middle)]

        # Where no attempt before has failed, there is nothing to look up.
        last = self._size - 1
        last = build.select(number < element(self._ranks, draw), draw, last)
        return carry_while([draw, last], lambda x: x[0] < x[1], halve)[0]
