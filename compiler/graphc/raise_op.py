# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTensor's name for operations that raise when a condition does not hold."""

from graphc.ops.checks import Assert, CheckAndRaise, assert_op

__all__ = ["Assert", "CheckAndRaise", "assert_op"]
