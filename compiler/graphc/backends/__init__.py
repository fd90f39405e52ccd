# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The seam between front and back: from the text of a graph to what computes it.

The front end emits text, says in a `Signature` how calls look and in `CompileOptions` what else code depends
on, and asks a `Target` for an `Artifact`. It knows nothing of what lies below, and nothing below knows
settings, variables or ops. `TARGETS` says which target a mode is: a new one adds to this table, and its name
to `graphc.config.MODES`. `toolchain` is what compiled code depends on besides its graph: the compiler, its
libraries, the machine.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import platform
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from functools import cache
from typing import ClassVar

import numpy as np

from graphc.ir.donations import Donation
from graphc.ir.work import Work
from graphc_runtime.artifact import Artifact
from graphc_runtime.cpu import first_processor
from graphc_runtime.executable import Executable
from graphc_runtime.manifest import Signature
from graphc_runtime.record import record


def toolchain() -> str:
    """Identifies the compiler's sources, its dependencies, Python, NumPy and the CPU, and the kind of entry
    that this process asks for.
    """
    return f"{_compiler()};{os.environ.get('GRAPHC_CALL_TIER', '')}"


@cache
def _compiler() -> str:
    digest = hashlib.sha256()
    for package in ("graphc", "graphc_dialects", "graphc_runtime"):
        digest.update("".join(sorted(_sources(package))).encode())
    digest.update(f"{sys.version};{np.__version__};{platform.machine()};{sys.platform}".encode())
    for module in ("llvmlite", "torch_mlir"):
        digest.update(_installed(module).encode())
    digest.update(_cpu().encode())
    return digest.hexdigest()


def _sources(package: str) -> Iterator[str]:
    """A line for each file of a package: name, size and time. `os.scandir` takes a fifth of `Path.rglob`."""
    import importlib.util

    spec = importlib.util.find_spec(package)
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    status = entry.stat()
                    yield f"{entry.name}:{status.st_size}:{status.st_mtime_ns};"
                elif entry.name != "__pycache__" and entry.is_dir():
                    folders.append(entry.path)


def _installed(module: str) -> str:
    """Place and time of a dependency's installation; cheaper than reading its metadata."""
    import importlib.util

    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return f"{module} missing"
    return f"{spec.origin}:{os.stat(spec.origin).st_mtime_ns}"


def _cpu() -> str:
    """CPU model and features."""
    wanted = ("model name", "flags", "Features", "CPU implementer", "CPU part")
    lines = first_processor()
    return "\n".join(line for line in lines if line.startswith(wanted)) if lines else platform.processor()


@record(frozen=True)
class CompileOptions:
    """Everything that code depends on beside graph and signature. All of it is part of the key in the disk
    cache.

    Attributes:
        mode: the mode, which stands for a pipeline of the target.
        fastmath: what arithmetic may change, a level of `graphc-fast-math`; empty for the flags that lowering
            sets.
        flush_denormals: compute with denormal numbers flushed to zero.
        profile: measure the time of operations.
        donations: arguments that may be overwritten.
        workspace_limit_mb: largest workspace that is kept for the next call, in MiB.
        poison_memory: fill memory with NaN before use, and look for writes next to workspaces.
        verify_memory: refuse code that reads memory after it has been overwritten, and verify modules before
            all passes that fold.
        arch: the oldest device that code is for, such as "sm_90"; empty for targets that have no such choice.
        matmul_precision: of products of float32, "float32" or "tf32"; empty where there is no such choice.
        memory_budget: bytes of intermediate arrays above which some are computed again; None for any number.
    """

    mode: str
    fastmath: str = ""
    flush_denormals: bool = False
    profile: bool = False
    donations: tuple[Donation, ...] = ()
    workspace_limit_mb: int = 1024
    poison_memory: bool = False
    verify_memory: bool = False
    arch: str = ""
    matmul_precision: str = ""
    memory_budget: int | None = None


@record(frozen=True)
class Resources:
    """Resources that compiling may use. No code depends on them.

    Attributes:
        cache_dir: folder of the disk cache, for parts that functions have in common; empty for none.
        cache_size_mb: size that it is kept below, in MiB.
        threads: how many compile at a time; 0 stands for the cores that this process may use.
        renew: do not use parts from the disk.
    """

    cache_dir: str = ""
    cache_size_mb: int = 512
    threads: int = 0
    renew: bool = False


@record(frozen=True)
class PassView:
    """The IR after a pass.

    Attributes:
        name: the pass with its options; empty for the module before the first one.
        reason: why the pipeline has it.
        stage: of the pipeline.
        seconds: what it took.
        text: the module with locations; None where the pass changed nothing.
    """

    name: str
    reason: str
    stage: str
    seconds: float
    text: str | None


@record()
class CompileLog:
    """Messages of a target about its work.

    Attributes:
        phases: seconds spent in each step.
        passes: name and seconds of each pass that ran.
        stages: name and text of the IR at each stage; None where nobody asks for it, as it takes time.
        views: the IR after each pass; None where nobody asks for it. With it, what LLVM gets has locations.
        work: what the kernels do (see `graphc.passes.buffer.count_work`); None where nobody asks for it.
    """

    phases: dict[str, float] = field(default_factory=dict)
    passes: list[tuple[str, float]] = field(default_factory=list)
    stages: list[tuple[str, str]] | None = None
    views: list[PassView] | None = None
    work: list[Work] | None = None

    def empty(self) -> CompileLog:
        """A log that asks for as much as this one."""
        return CompileLog(
            stages=None if self.stages is None else [],
            views=None if self.views is None else [],
            work=None if self.work is None else [],
        )

    def add_phase(self, name: str, seconds: float) -> None:
        """Add time to a step."""
        self.phases[name] = self.phases.get(name, 0.0) + seconds

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure the body as a step."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.add_phase(name, time.perf_counter() - start)

    def add(self, other: CompileLog) -> None:
        """Add what another log says."""
        for name, seconds in other.phases.items():
            self.add_phase(name, seconds)
        self.passes += other.passes
        if self.stages is not None:
            self.stages += other.stages or ()
        if self.views is not None:
            self.views += other.views or ()
        if self.work is not None:
            self.work += other.work or ()


class Target(ABC):
    """Makes artifacts, and loads them.

    Outside of its folder a target is named by `graphc.backends` and `graphc.config.MODES`: all else
    that the front end has to know of one, its class says.

    Args:
        resources: what it may use.

    Attributes:
        name: of the target, part of the key in the disk cache.
        has_counters: its code can measure itself (``profile=True``).
        has_budget: its code has a workspace, which a ``memory_budget`` bounds.
        settings: fields of `CompileOptions` that are settings of this target, and the names of these.
    """

    name: ClassVar[str]
    has_counters: ClassVar[bool] = False
    has_budget: ClassVar[bool] = False
    settings: ClassVar[Mapping[str, str]] = {}

    def __init__(self, resources: Resources) -> None:
        self.resources = resources

    @abstractmethod
    def compile(self, text: str, signature: Signature, options: CompileOptions, log: CompileLog) -> Artifact:
        """Compiles.

        Args:
            text: a module in the graphc dialect, whose `@main` takes the signature's arguments, less cells at
                the end that are only written, and returns its results.
            signature: how calls look; the artifact's says besides what became of the donations.
            options: what else code depends on.
            log: gains times.

        Raises:
            CompileError: a pass, the verifier or a code generator refused the module.
        """

    @abstractmethod
    def load(self, artifact: Artifact) -> Executable:
        """The artifact, ready to be called.

        Raises:
            LoadError: it cannot run here.
        """

    def identity(self) -> str:
        """Versions and machine that artifacts depend on beside text, signature and options."""
        return f"{self.name};{toolchain()}"

    @abstractmethod
    def pipeline(self, text: str, options: CompileOptions) -> list[str]:
        """The passes that `compile` runs on a module, as text for `graphc-opt`."""

    def build(self, text: str, signature: Signature, options: CompileOptions, log: CompileLog) -> Executable:
        """Compiles and loads."""
        artifact = self.compile(text, signature, options, log)
        with log.phase("link"):
            return self.load(artifact)


# Modes of compiled functions, and the class of their target.
TARGETS: dict[str, str] = {
    "fast_run": "graphc.backends.cpu.target:CpuTarget",
    "fast_compile": "graphc.backends.cpu.target:CpuTarget",
    "interpret": "graphc.backends.interpret.target:InterpretTarget",
    "cuda": "graphc.backends.cuda.target:CudaTarget",
}


def target_class(mode: str) -> type[Target]:
    """The class of a mode's target; what it needs is imported now."""
    module, _, name = TARGETS[mode].partition(":")
    found: type[Target] = getattr(importlib.import_module(module), name)
    return found


def find_target(mode: str, resources: Resources) -> Target:
    """The target of a mode."""
    return target_class(mode)(resources)
