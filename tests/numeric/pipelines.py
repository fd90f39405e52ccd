# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles graphs with pipelines that differ from the standard ones, and runs modules before any pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from graphc.backends import CompileLog, CompileOptions, Resources
from graphc.backends.cpu.pipeline import FAST_RUN, OPT_LEVEL, PIPELINES
from graphc.backends.cpu.target import CpuTarget
from graphc.backends.stages import Entry, Stage
from graphc.emit import emit_module
from graphc.function.function import _cells
from graphc.graph.basic import Variable
from graphc.graph.function_graph import FunctionGraph
from graphc_runtime.errors import Origin
from graphc_runtime.manifest import ArraySpec, Signature


@dataclass
class Graph:
    """A graph, with an array for each input."""

    inputs: list[Variable]
    values: list[np.ndarray]
    outputs: list[Variable]


# Passes without which a module still compiles, and what is run in their place.
OPTIONAL = (
    "graphc-constant-folding",
    "graphc-stabilize",
    "graphc-algebraic-simplification",
    "graphc-blas-recognition",
    "graphc-shape-simplification",
    "graphc-fusion",
    "graphc-matmul-to-blas",
    "graphc-loop-fusion",
    "graphc-expand-math",
    "eliminate-empty-tensors",
)


def without(*flags: str) -> list[Entry]:
    """The fast_run pipeline without some of its passes.

    Raises:
        ValueError: the pipeline has no such entry.
    """
    missing = set(flags) - {text for text, _ in FAST_RUN}
    if missing:
        raise ValueError(f"fast_run has no entry {', '.join(sorted(missing))}")
    return [entry for entry in FAST_RUN if entry[0] not in flags]


def with_options(flag: str, options: str) -> list[Entry]:
    """The fast_run pipeline with options for one of its passes."""
    return [(f"{text}{{{options}}}" if text == flag else text, reason) for text, reason in FAST_RUN]


@contextmanager
def _registered(entries: Sequence[Entry], opt_level: int) -> Iterator[str]:
    name = "test pipeline"
    PIPELINES[name], OPT_LEVEL[name] = (Stage.of(name, entries),), opt_level
    try:
        yield name
    finally:
        del PIPELINES[name], OPT_LEVEL[name]


def compile_text(text: str, entries: Sequence[Entry], opt_level: int = 2) -> Any:
    """A callable (arrays to a list of arrays) of a graph-stage module's `@main`."""
    signature = _signature(text)
    with _registered(entries, opt_level) as mode:
        executable = CpuTarget(Resources()).build(text, signature, CompileOptions(mode), CompileLog())
    return executable.kernel_call(signature, where=lambda node: Origin())


def interpret(text: str, values: Sequence[np.ndarray]) -> list[Any]:
    """What a graph-stage module computes, by the interpreter."""
    from graphc.backends.interpret.interpreter import run_function
    from graphc_dialects._mlir import ir

    with _context(), ir.Location.unknown(), np.errstate(all="ignore"):
        return run_function(ir.Module.parse(text), values)


def module_of(graph: Graph) -> tuple[str, list[np.ndarray]]:
    """The emitted module of a graph, and the values of its arguments."""
    cells = _cells(graph.inputs, graph.outputs)
    fgraph = FunctionGraph([*graph.inputs, *cells], graph.outputs)
    return emit_module(fgraph).text, [*graph.values, *(cell.data for cell in cells)]


@cache
def _context() -> Any:
    from graphc_dialects.dialect import new_context

    return new_context()


def _signature(text: str) -> Signature:
    from graphc.ir.constants import element_dtype
    from graphc_dialects._mlir import ir

    def spec(tensor: Any) -> ArraySpec:
        shape = tuple(size if size >= 0 else None for size in tensor.shape)
        return ArraySpec(np.dtype(element_dtype(tensor.element_type)).name, shape)

    with _context():
        module = ir.Module.parse(text)
        main = next(op for op in module.body.operations if op.attributes["sym_name"].value == "main")
        type_ = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value)
        inputs, outputs = (
            tuple(spec(ir.RankedTensorType(t)) for t in types) for types in (type_.inputs, type_.results)
        )
    return Signature(inputs, outputs=outputs, returns="list", name="main")
