# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Limits for modules that come as text from somewhere else.

MLIR's parser and printer, and passes that follow regions, types and attributes, call themselves once for each
level of nesting, until the stack ends and with it the process. Aliases nest without brackets, and name in a
few lines what takes gigabytes where it is printed. Numbers are converted in quadratic time, affine
expressions a level for each operator. `excess` bounds all of this before anything is parsed: whatever it
lets through needs less than a hundredth of a stack. Every reader of foreign text asks it: graphc-opt, the
language server, graphc-compile. What is too large for a look at its tokens to say that it is harmless,
`is_large` tells, and graphc-opt runs in a helper process then.

A value may be used before the text defines it, by an argument of a block of another region, say. Where an
error ends that region, MLIR's parser frees the argument and lets its users write into that memory later: the
process goes on with a damaged heap, and ends then or at some other module. `early_use` tells, and such a text
has a helper process of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

DEPTH = 256  # clang's limit of brackets, too
TEXT = 1 << 24  # strings, which have the bytes of large constants, are not counted
TOKENS = 4_000_000
EXPANDED = 1 << 26
NUMBER = 1000
AFFINE = 10_000
LARGE = 1 << 18

_TOKEN = re.compile(
    r'"(?:[^"\\\n]|\\.)*"?'
    r"|//[^\n]*"
    r"|->|[<>]="
    r"|[][(){}<>\n]"
    r"|[#!][A-Za-z_][\w.$-]*"
    r"|(?<![\w.$@%^])affine_(?:map|set)(?=\s*<)"
    rf"|(?<![\w.$@%^#!])[\d?][\w.?]{{{NUMBER},}}"
    r"|(?<![\w.$@%^#!])(?:[su]?i|\d+xi)\d{5,}"
)
_DEFINED = re.compile(r"\s*=(?!=)\s*(loc\b)?")
_OPEN, _CLOSE = frozenset("([{<"), frozenset(")]}>")


@dataclass
class _Part:
    """The module or the value of an alias, with what it refers to: how often, and how deep inside.

    Attributes:
        start: where it is in the text.
        is_location: printed as an alias, so that its size is that of the name.
    """

    start: int
    is_location: bool = False
    size: int = 0
    depth: int = 0
    uses: dict[str, tuple[int, int]] = field(default_factory=dict)


class Excess(NamedTuple):
    """An error in a text, with the line and the column from 1."""

    message: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}: {self.message}"


class _Excess(Exception):
    """The text has too much of something; arguments are a message and a place."""


def is_large(text: str) -> bool:
    """True for texts with chains of operations that passes may follow further than a stack reaches."""
    return len(text) > LARGE


def excess(text: str) -> Excess | None:
    """The first limit that a text exceeds; None if there is none.

    Args:
        text: of a module, or of a pipeline of passes.
    """
    try:
        text.encode()
        _measure(_parts(text))
    except UnicodeEncodeError as found:
        # The standard input in the C locale and JSON have halves of pairs for what is no character.
        return _at(text, "the text has what is no character of UTF-8", found.start)
    except _Excess as found:
        return _at(text, *found.args)
    return None


def _at(text: str, message: str, place: int) -> Excess:
    return Excess(message, text.count("\n", 0, place) + 1, place - text.rfind("\n", 0, place))


def early_use(text: str) -> Excess | None:
    """The first value that is defined after a use, and not before it in a region that is still open.

    So it is also for the few operations that name arguments of their regions without a type or `=`, and for
    graphs of blocks that are not in order.
    """
    scopes: list[set[str]] = [set()]
    early: dict[str, int] = {}
    waiting: list[tuple[int, str]] = []  # depth, and argument of a region that begins soon
    depth = 0
    in_label = -1
    for match in _VALUES.finditer(text):
        token = match[0]
        if token[0] == "^":
            in_label = depth
            depth += 1
        elif token[0] == "(":
            depth += 1
        elif token[0] == ")":
            depth -= 1
            in_label = -1 if depth <= in_label else in_label
        elif token[0] == "{":
            scopes.append({name for level, name in waiting if level > depth})
            waiting = [(level, name) for level, name in waiting if level <= depth]
        elif token[0] == "}":
            del scopes[max(1, len(scopes) - 1) :]
        elif token[0] == "%":
            names = _NAME.findall(token)
            used = [name for name in names if name in early]
            if token[-1] in ":=" and used:
                message = f"'{used[0]}' is used before its definition, and an error follows"
                return _at(text, message, early[used[0]])
            if token[-1] == ":" and in_label < 0:
                waiting += [(depth, name) for name in names]
            elif token[-1] in ":=":
                scopes[-1].update(names)
            elif not any(names[0] in scope for scope in scopes):
                early.setdefault(names[0], match.start())
    return None


_NAME = re.compile(r"%[\w$.-]+")
_VALUES = re.compile(
    r'"(?:[^"\\\n]|\\.)*"?|//[^\n]*|\^[\w$.-]+\s*\(|[(){}]'
    r"|%[\w$.-]+(?::\d+)?(?:\s*,\s*%[\w$.-]+(?::\d+)?)*\s*\)?\s*=(?!=)|%[\w$.-]+:(?!:)|%[\w$.-]+"
)


def _parts(text: str) -> dict[str, _Part]:
    """Parts of the text by name of their alias; that of the module is empty."""
    parts = {"": _Part(0)}
    part, depth, base, affine = parts[""], 0, 0, 0
    begun = strings = 0
    comment: int | None = None
    for number, match in enumerate(_TOKEN.finditer(text)):
        token, place = match[0], match.start()
        if number > TOKENS or place - strings > TEXT:
            raise _Excess(f"the text has more than {TEXT} characters, or {TOKENS} brackets and lines", place)
        if token in _OPEN:
            depth += 1
            part.depth = max(part.depth, depth - base)
            if depth - base > DEPTH:
                raise _Excess(f"brackets are nested more than {DEPTH} deep", place)
        elif token in _CLOSE:
            depth = max(depth - 1, 0)
            if affine and depth < affine:
                affine = 0
        elif token == "\n":
            if part.start and depth == base and _ends(text, begun, comment or place, place):
                part.size += place - begun
                part, base, begun = parts[""], 0, place
            comment = None
        elif token[0] in "#!":
            defined = _DEFINED.match(text, match.end()) if depth == base and "." not in token else None
            if defined:
                part.size += place - begun
                part = parts[token] = _Part(place + 1, bool(defined[1]))
                base, begun = depth, defined.end()
            else:
                count, deepest = part.uses.get(token, (0, 0))
                part.uses[token] = count + 1, max(deepest, depth - base)
        elif token.startswith("affine"):
            affine, started = depth + 1, place
        elif token[0] == '"':
            strings += len(token)
        elif token[0] == "/":
            comment = place
        elif token[0] != "-" and token[-1] != "=":
            _refuse_number(token, place)
        if affine and place - started > AFFINE:
            raise _Excess(f"an affine expression has more than {AFFINE} characters", started)
    part.size += len(text) - begun - strings
    if len(text) - strings > TEXT:
        raise _Excess(f"the text has {len(text) - strings} characters, of at most {TEXT}", 0)
    return parts


def _ends(text: str, begun: int, end: int, newline: int) -> bool:
    """True if the value of an alias that began before ends with this line, whose code has an end."""
    before = text[max(begun, end - 200) : end].strip()
    after = text[newline : newline + 200].lstrip()
    return before[-1:] not in "=:," and not before.endswith("->") and after[:1] not in "<([{:,>-/"


def _refuse_number(token: str, place: int) -> None:
    kind = token.lstrip("su0123456789x")
    if kind[:1] == "i" and kind[1:].isdigit():
        raise _Excess(f"the type {kind[:20]} has more than 9999 bits", place)
    raise _Excess(f"a number or a shape has more than {NUMBER} characters", place)


def _measure(parts: dict[str, _Part]) -> None:
    """Compares depths and sizes with the limits, aliases replaced by what they stand for."""
    measured: dict[str, tuple[int, int]] = {}
    for name in _dependencies_first(parts):
        part = parts[name]
        size, depth = part.size, part.depth
        for used, (count, inside) in part.uses.items():
            size_of, depth_of = measured.get(used, (0, 0))
            size, depth = size + count * size_of, max(depth, inside + depth_of)
        place = max(part.start - 1, 0)
        if depth > DEPTH:
            raise _Excess(f"aliases and brackets are nested more than {DEPTH} deep", place)
        if size > EXPANDED:
            raise _Excess(f"the text without its aliases has {size} characters, of at most {EXPANDED}", place)
        measured[name] = (0 if part.is_location else size), depth


def _dependencies_first(parts: dict[str, _Part]) -> Iterator[str]:
    """Names, after those that they use. The parser refuses aliases that use each other."""
    seen: set[str] = set()
    for first in parts:
        stack = [(first, iter(parts[first].uses))] if first not in seen else []
        seen.add(first)
        while stack:
            name, rest = stack[-1]
            following = next((used for used in rest if used in parts and used not in seen), None)
            if following is None:
                yield name
                stack.pop()
            else:
                seen.add(following)
                stack.append((following, iter(parts[following].uses)))
