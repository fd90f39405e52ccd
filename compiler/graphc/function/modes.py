# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modes: how a graph is run."""

from __future__ import annotations

import copy
from typing import Any

from graphc.compile.native import compile_native
from graphc.config import MODES, config
from graphc.emit.conditionals import obstacle
from graphc.emit.native import why_not_native
from graphc.function.debug import DebugExecutor
from graphc.function.nan_guard import GuardedExecutor
from graphc.function.report import CompileReport
from graphc.function.schedule import Executor, Schedule
from graphc.graph.demand import is_conditional
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.reference import ReferenceExecutor
from graphc.graph.tensor.type import TensorType
from graphc.sparse.executor import executor_on_parts


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
        executable = compile_native(fgraph, mode=self.mode, name=self.name, report=self.report)
        self.report.segments += 1
        self.report.native_nodes += len(fgraph.nodes)
        return executable

    def __call__(self, fgraph: FunctionGraph) -> Executor:
        """The executable of a whole graph, or a schedule when some of it runs in Python."""
        tensors_only = all(isinstance(v.type, TensorType) for v in fgraph.variables)
        if tensors_only and fgraph.nodes and all(why_not_native(node) is None for node in fgraph.nodes):
            if not any(map(is_conditional, fgraph.nodes)):
                return self.native(fgraph)
            if obstacle(fgraph) is None:
                return self.native(fgraph)
        if not tensors_only and any(hasattr(v.type, "format") for v in fgraph.inputs):
            found = executor_on_parts(fgraph, self.native)
            if found is not None:
                return found
        return Schedule(fgraph, self.native, self.report)


class _OpCompiler(_Compiler):
    """Compiles single nodes; equal ones on equal types once."""

    def __init__(self, mode: str, name: str, report: CompileReport) -> None:
        super().__init__(mode, name, report)
        self._known: dict[Any, Any] = {}

    def native(self, fgraph: FunctionGraph) -> Executor:
        (node,) = fgraph.nodes
        place = {v: i for i, v in enumerate(fgraph.inputs)}
        operands = tuple(
            (v.type, place[v] if v in place else v.data.tobytes())  # type: ignore[attr-defined]
            for v in node.inputs
        )
        key = (node.op, operands, tuple(v.type for v in node.outputs), len(fgraph.outputs))
        if key not in self._known:
            self._known[key] = super().native(fgraph)
            self._known[key].call()
        executable = copy.copy(self._known[key])
        # Errors name the line of this node.
        executable.fgraph = fgraph
        return executable


def build_op_schedule(fgraph: FunctionGraph, mode: str, name: str) -> Schedule:
    """What runs each node of a graph for itself, compiled where it can be unless the mode is "reference"."""
    report = CompileReport(name, mode)
    compiler = _OpCompiler("fast_run" if mode in ("debug", "reference") else mode, name, report)
    return Schedule(fgraph, compiler.native, report, grain="python" if mode == "reference" else "op")


def build_executor(fgraph: FunctionGraph, mode: str, name: str, report: CompileReport) -> Any:
    """Make what runs ``fgraph`` in a mode.

    Args:
        fgraph: inputs, then cells, to results, then new values of cells.
        mode: one of `MODES`.
        name: name of the function, for symbols and messages.
        report: gains times and fallbacks; says whether values are guarded, for which every mode runs op by
            op in Python.

    Returns:
        An `Executor`; one with a ``bind`` method can be called without going through Python.
    """
    report.nodes = len(fgraph.nodes)
    if report.nan_guard != "off":
        return GuardedExecutor(fgraph, report.nan_guard, report)
    if mode == "reference":
        return ReferenceExecutor(fgraph)
    compiler = _Compiler("fast_run" if mode == "debug" else mode, name, report)
    return DebugExecutor(fgraph, compiler) if mode == "debug" else compiler(fgraph)
