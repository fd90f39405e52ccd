# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Indexing against NumPy: reading, setting, increasing, and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from op_cases import perform

import graphc
import graphc.tensor as pt

X = np.arange(2 * 3 * 4, dtype=float).reshape(2, 3, 4)
INDICES = [
    0,
    -1,
    (0, 1),
    (1, 2, 3),
    slice(None),
    slice(1, None),
    slice(None, None, -1),
    slice(-2, None),
    slice(5, 1),
    (slice(None), slice(2, 0, -1)),
    (slice(None), slice(None, None, 2), slice(3, None, -2)),
    Ellipsis,
    (Ellipsis, 0),
    (0, Ellipsis, 1),
    None,
    (None, 0, None),
    (slice(None), None, 1),
    (Ellipsis, None),
    [0, 1, 0],
    (slice(None), [2, 0]),
    (slice(None), [[0, 1], [2, -1]]),
    (0, [1, 2]),
    (0, slice(None), [1, 3]),
    ([0, 1], [1, 2]),
    ([1, 0], slice(None), [0, 3]),
    ([[0], [1]], [[0, 2]]),
    (slice(0, 1), [0, 2], None),
    (Ellipsis, [0, 0], slice(1, 3)),
    slice(3, 10),
    slice(-10, -1),
    (slice(None), slice(0, 0)),
    (np.array([True, False]), slice(None), 1),
]


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("index", INDICES, ids=str)
def test_basic_and_array_indices(index: Any, static: bool) -> None:
    x = pt.tensor("x", dtype="float64", shape=X.shape if static else (None,) * 3)
    part = x[index]
    expected = X[index]
    if static:
        assert part.type.shape == expected.shape
    y = np.arange(expected.size, dtype=float).reshape(expected.shape) + 0.5
    outputs = [part, part.set(y), part.inc(y), part.set(7.0)]
    got = perform(outputs, {x: X})
    was_set, was_increased, was_filled = X.copy(), X.copy(), X.copy()
    was_set[index], was_filled[index] = y, 7.0
    np.add.at(was_increased, index, y)
    for value, want in zip(got, (expected, was_set, was_increased, was_filled), strict=True):
        np.testing.assert_array_equal(value, want)


def test_compiled_indices() -> None:
    x = pt.tensor3("x")
    parts = [x[index] for index in INDICES]
    outputs = [*parts, *(part.set(7.0) for part in parts), *(part.inc(2.0) for part in parts)]
    function = graphc.function([x], outputs)
    for got, want in zip(function(X), perform(outputs, {x: X}), strict=True):
        np.testing.assert_array_equal(got, want)


def test_sums_with_updates_of_zeros_that_broadcast() -> None:
    """What is put into zeros of size 1 counts for all that it is added to."""
    x = np.arange(21.0).reshape(3, 7)
    given, outputs, expected = pt.matrix("x", shape=(3, 7)), [], []
    for shape in ((3, 7), (1, 7), (3, 1), (1, 1), (7,), (1,)):
        for at in (0, slice(0, 1), [0], (..., slice(-1, None))):
            for other, values in ((given, x), (given[:, 2:3], x[:, 2:3]), (given[0], x[0])):
                for name in ("set", "inc"):
                    # A number of its own for each: of what is read twice nothing is made.
                    zeros, number = np.zeros(shape), len(outputs)
                    zeros[at] = number
                    outputs.append(other + getattr(pt.zeros(shape)[at], name)(given[0, 0] + number))
                    expected.append(values + zeros)
    for got, want in zip(graphc.function([given], outputs)(x), expected, strict=True):
        np.testing.assert_array_equal(got, want)


bounds = st.none() | st.integers(-6, 6)


@given(bounds, bounds, st.none() | st.integers(-3, 3).filter(bool), st.integers(0, 5))
def test_slices_with_symbolic_bounds(
    start: int | None, stop: int | None, step: int | None, size: int
) -> None:
    x = pt.vector("x")
    symbols = [None if bound is None else pt.lscalar() for bound in (start, stop, step)]
    part = x[slice(*symbols)]
    data = np.arange(size, dtype=float)
    values = {s: np.asarray(b) for s, b in zip(symbols, (start, stop, step), strict=True) if s is not None}
    got, updated = perform([part, part.inc(1.0)], {x: data, **values})
    np.testing.assert_array_equal(got, data[start:stop:step])
    expected = data.copy()
    expected[start:stop:step] += 1
    np.testing.assert_array_equal(updated, expected)


def test_compiled_slices_with_symbolic_bounds() -> None:
    x, start, stop, step = pt.vector("x"), pt.lscalar("start"), pt.lscalar("stop"), pt.lscalar("step")
    function = graphc.function(
        [x, start, stop, step], [x[start:stop:step], x[start::-2], x[:stop], x[1:stop].set(0)]
    )
    for size in (0, 1, 4):
        data = np.arange(size, dtype=float)
        for a in (-5, -1, 0, 1, 3, 6):
            for b in (-5, -2, 0, 2, 4, 9):
                for c in (-3, -1, 1, 2):
                    cleared = data.copy()
                    cleared[1:b] = 0
                    for got, want in zip(
                        function(data, a, b, c), (data[a:b:c], data[a::-2], data[:b], cleared), strict=True
                    ):
                        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("index", [index for index in INDICES if not isinstance(index, np.ndarray)], ids=str)
def test_gradients(index: Any) -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=np.shape(X[index]))
    graphc.verify_grad(lambda x: x[index], [X / 10], rng=rng, mode="reference")
    graphc.verify_grad(lambda x, y: x[index].set(y) ** 2, [X / 10, y], rng=rng, mode="reference")
    graphc.verify_grad(lambda x, y: x[index].inc(y) ** 2, [X / 10, y], rng=rng, mode="reference")


def test_errors() -> None:
    x = pt.vector("x", shape=(3,))
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0"):
        x[3]
    with pytest.raises(IndexError, match=r"2 indices for x.* 1 dimensions"):
        x[0, 0]
    with pytest.raises(IndexError, match="integer"):
        x[1.5]
    with pytest.raises(TypeError, match="indexed variable"):
        pt.set_subtensor(x, 1)
    with pytest.raises(TypeError, match="cast"):
        pt.ivector("i")[:2].set(pt.vector("v"))
    i = pt.lscalar("i")
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 of size 3"):
        perform([x[i]], {x: np.zeros(3), i: np.asarray(7)})
    with pytest.raises(IndexError, match="index -4 is out of bounds"):
        perform([x[[0, -4]]], {x: np.zeros(3)})


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
def test_long_indices_are_checked_while_they_are_used(mode: str) -> None:
    """Nothing outside of the vector is read, whatever the index; the smallest or largest one is named."""
    x, i, j = pt.vector("x"), pt.lvector("i"), pt.tensor("j", dtype="int32", shape=(None,))
    z, c = pt.lvector("z"), pt.tensor("c", dtype="complex128", shape=(None,))
    first = graphc.function([x, i, z], [x[i] + 1, z[i]], mode=mode)
    second = graphc.function([i, c], [c[i] * 2, c[i] + 1], mode=mode)
    third = graphc.function([x, i, j, c], x[i] * c[j], mode=mode)
    if mode == "fast_run":
        assert all("scf.if" in function.ir_stages()["buffer"] for function in (first, second))
    rng = np.random.default_rng(0)

    def call(size: int, index: Any) -> Any:
        data = rng.normal(size=size)
        index = np.asarray(index)
        whole, pairs = np.arange(size), data + 1j
        short = index.astype(np.int32)
        got = [*first(data, index, whole), *second(index, pairs), third(data, index, short, pairs)]
        wanted = data[index] + 1, whole[index], pairs[index] * 2, pairs[index] + 1, data[index] * pairs[index]
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-14)

    for size, count in ((1, 1), (5, 0), (0, 0), (7, 40), (1000, 20_000)):
        call(size, rng.integers(-size, size, count) if size else np.zeros(0, int))
    for size, bad in ((5, 5), (5, -6), (0, 0), (0, -1), (3, 2**31 - 1), (3, -(2**31))):
        index = np.zeros(20_000, int)
        index[17_000] = bad
        with pytest.raises(
            IndexError, match=f"index {bad if size else '.*'} is out of bounds .* size {size}"
        ):
            call(size, index)


def test_every_part_is_set_within_what_it_was_taken_from() -> None:
    """Also parts of a shape, whose elements are read without the vector, and all of a number, which may be a
    part of something else itself.
    """
    x, v = pt.matrix("x", dtype="float64"), pt.vector("v", dtype="float64")
    element = v[1]
    parts = [x.shape[1:], x.shape[-1:], x.shape[::-1], x.shape[:], x.shape[5:], x.shape[1:][:1], element[...]]
    parts += [element[()], element, v[1:][...], pt.stack([v[0], v[1]])[:1]]
    changed = [found for part in parts for found in (pt.inc_subtensor(part, 10), pt.set_subtensor(part, 7))]
    found = graphc.function([x, v], changed)(np.zeros((2, 3)), [1.0, 2.0, 3.0])
    wanted: list[object] = [
        [2, 13],
        [2, 7],
        [2, 13],
        [2, 7],
        [12, 13],
        [7, 7],
        [12, 13],
        [7, 7],
        [2, 3],
        [2, 3],
    ]
    wanted += [[13], [7], 12, 7, 12, 7, [1, 12, 3], [1, 7, 3], [12, 13], [7, 7], [11, 2], [7, 2]]
    for have, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(have, want)


def test_elements_of_a_shape_need_no_vector() -> None:
    x = pt.tensor("x", dtype="float64", shape=(None, 5))
    assert int(x.shape[1].data) == 5
    assert type(x.shape[0].owner.op).__name__ == "Shape_i"
    assert x.shape[1:].type.shape == (1,)


def _in_rows(x: Any, cut: Any) -> list[Any]:
    """Matrices of 5 columns whose elements come from others: joined, set, or further on in a wider one."""
    s = pt.sigmoid(pt.shape_padright(x) - cut)
    rows, wide = np.zeros((30, 1)), pt.concatenate([s, s**2, -s], axis=1)
    joined = pt.concatenate([rows, s, rows + 1], axis=1)
    updated = pt.set_subtensor(pt.constant(np.full((30, 6), 2.0))[:, 2:5], s[:, 1:])
    differences = joined[:, 1:] - joined[:, :-1]
    return [differences, updated[:, 1:], wide[:, 3:8], pt.exp(wide[:, 6:1:-1]), joined[:, :5]]


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("kind", ["constant", "unknown", "not in rows", "negative"])
def test_one_element_of_each_row(number: int, kind: str) -> None:
    """Its value and slopes, where it is known to be in a row of its own and where it is not."""
    rng = np.random.default_rng(number)
    x, cut, at = pt.dvector("x", shape=(30,)), pt.dvector("cut", shape=(4,)), pt.lvector("at", shape=(30,))
    rows, columns = np.arange(30), rng.integers(0, 5, 30)
    if kind == "not in rows":
        rows = rows[::-1].copy()
    if kind == "negative":
        columns[::3] -= 5
    chosen = _in_rows(x, cut)[number][rows, at if kind == "unknown" else columns]
    loss = pt.sum(pt.log(chosen**2 + 1) * rng.normal(size=30))
    outputs = [chosen, *graphc.grad(loss, [x, cut])]
    values = [rng.normal(size=30), np.sort(rng.normal(size=4)), columns]
    f = graphc.function([x, cut, at], outputs, on_unused_input="ignore")
    expected = graphc.function([x, cut, at], outputs, mode="reference", on_unused_input="ignore")(*values)
    for got, want in zip(f(*values), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)
