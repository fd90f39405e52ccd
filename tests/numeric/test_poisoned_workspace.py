# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every element that is read has been written, and nothing outside of a workspace is.

With `config.poison_memory`, buffers hold 0xFF (a NaN, or -1) where their lifetimes begin and after their
ends, and so do results before they are computed: what is not written, or is read too late, shows in the
results. The bytes on either side of a workspace are compared after each call.
Random programs run like this in tests/fuzz (the way "poisoned").
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest
import scan_modules
from fuzzing import FUZZING, some
from pipelines import compile_text, interpret

import graphc
import graphc.tensor as pt
from graphc.backends.cpu.generate import kernel_wrappers
from graphc.backends.cpu.object import compile_to_object
from graphc.backends.cpu.pipeline import PIPELINES, pipeline
from graphc.backends.stages import Entry
from graphc_runtime import symbols
from graphc_runtime.loader import load_object

MODES = sorted(PIPELINES)
SEEDS = 20


@pytest.fixture(autouse=True)
def poison() -> Iterator[None]:
    with graphc.config.change_flags(poison_memory=True):
        yield


def without_stack(mode: str) -> list[Entry]:
    """A pipeline that gives small buffers places in the workspace too."""
    return [entry for entry in pipeline(mode) if "promote-buffers-to-stack" not in entry[0]]


@pytest.mark.fuzz
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", some(range(300, 300 + SEEDS), 12))
def test_random_loops(mode: str, seed: int) -> None:
    case = scan_modules.generate(Random(seed))
    expected = interpret(case.text, case.inputs)
    pipelines = [pipeline(mode), without_stack(mode)]
    for entries in pipelines if FUZZING else [pipelines[seed % 2]]:
        compare(compile_text(case.text, entries, 1)(*case.inputs), expected)


def compare(results: list[Any], expected: list[Any]) -> None:
    for result, want in zip(results, expected, strict=True):
        precision = {"f": {2: 2e-2, 4: 2e-4, 8: 1e-9}, "c": {8: 2e-4, 16: 1e-9}}
        tolerance = precision.get(want.dtype.kind, {}).get(want.dtype.itemsize, 0)
        np.testing.assert_allclose(result, want, rtol=tolerance, atol=tolerance, equal_nan=True)
        assert result.dtype == want.dtype and result.shape == want.shape


def perceptron(sizes: list[int], static: bool) -> tuple[list[Any], list[Any]]:
    shapes = list(pairwise(sizes))

    def tensor(name: str, *shape: int) -> Any:
        return pt.tensor(name, dtype="float64", shape=shape if static else (None,) * len(shape))

    x = tensor("x", 7, sizes[0])
    w = [tensor(f"w{i}", *shape) for i, shape in enumerate(shapes)]
    b = [tensor(f"b{i}", shape[1]) for i, shape in enumerate(shapes)]
    h = x
    for weights, bias in zip(w, b, strict=True):
        h = pt.tanh(pt.dot(h, weights) + bias)
    loss = (h**2).sum()
    return [x, *w, *b], [loss, *graphc.grad(loss, [*w, *b])]


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_perceptron(mode: str, static: bool) -> None:
    sizes = [12, 9, 30, 5, 17, 8, 21, 6, 3]
    inputs, outputs = perceptron(sizes, static)
    f = graphc.function(inputs, outputs, mode=mode)
    reference = graphc.function(inputs, outputs, mode="reference")
    rng = np.random.default_rng(1)
    for batch in (7,) if static else (7, 1, 0, 40, 7):
        shapes = [(batch, sizes[0]), *pairwise(sizes), *((n,) for n in sizes[1:])]
        values = [rng.normal(size=shape) for shape in shapes]
        for got, want in zip(f(*values), reference(*values), strict=True):
            np.testing.assert_allclose(got, want, atol=1e-10)


@pytest.mark.parametrize("shape", [(), (3,), (None,), (2, None)])
def test_results_that_are_not_written_are_poisoned(shape: tuple[int | None, ...]) -> None:
    parameters = ", ".join(["ptr", "ptr", "ptr", *["i64"] * (1 + 2 * len(shape))])
    text = f"define internal i64 @main({parameters}) {{\n  ret i64 0\n}}\n"
    text += kernel_wrappers([], [shape], has_shapes=False, poison=[8])
    text = text.replace("declare i64 @graphc_intact(ptr)", "define i64 @graphc_intact(ptr) {\n  ret i64 0\n}")
    loaded = load_object(compile_to_object(text, opt_level=1), symbols.resolve)
    result = np.zeros([2 if size is None else size for size in shape])
    around = np.zeros(result.size + 2)
    dims = np.array(result.shape, np.int64)
    data = np.array([around.ctypes.data + 8])
    run = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3)(loaded.address("graphc_run"))
    assert run(None, data.ctypes.data, dims.ctypes.data) == 0
    assert np.isnan(around[1:-1]).all() and not around[[0, -1]].any()


def test_damage_is_reported() -> None:
    from graphc_runtime.errors import DAMAGED_MEMORY, status_error

    error = status_error((), DAMAGED_MEMORY, 0, 0)
    assert isinstance(error, RuntimeError) and "outside of its workspace" in str(error)


def test_the_code_is_different() -> None:
    x = pt.matrix("x")
    y = pt.dot(pt.tanh(pt.dot(x, x)), x)
    poisoned = graphc.function([x], y)
    with graphc.config.change_flags(poison_memory=False):
        plain = graphc.function([x], y)
    assert "graphc_intact" in poisoned.ir_stages()["llvm"]
    with graphc.config.change_flags(poison_memory=False):
        assert "graphc_intact" not in plain.ir_stages()["llvm"]
    np.testing.assert_array_equal(poisoned(np.eye(5)), plain(np.eye(5)))
