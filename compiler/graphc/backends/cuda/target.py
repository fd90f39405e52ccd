# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels for CUDA devices, and schedules that launch them."""

from __future__ import annotations

from graphc.backends import CompileLog, CompileOptions, Target
from graphc.errors import UnsupportedError
from graphc_runtime.artifact import Artifact
from graphc_runtime.cuda.analysis import by_library
from graphc_runtime.cuda.executable import DeviceExecutable
from graphc_runtime.executable import Executable
from graphc_runtime.manifest import Manifest, Signature


class CudaTarget(Target):
    """Passes down to kernels in the gpu dialect, and PTX, which the driver compiles when it loads it.

    Compiling needs no device; the first call does. It has to be at least the one that is compiled for.
    """

    name = "cuda"
    settings = {"arch": "cuda_arch", "matmul_precision": "matmul_precision"}

    def compile(self, text: str, signature: Signature, options: CompileOptions, log: CompileLog) -> Artifact:
        with log.phase("load compiler"):
            from graphc.backends.cuda.code import compile_for_device
        if options.flush_denormals:
            raise UnsupportedError(
                "kernels for devices keep denormal numbers, but flush_denormals is set; leave it out, or "
                "compile with mode 'fast_run'"
            )
        made = compile_for_device(text, options, self.resources, log)
        extra: dict[str, object] = {"target": self.name}
        if options.donations:
            reason = "kernels write arrays of their own"
            extra["kept"] = [(donation.argument, reason) for donation in options.donations]
        if made.on_host:
            extra["host"] = made.on_host
        libraries = by_library(made.code.schedule)
        if libraries:
            extra["libraries"] = {
                name: list(dict.fromkeys(x.op for x in steps)) for name, steps in libraries.items()
            }
        return Artifact(Manifest(signature, sites=made.sites, extra=extra), made.code.to_bytes())

    def load(self, artifact: Artifact) -> Executable:
        return DeviceExecutable(artifact)

    def pipeline(self, text: str, options: CompileOptions) -> list[str]:
        from graphc.backends.cuda import pipeline

        entries = pipeline.kernels(text, options.matmul_precision)
        return [entry for entry, _ in [*entries, *pipeline.MATH, *pipeline.device()]]
