# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that move elements, pad, and make grids: equal to NumPy's, compiled and in reference mode."""

from __future__ import annotations

import numpy as np
import pytest
from gradient_batches import verify_grads

import graphc
import graphc.tensor as pt

RNG = np.random.default_rng(0)


def agree(build, reference, *arrays, rtol=1e-13):
    """Compares lists of results with known and unknown sizes, compiled and in reference mode."""
    expected = reference(*arrays)
    for static in (True, False):
        xs = [pt.tensor(dtype=a.dtype.name, shape=a.shape if static else (None,) * a.ndim) for a in arrays]
        outputs = build(*xs)
        for mode in ("fast_compile", "reference") if static else ("fast_run",):
            results = graphc.function(xs, outputs, mode=mode, on_unused_input="ignore")(*arrays)
            assert len(results) == len(expected)
            for i, (got, want) in enumerate(zip(results, expected, strict=True)):
                want = np.asarray(want)
                assert got.dtype == want.dtype, (i, got.dtype, want.dtype)
                np.testing.assert_allclose(
                    got, want, rtol=rtol, atol=1e-14, err_msg=f"result {i}, {mode}, {static}"
                )


def each(*functions):
    """The same calls on `pt` and on NumPy."""
    return (lambda *xs: [f(pt, *xs) for f in functions]), (lambda *xs: [f(np, *xs) for f in functions])


@pytest.mark.parametrize("shape", [(3, 4), (1, 5), (0, 3)])
def test_flip_rotate_and_roll(shape):
    build, reference = each(
        lambda m, x: m.flip(x),
        lambda m, x: m.flip(x, 1),
        lambda m, x: m.flip(x, (0, -1)),
        lambda m, x: m.flipud(x),
        lambda m, x: m.fliplr(x),
        *(lambda m, x, k=k: m.rot90(x, k) for k in (-1, 0, 1, 2, 5)),
        lambda m, x: m.rot90(x, 1, axes=(1, 0)),
        lambda m, x: m.roll(x, 3),
        lambda m, x: m.roll(x, -7, axis=1),
        lambda m, x: m.roll(x, (1, 2), axis=(0, 1)),
        lambda m, x: m.roll(x, 2, axis=(0, 1)),
        lambda m, x: m.roll(x, (1, 2, -4), axis=0),
        lambda m, x: m.roll(x, 0, axis=0),
    )
    agree(build, reference, RNG.normal(size=shape))


def test_symbolic_shift():
    x, s = pt.dvector("x"), pt.iscalar("s")
    f = graphc.function([x, s], pt.roll(x, s))
    for shift in (-9, -5, -1, 0, 1, 4, 5, 12):
        np.testing.assert_array_equal(f(np.arange(5.0), np.int32(shift)), np.roll(np.arange(5.0), shift))


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 1, 3), (0, 2), ()])
def test_tile(shape):
    build, reference = each(
        lambda m, x: m.tile(x, 2),
        lambda m, x: m.tile(x, (2, 3)),
        lambda m, x: m.tile(x, (2, 1, 2, 1)),
        lambda m, x: m.tile(x, (0, 2)),
    )
    agree(build, reference, RNG.integers(0, 9, shape).astype("int32"))


@pytest.mark.parametrize("shape", [(3, 4), (4, 3), (1, 1), (5, 1), (0, 3), (2, 3, 4)])
def test_diagonals(shape):
    build, reference = each(
        *(lambda m, x, k=k: m.diagonal(x, k) for k in range(-5, 6)),
        *(lambda m, x, k=k: m.trace(x, k) for k in (-1, 0, 2)),
        lambda m, x: m.diagonal(x, 1, 1, 0),
        lambda m, x: m.diagonal(x, 0, -1, 0),
    )
    agree(build, reference, RNG.normal(size=shape))


@pytest.mark.parametrize("n", [0, 1, 3])
def test_diag_of_vectors_and_matrices(n):
    functions = [*(lambda m, v, x, k=k: m.diag(v, k) for k in (-2, 0, 1)), lambda m, v, x: m.diag(x, 1)]
    build, reference = each(*functions)
    agree(build, reference, RNG.normal(size=n), RNG.normal(size=(n, n + 1)))


def test_fill_diagonal():
    def numpy(x, v):
        results = []
        for value in (7.0, v):
            copy = x.copy()
            np.fill_diagonal(copy, value)
            results.append(copy)
        return results

    agree(
        lambda x, v: [pt.fill_diagonal(x, 7.0), pt.fill_diagonal(x, v)],
        numpy,
        RNG.normal(size=(3, 4)),
        np.arange(3.0),
    )


def test_gradients_of_rearrangements():
    x = RNG.normal(size=(3, 4))
    v = RNG.normal(size=3)
    cases = [
        (lambda a: pt.roll(a, 2, axis=1) ** 2, x),
        (lambda a: pt.rot90(a) * pt.arange(3.0), x),
        (lambda a: pt.tile(a, (2, 2)) ** 3, x),
        (lambda a: pt.diagonal(a, 1) ** 2, x),
        (lambda a: pt.diag(a, -1) @ pt.ones((4, 2)), v),
        (lambda a: pt.pad(a, ((1, 2), (0, 3)), mode="reflect") ** 2, x),
        (lambda a: pt.pad(a, 2, mode="linear_ramp"), x),
        (lambda a: pt.linspace(a, 2 * a, 5) ** 2, v),
    ]
    verify_grads({f"case {i}": (f, [value]) for i, (f, value) in enumerate(cases)}, mode="fast_compile")


WIDTHS = [2, (1, 3), ((0, 1), (2, 0)), ((5, 7), (9, 4))]


@pytest.mark.parametrize(
    "dtype, width", [("int64", WIDTHS[2]), *(("float64", width) for width in WIDTHS)], ids=str
)
def test_pad(dtype, width):
    modes = [
        ("constant", {}),
        ("constant", {"constant_values": ((1, 2), (3, 4))}),
        ("edge", {}),
        ("wrap", {}),
        ("reflect", {}),
        ("symmetric", {}),
        ("symmetric", {"reflect_type": "odd"}),
        ("reflect", {"reflect_type": "odd"}),
        ("linear_ramp", {"end_values": (5, -4)}),
        ("maximum", {}),
        ("minimum", {"stat_length": ((2, 1), (1, 2))}),
        ("mean", {"stat_length": 2}),
    ]
    build, reference = each(
        *(lambda m, x, mode=mode, o=o: m.pad(x, width, mode=mode, **o) for mode, o in modes)
    )
    agree(build, reference, RNG.integers(-9, 9, (3, 4)).astype(dtype))


def test_pad_with_symbolic_widths_and_one_row():
    x, n = pt.dmatrix("x"), pt.lscalar("n")
    f = graphc.function(
        [x, n], [pt.pad(x, ((n, 0), (1, n)), mode=mode) for mode in ("constant", "reflect", "wrap")]
    )
    a = RNG.normal(size=(1, 3))
    for got, mode in zip(f(a, 4), ("constant", "reflect", "wrap"), strict=True):
        np.testing.assert_array_equal(got, np.pad(a, ((4, 0), (1, 4)), mode=mode))


def test_sequences():
    build, reference = each(
        lambda m, a, b: m.linspace(a, b, 7),
        lambda m, a, b: m.linspace(a, b, 7, endpoint=False),
        lambda m, a, b: m.linspace(a, b, 1),
        lambda m, a, b: m.linspace(a, b, 0),
        lambda m, a, b: m.linspace(a, 3, 4, axis=-1),
        lambda m, a, b: m.linspace(0, 9, 4, dtype="int64"),
        lambda m, a, b: m.linspace(1, 2, 3, retstep=True)[1],
        lambda m, a, b: m.logspace(0, 2, 5),
        lambda m, a, b: m.logspace(0, 2, 5, base=2.0),
        lambda m, a, b: m.geomspace(1, 1000, 4),
        lambda m, a, b: m.geomspace(-1, -16, 5),
    )
    agree(build, reference, RNG.normal(size=3), RNG.normal(size=3), rtol=1e-12)


def test_grids():
    build, reference = each(
        *(
            lambda m, a, b, i=i, kw=kw: m.meshgrid(a, b, **kw)[i]
            for i in (0, 1)
            for kw in ({}, {"indexing": "ij"})
        ),
        lambda m, a, b: m.meshgrid(a, b, sparse=True)[0],
        lambda m, a, b: m.mgrid[0:3, 1:7:2],
        lambda m, a, b: m.mgrid[0:1:5j],
        lambda m, a, b: m.ogrid[0:3, 1:7:2][1],
        lambda m, a, b: m.indices((2, 3)),
        lambda m, a, b: m.dstack([a, a]),
        lambda m, a, b: m.column_stack([a, a * 2]),
        lambda m, a, b: m.block([[a, b], [b, a]]),
        lambda m, a, b: m.block([a, b]),
    )
    agree(build, reference, np.arange(3.0), np.arange(4.0))


@pytest.mark.parametrize("order", ["C", "F"])
def test_flat_and_multi_indices(order):
    flat = np.array([0, 5, 23, 7])
    several = np.array([1, 0]), np.array([2, 1]), np.array([3, 0])
    build, reference = each(
        *(lambda m, x, a, b, c, i=i: m.unravel_index(x, (2, 3, 4), order=order)[i] for i in range(3)),
        lambda m, x, a, b, c: m.ravel_multi_index((a, b, c), (2, 3, 4), order=order),
        lambda m, x, a, b, c: m.ravel_multi_index((a + 5, b, c - 9), (2, 3, 4), mode="wrap", order=order),
        lambda m, x, a, b, c: m.ravel_multi_index((a + 5, b, c - 9), (2, 3, 4), mode="clip", order=order),
    )
    agree(build, reference, flat, *several)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda x: pt.pad(x, -1), ValueError, "a width must be at least 0, got -1"),
        (lambda x: pt.pad(x, 1, mode="tartan"), ValueError, "got 'tartan'"),
        (lambda x: pt.pad(x, 1, constant=3), ValueError, "has no option constant"),
        (lambda x: pt.pad(x, ((1, 2), (1, 2), (1, 2))), ValueError, "a pair for each of 2 axes"),
        (lambda x: pt.diag(x[None]), ValueError, "takes a vector or a matrix"),
        (lambda x: pt.rot90(x[0]), ValueError, "at least 2 dimensions"),
        (lambda x: pt.roll(x, 1.5, axis=0), TypeError, "0-d integers"),
        (lambda x: pt.meshgrid(x, indexing="yx"), ValueError, "'xy' or 'ij'"),
        (lambda x: pt.mgrid[3], TypeError, "slices"),
        (lambda x: pt.unravel_index(x, (2, 3)), TypeError, "takes integers"),
        (lambda x: pt.block([[x], x]), ValueError, "nested equally deep"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(pt.dmatrix("x"))


@pytest.mark.parametrize("mode", ["fast_run", "reference"])
def test_positions_that_a_shape_does_not_have(mode):
    i, j, n = pt.lvector("i"), pt.lvector("j"), pt.lscalar("n")
    ravel = graphc.function([i, j, n], pt.ravel_multi_index((i, j), (2, n)), mode=mode)
    unravel = graphc.function([i, n], pt.unravel_index(i, (2, n)), mode=mode)
    np.testing.assert_array_equal(ravel([0, 1], [2, 0], 3), [2, 3])
    np.testing.assert_array_equal(unravel([2, 3], 3), [[0, 1], [2, 0]])
    for a, b, size in (([2], [0], 3), ([0], [-1], 3), ([0], [3], 3), ([0], [0], 2**62)):
        with pytest.raises(ValueError, match="out of bounds"):
            ravel(a, b, size)
    for a, size in (([6], 3), ([-1], 3), ([0], 2**62)):
        with pytest.raises(ValueError, match="out of bounds"):
            unravel(a, size)
    modes = ("wrap", "clip")
    found = graphc.function([i, j], pt.ravel_multi_index((i, j), (2, 3), mode=modes), mode=mode)(
        [5, -3], [7, -7]
    )
    np.testing.assert_array_equal(found, np.ravel_multi_index(([5, -3], [7, -7]), (2, 3), modes))
    with pytest.raises(ValueError, match="too large"):
        pt.unravel_index(i, (2**40, 2**40))


def test_errors_name_the_operands():
    x, y = pt.dvector("x"), pt.dvector("y")
    for output, words in ((x + y, "operands: x, y"), (pt.exp(x) * (y + 1), r"operands: exp\(x\), y \+ \[1")):
        with pytest.raises(ValueError, match=rf"(?s){words}.*test_rearranging.py"):
            graphc.function([x, y], output)(np.ones(3), np.ones(4))


@pytest.mark.parametrize("length", [0, 1, 2])
@pytest.mark.parametrize("make", [lambda shape: pt.alloc(2.0, shape), lambda shape: pt.full(shape, 2.0)])
def test_a_vector_of_known_length_is_a_shape(make, length):
    x = pt.tensor("x", shape=(None,) * length)
    value = np.ones((3, 2)[:length])
    for shape in (x.shape, list(x.shape), tuple(value.shape)):
        np.testing.assert_array_equal(make(shape).eval({x: value}, on_unused_input="ignore"), 2 * value)
