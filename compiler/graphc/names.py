# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names that do not clash."""

from __future__ import annotations

from collections.abc import Container


def unique_name(name: str, taken: Container[str]) -> str:
    """`name`, or `name` with a number from 2 on, so that it is not taken."""
    number, candidate = 1, name
    while candidate in taken:
        number += 1
        candidate = f"{name}_{number}"
    return candidate
