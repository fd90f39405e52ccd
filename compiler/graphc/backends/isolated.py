# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiling in a helper process (``config.compile_isolated``)."""

from __future__ import annotations

from graphc.backends import worker
from graphc.backends.reproducer import Reproducers
from graphc.backends.target import CompileLog, CompileOptions, Target
from graphc.errors import CompileError
from graphc.ir.donations import with_donations
from graphc_runtime.artifact import Artifact
from graphc_runtime.executable import Executable
from graphc_runtime.manifest import Signature
from graphc_runtime.steps import step

_COMPILE = "graphc.backends.isolated:compile_here"


class CompilerDied(CompileError):
    """The process that compiled has ended; the message names a file with which it does so again."""


class IsolatedTarget(Target):
    """Another target, whose compiler runs in a helper process: a crash ends that instead of this one.

    Args:
        inner: the target.
        seconds: time limit; 0 for none.
        reproducers: where crashes are written down.
    """

    def __init__(self, inner: Target, seconds: float, reproducers: Reproducers) -> None:
        super().__init__(inner.resources)
        self._inner, self._seconds, self._reproducers = inner, seconds, reproducers

    def compile(self, text: str, signature: Signature, options: CompileOptions, log: CompileLog) -> Artifact:
        """As `Target.compile`.

        Raises:
            CompileError: as there; also where the process crashed or took too long. The message names a file
                with which it happens again.
        """
        step("in a helper process", 1, 1)
        try:
            artifact, found = worker.call(
                _COMPILE, self._inner, text, signature, options, log.empty(), seconds=self._seconds
            )
        except worker.WorkerDied as death:
            raise CompilerDied(self._report(text, signature, options, death)) from None
        log.add(found)
        made: Artifact = artifact
        return made

    def load(self, artifact: Artifact) -> Executable:
        return self._inner.load(artifact)

    def identity(self) -> str:
        return self._inner.identity()

    def pipeline(self, text: str, options: CompileOptions) -> list[str]:
        return self._inner.pipeline(text, options)

    def _report(
        self, text: str, signature: Signature, options: CompileOptions, death: worker.WorkerDied
    ) -> str:
        path = self._reproducers.write(
            with_donations(text, options.donations),
            ",".join(self.pipeline(text, options)),
            [f"mode {options.mode}: {death.how}", *death.output.splitlines()],
        )
        directory = self._reproducers.directory
        written = f"could not be written to {directory!r}" if path is None else f"is in {path}"
        output = f"\n{death.output}" if death.output else ""
        return (
            f"the process that compiled {signature.name!r} failed: {death.how}; please report this with the "
            f"module that was compiled, which {written}{output}"
        )


def compile_here(
    target: Target, text: str, signature: Signature, options: CompileOptions, log: CompileLog
) -> tuple[Artifact, CompileLog]:
    """What the helper process runs, with an empty log."""
    return target.compile(text, signature, options, log), log
