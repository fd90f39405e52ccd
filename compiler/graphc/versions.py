# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Installed versions, for reports of bugs."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from typing import TextIO

from graphc.config import Config, config
from graphc_runtime.installed import version

# Distributions that a function may depend on, the ones that graphc needs first.
_NEEDED = ("graphc-runtime", "torch-mlir", "llvmlite", "numpy", "scipy")
_OPTIONAL = ("pytensor", "pymc", "nutpie", "numba", "jax", "cryptography")


def show_versions(file: TextIO | None = None) -> None:
    """Prints what a report of a bug should contain: versions, the machine, settings that were changed.

    Nothing is imported or compiled for it, so that it works where graphc does not.

    Args:
        file: an open text file; the standard output if None.

    >>> import graphc
    >>> graphc.show_versions()
    graphc ...
    """
    print("\n".join(_lines()), file=file or sys.stdout)


def _lines() -> list[str]:
    lines = [f"{'graphc':<16}{version('graphc')}"]
    for name in (*_NEEDED, *_OPTIONAL):
        try:
            lines.append(f"{name:<16}{metadata.version(name)}")
        except metadata.PackageNotFoundError:
            if name in _NEEDED[1:]:  # the runtime is part of graphc
                lines.append(f"{name:<16}not installed")
    system = f"{platform.system()} {platform.machine()}, {' '.join(platform.libc_ver())}"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    lines += [
        f"{'python':<16}{platform.python_implementation()} {platform.python_version()}",
        f"{'system':<16}{system.rstrip(', ')}",
        f"{'cores':<16}{cores}",
    ]
    defaults = {name: value for name, _, value, _ in Config().table()}
    changed = [(name, value) for name, _, value, _ in config.table() if value != defaults[name]]
    lines += [f"config.{name} = {value!r}" for name, value in changed]
    return lines
