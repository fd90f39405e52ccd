# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which loop of a nest is the innermost one, which is vectorised."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphc_dialects._mlir import ir

# A loop of fewer iterations than a register has lanes stays scalar; LLVM's vectoriser looks at no outer loop.
# LLVM unrolls it and vectorises the loop around it, but not with a long body.
_SHORT, _LONG, _MANY = 3, 16, 3
# Functions of these few instructions do not pay for loads and stores with a stride.
_CHEAP = frozenset(("math.absf", "math.absi", "math.copysign", "math.fma", "math.isnan", "math.isinf"))


def swap_short_loop(
    groups: list[list[int]], sizes: Sequence[int | None], body: Iterable[ir.Operation]
) -> bool:
    """Makes the loop around the innermost one of a nest the innermost one.

    It does so where the innermost one is too short for the vectoriser, the one around it is not, and the body
    has several functions: it is too long to be unrolled, and takes longer than memory read with a stride.

    Args:
        groups: the dimensions of each loop, outermost first; all are parallel.
        sizes: the static size of each dimension, if known.
        body: what is computed of each element.

    Returns:
        Whether they changed places.
    """
    if len(groups) < 2:
        return False
    outer, inner = (_extent(group, sizes) for group in groups[-2:])
    if inner is None or inner > _SHORT or (outer is not None and outer < _LONG):
        return False
    if sum(op.name.startswith("math.") and op.name not in _CHEAP for op in body) < _MANY:
        return False
    groups[-2:] = groups[:-3:-1]
    return True


def _extent(group: Sequence[int], sizes: Sequence[int | None]) -> int | None:
    total = 1
    for axis in group:
        size = sizes[axis]
        if size is None:
            return None
        total *= size
    return total
