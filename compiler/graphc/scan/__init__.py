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

# The public names of each module, which loads when one is first used.
_PUBLIC = {
    "graphc.scan.op": "Scan",
    "graphc.scan.args": "ScanArgs roles",
    "graphc.scan.spec": "ScanSpec",
    "graphc.scan.frontend": "scan",
    "graphc.scan.returned": "until",
    "graphc.scan.helpers": "cumulative filter foldl foldr map reduce",
    "graphc.scan.associative": "fori_loop loop while_loop associative_scan",
}
_NAMES = {name: module for module, names in _PUBLIC.items() for name in names.split()}

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
