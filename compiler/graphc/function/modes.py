# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modes: how a graph is run."""

from __future__ import annotations

from typing import Any

from graphc.config import MODES, config
from graphc.function.debug import DebugExecutor
from graphc.function.reference import ReferenceExecutor
from graphc.function.report import CompileReport
from graphc.function.schedule import Executor, Schedule, why_not_native
from graphc.graph.function_graph import FunctionGraph
from graphc.tensor.type import TensorType


def get_mode(mode: Any = None) -> str:
    """The name of a mode; None stands for ``config.mode``. Case does not matter.

    Raises:
        ValueError: there is no such mode.
    """
    if mode is None:
        return config.mode
    name = mode.lower() if isinstance(mode, str) else None
    if name not in MODES:
        raise ValueError(f"unknown mode {mode!r}; the modes are {', '.join(MODES)}")
    return name


class _Compiler:
    """Compiles graphs of native nodes and keeps the report; a class, so that executors pickle."""

    def __init__(self, mode: str, name: str, report: CompileReport) -> None:
        self.mode = mode
        self.name = name
        self.report = report

    def native(self, fgraph: FunctionGraph) -> Executor:
        """The native executable of a graph whose nodes are all native."""
        from graphc.compile.native import compile_native

        executable = compile_native(fgraph, mode=self.mode, name=self.name, report=self.report)
        self.report.segments += 1
        self.report.native_nodes += len(fgraph.nodes)
        return executable

    def __call__(self, fgraph: FunctionGraph) -> Executor:
        """The executable of a whole graph, or a schedule when some of it runs in Python."""
        tensors_only = all(isinstance(v.type, TensorType) for v in fgraph.variables)
        if tensors_only and fgraph.nodes and all(why_not_native(node) is None for node in fgraph.nodes):
            return self.native(fgraph)
        return Schedule(fgraph, self.native, self.report)


def build_executor(fgraph: FunctionGraph, mode: str, name: str, report: CompileReport) -> Any:
    """Make what runs ``fgraph`` in a mode.

    Args:
        fgraph: inputs, then cells, to results, then new values of cells.
        mode: one of `MODES`.
        name: name of the function, for symbols and messages.
        report: gains times and fallbacks.

    Returns:
        An `Executor`; one with a ``bind`` method can be called without going through Python.
    """
    report.nodes = len(fgraph.nodes)
    if mode == "reference":
        return ReferenceExecutor(fgraph)
    compiler = _Compiler("fast_run" if mode == "debug" else mode, name, report)
    return DebugExecutor(fgraph, compiler) if mode == "debug" else compiler(fgraph)
