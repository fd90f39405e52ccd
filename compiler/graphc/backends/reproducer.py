# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reproducer files: a module, the pipeline that failed on it, and what it was run with.

The form is upstream's, with comments: ``graphc-opt --run-reproducer FILE`` runs the pipeline again.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from graphc_runtime.record import record

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
