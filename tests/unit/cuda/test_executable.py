# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Executables of hand-written schedules on the simulated driver: results, lifetimes, transfers, errors."""

from __future__ import annotations

import gc
import importlib.util
import pickle
import threading
from pathlib import Path

import numpy as np
import pytest
from simulation import assert_nothing_lives

from graphc_runtime import commit
from graphc_runtime.artifact import Artifact
from graphc_runtime.cuda import call
from graphc_runtime.cuda import schedule as sc
from graphc_runtime.cuda.array import DeviceArray, from_dlpack, from_interface, upload
from graphc_runtime.cuda.driver import DeviceMemoryError, DriverError
from graphc_runtime.cuda.executable import DeviceExecutable
from graphc_runtime.errors import ArtifactError
from graphc_runtime.manifest import ArraySpec, Signature
from graphc_tools.gpu.memory import KernelError, LaunchError, UninitialisedError
from graphc_tools.gpu.ptx_entries import entries
from graphc_tools.gpu.simulated import SimulatedDriver

_spec = importlib.util.spec_from_file_location("programs", Path(__file__).with_name("programs.py"))
programs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(programs)
Steps, executable, KERNELS = programs.Steps, programs.executable, programs.KERNELS
VECTOR = ArraySpec("float32", (None,))


def normal(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (9, 8), (70, 2), (0, 3), (3, 0)])
def test_results_are_arrays_of_the_device(shape):
    made = programs.column_sums()
    x = normal(*shape)
    found = made.bind()(x)
    assert isinstance(found, DeviceArray) and found.shape == shape[1:] and found.device == "cuda:0"
    np.testing.assert_allclose(np.asarray(found), x.sum(axis=0), rtol=1e-5, atol=1e-5)
    kinds = [transfer.kind for transfer in made.driver.transfers]
    assert kinds == ["upload", "download"]


def test_nothing_is_done_before_it_is_read_and_nothing_is_left():
    made = programs.column_sums()
    found = made.bind()(normal(4, 4))
    assert len(made.driver.live) == 1  # the result; argument and temporary have been given back
    assert not made.driver._memory.regions
    np.asarray(found)
    del found
    assert_nothing_lives(made.driver)


def test_arrays_of_the_device_are_taken_without_copies():
    made = programs.column_sums()
    x = normal(5, 3)
    given = upload(made.driver, x, made.driver.main_stream)
    made.driver.transfers.clear()
    f = made.bind()
    again = f(given)
    assert not made.driver.transfers
    np.testing.assert_allclose(again.get(), x.sum(axis=0), rtol=1e-5)
    for wrong, message in (
        (upload(made.driver, x.astype(np.float64), made.driver.main_stream), "are not converted"),
        (DeviceArray(given.memory, "float32", (3, 5), (1, 3)), "not contiguous"),
        (upload(SimulatedDriver(), x, 17), "an array of cuda:0"),
    ):
        with pytest.raises(TypeError, match=message):
            f(wrong)


def test_out_is_filled():
    made = programs.column_sums()
    x, out = normal(5, 3), np.zeros(3, np.float32)
    assert made.bind()(x, out=out) is out
    np.testing.assert_allclose(out, x.sum(axis=0), rtol=1e-5)
    there = upload(made.driver, np.zeros(3, np.float32), made.driver.main_stream)
    assert made.bind()(x, out=there) is there
    np.testing.assert_array_equal(there.get(), out)
    with pytest.raises(ValueError, match=r"must have shape \(3,\)"):
        made.bind()(x, out=np.zeros(4, np.float32))
    with pytest.raises(TypeError, match="must have dtype float32"):
        made.bind()(x, out=np.zeros(3))


def test_sizes_are_kept_for_arguments_of_the_same_sizes(monkeypatch):
    made = programs.column_sums()
    f, x = made.bind(), normal(5, 3)
    f(x)

    def ask(registers):
        raise AssertionError("sizes are computed again")

    monkeypatch.setattr(made, "_shapes", ask)
    np.testing.assert_allclose(f(2 * x).get(), 2 * x.sum(axis=0), rtol=1e-5)
    with pytest.raises(AssertionError, match="computed again"):
        f(normal(5, 4))


def test_kernels_take_arrays_of_the_host_as_other_targets_do():
    made = programs.column_sums()
    x = normal(5, 3)
    call = made.kernel_call(made.manifest.signature)
    found = call(x)
    assert type(found) is np.ndarray
    np.testing.assert_allclose(found, x.sum(axis=0), rtol=1e-5)
    assert call.result_shapes(x) == [(3,)]


def test_shared_variables_stay_on_the_device():
    made = programs.axpy()
    x, cell = normal(40), [normal(40)]
    f, start = made.bind([cell]), cell[0].astype(np.float64)
    for _ in range(4):
        assert f(x) is None
    assert isinstance(cell[0], DeviceArray)
    np.testing.assert_allclose(np.asarray(cell[0]), start + 4 * 3 * 0.5 * x, rtol=1e-5)
    kinds = [transfer.kind for transfer in made.driver.transfers]
    assert kinds.count("upload") == 5 and kinds.count("download") == 1


def test_calls_that_repeat_are_replayed():
    made = programs.axpy()
    x = upload(made.driver, normal(40), made.driver.main_stream)
    cell = [upload(made.driver, normal(40), made.driver.main_stream)]
    f = made.bind([cell])
    start = cell[0].get()
    first = cell[0]
    f(x)
    updated = cell[0]
    results = [updated]
    for _ in range(3):
        made.run([x, first], [updated], pytest.fail)
        results.append(updated.get())
    assert (made.driver.captured, made.driver.replayed) == (1, 3)
    for found in results[1:]:
        np.testing.assert_allclose(found, start + 1.5 * x.get(), rtol=1e-5)


def test_what_happens_beside_a_capture_is_no_part_of_it():
    made = programs.axpy()
    driver = made.driver
    x, y = (upload(driver, normal(8), driver.main_stream) for _ in range(2))
    old, kept = y.get(), [upload(driver, normal(8), driver.main_stream)]
    launch = driver.launch

    def launching(*arguments, **options):
        kept.clear()  # is given back while the stream of the call is captured
        launch(*arguments, **options)

    results = [upload(driver, old, driver.main_stream)]
    made.run([x, y], results, pytest.fail)
    driver.launch = launching
    made.run([x, y], results, pytest.fail)
    driver.launch = launch
    made.run([x, y], results, pytest.fail)
    assert (driver.captured, driver.replayed) == (1, 2)
    np.testing.assert_allclose(results[0].get(), old + 1.5 * x.get(), rtol=1e-5)


def test_captures_are_of_their_streams():
    driver = SimulatedDriver()
    first, second, other = (driver.new_stream() for _ in range(3))
    event, outside = driver.new_event(), driver.new_event()
    driver.record(outside, other)
    driver.begin_capture(first)
    driver.record(event, first)
    driver.wait(event, second)
    with pytest.raises(DriverError, match="when stream is capturing"):
        driver.synchronise(second)
    driver.synchronise(other)
    with pytest.raises(DriverError, match="waits for one that is not"):
        driver.wait(outside, first)
    with pytest.raises(DriverError, match="another stream is captured"):
        driver.begin_capture(other)
    driver.replay(driver.end_capture(first), first)
    with pytest.raises(DriverError, match="does not capture"):
        driver.end_capture(first)


@pytest.mark.parametrize(("n", "times"), [(0, 0), (1, 2), (2, 3), (5, 9), (64, 70)])
def test_loops_and_conditions_that_depend_on_values(n, times):
    made = programs.repeated()
    x, y = normal(7), normal(7)
    found = made.bind()(x, y, np.array([n])).get()
    np.testing.assert_allclose(found, y + times * x.astype(np.float64), rtol=1e-4, atol=1e-4)


def test_checks_raise_what_the_manifest_says():
    made = programs.repeated()
    with pytest.raises(ValueError, match="128 steps are more than 64"):
        made.bind()(normal(3), normal(3), np.array([65]))
    assert_nothing_lives(made.driver)


def test_a_shared_variable_that_several_threads_update():
    made = programs.axpy(times=1)
    x, cell = np.ones(8, np.float32), [np.zeros(8, np.float32)]
    f = made.bind([cell])
    threads = [threading.Thread(target=lambda: [f(x) for _ in range(5)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(np.asarray(cell[0]), np.full(8, 20 * 0.5, np.float32))


def test_a_call_that_starts_anew_takes_its_inputs_anew(monkeypatch):
    """What the first attempt computed in the memory of its copy is no input of the second."""
    made = programs.in_place()
    x, cell = normal(8), [np.full(8, 3, np.float32)]
    f = made.bind([cell])
    reads = []

    def read(cells):
        values = commit.snapshot(cells)
        reads.append(values)
        if len(reads) == 1:  # another thread stores a value meanwhile
            cell[0] = np.full(8, 4, np.float32)
        return values

    monkeypatch.setattr(call, "snapshot", read)
    found = f(x)
    assert len(reads) == 2
    np.testing.assert_array_equal(found.get(), x + 2)
    np.testing.assert_allclose(cell[0].get(), 4 + (x + 2) / 2, rtol=1e-6)


def test_arrays_of_others_are_not_overwritten():
    made = programs.in_place()
    x, cell = normal(8), [np.full(8, 2, np.float32)]
    f, driver = made.bind([cell]), made.driver
    array = upload(driver, x, driver.main_stream)
    for value in (x, array, Foreign(array)):
        cell[0] = np.full(8, 2, np.float32)
        np.testing.assert_array_equal(f(value).get(), x + 1)
    np.testing.assert_array_equal(array.get(), x)


class Foreign:
    """An array of another library, in the memory of ours."""

    def __init__(self, array):
        self.__cuda_array_interface__ = array.__cuda_array_interface__


def test_out_of_memory_says_sizes_and_leaves_the_device_usable():
    made = programs.column_sums(driver=SimulatedDriver(KERNELS, total=1 << 20))
    f = made.bind()
    with pytest.raises(DeviceMemoryError) as caught:
        f(normal(400, 500))
    text = str(caught.value)
    assert isinstance(caught.value, MemoryError)
    assert all(
        part in text for part in ("800,000 bytes were asked for", "are free", "(500, 400)", "Transpose")
    )
    del caught  # the frames that it knows have the arrays
    assert_nothing_lives(made.driver)
    x = normal(4, 5)
    np.testing.assert_allclose(f(x).get(), x.sum(axis=0), rtol=1e-5)


def test_errors_say_where_they_are_from():
    made = programs.column_sums(driver=SimulatedDriver({}))
    with pytest.raises(DriverError, match="named symbol not found: 'transpose'") as caught:
        made.bind()(normal(2, 2))
    assert "in: launch of transpose for Transpose\n  made at model.py:7" in str(caught.value)


def test_executables_pickle_as_their_artifact():
    made = programs.column_sums()
    data = made.artifact.to_bytes()
    again = DeviceExecutable(Artifact.from_bytes(data), SimulatedDriver(KERNELS))
    x = normal(3, 4)
    np.testing.assert_array_equal(again.bind()(x).get(), made.bind()(x).get())
    assert pickle.loads(pickle.dumps(made)).code == made.code


def two_streams(*, waits):
    """The sums of two arrays, each in a stream of its own; the second is needed by the first stream."""
    steps = Steps(2)
    rows, columns = steps.new(sc.Dim, 0, 0), steps.new(sc.Dim, 0, 1)
    eight, threads = steps.number(8), steps.number(64)
    turned = steps.new(sc.Allocate, "float32", (columns, rows))
    if waits:
        steps.steps += [sc.Record(0), sc.Wait(0, stream=1)]
    grid = [steps.new(sc.Compute, "ceildivsi", (n, eight)) for n in (columns, rows)]
    steps.launch("transpose", grid, (eight, eight), (0, turned), stream=1)
    if waits:
        steps.steps += [sc.Record(1, stream=1), sc.Wait(1)]
    steps.launch("row_sums", (columns,), (threads,), (turned, 1))
    steps.steps.append(sc.Free(turned))
    signature = Signature((ArraySpec("float32", (None, None)),), outputs=(VECTOR,))
    shapes = programs.size_of_axis(1)
    return executable(steps.program(), signature, shapes, streams=2, events=2)


def test_streams_are_ordered_by_events():
    x = normal(9, 4)
    np.testing.assert_allclose(two_streams(waits=True).bind()(x).get(), x.sum(axis=0), rtol=1e-5)
    with pytest.raises(UninitialisedError, match=r"memref\.load"):
        two_streams(waits=False).bind()(x).get()


def simple(*more, register=0, functions=()):
    """Copies the argument to the result, then more steps."""
    steps = Steps(2)
    steps.steps.append(sc.Copy(0, 1))
    steps.count += register
    steps.steps += more
    signature = Signature((VECTOR,), outputs=(VECTOR,))
    return executable(steps.program(), signature, programs.size_of_axis(0), functions=functions)


def test_memory_that_was_given_back_is_not_used():
    size = sc.Dim(2, 0, 0)
    made = simple(size, sc.Allocate(3, "float32", (2,)), sc.Free(3), sc.Copy(1, 3), register=2)
    with pytest.raises(ArtifactError, match="given back"):
        made.bind()(normal(3))
    made = simple(size, sc.Allocate(3, "float32", (2,)), sc.Free(3), sc.Free(3), register=2)
    with pytest.raises(ArtifactError, match="given back"):
        made.bind()(normal(3))


def test_memory_that_nobody_has_written_is_not_copied():
    made = simple(sc.Dim(2, 0, 0), sc.Allocate(3, "float32", (2,)), sc.Copy(3, 1), register=2)
    with pytest.raises(DriverError, match="not all of them have been written"):
        made.bind()(normal(3)).get()


def test_functions_of_the_host():
    def reverse(arguments, on_check):
        x, n = arguments
        return [np.ascontiguousarray(x[::-1]) * n]

    more = (sc.Dim(2, 0, 0), sc.Download(3, 0), sc.HostCall(0, (3, 2), (4,)), sc.Upload(5, 4), sc.Copy(5, 1))
    made = simple(*more, register=4, functions=(reverse,))
    x = normal(6)
    np.testing.assert_array_equal(made.bind()(x).get(), x[::-1] * 6)
    assert_nothing_lives(made.driver)
    with pytest.raises(ArtifactError, match="calls 1 functions of the host, given 0"):
        DeviceExecutable(made.artifact, made.driver)


def test_launches_with_other_arguments_than_the_kernel_has():
    steps = Steps(2)
    one = steps.number(1)
    steps.launch("axpy", (one,), (one,), (one, 0, 1))
    made = executable(steps.program(), Signature((VECTOR,), outputs=(VECTOR,)), programs.size_of_axis(0))
    with pytest.raises(LaunchError, match=r"takes .'float32'.* given .'int64'"):
        made.bind()(normal(3))


def test_kernels_that_fail_are_named_when_the_result_is_read():
    steps = Steps(2)
    one, many, zero = steps.number(1), steps.number(32), steps.number(0)
    big = steps.number(100)
    far = steps.new(sc.View, 0, zero, (big,), (one,))
    half = steps.number(0.5)
    steps.steps.append(sc.Copy(0, 1))
    steps.launch("axpy", (one,), (many,), (half, far, 1), types=("float32", "", ""))
    made = executable(steps.program(), Signature((VECTOR,), outputs=(VECTOR,)), programs.size_of_axis(0))
    found = made.bind()(normal(8))
    with pytest.raises(KernelError, match=r"memref\.load"):
        found.get()


def test_interface_and_dlpack_share_memory():
    driver = SimulatedDriver()
    x = normal(3, 4)
    array = upload(driver, x, driver.main_stream)
    for other in (
        from_interface(driver, array, driver.main_stream),
        from_dlpack(driver, array, driver.main_stream),
    ):
        assert other.address == array.address and other.shape == (3, 4) and other.strides == (4, 1)
        np.testing.assert_array_equal(other.get(), x)
    view = DeviceArray(array.memory, "float32", (2, 3), (1, 4), 1)
    interface = view.__cuda_array_interface__
    assert interface["strides"] == (4, 16) and interface["data"] == (array.address + 4, False)
    assert from_dlpack(driver, view, driver.main_stream).strides == (1, 4)
    with pytest.raises(BufferError):
        array.__dlpack__(copy=True)
    with pytest.raises(TypeError, match="strides"):
        view.get()


def test_dlpack_keeps_memory_alive_and_gives_it_back():
    driver = SimulatedDriver()
    array = upload(driver, normal(5), driver.main_stream)
    capsule = array.__dlpack__()
    other = from_dlpack(driver, array, driver.main_stream)
    del array
    gc.collect()
    assert len(driver.live) == 1
    del other
    gc.collect()
    assert len(driver.live) == 1  # the capsule that nobody has used
    del capsule
    assert_nothing_lives(driver)


def test_arrays_are_read_as_numbers():
    driver = SimulatedDriver()
    array = upload(driver, np.array(2.5), driver.main_stream)
    assert float(array) == array.item() == 2.5 and int(array) == 2 and bool(array) and array.ndim == 0
    assert np.asarray(array, np.float32).dtype == np.float32
    assert repr(array) == "<array of cuda:0, shape (), float64>"
    with pytest.raises(TypeError, match="without axes"):
        len(array)
    with pytest.raises(ValueError, match="is copied"):
        np.asarray(array, copy=False)


def test_entries_of_the_ptx_are_those_of_the_kernels():
    entry = (
        ".visible .entry axpy(\n\t.param .f32 axpy_param_0,\n\t.param .u64 .ptr .align 1 axpy_param_1\n)\n{"
    )
    assert entries(entry) == {"axpy": [4, 8]}
    with pytest.raises(LaunchError, match=r"takes \[4, 8\] bytes, the kernel \[4, 8, 8, 8, 8"):
        SimulatedDriver(KERNELS).load(entry, {})
