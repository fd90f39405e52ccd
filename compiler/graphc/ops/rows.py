# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fills the table of elementwise operations."""

from graphc.ops import (  # noqa: F401
    rows_arithmetic,
    rows_compare,
    rows_explog,
    rows_round,
    rows_special,
    rows_trig,
)
