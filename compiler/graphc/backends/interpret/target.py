# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The interpreter as a target: graph passes, and nothing below them."""

from __future__ import annotations

from graphc.backends.interpret.executable import Interpreted
from graphc.backends.interpret.optimise import graph_passes, optimise
from graphc.backends.target import CompileLog, CompileOptions, Target
from graphc_runtime.artifact import Artifact
from graphc_runtime.executable import Executable
from graphc_runtime.manifest import Signature


class InterpretTarget(Target):
    """The graph stage as "fast_run" optimises it, operation by operation in NumPy.

    Slow, and needs no compiler: what it computes shows whether a wrong result is the fault of graph passes or
    of what comes below. Arguments are never overwritten, so that donations are not used.
    """

    name = "interpret"

    def compile(self, text: str, signature: Signature, options: CompileOptions, log: CompileLog) -> Artifact:
        return optimise(text, signature, options, log)

    def load(self, artifact: Artifact) -> Executable:
        return Interpreted(artifact)

    def pipeline(self, text: str, options: CompileOptions) -> list[str]:
        return graph_passes(text)
