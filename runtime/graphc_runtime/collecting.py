# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Garbage collection while functions are compiled and their compiler is loaded."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused(*, stays: bool = False) -> Iterator[None]:
    """No collections in here, for what makes many objects of which none is garbage: imports, and passes that
    wrap operations.

    Python would look through all objects that there are several times, half of the time of such imports.

    Args:
        stays: what is made stays, and is not looked at by the next collection of new objects either. Takes
            some milliseconds where others have set objects aside, which are counted.

    Example:
        >>> with paused():
        ...     gc.isenabled()
        False
        >>> gc.isenabled()
        True
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting and stays:
            # Objects that somebody has set aside stay there.
            keep = gc.get_freeze_count() > 0
            gc.freeze()
            if not keep:
                gc.unfreeze()
        if collecting:
            gc.enable()


@contextmanager
def new_objects_only() -> Iterator[None]:
    """Collections look at objects that are made in here only.

    Compiling makes many objects, so that Python looks through all there are several times: 0.25 s each where
    large libraries are loaded. Older objects are set aside meanwhile, unless somebody has done that already.
    Python then counts them as looked at, and in a process that compiles again and again would never look at
    them: functions that were dropped, whose graphs have cycles, would stay. So all objects are looked at here
    when there are a quarter more of them than after the last time, which is Python's own rule.
    """
    if _aside.by_us or not gc.isenabled() or _are_aside():
        yield
        return
    # So long that no other thread finds objects aside and takes them for those of others.
    _aside.by_us = True
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        _aside.by_us = False
        _collect_if_grown()


class _Aside:
    """Who has set objects aside: `new_objects_only`, now, or others, once.

    Whoever does that seldom takes it back, and Python tells by counting all of them: 7 ms a million.
    """

    by_us = by_others = False


_aside = _Aside()


def _are_aside() -> bool:
    _aside.by_others = _aside.by_others or gc.get_freeze_count() > 0
    return _aside.by_others


# Blocks of memory that Python's objects had after the last collection here.
_BLOCKS: list[int] = []
_FEWEST = 50_000  # new blocks that are worth a collection: some 100 compilations


def _collect_if_grown() -> None:
    """A full collection if there are many more objects than after the last one."""
    blocks = sys.getallocatedblocks()
    if not _BLOCKS:
        _BLOCKS.append(blocks)
    elif blocks > _BLOCKS[0] * 1.25 + _FEWEST:
        gc.collect()
        _BLOCKS[0] = sys.getallocatedblocks()
