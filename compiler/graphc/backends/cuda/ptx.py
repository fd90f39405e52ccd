# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From LLVM IR to PTX; and, with the same kernels, to an object for AMD's devices."""

from __future__ import annotations

from graphc.backends.cpu.llvm import Module, code_generator, data_layout, parsed
from graphc.backends.cuda import functions
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
        _define_functions(module)
        module.set_target(NVIDIA, layout)
        generator.optimise(module, 3, vectorise=False, unroll=True)
        return generator.emit_assembly(module)


def _define_functions(module: Module) -> None:
    """Adds the code of what kernels call, as functions of the module's own: PTX has other names."""
    kernels = {x.name for x in module.functions() if not x.is_declaration}
    module.link_in(definitions())
    called = [x.name for x in module.functions() if x.is_declaration and not x.name.startswith("llvm.")]
    needed = [name for name in called if name not in functions.missing([name])]
    if needed:
        module.link_in(functions.definitions(needed))
    for function in module.functions():
        if not function.is_declaration and function.name not in kernels:
            function.internalise()


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
        _define_functions(module)
        module.set_target(AMD, layout)
        generator.optimise(module, 3, vectorise=False, unroll=True)
        return generator.emit_object(module)
