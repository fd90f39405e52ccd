# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading and writing the literals of graph-stage IR as NumPy arrays."""

from __future__ import annotations

import re
import struct
from typing import Any

import numpy as np

from graphc_dialects._mlir import ir

CONSTANTS = frozenset({"arith.constant", "graphc.constant"})

ELEMENTS: dict[str, np.dtype] = {
    "i1": np.dtype("bool"),
    **{f"i{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    "f16": np.dtype("float16"),
    "f32": np.dtype("float32"),
    "f64": np.dtype("float64"),
    "complex<f32>": np.dtype("complex64"),
    "complex<f64>": np.dtype("complex128"),
    "index": np.dtype("int64"),
}
# Printing a type takes longer than asking for its class, which is enough for the commonest.
_OF_CLASSES = {f"F{bits}Type": np.dtype(f"float{bits}") for bits in (16, 32, 64)}
_COMPLEX = re.compile(r"\(([^,()]+),([^,()]+)\)")


def element_dtype(element_type: ir.Type) -> np.dtype:
    """The NumPy dtype of a graph-stage element type; `index` counts as int64.

    Raises:
        TypeError: the type is none of the dialect's.
    """
    known = _OF_CLASSES.get(type(element_type).__name__)
    if known is not None:
        return known
    try:
        return ELEMENTS[str(element_type)]
    except KeyError:
        raise TypeError(f"graphc has no NumPy dtype for element type {element_type}") from None


def _number(text: str, width: int) -> float:
    text = text.strip()
    if not text.startswith("0x"):
        return float(text)
    return float(struct.unpack("<d" if width == 8 else "<f", int(text, 16).to_bytes(width, "little"))[0])


def complex_literal(op: ir.Operation, dtype: np.dtype, shape: list[int]) -> np.ndarray | None:
    """The elements of the dense complex attribute of an operation; None if it is something else.

    Parses the printed form: the bindings cannot wrap such attributes.
    """
    width = dtype.itemsize // 2
    # Otherwise printing verifies all that is around the operation first.
    text = op.get_asm(use_local_scope=True, assume_verified=True)
    found = _COMPLEX.findall(text)
    values = np.array([complex(_number(re_, width), _number(im, width)) for re_, im in found], dtype)
    count = int(np.prod(shape))
    if values.size == 1:
        return np.full(shape, values[0], dtype)
    return values.reshape(shape) if values.size == count else None


def read_constant(op: ir.Operation) -> Any:
    """The value of an `arith.constant` or `graphc.constant`.

    Returns:
        An ndarray with the dtype and shape of a tensor result, a Python int for index and integer results,
        else None.
    """
    type_ = op.results[0].type
    if not isinstance(type_, ir.RankedTensorType):
        attribute = op.attributes["value"]
        return attribute.value if isinstance(attribute, (ir.IntegerAttr, ir.BoolAttr, ir.FloatAttr)) else None
    dtype, shape = element_dtype(type_.element_type), list(type_.shape)
    if dtype.kind == "c":
        return complex_literal(op, dtype, shape)
    attribute = op.attributes["value"]
    if not isinstance(attribute, ir.DenseElementsAttr):
        return None
    return np.array(attribute).astype(dtype, copy=False).reshape(shape)


def constant_identity(op: ir.Operation) -> Any:
    """Hashable key that is equal for two literals of one type exactly if their bits are."""
    value = read_constant(op)
    if isinstance(value, np.ndarray):
        return value.tobytes()
    return op if value is None else (type(value), value)


def constant_attribute(array: np.ndarray, type_: ir.Type) -> tuple[str, ir.Attribute]:
    """Operation name and `value` attribute of a literal with the given ranked tensor type."""
    name = "graphc.constant" if array.dtype.kind == "u" else "arith.constant"
    return name, ir.DenseElementsAttr.get(np.ascontiguousarray(array), type=type_)
