# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bits as elements, and elements as bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphc.graph.basic import Variable
from graphc.graph.tensor.convert import as_tensor_variable, constant
from graphc.ops.axes import normalize_axis
from graphc.ops.create import zeros
from graphc.ops.join import concatenate
from graphc.ops.math import bitwise_and, cast, ne
from graphc.ops.reduce import sum as sum_
from graphc.ops.shaping import expand_dims, moveaxis, ravel, reshape
from graphc.ops.sizes import sizes_of

if TYPE_CHECKING:
    from graphc.graph.tensor.like import TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = [
    "packbits",
    "unpackbits",
]


def packbits(a: TensorLike, axis: int | None = None, bitorder: str = "big") -> TensorVariable:
    """Eight booleans as one uint8 each; the last ones are filled up with 0.

    Args:
        a: booleans or integers, of which those that are not 0 count as true.
        axis: the axis; by default the array is flattened.
        bitorder: "big": the first one is the highest bit; or "little".

    Examples:
        >>> pt.packbits([1, 0, 0, 0, 0, 0, 0, 1]).eval()
        array([129], dtype=uint8)
    """
    x, axis = _on_axis(a, axis, "packbits")
    values = moveaxis(cast(ne(x, 0), "uint8"), axis, -1)
    *batch, n = sizes_of(values)
    groups = (n + 7) // 8
    padded = concatenate([values, zeros((*batch, groups * 8 - n), dtype="uint8")], axis=-1)
    bits = reshape(padded, (*batch, groups, 8)) * constant(_weights(bitorder))
    return moveaxis(sum_(bits, axis=-1, dtype="uint8"), -1, axis)


def unpackbits(
    a: TensorLike, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> TensorVariable:
    """The bits of uint8 as eight elements each; arguments as of `packbits`.

    ``count`` limits the result to so many along the axis; negative numbers leave out the last ones.

    Examples:
        >>> pt.unpackbits(np.array([129], dtype="uint8")).eval()
        array([1, 0, 0, 0, 0, 0, 0, 1], dtype=uint8)
    """
    x, axis = _on_axis(a, axis, "unpackbits")
    if x.type.dtype != "uint8":
        raise TypeError(f"unpackbits takes uint8, got {x} of type {x.type}")
    values = expand_dims(moveaxis(x, axis, -1), -1)
    *batch, n, _ = sizes_of(values)
    bits = cast(ne(bitwise_and(values, constant(_weights(bitorder))), 0), "uint8")
    flat = reshape(bits, (*batch, n * 8))
    if count is not None:
        number = count if isinstance(count, Variable) else int(count)
        if isinstance(number, Variable) or number < 0:
            flat = flat[..., :number]
        else:
            flat = concatenate([flat, zeros((*batch, number), dtype="uint8")], axis=-1)[..., :number]
    return moveaxis(flat, -1, axis)


def _on_axis(a: TensorLike, axis: int | None, what: str) -> tuple[TensorVariable, int]:
    x = as_tensor_variable(a)
    if axis is None:
        return ravel(x), 0
    return x, normalize_axis(axis, x.type.ndim, what)


def _weights(bitorder: str) -> np.ndarray:
    if bitorder not in ("big", "little"):
        raise ValueError(f'bitorder must be "big" or "little", got {bitorder!r}')
    powers = 1 << np.arange(8)
    return (powers if bitorder == "little" else powers[::-1]).astype(np.uint8)
