# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``EventLog``: what an environment with ``full_tracing`` ran."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple


class Event(NamedTuple):
    """One launch of an executable.

    Attributes:
        name: the operation.
        inputs: dtype and shape of each input.
        seconds: how long it ran, without compilation.
        bytes: bytes of the results.
        operations: operations in the launch; more than 1 when a queue was launched.
    """

    name: str
    inputs: tuple[str, ...]
    seconds: float
    bytes: int
    operations: int


class EventLog(deque[Event]):
    """The events in order, the newest 100,000 of them. It prints as a table."""

    def __init__(self) -> None:
        super().__init__(maxlen=100_000)

    @property
    def seconds(self) -> float:
        """Time of all events."""
        return sum(event.seconds for event in self)

    def __str__(self) -> str:
        rows = [("operation", "us", "bytes", "inputs")]
        rows += [(e.name, f"{e.seconds * 1e6:.1f}", str(e.bytes), ", ".join(e.inputs)) for e in self]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = [
            f"{name:<{widths[0]}}  {us:>{widths[1]}}  {size:>{widths[2]}}  {inputs}"
            for name, us, size, inputs in rows
        ]
        return "\n".join(lines)
