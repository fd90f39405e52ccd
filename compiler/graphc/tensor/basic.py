# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTensor's name for the module that makes tensor variables; it is `graphc.graph.tensor.convert`."""

from graphc.graph.tensor.convert import *  # noqa: F403
from graphc.graph.tensor.convert import NotScalarConstantError as NotScalarConstantError
