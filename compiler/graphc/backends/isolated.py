# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiling in a helper process (``config.compile_isolated``).

A crash leaves a reproducer file: a module, the pipeline that failed on it, and what it was run with.

The form is upstream's, with comments: ``graphc-opt --run-reproducer FILE`` runs the pipeline again.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from graphc.backends import CompileLog, CompileOptions, Target, worker
from graphc.errors import CompileError
from graphc.ir.donations import with_donations
from graphc_runtime.artifact import Artifact
from graphc_runtime.executable import Executable
from graphc_runtime.manifest import Signature
from graphc_runtime.record import record
from graphc_runtime.steps import watcher

_PACKAGES = ("graphc", "torch-mlir", "llvmlite", "numpy")


def reproducer(source: str, pipeline: str, *, run: str, notes: Iterable[str] = ()) -> str:
    """The text of a reproducer.

    Args:
        source: the module.
        pipeline: passes separated by commas.
        run: the command that runs it.
        notes: lines that say how it came about.
    """
    resource = (
        "{-#\n  external_resources: {\n    mlir_reproducer: {\n"
        f"      pipeline: {json.dumps(f'builtin.module({pipeline})')},\n"
        "      disable_threading: true,\n      verify_each: true\n    }\n  }\n#-}\n"
    )
    comments = "".join(f"// {line}\n" for line in (run, *notes))
    return f"{comments}{source.strip()}\n\n{resource}"


@record(frozen=True)
class Reproducers:
    """The folder of reproducers.

    Attributes:
        directory: the folder.
        settings: what was set, for a comment.
    """

    directory: str
    settings: str

    def write(self, source: str, pipeline: str, notes: Iterable[str]) -> Path | None:
        """Writes a reproducer; its name follows from module and pipeline.

        Returns:
            The file; None where it cannot be written.
        """
        digest = hashlib.sha256("\0".join([pipeline, source]).encode()).hexdigest()
        name = f"crash-{digest[:16]}.mlir"
        path = Path(self.directory, name)
        lines = [line for note in notes for line in note.splitlines()]
        text = reproducer(
            source,
            pipeline,
            run=f"graphc-opt --isolated --run-reproducer --emit=obj {name}",
            notes=[*_versions(), f"settings: {self.settings}", *lines],
        )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError:
            return None
        return path


def _versions() -> list[str]:
    found = []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return [f"{', '.join(found)}, Python {platform.python_version()}, {platform.platform()}"]


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
        if (tell := watcher()) is not None:
            tell(("in a helper process", 1, 1))
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
    """Compiles in the helper process, with an empty log."""
    return target.compile(text, signature, options, log), log
