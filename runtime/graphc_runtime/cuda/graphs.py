# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Captured graphs: what a program asks of the device, kept and asked for again in one call of the driver."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from graphc_runtime.cuda.driver import Driver

_KEPT_GRAPHS = 8
_KEPT_KEYS = 64
# Larger graphs take long to make, and much memory.
MOST_LAUNCHES = 1000
Key = tuple[object, ...]


class TooLongError(Exception):
    """The captured calls have more launches than a graph should hold."""


class Graphs:
    """Captured graphs, by what they depend on: kept for what was called last.

    A graph takes the place of the one that was used least recently: where both are of the same launches, the
    driver only exchanges their arguments.

    Args:
        driver: of the device.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._graphs: OrderedDict[Key, int] = OrderedDict()
        self._seen: OrderedDict[Key, None] = OrderedDict()
        self._private = 0

    def find(self, key: Key) -> int | None:
        """The graph of a call."""
        graph = self._graphs.get(key)
        if graph is not None:
            self._graphs.move_to_end(key)
        return graph

    def is_due(self, key: Key) -> bool:
        """True if a call has been made before, so that capturing it pays."""
        if key in self._seen:
            return True
        self._seen[key] = None
        if len(self._seen) > _KEPT_KEYS:
            self._seen.popitem(last=False)
        return False

    def capture(self, key: Key, ask: Callable[[int], None]) -> int:
        """A graph of what a function asks of a stream, which is kept.

        The stream is one of its own: what others ask for meanwhile, or arrays that are given back, are no
        part of it.
        """
        driver = self._driver
        if not self._private:
            self._private = driver.new_stream()
        driver.begin_capture(self._private)
        try:
            ask(self._private)
        except BaseException:
            driver.drop_graph(driver.end_capture(self._private))
            raise
        old = self._graphs.popitem(last=False)[1] if len(self._graphs) >= _KEPT_GRAPHS else 0
        self._graphs[key] = graph = driver.end_capture(self._private, old)
        return graph
