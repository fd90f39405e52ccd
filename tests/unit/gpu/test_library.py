# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products by a library where there is one: the same results as of kernels, whatever the layout."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from gpu_cases import CASES
from simulation import asked, assert_nothing_lives, device_for

import graphc
import graphc.tensor as pt
import graphc_runtime
from graphc.function.types import Function
from graphc.graph.tensor.variable import TensorVariable
from graphc_runtime.cuda import executable, gemm
from graphc_runtime.cuda.array import upload
from graphc_runtime.cuda.driver import DriverError
from graphc_tools.gpu.kernels import Kernels
from graphc_tools.gpu.simulated import SimulatedDriver

PRODUCTS = ("matrix product", "product of halves", "products of a batch", "complex products")
_TOLERANCE = {"float16": 1e-2, "float32": 2e-5, "complex64": 2e-5, "float64": 1e-11, "complex128": 1e-11}
Graph = Callable[..., TensorVariable]


@pytest.fixture(autouse=True)
def all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small products go to the library, too."""
    monkeypatch.setattr(gemm, "LEAST", 1)


def normal(*shape: int, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    value = rng.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        value = value + 1j * rng.normal(size=shape)
    return value.astype(dtype)


def of(build: Graph, *values: np.ndarray, mode: str = "cuda") -> Function:
    inputs = [pt.tensor(f"x{i}", dtype=v.dtype.name, shape=(None,) * v.ndim) for i, v in enumerate(values)]
    return graphc.function(inputs, build(*inputs), mode=mode)


def compare(monkeypatch: pytest.MonkeyPatch, build: Graph, *values: np.ndarray) -> SimulatedDriver:
    """Of the device with a library, on which results are those of the CPU, and of the device without."""
    expected = of(build, *values, mode="fast_run")(*values)
    tolerance = _TOLERANCE[expected.dtype.name]
    for library in (False, True):
        f = of(build, *values)
        driver = device_for(monkeypatch, f, library=library)
        found = [np.asarray(f(*values)) for _ in range(3)]
        np.testing.assert_allclose(found[0], expected, rtol=tolerance, atol=tolerance)
        assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()
        assert library or not driver.products
    assert_nothing_lives(driver)
    return driver


@pytest.mark.parametrize("name", PRODUCTS)
def test_cases_of_products(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    case = CASES[name]
    inputs, outputs = case.graph()
    cpu, device = graphc.function(inputs, outputs), graphc.function(inputs, outputs, mode="cuda")
    driver = device_for(monkeypatch, device, library=True)
    for shapes in case.shapes:
        values = case.values(shapes)
        before = len(driver.launches)
        for found, expected in zip(device(*values), cpu(*values), strict=True):
            tolerance = _TOLERANCE[expected.dtype.name]
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
        is_there = all(map(math.prod, shapes))
        assert is_there != any("product" in kernel for kernel in driver.launches[before:])
    del found
    assert_nothing_lives(driver)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("across", [(False, False), (False, True), (True, False), (True, True)])
def test_transposes_are_read_as_they_are(
    monkeypatch: pytest.MonkeyPatch, dtype: str, across: tuple[bool, bool]
) -> None:
    def build(a: TensorVariable, b: TensorVariable) -> TensorVariable:
        return (a.T if across[0] else a) @ (b.T if across[1] else b)

    left, right = ((3, 4)[:: -1 if across[0] else 1], (4, 5)[:: -1 if across[1] else 1])
    driver = compare(monkeypatch, build, normal(*left, dtype=dtype), normal(*right, dtype=dtype, seed=1))
    assert {call.factors for call in driver.products} == {dtype}
    # Rows of C are columns to the library: the other side comes first.
    assert {call.transposed for call in driver.products} == {across[::-1]}


@pytest.mark.parametrize(
    ("build", "shapes", "is_taken"),
    [
        (lambda a, b: a[1:, 2:6] @ b, [(5, 9), (4, 3)], True),
        (lambda a, b: a[::2] @ b[:, 1:], [(6, 4), (4, 3)], True),
        (lambda a, b: a[:, ::2] @ b, [(3, 8), (4, 3)], None),
        (lambda a, b: a[::-1] @ b, [(3, 4), (4, 3)], None),
        (lambda a, b: a @ b, [(2, 3, 4), (2, 4, 5)], True),
        (lambda a, b: pt.specify_shape(a, (1, None, None)) @ b, [(1, 3, 4), (2, 4, 5)], True),
        (lambda a, b: a @ b, [(3, 4), (2, 4, 5)], True),
        (lambda a, b: a @ b, [(2, 3, 4), (4, 5)], True),
        (lambda a, b: a.transpose(1, 2, 0) @ b, [(4, 2, 3), (2, 4, 5)], None),
        (lambda a, b: a.transpose(1, 0, 2) @ b, [(3, 2, 4), (2, 4, 5)], True),
        (lambda a, b: a @ b.mT, [(2, 2, 3, 4), (2, 2, 5, 4)], True),
        (lambda a, b: (a @ b).T, [(3, 4), (4, 5)], True),
        (lambda a, b: pt.concatenate([a @ b, b], axis=1), [(3, 3), (3, 2)], True),
    ],
)
def test_parts_and_batches(
    monkeypatch: pytest.MonkeyPatch, build: Graph, shapes: list[tuple[int, ...]], is_taken: bool | None
) -> None:
    driver = compare(monkeypatch, build, *(normal(*s, seed=i) for i, s in enumerate(shapes)))
    # What has no distance between columns is a copy for the kernels, or stays with them.
    assert is_taken is None or bool(driver.products) == is_taken


@pytest.mark.parametrize("shapes", [((0, 4), (4, 5)), ((3, 0), (0, 5)), ((3, 4), (4, 0)), ((0, 0), (0, 0))])
def test_products_without_elements_are_no_business_of_the_library(
    monkeypatch: pytest.MonkeyPatch, shapes: tuple[tuple[int, int], tuple[int, int]]
) -> None:
    driver = compare(monkeypatch, lambda a, b: a @ b, *(normal(*shape) for shape in shapes))
    assert not driver.products


def test_integers_are_left_to_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    a = np.arange(12).reshape(3, 4)
    f = of(lambda x, y: x @ y, a, a.T.copy())
    driver = device_for(monkeypatch, f, library=True)
    np.testing.assert_array_equal(f(a, a.T.copy()), a @ a.T)
    assert not driver.products and "graphc.product" not in f.ir_stages()["gpu"]
    assert "cuBLAS" not in str(f.report)


def test_small_products_have_no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemm, "LEAST", 1 << 21)
    for n, is_large in ((127, False), (128, True)):
        a, b = (pt.tensor("a", dtype="float32", shape=(rows, 128)) for rows in (n, 128))
        f = graphc.function([a, b], a @ b, mode="cuda")
        assert ("graphc.product" in f.ir_stages()["gpu"]) == is_large
        assert ("cuBLAS, where it is installed: Matmul at" in str(f.report)) == is_large
    value = normal(6, 6)
    g = of(lambda x: x @ x, value)
    driver = device_for(monkeypatch, g, library=True)
    np.testing.assert_allclose(g(value), value @ value, rtol=1e-4)
    assert not driver.products


def test_what_is_added_to_a_product(monkeypatch: pytest.MonkeyPatch) -> None:
    values = normal(3, 4), normal(4, 5, seed=1), normal(3, 5, seed=2)
    driver = compare(monkeypatch, lambda a, b, c: c * 2 + a @ b + (a @ b).sum(axis=0), *values)
    assert driver.products


def test_rounded_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    values = normal(3, 4), normal(4, 5, seed=1)
    with graphc.config.change_flags(matmul_precision="tf32"):
        f = of(lambda a, b: a @ b, *values)
        driver = device_for(monkeypatch, f, library=True)
        found = np.asarray(f(*values))
    np.testing.assert_allclose(found, values[0] @ values[1], rtol=1e-2, atol=1e-3)
    assert np.abs(found - values[0] @ values[1]).max() > 1e-6
    assert driver.products[0].short


def test_calls_that_repeat_are_planned_and_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(a: TensorVariable, b: TensorVariable) -> TensorVariable:
        return pt.exp(a @ b) @ b.T

    values = normal(3, 4), normal(4, 5, seed=1)
    f, expected = of(build, *values), of(build, *values, mode="fast_run")(*values)
    driver = device_for(monkeypatch, f, library=True)
    given = [upload(driver, value, driver.main_stream) for value in values]
    out = f(*given)
    found = [np.asarray(f(*given, out=out)).tobytes() for _ in range(5)]
    assert len(set(found)) == 1
    np.testing.assert_allclose(out, expected, rtol=1e-4)
    assert driver.captured == 1 and driver.replayed >= 3
    # A graph launches what it holds: the library is not asked again.
    assert len(driver.products) < 2 * 6
    # The same graph gets the arguments of other calls, if products are the same.
    other = [upload(driver, value + 1, driver.main_stream) for value in values]
    second = f(*other)
    for _ in range(3):
        f(*other, out=second)
    np.testing.assert_allclose(
        second, of(build, *values, mode="fast_run")(*[v + 1 for v in values]), rtol=1e-4
    )


def test_what_is_asked_for_is_the_same_with_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    values = normal(3, 4), normal(4, 5, seed=1)
    f = of(lambda a, b: pt.tanh(a[:, 1:] @ b[1:]), *values)
    driver = device_for(monkeypatch, f, library=True)
    given = [upload(driver, value, driver.main_stream) for value in values]
    direct, *planned = (asked(monkeypatch, driver, lambda: [f(*given)], given) for _ in range(3))
    assert [ask[0] for ask in direct if isinstance(ask[0], gemm.Gemm)] == [
        gemm.Gemm("float32", "float32", (5, 3, 3), (False, False), (5, 4, 5), adds=False)
    ]
    assert planned == 2 * [direct] and driver.prepared == 1


@pytest.mark.parametrize(
    ("step", "calls"),
    [
        # The host launches each step, which reads a number.
        (lambda state, b: pt.tanh(state @ b) + state.sum(), 6),
        # One step is captured: its kernels find the states of the step, which a library cannot.
        (lambda state, b: pt.tanh(state @ state + b), 0),
    ],
)
def test_products_in_loops(monkeypatch: pytest.MonkeyPatch, step: Graph, calls: int) -> None:
    def build(a: TensorVariable, b: TensorVariable) -> TensorVariable:
        rows = graphc.scan(
            step, outputs_info=[a], non_sequences=[b], n_steps=6, return_updates=False, strict=True
        )
        return rows[-1]

    driver = compare(monkeypatch, build, normal(3, 3), normal(3, 3, seed=1))
    assert len(driver.products) == 3 * calls
    assert (driver.replayed > 0) == (calls == 0)


def test_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    values = normal(3, 4), normal(4, 5, seed=1)
    f = of(lambda a, b: a @ b, *values)
    path = tmp_path / "product.gcx"
    graphc.export({"f": f}, path, targets=["cuda"])
    for library in (False, True):
        driver = SimulatedDriver(Kernels(f.ir_stages()["gpu"]), library=library)
        monkeypatch.setattr(executable, "device", lambda driver=driver: driver)
        loaded = graphc_runtime.load(path, target="cuda").f
        np.testing.assert_allclose(np.asarray(loaded(*values)), values[0] @ values[1], rtol=1e-4)
        assert bool(driver.products) == library


def test_errors_name_the_operation_and_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    values = normal(3, 4), normal(4, 5, seed=1)
    f = of(lambda a, b: a @ b, *values)
    driver = device_for(monkeypatch, f, library=True)

    def fail(*arguments: object) -> None:
        raise DriverError("an absent device architectural feature", 8, "cublasGemmEx")

    monkeypatch.setattr(driver, "ask", fail)
    for _ in range(3):
        with pytest.raises(
            DriverError, match=r"feature\n  in: product for Matmul\n  made at .*test_library.py"
        ):
            f(*values)
