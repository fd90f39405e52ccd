# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tracing a function that is one native executable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.function.compiled import Compiled
from graphc.graph.basic import Apply
from graphc.graph.executor import Executor
from graphc_runtime.thunk import Register

if TYPE_CHECKING:
    from graphc.function.trace import Trace


class TracedNative(Executor):
    """Calls an executable as its function does, and records the call as one event.

    Args:
        native: a graph with its executable.
        trace: gains the events.
    """

    def __init__(self, native: Compiled, trace: Trace) -> None:
        self._native, self._trace = native, trace
        self._executable = native.executable
        self.nodes: list[Apply] = native.fgraph.nodes

    @property
    def is_on_device(self) -> bool:
        return self._native.is_on_device

    def hold(self, cells: Sequence[Register]) -> None:
        self._native.hold(cells)

    @property
    def name(self) -> str:
        """The op if there is one, else the number of ops."""
        ops = len(self.nodes)
        return str(self.nodes[0].op) if ops == 1 else f"native function of {ops} ops"

    def run(self, values: Sequence[Any], *, out: Sequence[object] = ()) -> list[Any]:
        """One value for each input of the graph to one for each output; `out` as in `Compiled.run`."""
        signature = self._executable.manifest.signature
        count = len(signature.inputs)
        donated = {argument for argument, _ in signature.donated}
        inputs = [
            np.array(value, order="C") if i in donated else value for i, value in enumerate(values[:count])
        ]
        # Cells of its own: the function stores updates itself.
        cells = [[value] for value in values[count:]]
        unread = signature.cells[len(cells) :]
        cells += [[np.empty([size or 0 for size in spec.shape], spec.dtype)] for spec in unread]
        call = self._executable.bind(cells, where=self._native.where)
        returned: list[Any] = []

        def run() -> None:
            if not any(array is not None for array in out):
                returned.append(call(*inputs))
            else:
                returned.append(call(*inputs, out=out[0] if signature.returns == "single" else out))

        def outputs(_: Any) -> list[Any]:
            (results,) = returned
            results = [results] if signature.returns == "single" else list(results or ())
            return results + [cells[update.cell][0] for update in signature.updates]

        self._trace.timed(self, run, outputs, native=True)
        return outputs(None)
