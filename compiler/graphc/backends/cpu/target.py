# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Machine code for the processor of this machine."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import replace

from graphc.backends import CompileLog, CompileOptions, Target
from graphc.backends.cpu.pipeline import pipeline_of
from graphc.backends.stages import has_loops
from graphc_runtime.artifact import Artifact
from graphc_runtime.collecting import paused
from graphc_runtime.errors import LoadError
from graphc_runtime.executable import Executable
from graphc_runtime.machine_code import MachineCode
from graphc_runtime.manifest import Signature


class CpuTarget(Target):
    """Passes down to the llvm dialect, LLVM, and an ELF object that the runtime loads."""

    name = "cpu"
    has_counters = has_budget = True

    def compile(self, text: str, signature: Signature, options: CompileOptions, log: CompileLog) -> Artifact:
        is_loaded = "graphc.backends.cpu.compiler" in sys.modules
        with log.phase("load compiler"), nullcontext() if is_loaded else paused(stays=True):
            # Who finds all in the disk cache loads no compiler.
            from graphc.backends.cpu import compiler

            compiler.preload(has_scan=has_loops(text))
        return compiler.compile_text(text, signature, options, self.resources, log)

    def load(self, artifact: Artifact) -> Executable:
        return MachineCode(artifact)

    def pipeline(self, text: str, options: CompileOptions) -> list[str]:
        return [entry for entry, _ in pipeline_of(text, options)]

    def build(self, text: str, signature: Signature, options: CompileOptions, log: CompileLog) -> Executable:
        """As `Target.build`; where a part from the disk is not what its hash says, all are made anew."""
        try:
            return super().build(text, signature, options, log)
        except LoadError:
            if not self.resources.cache_dir or self.resources.renew:
                raise
            return CpuTarget(replace(self.resources, renew=True)).build(text, signature, options, log)
