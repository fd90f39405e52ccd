# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Element types on both sides: NumPy dtypes, graph-stage types and storage types.

In the graph stage an element type says everything NumPy's dtype says (`ui8` is unsigned, `i1` is bool).
Buffers hold *storage types*: signless integers, and one byte for a bool, because LLVM does not vectorise
loads of `i1`. Inside a loop body values have *compute types*, which are signless with `i1` for bool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphc.emit.types import NAMES

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir

DTYPES: dict[str, np.dtype] = {text: np.dtype(name) for name, text in NAMES.items()}
_TEXTS: dict[np.dtype, str] = {dtype: text for text, dtype in DTYPES.items()}
# Printing a type takes longer than asking for its class, which is enough for the commonest.
_OF_CLASSES = {f"F{bits}Type": np.dtype(f"float{bits}") for bits in (16, 32, 64)}


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


def compute_name(dtype: np.dtype) -> str:
    """MLIR text of the type a scalar of this dtype has inside a loop body."""
    name = _TEXTS[dtype]
    return name[1:] if name.startswith("ui") else name


def storage_name(dtype: np.dtype) -> str:
    """MLIR text of the element type buffers of this dtype have."""
    return "i8" if dtype == np.bool_ else compute_name(dtype)
