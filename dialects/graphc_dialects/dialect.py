# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Registers the dialect, and makes contexts that have it."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from threading import Lock

from graphc_dialects._base import Graphc
from graphc_dialects._mlir import add_dialect_search_prefix, ir

# Dialects whose operations our passes create by name; the others load when a parser or an upstream pass asks
# for them.
_PRELOADED = (
    "affine arith bufferization cf complex func index irdl linalg llvm math memref scf tensor ub vector"
).split()
# Every file but those of the bindings' search for the namespace and of this one may define operations.
for _module in pkgutil.iter_modules([str(Path(__file__).parent)]):
    if not _module.name.startswith("_") and _module.name not in ("dialect", "graphc"):
        importlib.import_module(f"graphc_dialects.{_module.name}")

# Without this the bindings search the file system for the dialect's Python module each time they wrap an
# operation.
add_dialect_search_prefix("graphc_dialects")


_LOADING = Lock()


def operation_classes() -> dict[str, type]:
    """Every operation class of the dialect by its full name, such as `graphc.add`."""
    return {cls.OPERATION_NAME: cls for cls in Graphc.operations}


def load(context: ir.Context) -> None:
    """Registers the dialect in a context; does nothing where it already is."""
    if context.is_dialect_loaded("graphc"):
        return
    # The bindings keep what they registered last in attributes of the class, so loading is not re-entrant.
    with _LOADING, context:
        Graphc.load()


def new_context(*, allow_unregistered: bool = False) -> ir.Context:
    """A context that knows the graphc dialect and upstream's.

    Args:
        allow_unregistered: accept operations of dialects that are not registered.

    Returns:
        An `ir.Context` without threads. Errors are collected in the exceptions the bindings raise; to see
        them, attach a `Diagnostics` (graphc_dialects.diagnostics).
    """
    context = ir.Context(load_on_create_dialects=[])
    context.enable_multithreading(False)
    for name in _PRELOADED:
        # `context.dialects[name]` would also import the Python classes of each, which takes 0.1 s.
        context.get_dialect_descriptor(name)
    context.allow_unregistered_dialects = allow_unregistered
    load(context)
    return context
