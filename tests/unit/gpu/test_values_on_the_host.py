# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the host has to know of values: sizes of results, conditions of branches and of loops."""

from __future__ import annotations

import numpy as np
import pytest
from simulation import assert_nothing_lives, device_for

import graphc
import graphc.tensor as pt
from graphc import ifelse
from graphc.function.types import Function
from graphc.graph.tensor.variable import TensorVariable
from graphc_runtime.cuda import executable
from graphc_runtime.cuda import schedule as sc
from graphc_runtime.cuda.analysis import mapped
from graphc_tools.gpu.simulated import SimulatedDriver

A = np.arange(-3.0, 5)


def _pair(
    monkeypatch: pytest.MonkeyPatch, inputs: list, outputs: list[TensorVariable]
) -> tuple[Function, Function, SimulatedDriver]:
    f = graphc.function(inputs, outputs, mode="cuda")
    return f, graphc.function(inputs, outputs), device_for(monkeypatch, f)


def _agree(f: Function, cpu: Function, *values: object) -> None:
    for found, expected in zip(f(*values), cpu(*values), strict=True):
        assert found.dtype == expected.dtype and found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


x, m, c, n = pt.vector("x"), pt.matrix("m"), pt.lvector("c"), pt.lscalar("n")
SIZES = {
    "nonzero": ([x], list(pt.nonzero(x)), [[A], [0 * A], [A[:0]]]),
    "nonzero of a matrix": ([m], list(pt.nonzero(m > 0)), [[A.reshape(2, 4)], [np.zeros((3, 0))]]),
    "mask": ([x], [x[x > 0] * 2], [[A], [0 * A]]),
    "mask of a matrix": ([m], [pt.exp(m[m > 0])], [[A.reshape(2, 4)]]),
    "sum of a mask": ([x], [x[x > 0].sum()], [[A], [0 * A]]),
    "repeat": ([x, c], [pt.repeat(x, c) + 1], [[A, np.arange(8)], [A, np.zeros(8, int)]]),
    "unique": ([x], [pt.unique(pt.abs(x))], [[A], [A[:0]]]),
    "arange": ([n], [pt.arange(n) * 2], [[4], [0]]),
    "arange of what is computed": ([x], [pt.arange(x.sum().astype("int64"))], [[A], [0 * A]]),
    "diagonal": ([m], [pt.diagonal(m)], [[A.reshape(2, 4)], [A.reshape(4, 2)]]),
    "counts": ([c], [pt.bincount(c)], [[np.array([1, 5, 1])], [np.zeros(0, int)]]),
    "a slice up to a value": ([x], [x[: x.max().astype("int64")]], [[A], [A - 2]]),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_that_depend_on_values(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, outputs, calls = SIZES[name]
    f, cpu, driver = _pair(monkeypatch, inputs, outputs)
    for values in calls:
        _agree(f, cpu, *values)
    assert_nothing_lives(driver)


def test_failures_of_sizes_name_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    f, cpu, driver = _pair(monkeypatch, [x, c], [pt.repeat(x, c)])
    messages = []
    for function in (f, cpu):
        with pytest.raises(ValueError, match="negative") as caught:
            function(A[:2], [1, -1])
        messages.append(str(caught.value))
    assert messages[0] == messages[1] and __file__ in messages[0]
    assert_nothing_lives(driver)
    _agree(f, cpu, A[:2], [1, 2])


def test_sizes_of_values_on_the_device_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    total = pt.sum(x).astype("int64")
    f, cpu, driver = _pair(monkeypatch, [x], [pt.arange(total) + 1.0])
    _agree(f, cpu, A)
    kinds = [transfer.kind for transfer in driver.transfers]
    # The size before there is memory for the result, the same number in the kernels' schedule, the result.
    assert kinds == ["upload", "download", "download", "download"]


def _doubled(start: TensorVariable, limit: float) -> TensorVariable:
    return graphc.scan(
        lambda s: (s * 2, graphc.until(s.sum() > limit)),
        outputs_info=[start],
        n_steps=12,
        return_updates=False,
    )


@pytest.mark.parametrize("rows", ["last", "all"])
@pytest.mark.parametrize("start", [A, A - 10, A[:1] + 4])
def test_loops_end_when_a_condition_on_the_device_says_so(
    rows: str, start: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = _doubled(x, 100)
    f, cpu, driver = _pair(monkeypatch, [x], [states[-1] if rows == "last" else states])
    _agree(f, cpu, start)
    assert_nothing_lives(driver)


@pytest.mark.parametrize(("limit", "steps"), [(0, 0), (0, 1), (0, 3), (3, 40), (60, 40), (1e9, 40), (1e9, 5)])
def test_the_host_asks_seldom_whether_a_loop_goes_on(
    limit: float, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After 4 steps, 4 more, 8, 16, and so on; what is launched after the last step changes nothing."""
    rows = graphc.scan(
        lambda r, s, t: ([pt.cumsum(s[::-1]) + abs(r), s + t], graphc.until(t.sum() > limit)),
        sequences=[m],
        outputs_info=[x, x],
        return_updates=False,
    )
    last = [rows[0].sum(axis=0), rows[1][-2:], pt.sum(rows[0][-1:])]
    f, cpu, driver = _pair(monkeypatch, [m, x], last)
    value = np.random.default_rng(0).normal(size=(steps, 3))
    start = np.array([0.25, 0.5, 0.5])
    _agree(f, cpu, value, start)
    assert_nothing_lives(driver)
    done = len(graphc.function([m, x], rows[0])(value, start))
    asked = sum(transfer.nbytes == 8 for transfer in driver.transfers if transfer.kind == "download")
    # Of the loop that finds the sizes, and the one that computes: the question, and the number of steps.
    most = 2 * (2 + max(0, int(np.ceil(np.log2(max(done, 1))))))
    assert driver.replayed <= 2 * max(2 * done, 4) and asked <= most + 2, (driver.replayed, asked)


def test_steps_of_loops_that_end_early_are_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    f, cpu, driver = _pair(monkeypatch, [x], [_doubled(x, 100)[-1]])
    _agree(f, cpu, A)
    assert driver.captured == 1 and driver.replayed == 8  # 5 steps
    # Is there another step, twice, the number of steps, and the result.
    assert [transfer.kind for transfer in driver.transfers].count("download") == 4


def test_loops_of_numbers_with_a_condition_are_one_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    s = pt.scalar("s")
    f, cpu, driver = _pair(monkeypatch, [s], [_doubled(s, 100)[-1]])
    for start in (1.0, 500.0, -1.0):
        driver.launches.clear()
        _agree(f, cpu, start)
        assert len(driver.launches) == 2, driver.launches


def _launched(driver: SimulatedDriver, f: Function, *values: object) -> set[str]:
    driver.launches.clear()
    f(*values)
    return set(driver.launches)


def _branches(f: Function) -> list[sc.If]:
    found: list[sc.If] = []

    def note(step: sc.Step) -> sc.Step:
        found.extend([step] if isinstance(step, sc.If) else [])
        return step

    mapped(f.executor.executable.code.schedule, note)
    return found


def _kernels(block: sc.Block) -> set[str]:
    found = set()
    for step in block.steps:
        if isinstance(step, sc.Launch):
            found.add(step.kernel)
        for inner in vars(step).values():
            found |= _kernels(inner) if isinstance(inner, sc.Block) else set()
    return found


def test_conditionals_launch_one_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    """For conditions that are computed, and in branches of branches."""
    inner = ifelse(x.max() > 3, pt.exp(x), pt.cos(x))
    f, cpu, driver = _pair(monkeypatch, [x], [ifelse(x.sum() > 0, inner, pt.sort(x))])
    one, other = sorted(_branches(f), key=lambda step: len(_kernels(step.then) | _kernels(step.otherwise)))
    exp, cos, sort = _kernels(one.then), _kernels(one.otherwise), _kernels(other.otherwise)
    assert exp and cos and sort and not exp & cos and not sort & (exp | cos)
    for value, taken, left in (
        (A, exp, cos | sort),
        (A[4:6] + 0.5, cos, exp | sort),
        (A - 5, sort, exp | cos),
    ):
        _agree(f, cpu, value)
        found = _launched(driver, f, value)
        assert found & (taken | left) <= taken and found & taken
    # What only the inner condition needs is not computed in the other branch.
    condition = _kernels(other.then) - exp - cos
    assert condition and not condition & _launched(driver, f, A - 5)


def test_conditions_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """A condition that is an argument on the device is read once, and nothing else waits."""
    b = pt.scalar("b", dtype="bool")
    f, cpu, driver = _pair(monkeypatch, [b, x], [ifelse(b, pt.exp(x), x - 1)])
    for condition in (True, False):
        _agree(f, cpu, condition, A)
        there = executable.upload(driver, np.array(condition), driver.main_stream)
        driver.transfers.clear()
        found = _launched(driver, f, there, A)
        assert len(found) == 1
        assert [transfer.kind for transfer in driver.transfers] == ["upload", "download"]


def test_conditionals_in_loops_launch_one_branch_in_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def step(row: TensorVariable, state: TensorVariable) -> TensorVariable:
        return ifelse(row.sum() > 0, pt.sort(state) + row, state[::-1] - row)

    states = graphc.scan(step, sequences=[m], outputs_info=[m[0]], return_updates=False)
    f, cpu, driver = _pair(monkeypatch, [m], [states])
    value = np.array([[1.0, 2, 3], [-4, 1, 0], [2, 2, -1]])
    _agree(f, cpu, value)
    # Another one chooses between kernels for the sums of short and of long rows, before the loop.
    branch = min(_branches(f), key=lambda step: any("rows" in name for name in _kernels(step.otherwise)))
    counts = []
    for block in (branch.then, branch.otherwise):
        kernels = _kernels(block)
        counts.append(max(driver.launches.count(name) for name in kernels))
    assert counts == [2, 1]
