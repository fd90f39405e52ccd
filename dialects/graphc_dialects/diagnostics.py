# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collects the diagnostics of a context as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from graphc_dialects._mlir import ir


@dataclass(frozen=True)
class Position:
    """Position of a diagnostic: a file, a line and a column from 1, and the variable's name if known."""

    file: str
    line: int
    column: int
    name: str | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Diagnostic:
    """One message with its notes. `severity` is error, warning, note or remark."""

    severity: str
    message: str
    position: Position | None
    notes: tuple[Diagnostic, ...] = field(default=())

    def __str__(self) -> str:
        place = f"{self.position}: " if self.position else ""
        lines = [f"{place}{self.severity}: {self.message}"]
        return "\n".join(lines + [str(note) for note in self.notes])


def position_of(location: ir.Location) -> Position | None:
    """The first file position inside a location; None if it has none."""
    if isinstance(location, ir.FileLineColLoc):
        return Position(location.filename, location.start_line, location.start_col)
    if isinstance(location, ir.NameLoc):
        inner = position_of(location.child_loc)
        return inner and Position(inner.file, inner.line, inner.column, location.name_str)
    if isinstance(location, ir.CallSiteLoc):
        return position_of(location.callee)
    if isinstance(location, ir.FusedLoc):
        return next((found for found in map(position_of, location.locations) if found), None)
    return None


def to_diagnostic(diagnostic: Any) -> Diagnostic:
    """Copies a diagnostic of the bindings, which is only valid while it is being handled."""
    return Diagnostic(
        severity=diagnostic.severity.name.lower(),
        message=diagnostic.message,
        position=position_of(diagnostic.location),
        notes=tuple(to_diagnostic(note) for note in diagnostic.notes),
    )


@contextmanager
def collect(context: Any) -> Iterator[list[Diagnostic]]:
    """Collects every diagnostic of the context, errors included, while the block runs."""
    found: list[Diagnostic] = []

    def handle(diagnostic: Any) -> bool:
        found.append(to_diagnostic(diagnostic))
        return True

    before = context.emit_error_diagnostics
    context.emit_error_diagnostics = True
    handler = context.attach_diagnostic_handler(handle)
    try:
        yield found
    finally:
        handler.detach()
        context.emit_error_diagnostics = before
