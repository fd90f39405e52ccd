# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernel operations as passes see them."""

from __future__ import annotations

from typing import Any

_NOT_ATTRIBUTES = ("cluster",)


def attributes_of(op: Any) -> dict[str, int]:
    """The attributes of a kernel operation as numbers."""
    return {name: int(op.attributes[name].value) for name in op.attributes if name not in _NOT_ATTRIBUTES}
