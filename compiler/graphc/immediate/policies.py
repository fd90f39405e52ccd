# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which numbers among a function's arguments are data. The others are attributes: each value has an
executable of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from graphc.immediate.arguments import DATA, INDEX, SIZE, STATIC, WEAK
from graphc.ops.elementwise import Elementwise

# By name of the function: how arguments are taken, by position and name. Sizes need not be known when a
# function is compiled, so that zeros(2) and zeros(3) share one.
_POLICIES: dict[str, dict[Any, str]] = {
    "array_api.clip": {1: DATA, 2: DATA, "min": DATA, "max": DATA},
    "array_api.linspace": {0: DATA, 1: DATA},
    "alloc": {0: DATA, **dict.fromkeys(range(1, 8), SIZE)},
    "arange": {0: SIZE, 1: SIZE, "start": SIZE, "stop": SIZE},
    "broadcast_to": {1: SIZE, "shape": SIZE},
    "empty": {0: SIZE, "shape": SIZE},
    "eye": {0: SIZE, 1: SIZE, "n": SIZE, "m": SIZE},
    "full": {0: SIZE, "shape": SIZE, 1: DATA, "fill_value": DATA},
    "full_like": {1: DATA, "fill_value": DATA},
    "getitem": {1: INDEX, "index": INDEX},
    "identity": {0: SIZE, "n": SIZE},
    "ones": {0: SIZE, "shape": SIZE},
    "pow": {1: STATIC},
    "power": {1: STATIC},
    "reshape": {1: SIZE, "newshape": SIZE, "shape": SIZE},
    **{f"{kind}_subtensor": {1: INDEX} for kind in ("set", "inc", "mul", "max", "min")},
    "take": {1: INDEX, "indices": INDEX},
    "tri": {0: SIZE, 1: SIZE, "N": SIZE, "M": SIZE},
    "zeros": {0: SIZE, "shape": SIZE},
}
# What a size of 1 changes in the graph itself, apart from broadcasting.
DEPENDS_ON_ONES = frozenset({"squeeze"})


def policies_of(name: str, function: Callable[..., Any]) -> tuple[Mapping[int | str, str], str]:
    """How the arguments of a function are taken: those with a policy of their own, and the others."""
    found = _POLICIES.get(name) or _POLICIES.get(name.rpartition(".")[2], {})
    if name.startswith("random."):
        found = {"size": SIZE}
    return found, WEAK if isinstance(function, Elementwise) else STATIC
