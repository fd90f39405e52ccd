# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of functions that are put together from others: pieces of arrays, windows, polynomials, samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from op_table import FLOATS, NUMBERS, REALS, Family, arg, between, distinct

ROW, MATRIX, CUBE = arg("n"), arg("n", "n+1"), arg(2, "n", "n+1")
SQUARE, OTHER = arg("n", "n"), arg("n", "n+1", make=between(-1, 1))
ONE, BYTES = arg(), arg("n", 3, dtype="uint8", make=between(0, 255))


def order(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """A permutation in each row."""
    return np.argsort(rng.random(shape), axis=-1).astype(dtype)


# Pieces -------------------------------------------------------------------------------------------

case = Family("pieces", dtypes=NUMBERS, jax=False)
case("array_split", [MATRIX], lambda m, x: m.array_split(x, 3, axis=1))
case("array_split:cuts", [MATRIX], lambda m, x: m.array_split(x, [1, 3]))
case("hsplit", [arg("n", 4)], lambda m, x: m.hsplit(x, 2))
case("vsplit", [MATRIX], lambda m, x: m.vsplit(x, [2]))
case("dsplit", [arg(2, "n", 4)], lambda m, x: m.dsplit(x, 2))
case("unstack", [CUBE])
case("append", [MATRIX, OTHER], lambda m, x, y: [m.append(x, y), m.append(x, y, axis=0)])
case(
    "delete",
    [CUBE],
    lambda m, x: [m.delete(x, 1, 0), m.delete(x, slice(0, 1), 2), m.delete(x, -1)],
    sizes=(4, 1),
)
case("delete:several", [CUBE], lambda m, x: m.delete(x, [0, 3], 1), sizes=(4,))
case("insert", [MATRIX, ROW], lambda m, x, y: [m.insert(x, 1, y, axis=1), m.insert(x, -1, 3)], sizes=(4, 1))
case("insert:several", [MATRIX], lambda m, x: m.insert(x, [3, 0, 0], [[7], [8], [9]], axis=0), sizes=(4,))
case("resize", [MATRIX], lambda m, x: [m.resize(x, (3, 7)), m.resize(x, 2)], sizes=(4, 1, 0))
case("rollaxis", [CUBE], lambda m, x: [m.rollaxis(x, 2), m.rollaxis(x, 0, 2)])
case(
    "trim_zeros",
    [ROW],
    lambda m, x: [m.trim_zeros(m.concatenate([x * 0, x, x * 0]), t) for t in ("f", "b", "fb")],
)
case(
    "trim_zeros:matrix",
    [MATRIX],
    lambda m, x: [m.trim_zeros(m.pad(x, 2)), m.trim_zeros(m.pad(x, 1), "b", axis=1), m.trim_zeros(x * 0)],
)
case(
    "stacklists",
    [ONE, ONE],
    lambda m, x, y: m.stacklists([[x, y], [y, x]]),
    lambda x, y: np.array([[x, y], [y, x]]),
)
case("horizontal_stack", [MATRIX, OTHER], reference=lambda *xs: np.hstack(xs))
case("vertical_stack", [MATRIX, OTHER], reference=lambda *xs: np.vstack(xs))
case(
    "concat_with_broadcast",
    [arg("n", 1), MATRIX],
    lambda m, *xs: m.concat_with_broadcast(xs, axis=0),
    lambda x, y: np.vstack([np.repeat(x, y.shape[1], 1), y]),
)
case(
    "fill_diagonal:wrap", [arg("n+4", 2)], lambda m, x: m.fill_diagonal(x, 3, wrap=True), lambda x: _filled(x)
)
case("fill_diagonal_offset", [MATRIX], lambda m, x: m.fill_diagonal_offset(x, 3, 1), lambda x: _offset(x))
case("diagflat", [MATRIX], lambda m, x: m.diagflat(x, -1))
case("extract_diag", [MATRIX], reference=np.diagonal)
case(
    "atleast_Nd",
    [ROW],
    lambda m, x: [m.atleast_Nd(x, n=2), m.atleast_Nd(x, n=3, left=False)],
    lambda x: [x[None], x[:, None, None]],
)
case(
    "join_dims",
    [CUBE],
    lambda m, x: [m.join_dims(x, 1), m.join_dims(x, 0, 2)],
    lambda x: [x.reshape(2, x.shape[1] * x.shape[2]), x.reshape(2 * x.shape[1], x.shape[2])],
)
case(
    "split_dims",
    [arg("n", 6)],
    lambda m, x: [m.split_dims(x, (2, 3), axis=1), m.split_dims(x, (3, -1), axis=1)],
    lambda x: [x.reshape(len(x), 2, 3), x.reshape(len(x), 3, 2)],
)
case("pack", [CUBE, arg("n")], lambda m, x, y: m.pack(x, y)[0], lambda x, y: np.concatenate([x.ravel(), y]))
case(
    "pack:kept",
    [arg("n", 2, 3), arg("n", 4)],
    lambda m, x, y: m.pack(x, y, keep_axes=0)[0],
    lambda x, y: np.concatenate([x.reshape(len(x), int(np.prod(x.shape[1:]))), y], 1),
)
case("unpack", [CUBE, arg("n")], lambda m, x, y: m.unpack(*m.pack(x, y)), lambda x, y: [x, y])
for name in ("scalar_from_tensor", "tensor_from_scalar"):
    case(name, [ONE], reference=np.copy)
case("permute_row_elements", [MATRIX, arg("n+1", dtype="int64", make=order)], reference=lambda x, p: x[:, p])
case(
    "permute_row_elements:inverse",
    [MATRIX, arg("n", "n+1", dtype="int64", make=order)],
    lambda m, x, p: m.permute_row_elements(x, p, inverse=True),
    lambda x, p: np.take_along_axis(x, np.argsort(p, -1), -1),
)
case("batched_dot", [CUBE, arg(2, "n+1", 3)], reference=lambda x, y: x @ y, dtypes=REALS, tolerance=10)
case(
    "batched_dot:matrices",
    [MATRIX, OTHER],
    lambda m, x, y: m.batched_dot(x, y),
    lambda x, y: np.einsum("ij,ij->i", x, y),
    dtypes=REALS,
    tolerance=10,
)
case(
    "batched_tensordot",
    [arg(2, "n", 3, "n+1"), arg(2, "n+1", "n", 2)],
    lambda m, x, y: m.batched_tensordot(x, y, [[1, 3], [2, 1]]),
    lambda x, y: np.einsum("banc,bcad->bnd", x, y),
    dtypes=FLOATS,
    tolerance=10,
)
case("dense_dot", [SQUARE, MATRIX], reference=np.dot, dtypes=REALS, tolerance=10)

# Positions and comparisons ------------------------------------------------------------------------

case = Family("positions", gradient=False, jax=False)
case("tril_indices_from", [MATRIX], lambda m, x: m.tril_indices_from(x, 1))
case("triu_indices_from", [MATRIX], lambda m, x: m.triu_indices_from(x, -1))
case("diag_indices_from", [SQUARE])
case("ix_", [ROW], lambda m, x: m.ix_(m.arange(3), m.arange(x.shape[0])))
case("inverse_permutation", [arg("n", dtype="int64", make=order)], reference=np.argsort)
case(
    "broadcast_shape",
    [arg("n", 1), arg(1, "n+1")],
    reference=lambda x, y: [np.int64(len(x)), np.int64(y.shape[1])],
)
case("lexsort", [ROW, arg("n", dtype="int64")], lambda m, x, y: m.lexsort((x, y)))
case(
    "array_equal",
    [MATRIX, OTHER],
    lambda m, x, y: [m.array_equal(x, x), m.array_equal(x, y), m.array_equal(x, x[:0])],
)
case("array_equiv", [MATRIX], lambda m, x: [m.array_equiv(x, x), m.array_equiv(x, x + 1)], sizes=(4, 1))
case(
    "histogramdd", [arg("n", 2)], lambda m, x: _flat(m.histogramdd(x, bins=(3, 4), range=[(-2, 2), (-1, 1)]))
)
case(
    "histogramdd:density",
    [arg("n", 2)],
    lambda m, x: m.histogramdd(x, bins=3, density=True)[0],
    dtypes=("float64",),
    sizes=(4,),
)
case("histogram2d", [ROW, ROW], lambda m, x, y: m.histogram2d(x, y, bins=4)[0], sizes=(4, 1))
case = Family("bits", dtypes=("int64",), gradient=False, jax=False)
case("packbits", [MATRIX], lambda m, x: [m.packbits(x > 0), m.packbits(x, axis=0, bitorder="little")])
case(
    "unpackbits",
    [BYTES],
    lambda m, x: [m.unpackbits(x), m.unpackbits(x, axis=1, count=20, bitorder="little")],
)

# Numbers ------------------------------------------------------------------------------------------

case = Family("further numbers", dtypes=("int64", *FLOATS), gradient=False, jax=False)
HALVES = arg("n", make=between(-3, 3))
case("around", [HALVES], lambda m, x: [m.around(x), m.around(x, 1), m.around(x, -1)], sizes=(4, 1))
case("iround", [HALVES], reference=lambda x: np.rint(x).astype("int64"))
case("round_half_to_even", [HALVES], reference=np.round)
case("round_half_away_from_zero", [HALVES], reference=lambda x: np.round(x))
case("largest", [MATRIX, OTHER, OTHER], reference=lambda *xs: np.max(xs, 0))
case("smallest", [MATRIX, OTHER, OTHER], reference=lambda *xs: np.min(xs, 0))
case(
    "ceil_intdiv",
    [ROW],
    lambda m, x: m.ceil_intdiv(m.cast(x, "int64"), 3),
    lambda x: -(-x.astype("int64") // 3),
)
for name in ("iscomplex", "isreal"):
    case(name, [MATRIX], dtypes=("float64", "complex128"))

# Windows, polynomials, samples --------------------------------------------------------------------

case = Family("tapers", dtypes=("float64",), gradient=False, jax=False, sizes=(4, 1, 0))
for name in ("bartlett", "blackman", "hamming", "hanning"):
    case(name, [ROW], lambda m, x, name=name: getattr(m, name)(x.shape[0]))
case("kaiser", [ROW], lambda m, x: m.kaiser(x.shape[0], 3.5))

case = Family("polynomials", dtypes=FLOATS, jax=False, sizes=(4, 2), tolerance=10, same_dtype=False)
P, Q = arg(4, make=between(0.5, 2)), arg("n", make=between(0.5, 2))
case("vander", [arg("n", make=between(0.5, 2))], lambda m, x: [m.vander(x), m.vander(x, 3, increasing=True)])
case("polyval", [P, ROW])
case("polyval:unknown degree", [Q, ROW], lambda m, p, x: m.polyval(p, m.abs(x) + 0.1))
for name in ("polyadd", "polysub", "polymul"):
    case(name, [P, Q])
case("polyder", [Q])
case("polyint", [Q], lambda m, p: [m.polyint(p), m.polyint(p, 2, [1, 2])])
case("poly", [arg(3)])
case(
    "roots",
    [P],
    lambda m, p: [m.roots(p).sum(), m.roots(p).prod()],
    lambda p: [np.roots(p.astype("float64")).sum(), np.roots(p.astype("float64")).prod()],
    gradient=False,
    same_dtype=False,
    tolerance=100,
)
case(
    "polyfit",
    [arg("n", make=distinct), arg("n")],
    lambda m, x, y: m.polyfit(x, y, 1),
    gradient=False,
    tolerance=1000,
)

case = Family("samples", dtypes=FLOATS, jax=False, sizes=(4, 3), tolerance=10)
ASCENDING = arg("n", make=lambda rng, s, d: np.cumsum(rng.uniform(0.5, 2, s)).astype(d))
case("gradient", [arg("n", "n+1")], lambda m, x: m.gradient(x, 0.5, 2.0))
case("gradient:second order", [arg("n", "n+1")], lambda m, x: m.gradient(x, axis=1, edge_order=2))
case(
    "gradient:uneven",
    [arg("n", "n"), ASCENDING],
    lambda m, x, h: [m.gradient(x, h, axis=1), m.gradient(x, h, axis=0, edge_order=2)],
)
case(
    "piecewise", [MATRIX], lambda m, x: m.piecewise(x, [x < -1, x > 1], [lambda v: -v, lambda v: v * v, 0.5])
)
for method in ("linear", "nearest", "first", "last", "mean"):
    case(
        f"interpolate1d:{method}",
        [arg("n", make=distinct), arg("n"), arg(7)],
        lambda m, x, y, at, method=method: m.interpolate1d(x, y, method, extrapolate=False)(at),
        lambda x, y, at, method=method: _interpolated(x, y, at, method),
        gradient=False,
    )


def _filled(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    np.fill_diagonal(x, 3, wrap=True)
    return x


def _offset(x: np.ndarray) -> np.ndarray:
    rows, columns = np.indices(x.shape)
    return np.where(columns == rows + 1, np.asarray(3, x.dtype), x)


def _flat(result: Any) -> list[Any]:
    return [result[0], *result[1]]


def _interpolated(x: np.ndarray, y: np.ndarray, at: np.ndarray, method: str) -> np.ndarray:
    y, x = y[np.argsort(x)], np.sort(x)
    place = np.clip(np.searchsorted(x, at), 1, len(x) - 1)
    left, right = y[place - 1], y[place]
    share = (at - x[place - 1]) / (x[place] - x[place - 1])
    inside = {
        "linear": left + share * (right - left),
        "nearest": np.where(share <= 0.5, left, right),
        "first": left,
        "last": right,
        "mean": (left + right) / 2,
    }[method]
    # The first point itself belongs to what is before it, as in PyTensor.
    return np.where(at <= x[0], y[0], np.where(at > x[-1], y[-1], inside)).astype(y.dtype)
