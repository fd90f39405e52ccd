# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads MLIR and LLVM ahead of the first compilation, so that reports can tell loading from compiling."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

# Bindings whose classes are looked up when operations of these dialects are first wrapped.
_DIALECTS = "arith bufferization builtin cf func linalg llvm math memref scf tensor".split()


def preload(has_scan: bool = False) -> None:
    """Imports the bindings, the dialect, the compiler's own modules and llvmlite; once per process.

    Args:
        has_scan: also import what only graphs with loops need.
    """
    _preload()
    if has_scan:
        _preload_scan()


@cache
def _preload_scan() -> None:
    passes = importlib.import_module("graphc.passes")
    for info in pkgutil.iter_modules(passes.__path__):
        if info.name.lstrip("_").startswith("scan_"):
            importlib.import_module(f"graphc.passes.{info.name}")


@cache
def _preload() -> None:
    from graphc.codegen.object import host_target
    from graphc.compile.lower import keep_context
    from graphc_dialects import _mlir
    from graphc_dialects.dialect import new_context

    for name in _DIALECTS:
        _mlir.dialect_module(name)
    for package in ("ir", "passes", "lowering", "lowering.math", "codegen"):
        parent = importlib.import_module(f"graphc.{package}")
        for info in pkgutil.iter_modules(parent.__path__):
            if info.name.lstrip("_").startswith("scan_"):
                continue  # only graphs with loops need these
            importlib.import_module(f"graphc.{package}.{info.name}")
    importlib.import_module("graphc.pipelines")
    keep_context(new_context())
    host_target()
