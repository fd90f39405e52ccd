# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The interpreter as a target: graph passes, and nothing below them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.backends import CompileLog, CompileOptions, Target
from graphc.backends.contexts import pooled_context, shared_context
from graphc.backends.interpret.interpreter import checks, run_function
from graphc.backends.stages import GRAPH, PLACES, entries, request_of
from graphc.errors import CompileError
from graphc.ir.diagnostics import node_of
from graphc.ir.walk import functions, symbol_of
from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir
from graphc_runtime.artifact import Artifact
from graphc_runtime.errors import Site
from graphc_runtime.executable import Executable
from graphc_runtime.kernel import Kernel, OnError, Run, Shape
from graphc_runtime.manifest import Manifest, Signature


class Interpreted(Executable):
    """The text of an artifact, parsed."""

    def __init__(self, artifact: Artifact) -> None:
        super().__init__(artifact)
        self._context = shared_context()
        with self._context:
            self.module = ir.Module.parse(artifact.code.decode())
        by_name = {symbol_of(op): op for op in functions(self.module)}
        self.has_shapes = "shapes" in by_name
        self.n_arguments = len(by_name["main"].regions[0].blocks[0].arguments)
        self._status = {check: i for i, check in enumerate(checks(self.module), 1)}
        # Sizes of rows are found by operations that are made for it and erased again.
        self._lock = threading.RLock()

    def make_kernel(self, on_error: OnError) -> Kernel:
        return _Interpreter(self, on_error)

    def run(self, name: str, arguments: Sequence[np.ndarray], on_error: OnError) -> list[Any]:
        """The results of a function."""

        def failed(check: Any, given: int, expected: int) -> None:
            on_error(self._status[check], int(given), int(expected))

        # Of numbers that NumPy does not have the IR has the bits.
        arguments = [_bits(x) for x in arguments]
        with self._lock, self._context, np.errstate(all="ignore"):
            return run_function(self.module, arguments, name, failed)


class _Interpreter(Kernel):
    def __init__(self, executable: Interpreted, on_error: OnError) -> None:
        self.executable, self.on_error = executable, on_error

    def begin(self) -> Run:
        return _Run(self)


class _Run(Run):
    """Results are computed when their shapes are asked for."""

    def __init__(self, kernel: _Interpreter) -> None:
        self._kernel = kernel
        self._found: list[np.ndarray] = []

    def shapes(self, arguments: Sequence[np.ndarray], signature: Signature) -> list[Shape]:
        executable, on_error = self._kernel.executable, self._kernel.on_error
        given = arguments[: executable.n_arguments]
        if executable.has_shapes:
            # It makes the checks that have to come before anything is computed.
            executable.run("shapes", given, on_error)
        self._found = executable.run("main", given, on_error)
        return [value.shape for value in self._found]

    def compute(self, arguments: Sequence[np.ndarray], results: Sequence[np.ndarray], *, alone: bool) -> None:
        for result, value in zip(results, self._found, strict=True):
            _bits(result)[...] = value

    def release(self) -> None:
        self._found = []


def _bits(x: np.ndarray) -> np.ndarray:
    return x.view(np.uint16) if x.dtype.kind == "V" else x


def graph_passes(text: str) -> list[str]:
    """The passes of "fast_run" in the graph stage, but for the one which only says what shares a loop."""
    return [entry for entry, _ in entries([*GRAPH, *PLACES], request_of(text))]


def optimise(text: str, signature: Signature, options: CompileOptions, log: CompileLog) -> Artifact:
    """The artifact of a graph; its code is the text of the optimised module.

    Raises:
        CompileError: a pass or the verifier refused the module.
    """
    try:
        with pooled_context() as (context, managers), context, ir.Location.unknown():
            with log.phase("parse"):
                module = ir.Module.parse(text)
            if log.stages is not None:
                log.stages.append(("graph", str(module)))
            with log.phase("passes"):
                report = run_pipeline(module, graph_passes(text), managers=managers)
            log.passes += [(run.name, run.seconds) for run in report.runs]
            if log.stages is not None:
                log.stages.append(("graph (optimised)", str(module)))
            kept = [
                (donation.argument, "the interpreter overwrites nothing") for donation in options.donations
            ]
            manifest = Manifest(
                signature, sites=tuple(map(_site, checks(module))), extra={"kept": kept} if kept else {}
            )
            return Artifact(manifest, module.operation.get_asm(enable_debug_info=True).encode())
    except ir.MLIRError as error:
        raise CompileError(
            f"the compiler rejected a module of its own making; please report this\n{error}"
        ) from error


def _site(check: Any) -> Site:
    attributes = check.attributes
    return Site(attributes["message"].value, attributes["error"].value, node_of(check))


class InterpretTarget(Target):
    """The graph stage as "fast_run" optimises it, operation by operation in NumPy.

    Slow, and needs no compiler: what it computes shows whether a wrong result is the fault of graph passes or
    of what comes below. Arguments are never overwritten, so that donations are not used.
    """

    name = "interpret"

    def compile(self, text: str, signature: Signature, options: CompileOptions, log: CompileLog) -> Artifact:
        return optimise(text, signature, options, log)

    def load(self, artifact: Artifact) -> Executable:
        return Interpreted(artifact)

    def pipeline(self, text: str, options: CompileOptions) -> list[str]:
        return graph_passes(text)
