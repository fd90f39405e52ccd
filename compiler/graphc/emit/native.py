# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which nodes can be compiled."""

from __future__ import annotations

from graphc.graph.basic import Apply
from graphc.graph.tensor.type import TensorType


def why_not_native(node: Apply) -> str | None:
    """Why a node cannot be compiled, or None when it can."""
    obstacle = getattr(node.op, "body_obstacle", None)
    if obstacle is not None:
        return str(obstacle)
    if node.op.emit is None:
        return "the op has no emit method"
    for v in (*node.inputs, *node.outputs):
        if not isinstance(v.type, TensorType):
            return f"{v.type} is not a tensor type"
    return None
