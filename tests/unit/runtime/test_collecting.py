# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Garbage collection around compilations."""

from __future__ import annotations

import gc
import weakref

import pytest

from graphc import hooks
from graphc_runtime.collecting import new_objects_only, paused

pytestmark = pytest.mark.usefixtures("nothing_aside")


class Node:
    """An object that a cycle keeps, with what it holds: graphs are such."""

    def __init__(self):
        self.me, self.held = self, [[] for _ in range(1000)]


def test_what_was_dropped_does_not_stay():
    """Setting objects aside makes Python forget to look at them again."""
    made = []
    for _ in range(1500):
        with new_objects_only():
            made.append(weakref.ref(Node()))
    assert sum(each() is not None for each in made) < 1200


def test_nobody_collects_where_it_is_switched_off():
    gc.disable()
    try:
        with new_objects_only():
            assert gc.get_freeze_count() == 0
        with paused(stays=True):
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_objects_that_somebody_has_set_aside_stay_there():
    gc.freeze()
    try:
        before = gc.get_freeze_count()
        with new_objects_only():
            assert gc.get_freeze_count() == pytest.approx(before, rel=0.01)
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


def test_objects_that_are_aside_are_counted_once(monkeypatch):
    """To count a million takes 7 ms: as long as many passes of a small graph."""
    counted, count = [], gc.get_freeze_count
    monkeypatch.setattr(gc, "get_freeze_count", lambda: counted.append(count()) or counted[-1])
    for _ in range(3):
        with new_objects_only(), new_objects_only():
            pass
    assert counted == [0, 0, 0]
    gc.freeze()
    try:
        for _ in range(3):
            with new_objects_only(), new_objects_only():
                pass
    finally:
        gc.unfreeze()
    assert len(counted) == 4 and counted[-1] > 0


def test_what_is_loaded_is_found_without_setting_anything_aside(monkeypatch):
    """`x.eval()` and its like ask for functions of upper layers in each call."""
    found = [each for each in vars(hooks).values() if isinstance(each, hooks.Hook)]
    assert found
    for hook in found:
        hook()
    with monkeypatch.context() as patch:
        for name in ("freeze", "disable"):
            patch.setattr(gc, name, lambda: pytest.fail("something was loaded again"))
        for hook in found:
            hook()
