# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs compiled graphs: loads object code, resolves its symbols, calls it. Needs NumPy only.

``graphc_runtime.load("model.gcx")`` gives the functions of an artifact.
"""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphc_runtime.linker import EagerLinker, Frame, Layout, LazyLinker, Step, make_linker
from graphc_runtime.thunk import FunctionThunk, Thunk, value_thunk

if TYPE_CHECKING:
    from graphc_runtime.loaded import Module as Module
    from graphc_runtime.loaded import load as load

__version__ = "0.1.0"

__all__ = [
    "EagerLinker",
    "Frame",
    "FunctionThunk",
    "Layout",
    "LazyLinker",
    "Module",
    "Step",
    "Thunk",
    "include_dir",
    "load",
    "make_linker",
    "value_thunk",
]


def include_dir() -> str:
    """The folder of `graphc.h`, for C compilers."""
    return str(Path(__file__).parent / "include")


def __getattr__(name: str) -> Any:
    if name not in ("load", "Module"):
        raise AttributeError(f"module 'graphc_runtime' has no attribute {name!r}")
    value = getattr(importlib.import_module("graphc_runtime.loaded"), name)
    globals()[name] = value
    return value
