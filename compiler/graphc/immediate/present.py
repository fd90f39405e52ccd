# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The present environment."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphc.immediate.environment import Environment

# The innermost one, and what was so before it.
Entered = tuple["Environment", "Entered | None"]
entered: ContextVar[Entered | None] = ContextVar("graphc_immediate_environment", default=None)
_shared: list[Environment] = []
_make: list[Callable[[], Environment]] = []


def shared_by(make: Callable[[], Environment]) -> None:
    """Says how the environment is made that all share who have none of their own."""
    _make[:] = [make]


def current() -> Environment:
    """The environment of the innermost ``with env:`` of this thread or task, else one that all share.

    Examples:
        >>> graphc.immediate.current()
        <graphc.immediate.Environment default (cpu)>
    """
    found = entered.get()
    if found is not None:
        return found[0]
    if not _shared:
        _shared.append(_make[0]())
    return _shared[0]
