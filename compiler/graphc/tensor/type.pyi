# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from graphc.graph.tensor.type import *  # noqa: F403
