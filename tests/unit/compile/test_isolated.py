# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiling in a helper process: the same code and errors, and crashes that leave the caller alive."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.backends import isolated, worker
from graphc.errors import CompileError
from graphc_tools.opt import main


@pytest.fixture
def isolation(no_cache, tmp_path):
    with graphc.config.change_flags(compile_isolated=True, reproducer_dir=str(tmp_path / "crashes")):
        yield
    while worker._IDLE:
        worker._IDLE.pop().close()


@pytest.fixture
def crashing(tmp_path, monkeypatch):
    """Makes the compiler crash in the way that a function of the name given does."""
    (tmp_path / "crashing.py").write_text(
        "import os, time\ndef abort(*_): os.abort()\ndef loop(*_): time.sleep(60)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    while worker._IDLE:  # these look elsewhere
        worker._IDLE.pop().close()
    return lambda name: monkeypatch.setattr(isolated, "_COMPILE", f"crashing:{name}")


def test_results_reports_and_updates_are_the_same(isolation):
    x, count = pt.dmatrix("x"), graphc.shared(np.zeros(3), name="count")
    f = graphc.function([x], [pt.exp(x).sum(axis=0), pt.sort(x)], updates={count: count + x.sum(axis=0)})
    a = np.arange(6.0).reshape(2, 3)[::-1]
    for got, want in zip(f(a), [np.exp(a).sum(axis=0), np.sort(a)], strict=True):
        np.testing.assert_allclose(got, want)
    np.testing.assert_array_equal(count.get_value(), a.sum(axis=0))
    assert {"passes", "code generation", "link"} <= f.report.phases.keys() and f.report.passes
    with pytest.raises(ValueError, match=r"test_isolated\.py"):
        graphc.function([x, y := pt.dmatrix("y")], x + y)(a, a[:1, :2])


def test_a_worker_is_kept(isolation):
    first = worker.call("os:getpid")
    assert first != os.getpid() and worker.call("os:getpid") == first and len(worker._IDLE) == 1
    with pytest.raises(ZeroDivisionError):
        worker.call("operator:truediv", 1, 0)
    assert worker.call("os:getpid") == first


def test_errors_of_passes_are_those_of_this_process(isolation, monkeypatch):
    x = pt.dvector("x")
    wrong = (
        "module {\n  func.func @main(%arg0: tensor<?xf64>) -> (tensor<?xf32>) {\n    return %arg0\n  }\n}\n"
    )
    messages = []
    monkeypatch.setattr("graphc.emit.emit_module", lambda graph: type("Emitted", (), {"text": wrong}))
    for apart in (True, False):
        with graphc.config.change_flags(compile_isolated=apart), pytest.raises(CompileError) as caught:
            graphc.function([x], x + 1)
        messages.append(str(caught.value))
    assert messages[0] == messages[1] and '"-":3:' in messages[0]


def test_a_crash_is_a_compile_error_with_a_reproducer(isolation, crashing, tmp_path, capsys):
    x = pt.dvector("x")
    crashing("abort")
    with pytest.raises(CompileError, match="SIGABRT") as caught:
        graphc.function([x], pt.exp(x) + 1, name="unlucky")
    found = re.search(r"which is in (\S+\.mlir)", str(caught.value))
    assert found and Path(found[1]).parent == tmp_path / "crashes" and "'unlucky'" in str(caught.value)
    text = Path(found[1]).read_text()
    assert "func.func @main" in text and "llvmlite" in text and "// settings: floatX=" in text
    # What is in the file is complete: it compiles where nothing crashes.
    assert main(["--run-reproducer", "--emit=llvm", found[1]]) == 0
    assert "@graphc_" not in (output := capsys.readouterr()).err and "define i64 @main" in output.out
    isolated._COMPILE = "graphc.backends.isolated:compile_here"
    np.testing.assert_allclose(graphc.function([x], pt.exp(x) + 1)([0.0]), [2.0])


def test_time_limit(isolation, crashing):
    x = pt.dvector("x")
    crashing("loop")
    limit = graphc.config.change_flags(compile_time_limit=1)
    with limit, pytest.raises(CompileError, match="took longer than 1 seconds"):
        graphc.function([x], x + 1)


def test_an_interrupt_ends_the_worker(isolation):
    process = worker.call("os:getpid")

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            worker.call("time:sleep", 60)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    assert worker.call("os:getpid") != process


def test_a_worker_that_died_while_idle_is_replaced(isolation):
    process = worker.call("os:getpid")
    os.kill(process, signal.SIGKILL)
    while worker._IDLE[0].is_alive:
        time.sleep(0.01)
    assert worker.call("os:getpid") != process


def test_a_forked_child_has_its_own_worker(isolation):
    process = worker.call("os:getpid")
    child = os.fork()
    if not child:
        try:
            os._exit(0 if worker.call("os:getpid") not in (process, os.getpid()) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert worker.call("os:getpid") == process


def test_graphc_opt_isolated(isolation, tmp_path, capsys):
    path = tmp_path / "module.mlir"
    path.write_text("func.func @f(%x: tensor<2xf64>) -> tensor<2xf64> {\n  return %x : tensor<2xf64>\n}\n")
    assert main(["--isolated", "--canonicalize", str(path)]) == 0
    assert "func.func @f" in capsys.readouterr().out
    path.write_text("func.func @f( {\n")
    assert main(["--isolated", "--canonicalize", str(path)]) == 1
    assert f"{path}:1:" in capsys.readouterr().err
