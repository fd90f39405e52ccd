# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Machine code that the runtime ships: it runs on every processor of an architecture."""

from __future__ import annotations


def compile_shipped(ir_text: str, machine: str) -> bytes:
    """Object code for every processor of an architecture.

    Args:
        ir_text: LLVM IR.
        machine: `x86_64` or `aarch64`.
    """
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple = f"{machine}-unknown-linux-gnu"
    target = llvm.Target.from_triple(triple).create_target_machine(
        cpu="generic",
        features="+reserve-x18" if machine == "aarch64" else "",
        opt=2,
        reloc="pic",
        codemodel="default",
    )
    module = llvm.parse_assembly(ir_text)
    module.verify()
    module.triple = triple
    module.data_layout = str(target.target_data)
    builder = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(2))
    builder.getModulePassManager().run(module, builder)
    return bytes(target.emit_object(module))
