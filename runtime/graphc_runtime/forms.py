# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Forms of results: the nesting of lists, tuples and dicts in which a function returns its outputs.

A form is the number of an output, None, or a list of ``"list"``, ``"tuple"`` or ``"dict"`` and its parts,
which are forms, of a dict pairs of key and form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def build_form(form: Any, values: Sequence[Any]) -> Any:
    """The values in a form."""
    if form is None or isinstance(form, int):
        return None if form is None else values[form]
    kind, *parts = form
    if kind == "dict":
        return {key: build_form(part, values) for key, part in parts}
    items = [build_form(part, values) for part in parts]
    return tuple(items) if kind == "tuple" else items


def flatten_form(form: object, given: object, count: int, name: str) -> list[object]:
    """The reverse: one item for each output. Lists and tuples stand for each other.

    Raises:
        TypeError: `given` has another form.
    """
    found: list[object] = [None] * count
    _collect(form, given, found, f"{name}(out=)")
    if any(item is None for item in found):
        raise TypeError(f"{name}(out=) needs an array for each of {count} results")
    return found


def _collect(form: Any, given: Any, found: list[Any], where: str) -> None:
    if form is None:
        return
    if isinstance(form, int):
        found[form] = given
        return
    kind, *parts = form
    if kind == "dict":
        if not isinstance(given, Mapping) or set(given) != {key for key, _ in parts}:
            raise TypeError(f"{where} needs a dict with the keys {[key for key, _ in parts]}")
        for key, part in parts:
            _collect(part, given[key], found, f"{where}[{key!r}]")
        return
    if not isinstance(given, list | tuple) or len(given) != len(parts):
        raise TypeError(f"{where} needs a list or tuple of {len(parts)}, given {type(given).__name__}")
    for i, part in enumerate(parts):
        _collect(part, given[i], found, f"{where}[{i}]")
