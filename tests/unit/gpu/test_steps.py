# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops that the host launches step by step: one step is captured, and replayed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ptx_assembler import report
from simulation import assert_nothing_lives, device_for

import graphc
import graphc.tensor as pt
from graphc.backends.cuda.code import to_ptx
from graphc.graph.tensor.variable import TensorVariable
from graphc.passes.gpu import gpu_batch
from graphc.passes.gpu._kernel import H200
from graphc_runtime.cuda import gemm, plan
from graphc_runtime.cuda.array import upload
from graphc_tools.gpu.simulated import SimulatedDriver

RNG = np.random.default_rng(0)
W, M = RNG.normal(size=(5, 5)) * 0.5, RNG.normal(size=(7, 5))
H = M[0]
h, w, m, n = pt.vector("h"), pt.matrix("w"), pt.matrix("m"), pt.lscalar("n")


def _scan(step: Callable[..., object], **options: object) -> TensorVariable:
    return graphc.scan(step, return_updates=False, **options)


def _rows(last: bool, **options: object) -> list[TensorVariable]:
    rows = _scan(lambda r, s: pt.tanh(pt.sort(r + s @ w)), sequences=[m], outputs_info=[h], **options)
    return [rows[-1] if last else rows]


def _taps(*taps: int) -> TensorVariable:
    first = {"initial": m, "taps": list(taps)}
    return _scan(lambda a, b: pt.tanh(b @ w + a @ w), outputs_info=[first], n_steps=12)


def _nested() -> TensorVariable:
    def inner(row: TensorVariable, state: TensorVariable) -> TensorVariable:
        return _scan(lambda q: pt.tanh(q @ w) + row, outputs_info=[state], n_steps=3)[-1]

    return _scan(inner, sequences=[m], outputs_info=[h])[-1]


def _turns() -> list[TensorVariable]:
    found = graphc.scan(
        lambda a, b: (pt.tanh(b @ w), pt.tanh(a + b)),
        outputs_info=[h, h + 1],
        n_steps=9,
        return_updates=False,
    )
    return [state[-1] for state in found]


def _gradient() -> list[TensorVariable]:
    states = _scan(lambda r, s: pt.tanh(r + s @ w @ w.T), sequences=[m], outputs_info=[h])
    return list(graphc.grad(states[-1].sum(), [w, h]))


# Graphs, how many steps are replayed, and of how many loops.
LOOPS = {
    "all rows": (_rows(last=False), 7),
    "the last row": (_rows(last=True), 7),
    "backwards": (_rows(last=False, go_backwards=True), 7),
    "two taps": ([_taps(-2, -1)], 12),
    "the last of two taps": ([_taps(-2, -1)[-1]], 12),
    "taps with a gap": ([_taps(-3, -1), _taps(-3, -1)[2:, 1]], 12),
    "states that exchange values": (_turns(), 9),
    "a loop in a loop": ([_nested()], 7),
    "gradient": (_gradient(), 14, 2),
    "a state with two axes": ([_scan(lambda s: pt.tanh(s.T @ s @ w), outputs_info=[w], n_steps=5)], 5),
    "a part of the last state": (
        [_scan(lambda s: pt.sort(s @ w), outputs_info=[h], n_steps=n)[-1][2:] * 2],
        9,
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_step_is_captured_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs, steps, *loops = LOOPS[name]
    options = {"on_unused_input": "ignore"}
    f = graphc.function([m, w, h, n], outputs, mode="cuda", **options)
    cpu, driver = graphc.function([m, w, h, n], outputs, **options), device_for(monkeypatch, f)
    for found, expected in zip(f(M, W, H, 9), cpu(M, W, H, 9), strict=True):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-11)
    assert driver.replayed == steps and driver.captured == sum(loops or [1])
    del found
    assert_nothing_lives(driver)


@pytest.mark.parametrize("name", ["the last of two taps", "states that exchange values", "until"])
def test_kernels_that_know_their_step_assemble(name: str, tmp_path: Path) -> None:
    until = _scan(lambda s: (pt.sort(s @ w), graphc.until(s.sum() > 9)), outputs_info=[h], n_steps=n)
    outputs = [until[-1]] if name == "until" else LOOPS[name][0]
    f = graphc.function([m, w, h, n], outputs, mode="cuda", on_unused_input="ignore")
    lines = report(to_ptx(f.ir_stages()["llvm"], "sm_90"), "sm_90", tmp_path)
    spills = [line for line in lines if "spill stores" in line]
    assert spills and all("0 bytes spill stores, 0 bytes spill loads" in line for line in spills)


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 4, 5])
def test_few_steps(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    states = _scan(lambda a, b: (pt.sort(b @ w), a), outputs_info=[h, h * 2], n_steps=n)
    rows = _rows(last=False)[0]
    f = graphc.function([m, w, h, n], [rows, *states], mode="cuda")
    cpu = graphc.function([m, w, h, n], [rows, *states])
    driver = device_for(monkeypatch, f)
    for found, expected in zip(f(M[:steps], W, H, steps), cpu(M[:steps], W, H, steps), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-11)
    assert driver.replayed == (2 * steps if steps >= 4 else 0)


def test_loops_whose_steps_differ_are_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = _scan(
        lambda i, a: pt.sort(m[: i + 1].sum(axis=0) + a),
        sequences=[pt.arange(m.shape[0])],
        outputs_info=[m[0]],
    )
    f = graphc.function([m], parts, mode="cuda")
    driver = device_for(monkeypatch, f)
    np.testing.assert_allclose(f(M), graphc.function([m], parts)(M), rtol=1e-10)
    assert driver.captured == 0 and len(driver.launches) >= 7


def _called(monkeypatch: pytest.MonkeyPatch, most: int) -> tuple[SimulatedDriver, list[tuple[int, int, int]]]:
    """Six calls with the same arrays: graphs made, given other arguments, and launched by each."""
    monkeypatch.setattr(plan, "MOST_LAUNCHES", most)
    f = graphc.function([m, w, h], _rows(last=False), mode="cuda")
    driver = device_for(monkeypatch, f)
    given = [upload(driver, value, driver.main_stream) for value in (M, W, H)]
    out = upload(driver, 0 * M, driver.main_stream)
    wanted = graphc.function([m, w, h], _rows(last=False))(M, W, H)
    counts = []
    for _ in range(6):
        before = driver.captured, driver.updated, driver.replayed
        assert f(*given, out=[out])[0] is out
        np.testing.assert_allclose(out.get(), wanted[0], rtol=1e-10)
        after = driver.captured, driver.updated, driver.replayed
        counts.append(tuple(new - old for new, old in zip(after, before, strict=True)))
    return driver, counts


def test_short_loops_are_part_of_the_graph_of_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    driver, counts = _called(monkeypatch, 1000)
    # The first call captures a step; the second one is captured as a whole, and replayed from then on.
    assert counts == [(1, 0, 7), (1, 0, 1)] + 4 * [(0, 0, 1)]
    # Counts are of what was asked for by name: the last four calls have asked for no kernel.
    assert len(driver.launches) < 100


def test_long_loops_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    _, counts = _called(monkeypatch, 20)
    # A captured call is given up, once; each call replays its loop. Addresses of temporary arrays may differ.
    assert [replayed for *_, replayed in counts] == 6 * [7]
    assert all(captured <= 1 for captured, *_ in counts[2:])


def test_graphs_get_the_arguments_of_other_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """More calls with other arrays than graphs are kept: none is made anew."""
    f = graphc.function([m, w, h], _rows(last=False), mode="cuda")
    cpu, driver = graphc.function([m, w, h], _rows(last=False)), device_for(monkeypatch, f)
    kept = []
    for number in range(12):
        value = M + number
        (found,) = f(value, W, H)
        kept.append(found)
        np.testing.assert_allclose(found, cpu(value, W, H)[0], rtol=1e-10)
    assert driver.captured == 8 and driver.updated == 4
    assert len(driver._graphs) == 8


FORMS = {
    "kept": replace(H200, kept_step=0, product=10**9),
    "streamed": replace(H200, kept_step=10**9, product=10**9),
    "launched": replace(H200, product=-(10**9)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype, gradient", [("float32", False), ("float64", True)])
def test_forms_of_a_loop_with_products_agree(monkeypatch, form, dtype, gradient):
    """Sizes that blocks of rows, groups of threads and parts of the matrix do not divide, and no rows."""
    monkeypatch.setattr(gpu_batch, "H200", FORMS[form])
    x, u = (pt.tensor(name, dtype=dtype, shape=(None,) * k) for name, k in (("x", 3), ("u", 2)))
    states = _scan(lambda r, s, u: pt.tanh(r + s @ u), sequences=[x], outputs_info=[x[0]], non_sequences=[u])
    given = [graphc.grad((states[-1] ** 2).sum(), u), states[0]] if gradient else [states[-1], states]
    given[0] = given[0] + list(FORMS).index(form)  # equal graphs are compiled once
    f = graphc.function([x, u], given, mode="cuda")
    driver, expected = device_for(monkeypatch, f, library=True), graphc.function([x, u], given)
    monkeypatch.setattr(gemm, "LEAST", 1)
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if dtype == "float32" else {"rtol": 1e-10, "atol": 1e-12}
    for steps, rows, size in ((3, 5, 7), (6, 3, 66), (3, 0, 4)):
        values = [RNG.normal(size=(steps, rows, size)).astype(dtype)]
        values.append((RNG.normal(size=(size, size)) * 0.1).astype(dtype))
        for _ in range(3):
            driver.launches.clear()
            driver.products.clear()
            for found, want in zip(f(*values), expected(*values), strict=True):
                np.testing.assert_allclose(np.asarray(found), want, **tolerance)
        blocks = any(name.startswith("recurrent") for name in driver.launches)
        assert blocks == (form != "launched" and rows > 0)
        # A library is asked for products of states that are at another place in each step.
        assert form != "launched" or not rows or driver.products


@pytest.mark.parametrize("until", [False, True])
def test_reductions_in_loops_have_blocks(monkeypatch, until):
    """One thread for each row of a step would wait for memory in each element."""
    x = pt.fmatrix("x")

    def step(s):
        found = pt.special.softmax(s * 1.5, axis=1)
        return (found, graphc.until(pt.max(abs(found - s)) < 1e-3)) if until else found

    y = _scan(step, outputs_info=[x], n_steps=8)[-1]
    f = graphc.function([x], y, mode="cuda")
    driver, value = device_for(monkeypatch, f), RNG.normal(size=(3, 70)).astype("float32")
    for _ in range(2):
        np.testing.assert_allclose(np.asarray(f(value)), graphc.function([x], y)(value), rtol=1e-5)
    assert any(name.startswith("rows") for name in driver.launches)
    kernels = f.ir_stages()["gpu"].partition("func.func")[0].split("gpu.func")[1:]
    assert any("@elementwise" in kernel for kernel in kernels)
    serial = [kernel for kernel in kernels if "@elementwise" in kernel and "iter_args" in kernel]
    assert not serial
