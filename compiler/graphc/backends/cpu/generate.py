# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowered kernels to artifacts, with the disk cache for their parts."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from graphc.compile.fingerprint import toolchain
from graphc.config import config
from graphc_runtime.artifact import Artifact
from graphc_runtime.cache import DiskCache
from graphc_runtime.manifest import Signature, Site


def generate(
    lowered: Any,
    signature: Signature,
    mode: str,
    used: int,
    *,
    flush_denormals: bool = False,
    renew: bool = False,
    on_ir: Any = None,
) -> Artifact:
    """Wraps, optimises and emits the kernel.

    Args:
        used: how many of the signature's arguments the kernel reads; the others are cells that are only
            written.
        flush_denormals: compute with denormal numbers flushed to zero.
        renew: do not use parts from the disk.
        on_ir: see `graphc.backends.cpu.object.compile_to_object`.
    """
    from graphc.backends.cpu.build import build_artifact
    from graphc.backends.cpu.entries.tiers import ITEM_SIZE
    from graphc.backends.cpu.kernel import kernel_wrappers, load_arguments
    from graphc.backends.cpu.object import host_target
    from graphc.backends.cpu.pipeline import OPT_LEVEL
    from graphc.backends.cpu.veclib import add_vector_variants, is_available
    from graphc.library.define import kernel_parts
    from graphc.library.interrupts import called
    from graphc.library.pool.splits import define_splits
    from graphc.library.products.define import define_products
    from graphc.library.random.define import define_random
    from graphc.library.scalars.registry import define_scalars
    from graphc.native.parts import Part, PartStore

    disk = disk_cache(config.cache_dir, config.cache_size_mb)
    arguments = [spec.shape for spec in signature.arguments]
    results = [spec.shape for spec in signature.results]
    text = lowered.llvm_ir
    target = host_target()
    flush = target.triple if flush_denormals else ""
    if OPT_LEVEL[mode] >= 2 and is_available(target.triple):
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
    sites = [Site(**site) for site in lowered.sites]
    return build_artifact(
        text,
        replace(signature, donated=tuple(lowered.donated), spares=tuple(lowered.spares)),
        parts=parts,
        store=PartStore(disk, toolchain(), renew) if disk.directory else None,
        sites=sites,
        opt_level=OPT_LEVEL[mode],
        memory=lowered.memory,
        extra={"kept": lowered.kept} if lowered.kept else None,
        flush=flush,
        on_ir=on_ir,
    )


@cache
def disk_cache(directory: str, size_mb: int) -> DiskCache:
    """The cache in a folder; one object per process and setting, so that its statistics add up."""
    return DiskCache(directory, size_mb << 20)
