# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Availability of compiled draws in this process."""

from __future__ import annotations

from functools import cache

from graphc_runtime import npyrandom


@cache
def obstacle(name: str) -> str | None:
    """Reason for which a native distribution cannot be drawn by compiled code; None if it can.

    Args:
        name: a key of the tables of `graphc.codegen`.
    """
    from graphc.library.random import draws, registers, vectors

    draw = draws.DRAWS.get(name) or vectors.VECTORS[name]
    reason = npyrandom.obstacle(*draw.symbols, *registers.TABLES.get(name, ()))
    return None if reason is None else f"NumPy's C functions for random draws cannot be used: {reason}"
