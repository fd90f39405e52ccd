# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowered kernels to artifacts, with the disk cache for their parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from graphc.backends.toolchain import toolchain
from graphc.config import config
from graphc_runtime.artifact import Artifact
from graphc_runtime.cache import DiskCache
from graphc_runtime.manifest import Signature, Site

if TYPE_CHECKING:
    from graphc.backends.cpu.object import Target
    from graphc.native.parts import Part


@dataclass(frozen=True)
class Wrapped:
    """A kernel as LLVM IR.

    Attributes:
        text: defines `graphc_run` and `graphc_shapes`.
        parts: what it calls, but for what gives it memory.
        signature: of the call, with what became of donations.
    """

    text: str
    parts: list[Part]
    signature: Signature


def generate(
    lowered: Any,
    signature: Signature,
    mode: str,
    used: int,
    *,
    flush_denormals: bool = False,
    renew: bool = False,
    on_ir: Any = None,
    target: Target | None = None,
    tiers: tuple[str, ...] | None = None,
) -> Artifact:
    """Wraps, optimises and emits the kernel.

    Args:
        used: how many of the signature's arguments the kernel reads; the others are cells that are only
            written.
        flush_denormals: compute with denormal numbers flushed to zero.
        renew: do not use parts from the disk.
        on_ir: see `graphc.backends.cpu.object.compile_to_object`.
        target: what code is made for; this machine by default.
        tiers: see `graphc.backends.cpu.build.build_artifact`.
    """
    from graphc.backends.cpu.build import build_artifact
    from graphc.backends.cpu.object import host_target
    from graphc.backends.cpu.pipeline import OPT_LEVEL
    from graphc.native.parts import PartStore

    disk = disk_cache(config.cache_dir, config.cache_size_mb)
    made_for = target or host_target()
    wrapped = wrap(lowered, signature, mode, used, made_for, flush_denormals=flush_denormals)
    compiler = toolchain() if target is None else f"{toolchain()};{target}"
    return build_artifact(
        wrapped.text,
        wrapped.signature,
        parts=wrapped.parts,
        store=PartStore(disk, compiler, renew) if disk.directory else None,
        sites=[Site(**site) for site in lowered.sites],
        opt_level=OPT_LEVEL[mode],
        tiers=tiers,
        memory=lowered.memory,
        extra={"kept": lowered.kept} if lowered.kept else None,
        flush=made_for.triple if flush_denormals else "",
        on_ir=on_ir,
        target=target,
    )


def wrap(
    lowered: Any,
    signature: Signature,
    mode: str,
    used: int,
    target: Target,
    *,
    flush_denormals: bool = False,
    vector_library: bool = True,
) -> Wrapped:
    """The kernel with the uniform kernel ABI, and what it calls.

    Args:
        used, flush_denormals: see `generate`.
        target: what code is made for.
        vector_library: whether it may call libmvec.
    """
    from graphc.backends.cpu.entries.tiers import ITEM_SIZE
    from graphc.backends.cpu.kernel import kernel_wrappers, load_arguments
    from graphc.backends.cpu.pipeline import OPT_LEVEL
    from graphc.backends.cpu.veclib import add_vector_variants, is_available
    from graphc.library.define import kernel_parts
    from graphc.library.interrupts import called
    from graphc.library.pool.splits import define_splits
    from graphc.library.products.define import define_products
    from graphc.library.random.define import define_random
    from graphc.library.scalars.registry import define_scalars
    from graphc.native.parts import Part

    arguments = [spec.shape for spec in signature.arguments]
    results = [spec.shape for spec in signature.results]
    text = lowered.llvm_ir
    flush = target.triple if flush_denormals else ""
    if vector_library and OPT_LEVEL[mode] >= 2 and is_available(target.triple):
        text = add_vector_variants(text, target.features)
    donated = [result for _, result in lowered.donated]
    text = load_arguments(text, arguments[:used], results, unused=arguments[used:], donated=donated)
    text += kernel_wrappers(
        arguments[:used],
        results,
        has_shapes=lowered.has_shapes,
        unused=arguments[used:],
        poison=[ITEM_SIZE[spec.dtype] for spec in signature.results] if config.poison_memory else None,
        donated=donated,
        flush=flush,
        interruptible=bool(called(text)),
    )
    text = define_splits(define_scalars(text))
    text, products = define_products(text, target.features)
    finished = define_random(text, products)
    parts = [*kernel_parts(text), *([Part(finished, finished=True)] if finished else [])]
    made = replace(signature, donated=tuple(lowered.donated), spares=tuple(lowered.spares))
    return Wrapped(text, parts, made)


@cache
def disk_cache(directory: str, size_mb: int) -> DiskCache:
    """The cache in a folder; one object per process and setting, so that its statistics add up."""
    return DiskCache(directory, size_mb << 20)
