# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`--verify-diagnostics`: compares diagnostics with `expected-*` comments.

    // expected-error @below {{result dimension 0 must be 2}}
    // expected-note @+2 {{...}}          // expected-error-re @above {{rank [0-9]+}}

A comment without `@` means its own line; `@above` and `@below` mean the nearest line without such a comment;
`@unknown` means a diagnostic without a position. The text is searched for in the message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from graphc_dialects.diagnostics import Diagnostic, Position

_COMMENT = re.compile(
    r"expected-(error|warning|note|remark)(-re)? *(?:@([+-][0-9]+|above|below|unknown))? *\{\{(.*?)\}\}(?!\})"
)
# Upstream adds this note when it prints the operation; it says nothing of its own.
_NOISE = "see current operation"


@dataclass
class Expectation:
    """One `expected-*` comment. `line` is None for `@unknown`."""

    severity: str
    pattern: re.Pattern[str]
    text: str
    line: int | None
    written_at: int

    def accepts(self, diagnostic: Diagnostic) -> bool:
        """True if the diagnostic is the one expected."""
        line = diagnostic.position.line if diagnostic.position else None
        return (
            diagnostic.severity == self.severity
            and line == self.line
            and self.pattern.search(diagnostic.message) is not None
        )


def parse_expectations(source: str) -> list[Expectation]:
    """All `expected-*` comments of a file.

    Raises:
        ValueError: a comment looks like one but cannot be read.
    """
    lines = source.splitlines()
    marked = [bool(_COMMENT.search(line)) for line in lines]
    found = []
    for index, line in enumerate(lines):
        matches = list(_COMMENT.finditer(line))
        if not matches and re.search(r"//.*expected-(error|warning|note|remark)", line):
            raise ValueError(
                f"line {index + 1}: expected-* comments are written expected-error @below {{{{text}}}}"
            )
        for match in matches:
            severity, regex, where, text = match.groups()
            pattern = re.compile(text if regex else re.escape(text))
            found.append(Expectation(severity, pattern, text, _target(where, index, marked), index + 1))
    return found


def _target(where: str | None, index: int, marked: list[bool]) -> int | None:
    """Line number, from 1, that a designator means."""
    if where is None:
        return index + 1
    if where == "unknown":
        return None
    if where in ("above", "below"):
        step = -1 if where == "above" else 1
        index += step
        while 0 <= index < len(marked) and marked[index]:
            index += step
        return index + 1
    return index + 1 + int(where)


def _flatten(diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    for diagnostic in diagnostics:
        yield diagnostic
        yield from (note for note in diagnostic.notes if not note.message.startswith(_NOISE))


def compare(expectations: list[Expectation], diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """Errors for expectations that were not met and diagnostics that were not expected."""
    open_ = list(expectations)
    problems = []
    for diagnostic in _flatten(diagnostics):
        match = next((item for item in open_ if item.accepts(diagnostic)), None)
        if match is None:
            message = f"unexpected {diagnostic.severity}: {diagnostic.message}"
            problems.append(Diagnostic("error", message, diagnostic.position))
        else:
            open_.remove(match)
    for item in open_:
        position = Position("-", item.written_at, 1)
        problems.append(
            Diagnostic("error", f'expected {item.severity} "{item.text}" was not produced', position)
        )
    return problems
