# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Registers of a program of a schedule in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from graphc_runtime.cuda.array import DeviceArray, Memory
from graphc_runtime.cuda.driver import Driver
from graphc_runtime.cuda.graphs import Graphs, TooLongError
from graphc_runtime.cuda.schedule import Step
from graphc_runtime.errors import ArtifactError

Value: TypeAlias = "DeviceArray | np.ndarray | int | float | bool"
# A one-element list with the value of a shared variable or of a constant.
Cell: TypeAlias = "list[Any]"
OnCheck: TypeAlias = Callable[[int, int, int], object]
# Takes arguments, and what is called when a check fails.
HostFunction: TypeAlias = Callable[["Sequence[Value]", OnCheck], "Sequence[np.ndarray]"]


class Registers:
    """Registers of a call.

    Attributes:
        values: of the registers.
        driver: of the device; None where a program computes on shapes only.
        streams: handles.
        events: handles.
        made: memory that the call has allocated and not yet given back.
        graphs: of the executable, for loops; None where nothing is captured.
        is_unrolled: whether steps of a loop were run that would have been captured.
        libraries: which of them there are.
        left: where the call is written down, how many launches there may still be.
        step: which one asks the device for something.
    """

    __slots__ = (
        *("driver", "events", "functions", "graphs", "is_unrolled", "left", "libraries", "made", "on_check"),
        *("step", "streams", "values"),
    )

    def __init__(
        self,
        count: int,
        driver: Driver | None,
        streams: Sequence[int],
        events: Sequence[int],
        functions: Sequence[HostFunction],
        on_check: OnCheck,
    ) -> None:
        self.values: list[Value | None] = [None] * count
        self.driver, self.streams, self.events = driver, streams, events
        self.functions, self.on_check = functions, on_check
        self.made: list[Memory] = []
        self.graphs: Graphs | None = None
        self.is_unrolled = False
        self.libraries: frozenset[str] = frozenset()
        self.left: int | None = None
        self.step: Step | None = None

    def device(self) -> Driver:
        """The driver.

        Raises:
            ArtifactError: the program has none.
        """
        if self.driver is None:
            raise ArtifactError("a program of shapes asks for a device")
        return self.driver

    def count(self) -> None:
        """Counts a launch, where the call is written down.

        Raises:
            TooLongError: there are more than a graph should hold.
        """
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise TooLongError

    def array(self, register: int) -> DeviceArray:
        """An array of the device.

        Raises:
            ArtifactError: its memory has been given back.
        """
        value = self.values[register]
        assert isinstance(value, DeviceArray)
        if value.memory.is_free:
            raise ArtifactError("the schedule uses memory that it has given back")
        return value

    def number(self, register: int) -> int:
        """A number."""
        value = self.values[register]
        assert isinstance(value, int), "a size is an integer"
        return value

    def numbers(self, registers: Sequence[int]) -> tuple[int, ...]:
        """Numbers."""
        return tuple(map(self.number, registers))


# A step, or several, as a function.
Run: TypeAlias = Callable[[Registers], None]
