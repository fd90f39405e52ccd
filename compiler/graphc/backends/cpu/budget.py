# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A limit on the memory of intermediate arrays: lowering is tried until the plan of the buffers is within it.

What `graphc-rematerialise` counts are arrays of the graph. Buffers are what later passes make of them, so
that a plan can need a little more, or less.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from graphc.passes.buffer.memory._record import planned_bytes

if TYPE_CHECKING:
    from graphc.backends.cpu.lower import Lowered

# Lowering again takes as long as the first time.
_TRIES = 3


def within(budget: int, lowered: Callable[[int | None], Lowered]) -> Lowered:
    """The first module whose planned buffers are within a budget, else the one that needs the least.

    Args:
        budget: bytes.
        lowered: lowers with a budget for `graphc-rematerialise`; None leaves the pass out.
    """
    best, best_target = lowered(None), None
    least = planned_bytes(best.memory)
    if least is None:
        # Some sizes are known in calls only; the pass works with the others.
        return lowered(budget)
    target, last_target = budget, best_target
    for _ in range(_TRIES):
        if least <= budget or target < 0:
            break
        last_target = target
        found = lowered(target)
        needed = planned_bytes(found.memory)
        if needed is None or needed >= least:
            break
        best, best_target, least = found, target, needed
        if found.recomputed.get("peak", 0) > target:
            break  # a lower one is out of reach
        target -= needed - budget
    # A log is about what was lowered last.
    return best if last_target == best_target else lowered(best_target)
