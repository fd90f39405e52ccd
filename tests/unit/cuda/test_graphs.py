# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Captured graphs of hand-written schedules: what is captured, lifetimes, order, and what is refused."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from graphc_runtime.cuda import gemm
from graphc_runtime.cuda import schedule as sc
from graphc_runtime.cuda.analysis import is_repeated, reads
from graphc_runtime.cuda.array import upload
from graphc_runtime.cuda.driver import DriverError
from graphc_runtime.manifest import ArraySpec, Signature
from graphc_tools.gpu.simulated import SimulatedDriver

_spec = importlib.util.spec_from_file_location("programs", Path(__file__).with_name("programs.py"))
programs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(programs)
Steps, executable, KERNELS = programs.Steps, programs.executable, programs.KERNELS
VECTOR = ArraySpec("float32", (None,))


def normal(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def looped(*, uses_index=False, frees=False, empty=False, **options):
    """Adds half of x to the result, as often as n says; there are no blocks for that if x is empty."""
    steps = Steps(3)
    x, n, out = range(3)
    zero, one, two, threads = (steps.number(i) for i in (0, 1, 2, 32))
    half = steps.number(0.5)
    steps.steps.append(sc.Copy(x, out))
    count = steps.new(sc.Read, n)
    index = steps.register()
    grid = (index if uses_index else zero if empty else two, one, one)
    inner = [sc.Launch("axpy", grid, (threads, one, one), (half, x, out), ("float32", "", ""))]
    if frees:
        made = steps.register()
        inner = [sc.Allocate(made, "float32", (two,)), *inner, sc.Free(made)]
    steps.steps.append(sc.Loop(zero, count, one, (), sc.Block((index,), tuple(inner), ()), ()))
    signature = Signature((VECTOR, ArraySpec("int64", ())), outputs=(VECTOR,))
    return executable(steps.program(), signature, programs.size_of_axis(0), **options)


def products(driver):
    """Adds a @ b to c, six times."""
    steps = Steps(4)
    zero, one, six = (steps.number(i) for i in (0, 1, 6))
    steps.steps.append(sc.Copy(2, 3))
    launch = sc.Launch("none", (one, one, one), (one, one, one), (0, 1, 3))
    inner = sc.Product(0, 1, 3, "ik,kj->ij", sc.Block((), (launch,), ()))
    steps.steps.append(sc.Loop(zero, six, one, (), sc.Block((steps.register(),), (inner,), ()), ()))
    matrix = ArraySpec("float32", (None, None))
    shapes = Steps(3)
    sizes = [shapes.new(sc.Dim, 2, axis) for axis in (0, 1)]
    signature = Signature((matrix,) * 3, outputs=(matrix,))
    return executable(steps.program(), signature, shapes.program(*sizes), driver=driver)


def test_a_step_with_a_product_is_captured_when_the_library_has_been_asked_for_it(monkeypatch):
    monkeypatch.setattr(gemm, "LEAST", 1)
    driver = SimulatedDriver(library=True)
    call = products(driver).bind()
    for number in range(4):
        # Of other sizes the first step is done before another graph is made.
        a, b, c = normal(2, 3 + number // 2), normal(3 + number // 2, 4), normal(2, 4)
        np.testing.assert_allclose(call(a, b, c).get(), c + 6 * (a @ b), rtol=1e-5)
    assert driver.captured >= 2 and driver.replayed >= 10 and len(driver.products) < 24


def test_steps_that_ask_for_nothing_are_no_graph():
    """A driver need not launch one: arrays without elements have grids without blocks."""
    made = looped(uses_index=False, empty=True)
    call, driver = made.bind(), made.driver
    for _ in range(4):
        assert call(normal(0), np.array(8)).get().shape == (0,)
    assert not driver.launches and not driver.replayed


def loop_of(made):
    return made.code.schedule.main.steps[-1]


@pytest.mark.parametrize("count", [0, 1, 3, 4, 100])
def test_a_step_is_launched_as_often_as_the_loop_runs(count):
    made = looped()
    x = normal(7)
    np.testing.assert_allclose(made.bind()(x, count).get(), x * (1 + count / 2), rtol=1e-5)
    assert (made.driver.captured, made.driver.replayed) == ((1, count) if count >= 4 else (0, 0))


def test_only_steps_that_are_the_same_are_captured():
    assert is_repeated(loop_of(looped()))
    for other in (looped(uses_index=True), looped(frees=True)):
        assert not is_repeated(loop_of(other))
        x = normal(3)
        other.bind()(x, 5).get()
        assert other.driver.captured == 0
    two, axis, grid = 1, 2, (3, 4, 5)
    inner = (sc.Dim(axis, 0, 0), sc.Launch("k", grid, grid, (axis, two)))
    assert reads(inner) == [0, 3, 4, 5, 1]
    outer = sc.If(9, sc.Block((), inner, (axis,)), sc.Block((), (), (1,)), (6,))
    assert reads([outer, sc.Free(6)]) == [9, 0, 3, 4, 5, 1]


def test_a_loop_of_other_arrays_or_sizes_is_another_graph():
    made = looped()
    f, x = made.bind(), normal(7)
    there = upload(made.driver, x, made.driver.main_stream)
    first = f(there, 4)
    second = f(there, 5)  # the result lies somewhere else
    np.testing.assert_allclose(first.get(), 3 * x, rtol=1e-5)
    np.testing.assert_allclose(second.get(), 3.5 * x, rtol=1e-5)
    assert made.driver.captured == 2
    for out in (first, second, first):
        f(there, 6, out=out)
        np.testing.assert_allclose(out.get(), 4 * x, rtol=1e-5)
    assert made.driver.captured == 2 and made.driver.replayed == 4 + 5 + 3 * 6


def test_graphs_run_in_the_order_of_their_stream():
    made = looped()
    x = upload(made.driver, normal(7), made.driver.main_stream)
    value = x.get()
    f = made.bind()
    y = f(f(f(x, 4), 4), 4)
    kinds = [transfer.kind for transfer in made.driver.transfers]
    assert not made.driver._memory.find(y.address)  # nothing has run before it is read
    assert kinds.count("download") == 1  # that of x: numbers of the host are known
    np.testing.assert_allclose(y.get(), value * 27, rtol=1e-4)


def test_errors_in_a_captured_step_end_the_capture():
    made = looped(driver=SimulatedDriver({}))
    with pytest.raises(DriverError, match="named symbol not found"):
        made.bind()(normal(3), 5)
    again = looped(driver=made.driver)
    made.driver.use(KERNELS)
    x = normal(3)
    np.testing.assert_allclose(again.bind()(x, 4).get(), 3 * x, rtol=1e-5)


def _captured(driver, *asks):
    stream = driver.new_stream()
    driver.begin_capture(stream)
    for ask in asks:
        ask(stream)
    return stream


def test_what_graphs_hold_has_to_live_when_they_are_launched():
    driver = SimulatedDriver()
    x, y = (driver.allocate(8, driver.main_stream) for _ in range(2))
    driver.upload(x, np.zeros(2, np.float32), driver.main_stream)
    graph = driver.end_capture(_captured(driver, lambda s: driver.copy(y, x, 8, s)))
    driver.replay(graph, driver.main_stream)
    found = np.empty(2, np.float32)
    driver.download(found, y, driver.main_stream)
    driver.free(x, driver.main_stream)
    driver.replay(graph, driver.main_stream)
    with pytest.raises(DriverError, match="not of the device, or not yet, or no longer"):
        driver.synchronise(driver.main_stream)
    driver.drop_graph(graph)
    with pytest.raises(DriverError, match="invalid handle"):
        driver.replay(graph, driver.main_stream)


def test_captured_streams_refuse_what_waits():
    driver = SimulatedDriver()
    x, y = (driver.allocate(8, driver.main_stream) for _ in range(2))
    other = driver.end_capture(_captured(driver, lambda s: driver.copy(y, x, 8, s)))
    host = np.zeros(2, np.float32)
    stream = _captured(driver)
    for refused in (
        lambda: driver.upload(x, host, stream),
        lambda: driver.download(host, x, stream),
        lambda: driver.synchronise(stream),
        lambda: driver.replay(other, stream),
    ):
        with pytest.raises(DriverError, match="not permitted when stream is capturing"):
            refused()


def test_graphs_are_updated_from_those_of_the_same_kinds():
    driver = SimulatedDriver()
    x, y, z = (driver.allocate(8, driver.main_stream) for _ in range(3))
    driver.upload(x, np.arange(2, dtype=np.float32), driver.main_stream)

    def graph_of(*asks, old=0):
        return driver.end_capture(_captured(driver, *asks), old)

    graph = graph_of(lambda s: driver.copy(y, x, 8, s))
    assert graph_of(lambda s: driver.copy(z, x, 8, s), old=graph) == graph
    driver.replay(graph, driver.main_stream)
    found = np.empty(2, np.float32)
    driver.download(found, z, driver.main_stream)
    np.testing.assert_array_equal(found, [0, 1])
    twice = graph_of(*2 * [lambda s: driver.copy(z, x, 8, s)], old=graph)
    assert twice != graph and (driver.captured, driver.updated) == (2, 1)
    with pytest.raises(DriverError, match="invalid handle"):
        driver.replay(graph, driver.main_stream)
