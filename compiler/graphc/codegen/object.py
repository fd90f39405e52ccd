# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR text to ELF object bytes, with llvmlite."""

from __future__ import annotations

import math
import platform
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from graphc.codegen import unlocked
from graphc.codegen.divide import Piece, divide
from graphc.codegen.parts import Part, PartStore
from graphc.errors import CompileError
from graphc_runtime import elf

# Larger kernels, in characters of IR, are not unrolled: vectorised loops are interleaved in any case, and
# unrolling them once more was measured to double the time of code generation for no gain.
UNROLLED_SIZE = 16_000
# The level of LLVM's pipeline, at most, for the modules of a kernel that is divided. Level 1 vectorises like
# 3; what it leaves out looks for redundancies that MLIR's passes have removed.
LARGE_LEVEL = 1


@dataclass(frozen=True)
class Target:
    """What code is made for."""

    triple: str
    cpu: str
    features: str

    def to_dict(self) -> dict[str, str]:
        """For the manifest."""
        return {"triple": self.triple, "cpu": self.cpu, "features": self.features}


@cache
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
        piece: the kernel, a piece of it, or a part.
        inlined: see `compile_to_object`.
        opt_level: of code generation.
        pass_level: of LLVM's pipeline; None for a part that is finished.
        unroll: whether loops are unrolled.
        part: the part that it is.
        context: the LLVM context of this module alone; the one of the process if not given.
    """

    piece: Piece
    inlined: str
    opt_level: int
    pass_level: int | None
    unroll: bool
    part: Part | None = None
    context: Any = None


def compile_to_object(
    ir_text: str,
    *,
    exports: Collection[str] = (),
    inlined_text: str = "",
    parts: Sequence[Part] = (),
    opt_level: int = 3,
    store: PartStore | None = None,
    on_ir: Callable[[str, str], None] | None = None,
) -> bytes:
    """Optimises a kernel and its parts, and emits objects for this machine.

    A large kernel is divided (`graphc.codegen.divide`). The cores share the work.

    Args:
        ir_text: the kernel.
        exports: the functions of the kernel that others call; all others become internal, so that they can be
            inlined and dropped. If not given, none does.
        inlined_text: module of functions that are to be inlined into the kernel.
        parts: modules that the kernel calls, or that call the kernel.
        opt_level: 0 to 3.
        store: where parts that were compiled before are, and others will be; not used with `on_ir`.
        on_ir: called with ("llvm", IR text before optimisation), ("llvm-opt", after) and ("asm", assembly).

    Returns:
        An ELF object, or several joined by `graphc_runtime.elf.join`.

    Raises:
        CompileError: a text does not parse or verify, or an export is not defined.
    """
    kernel, *others = divide(ir_text, [inlined_text])
    level = min(opt_level, LARGE_LEVEL) if others else opt_level
    unroll = not others and len(ir_text) < UNROLLED_SIZE
    works = [_Work(Piece(kernel.source, frozenset(exports)), inlined_text, opt_level, level, unroll)]
    works += [_Work(piece, "", opt_level, level, unroll) for piece in others]
    works += [_part_work(part, opt_level) for part in parts]
    if on_ir is not None:
        return _compile_with_views(works, on_ir)
    found = [store.get(work.part, opt_level) if store and work.part else None for work in works]
    missing = [work for work, code in zip(works, found, strict=True) if code is None]
    made = iter(_compile(missing))
    codes = []
    for work, code in zip(works, found, strict=True):
        if code is None:
            code, _ = next(made)
            if store and work.part:
                store.put(work.part, opt_level, code)
        codes.append(code)
    return elf.join(codes)


def _part_work(part: Part, opt_level: int) -> _Work:
    level = min(opt_level, part.level)
    pass_level = None if part.finished else level
    return _Work(Piece(part.text, part.exports), "", level, pass_level, False, part)


def _compile_with_views(works: Sequence[_Work], on_ir: Callable[[str, str], None]) -> bytes:
    """The object, and each stage of all modules as one text."""
    made = _compile(works, views=True)
    for name, *texts in zip(("llvm", "llvm-opt", "asm"), *(views for _, views in made), strict=True):
        on_ir(name, "\n".join(texts) if name == "asm" or len(texts) == 1 else _joined(texts))
    return elf.join([code for code, _ in made])


def _compile(works: Sequence[_Work], *, views: bool = False) -> list[tuple[bytes, list[str]]]:
    """Object and views of each module; several threads make them if there are several."""
    from graphc.config import config
    from graphc_runtime.threads import usable_cores

    if len(works) == 1:
        texts: list[str] = []
        machine = _machine(works[0].opt_level)
        module = _optimised(works[0], machine, texts if views else None)
        return [(bytes(machine.emit_object(module)), texts)]
    # The kernel's own module takes longest, in most cases, and then those with long texts.
    order = sorted(range(len(works)), key=lambda i: -len(works[i].piece.text) if i else -math.inf)
    threads = config.threads or usable_cores()
    made = unlocked.share(partial(_compile_apart, views), [works[i] for i in order], threads)
    results = dict(zip(order, made, strict=True))
    return [results[i] for i in range(len(works))]


def _compile_apart(views: bool, work: _Work) -> tuple[bytes, list[str]]:
    """Compiles a module in a context of its own, so that other threads can do the same."""
    import llvmlite.binding as llvm

    texts: list[str] = []
    machine = _new_machine(work.opt_level)
    work.context = llvm.create_context()
    try:
        module = _optimised(work, machine, texts if views else None)
        code = unlocked.emit_object(machine, module)
    except BaseException:
        # The garbage collector may come across it before a module that is still in it.
        work.context.detach()
        raise
    module.close()
    work.context.close()
    return code, texts


def _optimised(work: _Work, machine: Any, views: list[str] | None) -> Any:
    """The module of a work, ready to be emitted."""
    module = _parse(work.piece.text, "part" if work.part else "kernel", work.context)
    if work.inlined:
        module.link_in(_parse(work.inlined, "inlined functions", work.context))
    if work.part:
        _hide(module, work.piece.exports)
    elif work.piece.exports:
        _internalise(module, work.piece.exports)
    if views is not None:
        views.append(str(module))
    if work.pass_level is not None:
        _optimise(module, machine, work)
    if views is not None:
        views += [str(module), machine.emit_assembly(module)]
    return module


def _joined(texts: list[str]) -> str:
    """Modules as one, to be looked at."""
    first, *others = [_parse(text, "kernel") for text in texts]
    for module in others:
        first.link_in(module)
    return str(first)


@cache
def _machine(opt_level: int) -> Any:
    """The target machine of the thread that holds llvmlite's lock."""
    return _new_machine(opt_level)


def _new_machine(opt_level: int) -> Any:
    import llvmlite.binding as llvm

    target = host_target()
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=opt_level, reloc="pic", codemodel="default"
    )


@cache
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


def _internalise(module: Any, exports: Collection[str]) -> None:
    """Makes all but the exports internal.

    Kernels stay exported for calls through ctypes. `kernel_wrappers` marks them noinline: a second copy in
    the entry would compile each loop twice and save a nanosecond.
    """
    missing = set(exports)
    for function in module.functions:
        if not function.is_declaration:
            if function.name in exports:
                missing.remove(function.name)
            else:
                function.linkage = "internal"
    if missing:
        raise CompileError(f"the kernel does not define {', '.join(sorted(missing))}")


def _hide(module: Any, exports: Collection[str]) -> None:
    """Makes what a part defines hidden, but for the exports: other objects of the function find it then."""
    for function in module.functions:
        if not function.is_declaration and function.linkage.name == "external":
            if function.name not in exports:
                function.visibility = "hidden"


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
