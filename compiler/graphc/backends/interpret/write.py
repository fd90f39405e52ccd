# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What writes into buffers mean, for the interpreter: a buffer is an array, its parts are views of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.ir.constants import element_dtype
from graphc.ir.views import axes_order, axis_of

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir

_POISON = 0xA5  # in every byte that has not been written


def _buffer(op: ir.Operation, *sizes: int) -> list[np.ndarray]:
    dtype = element_dtype(op.attributes["type"].value.element_type)
    if dtype == np.bool_:
        return [np.ones(sizes, dtype)]
    count = int(np.prod(sizes, dtype=np.int64)) * dtype.itemsize
    return [np.full(count, _POISON, np.uint8).view(dtype).reshape(sizes)]


def _split(op: ir.Operation, buffer: np.ndarray, *sizes: int) -> list[np.ndarray]:
    axis = axis_of(op)
    if sum(sizes) != buffer.shape[axis] or min(sizes) < 0:
        raise ValueError(f"write_split: parts of sizes {sizes} are not axis {axis} of {buffer.shape}")
    return np.split(buffer, np.cumsum(sizes)[:-1], axis)


def _view(op: ir.Operation, buffer: np.ndarray, *sizes: int) -> list[np.ndarray]:
    if "order" in op.attributes:
        order = axes_order(op)
        dropped = tuple(axis for axis in range(buffer.ndim) if axis not in order)
        ranks = {axis: position for position, axis in enumerate(sorted(x for x in order if x >= 0))}
        moved = np.squeeze(buffer, dropped).transpose([ranks[axis] for axis in order if axis >= 0])
        # The ellipsis makes it a view also where no axis is left.
        return [moved[(..., *(np.newaxis if axis < 0 else slice(None) for axis in order))]]
    if not buffer.flags.c_contiguous:
        raise ValueError(f"write_view: a part with strides {buffer.strides} cannot be reshaped")
    view = buffer.reshape(sizes)
    if buffer.size and not np.shares_memory(view, buffer):
        raise ValueError("write_view: the reshaped part is a copy")
    return [view]


def _write(op: ir.Operation, value: np.ndarray, buffer: np.ndarray) -> list[None]:
    if value.shape != buffer.shape:
        raise ValueError(f"write: a value of shape {value.shape} does not fit {buffer.shape}")
    buffer[...] = value
    return [None]


def _join(op: ir.Operation, buffer: np.ndarray, *tokens: None) -> list[np.ndarray]:
    return [buffer]


WRITES: dict[str, Callable[..., list[Any]]] = {
    "graphc.write_buffer": _buffer,
    "graphc.write_split": _split,
    "graphc.write_view": _view,
    "graphc.write": _write,
    "graphc.write_join": _join,
}
