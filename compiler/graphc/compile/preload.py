# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads MLIR and LLVM ahead of the first compilation, so that reports can tell loading from compiling."""

from __future__ import annotations

import importlib
from functools import cache

# Bindings whose classes are looked up when operations of these dialects are first wrapped.
_DIALECTS = "arith bufferization cf func linalg llvm math memref scf tensor".split()


@cache
def preload() -> None:
    """Imports the bindings, the dialect, every pass of the pipelines, and llvmlite. Does nothing the second
    time.
    """
    from graphc.codegen.object import host_target
    from graphc.passes._base import find
    from graphc.pipelines import PIPELINES
    from graphc_dialects import _mlir
    from graphc_dialects.dialect import new_context

    for name in _DIALECTS:
        _mlir.dialect_module(name)
    for entries in PIPELINES.values():
        for flag, _ in entries:
            if flag.startswith("graphc-"):
                find(flag)
    for module in ("converter", "loops", "matmul", "math"):
        importlib.import_module(f"graphc.lowering.{module}")
    new_context()
    host_target()
