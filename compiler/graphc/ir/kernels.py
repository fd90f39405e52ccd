# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernel operations as passes see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir

_NOT_ATTRIBUTES = ("cluster",)


def attributes_of(op: ir.Operation) -> dict[str, int]:
    """The attributes of a kernel operation as numbers."""
    return {name: int(op.attributes[name].value) for name in op.attributes if name not in _NOT_ATTRIBUTES}
