# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operations: one module for each family, one row or class for each operation."""

from graphc.ops.table import rows  # noqa: F401
