# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels written by hand, which the interpreter is tested with, go through the compiler's pipeline, too; and
what passes know of operations written by hand.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from graphc.backends.contexts import shared_context
from graphc.backends.cuda import pipeline
from graphc.backends.cuda.code import kernels_to_llvm, to_ptx
from graphc.ir.walk import functions
from graphc.passes.gpu._nest import Effects
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


_TWO = """
func.func private @unknown(!llvm.ptr)
func.func private @given(memref<4xf32>)
func.func @main(%x: memref<4xf32>, %y: memref<4xf32>, %i: index, %a: f32) {{
  %p = "graphc.address"(%x) {{access = "write"}} : (memref<4xf32>) -> !llvm.ptr
  %part = memref.subview %x[1] [2] [1] : memref<4xf32> to memref<2xf32, strided<[1], offset: 1>>
  %c = arith.constant 0 : index
  %flag = arith.cmpi eq, %i, %c : index
  {first}
  {second}
  return
}}
"""
# Operations, and the arrays that each reads and writes: x and y are two.
_OPERATIONS = {
    "%v = memref.load %x[%c] : memref<4xf32>": ("x", ""),
    "memref.store %a, %part[%c] : memref<2xf32, strided<[1], offset: 1>>": ("", "x"),
    "memref.copy %y, %y : memref<4xf32> to memref<4xf32>": ("y", "y"),
    "linalg.fill ins(%a : f32) outs(%y : memref<4xf32>)": ("", "y"),
    "func.call @unknown(%p) : (!llvm.ptr) -> ()": ("x", "x"),
    "func.call @given(%y) : (memref<4xf32>) -> ()": ("y", "y"),
    "%n = memref.dim %x, %c : memref<4xf32>": ("", ""),
    "scf.if %flag { memref.store %a, %x[%c] : memref<4xf32> }": ("", "x"),
    "scf.if %flag { func.call @unknown(%p) : (!llvm.ptr) -> () }": ("x", "x"),
    "%s = arith.addf %a, %a : f32": ("", ""),
    """linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
        iterator_types = ["parallel"]} ins(%x : memref<4xf32>) outs(%y : memref<4xf32>) {
        ^bb0(%e: f32, %o: f32): linalg.yield %e : f32 }""": ("x", "y"),
}


@pytest.mark.parametrize("first", list(_OPERATIONS))
def test_work_passes_only_what_touches_other_arrays(first: str) -> None:
    for second in set(_OPERATIONS) - {first}:
        with shared_context(), ir.Location.unknown():
            module = ir.Module.parse(_TWO.format(first=first, second=second))
            main = next(f for f in functions(module) if len(f.regions[0].blocks))
            *_, one, two, _ = [op.operation for op in main.regions[0].blocks[0].operations]
            (read, written), (others, stored) = _OPERATIONS[first], _OPERATIONS[second]
            meet = set(written) & set(others + stored) or set(stored) & set(read + written)
            assert Effects.of(one).commutes(Effects.of(two)) == (not meet), (first, second)
