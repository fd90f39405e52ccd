# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The lowering of operations that are not loops over elements, as traits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.ir.traits.registry import Marker, Trait
from graphc_dialects._mlir import ir

# A rule takes the function conversion and the graph-stage operation, creates the replacement at the current
# insertion point and defines the result with `context.define`.
Rule = Callable[[Any, ir.Operation], None]
LOWERING: Trait[Rule] = Trait("graphc.lowering")

# What takes the place of these for devices, which have kernels of their own for whole operations.
ON_DEVICES: Trait[Rule] = Trait("graphc.lowering")

# They are computed in whatever memory they are given (`context.destinations.start`).
STARTS_ANYWHERE = Marker("graphc.lowering")


def lowers(*names: str, starts_anywhere: bool = False) -> Callable[[Rule], Rule]:
    """A decorator that registers the lowering of operations, such as `"graphc.put"`."""
    if starts_anywhere:
        STARTS_ANYWHERE(*names)
    return LOWERING(*names)
