# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from graphc.ops.ifelse import *  # noqa: F403
