# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR text to ELF object bytes, with llvmlite."""

from __future__ import annotations

import functools
import platform
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from graphc.codegen import unlocked
from graphc.codegen.divide import Piece, divide
from graphc.errors import CompileError
from graphc_runtime import elf

# Larger kernels, in characters of IR, are not unrolled: vectorised loops are interleaved in any case, and
# unrolling them once more was measured to double the time of code generation for no gain.
UNROLLED_SIZE = 16_000
# The level of LLVM's pipeline, at most, for the modules of a kernel that is divided. Level 1 vectorises like
# 3; what it leaves out looks for redundancies that MLIR's passes have removed.
LARGE_LEVEL = 1
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


@dataclass
class _Work:
    """A module to make, and how.

    Attributes:
        piece: the kernel, or a part of it.
        entry: see `compile_to_object`.
        finished: see `compile_to_object`.
        opt_level: of code generation.
        pass_level: of LLVM's pipeline.
        unroll: whether loops are unrolled.
        context: the LLVM context of this module alone; the one of the process if not given.
    """

    piece: Piece
    entry: str
    finished: str
    opt_level: int
    pass_level: int
    unroll: bool
    context: Any = None


def compile_to_object(
    ir_text: str,
    *,
    entry_text: str = "",
    finished_text: str = "",
    opt_level: int = 3,
    on_ir: Callable[[str, str], None] | None = None,
) -> bytes:
    """Links kernel and entry, optimises, and emits an object for this machine.

    A large kernel is divided (`graphc.codegen.divide`), and the cores share the work.

    Args:
        ir_text: module that defines `graphc_shapes` and `graphc_run`.
        entry_text: module of `graphc.codegen.entry.entry_ir`.
        finished_text: module of functions that need no optimisation (`graphc.codegen.products`).
        opt_level: 0 to 3.
        on_ir: called with ("llvm", IR text before optimisation), ("llvm-opt", after) and ("asm", assembly).

    Returns:
        An ELF object, or several joined by `graphc_runtime.elf.join`.

    Raises:
        CompileError: the text does not parse or verify, or both modules define a symbol.
    """
    kernel, *others = divide(ir_text, [entry_text, finished_text])
    if not others:
        work = _Work(
            kernel, entry_text, finished_text, opt_level, opt_level, unroll=len(ir_text) < UNROLLED_SIZE
        )
        machine = _machine(opt_level)
        module = _optimised(work, machine, on_ir)
        return bytes(machine.emit_object(module))
    return _compile_divided(kernel, others, entry_text, finished_text, opt_level, on_ir)


def _compile_divided(
    kernel: Piece,
    others: Collection[Piece],
    entry_text: str,
    finished_text: str,
    opt_level: int,
    on_ir: Callable[[str, str], None] | None,
) -> bytes:
    """Compiles the modules of a kernel on several threads."""
    import llvmlite.binding as llvm

    from graphc.config import config
    from graphc_runtime.threads import usable_cores

    level = min(opt_level, LARGE_LEVEL)
    works = [_Work(kernel, entry_text, finished_text, opt_level, level, unroll=False)]
    works += [_Work(piece, "", "", opt_level, level, unroll=False) for piece in others]

    def compile_one(work: _Work) -> tuple[bytes, list[str]]:
        views: list[str] = []
        machine = _new_machine(opt_level)
        work.context = llvm.create_context()
        try:
            module = _optimised(work, machine, (lambda _, text: views.append(text)) if on_ir else None)
            code = unlocked.emit_object(machine, module)
        except BaseException:
            # The garbage collector may come across it before a module that is still in it.
            work.context.detach()
            raise
        module.close()
        work.context.close()
        return code, views

    threads = config.threads or usable_cores()
    # The kernel's own module takes longest, in most cases.
    done = unlocked.share(compile_one, works, threads)
    if on_ir:
        for name, *texts in zip(("llvm", "llvm-opt", "asm"), *(views for _, views in done), strict=True):
            on_ir(name, "\n".join(texts) if name == "asm" else _joined(texts))
    return elf.join([code for code, _ in done])


def _optimised(work: _Work, machine: Any, on_ir: Callable[[str, str], None] | None) -> Any:
    """The module of a work, ready to be emitted."""
    module = _parse(work.piece.text, "kernel", work.context)
    if work.entry:
        _link(module, _parse(work.entry, "entry", work.context))
        _check_kernels(module)
    if work.entry or work.piece.exports:
        _internalise(module, work.piece.exports or EXPORTS)
    if on_ir:
        on_ir("llvm", str(module))
    _optimise(module, machine, work)
    if work.finished:
        _link(module, _parse(work.finished, "products", work.context))
        _internalise(module, EXPORTS)
    if on_ir:
        on_ir("llvm-opt", str(module))
        on_ir("asm", machine.emit_assembly(module))
    return module


def _joined(texts: list[str]) -> str:
    """Modules as one, to be looked at."""
    first, *others = [_parse(text, "kernel") for text in texts]
    for module in others:
        _link(first, module)
    return str(first)


@functools.cache
def _machine(opt_level: int) -> Any:
    """The target machine of the thread that holds llvmlite's lock."""
    return _new_machine(opt_level)


def _new_machine(opt_level: int) -> Any:
    import llvmlite.binding as llvm

    target = host_target()
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=opt_level, reloc="pic", codemodel="default"
    )


@functools.cache
def _data_layout() -> str:
    return str(_machine(3).target_data)


def _parse(text: str, what: str, context: Any = None) -> Any:
    import llvmlite.binding as llvm

    layout = _data_layout()
    try:
        module = llvm.parse_assembly(text, context)
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"the LLVM IR of the {what} is not valid: {error}") from None
    module.triple = host_target().triple
    module.data_layout = layout
    return module


def _link(module: Any, entry: Any) -> None:
    """Moves `entry` into `module`; the linker must not meet two definitions."""
    clash = _definitions(module) & _definitions(entry)
    if clash:
        raise CompileError(f"two linked modules both define {', '.join(sorted(clash))}")
    module.link_in(entry)


def _internalise(module: Any, exports: Collection[str]) -> None:
    """Makes all but the exports internal.

    Kernels stay exported for calls through ctypes. `kernel_wrappers` marks them noinline: a second copy in
    the entry would compile each loop twice and save a nanosecond.
    """
    for function in module.functions:
        if not function.is_declaration and function.name not in exports:
            function.linkage = "internal"


def _definitions(module: Any) -> set[str]:
    values = (*module.functions, *module.global_variables)
    return {
        value.name
        for value in values
        if not value.is_declaration and value.linkage.name not in ("internal", "private")
    }


def _check_kernels(module: Any) -> None:
    defined = {function.name for function in module.functions if not function.is_declaration}
    missing = {"graphc_shapes", "graphc_run"} - defined
    if missing:
        raise CompileError(f"the kernel module does not define {', '.join(sorted(missing))}")


def _optimise(module: Any, machine: Any, work: _Work) -> None:
    import llvmlite.binding as llvm

    options = llvm.create_pipeline_tuning_options(work.pass_level)
    # Loops are what there is to vectorise; looking for more in straight-line code doubles the time.
    options.loop_vectorization = work.opt_level >= 2
    options.slp_vectorization = False
    options.loop_unrolling = work.unroll
    builder = llvm.create_pass_builder(machine, options)
    manager = builder.getModulePassManager()
    if work.context is None:
        manager.run(module, builder)
    else:
        unlocked.run_passes(manager, module, builder)
