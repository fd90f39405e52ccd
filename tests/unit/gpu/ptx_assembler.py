# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NVIDIA's assembler, where it is installed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from graphc_tools.gpu.performance import ptxas


def report(ptx: str, arch: str, folder: Path, *more: str) -> list[str]:
    """The lines in which ptxas says what kernels need."""
    program = ptxas()
    if program is None:
        pytest.skip("ptxas is not installed: pip install nvidia-cuda-nvcc-cu12")
    (folder / "kernels.ptx").write_text(ptx)
    command = [program, "-v", f"-arch={arch}", "kernels.ptx", "-o", "kernels.cubin", *more]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert made.returncode == 0, made.stdout + made.stderr
    return made.stderr.splitlines()
