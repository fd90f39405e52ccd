# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prefixes of a block of threads: what the values of a thread and of all before it combine to.

The order of all operations follows from sizes, so that equal calls give equal bits; operations need not
commute. Source: G. Blelloch, "Prefix sums and their applications" (1990).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from graphc.ir import build
from graphc.ir.value import converted, larger
from graphc.lowering.carried import when
from graphc.lowering.scalars.builder import Scalar, ScalarBuilder
from graphc.passes.gpu._kernel import Kernel
from graphc.passes.gpu._notation import WARP, barrier, block_dim, shuffled, thread_id
from graphc_dialects._mlir import ir

# The most threads of a block.
THREADS = 256
_METHODS = {"add": "add", "mul": "mul", "max": "maximum", "min": "minimum", "and": "and_", "or": "or_"}
# Of bytes that are 0 or 1.
_OF_BOOLS = {"add": "or", "mul": "and", "max": "or", "min": "and", "and": "and", "or": "or"}


class Associative(Protocol):
    """An operation on tuples of numbers of one type, which need not commute."""

    @property
    def parts(self) -> int:
        """Number of components of a tuple."""

    @property
    def type(self) -> ir.Type:
        """Of the numbers."""

    def neutral(self) -> list[ir.Value]:
        """The tuple that changes nothing."""

    def combine(self, left: Sequence[ir.Value], right: Sequence[ir.Value]) -> list[ir.Value]:
        """`left` and then `right`."""


class Running:
    """An associative operation, of tuples of numbers.

    A step of a linear recurrence is the pair (a, b); two steps are the pair (a a', a' b + b').

    Args:
        kind: "add", "mul", "max", "min", "and", "or" or "linear".
        dtype: of the numbers; bools are bytes.
    """

    def __init__(self, kind: str, dtype: np.dtype) -> None:
        self._linear = kind == "linear"
        is_bool = dtype == np.bool_
        self._kind = _OF_BOOLS[kind] if is_bool and not self._linear else kind
        self._dtype = np.dtype("uint8") if is_bool else dtype
        self._b = ScalarBuilder(ir)

    @property
    def parts(self) -> int:
        """Number of components of a tuple."""
        return 2 if self._linear else 1

    @property
    def type(self) -> ir.Type:
        """Of the numbers."""
        return self._b.type(self._dtype)

    def neutral(self) -> list[ir.Value]:
        """The tuple that changes nothing; a sum begins with -0.0, to which 0.0 and -0.0 can be added."""
        if self._linear:
            return [self._constant(1), self._constant(self._nothing())]
        return [self._constant(self._number())]

    def combine(self, left: Sequence[ir.Value], right: Sequence[ir.Value]) -> list[ir.Value]:
        """`left` and then `right`."""
        if self._linear:
            product = self._b.mul(self._scalar(left[0]), self._scalar(right[0]))
            return [product.value, self.apply(left[1], right)]
        return [self.apply(left[0], right)]

    def apply(self, value: ir.Value, step: Sequence[ir.Value]) -> ir.Value:
        """The number that comes after one."""
        b, x = self._b, self._scalar(value)
        if self._linear:
            made = b.add(b.mul(self._scalar(step[0]), x), self._scalar(step[1]))
        else:
            made = getattr(b, _METHODS[self._kind])(x, self._scalar(step[0]))
        return made.value

    def _scalar(self, value: ir.Value) -> Scalar:
        return Scalar(value, self._dtype)

    def _constant(self, number: complex) -> ir.Value:
        return self._b.const(number, self._dtype).value

    def _nothing(self) -> complex:
        return -0.0 if self._dtype.kind == "f" else complex(-0.0, -0.0) if self._dtype.kind == "c" else 0

    def _number(self) -> complex:
        if self._kind in ("add", "or"):
            return self._nothing()
        if self._kind == "mul":
            return 1
        if self._kind == "and":
            return int(np.invert(np.zeros((), self._dtype)))
        if self._dtype.kind == "f":
            return float("-inf" if self._kind == "max" else "inf")
        limits = np.iinfo(self._dtype)
        return int(limits.min if self._kind == "max" else limits.max)


class BlockPrefix:
    """Prefixes over the threads of a block, which has threads along x only, whole warps.

    Args:
        kernel: it gets a buffer of one tuple a warp.
        running: the operation.
    """

    def __init__(self, kernel: Kernel, running: Associative) -> None:
        self._running = running
        self._buffers = [kernel.shared([WARP], running.type) for _ in range(running.parts)]

    def before(self, values: list[ir.Value]) -> tuple[list[ir.Value], list[ir.Value]]:
        """Prefix over all threads before one, and the total over all; all threads of the block have
        to get here.
        """
        running = self._running
        thread = thread_id()
        lane, warp = thread % WARP, thread // WARP
        own = self._warp(values, lane, WARP)
        with when(lane.equals(WARP - 1)):
            for value, buffer in zip(own, self._buffers, strict=True):
                buffer[warp] = value
        barrier()
        count = block_dim() // WARP
        within = lane.below(count)
        place = build.select(within, lane, 0)
        found = [b[place] for b in self._buffers]
        found = [build.select(within, x, y) for x, y in zip(found, running.neutral(), strict=True)]
        warps = self._warp(found, lane, THREADS // WARP)
        barrier()
        total = _all(warps, count - 1)
        previous = _all(warps, larger(warp - 1, 0))
        first_lane, first_warp = (x.equals(0) for x in (lane, warp))
        inside = self._or_neutral(first_lane, [shuffled(value, 1, "up") for value in own])
        return running.combine(self._or_neutral(first_warp, previous), inside), total

    def _or_neutral(self, condition: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
        neutral = self._running.neutral()
        return [build.select(condition, x, value) for x, value in zip(neutral, values, strict=True)]

    def _warp(self, values: list[ir.Value], lane: ir.Value, width: int) -> list[ir.Value]:
        """Inclusive prefix over the first lanes."""
        offset = 1
        while offset < width:
            others = [shuffled(value, offset, "up") for value in values]
            exists = lane >= offset
            both = self._running.combine(others, values)
            values = [build.select(exists, x, y) for x, y in zip(both, values, strict=True)]
            offset *= 2
        return values


def _all(values: list[ir.Value], lane: ir.Value) -> list[ir.Value]:
    """The values of one lane, for all lanes of the warp."""
    number = converted(lane, ir.IntegerType.get_signless(32))
    return [shuffled(value, number, "idx") for value in values]
