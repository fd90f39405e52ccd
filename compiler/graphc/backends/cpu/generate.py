# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowered kernels to artifacts, with the disk cache for their parts."""

from __future__ import annotations

from dataclasses import replace

from graphc.backends.cpu.build import build_artifact
from graphc.backends.cpu.entries.tiers import ITEM_SIZE
from graphc.backends.cpu.kernel import kernel_wrappers, load_arguments, with_scope
from graphc.backends.cpu.lower import Lowered
from graphc.backends.cpu.object import Machine, this_machine
from graphc.backends.cpu.pipeline import OPT_LEVEL
from graphc.backends.target import CompileLog, CompileOptions, Resources
from graphc.backends.toolchain import toolchain
from graphc.library.define import kernel_parts
from graphc.library.helpers import Allocation, Arena
from graphc.library.interrupts import polls, tick_ir
from graphc.library.memory.access import places_ir
from graphc.library.products.define import product_parts
from graphc.library.profile import EXPORTS, profile_ir
from graphc.library.random.define import define_random
from graphc.library.scalars.registry import define_scalars
from graphc.native.parts import Definitions, Part, PartStore, Piece
from graphc_runtime.artifact import Artifact
from graphc_runtime.cache import disk_cache
from graphc_runtime.manifest import Signature
from graphc_runtime.record import record


@record(frozen=True)
class Wrapped:
    """A kernel as LLVM IR.

    Attributes:
        text: defines `graphc_run` and `graphc_shapes`.
        pieces: modules of functions that it calls.
        inlined: module of functions that are inlined into these.
        parts: what it calls, but for what gives it memory.
        signature: of the call, with what became of donations.
    """

    text: str
    pieces: tuple[Piece, ...]
    inlined: str
    parts: list[Part]
    signature: Signature


def generate(
    lowered: Lowered,
    signature: Signature,
    options: CompileOptions,
    resources: Resources,
    log: CompileLog,
    *,
    machine: Machine | None = None,
    tiers: tuple[str, ...] | None = None,
) -> Artifact:
    """Wraps, optimises and emits the kernel.

    Args:
        lowered: the kernel.
        signature: how calls look.
        options: how code is made.
        resources: what may be used for it.
        log: gains the stages.
        machine: what code is made for; this machine by default.
        tiers: see `graphc.backends.cpu.build.build_artifact`.
    """
    made_for = machine or this_machine()
    wrapped = wrap(lowered, signature, options, made_for)
    stages = log.stages
    extra = {"kept": [*lowered.donated.kept], "profile": lowered.slots, "recomputed": lowered.recomputed}
    return build_artifact(
        wrapped.text,
        wrapped.signature,
        pieces=wrapped.pieces,
        inlined=wrapped.inlined,
        polling=polls(lowered.helpers),
        parts=wrapped.parts,
        store=_part_store(resources, machine),
        sites=lowered.sites,
        opt_level=OPT_LEVEL[options.mode],
        tiers=tiers,
        memory=lowered.memory,
        extra={name: value for name, value in extra.items() if value},
        keep_bytes=options.workspace_limit_mb << 20,
        poison=options.poison_memory,
        arena=any(isinstance(helper, (Allocation, Arena)) for helper in lowered.helpers),
        flush=made_for.triple if options.flush_denormals else "",
        threads=resources.threads,
        on_ir=None if stages is None else lambda name, ir: stages.append((name, ir)),
        machine=machine,
        is_wide=lowered.is_wide,
    )


def wrap(
    lowered: Lowered,
    signature: Signature,
    options: CompileOptions,
    machine: Machine,
) -> Wrapped:
    """The kernel with the uniform kernel ABI, and what it calls.

    Args:
        lowered, signature, options: see `generate`.
        machine: what code is made for.
    """
    used = lowered.n_arguments
    arguments = [spec.shape for spec in signature.arguments]
    results = [spec.shape for spec in signature.results]
    text = lowered.llvm_ir
    polling = polls(lowered.helpers)
    donated = [result for _, result in lowered.donated.pairs]
    text = load_arguments(text, arguments[:used], results, unused=arguments[used:], donated=donated)
    text += kernel_wrappers(
        arguments[:used],
        results,
        has_shapes=lowered.has_shapes,
        unused=arguments[used:],
        poison=[ITEM_SIZE[spec.dtype] for spec in signature.results] if options.poison_memory else None,
        donated=donated,
        flush=machine.triple if options.flush_denormals else "",
        interruptible=bool(polling),
    )
    text = with_scope(text)
    parts = kernel_parts(lowered.helpers)
    parts += product_parts(lowered.helpers, machine.features)
    draws = Definitions()
    define_random(lowered.helpers, draws)
    if draws.text():
        parts.append(Part(draws.text(), finished=True))
    measuring = profile_ir(lowered.helpers, machine.triple)
    if measuring:
        parts.append(Part(measuring, EXPORTS, finished=True, level=1))
    inlined = tick_ir(polling) + define_scalars(lowered.helpers)
    if any(record["workspaces"] or _lends_results(record["others"]) for record in lowered.memory):
        inlined += places_ir(poison=options.poison_memory, framed=bool(lowered.pieces))
    outcome = lowered.donated
    return Wrapped(
        text, lowered.pieces, inlined, parts, replace(signature, donated=outcome.pairs, spares=outcome.spares)
    )


def _lends_results(others: list[dict[str, object]]) -> bool:
    """Whether buffers lie in the memory of results."""
    return any(str(buffer["place"]).startswith("result") for buffer in others)


def _part_store(resources: Resources, machine: Machine | None) -> PartStore:
    """Where objects of parts are: without a disk cache, in this process alone."""
    target = "" if machine is None else f";{machine}"
    if not resources.cache_dir:
        return PartStore(target)
    cache = disk_cache(resources.cache_dir, resources.cache_size_mb)
    return PartStore(f"{toolchain()}{target}", cache, resources.renew)
