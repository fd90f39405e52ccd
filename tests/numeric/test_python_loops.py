# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops with operations in Python: what is computed how often, which rows are kept, and the same numbers."""

from __future__ import annotations

import pickle
import tracemalloc
from collections import Counter
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc import scan
from graphc.compile.ops import as_op
from graphc.ifelse import ifelse

CALLS: Counter[str] = Counter()


def python(name: str, ndim: int = 1, *, dtype: str = "float64", refuses: bool = False) -> Any:
    """An op that computes 0.9 tanh in Python, and is counted; it may refuse what is negative."""
    kind = pt.TensorType(dtype, (None,) * ndim)

    def compute(a: np.ndarray) -> np.ndarray:
        CALLS[name] += 1
        if refuses and (a < 0).any():
            raise ValueError("negative")
        return np.asarray(np.tanh(a) * a.dtype.type(0.9))

    return as_op(itypes=[kind], otypes=[kind])(compute)


class Half(graphc.Op):
    """Half of a value, with a gradient."""

    def make_node(self, a: Any) -> Any:
        return graphc.graph.basic.Apply(self, [a], [a.type()])

    def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
        CALLS["half"] += 1
        output_storage[0][0] = inputs[0] / 2

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> Any:
        return [half(cotangents[0])]


f, g, half = python("f"), python("g"), Half()
x, c = pt.vector("x"), pt.vector("c")
n = pt.lscalar("n")
X, C = np.array([0.3, -0.2, 0.5]), np.array([1.0, 2.0, -0.5])


def loop(step: Any, others: Any = (c,), n_steps: Any = 7, start: Any = x, **options: Any) -> Any:
    info = start if isinstance(start, list) else [start]
    return scan(
        step,
        outputs_info=info,
        non_sequences=list(others),
        n_steps=n_steps,
        return_updates=False,
        **options,
    )


def check(inputs: Any, outputs: Any, *values: Any) -> Any:
    """A function, of which the reference says the same."""
    made = graphc.function(inputs, outputs, on_unused_input="ignore")
    expected = graphc.function(inputs, outputs, mode="reference", on_unused_input="ignore")(*values)
    CALLS.clear()
    found = made(*values)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-12 if a.dtype == "float64" else 1e-5, strict=True)
    return made


# -- what all iterations have in common ----------------------------------------------------------------------


@pytest.mark.parametrize("steps", [7, n])
def test_what_does_not_change_runs_once(steps: Any) -> None:
    h = loop(lambda h, c: g(h) + f(c) * pt.exp(c), n_steps=steps)
    check([x, c, n], [h, h[-1]], X, C, 7)
    assert CALLS == {"f": 1, "g": 7}


def test_functions_can_be_stored() -> None:
    h = loop(lambda h, c: half(h) + pt.exp(half(c)))
    made = pickle.loads(pickle.dumps(check([x, c], [h, h[-1]], X, C)))
    CALLS.clear()
    np.testing.assert_array_equal(made(X, C)[0][-1], made(X, C)[1])
    assert CALLS == {"half": 16}


def test_in_loops_in_loops() -> None:
    def inner(h: Any, c: Any) -> Any:
        return loop(lambda a, h, c: g(a) * f(c) + f(h), (h, c), 3, h)[-1]

    h = loop(inner, n_steps=4)
    check([x, c], [h[-1]], X, C)
    assert CALLS == {"f": 1 + 4, "g": 12}


def test_a_loop_is_native_when_its_python_has_left() -> None:
    h = loop(lambda h, c: pt.tanh(h) + f(c))
    made = check([x, c], [h[-1], h], X, C)
    assert CALLS == {"f": 1}
    assert not any("Scan" in str(each) for each in made.report.fallbacks)


@pytest.mark.parametrize("steps", [0, 3])
def test_without_iterations_nothing_fails(steps: int) -> None:
    careful = python("careful", refuses=True)
    h, y = loop(lambda h, c: [g(h) + careful(c), careful(c) * h], n_steps=n, start=[x, None])
    made = graphc.function([x, c, n], [h, y, h.sum()], on_unused_input="ignore")
    if steps:
        with pytest.raises(ValueError, match="negative"):
            made(X, C, steps)
    else:
        found = made(X, C, 0)
        assert [len(found[0]), len(found[1]), found[2]] == [0, 0, 0]
    assert made(X, abs(C), 0)[1].shape == (0, 3)


def test_what_a_branch_needs_runs_where_it_is_chosen() -> None:
    h = loop(lambda h, c: ifelse(h[0] > 10, f(c), g(h)))
    check([x, c], [h], X, C)
    assert CALLS == {"g": 7}


def test_printing_is_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    h = loop(lambda h, c: pt.tanh(h) + graphc.printing.Print("c")(c))
    graphc.function([x, c], h[-1])(X, C)
    assert capsys.readouterr().out.count("c ") >= 7


def test_what_nobody_reads_is_not_computed() -> None:
    _, y = loop(lambda a, b, c: [g(a) + c, pt.tanh(b) * c], start=[x, x])
    made = check([x, c], [y], X, C)
    assert not CALLS
    assert not made.report.fallbacks


def test_a_check_of_what_nobody_reads_stays() -> None:
    positive = graphc.raise_op.Assert("positive")
    _, y = loop(lambda a, b, c: [g(positive(a, a > 0)) + c, g(b) * c], start=[x, x])
    with pytest.raises(AssertionError, match="positive"):
        graphc.function([x, c], y)(X, C)


# -- which rows are kept -------------------------------------------------------------------------------------

READS = {
    "[-1]": lambda h: [h[-1]],
    "[-1] of both": lambda h: [h[-1], h[-2]],
    "[-3:]": lambda h: [h[-3:]],
    "[-3:-1]": lambda h: [h[-3:-1]],
    "[-4::2]": lambda h: [h[-4::2]],
    "[:-1][-1]": lambda h: [h[:-1][-1]],
    "[2:][-1]": lambda h: [h[2:][-1], h[-2:]],
    "[-1, 1]": lambda h: [h[-1, 1], h[-2, ::-1]],
    "all and last": lambda h: [h, h[-1]],
    "first and last": lambda h: [h[0], h[-1]],
    "[:3]": lambda h: [h[:3]],
    "[::-1]": lambda h: [h[::-1][0], h[-1]],
    "sizes": lambda h: [h.shape[0] + h[-1]],
}


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("kind", ["state", "two taps", "output", "while", "backwards"])
def test_rows(kind: str, read: str, steps: int) -> None:
    """Number of steps known and unknown; where there are too few rows, the same error."""

    def made(count: Any) -> list[Any]:
        if kind == "output":
            h = loop(lambda a, c: [g(a) + c, f(a)], n_steps=count, start=[x, None])[1]
        elif kind == "two taps":
            start = {"initial": pt.stack([x, x * 2]), "taps": [-2, -1]}
            h = loop(lambda a, b, c: g(a) + 0.5 * b + c, n_steps=count, start=start)
        elif kind == "while":
            h = loop(lambda a, c: (g(a) + c, graphc.scan.until(a[0] > 1e9)), n_steps=count)
        else:
            h = loop(lambda a, c: g(a) + c, n_steps=count, go_backwards=kind == "backwards")
        return READS[read](h)

    for count in (steps, n):
        try:
            outputs = made(count)
        except IndexError:
            continue
        inputs = [x, c, n]
        try:
            graphc.function(inputs, outputs, mode="reference", on_unused_input="ignore")(X, C, steps)
        except IndexError:
            with pytest.raises(IndexError):
                graphc.function(inputs, outputs, on_unused_input="ignore")(X, C, steps)
            continue
        check(inputs, outputs, X, C, steps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients(dtype: str) -> None:
    """Loops of gradients run backwards, and their last rows come first."""

    a, b = pt.vector("a", dtype=dtype), pt.vector("b", dtype=dtype)
    h = loop(lambda h, b: pt.tanh(half(h)) * half(b) + b, (b,), 5, a)
    loss = (h[-1] ** 2).sum()
    check([a, b], [loss, *graphc.grad(loss, [a, b])], X.astype(dtype), C.astype(dtype))


def test_memory() -> None:
    """Of 300 rows none is kept but the last; of all rows, each once, and once in the result.

    Where the last is read, there are three: what the function reads, and the two arrays that it makes. The
    initial row is the caller's, an iteration's row is gone when its last reader is, and the result is the
    copy of one row.
    """
    h = loop(lambda h, c: g(h) + c, n_steps=300)
    row = np.ones(10_000)
    for outputs, rows in ((h[-1], 3.2), (h[-4:].sum(0), 9.2), (h, 2 * 301)):
        made = graphc.function([x, c], outputs)
        made(row, row)
        tracemalloc.start()
        made(row, row)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < rows * row.nbytes


def test_rows_are_the_callers() -> None:
    """Results of two calls, and rows in a result, share no memory."""
    h = loop(lambda h, c: g(h) + c)
    made = graphc.function([x, c], [h, h[-1], h[2:]])
    first = made(X, C)
    kept = [v.copy() for v in first]
    for v in made(X, C):
        v[...] = 0
    for a, b in zip(first, kept, strict=True):
        np.testing.assert_array_equal(a, b)
