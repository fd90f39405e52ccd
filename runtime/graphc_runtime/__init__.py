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

    __version__: str

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
    """The folder of `graphc.h`, for C compilers.

    Examples:
        >>> import graphc_runtime, os
        >>> os.listdir(graphc_runtime.include_dir())
        ['graphc.h']
    """
    return str(Path(__file__).parent / "include")


def __getattr__(name: str) -> Any:
    value: Any
    if name == "__version__":  # an editable installation of graphc has the runtime in it
        value = importlib.import_module("graphc_runtime.installed").version("graphc-runtime", "graphc")
    elif name in ("load", "Module"):
        value = getattr(importlib.import_module("graphc_runtime.loaded"), name)
    else:
        raise AttributeError(f"module 'graphc_runtime' has no attribute {name!r}")
    globals()[name] = value
    return value
