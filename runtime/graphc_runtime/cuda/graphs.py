# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Captured graphs: what a program asks of the device, kept and asked for again in one call of the driver."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from graphc_runtime.cuda import schedule as sc
from graphc_runtime.cuda.driver import Driver

_KEPT_GRAPHS = 8
_KEPT_KEYS = 64


_ON_HOST = (sc.Constant, sc.Dim, sc.Compute, sc.Read, sc.Check, sc.If, sc.Loop, sc.While)


def asks_device(steps: Sequence[sc.Step]) -> bool:
    """Whether steps need more of the device than elements of arrays."""
    return any(not isinstance(step, _ON_HOST) or asks_device(_inner(step)) for step in steps)


def _inner(step: sc.Step) -> list[sc.Step]:
    """The steps of the blocks of a step."""
    return [inner for value in vars(step).values() if isinstance(value, sc.Block) for inner in value.steps]


def needs_no_values(steps: Sequence[sc.Step]) -> bool:
    """Whether steps are the same for the same shapes, so that a graph of them can be replayed."""
    waits = sc.Read | sc.Download | sc.Upload | sc.HostCall
    return all(not isinstance(step, waits) and needs_no_values(_inner(step)) for step in steps)


class Graphs:
    """Captured graphs, by what they depend on: kept for what was called last.

    Args:
        driver: of the device.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._graphs: OrderedDict[tuple[object, ...], int] = OrderedDict()
        self._seen: OrderedDict[tuple[object, ...], None] = OrderedDict()

    def find(self, key: tuple[object, ...]) -> int | None:
        """The graph of a call."""
        graph = self._graphs.get(key)
        if graph is not None:
            self._graphs.move_to_end(key)
        return graph

    def is_due(self, key: tuple[object, ...]) -> bool:
        """Whether a call has been made before, so that capturing it pays."""
        if key in self._seen:
            return True
        self._seen[key] = None
        if len(self._seen) > _KEPT_KEYS:
            self._seen.popitem(last=False)
        return False

    def add(self, key: tuple[object, ...], graph: int) -> None:
        """Keeps a graph, and forgets the one that was used least recently."""
        self._graphs[key] = graph
        if len(self._graphs) > _KEPT_GRAPHS:
            self._driver.drop_graph(self._graphs.popitem(last=False)[1])

    def clear(self) -> None:
        """Forgets all."""
        while self._graphs:
            self._driver.drop_graph(self._graphs.popitem()[1])
