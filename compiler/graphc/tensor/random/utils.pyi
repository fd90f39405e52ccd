# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from graphc.tensor.random.stream import *  # noqa: F403
