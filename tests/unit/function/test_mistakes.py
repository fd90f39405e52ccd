# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mistakes of newcomers: each error says what was given, what was expected, the line, and what to do.

The line is in the message where the error comes when a function is called, and else in Python's traceback.
"""

from __future__ import annotations

import math
import re
import traceback
from pathlib import Path

import numpy as np
import pytest

import graphc
import graphc.tensor as pt

x, y, m = pt.vector("x"), pt.vector("y"), pt.matrix("m")
r, i = pt.scalar("r"), pt.iscalar("i")
w = graphc.shared(np.zeros(2), name="w")


def call(inputs, outputs, *values, **named):
    graphc.function(inputs, outputs, mode="fast_compile")(*values, **named)


def assign():
    x[0] = 1.0


def condition():
    return r if r > 0 else -r


def loop_while():
    k = r
    while k < 3:
        k = k + 1


def loop(step, **options):
    return graphc.scan(step, return_updates=False, **options)


# The mistake, and pieces of the message: given, expected, what to do.
BUILDING = {
    "if": (condition, "gt.out", "no value before it is run", "switch(condition, a, b)"),
    "while": (loop_while, "lt.out", "cannot be a condition", "`while_loop`"),
    "and": (lambda: (r > 0) and (r < 1), "gt.out", "cannot be a condition", "&, | and ~"),
    "for": (lambda: list(x), "x, whose length is not known", "scan(step, sequences=[...])"),
    "range": (lambda: range(i), "of i", "no value before it is run", "n_steps"),
    "float": (lambda: float(r), "float() of r", "no value before it is run", "eval()"),
    "math": (lambda: math.exp(r), "of r", "no value before it is run", "functions of graphc.tensor"),
    "len": (lambda: len(x), "len() of x", "no value before it is run", "shape[0]"),
    "in": (lambda: 1.0 in x, "`in` has no symbolic meaning", "graphc.tensor.any"),
    "assignment": (assign, "do not change", "x[index].set(value)"),
    "static shapes": (lambda: pt.ones(2) + pt.ones(3), "sizes 2 and 3", "do not broadcast", "shape (2,)"),
    "axis": (lambda: x.sum(axis=1), "axis 1", "1 dimensions", "its axes are -1 to 0"),
    "index": (lambda: x[1.5], "got 1.5", "must be an integer, slice"),
    "dimensions of joined": (lambda: pt.concatenate([x, m]), "x of type", "equal numbers", "x[None]"),
    "branches": (lambda: pt.ifelse(r > 0, x, m), "x of type", "equal numbers of dimensions"),
    "dtype's name": (lambda: pt.vector("v", dtype="float63"), "'float63'", "float32, float64"),
    "name": (lambda: pt.expp, "'expp'", "did you mean 'exp'?"),
    "not an array": (lambda: pt.exp("a"), "'a'", "hold one of"),
    "gradient of a vector": (lambda: graphc.grad(x * 2, x), "got mul.out", "needs a scalar", ".sum()"),
    "gradient of a number": (lambda: graphc.grad(3.0, x), "got 3.0", "needs a variable"),
    "gradient by another": (lambda: graphc.grad(r**2, x), "respect to x", "does not depend", "'ignore'"),
    "outputs of a step": (
        lambda: loop(lambda a, b: (a, b, a), sequences=[x], outputs_info=[r]),
        *("returns 3 outputs", "outputs_info has 1", "None for each"),
    ),
    "shape of a state": (
        lambda: loop(lambda b: pt.concatenate([b, b]), outputs_info=[pt.ones(2)], n_steps=3),
        *("(4,)", "starts as", "Size 2 of axis 0 must stay the same"),
    ),
    "steps": (lambda: loop(lambda b: b * 2, outputs_info=[r]), "unknown", "give n_steps"),
    "step without result": (lambda: loop(lambda b: None, outputs_info=[r], n_steps=3), "None", "must return"),
    "arguments of a step": (
        lambda: loop(lambda a: a, sequences=[x], outputs_info=[r]),
        *("2 arguments (x[t], r[t-1])", "parameters are (a)", "The order is"),
    ),
    "input forgotten": (lambda: graphc.function([x], x + y), "y of type", "not among the inputs", "Add it"),
    "value forgotten": (lambda: (x + y).eval({x: [1.0]}), "y of type", "not among", "for eval(), with a key"),
    "input of no use": (lambda: graphc.function([x, y], x + 1), "the input y", "remove it"),
    "array as input": (lambda: graphc.function([np.ones(2)], x), "ndarray", "must be a variable", "vector"),
    "no list": (lambda: graphc.function(x, x + 1), "the single x", "must be a list", "write [x]"),
    "mode": (lambda: graphc.function([x], x + 1, mode="FAST"), "'FAST'", "the modes are fast_run"),
    "update of an input": (
        lambda: graphc.function([x], x, updates={x: x + 1}),
        *("got x", "only shared variables", "graphc.shared(value)"),
    ),
    "type of an update": (
        lambda: graphc.function([m], w, updates={w: m}),
        *("got m of type", "must be of its type", "shared variable w"),
    ),
    "new value": (lambda: w.set_value("no"), "got 'no'", "expected a value for TensorType(float64, (?,))"),
}
CALLING = {
    "dtype": (lambda: call([i], i + 1, 1.5), "got 1.5", "type TensorType(int32, ())", "allow_downcast"),
    "complex": (lambda: call([x], x + 1, np.ones(2) * 1j), "complex128", "float64", "astype('float64')"),
    "text": (lambda: call([x], x + 1, "abc"), "got 'abc'", "expected a value for"),
    "dimensions": (lambda: call([x], x + 1, np.ones((2, 2))), "got 2 with shape (2, 2)", "expected 1"),
    "too few": (lambda: call([x, y], x + y, [1.0]), "missing input 1 'y'", "of type"),
    "too many": (lambda: call([x], x + 1, [1.0], [1.0]), "takes 1 input, got 2"),
    "keyword": (lambda: call([x], x + 1, z=[1.0]), "no input named 'z'", "the names are x"),
    "twice": (lambda: call([x], x + 1, [1.0], x=[1.0]), "'x' both by position and by name"),
    "sizes": (lambda: call([x, y], x + y, [1.0, 2.0], [1.0, 2.0, 3.0]), "2 and 3", "must agree", "x, y"),
    "product": (lambda: call([m, x], m @ x, np.ones((2, 3)), [1.0]), "3 columns", "1 rows"),
    "bounds": (lambda: call([x], x[5], [1.0]), "index 5", "size 1"),
    "reshape": (lambda: call([x], x.reshape((2, 2)), [1.0]), "1 elements", "shape of 4 elements"),
    "short sequence": (
        lambda: call([x], loop(lambda a: a * 2, sequences=[x], n_steps=5), [1.0, 2.0]),
        *("runs 5 steps", "'x' has rows for 2 only"),
    ),
}
# What is refused before anything runs: the message has the line where the input was made.
_OF_CALLS = ("too many", "keyword", "twice")


@pytest.mark.parametrize("mistake", BUILDING)
def test_building(mistake):
    wrong, *pieces = BUILDING[mistake]
    with pytest.raises((TypeError, ValueError, IndexError, AttributeError)) as caught:
        wrong()
    assert [piece for piece in pieces if piece not in str(caught.value)] == [], caught.value
    assert __file__ in "".join(traceback.format_tb(caught.value.__traceback__))
    assert not re.search(r"0x[0-9a-f]{6}", str(caught.value))


@pytest.mark.parametrize("mistake", CALLING)
def test_calling(mistake):
    wrong, *pieces = CALLING[mistake]
    with pytest.raises((TypeError, ValueError, IndexError)) as caught:
        wrong()
    assert [piece for piece in pieces if piece not in str(caught.value)] == [], caught.value
    if mistake not in _OF_CALLS:
        assert re.search(rf"{re.escape(Path(__file__).name)}:\d+", str(caught.value)), caught.value


def test_at_least_thirty():
    assert len(BUILDING) + len(CALLING) >= 30


def test_none_is_in_no_shape():
    """Code for static shapes and for symbolic ones asks whether a size is unknown."""
    matrix, known = pt.matrix(), pt.tensor(shape=(None, 3))
    for shape in (matrix.shape, known.shape, pt.constant([1, 2]), pt.vector()):
        assert None not in shape and "2" not in shape
    assert None in known.type.shape and None not in pt.constant([1]).type.shape
