# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pauses of Python's garbage collection."""

from __future__ import annotations

import gc
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
