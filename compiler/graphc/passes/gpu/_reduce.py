# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One value of a block of threads: shuffles within warps, shared memory between them.

The order of all additions is fixed by the number of threads, so that equal calls give equal bits. A butterfly
of shuffles leaves the result in all threads, in the same order for each: a + b is b + a.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from graphc.ir import build
from graphc.lowering.carried import either, when
from graphc.lowering.partial_reductions import Combiner
from graphc.passes.gpu._kernel import Kernel
from graphc.passes.gpu._notation import WARP, barrier, block_dim, shuffled, thread_id
from graphc_dialects._mlir import ir

Values: TypeAlias = Sequence[ir.Value]
Combine: TypeAlias = Callable[[Values, Values], list[ir.Value]]


class BlockReduction:
    """Reductions along x of the threads of a block, for each y apart.

    Args:
        kernel: it gets a buffer of one element a warp for each type.
        width: threads along x, an index: a power of two below 32, where several y share a warp, or a
            multiple of a warp; None if there is one y with several warps.
    """

    def __init__(self, kernel: Kernel, width: ir.Value | None = None) -> None:
        self._kernel, self._width = kernel, width
        self._buffers: dict[tuple[str, int], ir.Value] = {}

    def all(self, value: ir.Value, combiner: Combiner) -> ir.Value:
        """Combination over all threads of a y, in all of them; all threads of the block get here."""
        return self.together(
            [value], lambda a, b: [combiner.combine(a[0], b[0])], [combiner.constant(value.type)]
        )[0]

    def together(self, values: Values, combine: Combine, neutral: Values) -> list[ir.Value]:
        """As `all`, of several values that are combined together; the order of the threads is any.

        Args:
            values: of the thread.
            combine: of two threads' values those of both.
            neutral: what changes nothing.
        """
        known = None if self._width is None else build.constant_value(self._width)
        if self._width is not None and known is None:
            values = self._lanes(values, combine, self._width)
        else:
            values = _warp(values, combine, WARP if known is None else min(known, WARP))
        if self._width is None:
            return self._across(values, combine, neutral, block_dim())
        width, own = self._width, values
        if known is not None:
            return self._across(values, combine, neutral, width) if known > WARP else values
        several = width > WARP
        kinds = [value.type for value in values]
        return either(several, kinds, lambda: self._across(own, combine, neutral, width), lambda: own)

    def _across(self, values: Values, combine: Combine, neutral: Values, width: ir.Value) -> list[ir.Value]:
        """Combination over the warps of a y."""
        buffers = self._shared([value.type for value in values])
        thread, zero = thread_id(), build.const_index(0)
        lane, warp = thread % WARP, thread // WARP
        count = width // WARP
        first = zero
        if self._width is not None:
            first = thread_id(1) * count
        with when(lane.equals(zero)):
            place = first + warp
            for value, buffer in zip(values, buffers, strict=True):
                buffer[place] = value
        barrier()
        within = lane.below(count)
        # Lanes without a warp read the first one's value instead of nothing.
        place = first + build.select(within, lane, zero)
        found = []
        for buffer, nothing in zip(buffers, neutral, strict=True):
            value = buffer[place]
            found.append(build.select(within, value, nothing))
        total = _warp(found, combine)
        barrier()
        return total

    def _shared(self, kinds: Sequence[ir.Type]) -> list[ir.Value]:
        """A buffer for each value, others for values of the same type."""
        keys = [(str(kind), kinds[:number].count(kind)) for number, kind in enumerate(kinds)]
        for key, kind in zip(keys, kinds, strict=True):
            if key not in self._buffers:
                self._buffers[key] = self._kernel.shared([WARP], kind)
        return [self._buffers[key] for key in keys]

    def _lanes(self, values: Values, combine: Combine, width: ir.Value) -> list[ir.Value]:
        """Combination over the lanes of a warp that belong to a y; a single one has it already."""
        several = width > 1
        kinds = [value.type for value in values]
        return either(several, kinds, lambda: self._shuffled(values, combine, width), lambda: values)

    def _shuffled(self, values: Values, combine: Combine, width: ir.Value) -> list[ir.Value]:
        offset = WARP // 2
        while offset:
            both = combine(values, [shuffled(value, offset) for value in values])
            within = offset < width
            values = [build.select(within, new, old) for new, old in zip(both, values, strict=True)]
            offset //= 2
        return list(values)


def _warp(values: Values, combine: Combine, width: int = WARP) -> list[ir.Value]:
    """Combination over groups of `width` lanes."""
    offset = width // 2
    while offset:
        values = combine(values, [shuffled(value, offset) for value in values])
        offset //= 2
    return list(values)
