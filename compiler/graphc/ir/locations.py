# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Origins of operations: nodes of the emitted graph are names in locations."""

from __future__ import annotations

from graphc_dialects._mlir import ir


def node_of(op: ir.Operation) -> str:
    """The graph node that an operation comes from, such as `n12`; empty if it is not known."""
    return _node(op.location)


def _node(location: ir.Location) -> str:
    """The first node that a location names."""
    if isinstance(location, ir.NameLoc):
        name = str(location.name_str)
        return name if name[:1] == "n" and name[1:].isdigit() else _node(location.child_loc)
    if isinstance(location, ir.FusedLoc):
        return next(filter(None, map(_node, location.locations)), "")
    if isinstance(location, ir.CallSiteLoc):
        return _node(location.callee) or _node(location.caller)
    return ""
