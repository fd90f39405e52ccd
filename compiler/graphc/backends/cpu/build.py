# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernel IR and signature to an artifact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphc.backends.cpu import entry
from graphc.backends.cpu.entry_calls import helpers_ir
from graphc.backends.cpu.object import Machine, compile_to_object, this_machine
from graphc.library.helpers import Poll
from graphc.library.interrupts import poll_ir
from graphc.library.workspace import NOTHING, memory_ir, workspace_table
from graphc.native.parts import Part, PartStore, Piece
from graphc_runtime import elf, layout
from graphc_runtime.artifact import Artifact
from graphc_runtime.errors import Site
from graphc_runtime.manifest import Manifest, Signature
from graphc_runtime.symbols import DESCRIPTORS

# What the runtime and the entry look up.
KERNEL_EXPORTS = ("graphc_run", "graphc_shapes")
MEMORY_EXPORTS = frozenset({"graphc_release", "graphc_unload"})


def build_artifact(
    kernel_ir: str,
    signature: Signature,
    *,
    pieces: Sequence[Piece] = (),
    inlined: str = "",
    polling: list[Poll] | None = None,
    sites: Sequence[Site] = (),
    parts: Sequence[Part] = (),
    store: PartStore | None = None,
    opt_level: int = 3,
    tiers: tuple[str, ...] | None = None,
    extra: dict[str, object] | None = None,
    memory: Sequence[dict[str, object]] = (),
    keep_bytes: int = 1 << 30,
    poison: bool = False,
    arena: bool = True,
    flush: str = "",
    threads: int = 0,
    on_ir: Callable[[str, str], None] | None = None,
    machine: Machine | None = None,
    is_wide: bool = False,
    is_single: bool = False,
    is_vectorised: bool = False,
) -> Artifact:
    """Compiles a kernel together with its entry.

    Args:
        kernel_ir: LLVM IR text that defines `graphc_shapes` and `graphc_run`.
        signature: arguments and results.
        pieces: see `compile_to_object`.
        inlined: see `compile_to_object`.
        polling: by what it notices Ctrl-C.
        parts: see `compile_to_object`.
        store: see `compile_to_object`.
        sites: check sites, in the order of the kernel's status codes.
        opt_level: 0 to 3.
        tiers: native entries to include; the one this process uses if not given.
        extra: data for the manifest that the runtime does not read.
        memory: the memory plans of the kernel's functions (see `graphc.passes.buffer.plan_memory`).
        keep_bytes: largest workspace that is kept for the next call.
        poison: see `graphc.backends.CompileOptions`.
        arena: whether the kernel takes memory of the call's arena.
        flush: as `graphc.backends.cpu.generate.kernel_wrappers` had it.
        threads: see `compile_to_object`.
        on_ir: see `compile_to_object`.
        machine: see `compile_to_object`.
        is_wide: see `compile_to_object`.
        is_single: see `compile_to_object`.
        is_vectorised: see `compile_to_object`.

    Raises:
        CompileError: the IR is not valid.
    """
    best = layout.tier()
    entries = tiers if tiers is not None else (best,) if best != "python" else ()
    specs = (*signature.inputs, *signature.cells, *signature.results)
    if any(DESCRIPTORS[spec.dtype].kind == "V" for spec in specs):
        # Python's buffers have no format for numbers that NumPy does not have.
        entries = tuple(name for name in entries if name != "buffer")
    memory_text = _memory_ir(memory, keep_bytes, poison, arena)
    takes_memory = memory_text != NOTHING
    memory_text += poll_ir(polling or [], flush)
    if entries:
        text = entry.entry_ir(signature, entries, interruptible=bool(polling), releases=takes_memory)
        if memory_text == NOTHING:  # too little for a module
            text, memory_text = text + memory_text, ""
        parts = [
            Part(text, entry.EXPORTS | MEMORY_EXPORTS, finished=True, level=0),
            Part(helpers_ir(entries), finished=True, level=0),
            *parts,
        ]
    if memory_text:
        parts = [Part(memory_text, MEMORY_EXPORTS, finished=True, level=0), *parts]
    code = compile_to_object(
        kernel_ir,
        exports=KERNEL_EXPORTS,
        pieces=pieces,
        inlined_text=inlined,
        parts=parts,
        opt_level=opt_level,
        store=store,
        threads=threads,
        on_ir=on_ir,
        machine=machine,
        is_wide=is_wide,
        is_single=is_single,
        is_vectorised=is_vectorised,
    )
    manifest = Manifest(
        signature,
        sites=tuple(sites),
        symbols=tuple(elf.external_symbols(code)),
        target=(machine or this_machine()).to_dict(),
        entries=entries,
        tuple_items=layout.tuple_items(),
        extra=extra or {},
        memory=tuple(memory),
    )
    return Artifact(manifest, code)


def _memory_ir(memory: Sequence[dict[str, Any]], keep_bytes: int, poison: bool, arena: bool) -> str:
    tables = tuple(workspace_table(entry) for record in memory for entry in record["workspaces"])
    return memory_ir(tables, keep_bytes=keep_bytes, poison=poison, arena=arena)
