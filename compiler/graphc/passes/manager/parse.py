# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads pipeline texts in which our passes and upstream's are mixed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

from graphc.passes.manager.base import Pass, discover, find

Entry = Pass | str | tuple[str, str]
_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_CLOSING = {"(": ")", "{": "}", "[": "]", "<": ">"}


def split_top_level(text: str) -> list[str]:
    """Splits at commas that are outside brackets and quotes.

    Raises:
        ValueError: the brackets do not match.
    """
    parts, start, closing, quote = [], 0, [], ""
    for position, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in _CLOSING:
            closing.append(_CLOSING[character])
        elif character in ")}]>":
            if not closing or closing.pop() != character:
                raise ValueError(
                    f"unmatched '{character}' in the pass pipeline at column {position + 1}: {text}"
                )
        elif character == "," and not closing:
            parts.append(text[start:position].strip())
            start = position + 1
    if closing or quote:
        raise ValueError(f"expected '{quote or closing[-1]}' at the end of the pass pipeline: {text}")
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def parse_pipeline(text: str) -> list[Pass | str]:
    """Entries of a pipeline such as `builtin.module(graphc-fusion{max-inputs=4},func.func(cse))`.

    Returns:
        Pass objects for ours, texts of single (possibly nested) passes for upstream's.

    Raises:
        ValueError: the text is malformed, a pass of ours is unknown, or its options are wrong.
    """
    text = text.strip()
    if text.startswith("builtin.module(") and text.endswith(")"):
        text = text[len("builtin.module(") : -1]
    entries: list[Pass | str] = []
    for part in split_top_level(text):
        match = _NAME.match(part.removeprefix("--"))
        if match is None:
            raise ValueError(f"expected the name of a pass, but found '{part}'")
        if match[0] == "any" or match[0].startswith("builtin.module"):
            entries.extend(parse_pipeline(part))
        else:
            entries.append(_parse_one(part.removeprefix("--"), match[0]))
    return entries


def _parse_one(part: str, name: str) -> Pass | str:
    if name in discover():
        rest = part[len(name) :].strip()
        if rest and not (rest.startswith("{") and rest.endswith("}")):
            raise ValueError(
                f"options of pass {name} must be written as {{key=value ...}}, but found '{rest}'"
            )
        return find(name).from_options(rest[1:-1])
    if name.startswith("graphc-"):
        find(name)
    nested = re.search(r"\bgraphc-[\w-]+", part[len(name) :])
    if nested and "(" in part:
        raise ValueError(f"pass {nested[0]} runs on modules and cannot be nested inside {name}(...)")
    return part


def normalise(entries: Iterable[Entry]) -> list[Pass | str]:
    """Entries with our flags turned into passes; reasons, the second items of tuples, are dropped."""
    result: list[Pass | str] = []
    for entry in entries:
        text = entry[0] if isinstance(entry, tuple) else entry
        if isinstance(text, Pass):
            result.append(text)
        else:
            # Every run has passes of its own, because they count what they do.
            result += [replace(step) if isinstance(step, Pass) else step for step in _parsed(text)]
    return result


@cache
def _parsed(text: str) -> tuple[Pass | str, ...]:
    """The entries of a text. Those of the pipelines are read again for each function."""
    return tuple(parse_pipeline(text))
