# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled functions.

The package shares its name with the function ``graphc.function``, as users know it from PyTensor, so the
module itself can
be called: ``graphc.function([x], y)`` is `graphc.function.function.function`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

# The tensor package imports this one at its end; whichever is asked for first, it has to come first.
import graphc.tensor  # noqa: F401


class _CallableModule(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compile a graph; see `graphc.function.function.function`."""
        from graphc.function.function import function

        return function(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
