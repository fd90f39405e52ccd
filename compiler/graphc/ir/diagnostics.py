# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Diagnostics of passes, and attributes that only passes set or read, which no verifier knows.

Modules of a package.

Origins of operations: nodes of the emitted graph are names in locations.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn

from graphc.errors import CompileError
from graphc_dialects._mlir import ir

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir


def node_of(op: ir.Operation) -> str:
    """The graph node that an operation comes from, such as `n12`; empty if it is not known."""
    return _node(op.location)


def _node(location: ir.Location) -> str:
    """The first node that a location names."""
    if isinstance(location, ir.NameLoc):
        name = str(location.name_str)
        return name if name[:1] == "n" and name[1:].isdigit() else _node(location.child_loc)
    if isinstance(location, ir.FusedLoc):
        return next(filter(None, map(_node, location.locations)), "")
    if isinstance(location, ir.CallSiteLoc):
        return _node(location.callee) or _node(location.caller)
    return ""


def modules_below(package: str, *, folders: bool = True) -> Iterator[str]:
    """Full names of a package's modules, sorted within each folder; what has two underscores is left out.

    Looks at the names of files only: `pkgutil` takes ten times as long, 10 ms of a first compilation, and
    imports the packages on its way.

    Args:
        package: is imported.
        folders: whether modules of its folders are named, too.

    Example:
        >>> "graphc.ir.diagnostics" in modules_below("graphc.ir", folders=False)
        True
    """
    for path in importlib.import_module(package).__path__:
        yield from _modules(path, package, folders)


def _modules(path: str, package: str, folders: bool) -> Iterator[str]:
    with os.scandir(path) as entries:
        found = sorted((entry.name, entry.is_dir()) for entry in entries if not entry.name.startswith("__"))
    for name, is_folder in found:
        if name.endswith(".py"):
            yield f"{package}.{name.removesuffix('.py')}"
        elif is_folder and folders:
            yield from _modules(os.path.join(path, name), f"{package}.{name}", folders)


class PassError(CompileError):
    """A pass cannot treat the module it was given; the diagnostic is already emitted."""


def fail(op: ir.Operation, message: str) -> NoReturn:
    """Emits an error diagnostic at the op's location and raises PassError."""
    location = op.location
    location.emit_error(message)
    raise PassError(f"{location}: {message}")


def integer(op: ir.Operation, name: str) -> int:
    """The integer or boolean attribute `name`.

    Raises:
        PassError: it is missing, or something else.
    """
    value = getattr(op.attributes.get(name), "value", None)
    if not isinstance(value, int):
        fail(op, f"needs an integer attribute '{name}'")
    return value
