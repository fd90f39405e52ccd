# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Positions in a text of MLIR: values, blocks, functions, names of operations, flags of passes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from graphc_tools.short_reader import is_short

# A value, a block, a function, an operation in quotes, a flag of a pass, a dialect's word.
_WORD = re.compile(
    r'%[\w$.-]+(?:#\d+)?|\^[\w$.-]+|@[\w$.-]+|"[a-z_]\w*\.[\w.]+"|--[a-z][\w-]*|[a-z_]\w*(?:\.\w+)*'
)
_RESULTS = re.compile(r"(?:^|\n)[ \t]*((?:%[\w$.-]+(?::\d+)?\s*,\s*)*%[\w$.-]+(?::\d+)?)\s*=(?!=)")
_VALUE = re.compile(r"%[\w$.-]+")
# Arguments of blocks and functions, and what loops bind; a use has a blank before the colon.
_BOUND = re.compile(r"(%[\w$.-]+)(?:: |\s*=(?!=))")
_BLOCK = re.compile(r"(?:^|\n)[ \t]*(\^[\w$.-]+)(?=\(|:)")
_FUNCTION = re.compile(
    r"\bfunc(?:\.func)?(?:\s+(?:private|public))?\s+(@[\w$.-]+)|\bllvm\.func\s+(@[\w$.-]+)"
)
_COMMENT = re.compile(r"//[^\n]*")


@dataclass(frozen=True)
class Word:
    """A word of a text, from `start` up to before `end`, in characters."""

    text: str
    start: int
    end: int

    @property
    def operation(self) -> str:
        """The word as the name of an operation, without quotes."""
        return self.text.strip('"')


def offset_of(text: str, line: int, column: int) -> int:
    """The place of a line and a column, both from 0."""
    lines = text.split("\n")
    return sum(len(each) + 1 for each in lines[:line]) + min(
        column, len(lines[line]) if line < len(lines) else 0
    )


def place_of(text: str, offset: int) -> tuple[int, int]:
    """Line and column of a place, both from 0."""
    before = text[:offset]
    return before.count("\n"), offset - (before.rfind("\n") + 1)


def column_in_characters(line: str, column: int) -> int:
    """A column in characters, from 0, for one in bytes from 1, as MLIR counts."""
    return len(line.encode()[: max(column - 1, 0)].decode(errors="ignore"))


def word_at(text: str, offset: int) -> Word | None:
    """The word that a place is in or at the end of."""
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    line = text[start : end if end >= 0 else len(text)]
    for found in _WORD.finditer(line):
        if found.start() <= offset - start <= found.end():
            return Word(found[0], start + found.start(), start + found.end())
    return None


def definition_of(text: str, word: Word) -> Word | None:
    """Definition of a value, a block or a function.

    Names are unique in a function apart from loops beside each other, so a value is defined at the nearest
    place before its use, and a block anywhere in the function.
    """
    kind = word.text[0]
    name = word.text.partition("#")[0]
    found = [each for each in _definitions(text, kind) if each.text == name]
    if kind == "^":
        function = _function_around(text, word.start)
        found = [each for each in found if function[0] <= each.start < function[1]]
    before = [each for each in found if each.start <= word.start]
    if before and kind != "@":
        return before[-1]
    return found[0] if found else None


def _definitions(text: str, kind: str) -> list[Word]:
    """The definitions of values (%), blocks (^) or functions (@) in a text, in order."""
    blank = _COMMENT.sub(lambda match: " " * len(match[0]), text)
    found: set[tuple[int, str]] = set()
    if kind == "%":
        for match in _RESULTS.finditer(blank):
            found |= {(match.start(1) + each.start(), each[0]) for each in _VALUE.finditer(match[1])}
        found |= {(match.start(1), match[1]) for match in _BOUND.finditer(blank)}
    elif kind == "^":
        found = {(match.start(1), match[1]) for match in _BLOCK.finditer(blank)}
    elif kind == "@":
        for match in _FUNCTION.finditer(blank):
            group = 1 if match[1] else 2
            found.add((match.start(group), match[group]))
    return [Word(name, start, start + len(name)) for start, name in sorted(found)]


def _function_around(text: str, offset: int) -> tuple[int, int]:
    """Start of the function of a place and of the next one."""
    starts = [match.start() for match in _FUNCTION.finditer(text)]
    before = [start for start in starts if start <= offset]
    after = [start for start in starts if start > offset]
    return (before[-1] if before else 0, after[0] if after else len(text))


def full_name(text: str, word: Word) -> str:
    """The name of an operation with its dialect: the short form leaves ours out."""
    name = word.operation
    return f"graphc.{name}" if is_short(text) and "." not in name else name
