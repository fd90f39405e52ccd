# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels are not of one vendor: the same ones become objects for AMD's devices. None is run."""

from __future__ import annotations

import pytest
from gpu_cases import CASES

from graphc.backends.cuda import pipeline
from graphc.backends.cuda.code import kernels_to_llvm, lower, to_amd_object
from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir
from graphc_dialects.dialect import new_context

# e_machine of AMD's devices in ELF.
_AMD_MACHINE = 224


@pytest.mark.parametrize(
    "name",
    [
        "elementwise float32",
        "elementwise functions",
        "softmax",
        "column sums",
        "transpose",
        "matrix product",
        "scan",
    ],
)
def test_kernels_become_objects(name: str) -> None:
    kernels = lower(CASES[name].text(), "sm_90").kernels
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(kernels)
        run_pipeline(module, [*pipeline.MATH, *pipeline.device(pipeline.AMD)])
        made = to_amd_object(kernels_to_llvm(module), "gfx90a")
    assert made[:4] == b"\x7fELF" and int.from_bytes(made[18:20], "little") == _AMD_MACHINE
