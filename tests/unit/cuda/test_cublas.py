# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""cuBLAS by ctypes, against a library in C that has its functions (fake_cublas.c)."""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from graphc.config import config
from graphc_runtime.cuda import gemm, libraries, started_libraries
from graphc_runtime.cuda import schedule as sc
from graphc_runtime.cuda.array import upload
from graphc_runtime.cuda.asks import AskLibrary, Place
from graphc_runtime.cuda.calls import LibraryCalls
from graphc_runtime.cuda.cuda_driver import CudaDriver
from graphc_runtime.cuda.driver import DeviceMemoryError, DriverError
from graphc_runtime.cuda.gemm import Gemm
from graphc_runtime.manifest import ArraySpec, Signature

_spec = importlib.util.spec_from_file_location("programs", Path(__file__).with_name("programs.py"))
programs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(programs)

GEMM = Gemm("float32", "float32", (2, 2, 2), (False, False), (2, 2, 2))
STEP = sc.Product(0, 1, 2, "ik,kj->ij", sc.Block((), (), ()), op="Matmul", line="model.py:3")
CREATE, STREAM, PRODUCT = range(3)


@pytest.fixture
def blas_calls(blas):
    opened = ctypes.CDLL(blas)
    opened.fake_asked.restype = ctypes.c_int64
    yield SimpleNamespace(
        library=opened,
        asked=lambda number: opened.fake_asked(ctypes.c_int64(number)),
        next=lambda kind, status: opened.fake_status(ctypes.c_int64(kind), ctypes.c_int64(status)),
    )
    for kind in (CREATE, STREAM, PRODUCT):
        opened.fake_status(ctypes.c_int64(kind), ctypes.c_int64(0))


@pytest.fixture
def driver(library, blas_calls, monkeypatch):
    monkeypatch.setattr(started_libraries, "_WORKSPACE", 4096)
    made = CudaDriver(0, LibraryCalls(library), lambda name, version: blas_calls.library)
    yield made
    gc.collect()


def matrices(driver, *values):
    return [upload(driver, np.array(value, np.float32), driver.main_stream) for value in values]


def test_columns_come_one_after_the_other(driver):
    assert driver.start_libraries(["cublas"]) and driver.start_libraries(["cublas"])
    a, b, c = matrices(driver, [[1, 2], [3, 4]], [[1, 0], [5, 1]], [[100, 100], [100, 100]])
    driver.ask(GEMM, (a.address, b.address, c.address), driver.main_stream)
    # As rows, these are the transposes of what the library reads.
    expected = (a.get().T @ b.get().T).T + 100
    np.testing.assert_array_equal(c.get(), expected)
    driver.ask(replace(GEMM, adds=False), (a.address, b.address, c.address), driver.main_stream)
    np.testing.assert_array_equal(c.get(), expected - 100)


@pytest.mark.parametrize(
    ("factors", "sums", "short", "way"),
    [
        ("float16", "float32", False, 68),
        ("float32", "float32", False, 68),
        ("float32", "float32", True, 77),
        ("float64", "float64", False, 70),
        ("complex64", "complex64", False, 68),
        ("complex128", "complex128", False, 70),
    ],
)
def test_how_products_are_added_up(driver, blas_calls, factors, sums, short, way):
    driver.start_libraries(["cublas"])
    arrays = [
        upload(driver, np.ones((2, 2), dtype), driver.main_stream) for dtype in (factors, factors, sums)
    ]
    call = Gemm(factors, sums, (2, 2, 2), (False, True), (2, 2, 2), short=short)
    driver.ask(call, tuple(x.address for x in arrays), driver.main_stream)
    assert blas_calls.asked(0) == way
    np.testing.assert_array_equal(arrays[2].get(), np.full((2, 2), 3, sums))


def test_streams_and_their_memory_are_set_when_they_change(driver, blas_calls):
    driver.start_libraries(["cublas"])
    addresses = tuple(x.address for x in matrices(driver, *np.ones((3, 2, 2))))
    before = blas_calls.asked(2)
    for _ in range(3):
        driver.ask(GEMM, addresses, driver.main_stream)
    assert blas_calls.asked(2) == before + 1
    assert blas_calls.asked(4) == driver.main_stream
    main = blas_calls.asked(5)
    assert main and main % 256 == 0 and blas_calls.asked(6) == 4096
    driver.ask(GEMM, addresses, 77)
    assert blas_calls.asked(4) == 77 and blas_calls.asked(5) not in (0, main)
    # What is captured is done in the main stream later, with its memory.
    driver.begin_capture(78)
    driver.ask(GEMM, addresses, 78)
    driver.end_capture(78)
    assert blas_calls.asked(4) == 78 and blas_calls.asked(5) == main
    driver.ask(GEMM, addresses, 78)
    assert blas_calls.asked(5) not in (0, main)
    driver.ask(GEMM, addresses, driver.main_stream)
    assert (blas_calls.asked(4), blas_calls.asked(5)) == (driver.main_stream, main)
    driver.ask(GEMM, addresses, 77)
    ask = driver.prepare([AskLibrary(STEP, GEMM, (Place(0), Place(1), Place(2)))], 3, driver.main_stream)
    ask(addresses)
    assert (blas_calls.asked(4), blas_calls.asked(5)) == (driver.main_stream, main)


def test_prepared_products_of_several_threads(driver):
    driver.start_libraries(["cublas"])
    ask = driver.prepare([AskLibrary(STEP, GEMM, (Place(0), Place(1), Place(2)))], 3, driver.main_stream)
    wrong = []

    def work(seed):
        a, b, c = matrices(driver, np.full((2, 2), seed), np.eye(2), np.zeros((2, 2)))
        for n in range(1, 40):
            ask([a.address, b.address, c.address])
            if c.get().tolist() != [[seed * n] * 2] * 2:
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_errors_say_what_was_asked_for(driver, blas_calls):
    driver.start_libraries(["cublas"])
    addresses = tuple(x.address for x in matrices(driver, *np.ones((3, 2, 2))))
    ask = driver.prepare([AskLibrary(STEP, GEMM, (Place(0), Place(1), Place(2)))], 3, driver.main_stream)
    blas_calls.next(PRODUCT, 8)
    with pytest.raises(
        DriverError, match=r"architectural feature .cublasGemmEx, status 8. for 2 by 2 times"
    ) as e:
        ask(addresses)
    assert str(e.value).endswith("in: product for Matmul\n  made at model.py:3") and e.value.code == 8
    blas_calls.next(PRODUCT, 3)
    many = Gemm("float32", "float32", (1, 1, 1), (False, False), (1, 1, 1), 2, (1, 1, 1))
    with pytest.raises(DeviceMemoryError, match=r"cublasGemmStridedBatchedEx, status 3. for 2 times 1 by 1"):
        driver.ask(many, addresses, driver.main_stream)
    blas_calls.next(STREAM, 1)
    with pytest.raises(DriverError, match="status 1"):
        driver.ask(GEMM, addresses, 79)
    # The stream is set again after that.
    driver.ask(GEMM, addresses, 79)
    assert blas_calls.asked(4) == 79 and blas_calls.asked(5)


def test_a_library_that_does_not_start(driver, blas_calls, library, monkeypatch):
    blas_calls.next(CREATE, 1)
    with pytest.raises(DriverError, match=r"cublasCreate, status 1.; GRAPHC_CUBLAS=0 does without it"):
        driver.start_libraries(["cublas"])
    with pytest.raises(DriverError, match="has not been started"):
        driver.ask(GEMM, (0, 0, 0), driver.main_stream)
    monkeypatch.setattr(started_libraries, "_WORKSPACE", 1 << 21)
    with pytest.raises(
        DeviceMemoryError, match=r"2,097,152 bytes[^$]*intermediate results of cuBLAS; GRAPHC_CUBLAS"
    ):
        driver.start_libraries(["cublas"])
    old = CudaDriver(0, LibraryCalls(library), lambda name, version: ctypes.CDLL(library))
    with pytest.raises(DriverError, match=r"of CUDA 12 or newer .*cublas.*; GRAPHC_CUBLAS=0"):
        old.start_libraries(["cublas"])


def test_without_a_library_or_where_it_is_switched_off(driver, library):
    seen = []
    none = CudaDriver(0, LibraryCalls(library), lambda name, version: seen.append((name, version)))
    assert not none.start_libraries(["cublas"]) and seen == [("cublas", 12040)]
    with config.change_flags(cublas=False):
        assert not driver.start_libraries(["cublas"])
    assert driver.start_libraries(["cublas"])


def test_the_setting_of_the_environment(monkeypatch):
    for value, expected in (("0", False), ("false", False), ("1", True), ("", True)):
        monkeypatch.setattr(libraries._Settings, "are_used", {})
        monkeypatch.setenv("GRAPHC_CUBLAS", value)
        assert libraries.is_enabled("cublas") is expected
    monkeypatch.setattr(libraries._Settings, "are_used", {})
    monkeypatch.setenv("GRAPHC_CUBLAS", "maybe")
    with pytest.raises(ValueError, match=r"GRAPHC_CUBLAS is 'maybe'"):
        libraries.is_enabled("cublas")


def test_where_the_library_is_looked_for(blas, tmp_path, monkeypatch):
    package = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: package if name == "nvidia" else None)
    opened = []

    def load(name):
        opened.append(str(name))
        if not Path(name).is_file():
            raise OSError(f"{name}: cannot open shared object file")
        return name

    monkeypatch.setattr(libraries.ctypes, "CDLL", load)
    find = partial(libraries.find_library.__wrapped__, "cublas")
    assert find(13000) is None
    assert opened == ["libcublas.so.13", "libcublas.so.12"]
    assert find(11080) is None and len(opened) == 2
    for folder, name in (("cublas/lib", "libcublas.so.12"), ("cu13/lib", "libcublas.so.13")):
        place = tmp_path / folder
        place.mkdir(parents=True)
        (place / name).write_bytes(b"")
    assert find(13000) == str(tmp_path / "cu13/lib/libcublas.so.13")
    # One that is newer than the driver does not start.
    assert find(12090) == str(tmp_path / "cublas/lib/libcublas.so.12")
    (tmp_path / "cublas/lib/libcublasLt.so.12").write_bytes(b"")
    del opened[:]
    find(12090)
    assert [Path(name).name for name in opened] == ["libcublasLt.so.12", "libcublas.so.12"]

    def fail(name):
        raise OSError("wrong ELF class")

    monkeypatch.setattr(libraries.ctypes, "CDLL", fail)
    with pytest.raises(
        DriverError, match=r"libcublas.so.12, but does not load: wrong ELF class; GRAPHC_CUBLAS=0"
    ):
        find(12090)


def multiplies(driver):
    """c = c0 + a @ b; without a library, a kernel that there is not."""
    steps = programs.Steps(4)
    one = steps.number(1)
    steps.steps.append(sc.Copy(2, 3))
    launch = sc.Launch("none", (one, one, one), (one, one, one), (0, 1, 3), op="n0")
    kernels = sc.Block((), (launch,), ())
    steps.steps.append(sc.Product(0, 1, 3, "ik,kj->ij", kernels, op="Matmul", line="model.py:3"))
    specs = [ArraySpec("float32", (None, None), name) for name in "abc"]
    shapes = programs.Steps(3)
    sizes = [shapes.new(sc.Dim, 2, axis) for axis in (0, 1)]
    signature = Signature(tuple(specs), outputs=(ArraySpec("float32", (None, None)),))
    return programs.executable(steps.program(), signature, shapes.program(*sizes), driver=driver)


def test_calls_that_are_planned_multiply_too(driver, blas_calls, monkeypatch):
    monkeypatch.setattr(gemm, "LEAST", 12)
    f = multiplies(driver)
    call = f.bind()
    rng = np.random.default_rng(0)
    before = blas_calls.asked(1)
    for _ in range(4):
        a, b, c = (rng.normal(size=shape).astype(np.float32) for shape in ((2, 3), (3, 4), (2, 4)))
        np.testing.assert_allclose(np.asarray(call(a, b, c)), c + a @ b, rtol=1e-5)
    assert blas_calls.asked(1) == before + 4
    assert f.plans.libraries == {"cublas"} and any(f.plans._found.values())
    blas_calls.next(PRODUCT, 8)
    with pytest.raises(DriverError, match=r"status 8[^$]*in: product for Matmul\n  made at model.py:3"):
        call(a, b, c)
    # One multiplication less is for the kernel, which the driver does not know.
    with pytest.raises(DriverError, match=r"for the kernel 'none'"):
        call(a[:, :1].copy(), b[:1], c)


def test_without_the_library_kernels_are_launched(library, monkeypatch):
    monkeypatch.setattr(gemm, "LEAST", 1)
    driver = CudaDriver(0, LibraryCalls(library), lambda name, version: None)
    x = np.ones((2, 2), np.float32)
    with pytest.raises(DriverError, match=r"for the kernel 'none'[^$]*in: launch of none"):
        multiplies(driver).bind()(x, x, x)
    gc.collect()
