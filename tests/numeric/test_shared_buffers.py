# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values that lie in a buffer which a loop or an update overwrites stay what they are for other readers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as pt

MODES = ("fast_run", "fast_compile")
Build = Callable[[Any], Any]

# What computes the values: fused loops, products, sorting, views, and what folds to its operand later.
SOURCES: dict[str, Build] = {
    "elementwise": pt.exp,
    "product": lambda x: pt.dot(x, pt.ones((3, 3)) * x.sum()),
    "cumulative": lambda x: pt.cumsum(x, axis=-1),
    "kernel": lambda x: pt.sort(x, axis=-1),
    "view": lambda x: x[..., ::-1],
    "vanishing": lambda x: pt.maximum(pt.sort(x, axis=-1), pt.sort(x, axis=-1)),
    "loop": lambda x: graphc.scan(lambda h: pt.cos(h), outputs_info=[x], n_steps=6, return_updates=False)[-1],
    "conditional": lambda x: graphc.ifelse(x.sum() > 0, pt.exp(x), x - 1),
    "update": lambda x: pt.set_subtensor(pt.exp(x)[..., 1], 2.0),
}


def _loop(initial: Any, steps: Any, taps: int) -> Any:
    """The last row of a state whose initial rows are given."""

    def step(*rows: Any) -> Any:
        return sum((row * 0.125 for row in rows[:-1]), pt.tanh(rows[-1]))

    states = [{"initial": initial, "taps": list(range(-taps, 0))}]
    return graphc.scan(step, outputs_info=states, n_steps=steps, return_updates=False)[-1]


def _updated(x: Any) -> Any:
    """Two updates of one array, which store in memory that is chosen before the first."""
    x = pt.set_subtensor(x[..., 1:2], 3.0)
    return pt.set_subtensor(x[..., -1:], 5.0)


# What overwrites a buffer of rows; all of it is read at the end.
OVERWRITERS: dict[str, Callable[[list[Any], Any], Any]] = {
    "stack": lambda rows, n: _loop(pt.stack(rows), n, len(rows)),
    "concatenate": lambda rows, n: _loop(pt.concatenate([row[None] for row in rows]), n, len(rows)),
    "reshape": lambda rows, n: _loop(pt.concatenate(rows).reshape((len(rows), *rows[0].shape)), n, len(rows)),
    "nested": lambda rows, n: _loop(pt.concatenate([pt.stack(rows[:1]), pt.stack(rows[1:])]), n, len(rows)),
    "twice": lambda rows, n: _loop(pt.stack([rows[0]] * len(rows)), n, len(rows)),
    "updates": lambda rows, n: _updated(pt.concatenate(rows, axis=-1)),
    "update": lambda rows, n: pt.set_subtensor(pt.stack(rows)[0], 7.0),
    "joined again": lambda rows, n: pt.concatenate(
        [_updated(pt.concatenate(rows)), _loop(pt.stack(rows), n, len(rows))]
    ),
    "divided in a join": lambda rows, n: pt.concatenate([pt.concatenate(rows) / 3, rows[0]]),
}


def _check(inputs: list[Any], outputs: list[Any], values: list[Any], updates: Any = ()) -> None:
    """Compares all results, and all new values of shared variables, of each mode with the reference's."""
    cells = [cell for cell, _ in updates]
    before = [cell.get_value() for cell in cells]
    found = []
    for mode in ("reference", *MODES):
        for cell, value in zip(cells, before, strict=True):
            cell.set_value(value)
        function = graphc.function(inputs, outputs, updates=list(updates), mode=mode)
        results = [np.array(result) for result in function(*values)]
        found.append([*results, *(cell.get_value() for cell in cells)])
    tolerance = 1e-4 if any(x.dtype == np.float32 for x in found[0]) else 1e-10
    for mode, results in zip(MODES, found[1:], strict=True):
        for number, (have, want) in enumerate(zip(results, found[0], strict=True)):
            np.testing.assert_allclose(have, want, tolerance, tolerance, err_msg=f"result {number}, {mode}")


def _input(shape: tuple[int | None, ...], dtype: str) -> tuple[Any, np.ndarray]:
    x = pt.tensor("x", shape=shape, dtype=dtype)
    value = np.random.default_rng(0).normal(size=[size or 3 for size in shape]) / 2
    return x, value.astype(dtype)


def _rows(source: str, x: Any, number: int) -> tuple[Any, list[Any]]:
    """A value, and rows of which one is that value."""
    c = SOURCES[source](x)
    others = [pt.sin(c + k) for k in range(number - 1)]
    return c, [*others[: number // 2], c, *others[number // 2 :]]


@pytest.mark.parametrize("overwriter", OVERWRITERS)
@pytest.mark.parametrize("source", SOURCES)
def test_a_value_keeps_for_its_other_readers_what_it_had_before(source: str, overwriter: str) -> None:
    x, value = _input((None,), "float64")
    c, rows = _rows(source, x, 2)
    new = OVERWRITERS[overwriter](rows, 6)
    _check([x], [c, new], [value])


@pytest.mark.parametrize("taps", [2, 3])
@pytest.mark.parametrize("shape", [(3,), (None, 3), (2, None, 3)])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_every_shape_dtype_and_number_of_rows(shape: tuple[int | None, ...], dtype: str, taps: int) -> None:
    x, value = _input(shape, dtype)
    n = pt.lscalar("n")
    c, rows = _rows("elementwise", x, taps)
    new = OVERWRITERS["stack"](rows, n)
    for steps in (1, 2, 7):
        _check([x, n], [c, new, pt.exp(c) * 2], [value, steps])


@pytest.mark.parametrize("overwriter", OVERWRITERS)
def test_readers_in_loops_conditionals_and_updates(overwriter: str) -> None:
    x, value = _input((None,), "float64")
    c, rows = _rows("elementwise", x, 2)
    new = OVERWRITERS[overwriter](rows, 6)
    later = graphc.scan(
        lambda h, c: h * 0.5 + c, outputs_info=[x], non_sequences=[c], n_steps=6, return_updates=False
    )
    chosen = graphc.ifelse(new.sum() > 0, c * 2, c.cumsum())
    cell = graphc.shared(np.arange(3.0))
    joined = pt.concatenate([c, new.ravel()])
    _check([x], [new, later[-1], chosen, joined], [value], [(cell, c)])
    _check([x], [new], [value], [(cell, c + cell)])


@pytest.mark.parametrize("overwriter", ["stack", "concatenate", "updates", "update"])
def test_inside_of_a_loop_and_of_a_conditional(overwriter: str) -> None:
    x, value = _input((None,), "float64")

    def step(h: Any) -> list[Any]:
        c, rows = _rows("elementwise", h * 0.25, 2)
        new = OVERWRITERS[overwriter](rows, 6)
        return [c - new.reshape((-1, 3))[-1], new.sum() + c.sum()]

    outer = graphc.scan(step, outputs_info=[x, None], n_steps=7, return_updates=False)
    chosen = graphc.ifelse(x.sum() > -100, outer[0][-1], pt.exp(x))
    _check([x], [outer[0][-1], outer[1], chosen], [value])
    c, rows = _rows("elementwise", x, 2)
    new = OVERWRITERS[overwriter](rows, 6)
    branch = graphc.ifelse(x.sum() > -100, new, pt.zeros_like(new))
    _check([x], [branch, c], [value])


def test_several_states_start_from_the_same_values() -> None:
    x, value = _input((None,), "float64")
    c, d = pt.exp(x), pt.sin(x)
    first = _loop(pt.stack([c, d]), 6, 2)
    second = _loop(pt.stack([d, c]), 7, 2)
    together = graphc.scan(
        lambda a, b, p, q: [pt.tanh(a) + b, pt.tanh(q) - p],
        outputs_info=[
            {"initial": pt.stack([c, d]), "taps": [-2, -1]},
            {"initial": pt.stack([first, c]), "taps": [-2, -1]},
        ],
        n_steps=8,
        return_updates=False,
    )
    _check([x], [c, first, second, together[0][-1], together[1][-2:], d], [value])


def test_gradients_read_values_that_loops_start_from() -> None:
    x, value = _input((None,), "float64")
    c = pt.exp(x)
    new = _loop(pt.stack([c * 0.5, c]), 6, 2)
    gradient = graphc.grad((new**2).sum() + (c * new).sum(), x)
    _check([x], [c, gradient, new], [value])
