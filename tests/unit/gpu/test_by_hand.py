# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels written by hand, which the interpreter is tested with, go through the compiler's pipeline, too."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from graphc.backends.contexts import shared_context
from graphc.backends.cuda import pipeline
from graphc.backends.cuda.code import kernels_to_llvm, to_ptx
from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir
from graphc_tools.gpu.kernels import Kernels
from graphc_tools.gpu.ptx_entries import entries
from graphc_tools.gpu.simulated import SimulatedDriver

KERNELS = Path(__file__).resolve().parents[1] / "cuda" / "kernels"


@pytest.mark.parametrize("name", ["right", "wrong"])
def test_kernels_become_ptx_with_the_arguments_that_the_interpreter_takes(name: str, tmp_path: Path) -> None:
    text = (KERNELS / f"{name}.mlir").read_text(encoding="utf-8")
    with shared_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_pipeline(module, pipeline.device())
        ptx = to_ptx(kernels_to_llvm(module), "sm_90")
    kernels = Kernels(text)
    assert set(entries(ptx)) == set(kernels)
    SimulatedDriver(kernels).load(ptx, {})
    ptxas = shutil.which("ptxas")
    if ptxas is None:
        pytest.skip("ptxas is not installed: the PTX was made, but not assembled")
    (tmp_path / "kernels.ptx").write_text(ptx)
    command = [ptxas, "-arch=sm_90", "kernels.ptx", "-o", "kernels.cubin"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
