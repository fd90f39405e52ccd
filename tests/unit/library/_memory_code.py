# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The code that takes and gives back memory, compiled without a kernel."""

from __future__ import annotations

import ctypes
from typing import Any

from graphc.backends.cpu.object import compile_to_object
from graphc.library.workspace import WorkspaceTable, memory_ir
from graphc_runtime import symbols
from graphc_runtime.loader import load_object

POINTER, SIZE = ctypes.c_void_p, ctypes.c_size_t


def load(*tables: WorkspaceTable, keep_bytes: int = 1 << 30, poison: bool = False) -> Any:
    text = memory_ir(tables, keep_bytes=keep_bytes, poison=poison)
    return load_object(compile_to_object(text), symbols.resolve)


def function(loaded: Any, name: str, *kinds: Any) -> Any:
    """A function of loaded code; the types are that of its result and those of its arguments."""
    return ctypes.CFUNCTYPE(*kinds)(loaded.address(name))
