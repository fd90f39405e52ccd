# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Branches and loops: each thread takes its own way, and what is within runs for those that are there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from graphc_dialects._mlir import ir
from graphc_tools.gpu.interpreter import Decoder, Frame, Run
from graphc_tools.gpu.values import Value, merged, spread, uniform


def _assign(frame: Frame, slots: Sequence[int], values: Sequence[Value | None]) -> None:
    for slot, value in zip(slots, values, strict=True):
        frame.values[slot] = value


def _chosen(frame: Frame, lanes: np.ndarray) -> np.ndarray:
    mask = np.zeros(frame.threads, bool)
    mask[lanes] = True
    return mask


def _merge(
    frame: Frame, lanes: np.ndarray, new: Sequence[Value | None], old: Sequence[Value | None]
) -> list[Value | None]:
    """`new` for some threads, `old` for the others."""
    if len(lanes) == frame.threads:
        return list(new)
    mask = _chosen(frame, lanes)
    return [a if b is None else b if a is None else merged(mask, a, b) for a, b in zip(new, old, strict=True)]


def _if(decoder: Decoder, op: ir.Operation) -> Run:
    condition, results = decoder.slot(op.operands[0]), decoder.slots_of(list(op.results))
    nothing: tuple[Run, list[int]] = (lambda frame, lanes: None, [])
    branches = [decoder.block(region.blocks[0]) if len(region.blocks) else nothing for region in op.regions]

    def run(frame: Frame, lanes: np.ndarray) -> None:
        holds = spread(frame.array(condition), lanes)
        sides = [lanes[holds], lanes[~holds]]
        found: list[list[Value | None]] = []
        for side, (body, yields) in zip(sides, branches, strict=True):
            if len(side):
                body(frame, side)
            found.append([frame.values[slot] for slot in yields] if len(side) else [None] * len(results))
        if not results:
            return
        if len(sides[0]) == 0 or len(sides[1]) == 0:
            _assign(frame, results, found[0] if len(sides[0]) else found[1])
        else:
            _assign(frame, results, _merge(frame, sides[0], found[0], found[1]))

    return run


def _for(decoder: Decoder, op: ir.Operation) -> Run:
    lower, upper, step, *initial = decoder.slots_of(list(op.operands))
    block = op.regions[0].blocks[0]
    counter, *carried = decoder.slots_of(list(block.arguments))
    body, yields = decoder.block(block)
    results = decoder.slots_of(list(op.results))

    def run(frame: Frame, lanes: np.ndarray) -> None:
        at, end, by = (frame.array(slot) for slot in (lower, upper, step))
        state = [frame.values[slot] for slot in initial]
        if all(uniform(x, lanes) for x in (at, end, by)):
            at, end, by = (spread(x, lanes)[:1] for x in (at, end, by))
        while True:
            left = lanes[spread(at, lanes) < spread(end, lanes)]
            if not len(left):
                break
            frame.values[counter] = at
            _assign(frame, carried, state)
            body(frame, left)
            state = _merge(frame, left, [frame.values[slot] for slot in yields], state)
            at = at + by
        _assign(frame, results, state)

    return run


def _while(decoder: Decoder, op: ir.Operation) -> Run:
    initial, results = decoder.slots_of(list(op.operands)), decoder.slots_of(list(op.results))
    before, after = (region.blocks[0] for region in op.regions)
    first, (condition, *passed) = decoder.block(before)
    second, yields = decoder.block(after)
    given, taken = decoder.slots_of(list(before.arguments)), decoder.slots_of(list(after.arguments))

    def run(frame: Frame, lanes: np.ndarray) -> None:
        state = [frame.values[slot] for slot in initial]
        found: list[Value | None] = [None] * len(results)
        left = lanes
        while len(left):
            _assign(frame, given, state)
            first(frame, left)
            found = _merge(frame, left, [frame.values[slot] for slot in passed], found)
            left = left[spread(frame.array(condition), left)]
            if len(left):
                _assign(frame, taken, found)
                second(frame, left)
                state = _merge(frame, left, [frame.values[slot] for slot in yields], state)
        _assign(frame, results, found)

    return run


CONTROL: dict[str, Callable[[Decoder, ir.Operation], Run]] = {
    "scf.if": _if,
    "scf.for": _for,
    "scf.while": _while,
}
