# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From the text of a module to an artifact."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import Any

from graphc.backends.cpu.generate import generate
from graphc.backends.cpu.lower import Lowered, lower
from graphc_runtime.artifact import Artifact
from graphc_runtime.manifest import Signature

# Intrinsics only compute, but for those that fill and copy memory.
_WRITES = re.compile(r" store |call .*@(?!llvm\.(?!mem))")
_TAKES_MEMORY = ("@graphc_alloc(", "@graphc_workspace_", "@graphc_plan_")


@dataclass(frozen=True)
class Job:
    """What is to be compiled.

    Attributes:
        text: a module with `@main`, graph stage.
        mode: a key of `graphc.backends.cpu.pipeline.PIPELINES`.
        signature: arguments and results of calls.
        used: how many of the signature's arguments `@main` has; the others are cells that are only written.
        donate: arguments that results may be computed in, as `graphc.lowering.donation.Request` has them.
        fastmath: a level of `graphc.passes.buffer.fast_math`; empty for the flags that lowering sets.
        flush_denormals: compute with denormal numbers flushed to zero.
        renew: do not use parts from the disk.
    """

    text: str
    mode: str
    signature: Signature
    used: int
    donate: list[tuple[int, list[int], bool]]
    fastmath: str
    flush_denormals: bool = False
    renew: bool = False


@dataclass(frozen=True)
class Made:
    """A finished job.

    Attributes:
        artifact: manifest and code.
        seconds: time of each phase.
        passes: name and seconds of each pass.
    """

    artifact: Artifact
    seconds: dict[str, float]
    passes: list[tuple[str, float]]


def make(job: Job) -> Made:
    """Compiles.

    Raises:
        CompileError: a pass, the verifier or LLVM refused the module.
    """
    lowered = lower_with_donations(job)
    start = time.perf_counter()
    options: dict[str, Any] = {"flush_denormals": job.flush_denormals, "renew": job.renew}
    artifact = generate(lowered, job.signature, job.mode, job.used, **options)
    seconds = {**lowered.seconds, "code generation": time.perf_counter() - start}
    return Made(artifact, seconds, lowered.passes)


def lower_with_donations(job: Job, *, keep_stages: bool = False) -> Lowered:
    """Lowers with donations; without those of cells if memory could run out while they change.

    Args:
        job: what to compile.
        keep_stages: as `lower` has it.
    """
    options: dict[str, Any] = {"keep_stages": keep_stages, "fastmath": job.fastmath}
    lowered = lower(job.text, job.mode, donate=job.donate, **options)
    kept_on_failure = {argument for argument, _, keeps in job.donate if keeps}
    if kept_on_failure.isdisjoint(argument for argument, _ in lowered.donated):
        return lowered
    if takes_memory_first(lowered.llvm_ir):
        return lowered
    others = [request for request in job.donate if not request[2]]
    lowered = lower(job.text, job.mode, donate=others, **options)
    lowered.kept += [(argument, "memory could run out later") for argument in sorted(kept_on_failure)]
    return lowered


def takes_memory_first(llvm_ir: str) -> bool:
    """Whether a kernel takes memory, which can fail, only before it writes anything."""
    body = llvm_ir[llvm_ir.index("@main(") :]
    lines = body[: body.index("\n}")].splitlines()
    takes = [i for i, line in enumerate(lines) if any(name in line for name in _TAKES_MEMORY)]
    writes = [i for i, line in enumerate(lines) if _WRITES.search(line) and i not in takes]
    return not takes or not writes or takes[-1] < writes[0]
