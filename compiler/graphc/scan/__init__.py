# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops.

The package shares its name with the function ``graphc.scan``, so the module itself can be called:
``graphc.scan(fn, ...)`` is `graphc.scan.frontend.scan`.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from graphc.hooks import NamedModule
from graphc.scan import rules as rules
from graphc.scan.frontend import scan

if TYPE_CHECKING:
    from graphc.graph.tensor.variable import TensorVariable

# Where each public name lives; loaded when first used.
_NAMES = {
    "Scan": "graphc.scan.op",
    "ScanArgs": "graphc.scan.args",
    "ScanSpec": "graphc.scan.spec",
    "roles": "graphc.scan.args",
    "scan": "graphc.scan.frontend",
    "until": "graphc.scan.returned",
    **dict.fromkeys(("cumulative", "filter", "foldl", "foldr", "map", "reduce"), "graphc.scan.helpers"),
    **dict.fromkeys(("fori_loop", "loop", "while_loop"), "graphc.scan.associative"),
    "associative_scan": "graphc.scan.associative",
}

__all__ = sorted(_NAMES)


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'graphc.scan' has no attribute {name!r}")
    value = getattr(importlib.import_module(_NAMES[name]), name)
    globals()[name] = value
    return value


class _CallableModule(NamedModule):
    def __call__(self, *args: Any, **kwargs: Any) -> TensorVariable | list[TensorVariable]:
        """Build a loop; see `graphc.scan.frontend.scan`."""
        return scan(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
