# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NVIDIA's assembler, where it is installed."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import pytest


def ptxas_path() -> str | None:
    """The assembler of the wheel nvidia-cuda-nvcc-cu12."""
    if importlib.util.find_spec("nvidia") is None or importlib.util.find_spec("nvidia.cuda_nvcc") is None:
        return None
    spec = importlib.util.find_spec("nvidia.cuda_nvcc")
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    found = [Path(folder, "bin", "ptxas") for folder in folders]
    return next((str(path) for path in found if path.is_file()), None)


def report(ptx: str, arch: str, folder: Path, *more: str) -> list[str]:
    """The lines in which ptxas says what kernels need."""
    ptxas = ptxas_path()
    if ptxas is None:
        pytest.skip("ptxas is not installed: pip install nvidia-cuda-nvcc-cu12")
    (folder / "kernels.ptx").write_text(ptx)
    command = [ptxas, "-v", f"-arch={arch}", "kernels.ptx", "-o", "kernels.cubin", *more]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert made.returncode == 0, made.stdout + made.stderr
    return made.stderr.splitlines()
