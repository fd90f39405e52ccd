# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Diagnostics of passes, and attributes that only passes set or read, which no verifier knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from graphc.errors import CompileError

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir


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
