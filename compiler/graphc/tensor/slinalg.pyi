# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from graphc.tensor.nlinalg import *  # noqa: F403
