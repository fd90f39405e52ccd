# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fills the table of elementwise operations."""

from graphc.ops.table import (  # noqa: F401
    arithmetic,
    bessel,
    compare,
    entropy,
    explog,
    floats,
    gamma,
    integral,
    round,
    special,
    trig,
)
