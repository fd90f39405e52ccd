# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The one module that imports MLIR's Python bindings.

Upstream's bindings are used under the name `mlir` where a complete and recent build of them is installed,
else through the `torch-mlir` wheel, which carries the same modules. Everything else imports from here:

    from graphc_dialects._mlir import arith, ir, tensor

Dialect modules are loaded when they are first asked for, because some of them are slow to import.
"""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType
from typing import Any

_INSTALL_HINT = (
    "graphc compiles with MLIR's Python bindings, which are not installed. "
    "Install them with: pip install 'torch-mlir==20261001'"
)
_DIALECTS = frozenset(
    "affine arith bufferization builtin cf complex ext func gpu index irdl linalg llvm math memref nvvm scf "
    "shape tensor transform ub vector".split()
)


def _has_dialect_support(root: str) -> bool:
    """Whether the bindings under this name can define dialects with verifiers in Python."""
    try:
        if importlib.util.find_spec(f"{root}._mlir_libs") is None:
            return False
        module = importlib.import_module(f"{root}.ir")
    except ImportError:
        return False
    return hasattr(module, "DynamicOpTrait") and importlib.util.find_spec(f"{root}.dialects.ext") is not None


def _find_root() -> str:
    for root in ("mlir", "torch_mlir"):
        if _has_dialect_support(root):
            return root
    raise ImportError(_INSTALL_HINT)


ROOT = _find_root()

ir: Any = importlib.import_module(f"{ROOT}.ir")
passmanager: Any = importlib.import_module(f"{ROOT}.passmanager")
rewrite: Any = importlib.import_module(f"{ROOT}.rewrite")


def translate_module_to_llvmir(operation: Any) -> str:
    """Textual LLVM IR of a module in the llvm dialect."""
    return str(dialect_module("llvm").translate_module_to_llvmir(operation))


def dialect_module(name: str) -> ModuleType:
    """The bindings of one upstream dialect.

    Raises:
        ImportError: this build of the bindings does not have it.
    """
    return importlib.import_module(f"{ROOT}.dialects.{name}")


def add_dialect_search_prefix(package: str) -> None:
    """Lets the bindings find `package.<namespace>` when they look for a dialect's classes."""
    common = importlib.import_module(f"{ROOT}.dialects._ods_common")
    common._cext.globals.append_dialect_search_prefix(package)


def __getattr__(name: str) -> Any:
    if name in _DIALECTS:
        module = dialect_module(name)
        globals()[name] = module
        return module
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
