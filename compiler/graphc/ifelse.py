# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conditionals: `ifelse` and its op `IfElse`.

PyTensor has a module of this name; graphc's can be called, too: ``graphc.ifelse(c, a, b)``.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from graphc.ops.ifelse import IfElse, ifelse

__all__ = ["IfElse", "ifelse"]


class _CallableModule(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Choose; see `graphc.ops.ifelse.ifelse`."""
        return ifelse(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
