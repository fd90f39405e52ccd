# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The running iterations of loops, for traces and guards."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple


class Iteration(NamedTuple):
    """One iteration of a loop.

    Attributes:
        loop: the loop's op.
        number: 0 for the first iteration that runs.
    """

    loop: str
    number: int

    def __str__(self) -> str:
        return f"iteration {self.number} of {self.loop}"


_PATH: ContextVar[tuple[Iteration, ...]] = ContextVar("graphc_iterations", default=())


def current() -> tuple[Iteration, ...]:
    """The running iterations in this thread, the outermost first."""
    return _PATH.get()


class CountedBody:
    """Runs the body of a loop and counts iterations. Belongs to one thunk, hence to one call at a time.

    Args:
        body: what runs the inner graph.
        loop: the loop's op.
    """

    def __init__(self, body: Any, loop: str) -> None:
        self._body, self._loop, self._number = body, loop, 0

    def restart(self) -> None:
        """Begins a run of the loop."""
        self._number = 0

    def run(self, values: Sequence[Any]) -> list[Any]:
        """As the body's ``run``."""
        token = _PATH.set((*_PATH.get(), Iteration(self._loop, self._number)))
        try:
            results: list[Any] = self._body.run(values)
        finally:
            _PATH.reset(token)
        self._number += 1
        return results
