# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reproducer files: a module together with the pipeline that failed on it, in upstream's format."""

from __future__ import annotations

import json
import re
from pathlib import Path

from graphc.backends.isolated import reproducer
from graphc_tools._usage import UsageError

_PIPELINE = re.compile(r'mlir_reproducer:.*?pipeline:\s*("(?:[^"\\]|\\.)*")', re.DOTALL)


def write(path: str, source: str, pipeline: str) -> None:
    """Writes the input module and the pipeline; `graphc-opt --run-reproducer FILE` runs it again.

    Raises:
        UsageError: the file cannot be written.
    """
    text = reproducer(source, pipeline, run=f"graphc-opt --run-reproducer {Path(path).name}")
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write the reproducer '{path}': {error.strerror}") from None


def stored_pipeline(source: str) -> str:
    """The pipeline in a reproducer file.

    Raises:
        UsageError: the file contains none.
    """
    match = _PIPELINE.search(source)
    if match is None:
        raise UsageError("--run-reproducer needs a file with an mlir_reproducer resource, but found none")
    return str(json.loads(match[1]))
