# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From LLVM IR to PTX; and, with the same kernels, to an object for AMD's devices."""

from __future__ import annotations

from graphc.backends.cpu.llvm import code_generator, data_layout, parsed
from graphc.backends.cuda.instructions import definitions

NVIDIA, AMD = "nvptx64-nvidia-cuda", "amdgcn-amd-amdhsa"
# PTX's version: the first one that knows the architecture, else what drivers of 2023 take.
_VERSIONS = {"sm_100": "+ptx86"}
_OLDEST = "+ptx80"


def to_ptx(llvm_ir: str, arch: str) -> str:
    """The PTX of kernels.

    Args:
        llvm_ir: text that llvmlite's LLVM parses, with the calling convention of kernels.
        arch: such as "sm_90".

    Raises:
        LLVMError: LLVM cannot make code of it.
    """
    features = _VERSIONS.get(arch, _OLDEST)
    layout = data_layout(NVIDIA, arch, features)
    with parsed(llvm_ir) as module, code_generator(NVIDIA, arch, features, 3) as generator:
        module.link_in(definitions())
        module.set_target(NVIDIA, layout)
        generator.optimise(module, 3, vectorise=False, unroll=True)
        return generator.emit_assembly(module)


def to_amd_object(llvm_ir: str, arch: str) -> bytes:
    """An ELF object for AMD's devices.

    Args:
        llvm_ir: as in `to_ptx`, made with upstream's `convert-gpu-to-rocdl`.
        arch: such as "gfx90a".

    Raises:
        LLVMError: LLVM cannot make code of it.
    """
    layout = data_layout(AMD, arch, "")
    with parsed(llvm_ir) as module, code_generator(AMD, arch, "", 3) as generator:
        module.set_target(AMD, layout)
        generator.optimise(module, 3, vectorise=False, unroll=True)
        return generator.emit_object(module)
