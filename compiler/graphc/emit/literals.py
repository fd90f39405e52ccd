# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types, literals and locations in MLIR's textual form."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphc.emit.types import ELEMENTS
from graphc.graph.location import SourceLocation

_BITS = {2: np.uint16, 4: np.uint32, 8: np.uint64}


def tensor_type(dtype: str, shape: Sequence[int | None]) -> str:
    """Text of a ranked tensor type, ``tensor<2x?xf64>``."""
    sizes = "".join(f"{'?' if size is None else size}x" for size in shape)
    return f"tensor<{sizes}{ELEMENTS[dtype]}>"


def dense(array: np.ndarray) -> str:
    """Text of a dense elements attribute without its type, ``dense<[1, 2]>``."""
    if array.size == 0:
        return "dense<>"
    first = array.reshape(-1)[:1]
    if array.tobytes() == first.tobytes() * array.size:
        return f"dense<{_element(first[0])}>"
    return f"dense<{_nested(array)}>"


def _nested(array: np.ndarray) -> str:
    if array.ndim == 0:
        return _element(array[()])
    return f"[{', '.join(_nested(part) for part in array)}]"


def _element(value: np.ndarray) -> str:
    kind = value.dtype.kind
    if kind == "V":
        return str(int(value.view(np.uint16)))
    if kind == "b":
        return "true" if value else "false"
    if kind in "iu":
        return str(int(value))
    if kind == "c":
        return f"({_element(value.real)}, {_element(value.imag)})"
    if np.isfinite(value):
        return f"{float(value):.17e}"
    # Infinities and NaN only exist as bit patterns.
    return f"0x{int(value.view(_BITS[value.dtype.itemsize])):0{2 * value.dtype.itemsize}X}"


def quoted(text: str) -> str:
    """A string literal."""
    if text.isascii() and text.isprintable() and not {'"', "\\"} & set(text):
        return f'"{text}"'
    out = []
    for byte in text.encode():
        char = chr(byte)
        out.append(char if 32 <= byte < 127 and char not in '"\\' else f"\\{byte:02X}")
    return f'"{"".join(out)}"'


def location(name: str, where: SourceLocation | None) -> str:
    """Text of a location that carries a name and, where known, the user's line."""
    if where is None:
        return f"loc({quoted(name)})"
    return f"loc({quoted(name)}({quoted(where.file)}:{where.line}:0))"
