# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of a `Function`: a graph, what runs it, and the report of how that was made."""

from __future__ import annotations

from graphc.function.report import CompileReport
from graphc.graph.executor import Executor
from graphc.graph.function_graph import FunctionGraph
from graphc_runtime.record import record


@record(frozen=True)
class Program:
    """A graph that can be run.

    Attributes:
        fgraph: inputs, then shared variables and large constants, to results, then updates.
        executor: runs it. Functions that differ only in their shared variables have one in common.
        report: what the compiler did.
    """

    fgraph: FunctionGraph
    executor: Executor
    report: CompileReport
