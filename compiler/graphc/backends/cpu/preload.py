# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads MLIR and LLVM ahead of the first compilation, so that reports can tell loading from compiling."""

from __future__ import annotations

import importlib
from functools import cache

from graphc.backends.contexts import prepare
from graphc.backends.cpu.object import this_machine
from graphc.ir.modules import modules_below
from graphc_runtime.collecting import paused

# The compiler, less what only graphs with loops need.
_PACKAGES = (
    *("ir", "emit", "passes.manager", "passes.graph", "passes.tensor", "passes.buffer", "passes.llvm"),
    *("lowering", "backends.cpu"),
    *("library.memory", "library.pool", "library.products", "library.random"),
)


def preload(has_scan: bool = False) -> None:
    """Imports the bindings, the dialect, the compiler's own modules and llvmlite; once per process.

    Args:
        has_scan: also import what only graphs with loops need.
    """
    _preload()
    if has_scan:
        _preload_scan()


def _import_all(package: str) -> None:
    """Imports the modules of a package of graphc, and those of its folders."""
    for name in modules_below(f"graphc.{package}"):
        importlib.import_module(name)


@cache
def _preload_scan() -> None:
    with paused(stays=True):
        _import_all("passes.loops")


@cache
def _preload() -> None:
    with paused(stays=True):
        for package in _PACKAGES:
            _import_all(package)
        prepare()
        this_machine()
