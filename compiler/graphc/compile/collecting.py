# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Garbage collection while functions are compiled."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def new_objects_only() -> Iterator[None]:
    """Collections look at objects that are made in here only.

    Compiling makes many objects, so that Python looks through all there are several times: 0.25 s each where
    large libraries are loaded. Older objects are set aside meanwhile, unless somebody has done that already.
    """
    if gc.get_freeze_count() or not gc.isenabled():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
