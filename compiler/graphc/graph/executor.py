# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Executors of graphs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np

    from graphc_runtime.thunk import Register


class Body(Protocol):
    """Executor of the inner graph of a loop."""

    def run(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        """One value for each input to one for each output."""


class Executor(ABC):
    """Runs a graph."""

    @abstractmethod
    def run(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        """One value for each input to one for each output."""

    def call(self) -> tuple[Callable[..., np.ndarray | list[np.ndarray]], bool]:
        """A function of the inputs, for graphs that are one thunk of many.

        Returns:
            The function, and whether it returns the one output itself instead of a list.
        """
        return lambda *values: self.run(values), False

    @property
    def is_on_device(self) -> bool:
        """True if it takes and gives arrays of a device."""
        return False

    def hold(self, cells: Sequence[Register]) -> None:
        """Moves values that a function keeps to where they are read, if that is another memory."""
        return

    @property
    def whole(self) -> Executor | None:
        """The graph as one executable, if it is one."""
        return None

    def segments(self) -> Iterator[Executor]:
        """The executables that it runs."""
        if self.whole is not None:
            yield self.whole
