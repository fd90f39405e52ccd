# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of loops: their buffers, rows, states that are updated in place, and recurrences."""
