# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Origins of errors of compiled code: the user's line, operands, the class of the exception."""

from __future__ import annotations

from graphc.graph.basic import Apply, Constant, Variable
from graphc.graph.printing import pprint
from graphc.graph.traversal import graph_inputs
from graphc.ops.checks import CheckAndRaise
from graphc.ops.elementwise import Elementwise
from graphc_runtime.errors import Origin

_LONGEST = 40  # characters of a formula
_MOST = 4  # operands of operations that are not elementwise


def origin_of(node: Apply) -> Origin:
    """Known facts about a node in which something failed."""
    line = None if node.location is None else str(node.location)
    if isinstance(node.op, CheckAndRaise):
        return Origin(line, error=node.op.exc_type, op=str(node.op))
    operands = [x for x in node.inputs if getattr(x.type, "ndim", 0)]
    words = [_words(x) for x in operands]
    if isinstance(node.op, Elementwise):
        is_told = len(operands) > 1
    else:  # of loops, and of variables without a name, the words would say nothing
        names = {v.name for v in graph_inputs(operands) if v.name is not None}
        is_told = len(operands) <= _MOST and any(name in word for name in names for word in words)
    return Origin(line, ", ".join(words) if is_told else None, op=str(node.op))


def _words(v: Variable) -> str:
    """A name or a short formula."""
    if isinstance(v, Constant) and v.name is None:
        return f"a constant of type {v.type}"
    if v.name is not None or v.owner is None:
        return str(v)
    text = pprint(v, max_length=_LONGEST)
    return str(v) if text == "..." else text
