# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from graphc_runtime.distributed import *  # noqa: F403
