# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a benchmark ran on."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import re
from pathlib import Path


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine()
    fields = dict(re.findall(r"^([^\t:]+)\s*: (.*)$", text, re.MULTILINE))
    name = fields.get("model name", platform.machine())
    if "cpu family" in fields:
        name += f" (family {fields['cpu family']}, model {fields['model']})"
    widest = [flag for flag in ("avx512f", "avx2") if flag in fields.get("flags", "").split()]
    return f"{name}, {widest[0]}" if widest else name


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def describe() -> dict[str, str | int]:
    """Processor, usable cores, system, versions and date; nothing that names the host."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {
        "processor": _processor(),
        "cores": cores,
        "system": f"{platform.system()} {platform.machine()}, {' '.join(platform.libc_ver())}".rstrip(", "),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "mlir": f"torch-mlir {_version('torch-mlir')}",
        "llvm": f"llvmlite {_version('llvmlite')}",
        "date": datetime.date.today().isoformat(),
    }


def with_versions(*packages: str) -> str:
    """What a benchmark ran on, in one line: processor, cores, Python, packages, date."""
    found = describe()
    versions = [f"{name} {_version(name)}" for name in packages]
    ran = [found["processor"], f"{found['cores']} cores", found["python"], *versions, found["date"]]
    return ", ".join(map(str, ran))
