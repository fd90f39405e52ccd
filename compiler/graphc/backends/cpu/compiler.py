# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From the text of a module to an artifact."""

from __future__ import annotations

import ctypes
import sys

from graphc.backends.cpu.generate import generate
from graphc.backends.cpu.lower import lower
from graphc.backends.cpu.preload import preload
from graphc.backends.target import CompileLog, CompileOptions, Resources
from graphc_runtime.artifact import Artifact
from graphc_runtime.manifest import Signature

__all__ = ["compile_text", "preload"]

# Texts with more characters come from modules of tens of megabytes.
_LARGE = 2**20


def compile_text(
    text: str, signature: Signature, options: CompileOptions, resources: Resources, log: CompileLog
) -> Artifact:
    """As `CpuTarget.compile`."""
    lowered = lower(text, options, log)
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
