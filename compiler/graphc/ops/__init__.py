# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operations: one module for each family, one row or class for each operation.

Importing a module of rows fills the table of elementwise operations.
"""

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
