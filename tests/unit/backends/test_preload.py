# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a process loads is not searched for garbage."""

import gc
import subprocess
import sys

import pytest

import graphc
import graphc.tensor as pt
from graphc_runtime.collecting import paused

CODE = """
import gc
import graphc.tensor
{before}
collections = []
gc.callbacks.append(lambda phase, info: collections.append(info["generation"]))
{what}
gc.callbacks.clear()
print(gc.isenabled(), gc.get_freeze_count(), collections)
"""


@pytest.mark.parametrize(
    ("before", "what"),
    [
        ("", "graphc.function"),
        ("from graphc.backends.cpu.compiler import preload", "preload(has_scan=True)"),
    ],
)
def test_no_collections_while_modules_are_loaded(before, what):
    code = CODE.format(before=before, what=what)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "0", "[]"]


@pytest.mark.usefixtures("no_cache", "nothing_aside")
def test_later_compilations_set_nothing_aside_once_more(monkeypatch):
    """Python would count what is set aside already, which takes longer than all passes of a small graph."""
    x = pt.dvector("x")
    graphc.function([x], x + 1)
    times, freeze = [], gc.freeze
    monkeypatch.setattr(gc, "freeze", lambda: (times.append(1), freeze()))
    graphc.function([x], x + 2)
    assert len(times) == 1  # by `graphc.function` itself


@pytest.mark.usefixtures("nothing_aside")
def test_objects_that_were_set_aside_stay_there():
    gc.freeze()
    try:
        before = gc.get_freeze_count()
        with paused(stays=True):
            pass
        assert gc.get_freeze_count() >= before
    finally:
        gc.unfreeze()


def test_collections_stay_off_where_they_were():
    gc.disable()
    try:
        with paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()
    with pytest.raises(ValueError, match="on again"), paused():
        raise ValueError("on again")
    assert gc.isenabled()
