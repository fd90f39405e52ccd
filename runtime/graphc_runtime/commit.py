# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Storing the new values of shared variables: all of them or none, and never over another call's.

A call whose old values another thread has replaced meanwhile starts anew. So that this ends, it gets a turn:
until it is through, `wait_for_turn` holds up whoever else is about to store. Machine code looks at a flag,
before it reads values and before it stores any, and leaves its work to the fallback in Python, which waits.
"""

from __future__ import annotations

import ctypes
import os
import time
from _thread import get_ident
from collections.abc import Iterator, Sequence
from itertools import chain, starmap
from operator import is_, itemgetter
from typing import Any, NamedTuple

from graphc_runtime import symbols

# How often a call of machine code starts.
ATTEMPTS = 8

_first = itemgetter(0)


class _Turn(NamedTuple):
    """The thread that has it, and until when at most: what it runs may wait for threads that wait for it."""

    thread: int
    until: float


# The turn of this process under one key, so that taking it is one call of a function written in C; the same
# in a cell, which stores compare; and whether there is one, for machine code.
_turns: dict[str, _Turn] = {}
_turn: list[_Turn | None] = [None]
_flag = ctypes.c_int64(0)
symbols.register("graphc_turn", ctypes.addressof(_flag), _flag)


def attempts(*, once: bool = False) -> Iterator[bool]:
    """Attempts of a call; all but the first have the turn. They tell whether they are the last one.

    Args:
        once: it should not start anew, as Python code runs in it, which may do more than to compute, or as it
            overwrites what it reads: the first attempt has the turn, too, and there is a second one only if
            that took so long that others no longer waited.
    """
    start, seconds = time.monotonic(), 0.0
    if not once:
        yield False
        seconds = time.monotonic() - start
    for number in range(2, ATTEMPTS + 1):
        mine = _begin(10 * seconds + 1)
        try:
            yield number == (3 if once else ATTEMPTS)
        finally:
            _end(mine)
        seconds = time.monotonic() - start


def _begin(seconds: float) -> _Turn:
    """Waits for the turn; others wait for its end so many seconds."""
    wait_for_turn()
    mine = _Turn(get_ident(), time.monotonic() + seconds)
    while _turns.setdefault("turn", mine).thread != mine.thread:
        wait_for_turn()
    # What is read from here on, nobody replaces: stores look at the cell and at the flag.
    _flag.value, _turn[0] = 1, mine
    return mine


def has_turn() -> bool:
    """True if this thread has the turn, so that only it can have stored anything."""
    turn = _turn[0]
    return turn is not None and turn.thread == get_ident()


def _end(turn: _Turn) -> None:
    if _turns.get("turn") is turn:
        # In this order: the next one to take the turn sets flag and cell after that.
        _flag.value, _turn[0] = 0, None
        _turns.pop("turn", None)


def _forget() -> None:
    """Nobody has the turn in the child of a fork, where only the thread that forked lives on."""
    _flag.value, _turn[0] = 0, None
    _turns.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def wait_for_turn() -> None:
    """Waits while another thread has the turn."""
    while (turn := _turns.get("turn")) is not None and turn.thread != get_ident():
        if time.monotonic() > turn.until:
            _end(turn)
            return
        time.sleep(0.0005)


def snapshot(cells: Sequence[list[Any]]) -> list[Any]:
    """Contents of the cells at one moment: between, before or after the updates of other calls."""
    return list(map(_first, cells))


def commit(
    targets: Sequence[list[Any]], new: Sequence[Any], read: Sequence[list[Any]], values: Sequence[Any]
) -> bool:
    """Stores new values when nobody else has the turn, if those that they were computed from still are there.

    CPython switches threads and runs signal handlers between bytecodes only. Comparing and storing is one
    call here of functions written in C, so that it happens at once, as in machine code.

    Args:
        targets: cells to store to; not empty.
        new: their new values.
        read: cells that were read for it.
        values: what was in them.

    Returns:
        Whether the values were stored.
    """
    pairs = list(zip(targets, [0] * len(new), new, strict=True))
    read = [*read, _turn]
    while True:
        wait_for_turn()
        turn = _turn[0]
        if turn is not None and turn.thread != get_ident():
            continue
        unchanged = map(all, (map(is_, map(_first, read), [*values, turn]),))
        # The comparison runs when the list below asks for the first pair.
        chosen = chain.from_iterable(map({True: pairs, False: ()}.__getitem__, unchanged))
        if len(list(starmap(list.__setitem__, chosen))) > 0:
            return True
        if _turn[0] is turn:
            return False
