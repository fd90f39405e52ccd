# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where PyTensor's users look for tensor variables; they are `graphc.graph.tensor.variable`."""

from graphc.graph.tensor.variable import TensorConstant as TensorConstant
from graphc.graph.tensor.variable import TensorSharedVariable as TensorSharedVariable
from graphc.graph.tensor.variable import TensorVariable as TensorVariable
