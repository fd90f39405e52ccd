# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTensor's name for the module of the tensor type; it is `graphc.graph.tensor.type`."""

from graphc.graph.tensor.type import *  # noqa: F403
from graphc.graph.tensor.type import TensorType as TensorType
