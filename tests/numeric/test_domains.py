# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments outside of their domain: NumPy's exception where it has one, in every way to give them.

`ROWS` says for an argument which values are wrong and which are right. Each is given as a constant, as an
input of several dtypes, in reference mode, inside a loop, and with one of several results wanted.
`test_every_argument_is_listed` holds the table against the signatures of all public functions.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as pt

BIG, LEAST = 2**63 - 1, -(2**63)
X, M, LABELS = np.arange(5.0), np.arange(12.0).reshape(3, 4), np.array([0, 1, 2, 1, 0])
NAN, INF = np.nan, np.inf
BYTES, RNG = np.array([129, 7], np.uint8), pt.random.default_rng(5)


@dataclass(frozen=True)
class Row:
    """An argument with a domain.

    Attributes:
        names: functions and the parameter, ``"delete insert: obj"``.
        call: of a namespace, graphc.tensor or NumPy, and a value.
        bad, good: values outside and inside.
        error: the exception where it is not NumPy's, or NumPy has none.
        constant: whether the value must be known when the graph is built.
    """

    names: str
    call: Callable[[Any, Any], Any]
    bad: tuple[Any, ...]
    good: tuple[Any, ...]
    error: type[Exception] | tuple[type[Exception], ...] | None = None
    constant: bool = False


def each(names: str, call: Callable[[Any, Any], Callable[..., Any]], *rest: Any, **options: Any) -> list[Row]:
    """A row for each function of several with the same arguments."""
    functions, parameter = names.split(": ")
    space, _, last = functions.rpartition(".") if "." in functions.split()[0] else ("", "", functions)
    return [
        Row(f"{space + '.' if space else ''}{name}: {parameter}", _bound(call, space, name), *rest, **options)
        for name in last.split()
    ]


def _bound(call: Callable[[Any, Any], Any], space: str, name: str) -> Callable[[Any, Any], Any]:
    return lambda n, v: call(getattr(getattr(n, space) if space else n, name), v)


A = np.array
PLACES = (5, -6, 100, -100, BIG, LEAST)
ROWS = [
    # positions
    Row("delete: obj", lambda n, v: n.delete(X, v), PLACES, (4, -5)),
    Row("delete: obj", lambda n, v: n.delete(M, v, axis=1), (4, -5, BIG, LEAST), (3, -4)),
    Row("delete: obj", lambda n, v: n.delete(X, v), (A([0, 5]), A([-6, 1])), (A([0, 4]), A([-5, 1]))),
    Row("delete: obj", lambda n, v: n.delete(X, v), (A([True, False]), np.ones(6, bool)), (X > 2,)),
    Row("insert: obj", lambda n, v: n.insert(X, v, 9.0), (6, -6, BIG, LEAST), (5, -5)),
    Row("insert: obj", lambda n, v: n.insert(X, v, 9.0), (A([0, 6]),), (A([0, 5]), A([-5, 1]))),
    # NumPy wraps negative numbers of vectors twice.
    Row("insert: obj", lambda n, v: n.insert(X, v, 9.0), (A([-6, 1]),), (A([0, 5]),), IndexError),
    Row("take: indices", lambda n, v: n.take(X, v), PLACES, (4, -5)),
    Row("getitem: index", lambda n, v: (pt.constant(X) if n is pt else X)[v], PLACES, (4, -5)),
    Row(
        "take_along_axis: indices", lambda n, v: n.take_along_axis(X, v, axis=0), (A([5]), A([-6])), (A([4]),)
    ),
    Row(
        "put_along_axis: indices",
        lambda n, v: pt.put_along_axis(X, v, 0.0, axis=0),
        (A([5]), A([-6])),
        (A([4]),),
        IndexError,
    ),
    Row("unravel_index: indices", lambda n, v: n.unravel_index(v, (3, 4)), (12, -1, BIG, LEAST), (11, 0)),
    Row("unravel_index: shape", lambda n, v: n.unravel_index(1, (3, v)), (0, -1), (1, 4)),
    Row(
        "ravel_multi_index: multi_index",
        lambda n, v: n.ravel_multi_index((v, 1), (3, 4)),
        (3, -1, BIG),
        (2, 0),
    ),
    Row("ravel_multi_index: dims", lambda n, v: n.ravel_multi_index((1, 1), (3, v)), (0, 1, -1), (2, 4)),
    Row(
        "ravel_multi_index: dims",
        lambda n, v: n.ravel_multi_index((1, 1), (3, v), mode="clip"),
        (0, -1, LEAST),
        (1, 2),
        ValueError,
    ),
    Row(
        "choose: a",
        lambda n, v: n.choose(v, [X[:2], X[2:4]]),
        (A([2, 0]), A([-1, 0])),
        (A([1, 0]),),
        IndexError,
    ),
    *each("partition argpartition: kth", lambda f, v: f(X, v), PLACES, (0, 2)),
    Row(
        "searchsorted: sorter",
        lambda n, v: n.searchsorted(X, 2.0, sorter=v),
        (A([0, 1, 2]),),
        (A([0, 1, 2, 3, 4]),),
    ),
    Row("lexsort: keys", lambda n, v: n.lexsort([v, X]), (np.ones(4),), (np.ones(5),)),
    # diagonals: numbers beyond the ends are in the domain
    *each("tril triu: k", lambda f, v: f(M, v), (), (0, 5, -5, 100, -100, BIG, -(2**62))),
    Row("tri: k", lambda n, v: n.tri(3, 4, v), (), (1, -1, 100, BIG, -(2**62))),
    Row("eye: k", lambda n, v: n.eye(3, 4, v), (), (1, -1, 100, BIG, LEAST)),
    *each("tril_indices triu_indices: k", lambda f, v: f(3, v), (), (1, -1, 100, BIG, -(2**62))),
    *each("tril_indices_from triu_indices_from: k", lambda f, v: f(M, v), (), (1, -1, 100, BIG, -(2**62))),
    Row(
        "fill_diagonal_offset: offset",
        lambda n, v: pt.fill_diagonal_offset(M, 1.0, v),
        (),
        (1, -1, 9, BIG, LEAST),
        ValueError,
    ),
    # sizes and counts
    Row("eye: n", lambda n, v: n.eye(v), (-1, LEAST), (0, 2)),
    Row("eye: m", lambda n, v: n.eye(2, v), (-1, LEAST), (0, 2)),
    Row("identity: n", lambda n, v: n.identity(v), (-1,), (0, 2)),
    *each("linspace logspace: num", lambda f, v: f(0.0, 1.0, v), (-1, LEAST), (0, 1, 3)),
    Row("geomspace: num", lambda n, v: n.geomspace(1.0, 2.0, v), (-1, LEAST), (1, 3)),
    *each("zeros ones empty: shape", lambda f, v: f((v, 2)).sum(axis=1), (-1, LEAST), (0, 2)),
    Row("full: shape", lambda n, v: n.full((v, 2), 1.0), (-1, LEAST), (0, 2)),
    Row("alloc: shape", lambda n, v: pt.alloc(1.0, v, 2), (-1, LEAST), (0, 2), ValueError),
    Row("broadcast_to: shape", lambda n, v: n.broadcast_to(np.ones(1), (v,)), (-1,), (0, 3)),
    Row("indices: dimensions", lambda n, v: n.indices((v, 2)), (-1,), (0, 2)),
    Row("resize: new_shape", lambda n, v: n.resize(X, (v,)), (-1, LEAST), (0, 7)),
    Row("reshape: newshape", lambda n, v: n.reshape(M, (v, 4)), (0, 2, 4), (-1, 3)),
    Row("split_dims: shape", lambda n, v: pt.split_dims(X, (v, 5)), (0, 2), (1,), ValueError),
    Row("repeat: repeats", lambda n, v: n.repeat(X, v), (-1, LEAST), (0, 2)),
    Row(
        "repeat: repeats",
        lambda n, v: n.repeat(X, v),
        (A([1, -1, 0, 0, 0]), A([1, 2])),
        (A([0, 1, 2, 0, 1]),),
    ),
    Row("tile: reps", lambda n, v: n.tile(X, v), (-1,), (0, 2)),
    Row("pad: pad_width", lambda n, v: n.pad(X, v), (-1, LEAST), (0, 3)),
    *[
        Row("pad: pad_width", lambda n, v, m=m: n.pad(X, v, mode=m), (-1,), (0, 3))
        for m in ("edge", "reflect", "wrap", "linear_ramp", "mean")
    ],
    *[
        Row("pad: pad_width", lambda n, v, m=m: n.pad(X[:0], v, mode=m), (1,), (0,))
        for m in ("edge", "reflect", "symmetric", "wrap")
    ],
    Row("pad: options", lambda n, v: n.pad(X, 1, mode="mean", stat_length=v), (-1,), (2, 100)),
    Row("bincount: x", lambda n, v: n.bincount(v), (A([0, -1]), A([LEAST])), (A([0, 3]),)),
    Row("bincount: minlength", lambda n, v: n.bincount(LABELS, minlength=v), (-1, LEAST), (0, 9)),
    Row(
        "bincount: weights",
        lambda n, v: n.bincount(LABELS, weights=v),
        (np.ones(4), np.ones(6)),
        (np.ones(5),),
    ),
    Row("nn.one_hot: num_classes", lambda n, v: pt.nn.one_hot(LABELS, v), (-1,), (0, 2), ValueError),
    Row("to_one_hot: nb_class", lambda n, v: pt.to_one_hot(LABELS, v), (-1,), (3, 4), ValueError),
    Row("vander: N", lambda n, v: n.vander(X, v), (-1,), (0, 2)),
    *each("topk argtopk topk_and_argtopk: kth", lambda f, v: f(X, v), (6, 0), (5, 1), ValueError),
    Row(
        "split: splits_size",
        lambda n, v: pt.split(X, v, n_splits=3),
        (A([-1, 3, 3]), A([3, 3, -1]), A([6, -4, 3]), A([1, 1, 1])),
        (A([0, 3, 2]),),
        ValueError,
    ),
    Row(
        "to_one_hot: y", lambda n, v: pt.to_one_hot(v, 3), (A([3, 0]), A([-4, 0])), (A([2, -3]),), IndexError
    ),
    *each(
        "nn.softmax_cross_entropy categorical_crossentropy: target",
        lambda f, v: f(M + 1.0, v),
        (A([0, 4, 1]), A([0, -5, 1]), A([BIG, 0, 0])),
        (A([0, 3, -4]),),
        IndexError,
    ),
    *[
        Row(
            "inverse_permutation: perm",
            lambda n, v, x=x: pt.permute_row_elements(x, v, inverse=True),
            (A([0, 1, 3]), A([0, 0, 1]), A([0, 2, -4]), A([0, 1, 1, 2]), A([-1, 0, 2])),
            (A([2, 0, 1]), A([0, -1, 1])),
            IndexError,
        )
        for x in (M[:, :3], X[:3])
    ],
    Row("unpackbits: count", lambda n, v: n.unpackbits(BYTES, count=v), (-17, LEAST), (-16, -3, 0, 5, 40)),
    Row("interpolate1d: y", lambda n, v: pt.interpolate1d(X, v)(1.5), (np.ones(4),), (X,), ValueError),
    *each("fft.fft ifft rfft irfft hfft ihfft: n", lambda f, v: f(X, v), (0, -1), (3, 7)),
    Row("fft.fft2: s", lambda n, v: n.fft.fft2(M, (v, 2)), (0,), (2,)),
    *each("fft.fftfreq rfftfreq: n", lambda f, v: f(v), (0, -2), (3,), ValueError),
    *each("bartlett blackman hamming hanning: M", lambda f, v: f(v), (), (0, 1, -1, 4)),
    Row("kaiser: M", lambda n, v: n.kaiser(v, 3.0), (), (0, 1, -1, 4)),
    Row("diag_indices: n", lambda n, v: n.diag_indices(v), (), (-1, 0, 3)),
    Row("roll: shift", lambda n, v: n.roll(X, v), (), (7, -7, BIG, LEAST)),
    # ranges of numbers
    Row("arange: stop", lambda n, v: n.arange(v), (INF, -INF, NAN, 1e300), (-1.5, 2.5)),
    Row("arange: start", lambda n, v: n.arange(v, 5.0), (INF, -INF, NAN), (4.5, 9.0)),
    Row("arange: step", lambda n, v: n.arange(0, 5, v), (0,), (2, -1), ValueError),
    Row("arange: step", lambda n, v: n.arange(0, 5, v), (0.0, NAN, INF, -INF), (0.5, -1.0, 1e30), ValueError),
    *each("quantile nanquantile: q", lambda f, v: f(X, v), (-0.1, 1.1, NAN, INF), (0.0, 0.3, 1.0)),
    *each("quantile nanquantile: q", lambda f, v: f(X, v), (2, -1), (0, 1)),
    *each("quantile nanquantile: q", lambda f, v: f(X, v), (A([0.5, -0.1]), A([NAN, 0.0])), (A([0.5, 1.0]),)),
    *each("percentile nanpercentile: q", lambda f, v: f(X, v), (-0.1, 100.1, NAN), (0.0, 30.0, 100.0)),
    *each("geomspace: start", lambda f, v: f(v, 2.0, 3), (0.0,), (1.0,)),
    *each("geomspace: stop", lambda f, v: f(1.0, v, 3), (0.0,), (2.0,)),
    Row(
        "average: weights",
        lambda n, v: n.average(M, axis=1, weights=v),
        (np.zeros(4), A([1.0, -1, 0, 0])),
        (A([1.0, 0, 2, 1]), A([1.0, -1, 0, 1])),
    ),
    Row("nn.dropout: p", lambda n, v: pt.nn.dropout(X, v, RNG), (-0.1, 1.0, NAN), (0.0, 0.5), ValueError),
    Row(
        "random.categorical: p",
        lambda n, v: pt.random.categorical(v, rng=RNG),
        (A([0.5, NAN]), A([-0.1, 1.1])),
        (A([0.5, 0.5]),),
        ValueError,
    ),
    *[
        Row(f"random.betabinom: {name}", call, (NAN, 0.0, -1.0, INF), (0.5, 2.0), ValueError)
        for name, call in (
            ("a", lambda n, v: pt.random.betabinom(3, v, 1.0, rng=RNG)),
            ("b", lambda n, v: pt.random.betabinom(3, 1.0, v, rng=RNG)),
        )
    ],
    Row(
        "digitize: bins",
        lambda n, v: n.digitize(X, v),
        (A([1.0, 3, 2]), A([3.0, 1, 2])),
        (A([1.0, 2, 2]), A([3.0, 3, 1])),
    ),
    *each(
        "histogram histogram_bin_edges: bins",
        lambda f, v: f(X, v),
        (A([1.0, 3, 2]), A([3.0, 2, 1])),
        (A([1.0, 2, 2]),),
    ),
    *each("histogram histogram_bin_edges: bins", lambda f, v: f(X, v), (0, -1, LEAST), (1, 3)),
    *each(
        "histogram histogram_bin_edges: range",
        lambda f, v: f(X, 3, range=(0.0, v)),
        (-1.0, NAN, INF),
        (0.0, 2.0),
    ),
    *each(
        "histogram histogram_bin_edges: a",
        lambda f, v: f(v, 3),
        (A([1.0, NAN]), A([1.0, INF])),
        (A([1.0, 2.0]),),
    ),
    Row("histogram: weights", lambda n, v: n.histogram(X, 3, weights=v)[0], (np.ones(4),), (np.ones(5),)),
    # Of histograms, the counts: edges of one axis do not depend on the other.
    Row("histogramdd: bins", lambda n, v: n.histogramdd([X, X], [v, 3])[0], (0, -1), (2,)),
    Row(
        "histogramdd: bins",
        lambda n, v: n.histogramdd([X, X], [v, A([0.0, 1, 2])])[0],
        (A([1.0, 3, 2]),),
        (A([1.0, 2, 3]),),
    ),
    Row(
        "histogramdd: range",
        lambda n, v: n.histogramdd([X, X], 3, range=[(0.0, v), (0.0, 1.0)])[0],
        (-1.0, NAN, INF),
        (2.0,),
    ),
    Row("histogram2d: bins", lambda n, v: n.histogram2d(X, X, [v, 3])[0], (0, -1), (2,)),
    Row(
        "histogram2d: range",
        lambda n, v: n.histogram2d(X, X, 3, range=[(0.0, v), (0.0, 1.0)])[0],
        (-1.0, NAN),
        (2.0,),
    ),
    Row("interp: xp", lambda n, v: n.interp(1.5, v, np.ones(3)), (np.ones(2), np.ones(0)), (A([0.0, 1, 2]),)),
    Row(
        "interp: fp",
        lambda n, v: n.interp(1.5, A([0.0, 1, 2]), v),
        (np.ones(2), np.ones(0)),
        (A([0.0, 1, 2]),),
    ),
    Row(
        "interp: period",
        lambda n, v: n.interp(1.5, A([0.0, 1, 2]), A([0.0, 5, 7]), period=v),
        (0.0,),
        (3.0, -3.0),
    ),
    # sizes of operands
    Row("cross: a", lambda n, v: n.cross(v, v), (np.ones(4), np.ones(1)), (np.ones(3),)),
    Row("cross: b", lambda n, v: n.cross(np.ones(3), v), (np.ones(4), np.ones(1)), (np.ones(3),)),
    *[
        Row("convolve: a", lambda n, v, m=m: n.convolve(v, X, mode=m), (np.ones(0),), (np.ones(2),))
        for m in ("full", "same", "valid")
    ],
    *[
        Row("convolve: v", lambda n, v, m=m: n.convolve(X, v, mode=m), (np.ones(0),), (np.ones(2),))
        for m in ("full", "same", "valid")
    ],
    *each("correlate: a", lambda f, v: f(v, X), (np.ones(0),), (np.ones(2),)),
    *each("correlate: v", lambda f, v: f(X, v), (np.ones(0),), (np.ones(2),)),
    Row("trapezoid: x", lambda n, v: n.trapezoid(X, v), (np.ones(4),), (np.ones(5),)),
    Row("compress: condition", lambda n, v: n.compress(v, X), (np.ones(6, bool),), (np.ones(4, bool),)),
    Row(
        "extract: condition",
        lambda n, v: n.extract(v, X),
        (np.ones(6, bool),),
        (np.ones(5, bool),),
        (ValueError, IndexError),
    ),
    # what must be known when the graph is built
    Row(
        "linalg.matrix_power: n",
        lambda n, v: n.linalg.matrix_power(np.eye(2) * 2, v),
        (1.5,),
        (-1, 0, 3),
        TypeError,
        constant=True,
    ),
    Row(
        "nn.group_norm: groups",
        lambda n, v: pt.nn.group_norm(M, v),
        (0, -1, 3),
        (2,),
        ValueError,
        constant=True,
    ),
    Row("multigammaln: d", lambda n, v: pt.multigammaln(9.0, v), (0, -1), (1, 3), ValueError, constant=True),
    Row("polyfit: deg", lambda n, v: n.polyfit(X, X, v), (-1,), (0, 2), constant=True),
    Row(
        "nn.conv1d: dilation",
        lambda n, v: pt.nn.conv1d(M[None], M[None, :, :2], dilation=v),
        (0, -1, BIG),
        (1, 2, 2**31 - 1),
        ValueError,
        constant=True,
    ),
    Row(
        "nn.max_pool1d: window",
        lambda n, v: pt.nn.max_pool1d(M, v),
        (0, -1, BIG),
        (1, 2, 2**31 - 1),
        ValueError,
        constant=True,
    ),
    Row("diff: n", lambda n, v: n.diff(X, v), (-1,), (0, 2), constant=True),
    Row("array_split: indices_or_sections", lambda n, v: n.array_split(X, v), (0, -1), (2, 7), constant=True),
    *each(
        "hsplit vsplit: indices_or_sections",
        lambda f, v: f(M[:2], v),
        (0, -1, 3),
        (2,),
        (ValueError, ZeroDivisionError),
        constant=True,
    ),
]


def labelled() -> Iterator[Any]:
    for row in ROWS:
        yield pytest.param(row, id=row.names.replace(": ", "-"))


def leaves(result: Any) -> list[Any]:
    return (
        [leaf for part in result for leaf in leaves(part)] if isinstance(result, list | tuple) else [result]
    )


def results(row: Row, value: Any) -> list[Any]:
    return [pt.as_tensor_variable(leaf) for leaf in leaves(row.call(pt, value))]


def expected_error(row: Row, value: Any) -> tuple[type[Exception], ...]:
    if row.error is not None:
        return row.error if isinstance(row.error, tuple) else (row.error,)
    with pytest.raises(Exception) as caught, np.errstate(all="ignore"):
        row.call(np, value)
    # A size that is no number of NumPy's, and one that is too large, are wrong values.
    kinds = (IndexError, TypeError, ValueError, OverflowError, ZeroDivisionError)
    return (next(kind for kind in kinds if isinstance(caught.value, kind)),)


def dtypes(values: tuple[Any, ...]) -> list[str]:
    """The dtypes that hold all of them."""
    kinds = {np.asarray(v).dtype.kind for v in values}
    if kinds == {"b"}:
        return ["bool"]
    if "f" in kinds:
        return ["float64", "float32"]
    low, high = min(np.min(v) for v in values), max(np.max(v) for v in values)
    return [d for d in ("int64", "int8", "uint64") if np.iinfo(d).min <= low and high <= np.iinfo(d).max]


def compiled(row: Row, ndim: int, dtype: str, mode: str, which: int | None = None) -> Callable[[Any], Any]:
    v = pt.TensorType(dtype, (None,) * ndim)("v")
    wanted = results(row, v)
    wanted = wanted if which is None else wanted[which : which + 1]
    return graphc.function([v], wanted, mode=mode, on_unused_input="ignore")


@pytest.mark.parametrize("row", labelled())
def test_constants(row):
    for value in row.bad:
        with pytest.raises(expected_error(row, value)):
            graphc.function([], results(row, value))()
    for value in row.good:
        graphc.function([], results(row, value), mode="reference")()


@pytest.mark.parametrize("mode", ["fast_run", "reference"])
@pytest.mark.parametrize("row", [p for p in labelled() if not p.values[0].constant])
def test_inputs(row, mode):
    for dtype in dtypes((*row.bad, *row.good)) if mode == "fast_run" else dtypes((*row.bad, *row.good))[:1]:
        f = compiled(row, np.ndim(row.good[0]), dtype, mode)
        for value in row.good:
            got = f(np.asarray(value, dtype))
            if row.error is None:
                with np.errstate(all="ignore"):
                    expected = leaves(row.call(np, value))
                if "empty" not in row.names:  # whose elements may be anything
                    for a, b in zip(got, expected, strict=True):
                        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
        for value in row.bad:
            # The sizes of results are read before the graph is run, so that NumPy may refuse them.
            with pytest.raises(expected_error(row, value), match=r"test_domains\.py|negative dimensions"):
                f(np.asarray(value, dtype))


@pytest.mark.parametrize("row", [p for p in labelled() if not p.values[0].constant and p.values[0].bad])
def test_inside_of_a_loop_and_one_result_alone(row):
    ndim, dtype = np.ndim(row.good[0]), dtypes((*row.bad, *row.good))[0]
    for which in {0, len(results(row, pt.TensorType(dtype, (None,) * ndim)())) - 1}:
        v = pt.TensorType(dtype, (None,) * (ndim + 1))("v")
        total = graphc.scan(
            lambda v, which=which: pt.sum(pt.cast(results(row, v)[which], "complex128")),
            sequences=[v],
            return_updates=False,
        )
        alone, loop = compiled(row, ndim, dtype, "fast_run", which), graphc.function([v], total)
        good = np.asarray(row.good[0], dtype)
        loop(good[None])
        for value in row.bad:
            with pytest.raises(expected_error(row, value)):
                alone(np.asarray(value, dtype))
            if np.shape(value) == np.shape(good):
                # A loop may check first what is read at a wrong place.
                with pytest.raises((*expected_error(row, value), IndexError)):
                    loop(np.stack([good, np.asarray(value, dtype), good]))


# Parameters whose name says that they have a domain.
NAMES = {
    *("M N k n num shape dims newshape new_shape shift repeats reps pad_width minlength".split()),
    *("nb_class num_classes kth q bins range indices multi_index index obj sorter period step stop".split()),
    *("dimensions splits_size indices_or_sections offset s fp xp keys".split()),
}
# What has one of these names and no domain, or only when the graph is built; by reason.
ELSEWHERE = {
    "a formula of numbers, NaN where it has no value": (
        "bdtr: k n, bdtrc: k n, chi2sf: k, comb: N k, factorial: n, gammal: k, gammau: k, pdtr: k, pdtrc: k, "
        "perm: N k, nbdtr: k n, nbdtrc: k n, polyint: k, solve_continuous_are: q, sph_harm: n, "
        "sph_harm_y: n, linspace: stop, logspace: stop, unwrap: period"
    ),
    "known when the graph is built": (
        "diag: k, diagflat: k, diagonal: offset, trace: offset, alloc_diag: offset, rot90: k, atleast_Nd: n, "
        "is_flat: n, matrix: shape, row: shape, col: shape, vector: shape, scalar: shape, tensor: shape, "
        "tensor3: shape, tensor4: shape, tensor5: shape, tensor6: shape, "
        "tensor7: shape, specify_shape: shape, dsplit: indices_or_sections, lambertw: k"
    ),
    "internal": "algorithm: n, table: n, columns_table: n",
    "less than 0 is none": "tri: N M",
    "read as the first of the family in this table": (
        "tril_indices: n, triu_indices: n, fft2: s, ifft2: s, rfft2: s, irfft2: s, fftn: s, ifftn: s, "
        "rfftn: s, irfftn: s, hilbert: n, matrix_power: M"
    ),
}


def test_every_argument_is_listed():
    listed = {f"{f.split('.')[-1]}: {p}" for row in ROWS for f, p in [row.names.split(": ")]}
    for text in ELSEWHERE.values():
        for function, parameters in (entry.split(": ") for entry in text.split(", ")):
            listed |= {f"{function}: {p}" for p in parameters.split()}
    modules = [
        importlib.import_module(f"graphc.tensor{s}") for s in ("", ".linalg", ".fft", ".nn", ".special")
    ]
    found = {
        f"{name}: {parameter}"
        for module in modules
        for name in dir(module)
        for function in [getattr(module, name)]
        if inspect.isfunction(function) and function.__module__.startswith("graphc.tensor")
        for parameter in inspect.signature(function).parameters
        if parameter in NAMES and not name.startswith("_")
    }
    missing = found - listed
    assert not missing, f"arguments that have a domain by their names and are not in the table: {missing}"
