# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A limit on the memory of intermediate arrays: lowering is tried until the plan of the buffers is within it.

What `graphc-rematerialise` counts are arrays of the graph. Buffers are what later passes make of them, so
that a plan can need a little more, or less.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from graphc.library.memory.places import planned_bytes

if TYPE_CHECKING:
    from graphc.backends.cpu.lower import Lowered

# Lowering again takes as long as the first time.
_TRIES = 3
# Buffers may lie in the memory of results, but nothing is computed again.
_ENOUGH = 1 << 62


def within(budget: int, lowered: Callable[[int | None], Lowered]) -> Lowered:
    """The first module whose planned buffers are within a budget, else the one that needs the least.

    Args:
        budget: bytes.
        lowered: lowers with a budget for `graphc-rematerialise`; None is for the pipeline without it.
    """
    search = _Search(lowered)
    if not search.is_known():
        # Some sizes are known in calls only; the pass works with the others.
        return lowered(budget)
    for first in (None, _ENOUGH):
        if search.needed(first) <= budget:
            return search.result(first)
    # What lies in the memory of results is not counted by the pass, and does not count.
    target = budget + max(search.promised(_ENOUGH) - search.needed(_ENOUGH), 0)
    for _ in range(_TRIES):
        over = search.needed(target) - budget
        if over <= 0 or search.promised(target) > target or target < 2 * over:
            break
        # Some of what is not held any more was in the memory of results.
        target -= 2 * over
    if search.needed(search.best(budget)) > budget:
        search.needed(budget)
    return search.result(search.best(budget))


class _Search:
    """Modules that were lowered with some budgets for the pass."""

    def __init__(self, lowered: Callable[[int | None], Lowered]) -> None:
        self._lower = lowered
        self._found: dict[int | None, Lowered] = {}

    def _lowered(self, target: int | None) -> Lowered:
        if target not in self._found:
            self._found[target] = self._lower(target)
        return self._found[target]

    def is_known(self) -> bool:
        """Whether the bytes of the workspaces are known."""
        return planned_bytes(self._lowered(None).memory) is not None

    def needed(self, target: int | None) -> int:
        """The bytes of the workspaces."""
        return planned_bytes(self._lowered(target).memory) or 0

    def promised(self, target: int | None) -> int:
        """The bytes that the pass has counted."""
        return self._lowered(target).recomputed.get("peak", 0)

    def best(self, budget: int) -> int | None:
        """With what the least is computed again that keeps to a budget, or else the least is needed."""

        def cost(target: int | None) -> tuple[int, int]:
            return max(self.needed(target), budget), self._lowered(target).recomputed.get("flops", 0)

        return min(self._found, key=cost)

    def result(self, target: int | None) -> Lowered:
        """What was lowered with a budget; again, if that was not the last one, as a log is about that."""
        is_last = list(self._found)[-1] == target
        return self._found[target] if is_last else self._lower(target)
