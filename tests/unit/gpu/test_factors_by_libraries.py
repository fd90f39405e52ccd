# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Factors and systems by the vendor's libraries: NumPy's results, the CPU's errors, also without them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from simulation import assert_nothing_lives, device_for

import graphc
import graphc.tensor as pt
import graphc_runtime
from graphc.graph.tensor.variable import TensorVariable
from graphc.passes.gpu import gpu_library
from graphc.passes.gpu._kernel import H200
from graphc_runtime.cuda import executable
from graphc_tools.gpu.kernels import Kernels
from graphc_tools.gpu.simulated import SimulatedDriver

N = 35
Build = Callable[..., Sequence[TensorVariable]]


@pytest.fixture(autouse=True)
def anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches go to libraries, too, however small; the cache has what was compiled otherwise."""
    monkeypatch.setattr(gpu_library, "H200", replace(H200, request=-(1 << 20)))
    monkeypatch.setattr(graphc.config, "cache_dir", "")


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def positive(*shape: int) -> np.ndarray:
    x = normal(*shape)
    return np.asarray(x @ x.swapaxes(-1, -2) + np.eye(shape[-1]))


def general(*shape: int) -> np.ndarray:
    return np.asarray(normal(*shape) + 5 * np.eye(shape[-1]))


def compare(
    monkeypatch: pytest.MonkeyPatch,
    build: Build,
    *values: np.ndarray,
    tolerance: float = 1e-9,
    alone: bool = False,
) -> set[str]:
    """Routines that were asked for; results are those of NumPy, in several calls, and with `alone` without
    libraries, too.
    """
    inputs = [pt.tensor(f"x{i}", dtype=v.dtype.name, shape=(None,) * v.ndim) for i, v in enumerate(values)]
    graph = list(build(*inputs))
    expected = graphc.function(inputs, graph, mode="reference")(*values)
    device = graphc.function(inputs, graph, mode="cuda")
    for library in (True, False)[: 1 + alone]:
        driver = device_for(monkeypatch, device, library=library)
        calls = [[np.asarray(x) for x in device(*values)] for _ in range(3 if library else 1)]
        for found in calls:
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
        assert all(
            x.tobytes() == y.tobytes() for found in calls for x, y in zip(found, calls[0], strict=True)
        )
        if library:
            routines = {asked.routine for asked in driver.requests}
        else:
            assert not driver.requests
        del found, one, other
        assert_nothing_lives(driver)
    return routines


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 2e-4), ("float64", 1e-9)])
def test_factors(monkeypatch: pytest.MonkeyPatch, dtype: str, tolerance: float) -> None:
    """Of both triangles, of batches, of parts of arrays, and where there is no factor."""

    def build(a: TensorVariable) -> Sequence[TensorVariable]:
        L = pt.linalg
        return [
            L.cholesky(a),
            L.cholesky(a[0], lower=False),
            L.cholesky(a[1:, 1:, 1:]),
            L.cholesky(pt.stack([-a[0], a[1]]), on_error="nan"),
        ]

    routines = compare(monkeypatch, build, positive(2, N, N).astype(dtype), tolerance=tolerance, alone=True)
    assert routines == {"potrf"}


@pytest.mark.parametrize("trans", [0, 1])
@pytest.mark.parametrize("lower", [False, True])
def test_triangular_systems(monkeypatch: pytest.MonkeyPatch, lower: bool, trans: int) -> None:
    def build(a: TensorVariable, b: TensorVariable) -> Sequence[TensorVariable]:
        def solve(a: TensorVariable, b: TensorVariable, **options: object) -> TensorVariable:
            return pt.linalg.solve_triangular(a, b, lower=lower, trans=trans, **options)

        return [
            solve(a, b),
            solve(a[0].T, b[0, :, 0]),
            solve(a / 40, b, unit_diagonal=True),
            solve(a * np.array([[[0.0]], [[1.0]]]), b, on_error="nan"),
        ]

    assert compare(monkeypatch, build, general(2, N, N), normal(2, N, 3)) == {"trsm", "trsv"}


def test_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(a: TensorVariable, b: TensorVariable) -> Sequence[TensorVariable]:
        solve = pt.linalg.solve
        return [
            solve(a, b),
            solve(a[0].T, b[0, :, 0]),
            solve(pt.stack([a[0] * 0, a[1]]), b, on_error="nan"),
            *(solve(a, b, assume_a="sym", lower=lower) for lower in (False, True)),
        ]

    assert compare(monkeypatch, build, general(2, N, N), normal(2, N, 3)) == {"getrf", "getrs"}


def test_positive_definite_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(a: TensorVariable, b: TensorVariable) -> Sequence[TensorVariable]:
        factor = pt.linalg.cholesky(a[0])
        return [
            *(pt.linalg.solve(a, b, assume_a="pos", lower=lower) for lower in (False, True)),
            pt.linalg.cho_solve((factor, True), b[0]),
        ]

    assert compare(monkeypatch, build, positive(2, N, N), normal(2, N, 3)) == {"potrf", "trsm"}


def test_inverses_and_determinants(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(a: TensorVariable) -> Sequence[TensorVariable]:
        zero = pt.stack([a[0] * 0, a[1]])
        return [
            pt.linalg.inv(a),
            pt.linalg.det(a / 4),
            *pt.linalg.slogdet(a),
            *pt.linalg.slogdet(-a[1]),
            pt.linalg.det(zero / 4),
            *pt.linalg.slogdet(zero),
        ]

    assert compare(monkeypatch, build, general(2, N, N)) == {"getrf", "getrs"}


def test_gradients_stay_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a Gaussian process: one factor, and systems with it."""

    def build(x: TensorVariable, y: TensorVariable) -> Sequence[TensorVariable]:
        length = pt.exp(x[0, 0] * 0.0)
        distances = ((x[:, None, :] - x[None, :, :]) ** 2).sum(axis=2)
        factor = pt.linalg.cholesky(pt.exp(-distances / length) + 0.1 * pt.eye(x.shape[0]))
        weights = pt.linalg.solve_triangular(factor, y, lower=True)
        loss = (weights**2).sum() / 2 + pt.log(factor.diagonal()).sum()
        return [loss, graphc.grad(loss, x)]

    assert compare(monkeypatch, build, normal(N, 1), normal(N, seed=1)) >= {"potrf", "trsm", "trsv"}


def test_eigenvalues(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the library the host computes them: arrays move, and only then."""

    def build(a: TensorVariable) -> Sequence[TensorVariable]:
        values, vectors = pt.linalg.eigh(pt.exp(a))
        # Vectors may have either sign.
        whole = (vectors * values[:, None, :]) @ vectors.mT
        return [whole, pt.linalg.eigvalsh(a[0], lower=False), graphc.grad((values**3).sum(), a)]

    assert compare(monkeypatch, build, normal(2, N, N) / 9, alone=True) == {"syevd"}


def test_convolutions(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(x: TensorVariable, f: TensorVariable) -> Sequence[TensorVariable]:
        y = pt.nn.conv2d(x[:, ::-1], f, stride=(2, 1), padding=(1, 2), dilation=(1, 2))
        return [y, *graphc.grad((y**2).sum(), [x, f])]

    routines = {"conv2d", "conv2d_input", "conv2d_filters"}
    values = normal(2, 4, 7, 6), normal(6, 4, 3, 2, seed=1)
    assert compare(monkeypatch, build, *values, alone=True) == routines


def test_results_of_another_size_than_the_librarys(monkeypatch: pytest.MonkeyPatch) -> None:
    def same(x: TensorVariable, f: TensorVariable) -> Sequence[TensorVariable]:
        return [pt.signal.convolve2d(x, f, mode="same")]

    assert compare(monkeypatch, same, normal(1, 1), normal(1, 3)) == set()
    assert compare(monkeypatch, same, normal(5, 4), normal(3, 2)) == set()


def test_groups_of_channels_and_rounded_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    x = pt.tensor("x", dtype="float32", shape=(1, 4, 6, None))
    f = pt.tensor("f", dtype="float32", shape=(6, 2, 3, 3))
    values = normal(1, 4, 6, 5).astype("f4"), normal(6, 2, 3, 3, seed=1).astype("f4")
    graph = pt.nn.conv2d(x, f, groups=2)
    with graphc.config.change_flags(matmul_precision="tf32"):
        device = graphc.function([x, f], graph, mode="cuda")
    driver = device_for(monkeypatch, device, library=True)
    np.testing.assert_allclose(device(*values), graphc.function([x, f], graph)(*values), rtol=1e-4, atol=1e-4)
    assert driver.requests[0].named["groups"] == 2 and driver.requests[0].named["short"] == 1
    assert "cuDNN, where it is installed: Conv2d" in str(device.report)


def test_transforms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of rows, of columns, of sizes that are known or not, and of frequencies that no real numbers have."""

    def build(x: TensorVariable) -> Sequence[TensorVariable]:
        half = pt.fft.rfft(x)
        known = pt.specify_shape(x, (6, 8))
        other = half * (1 + 2j)
        columns = pt.fft.fft(known, axis=0)
        return [
            abs(half),
            pt.fft.irfft(other, 8),
            columns.real,
            pt.fft.ifft(other, axis=1).imag,
            graphc.grad((abs(pt.fft.rfft(known)) ** 2).sum(), x),
        ]

    assert compare(monkeypatch, build, normal(6, 8), alone=True) == {"rfft", "irfft", "fft"}


@pytest.mark.parametrize(
    ("solve", "a", "message"),
    [
        (lambda a, b: pt.linalg.cholesky(a), -np.eye(N), "not positive definite"),
        (lambda a, b: pt.linalg.solve(a, b, assume_a="pos"), -np.eye(N), "not positive definite"),
        (pt.linalg.solve, np.zeros((N, N)), "the matrix is singular"),
        (pt.linalg.solve_triangular, np.zeros((N, N)), "the matrix is singular"),
        (lambda a, b: pt.linalg.inv(a), np.zeros((N, N)), "the matrix is singular"),
    ],
)
def test_errors(monkeypatch: pytest.MonkeyPatch, solve: Build, a: np.ndarray, message: str) -> None:
    x, y = pt.matrices("x", "y")
    device = graphc.function([x, y], solve(x, y), mode="cuda", on_unused_input="ignore")
    driver = device_for(monkeypatch, device, library=True)
    for _ in range(3):
        with pytest.raises(np.linalg.LinAlgError, match=re.escape(message)):
            device(a, np.ones((N, 2)))
    assert driver.requests
    assert_nothing_lives(driver)


def test_sizes_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    """One large matrix is for the library; small ones, many of them, and empty ones are for kernels."""
    monkeypatch.setattr(gpu_library, "H200", H200)
    x, y = pt.tensor3("x"), pt.tensor3("y")
    device = graphc.function([x, y], pt.linalg.solve_triangular(x, y), mode="cuda")
    for count, n, k, asked in ((1, 40, 2, 1), (1, 32, 2, 0), (40, 33, 1, 0), (1, 40, 0, 0)):
        driver = device_for(monkeypatch, device, library=True)
        device(general(count, n, n), normal(count, n, k))
        assert len(driver.requests) == asked
    # Where that is known before, there is nothing to choose.
    z = pt.tensor("z", dtype="float64", shape=(None, 32, 32))
    small = graphc.function([z], pt.linalg.cholesky(z), mode="cuda")
    assert "graphc_found" not in small.ir_stages()["gpu"] and "cuSOLVER" not in str(small.report)
    assert "cuBLAS, where it is installed: SolveTriangular" in str(device.report)


def test_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    x = pt.matrix("x")
    f = graphc.function([x], pt.linalg.cholesky(x), mode="cuda")
    path = tmp_path / "factor.gcx"
    graphc.export({"f": f}, path, targets=["cuda"])
    value = positive(N, N)
    for library in ((), ("cublas",), ("cusolver",)):
        driver = SimulatedDriver(Kernels(f.ir_stages()["gpu"]), library=library)
        monkeypatch.setattr(executable, "device", lambda driver=driver: driver)
        loaded = graphc_runtime.load(path, target="cuda").f
        np.testing.assert_allclose(loaded(value), np.linalg.cholesky(value), rtol=1e-9)
        assert len(driver.requests) == ("cusolver" in library)
