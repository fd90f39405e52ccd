# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mode "tiered": calls run in NumPy until their code is there."""

from __future__ import annotations

import importlib
import os
import pickle
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.config import config
from graphc.errors import CompileError
from graphc.function.compiled import Compiled

# The package has a function of the same name.
function_module = importlib.import_module("graphc.function.function")
X = np.linspace(-1.0, 1.0, 12).reshape(3, 4)


@pytest.fixture(autouse=True)
def no_cache() -> Iterator[None]:
    with config.change_flags(cache_dir=""):
        yield


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Holds back what compiles in the background, until it is set."""
    event, build = threading.Event(), function_module.build_program

    def held(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("isolated"):
            assert event.wait(60)
        return build(*args, **kwargs)

    monkeypatch.setattr(function_module, "build_program", held)
    return event


def in_tiers(make: Callable[[str], graphc.Function], gate: threading.Event) -> tuple[graphc.Function, ...]:
    """A function in its first tier, and one that is compiled."""
    f = make("tiered")
    assert not f.wait(0)
    return f, make("fast_run")


def test_both_tiers_compute_the_same(gate: threading.Event) -> None:
    x, scale = pt.matrix("x"), graphc.shared(2.0)

    def make(mode: str) -> graphc.Function:
        rows = {"sums": pt.exp(x * scale).sum(axis=1), "all": [x + 1, x.T @ x]}
        return graphc.function([graphc.In(x, value=X)], rows, mode=mode)

    f, compiled = in_tiers(make, gate)
    expected = compiled(X)
    for _ in range(2):
        for found in (f(X), f(), f(x=X[::-1])):
            assert found.keys() == expected.keys()
        np.testing.assert_allclose(f(X)["sums"], expected["sums"], rtol=1e-14)
        np.testing.assert_allclose(f(X)["all"][1], expected["all"][1], rtol=1e-14, atol=1e-15)
        if not gate.is_set():
            assert f.report.native_nodes == 0
            gate.set()
            assert f.wait(60)
    assert isinstance(f.executor, Compiled) and f.report.native_nodes > 0
    scale.set_value(3.0)
    np.testing.assert_allclose(f(X)["sums"], np.exp(3 * X).sum(axis=1), rtol=1e-14)


def test_updates_and_random_draws_go_on_where_they_were(gate: threading.Event) -> None:
    def make(mode: str) -> tuple[graphc.Function, Any]:
        count = graphc.shared(0)
        draws = pt.random.RandomStream(7).normal(size=(3,))
        return graphc.function([], draws, mode=mode, updates={count: count + 1}), count

    f, count = make("tiered")
    compiled, _ = make("fast_run")
    before = [f() for _ in range(3)]
    gate.set()
    f.wait(60)
    found = [*before, *(f() for _ in range(3))]
    np.testing.assert_array_equal(found, [compiled() for _ in range(6)])
    assert count.get_value() == 6


def test_loops_wait_for_their_code(gate: threading.Event) -> None:
    x = pt.vector("x")
    h = graphc.scan(lambda h: pt.tanh(h) * 2, outputs_info=x, n_steps=20, return_updates=False)
    f = graphc.function([x], h[-1], mode="tiered")
    threading.Timer(0.2, gate.set).start()
    found = f(X[0])
    assert f.report.native_nodes > 0
    np.testing.assert_allclose(found, graphc.function([x], h[-1], mode="reference")(X[0]), rtol=1e-12)


def test_who_looks_at_code_waits_for_it(gate: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    x = pt.matrix("x")
    f = graphc.function([x], [x.sum(), x * 2], mode="tiered")
    assert f.outputs[0].ndim == 0 and "tiered" in repr(f)
    np.testing.assert_array_equal(f(X, outputs_wanted=[1])[1], X * 2)
    threading.Timer(0.2, gate.set).start()
    assert "asm" in f.ir_stages()
    monkeypatch.undo()
    for other in (f.copy(), pickle.loads(pickle.dumps(f))):
        assert other.wait(0)
        np.testing.assert_array_equal(other(X)[1], X * 2)


def test_calls_of_many_threads_while_code_arrives(gate: threading.Event) -> None:
    x, total = pt.matrix("x"), graphc.shared(0.0)
    f = graphc.function([x], x * 2, mode="tiered", updates={total: total + x.sum()})
    wrong: list[Any] = []

    def work() -> None:
        values = (f(np.ones((2, 2))) for _ in range(200))
        wrong.extend(value for value in values if not np.array_equal(value, [[2, 2], [2, 2]]))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    gate.set()
    for thread in threads:
        thread.join()
    assert f.wait(60) and not wrong
    assert total.get_value() == 4 * 800


def test_a_failed_compilation_leaves_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    build = function_module.build_program

    def fails(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("isolated"):
            raise CompileError("no such instruction")
        return build(*args, **kwargs)

    monkeypatch.setattr(function_module, "build_program", fails)
    x = pt.matrix("x")
    f = graphc.function([x], x + 1, mode="tiered", name="increment")
    with pytest.raises(CompileError, match="no such instruction"):
        f.wait(60)
    with pytest.warns(RuntimeWarning, match=r"increment stays in NumPy: .*no such instruction"):
        np.testing.assert_array_equal(f(X), X + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(f(X), X + 1)


def test_stored_code_needs_no_first_tier(tmp_path: Any) -> None:
    x = pt.matrix("x")
    with config.change_flags(cache_dir=str(tmp_path)):
        graphc.function([x], pt.exp(x))
        f = graphc.function([x], pt.exp(x), mode="tiered")
    assert f.wait(0) and f.report.cache == ["hit"]


def test_errors_of_calls_are_those_of_compiled_functions(gate: threading.Event) -> None:
    x, y = pt.matrix("x"), pt.matrix("y")
    f = graphc.function([x, y], x @ y, mode="tiered")
    for _ in range(2):
        with pytest.raises(ValueError):
            f(X, X)
        with pytest.raises(TypeError):
            f(X)
        gate.set()
        f.wait(60)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_child_of_a_fork_compiles_for_itself(gate: threading.Event) -> None:
    x = pt.matrix("x")
    f = graphc.function([x], x + 1, mode="tiered")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads are what this is about
        child = os.fork()
    if child == 0:
        gate.set()
        good = f.wait(60) and np.array_equal(f(X), X + 1)
        os._exit(0 if good else 1)
    _, status = os.waitpid(child, 0)
    gate.set()
    assert status == 0 and f.wait(60)
