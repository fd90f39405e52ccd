# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which of the modules that were lowered with several budgets is taken."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from graphc.backends.cpu.lower import _ENOUGH, within


def lowering(needed: Callable[[int | None], int], promised: Callable[[int | None], int]) -> Any:
    """A stand-in for lowering, and the budgets it was asked for; what is computed again grows below 1000."""
    asked: list[int | None] = []

    def lowered(target: int | None) -> Any:
        asked.append(target)
        flops = 0 if target is None else max(1000 - target, 0)
        return SimpleNamespace(
            target=target,
            memory=[{"workspaces": [{"keys": [[]], "peak": needed(target)}]}],
            recomputed={} if target is None else {"peak": promised(target), "flops": flops},
        )

    return lowered, asked


def promised(target: int | None) -> int:
    """What the pass says that it has reached."""
    return min(target or 0, 1000)


def test_what_fits_is_not_lowered_again() -> None:
    lowered, asked = lowering(lambda target: 800, lambda target: 900)
    assert within(800, lowered).target is None and asked == [None]


def test_results_are_used_before_anything_is_computed_again() -> None:
    lowered, asked = lowering(lambda target: 1000 if target is None else 300, lambda target: 1000)
    assert within(400, lowered).target == _ENOUGH == asked[-1]


def test_memory_of_results_comes_on_top_of_the_budget() -> None:
    """Of 1000 bytes 400 lie in results, however much is computed again."""
    lowered, _ = lowering(lambda target: 1000 if target is None else promised(target) - 400, promised)
    assert within(300, lowered).target == 700


def test_buffers_that_need_more_than_arrays_get_a_smaller_budget() -> None:
    lowered, _ = lowering(lambda target: 1000 if target is None else promised(target + 50), promised)
    assert within(500, lowered).target == 400


@pytest.mark.parametrize("least", [200, 450])
def test_the_least_is_taken_where_nothing_fits(least: int) -> None:
    def needed(target: int | None) -> int:
        return 1000 if target is None else max(min(target, 1000), least)

    lowered, asked = lowering(needed, needed)
    found = within(100, lowered)
    assert needed(found.target) == least and len(asked) <= 7


def test_sizes_that_are_not_known() -> None:
    """The pass has the budget for the others."""
    record = [{"workspaces": [{"keys": [[3]], "peak": 8}]}]
    assert within(70, lambda target: SimpleNamespace(memory=record, target=target)).target == 70
