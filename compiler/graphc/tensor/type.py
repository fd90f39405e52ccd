# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where PyTensor's users look for the tensor type; it is `graphc.graph.tensor.type`."""

from graphc.graph.tensor.type import *  # noqa: F403
from graphc.graph.tensor.type import TensorType as TensorType
