# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The CUDA driver by ctypes, against a library in C that has its functions (fake_cuda.c)."""

from __future__ import annotations

import ctypes
import dataclasses
import gc
import struct
import threading

import numpy as np
import pytest

from graphc_runtime.cuda import prepared
from graphc_runtime.cuda import schedule as sc
from graphc_runtime.cuda.array import DeviceArray, upload
from graphc_runtime.cuda.asks import AskCopy, AskLaunch, Place
from graphc_runtime.cuda.calls import FUNCTIONS, LibraryCalls
from graphc_runtime.cuda.cuda_driver import CudaDriver
from graphc_runtime.cuda.driver import NOTHING, DeviceMemoryError, DriverError, KernelLaunch, NoDeviceError
from graphc_runtime.cuda.prepared import Records


@pytest.fixture
def driver(library):
    made = CudaDriver(0, LibraryCalls(library))
    yield made
    gc.collect()
    _refuse(made)  # what it keeps goes back


def _refuse(driver):
    """Asks for more than there is."""
    with pytest.raises(DeviceMemoryError):
        driver.allocate(2_000_000, driver.main_stream)


def counter(library, name):
    function = getattr(ctypes.CDLL(library), f"fake_{name}")
    function.restype = ctypes.c_int64
    return function()


def test_every_function_is_in_the_library(library):
    opened = ctypes.CDLL(library)
    assert all(hasattr(opened, symbol) for symbol, _, _ in FUNCTIONS.values())


def test_the_device_is_known(driver):
    assert (driver.name, driver.arch, driver.ordinal) == ("fake", "sm_90", 0)
    assert driver.memory() == (driver.memory()[1], 1 << 20)


def test_there_is_no_other_device(library):
    with pytest.raises(NoDeviceError, match="no CUDA device 1; the driver has found 1"):
        CudaDriver(1, LibraryCalls(library))


def test_arrays_go_there_and_back(driver, library):
    x = np.arange(64.0).reshape(16, 4)
    array = upload(driver, x, driver.main_stream)
    assert counter(library, "live") == x.nbytes
    np.testing.assert_array_equal(array.get(), x)
    target = driver.allocate(x.nbytes, driver.main_stream)
    driver.copy(target, array.address, x.nbytes, driver.main_stream)
    found = np.empty(64)
    driver.download(found, target, driver.main_stream)
    np.testing.assert_array_equal(found, x.ravel())
    driver.free(target, driver.main_stream)
    del array
    gc.collect()
    # Small blocks are kept for the next arrays of about their size, until memory is short.
    assert counter(library, "live") == 2 * x.nbytes
    again = upload(driver, x[:9], driver.main_stream)
    assert counter(library, "live") == 2 * x.nbytes
    np.testing.assert_array_equal(again.get(), x[:9])
    del again
    _refuse(driver)
    assert counter(library, "live") == 0


def test_few_blocks_are_kept_and_no_large_ones(driver, library):
    def allocate(size):
        return driver.allocate(size, driver.main_stream)

    for size in (*range(100), 100_000, 131_072):
        driver.free(allocate(size), driver.main_stream)
    assert counter(library, "live") == 256 + 131_072
    addresses = [allocate(200) for _ in range(40)]
    assert counter(library, "live") == 131_072 + 40 * 256 and len(set(addresses)) == 40
    for address in addresses:
        driver.free(address, driver.main_stream)
    assert counter(library, "live") == 131_072 + 32 * 256
    other = driver.allocate(200, 0)  # in the order of another stream
    assert counter(library, "live") == 131_072 + 32 * 256 + 200
    driver.free(other, 0)
    driver.free(allocate(300_000), driver.main_stream)
    large = driver.allocate(900_000, 0)  # memory is short
    assert counter(library, "live") == 900_000
    driver.free(large, 0)


def test_arrays_without_elements_never_reach_the_library(driver, library):
    """It refuses allocations and copies of no bytes."""
    for shape in ((0,), (3, 0)):
        array = upload(driver, np.empty(shape), driver.main_stream)
        other = driver.allocate(0, 0)
        driver.copy(other, array.address, 0, driver.main_stream)
        driver.free(other, 0)
        assert array.get().shape == shape and array.address


def launch(driver, x, y, *, block=4, cooperative=False, shared=0):
    module = driver.load(".version 8.0", {})
    function = driver.function(module, "axpy", shared)
    types = ("float32", "float64", "int8", *["pointer", "pointer", "int64", "int64", "int64"] * 2)
    values = [0.5, 4.0, -2]
    for array in (x, y):
        values += [array.memory.address] * 2 + [array.offset, *array.shape, *array.strides]
    asked = KernelLaunch(function, (1, 2, 3), (block, 5, 6), types, shared, cooperative)
    driver.launch(asked, values, driver.main_stream)
    driver.unload(module)


@pytest.mark.parametrize("cooperative", [False, True])
def test_kernels_get_their_arguments(driver, cooperative):
    x = upload(driver, np.arange(6, dtype=np.float32), driver.main_stream)
    y = upload(driver, np.zeros(6, np.float32), driver.main_stream)
    part = DeviceArray(x.memory, "float32", (3,), (2,), 1)
    launch(driver, part, y, cooperative=cooperative, shared=65536)
    np.testing.assert_array_equal(y.get(), [-4, -12, -20, 0, 0, 0])


def test_threads_launch_at_the_same_time(driver):
    x = upload(driver, np.ones(4, np.float32), driver.main_stream)
    ys = [upload(driver, np.zeros(4, np.float32), driver.main_stream) for _ in range(4)]
    threads = [threading.Thread(target=lambda y=y: [launch(driver, x, y) for _ in range(50)]) for y in ys]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for y in ys:
        np.testing.assert_array_equal(y.get(), np.full(4, -200))


def asks(driver, *, block=4, cooperative=False):
    """Adds half of x to y (places 0 and 1), and copies the last two elements to the start of z (2)."""
    function = driver.function(driver.load(".version 8.0", {}), "axpy", 0)
    arrays = [(Place(0), Place(0), 0, 4, 1), (Place(1), Place(1), 0, 4, 1)]
    types = ("float32", "float64", "int8", *["pointer", "pointer", "int64", "int64", "int64"] * 2)
    step = sc.Launch("axpy", (0, 0, 0), (0, 0, 0), (), op="Add", line="model.py:3")
    values = (0.5, 1.0, 1, *arrays[0], *arrays[1])
    launched = KernelLaunch(function, (1, 2, 3), (block, 5, 6), types, 0, cooperative)
    return AskLaunch(step, launched, values), AskCopy(sc.Copy(0, 1), Place(2), Place(3), 8)


@pytest.mark.parametrize("cooperative, is_native", [(False, True), (True, True), (False, False)])
def test_what_is_prepared_gets_other_addresses_in_every_call(driver, monkeypatch, cooperative, is_native):
    if not is_native:
        monkeypatch.setattr(prepared, "_asker", lambda: prepared.ask_in_python)
    ask = driver.prepare(asks(driver, cooperative=cooperative), 4, driver.main_stream)
    wrong = []

    def work(seed):
        x, y, z = (upload(driver, np.full(4, seed, np.float32), driver.main_stream) for _ in range(3))
        for n in range(1, 40):
            ask([x.address, y.address, z.address, y.address + 8])
            value = seed * (1 + n / 2)
            if y.get().tolist() != [value] * 4 or z.get().tolist() != [value, value, seed, seed]:
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_prepared_calls_within_prepared_calls(driver, monkeypatch):
    x, y, z = (upload(driver, np.full(4, value, np.float32), driver.main_stream) for value in (1, 0, 0))
    ask, inner = driver.prepare(asks(driver), 4, driver.main_stream), []
    bound = Records.bound

    def interrupted(records):
        call = bound(records)

        def launch():
            if not inner:  # as a finaliser would, between filling in and launching
                inner.append(upload(driver, np.zeros(4, np.float32), driver.main_stream))
                ask([x.address, inner[0].address, z.address, x.address])
            return call()

        return launch

    monkeypatch.setattr(Records, "bound", interrupted)
    ask([x.address, y.address, z.address, y.address])
    assert y.get().tolist() == inner[0].get().tolist() == [0.5] * 4
    with pytest.raises(struct.error):
        ask([x.address])
    ask([x.address, y.address, z.address, y.address])
    assert y.get().tolist() == [1.0] * 4


@pytest.mark.parametrize("is_native", [True, False])
def test_errors_of_prepared_calls(driver, monkeypatch, is_native):
    if not is_native:
        monkeypatch.setattr(prepared, "_asker", lambda: prepared.ask_in_python)
    x = upload(driver, np.ones(4, np.float32), driver.main_stream)
    ask = driver.prepare(asks(driver, block=2000), 4, driver.main_stream)
    expected = (
        r"grid of \(1, 2, 3\) blocks of \(2000, 5, 6\)[^$]*in: launch of axpy for Add\n  made at model.py:3"
    )
    for _ in range(2):
        with pytest.raises(DriverError, match=expected):
            ask([x.address] * 4)
    with pytest.raises(DriverError, match="no arguments of type float8"):
        asked = asks(driver)[0]
        launched = dataclasses.replace(asked.launch, types=("float8",))
        wrong = dataclasses.replace(asked, launch=launched, values=(0.0,))
        driver.prepare([wrong], 1, driver.main_stream)([0])
    assert x.get().tolist() == [1.0] * 4


def test_errors_of_the_driver(driver):
    x = upload(driver, np.ones(4, np.float32), driver.main_stream)
    with pytest.raises(DeviceMemoryError, match=r"2,000,000 bytes were asked for, 1,048,\d+ of 1,048,576"):
        driver.allocate(2_000_000, driver.main_stream)
    with pytest.raises(DriverError, match=r"CUDA_ERROR_OTHER.*grid of \(1, 2, 3\) blocks of \(2000, 5, 6\)"):
        launch(driver, x, x, block=2000)
    with pytest.raises(DriverError, match="for sm_90: ptxas fatal: no version"):
        driver.load("nothing", {})
    with pytest.raises(DriverError, match="for the kernel 'sum'"):
        driver.function(driver.load(".version", {}), "sum")
    with pytest.raises(DriverError, match="cannot be used by this process any more") as caught:
        driver.synchronise(12)
    assert caught.value.code == 700


def test_machine_code_of_the_device_is_taken_first(driver):
    with pytest.raises(DriverError, match="no version"):
        driver.load(".version 8.0", {"sm_90": b"\x7fELF"})
    assert driver.load(".version 8.0", {"sm_80": b"\x7fELF"})


def test_graphs_and_events(driver, library):
    x = upload(driver, np.ones(4), driver.main_stream)

    def captured(old=0, nbytes=8):
        driver.begin_capture(driver.main_stream)
        driver.copy(x.address, x.address + 16, nbytes, driver.main_stream)
        return driver.end_capture(driver.main_stream, old)

    graph = captured()
    before = counter(library, "replays")
    driver.replay(graph, driver.main_stream)
    assert counter(library, "replays") == before + 1
    assert captured(graph) == graph  # has been given other arguments
    assert captured(0x700000000009) == graph  # of other launches: a new one
    assert captured(nbytes=0) == captured(graph, 0) == NOTHING  # a driver is not given what is empty
    driver.replay(NOTHING, driver.main_stream)
    driver.drop_graph(NOTHING)
    assert counter(library, "replays") == before + 1
    event, timed = driver.new_event(), driver.new_event(timing=True)
    driver.record(event, driver.main_stream)
    driver.wait(event, driver.main_stream)
    assert driver.elapsed(timed, timed) == 1.5
    driver.drop_event(event)
