# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from graphc.ops.math import *  # noqa: F403
from graphc.tensor.compat import *  # noqa: F403
