# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTensor's older name of `graphc.tensor.linalg`."""

from graphc.tensor.linalg import *  # noqa: F403
