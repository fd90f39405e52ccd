# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Element types as NumPy's dtypes, and the literals of graph-stage IR as NumPy arrays.

In the graph stage an element type says everything NumPy's dtype says (`ui8` is unsigned, `i1` is bool).
Buffers hold *storage types*: signless integers, and one byte for a bool, because LLVM does not vectorise
loads of `i1`. Inside a loop body values have *compute types*, which are signless with `i1` for bool.
"""

from __future__ import annotations

import re
import struct
from typing import Any

import numpy as np

from graphc.emit.emitter import NAMES
from graphc_dialects._mlir import ir

CONSTANTS = frozenset({"arith.constant", "graphc.constant"})

DTYPES: dict[str, np.dtype] = {text: np.dtype(name) for name, text in NAMES.items()}
_TEXTS: dict[np.dtype, str] = {dtype: text for text, dtype in DTYPES.items()}
# Printing a type takes longer than asking for its class, which is enough for the commonest.
_OF_CLASSES = {f"F{bits}Type": np.dtype(f"float{bits}") for bits in (16, 32, 64)}
_COMPLEX = re.compile(r"\(([^,()]+),([^,()]+)\)")


def dtype_of(element_type: ir.Type) -> np.dtype:
    """The NumPy dtype of a graph-stage element type.

    Raises:
        TypeError: the type is none of the element types of the dialect.
    """
    known = _OF_CLASSES.get(type(element_type).__name__)
    if known is not None:
        return known
    try:
        return DTYPES[str(element_type)]
    except KeyError:
        raise TypeError(
            f"element type {element_type} is not supported; expected one of {', '.join(DTYPES)}"
        ) from None


def element_dtype(element_type: ir.Type) -> np.dtype:
    """As `dtype_of`; `index` counts as int64."""
    return np.dtype("int64") if isinstance(element_type, ir.IndexType) else dtype_of(element_type)


def compute_name(dtype: np.dtype) -> str:
    """MLIR text of the type a scalar of this dtype has inside a loop body."""
    name = _TEXTS[dtype]
    return name[1:] if name.startswith("ui") else name


def storage_name(dtype: np.dtype) -> str:
    """MLIR text of the element type buffers of this dtype have."""
    return "i8" if dtype == np.bool_ else compute_name(dtype)


def storage_type(tensor_type: ir.Type) -> ir.Type:
    """The tensor type with the element type its buffer has."""
    element = tensor_type.element_type
    if isinstance(element, ir.IndexType):
        return tensor_type
    dtype = dtype_of(element)
    if dtype.kind in "fc":
        return tensor_type
    return ir.RankedTensorType.get(tensor_type.shape, ir.Type.parse(storage_name(dtype)))


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
