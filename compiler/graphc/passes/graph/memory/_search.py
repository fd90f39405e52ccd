# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which arrays are computed again, so that no step holds more memory than a budget."""

from __future__ import annotations

from collections.abc import Iterator

from graphc.passes.graph.memory._recipes import Plan, variants
from graphc.passes.graph.memory._steps import Memory, Program

# How many arrays are tried at a peak, and how many steps all plans that are tried may have together.
_CANDIDATES, _PATIENCE = 48, 20_000_000
# Peaks are lowered by this part of what is there, so that only arrays count that are alive at a peak.
_NOTCH = 16


def search(program: Program, budget: int) -> Plan:
    """The cheapest plan found whose peak is within a budget, else the one with the lowest peak.

    Args:
        program: the steps as they are.
        budget: bytes.
    """
    plan = best = Plan(program.steps, Memory(program, program.steps))
    patience = _PATIENCE
    while best.memory.peak > budget and patience > 0:
        limit = max(budget, best.memory.peak - max(best.memory.peak // _NOTCH, 1))
        plan = best
        while plan.memory.peak > limit:
            tried = list(_steps_from(program, plan))
            patience -= sum(len(each.steps) for each in tried)
            excess = plan.memory.excess(limit)
            better = [each for each in tried if each.memory.excess(limit) < excess]
            if not better or patience < 0:
                break
            plan = max(
                better,
                key=lambda each: (excess - each.memory.excess(limit)) / (1 + each.cost - plan.cost),
            )
        if plan.memory.peak >= best.memory.peak:
            break
        best = plan
    return best


def _steps_from(program: Program, plan: Plan) -> Iterator[Plan]:
    """The plans in which one array more is not held at the peak."""
    memory = plan.memory
    peak = memory.usage.index(memory.peak)
    alive = [
        version
        for version, last in memory.last.items()
        if memory.made.get(version, peak) < peak < last and _is_candidate(program, version)
    ]
    alive.sort(key=lambda version: -program.sizes[program.versions[version]])
    for version in alive[:_CANDIDATES]:
        yield from variants(program, plan, version, peak)


def _is_candidate(program: Program, version: int) -> bool:
    array = program.versions[version]
    maker = program.made_by[array]
    return maker is not None and program.nodes[maker].is_pure and program.sizes[array] > 0
