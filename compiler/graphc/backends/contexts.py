# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MLIR contexts for the next compilation: making one takes longer than compiling a small graph."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from graphc_dialects.dialect import new_context

# Contexts that nobody uses now, with their pass managers and the number of uses so far. Appending and popping
# are atomic.
_IDLE: list[tuple[Any, dict[str, Any], int]] = []
_MOST_USES = 50


@contextmanager
def pooled_context() -> Iterator[tuple[Any, dict[str, Any]]]:
    """A context that no other compilation uses, with its pass managers by pipeline text."""
    try:
        context, managers, uses = _IDLE.pop()
    except IndexError:
        context, managers, uses = new_context(), {}, 1
    yield context, managers
    # Only one that has seen no error goes back, and none that others' types have piled up in.
    if uses < _MOST_USES:
        _IDLE.append((context, managers, uses + 1))


def prepare() -> None:
    """Makes a context for a later compilation."""
    _IDLE.append((new_context(), {}, 1))


@cache
def shared_context() -> Any:
    """A context for modules that are kept and only read."""
    return new_context()
