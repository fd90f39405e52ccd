# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Views of compiled functions and their calls. Few processes load it."""

from __future__ import annotations

from graphc.function.explorer.page import explore
from graphc.function.memory_plan import memory_plan
from graphc.function.roofline import roofline
from graphc.function.trace import Trace

__all__ = ["Trace", "explore", "memory_plan", "roofline"]
