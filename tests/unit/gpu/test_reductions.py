# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions along rows and columns: every division of threads among rows, with and without vectors."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from simulation import device_for

import graphc
import graphc.tensor as pt
from graphc.backends.cuda import pipeline
from graphc.backends.cuda.code import to_ptx

# Short and long rows, with sizes that are and are not multiples of a vector, and more rows than a block has.
SHAPES = [(70, 3), (5, 8), (33, 64), (9, 256), (3, 1028), (2, 1031), (300, 2), (0, 5), (4, 0)]
REDUCTIONS = {
    "sums": lambda x: [x.sum(axis=1), x.sum(axis=0), x.sum()],
    "extremes": lambda x: [pt.max(pt.concatenate([x, x[:, :1] * 0], axis=1), axis=1)] if x.ndim else [],
    "moments": lambda x: [x.var(axis=1), x.mean(axis=1), ((x - 1) ** 2).sum()],
    "softmax": lambda x: [pt.special.softmax(x, axis=1)],
    "logarithms": lambda x: [pt.logsumexp(x, axis=1), pt.special.log_softmax(x, axis=1)],
    "layer norm": lambda x: [(x - x.mean(axis=1, keepdims=True)) / (1 + x.var(axis=1, keepdims=True))],
    "elementwise after all": lambda x: [x / (1 + (x**2).sum()), x.sum(axis=1, keepdims=True) * x],
    "products of batches": lambda x: [
        pt.matmul(x[None], pt.exp(x.sum(axis=0))[None, :, None]),
        pt.matmul(pt.exp(x.sum(axis=0))[None, None], pt.stack([x, -x]).transpose(0, 2, 1)),
    ],
    "products": lambda x: [x @ pt.exp(x.sum(axis=0)), x.T @ pt.exp(-(x.sum(axis=1) ** 2))],
}


def compare(driver, f, expected, *values):
    """The kernels that are launched: step by step, then by a plan too. What is captured is of test_out."""
    calls = 1 if driver.launches else 2
    driver.launches.clear()
    for _ in range(calls):
        for found, wanted in zip(f(*values), expected, strict=True):
            assert found.shape == wanted.shape and found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=3e-5, atol=1e-5)
    return set(driver.launches)


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.parametrize("is_static", [False, True])
@pytest.mark.parametrize("several_blocks", [False, True])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_rows_and_columns(monkeypatch, name, several_blocks, is_static):
    if several_blocks:
        steps = [
            step._replace(text=step.text.replace("gpu-rows", "gpu-rows{elements=6}"))
            for step in pipeline.KERNELS.steps
        ]
        monkeypatch.setattr(pipeline, "KERNELS", replace(pipeline.KERNELS, steps=tuple(steps)))
    rng = np.random.default_rng(0)
    known = None
    with graphc.config.change_flags(cache_dir=""):
        for shape in SHAPES[3:5] if is_static else SHAPES:
            x = pt.tensor("x", dtype="float32", shape=shape if is_static else (None, None))
            if known is None or is_static:
                # Another number makes another function, as functions of the process are compiled once.
                outputs = REDUCTIONS[name](x * (0.5 if several_blocks else 0.75))
                known = [graphc.function([x], outputs, mode=mode) for mode in ("cuda", "fast_run")]
                driver = device_for(monkeypatch, known[0])
            value = rng.normal(size=shape).astype("float32")
            if not value.size and name in ("extremes", "moments", "layer norm", "softmax", "logarithms"):
                continue  # nothing has no mean and no extreme
            launches = compare(driver, known[0], known[1](value), value)
            if several_blocks and not is_static and name == "softmax" and shape[1] >= 6:
                assert any(launch.startswith("whole") for launch in launches), launches


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int8", "uint8", "bool"])
@pytest.mark.parametrize("shape", [(5, 8), (700, 12), (2, 1031), (3, 40000)])
def test_positions_of_extremes(monkeypatch, shape, dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None, None))
    outputs = [pt.argmax(x, axis=1), pt.argmin(x, axis=1), pt.argmax(x)]
    f, cpu = (graphc.function([x], outputs, mode=mode) for mode in ("cuda", "fast_run"))
    driver = device_for(monkeypatch, f)
    value = (np.random.default_rng(0).normal(size=shape) * 3).astype(dtype)
    for given in (value, np.zeros_like(value)):
        compare(driver, f, cpu(given), given)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int8", "uint8"])
def test_positions_of_extremes_of_columns(monkeypatch, dtype):
    """The first of equal ones and of NaN, wherever threads begin; one extreme, two together, and one of what
    is computed.
    """
    x = pt.tensor("x", dtype=dtype, shape=(None, None))
    together = [pt.argmax(x, axis=0), pt.argmin(x, axis=0)]
    for outputs in (together, together[:1], [pt.argmin(abs(x) + x, axis=0)]):
        f, cpu = (graphc.function([x], outputs, mode=mode) for mode in ("cuda", "fast_run"))
        driver = device_for(monkeypatch, f)
        for shape in ((300, 12), (40, 131), (1, 3)):
            value = (np.random.default_rng(0).normal(size=shape) * 3).astype(dtype)
            if value.dtype.kind == "f":
                value[shape[0] // 2 :: 50, ::3] = np.nan
            launches = compare(driver, f, cpu(value), value)
            assert any(launch.startswith("columns") for launch in launches), launches


def test_no_block_alone_works_on_a_large_array(monkeypatch):
    """Elementwise work on all of an array is not taken into the block that ends a reduction of it."""
    x = pt.tensor("x", dtype="float32", shape=(None,))
    loss = ((x - 1) ** 2).mean()
    f = graphc.function([x], [loss, graphc.grad(loss, x)], mode="cuda")
    driver = device_for(monkeypatch, f)
    value = np.random.default_rng(0).normal(size=100_000).astype("float32")
    blocks = []
    launch = driver.launch

    def seen(asked, values, stream):
        blocks.append((driver._functions[asked.function], asked.grid))
        launch(asked, values, stream)

    monkeypatch.setattr(driver, "launch", seen)
    found = f(value)[1].get()
    np.testing.assert_allclose(found, 2 * (value - 1) / value.size, rtol=1e-5)
    elementwise = [grid for name, grid in blocks if name.startswith("elementwise") and grid[0] > 1]
    assert elementwise, blocks


@pytest.mark.parametrize("shape", [(1 << 20, 8), (1 << 16, 300), (1 << 14, 2000), (1 << 12, 10_000), (40, 3)])
def test_blocks_of_columns_fill_the_device(monkeypatch, shape):
    """All blocks run at a time, four on each of 132 multiprocessors, or the last of several times is full."""
    x = pt.tensor("x", dtype="int8", shape=(None, None))
    f = graphc.function([x], x.max(axis=0), mode="cuda")
    driver = device_for(monkeypatch, f)
    grids = []
    monkeypatch.setattr(
        driver,
        "launch",
        lambda asked, values, stream: grids.append((driver._functions[asked.function], asked.grid)),
    )
    f(np.zeros(shape, "int8"))
    blocks = math.prod(next(grid for name, grid in grids if name.startswith("columns")))
    times = -(-blocks // 528)
    assert blocks <= 528 * 8 and (shape[0] < 1000 or blocks >= 0.9 * 528 * times), blocks


def _logistic(w, x, y):
    z = x @ w
    loss = (pt.log1p(pt.exp(-abs(z))) + pt.maximum(z, 0) - y * z).mean()
    return [loss, *graphc.grad(loss, [w])]


SWEEPS = {
    "logistic": _logistic,
    "squares": lambda w, x, y: [graphc.grad(((x @ w - y) ** 2).mean(), w)],
    "rows that are kept": lambda w, x, y: (
        lambda z: [z, (x * z[:, None]).sum(axis=0), x.T @ pt.exp(-(z**2))]
    )(x @ w - y),
    "extremes": lambda w, x, y: (lambda top: [pt.max(x - top[:, None] * w, axis=0)])(
        pt.max(x * w, axis=1) + y
    ),
    "positions": lambda w, x, y: (
        lambda top: [
            pt.cast(pt.argmax(x - top[:, None] * w, axis=0), x.dtype),
            pt.argmin(top).astype(x.dtype),
        ]
    )(pt.max(x * w, axis=1) + y),
    # Of the last rows some threads have none: they write none.
    "elements that are kept": lambda w, x, y: (lambda z: [z, (z * (z @ w - y)[:, None]).sum(axis=0)])(
        pt.tanh(x)
    ),
    "power": lambda w, x, y: [x.T @ (x @ (x.T @ (x @ w) / 9999)) + y.sum()],
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("is_static", [False, True])
@pytest.mark.parametrize("name", SWEEPS)
def test_rows_are_read_once_for_sums_of_columns(monkeypatch, name, is_static, dtype):
    """Each division of threads among rows, with and without vectors, and more rows than threads at a time."""
    steps = [
        step._replace(text=step.text.replace("gpu-sweep", "gpu-sweep{rows=6 blocks=3}"))
        for step in pipeline.KERNELS.steps
    ]
    monkeypatch.setattr(pipeline, "KERNELS", replace(pipeline.KERNELS, steps=tuple(steps)))
    rng, f = np.random.default_rng(0), None
    shapes = (
        [(70, 64), (333, 3)]
        if is_static
        else [(70, 64), (600, 3), (9, 260), (7, 1031), (5, 8), (0, 4), (8, 0)]
    )
    with graphc.config.change_flags(cache_dir=""):
        for rows, columns in shapes:
            sizes = [(columns,), (rows, columns), (rows,)]
            if f is None or is_static:
                known = sizes if is_static else [(None,), (None, None), (None,)]
                # The judge has float64, since the sums of a host in float32 are no better than a device's.
                f, exact = (
                    graphc.function(given, SWEEPS[name](*given), mode=mode)
                    for mode, kind in (("cuda", dtype), ("fast_run", "float64"))
                    for given in [
                        [pt.tensor(n, dtype=kind, shape=s) for n, s in zip("wxy", known, strict=True)]
                    ]
                )
                driver = device_for(monkeypatch, f)
            if not rows * columns and name in ("logistic", "squares", "extremes", "positions"):
                continue  # nothing has no mean and no extreme
            values = [rng.normal(size=size).astype(dtype) for size in sizes]
            expected = [v.astype(dtype) for v in exact(*(v.astype("float64") for v in values))]
            launches = compare(driver, f, expected, *values)
            swept = any(launch.startswith("sweep") for launch in launches)
            assert swept == (rows >= 6 and columns > 0), launches


def test_rows_that_are_read_once_may_be_written_where_they_are_read(monkeypatch):
    """A shared array of a number for each row is updated by the kernel that reads it."""
    monkeypatch.setattr(
        pipeline,
        "KERNELS",
        replace(
            pipeline.KERNELS,
            steps=tuple(
                step._replace(text=step.text.replace("gpu-sweep", "gpu-sweep{rows=6 blocks=3}"))
                for step in pipeline.KERNELS.steps
            ),
        ),
    )
    rng = np.random.default_rng(0)
    x, w = pt.matrix("x", dtype="float32"), pt.vector("w", dtype="float32")
    start = rng.normal(size=40).astype("float32")
    for columns in (8, 700):
        values = [rng.normal(size=size).astype("float32") for size in ((40, columns), (columns,))]
        found = []
        for mode in ("cuda", "fast_run"):
            state = graphc.shared(start.copy())
            residual = pt.tanh(state - x @ w)
            f = graphc.function([x, w], x.T @ residual, updates={state: residual}, mode=mode)
            if mode == "cuda":
                driver = device_for(monkeypatch, f)
            found.append([np.asarray(f(*values)) for _ in range(3)] + [state.get_value()])
        assert any(launch.startswith("sweep") for launch in driver.launches), driver.launches
        for ours, exact in zip(*found, strict=True):
            np.testing.assert_allclose(ours, exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["softmax", "layer norm", "moments", "positions"])
def test_reads_of_a_thread_are_under_way_together(name):
    """A thread reads a row that it holds 16 bytes at a time, and asks for all before it has one."""
    x = pt.tensor("x", dtype="float32", shape=(None, None))
    rules = {**REDUCTIONS, "positions": lambda x: [pt.argmax(x, axis=1)]}
    f = graphc.function([x], rules[name](x), mode="cuda")
    ptx = to_ptx(f.ir_stages()["llvm"], "sm_90")
    most = []
    for kernel in ptx.split(".entry rows")[1:]:
        # What uses an element comes after all of them; between reads there are addresses only.
        runs = [0]
        for line in kernel.split(".entry")[0].splitlines():
            word = line.strip().split(" ")[0].split("\t")[0]
            if word.startswith("ld.global.v4"):
                runs[-1] += 1
            elif not word.startswith(("add.s", "mul.wide.s", "cvt.s64", "shl.b", "min.s32")):
                runs.append(0)
        most.append(max(runs))
    assert max(most) == 8, most


ON_VECTORS = {
    "loss": lambda x: [((x - 1) ** 2).mean(), graphc.grad(((x - 1) ** 2).mean(), x)],
    "logistic": lambda x: [pt.softplus(x).mean(), graphc.grad(pt.softplus(x).mean(), x)],
    "softmax": lambda x: [pt.special.softmax(x, axis=0), pt.logsumexp(x)],
    "moments": lambda x: [x.var(), (x - x.mean()) / x.std()],
    "positions": lambda x: [pt.argmax(x), pt.argmin(x * 2)],
    "running sums": lambda x: [pt.cumsum(x)],
    "writes": lambda x: [x[1:] + x[:-1], x[::2] * 2, pt.concatenate([x, x * 2])],
}


@pytest.mark.parametrize("name", ON_VECTORS)
def test_no_class_of_kernels_has_one_block_for_a_large_array(monkeypatch, name):
    """A launch of one block has no array of many elements, whatever it does to it."""
    size = 20_011
    x = pt.tensor("x", dtype="float32", shape=(None,))
    f, cpu = (graphc.function([x], ON_VECTORS[name](x), mode=mode) for mode in ("cuda", "fast_run"))
    driver, launches = device_for(monkeypatch, f), []
    launch = driver.launch

    def seen(asked, values, stream):
        pairs = list(zip(asked.types, values, strict=True))
        # Of an array there are two addresses, the offset and the size.
        sizes = [
            pairs[at + 3][1]
            for at, pair in enumerate(pairs[:-3])
            if pair[0] == pairs[at + 1][0] == "pointer" and pairs[at + 3][0] == "int64"
        ]
        launches.append((driver._functions[asked.function], asked.grid, sizes))
        launch(asked, values, stream)

    monkeypatch.setattr(driver, "launch", seen)
    value = np.random.default_rng(0).normal(size=size).astype("float32")
    for found, wanted in zip(f(value), cpu(value), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3)
    assert any(size in sizes or 2 * size in sizes for _, _, sizes in launches), launches
    alone = [(kernel, sizes) for kernel, grid, sizes in launches if np.prod(grid) == 1]
    assert all(max(sizes, default=0) <= 1024 for _, sizes in alone), alone
