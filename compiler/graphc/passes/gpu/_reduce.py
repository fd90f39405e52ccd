# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One value of a block of threads: shuffles within warps, shared memory between them.

The order of all additions is fixed by the number of threads, so that equal calls give equal bits. A butterfly
of shuffles leaves the result in all threads, in the same order for each: a + b is b + a.
"""

from __future__ import annotations

from graphc.ir import build
from graphc.lowering.partial_reductions import Combiner
from graphc.passes.gpu._kernel import Kernel, barrier, position
from graphc.passes.gpu._shuffle import WARP, shuffled
from graphc_dialects._mlir import ir


class BlockReduction:
    """Reductions of a kernel whose blocks have threads along x only, a multiple of a warp.

    Args:
        kernel: it gets a buffer of one element a warp for each type.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._buffers: dict[str, ir.Value] = {}

    def all(self, value: ir.Value, combiner: Combiner) -> ir.Value:
        """What the values of all threads combine to, in all threads; all of the block have to get here."""
        value = _butterfly(value, combiner)
        kind = value.type
        if str(kind) not in self._buffers:
            self._buffers[str(kind)] = self._kernel.shared([WARP], kind)
        buffer = self._buffers[str(kind)]
        thread, zero = position("thread_id"), build.const_index(0)
        width = build.const_index(WARP)
        lane, warp = build.index_op("remui", thread, width), build.index_op("divui", thread, width)
        with on_condition(build.compare_index(0, lane, zero)):
            build.create("memref.store", [], [value, buffer, warp])
        barrier()
        count = build.index_op("divui", position("block_dim"), width)
        within = build.compare_index(6, lane, count)
        # Lanes without a warp read the first one's value instead of nothing.
        found = build.create("memref.load", [kind], [buffer, build.select(within, lane, zero)]).result
        total = _butterfly(build.select(within, found, combiner.constant(kind)), combiner)
        barrier()
        return total


class on_condition:
    """An `scf.if` without results around what is made inside."""

    def __init__(self, condition: ir.Value) -> None:
        made = ir.Operation.create("scf.if", operands=[condition], regions=2)
        self._block = ir.Block.create_at_start(made.regions[0], [])

    def __enter__(self) -> None:
        self._point = ir.InsertionPoint(self._block)
        self._point.__enter__()

    def __exit__(self, *error: object) -> None:
        build.create("scf.yield", [], [])
        self._point.__exit__(None, None, None)


def on_first_thread() -> on_condition:
    """What is made inside is done by thread 0 of the block alone."""
    return on_condition(build.compare_index(0, position("thread_id"), build.const_index(0)))


def _butterfly(value: ir.Value, combiner: Combiner) -> ir.Value:
    offset = WARP // 2
    while offset:
        value = combiner.combine(value, shuffled(value, offset))
        offset //= 2
    return value
