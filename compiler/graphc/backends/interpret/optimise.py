# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Emitted text to the optimised graph stage."""

from __future__ import annotations

from typing import Any

from graphc.backends.contexts import pooled_context
from graphc.backends.interpret.interpreter import checks
from graphc.backends.stages import GRAPH, PLACES, entries, request_of
from graphc.backends.target import CompileLog, CompileOptions
from graphc.errors import CompileError
from graphc.ir.locations import node_of
from graphc.passes.manager.run import run_pipeline
from graphc_dialects._mlir import ir
from graphc_runtime.artifact import Artifact
from graphc_runtime.manifest import Manifest, Signature, Site


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
