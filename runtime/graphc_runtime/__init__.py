# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs compiled graphs: loads object code, resolves its symbols, calls it. Needs NumPy only."""

from graphc_runtime.linker import EagerLinker, Frame, Layout, LazyLinker, Step, make_linker
from graphc_runtime.thunk import FunctionThunk, Thunk, value_thunk

__all__ = [
    "EagerLinker",
    "Frame",
    "FunctionThunk",
    "Layout",
    "LazyLinker",
    "Step",
    "Thunk",
    "make_linker",
    "value_thunk",
]
