# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which nodes can be compiled, and which constants are part of the code."""

from __future__ import annotations

from graphc.graph.basic import Apply, Variable
from graphc.graph.tensor.type import TensorType
from graphc.graph.tensor.variable import TensorConstant

# Larger constants are arguments, so that code depends on the structure of a graph and not on data.
MAX_LITERAL = 16


def is_hidden_argument(v: Variable) -> bool:
    """Whether a constant is passed to native code as an argument instead of being part of the code."""
    return isinstance(v, TensorConstant) and v.data.size > MAX_LITERAL


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
