# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names of the shared variables of exported functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from graphc.artifacts.source import Source
from graphc.graph.basic import Constant


class StateNames:
    """The shared variables of all functions in order of first use, under different identifiers.

    Attributes:
        variables: function, position of a cell, and name of each.
    """

    def __init__(self, given: Sequence[Source]) -> None:
        self.variables: list[tuple[Source, int, str]] = []
        self._numbers: dict[int, int] = {}
        for source in given:
            for i, variable in enumerate(source.cells):
                if not isinstance(variable, Constant) and id(variable.container) not in self._numbers:
                    self._numbers[id(variable.container)] = len(self.variables)
                    self.variables.append((source, i, self._new(variable.name)))

    def number(self, variable: Any) -> int:
        """Of a shared variable."""
        return self._numbers[id(variable.container)]

    def of_cells(self, source: Source) -> list[str]:
        """A name for each cell of a function, empty for constants."""
        return [
            "" if isinstance(variable, Constant) else self.variables[self.number(variable)][2]
            for variable in source.cells
        ]

    def _new(self, name: str | None) -> str:
        label = re.sub(r"\W", "_", name or "", flags=re.ASCII) or f"state_{len(self.variables)}"
        label = f"_{label}" if label[0].isdigit() else label
        taken = {known for _, _, known in self.variables}
        candidates = [label, *(f"{label}_{i}" for i in range(2, len(taken) + 3))]
        return next(candidate for candidate in candidates if candidate not in taken)
