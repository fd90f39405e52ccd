# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What an operation reads."""

from __future__ import annotations

from typing import Any

from graphc.passes._walk import walk


def captures(op: Any) -> list[Any]:
    """The operands of an operation and of everything inside its regions."""
    if not len(op.regions):
        return list(op.operands)
    return [*op.operands, *(value for inner in walk(op) for value in inner.operands)]
