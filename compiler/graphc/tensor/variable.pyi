# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from graphc.graph.tensor.variable import *  # noqa: F403
