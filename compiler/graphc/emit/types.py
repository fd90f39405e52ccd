# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names of element types in the dialect."""

from __future__ import annotations

NAMES: dict[str, str] = {
    "bool": "i1",
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"ui{bits}" for bits in (8, 16, 32, 64)},
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
}
# Of what IR moves only: arithmetic of bfloat16 is that of float32 (`graphc.ops.rows_floats`).
ELEMENTS = {**NAMES, "bfloat16": "ui16"}
