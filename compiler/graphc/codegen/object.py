# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR text to ELF object bytes, with llvmlite."""

from __future__ import annotations

import functools
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from graphc.errors import CompileError

# Larger kernels, in characters of IR, are not unrolled: vectorised loops are interleaved in any case, and
# unrolling them once more was measured to double the time of code generation for no gain.
UNROLLED_SIZE = 16_000
# What the runtime looks up in an object; everything else becomes internal, so that it can be inlined and
# dropped.
EXPORTS = frozenset(
    {
        "graphc_entry",
        "graphc_vectorcall",
        "graphc_entry_buffer",
        "graphc_shapes",
        "graphc_run",
        "graphc_release",
        "graphc_unload",
    }
)


@dataclass(frozen=True)
class Target:
    """What code is made for."""

    triple: str
    cpu: str
    features: str

    def to_dict(self) -> dict[str, str]:
        """For the manifest."""
        return {"triple": self.triple, "cpu": self.cpu, "features": self.features}


@functools.cache
def host_target() -> Target:
    """This machine: its CPU and features, and the ELF triple (the runtime loads ELF on every platform)."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    arm = platform.machine() in ("arm64", "aarch64")
    features = llvm.get_host_cpu_features().flatten()
    if (
        arm and sys.platform == "darwin"
    ):  # the system owns this register there, which the ELF ABI does not know
        features = ",".join(filter(None, [features, "+reserve-x18"]))
    return Target(("aarch64" if arm else "x86_64") + "-unknown-linux-gnu", llvm.get_host_cpu_name(), features)


def compile_to_object(
    ir_text: str,
    *,
    entry_text: str = "",
    finished_text: str = "",
    opt_level: int = 3,
    on_ir: Callable[[str, str], None] | None = None,
) -> bytes:
    """Links kernel and entry, optimises, and emits an object for this machine.

    Args:
        ir_text: module that defines `graphc_shapes` and `graphc_run`.
        entry_text: module of `graphc.codegen.entry.entry_ir`.
        finished_text: module of functions that need no optimisation (`graphc.codegen.products`).
        opt_level: 0 to 3.
        on_ir: called with ("llvm", IR text before optimisation), ("llvm-opt", after) and ("asm", assembly).

    Raises:
        CompileError: the text does not parse or verify, or both modules define a symbol.
    """
    machine = _machine(opt_level)
    module = _parse(ir_text, "kernel")
    if entry_text:
        _link(module, _parse(entry_text, "entry"))
        _check_kernels(module)
        _internalise(module)
    if on_ir:
        on_ir("llvm", str(module))
    _optimise(module, machine, opt_level, unroll=len(ir_text) < UNROLLED_SIZE)
    if finished_text:
        _link(module, _parse(finished_text, "products"))
        _internalise(module)
    if on_ir:
        on_ir("llvm-opt", str(module))
        on_ir("asm", machine.emit_assembly(module))
    return bytes(machine.emit_object(module))


@functools.cache
def _machine(opt_level: int) -> Any:
    import llvmlite.binding as llvm

    target = host_target()
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=opt_level, reloc="pic", codemodel="default"
    )


def _parse(text: str, what: str) -> Any:
    import llvmlite.binding as llvm

    host_target()
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"the LLVM IR of the {what} is not valid: {error}") from None
    module.triple = host_target().triple
    module.data_layout = str(_machine(3).target_data)
    return module


def _link(module: Any, entry: Any) -> None:
    """Moves `entry` into `module`; the linker must not meet two definitions."""
    clash = _definitions(module) & _definitions(entry)
    if clash:
        raise CompileError(f"two linked modules both define {', '.join(sorted(clash))}")
    module.link_in(entry)


def _internalise(module: Any) -> None:
    """Makes all but the exports internal.

    Kernels stay exported for calls through ctypes. `kernel_wrappers` marks them noinline: a second copy in
    the entry would compile each loop twice and save a nanosecond.
    """
    for function in module.functions:
        if not function.is_declaration and function.name not in EXPORTS:
            function.linkage = "internal"


def _definitions(module: Any) -> set[str]:
    values = (*module.functions, *module.global_variables)
    return {
        value.name
        for value in values
        if not value.is_declaration and str(value.linkage) != "Linkage.internal"
    }


def _check_kernels(module: Any) -> None:
    defined = {function.name for function in module.functions if not function.is_declaration}
    missing = {"graphc_shapes", "graphc_run"} - defined
    if missing:
        raise CompileError(f"the kernel module does not define {', '.join(sorted(missing))}")


def _optimise(module: Any, machine: Any, opt_level: int, unroll: bool) -> None:
    import llvmlite.binding as llvm

    options = llvm.create_pipeline_tuning_options(opt_level)
    # Loops are what there is to vectorise; looking for more in straight-line code doubles the time.
    options.loop_vectorization = opt_level >= 2
    options.slp_vectorization = False
    options.loop_unrolling = unroll
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
