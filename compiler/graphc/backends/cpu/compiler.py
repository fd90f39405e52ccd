# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From the text of a module to an artifact.

MLIR and LLVM are loaded ahead of the first compilation, so that reports can tell loading from compiling.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
from functools import cache

from graphc.backends import CompileLog, CompileOptions, Resources
from graphc.backends.contexts import prepare
from graphc.backends.cpu.generate import generate
from graphc.backends.cpu.lower import lower
from graphc.backends.cpu.object import is_available, this_machine
from graphc.names import modules_below
from graphc_runtime.artifact import Artifact
from graphc_runtime.collecting import paused
from graphc_runtime.manifest import Signature

# The compiler, less what only graphs with loops need.
_PACKAGES = (
    *("ir", "emit", "passes.graph", "passes.tensor", "passes.buffer", "passes.llvm"),
    *("lowering", "backends.cpu"),
    *("library.products", "library.random"),
)
_LIBRARY = ("markers", "places", "pool", "workspace")


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
        for name in _LIBRARY:
            importlib.import_module(f"graphc.library.{name}")
        prepare()
        this_machine()


__all__ = ["compile_text", "preload"]

# Texts with more characters come from modules of tens of megabytes.
_LARGE = 2**20


def compile_text(
    text: str, signature: Signature, options: CompileOptions, resources: Resources, log: CompileLog
) -> Artifact:
    """As `CpuTarget.compile`."""
    machine = this_machine()
    lowered = lower(text, options, log, (*machine.vectors(), is_available(machine.triple)))
    if len(lowered.llvm_ir) + sum(len(piece.text) for piece in lowered.pieces) > _LARGE:
        _return_memory()
    with log.phase("code generation"):
        return generate(lowered, signature, options, resources, log)


def _return_memory() -> None:
    """Gives the memory of modules that are gone back to the system.

    glibc keeps it for the thread that they were made in. LLVM works in other threads, which take memory of
    their own: of 30,000 operations a fifth of the peak was kept and not used.
    """
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)
