# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``memory_budget`` of functions: what is computed again, what calls return, and what is said."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.errors import MemoryBudgetWarning
from graphc.function.settings import parsed

BATCH, WIDTH = 64, 32
LAYER = 8 * BATCH * WIDTH


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + pt.erf(x / 2**0.5))


def perceptron(layers: int, activation: Any = pt.tanh, dtype: str = "float64", **options: Any) -> Any:
    """Loss and gradients of a perceptron."""
    x = pt.tensor("x", shape=(BATCH, WIDTH), dtype=dtype)
    weights = [pt.tensor(f"w{i}", shape=(WIDTH, WIDTH), dtype=dtype) for i in range(layers)]
    h = x
    for w in weights:
        h = activation(pt.dot(h, w))
    loss = (h**2).sum()
    return graphc.function([x, *weights], [loss, *graphc.grad(loss, weights)], name="perceptron", **options)


def arguments(layers: int, dtype: str = "float64") -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    shapes = [(BATCH, WIDTH), *[(WIDTH, WIDTH)] * layers]
    return [(rng.standard_normal(shape) / 4).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile", "debug"])
@pytest.mark.parametrize("activation", [pt.tanh, gelu], ids=["tanh", "gelu"])
def test_a_gradient_keeps_to_its_budget(mode: str, activation: Any) -> None:
    free, values = perceptron(6, activation, mode=mode), arguments(6)
    before = free.memory_plan().peak
    assert before > 6.9 * LAYER and free.memory_plan().budget is None
    # What is not fused needs memory for each operation.
    budget = (6 if mode == "fast_compile" else 4) * LAYER
    tight = perceptron(6, activation, mode=mode, memory_budget=budget)
    plan = tight.memory_plan()
    assert plan.peak <= budget == plan.budget and plan.recomputed
    for want, have in zip(free(*values), tight(*values), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-12, atol=1e-14)


def test_the_same_kernels_give_the_same_bits() -> None:
    values = arguments(6)
    for want, have in zip(
        perceptron(6)(*values), perceptron(6, memory_budget=3 * LAYER)(*values), strict=True
    ):
        np.testing.assert_array_equal(have, want)


def test_numbers_that_are_small_take_less(dtype: str = "float32") -> None:
    tight = perceptron(6, dtype=dtype, memory_budget=2 * LAYER)
    assert tight.memory_plan().peak <= 2 * LAYER and len(tight.memory_plan().recomputed) > 0
    for want, have in zip(
        perceptron(6, dtype=dtype)(*arguments(6, dtype)), tight(*arguments(6, dtype)), strict=True
    ):
        assert have.dtype == dtype
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)


def test_nothing_changes_where_there_is_enough() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f = perceptron(4, memory_budget="1 MiB")
    plan = f.memory_plan()
    assert plan.peak == perceptron(4).memory_plan().peak and not plan.recomputed and plan.extra_flops == 0
    assert "budget 1.0 MiB: nothing is computed again" in str(plan)
    assert f.report.memory == [f"memory_budget 1.0 MiB, peak {plan.peak / 1024:.1f} KiB"]


def test_the_plan_says_what_is_computed_again() -> None:
    f = perceptron(6, memory_budget=4 * LAYER)
    plan = f.memory_plan()
    assert plan.extra_flops >= 2 * BATCH * WIDTH**2
    for value in plan.recomputed:
        assert value.bytes == LAYER and value.times >= 1 and value.flops > 0
        assert "test_memory_budget.py" in value.location
    assert "computed again: 16.0 KiB" in str(plan) and "operations more" in str(plan)
    assert f"{len(plan.recomputed)} values are computed again" in plan.to_svg()
    assert "computed again" in str(f.report) and "memory_budget 64.0 KiB" in str(f.report)
    assert pickle.loads(pickle.dumps(f)).memory_plan() == plan


def test_budgets_are_part_of_the_key(tmp_path: Any) -> None:
    """What comes from the cache keeps to its own budget, and says so."""
    with graphc.config.change_flags(cache_dir=str(tmp_path)):
        peaks = []
        for budget in (None, 4 * LAYER, None, 4 * LAYER):
            f = perceptron(6, memory_budget=budget)
            peaks.append((f.report.cache, f.memory_plan().peak, len(f.report.memory)))
    assert [cache for cache, _, _ in peaks] == [["miss"], ["miss"], ["hit"], ["hit"]]
    assert peaks[2][1:] == peaks[0][1:] and peaks[3][1:] == peaks[1][1:] != peaks[0][1:]


def test_a_budget_that_is_too_small_is_said() -> None:
    with pytest.warns(MemoryBudgetWarning) as caught:
        f = perceptron(6, memory_budget="1 kB")
    (warning,) = caught
    text, plan = str(warning.message), f.memory_plan()
    assert f"({plan.peak} bytes)" in text and "(1000 bytes)" in text and "test_memory_budget.py" in text
    assert f"of shape ({BATCH}, {WIDTH})" in text and warning.filename == __file__
    assert plan.peak == 3 * LAYER
    np.testing.assert_array_equal(f(*arguments(6))[0], perceptron(6)(*arguments(6))[0])


def test_sizes_that_are_not_known_are_said() -> None:
    x = pt.dmatrix("x")
    with pytest.warns(MemoryBudgetWarning, match="sizes only calls know"):
        f = graphc.function([x], pt.tanh(x @ x) @ x, memory_budget=100)
    assert "leaves out values" in str(f.report) and f.memory_plan().peak is None
    np.testing.assert_allclose(f(np.eye(3)), np.tanh(np.eye(3)))


@pytest.mark.parametrize(
    ("given", "bytes_"),
    [
        (None, None), (0, 0), (np.int64(5), 5), ("64 MiB", 64 << 20), ("1.5kB", 1500), ("7", 7),
        (" 2 GB ", 2 * 10**9), ("3B", 3), ("1e3 KiB", 1024000),
    ],
)  # fmt: skip
def test_budgets(given: Any, bytes_: int | None) -> None:
    assert parsed(given) == bytes_


@pytest.mark.parametrize("given", ["", "many", "5 XB", "-1 MB", "nan B", "inf GB", -1, "5 mib"])
def test_budgets_that_are_none(given: Any) -> None:
    x = pt.dvector("x")
    with pytest.raises(ValueError, match="memory_budget must"):
        graphc.function([x], x + 1, memory_budget=given)


@pytest.mark.parametrize("given", [1.5, True, [64], b"64 MiB"])
def test_budgets_of_other_types(given: Any) -> None:
    x = pt.dvector("x")
    with pytest.raises(TypeError, match="a number of bytes or text"):
        graphc.function([x], x + 1, memory_budget=given)


@pytest.mark.parametrize("mode", ["reference", "interpret", "cuda"])
def test_modes_without_a_plan_have_no_budget(mode: str) -> None:
    x = pt.dvector("x")
    with pytest.raises(ValueError, match=f"mode '{mode}' does not run"):
        graphc.function([x], x + 1, mode=mode, memory_budget=100)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
def test_results_are_scratch_before_they_are_written(dtype: str, mode: str) -> None:
    """With memory poisoned at both ends of a lifetime: nothing is computed again, and little is needed."""
    x = pt.tensor("x", shape=(48, 48), dtype=dtype)
    kept, outputs = [x], []
    for _ in range(5):
        kept.append(pt.tanh(kept[-1] @ x / 48))
    back = kept[-1]
    for h in reversed(kept):
        outputs.append(h.T @ back)
        back = (back * h) @ x
    given = np.random.default_rng(3).standard_normal((48, 48)).astype(dtype)
    size = given.nbytes
    free = graphc.function([x], outputs, mode=mode)
    assert free.memory_plan().peak >= 6 * size
    with graphc.config.change_flags(poison_memory=True):
        tight = graphc.function([x], outputs, mode=mode, memory_budget=2 * size)
    plan = tight.memory_plan()
    assert plan.peak <= 2 * size and not plan.recomputed
    assert any(buffer.place.startswith("result ") for buffer in plan.buffers)
    assert "result " in str(plan) and plan.to_svg()
    out = [np.empty((48, 48), dtype) for _ in outputs]
    for have in (tight(given), tight(given, out=out)):
        for value, want in zip(have, free(given), strict=True):
            np.testing.assert_array_equal(value, want)


@pytest.mark.filterwarnings("ignore::graphc.errors.MemoryBudgetWarning")
def test_loops_updates_joins_and_donations() -> None:
    """What may overwrite its operands is left alone; results are those without a budget."""
    x = pt.tensor("x", shape=(BATCH, WIDTH), dtype="float64")
    w = pt.tensor("w", shape=(WIDTH, WIDTH), dtype="float64")
    a = pt.tanh(x)
    b = pt.exp(-a)
    rows = graphc.scan(lambda row, h: pt.tanh(row + h), sequences=a, outputs_info=a[0])
    p = (rows @ w) @ w
    joined = pt.concatenate([p * a, b @ w], axis=1)
    changed = pt.set_subtensor(a[3], 0.0) @ w
    chosen = graphc.ifelse(x.sum() > 0, p @ w, changed)
    outputs = [joined * 2, chosen * b, (changed * pt.sin(a)).sum(0), x + a]
    values = arguments(1)
    for donate in (None, ["x"]):
        results = [
            graphc.function([x, w], outputs, memory_budget=budget, donate=donate)(*map(np.copy, values))
            for budget in (None, 2 * LAYER, 0)
        ]
        for other in results[1:]:
            for want, have in zip(results[0], other, strict=True):
                np.testing.assert_allclose(have, want, rtol=1e-13, atol=1e-15)


def test_shared_variables_see_old_values() -> None:
    x = pt.tensor("x", shape=(BATCH, WIDTH), dtype="float64")

    def make(budget: int | None) -> Any:
        state = graphc.shared(np.full((WIDTH, WIDTH), 0.1), shape=(WIDTH, WIDTH))
        h = pt.tanh(x @ state)
        loss = ((pt.tanh(pt.tanh(h @ state) @ state) - h) ** 2).sum()
        return graphc.function(
            [x], loss, updates={state: state - 0.01 * graphc.grad(loss, state)}, memory_budget=budget
        )

    free, tight = make(None), make(4 * LAYER)
    for _ in range(3):
        np.testing.assert_array_equal(tight(arguments(1)[0]), free(arguments(1)[0]))
