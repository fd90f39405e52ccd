# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that a command line names as ``model.py:fn``.

A file runs once for a command, however often it is named, and also where another file imports it: functions
of one file have the same shared variables. Those of two files are different ones, whatever their names.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from graphc.function.types import Function
from graphc.graph.basic import Variable


class SourceError(ValueError):
    """A source names no function."""


def functions_of(texts: Sequence[str], expected: str = "model.py:name") -> list[dict[str, Function]]:
    """The functions that each argument names, by name.

    The name is that of a `graphc.function`, of a dict of them, or of a Python function without parameters
    that gives one of both.

    Args:
        texts: the arguments.
        expected: what arguments look like, for the message.

    Raises:
        SourceError: an argument has another form, or the file does not define the name.
    """
    named = [text.rpartition(":") for text in texts]
    for text, (file, _, name) in zip(texts, named, strict=True):
        if not file.endswith(".py") or not name.isidentifier():
            raise SourceError(f"a source is {expected}, got {text!r}")
    with _run(dict.fromkeys(Path(file).resolve() for file, _, _ in named)) as modules:
        return [_functions(modules[Path(file).resolve()], file, name) for file, _, name in named]


def _functions(module: ModuleType, file: str, name: str) -> dict[str, Function]:
    if not hasattr(module, name):
        raise SourceError(f"{file} does not define {name}")
    value = getattr(module, name)
    if callable(value) and not isinstance(value, Function | Variable):
        value = value()
    return dict(value) if isinstance(value, dict) else {name: value}


@contextmanager
def _run(paths: Iterable[Path]) -> Iterator[dict[Path, ModuleType]]:
    """The modules of files, each of which is run once; meanwhile they are imported by their names."""
    modules: dict[Path, ModuleType] = {}
    try:
        for path in paths:
            known = sys.modules.get(path.stem)
            if known is not None and getattr(known, "__file__", None) == str(path):
                modules[path] = known
                continue
            module = modules[path] = ModuleType("graphc_model" if known else path.stem)
            module.__file__ = str(path)
            sys.modules.setdefault(path.stem, module)
            sys.path.insert(0, str(path.parent))
            exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
        yield modules
    finally:
        for path, module in modules.items():
            if sys.modules.get(path.stem) is module:
                del sys.modules[path.stem]
