# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTensor's name for the module of tensor variables; they are `graphc.graph.tensor.variable`."""

from graphc.graph.tensor.variable import TensorConstant as TensorConstant
from graphc.graph.tensor.variable import TensorSharedVariable as TensorSharedVariable
from graphc.graph.tensor.variable import TensorVariable as TensorVariable
