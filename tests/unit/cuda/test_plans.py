# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that have a plan: what is prepared, when, and that they do what other calls do."""

from __future__ import annotations

import gc
import importlib.util
import threading
import types
from pathlib import Path

import numpy as np
import pytest

from graphc_runtime import commit
from graphc_runtime.cuda import call, executable, plan
from graphc_runtime.cuda import schedule as sc
from graphc_runtime.cuda.array import DeviceArray, layout, upload
from graphc_runtime.cuda.driver import DeviceMemoryError, DriverError
from graphc_runtime.cuda.steps import compile_steps
from graphc_tools.gpu.simulated import SimulatedDriver

_spec = importlib.util.spec_from_file_location("programs", Path(__file__).with_name("programs.py"))
programs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(programs)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def there(made, value):
    return upload(made.driver, value, made.driver.main_stream)


def close(found, expected):
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5, atol=1e-5)


def refuse(*arguments, **options):
    raise AssertionError("a call that has a plan goes the general way")


def test_the_second_call_makes_a_plan_and_later_ones_prepare_nothing(monkeypatch):
    made = programs.column_sums()
    f, values = made.bind(), [normal(5, 3, seed=i) for i in range(6)]
    close(f(there(made, values[0])), values[0].sum(axis=0))
    assert made.driver.prepared == 0
    close(f(there(made, values[1])), values[1].sum(axis=0))
    assert made.driver.prepared == 1
    for name in ("_run", "compile_steps"):
        monkeypatch.setattr(executable, name, refuse)
    monkeypatch.setattr(plan, "Registers", refuse)
    out, host = there(made, normal(3)), np.empty(3, np.float32)
    assert f(values[2], out=host) is host
    close(host, values[2].sum(axis=0))
    monkeypatch.setattr(f, "_call", refuse)
    # Arrays of the host are copied there, in whatever order they are, and nothing else happens.
    for value in (values[2], np.asfortranarray(values[2]), values[2][::-1]):
        before = len(made.driver.transfers)
        close(f(value), values[2].sum(axis=0))
        kinds = [transfer.kind for transfer in made.driver.transfers[before:]]
        assert kinds == ["upload", "download"]
    given = there(made, values[4])
    theirs = types.SimpleNamespace(__cuda_array_interface__=given.__cuda_array_interface__)
    close(f(theirs), values[4].sum(axis=0))
    with pytest.raises(AssertionError, match="general way"):
        f(values[4].tolist())
    before = len(made.driver.live)
    assert f(given, out=out) is out and len(made.driver.live) == before
    close(out, values[4].sum(axis=0))
    before, launches = len(made.driver.transfers), len(made.driver.launches)
    for _ in range(3):
        close(f(given), values[4].sum(axis=0))
    assert made.driver.prepared == 1 and made.driver.launches[launches:] == 3 * ["transpose", "row_sums"]
    assert [transfer.kind for transfer in made.driver.transfers[before:]] == 3 * ["download"]
    # Other sizes have another plan; a part of an array has that of its sizes.
    monkeypatch.undo()
    wide = there(made, normal(7, 3))
    part = DeviceArray(wide.memory, "float32", (5, 3), offset=6)
    for _ in range(3):
        close(f(part), wide.get()[2:].sum(axis=0))
        close(f(there(made, values[5].T)), values[5].sum(axis=1))
    assert made.driver.prepared == 2
    del given, out, part, wide
    gc.collect()
    assert not made.driver.live


def test_results_go_where_they_can_be_computed():
    """What is not refused, but cannot be computed in place, goes the general way."""
    made = programs.in_place()
    x, cell = normal(8), [np.full(8, 2, np.float32)]
    f = made.bind([cell])
    array, out = there(made, x), there(made, 0 * x)
    for value in (array, x, array, x):
        cell[0] = there(made, np.full(8, 2, np.float32))
        assert f(value, out=out) is out
        close(out, x + 1)
        close(cell[0], 2 + (x + 1) / 2)
    np.testing.assert_array_equal(array.get(), x)
    assert (
        f(x, out=array) is array and made.driver.prepared == 1
    )  # of an array of the host: computed in its copy
    other = programs.column_sums(driver=made.driver)
    g, square = other.bind(), there(made, normal(3, 3))
    expected = square.get().sum(axis=0)
    for _ in range(3):
        close(g(square), expected)
    row = DeviceArray(square.memory, "float32", (3,))
    row_of_other = upload(SimulatedDriver(), np.zeros(3, np.float32), 17)
    known = there(made, normal(3))
    known.known = normal(3)
    for wrong, error in (
        (row_of_other, TypeError),
        (known, ValueError),
        (there(made, normal(4)), ValueError),
    ):
        with pytest.raises(error, match=r"out= of"):
            g(square, out=wrong)
    assert g(square, out=row) is row  # shares memory with what is read
    close(row, expected)


def test_plans_of_the_forms_that_were_seen_last_are_kept():
    made = programs.column_sums()
    f = made.bind()
    for _ in range(2):
        for rows in range(1, 41):
            x = normal(rows, 2)
            close(f(x), x.sum(axis=0))
    assert len(made.plans._found) == 32 and made.driver.prepared == 0
    for rows in (40, 40, 1, 1):
        x = normal(rows, 2)
        close(f(x), x.sum(axis=0))
    assert len(made.plans._found) == 32 and made.driver.prepared == 2 and len(made.plans._ready) == 2


def test_donated_arguments_are_copied_in_every_call():
    made = programs.in_place()
    x, state = normal(8), np.full(8, 2.0)
    cell = [np.full(8, 2, np.float32)]
    f = made.bind([cell])
    array = there(made, x)
    held = cell[0]
    for _ in range(5):
        kept = cell[0]
        was = np.asarray(kept).copy()
        expected = x + state / 2
        close(f(array), expected)
        state = state + expected / 2
        close(cell[0], state)
        np.testing.assert_array_equal(np.asarray(kept), was)  # whoever has the old value still has it
    np.testing.assert_array_equal(array.get(), x)
    np.testing.assert_array_equal(held, np.full(8, 2, np.float32))
    assert made.driver.prepared == 1
    # One array for two arguments: the copy of the one is no copy of the other.
    cell[0] = array
    close(f(array), x * 1.5)
    np.testing.assert_array_equal(array.get(), x)


def test_a_planned_call_whose_state_was_replaced_starts_anew(monkeypatch):
    made = programs.axpy(times=1)
    x, cell = there(made, np.ones(8, np.float32)), [np.zeros(8, np.float32)]
    f = made.bind([cell])
    for _ in range(3):
        f(x)
    reads = []

    def read(cells):
        values = commit.snapshot(cells)
        reads.append(values)
        if len(reads) == 1:  # another thread stores a value meanwhile
            cell[0] = there(made, np.full(8, 4, np.float32))
        return values

    monkeypatch.setattr(call, "snapshot", read)
    f(x)
    assert len(reads) == 2
    close(cell[0], np.full(8, 4.5))


@pytest.mark.parametrize("times", [1, 3])
def test_threads_that_call_at_the_same_time(times):
    """Each with arrays of its own, which are captured from three launches on, and all with one state."""
    made = programs.axpy(times=times)
    cell, n, threads = [np.zeros(8, np.float32)], 8, 4
    f = made.bind([cell])
    ones = there(made, np.ones(8, np.float32))
    other = programs.column_sums(driver=made.driver)
    g, wrong = other.bind(), []

    def work(seed):
        x = normal(6, 4, seed=seed)
        given = there(other, x)
        for _ in range(n):
            f(ones)
            found = g(given).get()
            if not np.allclose(found, x.sum(axis=0), rtol=1e-4, atol=1e-4):
                wrong.append(seed)

    # The simulated driver itself is for one thread at a time.
    _lock_methods(made.driver)
    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong
    np.testing.assert_array_equal(np.asarray(cell[0]), np.full(8, n * threads * times * 0.5, np.float32))


def _lock_methods(driver):
    lock = threading.RLock()

    def locked(method):
        def call(*arguments, **options):
            with lock:
                return method(*arguments, **options)

        return call

    for name in ("allocate", "free", "launch", "copy", "download", "upload", "replay"):
        setattr(driver, name, locked(getattr(driver, name)))


def test_errors_of_planned_steps_say_where_they_are_from(monkeypatch):
    made = programs.column_sums()
    f, x = made.bind(), normal(5, 3)
    given = there(made, x)
    for _ in range(3):
        f(given)
    launch = made.driver.launch

    def fail(*arguments, **options):
        if len(made.driver.launches) % 2:
            raise DriverError("too many resources requested", 701, "cuLaunchKernel")
        launch(*arguments, **options)

    for broken in (lambda *a, **k: (_ for _ in ()).throw(DriverError("refused", 1)), fail):
        monkeypatch.setattr(made.driver, "launch", broken)
        with pytest.raises(DriverError, match=r"refused|too many") as caught:
            f(given)
        monkeypatch.undo()
        assert "in: launch of" in str(caught.value)
        if broken is not fail:
            assert "for Transpose\n  made at model.py:7" in str(caught.value)
        del caught
        made.driver.launches.clear()
        close(f(given), x.sum(axis=0))
    gc.collect()
    assert set(made.driver.live) == {given.address}


def test_out_of_memory_in_a_planned_call():
    made = programs.column_sums(driver=SimulatedDriver(programs.KERNELS, total=1 << 14))
    f, x = made.bind(), normal(40, 30)
    given = there(made, x)
    for _ in range(3):
        close(f(given), x.sum(axis=0))
    hog = there(made, normal(1700))
    # There is no memory for temporary arrays, then none for the result.
    for more, message in (
        (0, r"shape \(30, 40\) and dtype float32[^$]*Transpose"),
        (1, "for result 0, of shape"),
    ):
        fill = []
        while more:
            try:
                fill.append(made.driver.allocate(64, made.driver.main_stream))
            except DeviceMemoryError:
                break
        with pytest.raises(DeviceMemoryError, match=message) as caught:
            f(given)
        del caught
        for address in fill:
            made.driver.free(address, made.driver.main_stream)
    del hog
    gc.collect()
    close(f(given), x.sum(axis=0))
    gc.collect()
    assert set(made.driver.live) == {given.address}


def test_temporary_arrays_that_do_not_live_together_share_a_place():
    steps = programs.Steps(1)
    n, one = steps.new(sc.Dim, 0, 0), steps.number(1)
    a = steps.new(sc.Allocate, "float32", (n,))
    b = steps.new(sc.Allocate, "float32", (n,))
    steps.steps += [sc.Copy(0, a), sc.Copy(a, b), sc.Free(a)]
    c = steps.new(sc.Allocate, "float32", (n,))
    part = steps.new(sc.View, 0, one, (one,), (one,))
    short = steps.new(sc.Allocate, "float32", (one,))
    steps.steps += [sc.Copy(b, c), sc.Free(b), sc.Free(c), sc.Copy(part, short)]
    program = steps.program()
    form = layout(np.dtype("float32"), (100,), None, 0)
    found = plan.make_plan(program, compile_steps(program.steps, refuse), [form], refuse, SimulatedDriver())
    assert found.workspace == 2 * 512 + 256 and found.temporaries == (0, 512, 0, 1024)
    assert found.inside == ((0, 4),) and found.launches == 0
    table = found.table([5000], 70_000)
    pairs = [(table[ask.source.number], table[ask.target.number], ask.nbytes) for ask in found.asks]
    assert pairs == [(5000, 70_000, 400), (70_000, 70_512, 400), (70_512, 70_000, 400), (5004, 71_024, 4)]


def test_programs_that_read_values_have_no_plan():
    made = programs.repeated()
    x, y = normal(7), normal(7)
    f, n = made.bind(), there(made, np.array([2]))
    for count in (2, 5, 2):
        n = there(made, np.array([count]))
        times = {2: 3, 5: 9}[count]
        np.testing.assert_allclose(f(x, y, n).get(), y + times * x.astype(np.float64), rtol=1e-4, atol=1e-4)
    assert made.driver.prepared == 0
