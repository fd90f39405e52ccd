# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lines on stderr while a function compiles."""

from __future__ import annotations

import inspect
import io
import sys
import threading

import pytest

import graphc
import graphc.tensor as pt
from graphc.function.compiled import repeated_lines
from graphc_runtime import steps


class Screen(io.StringIO):
    """A terminal, and something to wait for."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal, self.written = terminal, threading.Event()

    def isatty(self) -> bool:
        return self.terminal

    def write(self, text: str) -> int:
        self.written.set()
        return super().write(text)


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(steps, "PATIENCE", 0.0)
    monkeypatch.setattr(steps, "OFTEN", 0.001)
    monkeypatch.setattr(steps, "SELDOM", 0.001)


@pytest.mark.parametrize("terminal", [False, True])
def test_a_long_step_is_named(monkeypatch, impatient, terminal):
    screen = Screen(terminal)
    monkeypatch.setattr(sys, "stderr", screen)
    with steps.shown("model", "on"):
        steps.watcher()(("graphc-fusion", 3, 70))
        screen.written.clear()
        assert screen.written.wait(60) and screen.written.clear() is None
        assert screen.written.wait(60)
    text = screen.getvalue()
    assert "compiling model: graphc-fusion (3 of 70), " in text
    assert text.count("\n") == (1 if terminal else text.count("compiling")) and "model: done, " in text


def test_quick_work_is_not_shown(monkeypatch):
    screen = Screen(True)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(steps, "PATIENCE", 3600.0)
    with steps.shown("model", "on"):
        steps.watcher()(("graphc-fusion", 3, 70))
    assert screen.getvalue() == ""


@pytest.mark.parametrize("terminal", [False, True])
def test_nobody_watches(monkeypatch, impatient, terminal):
    monkeypatch.setattr(sys, "stderr", Screen(terminal))
    before = threading.active_count()
    with steps.shown("model", "off"):
        assert steps.watcher() is None
        assert threading.active_count() == before
    assert sys.stderr.getvalue() == ""


def test_logs_have_lines_with_more_patience(monkeypatch):
    monkeypatch.setattr(steps, "PATIENCE", 3600.0)
    monkeypatch.setattr(steps, "SELDOM", 0.001)
    screen = Screen(False)
    monkeypatch.setattr(sys, "stderr", screen)
    with steps.shown("model", "auto"):
        assert screen.written.wait(60)
    assert screen.getvalue().startswith("compiling model: begins, ")


@pytest.mark.parametrize("terminal", [False, True])
def test_advice_is_given_once(monkeypatch, impatient, terminal):
    monkeypatch.setattr(steps, "ADVICE", 0.0)
    screen, asked = Screen(terminal), []
    monkeypatch.setattr(sys, "stderr", screen)
    with steps.shown("model", "auto", lambda: asked.append(1) or "use a loop"):
        for _ in range(4):
            screen.written.clear()
            assert screen.written.wait(60)
    assert asked == [1] and screen.getvalue().count("compiling model: use a loop\n") == 1


def _unrolled(steps):
    x = v = pt.vector("x")
    for _ in range(steps):
        v = pt.tanh(v) * x
        v = v - 0.1
    return graphc.function([x], graphc.grad(v.sum(), x), mode="reference").fgraph


def test_the_line_that_a_python_loop_repeats_is_named():
    text = repeated_lines(_unrolled(150))
    line = inspect.getsourcelines(_unrolled)[1] + 3
    assert f"test_compile_progress.py:{line} in _unrolled" in text and "scan(step" in text
    assert repeated_lines(_unrolled(10)) == ""


def test_a_broken_stderr_ends_nothing(monkeypatch, impatient):
    closed = Screen(True)
    monkeypatch.setattr(sys, "stderr", closed)
    with steps.shown("model", "on"):
        assert closed.written.wait(60)
        closed.close()
    monkeypatch.setattr(sys, "stderr", None)
    with steps.shown("model", "on"):
        pass


def test_a_compilation_tells_its_passes_and_modules():
    told = []
    x = pt.vector("x")
    with graphc.config.change_flags(cache_dir=""), steps.watched(told.append):
        graphc.function([x], pt.exp(x).sum() + 6.0625)
    passes = [what for what, _, _ in told if what.startswith("graphc-")]
    assert {"graphc-stabilize", "graphc-fusion", "graphc-convert-to-linalg"} <= set(passes)
    assert any(what.startswith("LLVM, module") for what, _, _ in told)
    assert all(1 <= number <= total for _, number, total in told)


def test_setting(monkeypatch, impatient, capsys):
    x = pt.vector("x")
    with graphc.config.change_flags(cache_dir="", compile_progress="on"):
        graphc.function([x], pt.exp(x).sum() + 7.0625, name="density")
    assert "compiling density: " in capsys.readouterr().err
    with pytest.raises(ValueError, match="expected one of on, off, auto"):
        graphc.config.compile_progress = "sometimes"
