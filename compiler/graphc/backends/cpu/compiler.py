# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From the text of a module to an artifact."""

from __future__ import annotations

from graphc.backends.cpu.generate import generate
from graphc.backends.cpu.lower import lower
from graphc.backends.cpu.preload import preload
from graphc.backends.target import CompileLog, CompileOptions, Resources
from graphc_runtime.artifact import Artifact
from graphc_runtime.manifest import Signature

__all__ = ["compile_text", "preload"]


def compile_text(
    text: str, signature: Signature, options: CompileOptions, resources: Resources, log: CompileLog
) -> Artifact:
    """As `CpuTarget.compile`."""
    lowered = lower(text, options, log)
    with log.phase("code generation"):
        return generate(lowered, signature, options, resources, log)
