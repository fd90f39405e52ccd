# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The CUDA driver by ctypes, against a library in C that has its functions (fake_cuda.c)."""

from __future__ import annotations

import ctypes
import gc
import shutil
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest

from graphc_runtime.cuda.array import DeviceArray, upload
from graphc_runtime.cuda.calls import FUNCTIONS, LibraryCalls
from graphc_runtime.cuda.cuda_driver import CudaDriver
from graphc_runtime.cuda.driver import DeviceMemoryError, DriverError, NoDeviceError

_SOURCE = Path(__file__).with_name("fake_cuda.c")
_HEADERS = Path("/usr/local/cuda/include"), *sorted(Path("/usr/local").glob("cuda-*/include"))


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    path = tmp_path_factory.mktemp("cuda") / "libfake_cuda.so"
    found = [folder for folder in _HEADERS if (folder / "cuda.h").is_file()]
    checked = ["-DHAVE_CUDA_H", f"-I{found[-1]}"] if found else []
    command = [compiler, "-shared", "-fPIC", "-O1", *checked, str(_SOURCE), "-o", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return str(path)


@pytest.fixture
def driver(library):
    return CudaDriver(0, LibraryCalls(library))


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
    x = np.arange(12.0).reshape(3, 4)
    array = upload(driver, x, driver.main_stream)
    assert counter(library, "live") == x.nbytes
    np.testing.assert_array_equal(array.get(), x)
    target = driver.allocate(x.nbytes, driver.main_stream)
    driver.copy(target, array.address, x.nbytes, driver.main_stream)
    found = np.empty(12)
    driver.download(found, target, driver.main_stream)
    np.testing.assert_array_equal(found, x.ravel())
    driver.free(target, driver.main_stream)
    del array
    gc.collect()
    assert counter(library, "live") == 0


def launch(driver, x, y, *, block=4, cooperative=False, shared=0):
    module = driver.load(".version 8.0", {})
    function = driver.function(module, "axpy", shared)
    types = ("float32", "float64", "int8", *["pointer", "pointer", "int64", "int64", "int64"] * 2)
    values = [0.5, 4.0, -2]
    for array in (x, y):
        values += [array.memory.address] * 2 + [array.offset, *array.shape, *array.strides]
    sizes = (1, 2, 3), (block, 5, 6)
    driver.launch(function, *sizes, types, values, driver.main_stream, shared=shared, cooperative=cooperative)
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
    driver.begin_capture(driver.main_stream)
    graph = driver.end_capture(driver.main_stream)
    before = counter(library, "replays")
    driver.replay(graph, driver.main_stream)
    assert counter(library, "replays") == before + 1
    driver.begin_capture(driver.main_stream)
    assert driver.end_capture(driver.main_stream, graph) == graph  # has been given other arguments
    driver.begin_capture(driver.main_stream)
    assert driver.end_capture(driver.main_stream, 0x700000000009) == graph  # of other launches: a new one
    driver.drop_graph(graph)
    event, timed = driver.new_event(), driver.new_event(timing=True)
    driver.record(event, driver.main_stream)
    driver.wait(event, driver.main_stream)
    assert driver.elapsed(timed, timed) == 1.5
    driver.drop_event(event)
