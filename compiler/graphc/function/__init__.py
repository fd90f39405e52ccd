# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled functions.

The package shares its name with the function ``graphc.function``, as users know it from PyTensor, so the
module itself can
be called: ``graphc.function([x], y)`` is `graphc.function.function.function`.
"""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Any

from graphc.function.function import evaluate as evaluate_variable
from graphc.function.function import function
from graphc.hooks import NamedModule

if TYPE_CHECKING:
    from graphc.function.types import Function


class _CallableModule(NamedModule):
    def __call__(self, *args: Any, **kwargs: Any) -> Function:
        """Compile a graph; see `graphc.function.function.function`."""
        return function(*args, **kwargs)


__all__ = ["evaluate_variable"]
__signature__ = inspect.signature(function)  # of calls of the module

sys.modules[__name__].__class__ = _CallableModule
