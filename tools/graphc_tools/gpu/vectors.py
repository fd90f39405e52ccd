# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of vectors, whose axes follow axis 0 of a value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from graphc_dialects._mlir import ir
from graphc_tools.gpu.arithmetic import REDUCTIONS
from graphc_tools.gpu.interpreter import Decoder, Frame, Run
from graphc_tools.gpu.values import spread

_DYNAMIC = ir.ShapedType.get_dynamic_size()


def _extract(decoder: Decoder, op: ir.Operation) -> Run:
    vector, *dynamic = decoder.slots_of(list(op.operands))
    result, position = decoder.slot(op.results[0]), list(op.attributes["static_position"])

    def run(frame: Frame, lanes: np.ndarray) -> None:
        values = frame.array(vector)
        if _DYNAMIC not in position:
            frame.values[result] = values[(slice(None), *position)]
        else:
            at = spread(frame.array(dynamic[0]), frame.all)
            frame.values[result] = spread(values, frame.all)[frame.all, at]

    return run


def _insert(decoder: Decoder, op: ir.Operation) -> Run:
    value, vector, *dynamic = decoder.slots_of(list(op.operands))
    result, (position,) = decoder.slot(op.results[0]), list(op.attributes["static_position"])

    def run(frame: Frame, lanes: np.ndarray) -> None:
        values = np.array(spread(frame.array(vector), frame.all))
        at = spread(frame.array(dynamic[0]), frame.all) if position == _DYNAMIC else position
        values[frame.all, at] = spread(frame.array(value), frame.all)
        frame.values[result] = values

    return run


def _from_elements(decoder: Decoder, op: ir.Operation) -> Run:
    elements, result = decoder.slots_of(list(op.operands)), decoder.slot(op.results[0])
    shape = list(op.results[0].type.shape)

    def run(frame: Frame, lanes: np.ndarray) -> None:
        values = np.stack([spread(frame.array(slot), frame.all) for slot in elements], axis=1)
        frame.values[result] = values.reshape(-1, *shape)

    return run


def _broadcast(decoder: Decoder, op: ir.Operation) -> Run:
    operand, result = decoder.slot(op.operands[0]), decoder.slot(op.results[0])
    shape = list(op.results[0].type.shape)

    def run(frame: Frame, lanes: np.ndarray) -> None:
        value = frame.array(operand)
        inner = value.shape[1:]
        value = value.reshape(len(value), *[1] * (len(shape) - len(inner)), *inner)
        frame.values[result] = np.broadcast_to(value, (len(value), *shape))

    return run


def _to_elements(decoder: Decoder, op: ir.Operation) -> Run:
    operand, results = decoder.slot(op.operands[0]), decoder.slots_of(list(op.results))

    def run(frame: Frame, lanes: np.ndarray) -> None:
        for i, result in enumerate(results):
            frame.values[result] = frame.array(operand)[:, i]

    return run


def _reduction(decoder: Decoder, op: ir.Operation) -> Run:
    """In order, starting from the accumulator."""
    vector, *start = decoder.slots_of(list(op.operands))
    result = decoder.slot(op.results[0])
    combine = REDUCTIONS[str(op.attributes["kind"]).removeprefix("#vector.kind<").removesuffix(">")]

    def run(frame: Frame, lanes: np.ndarray) -> None:
        values = frame.array(vector)
        found = frame.array(start[0]) if start else None
        for i in range(values.shape[1]):
            found = values[:, i] if found is None else combine(found, values[:, i])
        frame.values[result] = found

    return run


VECTORS: dict[str, Callable[[Decoder, ir.Operation], Run]] = {
    "vector.extract": _extract,
    "vector.insert": _insert,
    "vector.from_elements": _from_elements,
    "vector.to_elements": _to_elements,
    "vector.broadcast": _broadcast,
    "vector.reduction": _reduction,
}
