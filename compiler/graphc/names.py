# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names: of the modules of a package, and names that do not clash."""

from __future__ import annotations

import importlib
import os
from collections.abc import Container, Iterator


def modules_below(package: str, *, folders: bool = True) -> Iterator[str]:
    """Full names of a package's modules, sorted within each folder; what has two underscores is left out.

    Looks at the names of files only: `pkgutil` takes ten times as long, 10 ms of a first compilation, and
    imports the packages on its way.

    Args:
        package: is imported.
        folders: whether modules of its folders are named, too.

    Example:
        >>> "graphc.ir.size" in modules_below("graphc.ir", folders=False)
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


def unique_name(name: str, taken: Container[str]) -> str:
    """`name`, or `name` with a number from 2 on, so that it is not taken."""
    number, candidate = 1, name
    while candidate in taken:
        number += 1
        candidate = f"{name}_{number}"
    return candidate
