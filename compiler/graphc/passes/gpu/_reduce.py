# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One value of a block of threads: shuffles within warps, shared memory between them.

The order of all additions is fixed by the number of threads, so that equal calls give equal bits. A butterfly
of shuffles leaves the result in all threads, in the same order for each: a + b is b + a.

Values of other threads of a warp, of any element type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from graphc.ir import build
from graphc.lowering.carried import either
from graphc.lowering.partial_reductions import Combiner
from graphc.passes.gpu._kernel import Kernel, barrier, position
from graphc_dialects._mlir import ir

WARP = 32


def shuffled(value: ir.Value, lane: int | ir.Value, mode: str = "xor") -> ir.Value:
    """The value of another lane; whole warps have to get here.

    Args:
        value: of any element type.
        lane: what `mode` takes, a number or an i32.
        mode: "xor", "up", "down" or "idx". Lanes that do not exist give the thread's own value.
    """
    kind = value.type
    if isinstance(lane, int):
        lane = word(lane)
    if isinstance(kind, ir.ComplexType):
        parts = [
            shuffled(build.create(f"complex.{part}", [kind.element_type], [value]).result, lane, mode)
            for part in ("re", "im")
        ]
        return build.create("complex.create", [kind], parts).result
    if not isinstance(kind, ir.IntegerType):
        bits = _integer(int(kind.width))
        moved = shuffled(build.create("arith.bitcast", [bits], [value]).result, lane, mode)
        return build.create("arith.bitcast", [kind], [moved]).result
    if kind.width < WARP:
        moved = shuffled(build.create("arith.extui", [_integer(32)], [value]).result, lane, mode)
        return build.create("arith.trunci", [kind], [moved]).result
    return _word(value, lane, mode) if kind.width == 32 else _words(value, lane, mode)


def word(number: int) -> ir.Value:
    """A constant of 32 bits."""
    kind = _integer(32)
    return build.create("arith.constant", [kind], [], value=ir.IntegerAttr.get(kind, number)).result


def _words(value: ir.Value, lane: ir.Value, mode: str) -> ir.Value:
    """64 bits as two halves."""
    kind, half_kind = value.type, _integer(32)
    half = build.create("arith.constant", [kind], [], value=ir.IntegerAttr.get(kind, 32)).result
    low = build.create("arith.trunci", [half_kind], [value]).result
    high = build.create("arith.shrui", [kind], [value, half]).result
    high = build.create("arith.trunci", [half_kind], [high]).result
    wide = [build.create("arith.extui", [kind], [_word(part, lane, mode)]).result for part in (low, high)]
    top = build.create("arith.shli", [kind], [wide[1], half]).result
    return build.create("arith.ori", [kind], [wide[0], top]).result


def _word(value: ir.Value, lane: ir.Value, mode: str) -> ir.Value:
    attribute = ir.Attribute.parse(f"#gpu<shuffle_mode {mode}>")
    results = [_integer(32), _integer(1)]
    return build.create("gpu.shuffle", results, [value, lane, word(WARP)], mode=attribute).results[0]


def _integer(width: int) -> ir.Type:
    return ir.IntegerType.get_signless(width)


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
            return self._across(values, combine, neutral, position("block_dim"))
        width, own = self._width, values
        if known is not None:
            return self._across(values, combine, neutral, width) if known > WARP else values
        several = build.compare_index(4, width, build.const_index(WARP))
        kinds = [value.type for value in values]
        return either(several, kinds, lambda: self._across(own, combine, neutral, width), lambda: own)

    def _across(self, values: Values, combine: Combine, neutral: Values, width: ir.Value) -> list[ir.Value]:
        """Combination over the warps of a y."""
        buffers = self._shared([value.type for value in values])
        thread, zero = position("thread_id"), build.const_index(0)
        full = build.const_index(WARP)
        lane, warp = build.index_op("remui", thread, full), build.index_op("divui", thread, full)
        count = build.index_op("divui", width, full)
        first = zero
        if self._width is not None:
            first = build.index_op("muli", position("thread_id", 1), count)
        with on_condition(build.compare_index(0, lane, zero)):
            place = build.index_op("addi", first, warp)
            for value, buffer in zip(values, buffers, strict=True):
                build.create("memref.store", [], [value, buffer, place])
        barrier()
        within = build.compare_index(6, lane, count)
        # Lanes without a warp read the first one's value instead of nothing.
        place = build.index_op("addi", first, build.select(within, lane, zero))
        found = []
        for buffer, nothing in zip(buffers, neutral, strict=True):
            value = build.create("memref.load", [nothing.type], [buffer, place]).result
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
        several = build.compare_index(4, width, build.const_index(1))
        kinds = [value.type for value in values]
        return either(several, kinds, lambda: self._shuffled(values, combine, width), lambda: values)

    def _shuffled(self, values: Values, combine: Combine, width: ir.Value) -> list[ir.Value]:
        offset = WARP // 2
        while offset:
            both = combine(values, [shuffled(value, offset) for value in values])
            within = build.compare_index(2, build.const_index(offset), width)
            values = [build.select(within, new, old) for new, old in zip(both, values, strict=True)]
            offset //= 2
        return list(values)


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
    """Runs the code that is made inside on thread 0 of the block alone."""
    return on_condition(build.compare_index(0, position("thread_id"), build.const_index(0)))


def _warp(values: Values, combine: Combine, width: int = WARP) -> list[ir.Value]:
    """Combination over groups of `width` lanes."""
    offset = width // 2
    while offset:
        values = combine(values, [shuffled(value, offset) for value in values])
        offset //= 2
    return list(values)
