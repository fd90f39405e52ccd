# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Storing the new values of shared variables: all of them or none, and never over another call's."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, starmap
from operator import is_, itemgetter
from typing import Any

_first = itemgetter(0)


def snapshot(cells: Sequence[list[Any]]) -> list[Any]:
    """What is in the cells at one moment: between, before or after the updates of other calls."""
    return list(map(_first, cells))


def commit(
    targets: Sequence[list[Any]], new: Sequence[Any], read: Sequence[list[Any]], values: Sequence[Any]
) -> bool:
    """Stores new values if the old ones still are those that they were computed from.

    CPython switches threads and runs signal handlers between bytecodes only. Comparing and storing is one
    call here of functions written in C, so that it happens at once, as in machine code.

    Args:
        targets: cells to store to; not empty.
        new: their new values.
        read: cells that were read for it.
        values: what was in them.

    Returns:
        Whether the values were stored.
    """
    pairs = list(zip(targets, [0] * len(new), new, strict=True))
    unchanged = map(all, (map(is_, map(_first, read), values),))
    # The comparison runs when the list below asks for the first pair.
    chosen = chain.from_iterable(map({True: pairs, False: ()}.__getitem__, unchanged))
    return len(list(starmap(list.__setitem__, chosen))) > 0
