# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that have a plan: addresses are filled in, and what the plan holds is asked for."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from itertools import combinations
from typing import TypeAlias

from graphc_runtime.cuda.array import DeviceArray, Layout, Memory
from graphc_runtime.cuda.asks import ask_all
from graphc_runtime.cuda.driver import Driver
from graphc_runtime.cuda.graphs import Graphs
from graphc_runtime.cuda.outs import overlap
from graphc_runtime.cuda.plan import Plan
from graphc_runtime.record import record

Layouts: TypeAlias = tuple[Layout, ...]
# Below this number of launches a graph saves nothing.
_LEAST_LAUNCHES = 3
_NONE: dict[int, DeviceArray | None] = {}


class Planned:
    """A plan on a device; any number of threads may call `ask`.

    Args:
        plan: what is asked for.
        layouts: of the arrays that it was made for.
        driver: of the device.
        graphs: those of the executable.
        lock: of the graphs.

    Attributes:
        driver: of the device.
        prepared: asks for the results, given the table of addresses.
        is_plain: whether that has nothing but the addresses of the arrays.
    """

    def __init__(
        self, plan: Plan, layouts: Layouts, driver: Driver, graphs: Graphs, lock: threading.RLock
    ) -> None:
        self._plan, self._layouts, self.driver = plan, layouts, driver
        self._graphs = graphs if plan.launches >= _LEAST_LAUNCHES and plan.can_be_captured else None
        self._lock = lock
        self.is_plain = self._graphs is None and not (plan.workspace or plan.inside or plan.is_unrolled)
        self.prepared = driver.prepare(plan.asks, plan.places(len(layouts)), driver.main_stream)

    def ask(self, addresses: Sequence[int]) -> bool:
        """Asks for the results.

        Args:
            addresses: where the memory of each array begins.

        Returns:
            Whether it has asked; there may be a faster way, where there is no graph of the call.

        Raises:
            DeviceMemoryError: without a step, if there is no memory for temporary arrays; nothing has been
                asked for then.
            DriverError: the device refuses a step.
        """
        if self.is_plain:
            self.prepared(addresses)
            return True
        if self._graphs is not None and self._replayed(self._graphs, addresses):
            return True
        driver, plan = self.driver, self._plan
        if plan.is_unrolled:
            return False
        if not plan.workspace:
            self.prepared(plan.table(addresses, 0))
            return True
        memory = Memory(driver, plan.workspace, driver.main_stream)
        try:
            self.prepared(plan.table(addresses, memory.address))
        finally:
            memory.free()
        return True

    def _replayed(self, graphs: Graphs, addresses: Sequence[int]) -> bool:
        """True if a graph of the same call has been launched; one is made of a call that repeats."""
        driver = self.driver
        with self._lock:
            key = self._layouts, tuple(addresses)
            graph = graphs.find(key)
            if graph is None and graphs.is_due(key):
                graph = graphs.capture(key, lambda stream: self._asked(addresses, stream))
            if graph is None:
                return False
            driver.replay(graph, driver.main_stream)
        return True

    def _asked(self, addresses: Sequence[int], stream: int) -> None:
        """Asks in a stream that is captured; so is that the workspace comes and goes."""
        plan = self._plan
        memory = Memory(self.driver, plan.workspace, stream) if plan.workspace else None
        table = plan.table(addresses, 0 if memory is None else memory.address)
        try:
            ask_all(self.driver, plan.asks, table, stream)
        finally:
            if memory is not None:
                memory.free()


@record(frozen=True, eq=False)
class Ready:
    """A call that needs no more than arrays of the device.

    Attributes:
        planned: takes the addresses of arguments and results.
        results: what to allocate.
        donated: numbers of arguments and of the results that are computed in copies of them.
    """

    planned: Planned
    results: Layouts
    donated: tuple[tuple[int, int], ...]

    def call(
        self,
        arguments: Sequence[DeviceArray],
        own: Collection[int] = (),
        outs: Sequence[DeviceArray | None] = (),
    ) -> list[DeviceArray] | None:
        """The results; None if an argument is on another device, or the call has to go another way.

        Args:
            arguments: in the forms that this is for.
            own: numbers of arguments that nobody else has: results may be computed in them.
            outs: arrays for the first results; None stands for a new one.

        Raises:
            DeviceMemoryError: without a step, if nothing has been computed.
            DriverError: the device refuses a step.
        """
        planned = self.planned
        driver, addresses = planned.driver, []
        for array in arguments:
            memory = array.memory
            if memory.driver is not driver:
                return None
            addresses.append(memory.address)
        given = self._given(arguments, own, outs) if outs or self.donated else _NONE
        found: list[DeviceArray] = []
        for number, layout in enumerate(self.results):
            taken = given.get(number) if given else None
            if taken is None:
                taken = DeviceArray.of(Memory(driver, layout.nbytes, driver.main_stream), layout)
            found.append(taken)
            addresses.append(taken.memory.address)
        for argument, result in self.donated:
            source, target = arguments[argument], found[result]
            if source is not target:
                driver.copy(target.memory.address, source.address, source.nbytes, driver.main_stream)
                addresses[argument] = target.memory.address
        if planned.is_plain:
            planned.prepared(addresses)
            return found
        return found if planned.ask(addresses) else None

    def _given(
        self, arguments: Sequence[DeviceArray], own: Collection[int], outs: Sequence[DeviceArray | None]
    ) -> dict[int, DeviceArray | None]:
        """Arrays for results, by their numbers, where they are there already."""
        found = dict(enumerate(outs))
        for argument, result in self.donated:
            found[result] = arguments[argument] if argument in own else None
        return found

    def places(
        self, outs: Sequence[object], arguments: Sequence[DeviceArray]
    ) -> list[DeviceArray | None] | None:
        """The arrays that are given for results; None if there is more to do than to compute in them."""
        donated = [result for _, result in self.donated]
        found: list[DeviceArray | None] = []
        for number, array in enumerate(outs):
            if array is not None:
                if type(array) is not DeviceArray or array.layout is not self.results[number]:
                    return None
                if array.known is not None or number in donated:
                    return None
            found.append(array)
        given = [array for array in found if array is not None]
        drivers = {array.memory.driver for array in (*given, *arguments)}
        apart = not any(overlap(one, two) for one, two in combinations(given, 2))
        if len(drivers) > 1 or not apart or any(overlap(x, y) for x in given for y in arguments):
            return None
        return found
