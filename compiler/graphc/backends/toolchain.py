# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dependencies of compiled code besides its graph: the compiler, its libraries, the machine."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Iterator
from functools import cache

import numpy as np

from graphc_runtime.cpu import first_processor


def toolchain() -> str:
    """Identifies the compiler's sources, its dependencies, Python, NumPy and the CPU, and the kind of entry
    that this process asks for.
    """
    return f"{_compiler()};{os.environ.get('GRAPHC_CALL_TIER', '')}"


@cache
def _compiler() -> str:
    digest = hashlib.sha256()
    for package in ("graphc", "graphc_dialects", "graphc_runtime"):
        digest.update("".join(sorted(_sources(package))).encode())
    digest.update(f"{sys.version};{np.__version__};{platform.machine()};{sys.platform}".encode())
    for module in ("llvmlite", "torch_mlir"):
        digest.update(_installed(module).encode())
    digest.update(_cpu().encode())
    return digest.hexdigest()


def _sources(package: str) -> Iterator[str]:
    """A line for each file of a package: name, size and time. `os.scandir` takes a fifth of `Path.rglob`."""
    import importlib.util

    spec = importlib.util.find_spec(package)
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    status = entry.stat()
                    yield f"{entry.name}:{status.st_size}:{status.st_mtime_ns};"
                elif entry.name != "__pycache__" and entry.is_dir():
                    folders.append(entry.path)


def _installed(module: str) -> str:
    """Place and time of a dependency's installation; cheaper than reading its metadata."""
    import importlib.util

    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return f"{module} missing"
    return f"{spec.origin}:{os.stat(spec.origin).st_mtime_ns}"


def _cpu() -> str:
    """CPU model and features."""
    wanted = ("model name", "flags", "Features", "CPU implementer", "CPU part")
    lines = first_processor()
    return "\n".join(line for line in lines if line.startswith(wanted)) if lines else platform.processor()
