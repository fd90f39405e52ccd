# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs of which a part has no kernel: what runs where, what is moved, and what errors say."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from simulation import assert_nothing_lives, device_for

import graphc
import graphc.tensor as pt
import graphc_runtime
from graphc.function.types import Function
from graphc.passes.gpu.gpu_placement import second_side
from graphc_runtime.cuda import schedule as sc
from graphc_tools.gpu.kernels import Kernels
from graphc_tools.gpu.simulated import SimulatedDriver

RNG = np.random.default_rng(0)


def _moves(function: Function) -> tuple[int, int, int]:
    """How many downloads, functions of the host and uploads a call has, all conditions apart."""
    steps = function.executor.executable.code.schedule.main.steps
    kinds = (sc.Download, sc.HostCall, sc.Upload)
    down, calls, up = (sum(isinstance(step, kind) for step in steps) for kind in kinds)
    return down, calls, up


def _agrees(function: Function, inputs: list, outputs: list, *values: object) -> None:
    cpu = graphc.function(inputs, outputs, mode="fast_compile")
    for found, expected in zip(function(*values), cpu(*values), strict=True):
        assert found.dtype == expected.dtype and found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


def test_factorizations_between_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    x, b, y = pt.matrix("x"), pt.vector("b"), pt.vector("y")
    values = pt.linalg.pinv(pt.exp(x) @ pt.exp(x).T + 5 * pt.eye(4))[0]
    outputs = [values * 2 + b, pt.special.j0(y + 1) * 3]
    f = graphc.function([x, b, y], outputs, mode="cuda")
    driver = device_for(monkeypatch, f)
    _agrees(f, [x, b, y], outputs, RNG.normal(size=(4, 4)), RNG.normal(size=4), RNG.normal(size=5))
    assert _moves(f) == (2, 1, 2)
    assert_nothing_lives(driver)
    report = str(f.report)
    for op, reason in (("pinv", "pinv has no kernel"), ("j0", "j0 is code of SciPy")):
        assert f"runs on the host: {op} ({reason}) at {__file__}" in report


def test_failures_on_the_host_name_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    x, i = pt.tensor("x", dtype="complex128", shape=(None, None)), pt.lvector("i")
    f = graphc.function([x, i], [pt.linalg.cholesky(x)[i]], mode="cuda")
    driver = device_for(monkeypatch, f)
    text = rf"not positive definite\n  operands: x\n  made at {__file__}"
    with pytest.raises(np.linalg.LinAlgError, match=text):
        f(-np.eye(3), [0])
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
        f(np.eye(3), [3])
    assert_nothing_lives(driver)


def test_transposes_slices_numbers_and_dtypes(monkeypatch: pytest.MonkeyPatch) -> None:
    x, n = pt.matrix("x"), pt.lscalar("n")
    c, m = (
        pt.tensor(name, dtype=dtype, shape=(None,)) for name, dtype in (("c", "complex64"), ("m", "int8"))
    )
    outputs = [
        pt.linalg.det(x[:2, 1:3].T),
        pt.sort(pt.concatenate([x[0], x[1, ::2]])),
        pt.argsort(x.T, axis=0)[:n],
        pt.linalg.norm(c.imag + pt.constant(np.array([1 + 2j, 3], "complex64")).real.sum()),
        pt.argmax(m > 2),
        pt.sort(c),
        pt.sort(x[:0], axis=1),
    ]
    f = graphc.function([x, n, c, m], outputs, mode="cuda")
    device_for(monkeypatch, f)
    values = [RNG.normal(size=(3, 4)), 2, np.array([1j, 2], "complex64"), np.array([1, 5, 2, 7], np.int8)]
    _agrees(f, [x, n, c, m], outputs, *values)


def test_loops_and_conditionals_go_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    x, c = pt.tensor3("x"), pt.lscalar("c")
    rows = graphc.scan(lambda a, s: pt.special.j0(pt.dot(a, s)), [x], [pt.ones(3)], return_updates=False)
    outputs = [rows * 2, graphc.ifelse(pt.gt(c, 0), pt.special.j0(rows[-1] + 1), rows[0] - 1)]
    f = graphc.function([x, c], outputs, mode="cuda")
    device_for(monkeypatch, f)
    value = RNG.normal(size=(4, 3, 3)) + 3 * np.eye(3)
    for condition in (0, 1):
        _agrees(f, [x, c], outputs, value, condition)


def test_draws_are_those_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(mode: str) -> Function:
        stream = pt.random.RandomStream(7)
        return graphc.function(
            [], [stream.normal(0, 1, size=5) * 2, stream.integers(0, 9, size=3)], mode=mode
        )

    f, cpu = made("cuda"), made("fast_compile")
    device_for(monkeypatch, f)
    for _ in range(2):
        for found, expected in zip(f(), cpu(), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_files_have_their_functions_of_the_host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    x = pt.matrix("x")
    f = graphc.function([x], [pt.linalg.pinv(x + 1) * 2], mode="cuda")
    path = graphc.export({"f": f}, tmp_path / "f.gcx", targets=["cuda"])
    device_for(monkeypatch, f)
    model = graphc_runtime.load(path, target="cuda")
    value = RNG.normal(size=(3, 3)) + 3 * np.eye(3)
    (found,) = model.f(value)
    np.testing.assert_allclose(np.asarray(found), np.linalg.inv(value + 1) * 2, rtol=1e-10)


def test_operations_in_python_get_arrays_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[type] = []

    def reverse(x: np.ndarray) -> np.ndarray:
        given.append(type(x))
        return np.ascontiguousarray(x[::-1])

    x = pt.vector("x")
    reversed_ = graphc.as_op(itypes=[x.type], otypes=[x.type])(reverse)
    f = graphc.function([x], reversed_(x * 2) + 1, mode="cuda")
    for part in f.executor.segments():
        kernels = Kernels(dict(part.ir_stages())["gpu"])
        monkeypatch.setattr(part.executable, "_driver", SimulatedDriver(kernels))
    found = f(np.arange(4.0))
    assert given == [np.ndarray] and type(found) is np.ndarray
    np.testing.assert_array_equal(found, [7, 5, 3, 1])


def test_a_cut_moves_as_few_values_as_possible() -> None:
    """Against all ways to place the operations of random programs."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        count = int(rng.integers(3, 9))
        users: dict[int, list[int]] = {}
        for user in range(1, count):
            for producer in {int(k) for k in rng.integers(0, user, 2)}:
                users.setdefault(producer, []).append(user)
        fixed = {0: False, **{int(k): bool(rng.random() < 0.6) for k in rng.integers(1, count, 2)}}

        def cost(host: set[int], users: dict[int, list[int]] = users) -> int:
            moves = sum(
                any((user in host) != (producer in host) for user in use) for producer, use in users.items()
            )
            return 1000 * moves

        free = [node for node in range(count) if node not in fixed]
        best = min(
            cost({k for k, v in fixed.items() if v} | {k for k, v in zip(free, sides, strict=True) if v})
            + sum(sides)
            for sides in product((0, 1), repeat=len(free))
        )
        found = second_side(fixed, users.items())
        assert all((node in found) == place for node, place in fixed.items())
        assert cost(found) + sum(node in found for node in free) == best
