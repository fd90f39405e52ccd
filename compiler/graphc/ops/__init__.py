# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operations: one module for each family, one row or class for each operation."""

# This package and graphc.tensor need each other; either may be imported first.
import graphc.tensor  # noqa: F401
from graphc.ops import rows  # noqa: F401
