# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Diagnostics of passes, and attributes that only passes set or read, which no verifier knows.

The nodes of the emitted graph that operations come from are names in their locations.
"""

from __future__ import annotations

from typing import NoReturn

from graphc.errors import CompileError
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


class PassError(CompileError):
    """A pass cannot treat the module it was given; the diagnostic is already emitted."""


def fail(op: ir.Operation, message: str) -> NoReturn:
    """Emits an error diagnostic at the op's location and raises PassError."""
    location = op.location
    location.emit_error(message)
    raise PassError(f"{location}: {message}")


def integer(op: ir.Operation, name: str) -> int:
    """The integer or boolean attribute `name`.

    Raises:
        PassError: it is missing, or something else.
    """
    value = getattr(op.attributes.get(name), "value", None)
    if not isinstance(value, int):
        fail(op, f"needs an integer attribute '{name}'")
    return value
