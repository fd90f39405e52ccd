# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that a command line names as ``model.py:fn``."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

from graphc.function.types import Function


class SourceError(ValueError):
    """A source names no function."""


def functions_of(text: str, expected: str = "model.py:name") -> dict[str, Any]:
    """The functions that an argument names, by name.

    The name is that of a `graphc.function`, of a dict of them, or of a Python function without parameters
    that gives one of both.

    Args:
        text: the argument.
        expected: what arguments look like, for the message.

    Raises:
        SourceError: the argument has another form, or the file does not define the name.
    """
    file, _, name = text.rpartition(":")
    if not file.endswith(".py") or not name.isidentifier():
        raise SourceError(f"a source is {expected}, got {text!r}")
    sys.path.insert(0, str(Path(file).resolve().parent))
    found = runpy.run_path(file, run_name="graphc_model")
    if name not in found:
        raise SourceError(f"{file} does not define {name}")
    value = found[name]
    if callable(value) and not isinstance(value, Function):
        value = value()
    return dict(value) if isinstance(value, dict) else {name: value}
