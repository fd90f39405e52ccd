# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operations: one module for each family, one row or class for each operation."""

from graphc.ops import (  # noqa: F401
    rows_arithmetic,
    rows_compare,
    rows_explog,
    rows_round,
    rows_special,
    rows_trig,
)
