# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of every class on a device, arrays that are shared with other libraries, errors, graphs."""

from __future__ import annotations

import gc
from pathlib import Path

import gpu_cases
import numpy as np
import pytest

import graphc
import graphc.tensor as pt
import graphc_runtime
from graphc_runtime.cuda.array import from_dlpack, from_interface, upload
from graphc_runtime.cuda.cuda_driver import CudaDriver
from graphc_runtime.cuda.driver import DeviceMemoryError

CASES = gpu_cases.CASES
_TOLERANCES = {"float16": 2e-2, "float32": 2e-5, "complex64": 2e-5}


def exported(function: graphc.function.types.Function, folder: Path, target: str = "cuda"):
    """The function, read from a file with kernels for devices."""
    path = folder / "function.gcx"
    graphc.export({"function": function}, path, targets=[target])
    return graphc_runtime.load(path, target=target).function


@pytest.mark.parametrize("name", CASES)
def test_kernels_compute_what_the_cpu_does(driver: CudaDriver, name: str, tmp_path: Path) -> None:
    case = CASES[name]
    inputs, outputs = case.graph()
    f = graphc.function(inputs, outputs, mode="fast_run")
    on_device = exported(f, tmp_path)
    for shapes in case.shapes:
        values = case.values(shapes)
        wanted = f(*values)
        # The first call is asked for step by step, the second one is planned, later ones may be captured.
        for _ in range(4):
            for found, expected in zip(on_device(*values), wanted, strict=True):
                tolerance = _TOLERANCES.get(str(expected.dtype), 1e-12)
                np.testing.assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=tolerance * 10)


@pytest.mark.parametrize("n", [1 << 20, (1 << 24) + 3])
def test_large_arrays(driver: CudaDriver, n: int, tmp_path: Path) -> None:
    x = pt.fvector("x")
    f = exported(graphc.function([x], [pt.tanh(x) * 2, pt.sum(x)], mode="fast_run"), tmp_path)
    value = np.random.default_rng(0).normal(size=n).astype(np.float32)
    mapped, total = f(value)
    np.testing.assert_allclose(np.asarray(mapped), 2 * np.tanh(value.astype(float)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(float(total), value.sum(dtype=np.float64), rtol=1e-4, atol=1)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("across", [False, True])
def test_large_products(driver: CudaDriver, dtype: str, across: bool, tmp_path: Path) -> None:
    a, b = (pt.tensor(name, dtype=dtype, shape=(None,) * 3) for name in "ab")
    f = graphc.function([a, b], (a.mT if across else a) @ b, mode="fast_run")
    rng = np.random.default_rng(0)
    values = [rng.integers(-3, 4, shape).astype(dtype) for shape in ((2, 160, 160), (2, 160, 200))]
    left = values[0].astype("complex128")
    expected = (left.swapaxes(1, 2) if across else left) @ values[1].astype("complex128")
    found: dict[bool, list[bytes]] = {}
    for library in (False, True):
        with graphc.config.change_flags(cublas=library):
            on_device = exported(f, tmp_path)
            results = [np.asarray(on_device(*values)) for _ in range(4)]
        # Whole numbers, which all ways to add them up give exactly.
        np.testing.assert_array_equal(results[0], expected.astype(dtype))
        found[library] = [result.tobytes() for result in results]
        assert len(set(found[library])) == 1
    if not driver.start_libraries(["cublas"]):
        pytest.skip("cuBLAS is not installed: the products were computed by kernels twice")


def test_results_are_the_same_in_every_run(driver: CudaDriver, tmp_path: Path) -> None:
    x = pt.fmatrix("x")
    f = exported(graphc.function([x], [pt.sum(x), pt.sum(x, axis=0), pt.sum(x, axis=1)]), tmp_path)
    value = upload(driver, np.random.default_rng(0).normal(size=(999, 3001)).astype("f4"), driver.main_stream)
    first = [result.get() for result in f(value)]
    for _ in range(20):
        for found, expected in zip(f(value), first, strict=True):
            np.testing.assert_array_equal(found.get(), expected)


def test_shared_variables_stay_there(driver: CudaDriver, tmp_path: Path) -> None:
    x, w = pt.vector("x"), graphc.shared(np.zeros(1000), name="w")
    f = exported(graphc.function([x], (w * x).sum(), updates={w: w + x}), tmp_path)
    x_value = np.linspace(0, 1, 1000)
    for i in range(50):
        np.testing.assert_allclose(float(f(x_value)), i * (x_value**2).sum(), rtol=1e-12)
    np.testing.assert_allclose(f.state["w"], 50 * x_value, rtol=1e-12)


def test_out_of_memory_leaves_the_device_usable(driver: CudaDriver) -> None:
    free, _ = driver.memory()
    with pytest.raises(DeviceMemoryError, match="bytes were asked for"):
        driver.allocate(4 * free + (1 << 40), driver.main_stream)
    array = upload(driver, np.arange(3.0), driver.main_stream)
    np.testing.assert_array_equal(array.get(), np.arange(3.0))


def test_memory_is_given_back(driver: CudaDriver, tmp_path: Path) -> None:
    x = pt.fmatrix("x")
    f = exported(graphc.function([x], pt.special.softmax(x.T, axis=1) @ x), tmp_path)
    value = upload(driver, np.ones((512, 512), np.float32), driver.main_stream)
    f(value).synchronise()
    before, _ = driver.memory()
    for _ in range(200):
        f(value)
    gc.collect()
    driver.synchronise(driver.main_stream)
    assert before - driver.memory()[0] < 64 << 20


def test_cupy_shares_arrays(driver: CudaDriver) -> None:
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    array = upload(driver, np.arange(6.0).reshape(2, 3), driver.main_stream)
    theirs = cupy.asarray(array)
    assert theirs.data.ptr == array.address
    theirs *= 2
    cupy.cuda.Device().synchronize()
    np.testing.assert_array_equal(array.get(), 2 * np.arange(6.0).reshape(2, 3))
    back = from_interface(driver, cupy.arange(5.0), driver.main_stream)
    np.testing.assert_array_equal(back.get(), np.arange(5.0))


def test_torch_shares_arrays(driver: CudaDriver) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    array = upload(driver, np.arange(6, dtype=np.float32), driver.main_stream)
    theirs = torch.from_dlpack(array)
    assert theirs.data_ptr() == array.address and theirs.device.type == "cuda"
    np.testing.assert_array_equal(theirs.cpu().numpy(), np.arange(6))
    back = from_dlpack(driver, torch.arange(4.0, device="cuda"), driver.main_stream)
    np.testing.assert_array_equal(back.get(), np.arange(4))


def test_jax_shares_arrays(driver: CudaDriver) -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    if jax.default_backend() != "gpu":
        pytest.skip("this JAX has no CUDA")
    array = upload(driver, np.arange(6, dtype=np.float32), driver.main_stream)
    np.testing.assert_array_equal(np.asarray(jax.dlpack.from_dlpack(array)), np.arange(6))


def test_what_has_no_kernel_is_computed_on_the_host(driver: CudaDriver) -> None:
    x = pt.matrix("x")
    f = graphc.function([x], pt.linalg.eigvalsh(x @ x.T) * 2, mode="cuda")
    value = np.random.default_rng(0).normal(size=(20, 20))
    expected = 2 * np.linalg.eigvalsh(value @ value.T)
    for _ in range(3):
        np.testing.assert_allclose(np.asarray(f(value)), expected, rtol=1e-10)
