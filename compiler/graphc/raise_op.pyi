# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from graphc.ops.checks import *  # noqa: F403
