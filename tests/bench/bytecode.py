# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles graphc's Python sources, as an installation does.

Where Python keeps no bytecode (`PYTHONDONTWRITEBYTECODE`, folders that cannot be written), each process would
compile what it imports: 0.3 s of a first compilation, which no user waits for and no peer is charged with.
"""

from __future__ import annotations

import compileall
import importlib.util

_PACKAGES = ("graphc", "graphc_dialects", "graphc_runtime")


def compile_sources() -> None:
    """Bytecode of graphc's packages for this interpreter, where it is not there or out of date."""
    for package in _PACKAGES:
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
            compileall.compile_dir(folder, quiet=2)
