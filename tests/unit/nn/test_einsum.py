# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""einsum: equal to NumPy's, in every order of contraction."""

from __future__ import annotations

import re

import numpy as np
import pytest
from gradient_batches import verify_grads

import graphc
import graphc.tensor as pt
from graphc.tensor.einsums import find_path

RNG = np.random.default_rng(0)
SIZES = dict(zip("abcdefghijklmn", [2, 3, 4, 5, 3, 2, 3, 4, 3, 5, 4, 2, 3, 2], strict=True))
SUBSCRIPTS = [
    *("ij,jk->ik", "ij,jk", "ij,kj->ik", "ij,kj->ki", "ji,jk->ki", "ii->i", "ii", "ij->", "ij->ji", "ij->j"),
    *(
        "i,j->ij",
        "i,i",
        "i,i->i",
        "bij,bjk->bik",
        "bij,bjk",
        "bi,bj->bij",
        "ij,j->i",
        "j,ij->i",
        "bij,bj->bi",
    ),
    *("ij,jk,kl->il", "ij,jk,kl,lm->mi", "abc,cd,bd->a", "ijk,ilm,njm,nlk,abc->", "ij,ij->", "ab,ac->abc"),
    *("bij,bj->bi", "aab,bc->ac", "ijij->ij", "iij->j", "abcd,dc->ba", "i->", "ab,ab,ab->b"),
    *(
        "...ij,...jk->...ik",
        "...i,...i->...",
        "b...,b->...",
        "...->...",
        "...ij->...ji",
        "i...,i...",
        "ik...,k->i...",
    ),
]


def operands(subscripts, dtype="float64"):
    """Arrays of the sizes of the indices; ellipses stand for two axes."""
    arrays = []
    for part in subscripts.split("->")[0].split(","):
        shape = []
        for label in re.findall(r"\.\.\.|[a-z]", part):
            shape += [6, 3] if label == "..." else [SIZES[label]]
        arrays.append(RNG.integers(-3, 4, shape).astype(dtype) + (0.5 if dtype.startswith("f") else 0))
    return arrays


@pytest.mark.parametrize("static", [True, False])
def test_agrees_with_numpy(static):
    inputs, arrays, outputs, expected = [], [], [], []
    for subscripts in SUBSCRIPTS:
        data = operands(subscripts)
        xs = [pt.tensor(dtype="float64", shape=x.shape if static else (None,) * x.ndim) for x in data]
        inputs += xs
        arrays += data
        outputs.append(pt.einsum(subscripts, *xs))
        expected.append(np.einsum(subscripts, *data))
    for mode in ("fast_compile", "reference"):
        results = graphc.function(inputs, outputs, mode=mode)(*arrays)
        for subscripts, got, want in zip(SUBSCRIPTS, results, expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12, err_msg=f"{subscripts}, {mode}")


def test_dtypes_broadcasting_and_lists():
    a, b = RNG.normal(size=(1, 4)), RNG.normal(size=(3, 4))
    i, j = np.arange(6, dtype="int32").reshape(2, 3), np.arange(12, dtype="int8").reshape(3, 4)
    m = RNG.random((3, 3)) < 0.5
    c = RNG.normal(size=(2, 3)) + 1j
    results = graphc.function(
        [],
        [
            pt.einsum("ij,ij->i", a, b),
            pt.einsum("...j,...j->...", a, b),
            pt.einsum("ij,jk->ik", i, j),
            pt.einsum("ij,jk->ik", m, m),
            pt.einsum("ij->i", m),
            pt.einsum("ij,kj->ik", c, c),
            pt.einsum(i, [0, 1], j, [1, 2], [0, 2]),
            pt.einsum(b, [0, ...], [..., 0]),
            pt.einsum("ij->i", j),
        ],
    )()
    expected = [
        np.einsum("ij,ij->i", a, b),
        np.einsum("...j,...j->...", a, b),
        np.einsum("ij,jk->ik", i, j),
        np.einsum("ij,jk->ik", m, m),
        np.einsum("ij->i", m),
        np.einsum("ij,kj->ik", c, c),
        np.einsum(i, [0, 1], j, [1, 2], [0, 2]),
        np.einsum(b, [0, ...], [..., 0]),
        np.einsum("ij->i", j),
    ]
    for got, want in zip(results, expected, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_orders_give_the_same():
    subscripts = "ij,jk,kl,lm,mi->"
    data = operands(subscripts)
    xs = [pt.dmatrix() for _ in data]
    path = np.einsum_path(subscripts, *data, optimize="greedy")[0]
    orders = [None, True, False, "greedy", "optimal", path, [(0, 1, 2), (0, 1, 2)]]
    outputs = [pt.einsum(subscripts, *xs, optimize=order) for order in orders]
    for got in graphc.function(xs, outputs)(*data):
        np.testing.assert_allclose(got, np.einsum(subscripts, *data), rtol=1e-12)


def test_order_is_the_cheapest():
    terms = [frozenset(t) for t in ("ij", "jk", "kl")]
    sizes = {"i": 1000, "j": 2, "k": 1000, "l": 2}
    assert find_path(terms, frozenset("il"), sizes, None) == [(1, 2), (0, 1)]
    assert find_path(terms, frozenset("il"), sizes, "greedy") == [(1, 2), (0, 1)]
    assert find_path(terms, frozenset("il"), sizes, False) == [(0, 1), (0, 1)]
    many = [frozenset(f"{chr(97 + i)}{chr(98 + i)}") for i in range(12)]
    assert len(find_path(many, frozenset("am"), {chr(97 + i): None for i in range(13)}, None)) == 11


def test_gradients():
    verify_grads({
        subscripts: (lambda *xs, s=subscripts: pt.einsum(s, *xs), operands(subscripts))
        for subscripts in ("ij,jk,ik->j", "bij,bjk->bik", "ii->i", "iij,j->i", "ij->")
    })  # fmt: skip


def test_sizes_are_checked_at_run_time():
    x, y = pt.dmatrices("x", "y")
    f = graphc.function([x, y], [pt.einsum("ij,ij->i", x, y), pt.einsum("ij,kj->ik", x, y)])
    with pytest.raises(ValueError, match="3"):
        f(np.ones((2, 3)), np.ones((2, 4)))
    with pytest.raises(ValueError, match=r"size 3, expected 2|size 2, expected 3"):
        graphc.function([x], pt.einsum("ii->i", x))(np.ones((2, 3)))


@pytest.mark.parametrize(
    "subscripts, shapes, message",
    [
        ("ij,jk->ik", [(2, 3)], "2 operands, but 1 are given"),
        ("ij,jk->ik", [(2, 3), (4, 5)], "sizes 3 and 4 of index 'j'"),
        ("ij->k", [(2, 3)], r"'k' of the output .* is in no operand"),
        ("ij->ii", [(2, 3)], r"'i' of the output .* occurs twice"),
        ("ijk->i", [(2, 3)], "do not fit"),
        ("i->i", [(2, 3)], "do not fit"),
        ("ii->i", [(2, 3)], "sizes 2 and 3 of index 'i'"),
        ("i$->i", [(2, 3)], "no list of subscripts"),
        ("i..->i", [(2, 3)], "three dots"),
    ],
)
def test_errors(subscripts, shapes, message):
    with pytest.raises(ValueError, match=message):
        pt.einsum(subscripts, *(np.ones(shape) for shape in shapes))


def test_output_without_an_ellipsis_sums():
    """As in PyTensor; NumPy refuses it."""
    x, y = np.random.default_rng(0).normal(size=(2, 4, 3, 5)), np.ones((4, 5, 2))
    got = pt.einsum("...ij,...jk->ik", x, y).eval()
    np.testing.assert_allclose(got, np.einsum("abij,bjk->ik", x, y))
    np.testing.assert_allclose(pt.einsum("...j->j", x).eval(), x.sum((0, 1, 2)))


def test_errors_of_orders():
    xs = [np.ones((2, 2))] * 3
    with pytest.raises(ValueError, match="optimize must be"):
        pt.einsum("ij,jk,kl", *xs, optimize="fastest")
    with pytest.raises(ValueError, match="leaves 2 of 3"):
        pt.einsum("ij,jk,kl", *xs, optimize=[(0, 1)])
    with pytest.raises(ValueError, match="does not name"):
        pt.einsum("ij,jk,kl", *xs, optimize=[(0, 5), (0, 1)])
