# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modes: how a graph is run."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

from graphc import emit, hooks
from graphc.config import MODES, config
from graphc.emit.emitter import why_not_native
from graphc.function.call_form import KernelForm, Signature, kernel_form, plain_form
from graphc.function.compiled import Compiled, NotStored, Program, compile_graph
from graphc.function.report import CompileReport
from graphc.function.settings import compile_options
from graphc.graph.basic import Constant
from graphc.graph.contract import Executor
from graphc.graph.demand import is_conditional
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.reference import ReferenceExecutor
from graphc.graph.tensor.type import TensorType

if TYPE_CHECKING:
    from graphc.function.schedule import Schedule


def get_mode(mode: str | None = None) -> str:
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


def build_program(
    fgraph: FunctionGraph, signature: Signature, report: CompileReport, *, isolated: bool = False
) -> Program:
    """Makes what runs a graph, compiled for calls of a form.

    Args:
        fgraph: inputs, then variables whose values the function keeps, to results, then updates.
        signature: the form of calls.
        report: says in which mode; gains times and fallbacks.
        isolated: compile in a helper process, whatever the settings say.
    """
    report.nodes = len(fgraph.nodes)
    return Program(fgraph, _executor(fgraph, signature, report, isolated), report)


def first_program(fgraph: FunctionGraph, report: CompileReport) -> Program:
    """A program that runs a graph in NumPy, as it is."""
    report.nodes = len(fgraph.nodes)
    return Program(fgraph, ReferenceExecutor(fgraph), report)


def stored_program(fgraph: FunctionGraph, signature: Signature, report: CompileReport) -> Program | None:
    """As `build_program`, of what the disk cache has; None if it lacks any of it."""
    try:
        executor = _Compiler(report, only_stored=True)(fgraph, kernel_form(signature, fgraph, report.name))
    except NotStored:
        return None
    return Program(fgraph, executor, report)


def _executor(fgraph: FunctionGraph, signature: Signature, report: CompileReport, isolated: bool) -> Executor:
    compiler = _Compiler(report, isolated=isolated)
    if report.nan_guard != "off" or report.mode == "debug":
        checking: Executor = hooks.inspection().checking(fgraph, report, compiler)
        return checking
    if report.mode == "reference":
        return ReferenceExecutor(fgraph)
    return compiler(fgraph, kernel_form(signature, fgraph, report.name))


class _Compiler:
    """Compiles graphs and keeps the report; a class, so that executors pickle."""

    def __init__(self, report: CompileReport, *, isolated: bool = False, only_stored: bool = False) -> None:
        self.report = report
        self._how = {"isolated": isolated, "only_stored": only_stored}

    def __call__(self, fgraph: FunctionGraph, form: KernelForm | None = None) -> Executor:
        """The executable of a whole graph, or a schedule when some of it runs in Python.

        Args:
            fgraph: the graph.
            form: in which calls can go straight to the code of the whole graph.
        """
        if all(isinstance(v.type, TensorType) for v in fgraph.variables):
            if fgraph.nodes and not any(map(why_not_native, fgraph.nodes)):
                if not any(map(is_conditional, fgraph.nodes)):
                    return self.compiled(fgraph, form)
                if emit.obstacle(fgraph) is None:
                    return self.compiled(fgraph, form)
        elif any(hasattr(v.type, "format") for v in fgraph.inputs):
            # Only graphs with sparse matrices need the package.
            from graphc.sparse.executor import executor_on_parts

            found = executor_on_parts(fgraph, self.compiled)
            if found is not None:
                return found
        return _schedules().in_parts(self, fgraph, form)

    def compiled(self, fgraph: FunctionGraph, form: KernelForm | None = None) -> Compiled:
        """A graph whose nodes are all native, compiled for calls of a form, or as a part of a function."""
        form = form or plain_form(fgraph, self.report.name)
        return compile_graph(fgraph, form, self.report.options, self.report, **self._how)


class _OpCompiler(_Compiler):
    """Compiles single nodes; equal ones on equal types once."""

    def __init__(self, report: CompileReport) -> None:
        super().__init__(report)
        self._known: dict[Any, Compiled] = {}

    def compiled(self, fgraph: FunctionGraph, form: KernelForm | None = None) -> Compiled:
        (node,) = fgraph.nodes
        place = {v: i for i, v in enumerate(fgraph.inputs)}
        operands = tuple(
            (v.type, place[v] if v in place else v.data.tobytes() if isinstance(v, Constant) else None)
            for v in node.inputs
        )
        key = (node.op, operands, tuple(v.type for v in node.outputs), len(fgraph.outputs))
        if key not in self._known:
            self._known[key] = super().compiled(fgraph, form)
        # Errors name the line of this node.
        return replace(self._known[key], fgraph=fgraph)


def build_op_schedule(fgraph: FunctionGraph, mode: str, name: str) -> Schedule:
    """A program that runs each node of a graph for itself, compiled where it can be unless the mode is
    "reference".
    """
    report = CompileReport(name=name, mode=mode, options=compile_options(mode))
    grain = "python" if mode == "reference" else "op"
    return _schedules().Schedule(fgraph, _OpCompiler(report).compiled, report, grain=grain)


def _schedules() -> ModuleType:
    """The module of graphs that run in parts: most are compiled as a whole."""
    from graphc.function import schedule

    return schedule
