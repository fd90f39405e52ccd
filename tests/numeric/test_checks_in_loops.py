# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A check is an effect of each iteration and of each branch that is run, whatever is read of the loop.

Compiled functions raise where the graph as written, run op by op, does.
"""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc import function, grad, ifelse, scan
from graphc.raise_op import Assert, CheckAndRaise
from graphc.transforms.vectorize import vectorize_graph

check = Assert("the number is positive")

# What an iteration makes of a number and a state.
BODIES = {
    "number": lambda x, s: check(x, x > 0) * 2,
    "never": lambda x, s: check(x, False) * 2,
    "never, state": lambda x, s: check(s, False) + x,
    "state": lambda x, s: check(s + x, x > 0),
    "condition on the state": lambda x, s: check(x, s > -5),
    "value is not needed": lambda x, s: check(x, x > 0) * 0 + s,
    "expensive": lambda x, s: pt.exp(check(x, x > 0)) + s,
    "product": lambda x, s: pt.dot(check(pt.stack([x, s]), x > 0), np.eye(2, dtype=x.dtype))[0],
    "two": lambda x, s: check(x, x > 0, x < 100) + CheckAndRaise(ValueError, "large")(x, x < 50),
    "holds": lambda x, s: check(x, x > -100) + s,
    "branch": lambda x, s: ifelse(x > -100, check(x, x > 0), s),
    "other branch": lambda x, s: ifelse(x > 100, check(x, x > 200), s + x),
}

# What is read of the rows.
READS = {
    "all": lambda h, v: h,
    "last": lambda h, v: h[-1],
    "first": lambda h, v: h[0],
    "start": lambda h, v: h[:2],
    "sum": lambda h, v: h.sum(),
    "gradient": lambda h, v: grad((h**2).sum(), v),
    "reversed": lambda h, v: h[::-1],
    "square": lambda h, v: pt.exp(h) * 2,
}


def _map(body, v):
    return scan(lambda x: body(x, x + 1), sequences=[v], return_updates=False)


def _state(body, v):
    first = pt.constant(np.asarray(1, v.dtype))
    return scan(lambda x, s: body(x, s), sequences=[v], outputs_info=[first], return_updates=False)


def _unread(body, v):
    """The state with the check is beside the one that is read."""
    first = pt.constant(np.asarray(1, v.dtype))
    rows = scan(
        lambda x, s, r: (s + 1, body(x, r)), sequences=[v], outputs_info=[first, first], return_updates=False
    )
    return rows[0] + 0 * rows[1]


def _while(body, v):
    return scan(lambda x: (body(x, x), graphc.scan.until(x > 1000)), sequences=[v], return_updates=False)


def _nested(body, v):
    def row(x):
        inner = scan(lambda y: body(y * x, x), sequences=[v[:2] * 0 + 1], return_updates=False)
        return inner.sum()

    return scan(row, sequences=[v], return_updates=False)


def _backwards(body, v):
    return scan(lambda x: body(x, x), sequences=[v], go_backwards=True, return_updates=False)


LOOPS = {f.__name__: f for f in (_map, _state, _unread, _while, _nested, _backwards)}
GIVEN = {
    "right": [1, 2, 3, 4, 5],
    "wrong at the end": [1, 2, 3, 4, -10],
    "wrong": [1, -10, 3, 4, 5],
    "no": [],
}


def _outcome(f, values):
    try:
        return None, f(values)
    except (AssertionError, ValueError, IndexError) as error:
        return type(error), None


def _compare(variable, result, modes=("fast_run", "fast_compile")):
    reference = function([variable], result, mode="reference", on_unused_input="ignore")
    compiled = [function([variable], result, mode=mode, on_unused_input="ignore") for mode in modes]
    raised = 0
    for name, given in GIVEN.items():
        values = np.asarray(given, variable.dtype)
        if variable.type.shape not in ((None,), (len(given),)):
            continue
        error, right = _outcome(reference, values)
        for mode, f in zip(modes, compiled, strict=True):
            found, value = _outcome(f, values)
            assert found is error, f"{name} values in mode {mode}: {found} instead of {error}"
            if error is None and np.all(np.isfinite(right)):
                np.testing.assert_allclose(value, right, rtol=1e-4, atol=1e-4)
        raised += error is not None
    return raised


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("body", BODIES)
def test_loops(loop, body):
    """All kinds of loops, of bodies, and of what is read of them; one read of each kind in each dtype."""
    number = list(BODIES).index(body) + list(LOOPS).index(loop)
    reads = list(READS)
    for offset in (0, 3, 6):
        read = reads[(number + offset) % len(reads)]
        dtype = ("float64", "float32")[(number + offset) % 2]
        shape = ((None,), (5,))[number % 2]
        v = pt.tensor("v", dtype=dtype, shape=shape)
        _compare(v, READS[read](LOOPS[loop](BODIES[body], v), v), ("fast_run",))


@pytest.mark.parametrize("read", [name for name in READS if name != "gradient"])
def test_reads(read):
    """What is read of a loop decides nothing about its checks: each is made in every iteration."""
    v = pt.vector("v")
    assert _compare(v, READS[read](_map(BODIES["number"], v), v)) >= 2


def test_only_the_size_is_read():
    """As without a loop: what a result is made of is checked."""
    v = pt.vector("v")
    assert _compare(v, _map(BODIES["number"], v).shape[0]) == 2


def test_batches():
    """The conditions of all elements of a batch hold."""
    v, m = pt.vector("v"), pt.matrix("m")
    for loop in (_map, _state):
        rows = vectorize_graph(loop(BODIES["state"], v), {v: m})
        for mode in ("fast_run", "reference"):
            f = function([m], rows, mode=mode)
            assert f(np.ones((2, 3))).shape == (2, 3)
            with pytest.raises(AssertionError, match="positive"):
                f([[1.0, 2.0, 3.0], [1.0, -2.0, 3.0]])


def test_a_branch_that_is_not_taken():
    """Loops in a branch check where the branch is taken."""
    v, c = pt.vector("v"), pt.scalar("c", dtype="bool")
    for read in ("last", "all", "sum"):
        loop = READS[read](_map(BODIES["number"], v), v)
        for mode in ("fast_run", "reference"):
            f = function([c, v], ifelse(c, loop, 0 * v if loop.ndim else pt.constant(0.0)), mode=mode)
            np.testing.assert_array_equal(f(False, [1.0, -1.0]), 0 * f(True, [1.0, 1.0]))
            with pytest.raises(AssertionError):
                f(True, [1.0, -1.0])


def test_parts_of_joins():
    """Reading a part of a join reads the join: all its parts are checked, whichever is read."""
    v = pt.vector("v")
    parts = [v[1], check(v[1], v[0] > 0)]
    for mode in ("fast_run", "fast_compile", "reference"):
        for read in (pt.stack(parts)[0], pt.stack(parts)[1], pt.stack(parts).sum()):
            f = function([v], read, mode=mode)
            assert f([1.0, 2.0]) in (2, 4)
            with pytest.raises(AssertionError):
                f([-1.0, 2.0])
