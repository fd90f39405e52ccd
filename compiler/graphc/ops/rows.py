# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fills the table of elementwise operations."""

from graphc.ops import (  # noqa: F401
    rows_arithmetic,
    rows_compare,
    rows_explog,
    rows_floats,
    rows_round,
    rows_special,
    rows_special_bessel,
    rows_special_entropy,
    rows_special_gamma,
    rows_special_integral,
    rows_trig,
)
