# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of reductions, cumulative functions, products of arrays, statistics and sets."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sp
from op_table import COMPLEX, FLOATS, NUMBERS, ORDERED, REALS, Family, arg, between, distinct

ROW, MATRIX, CUBE = arg("n"), arg("n", "n+1"), arg(2, "n", "n+1")
APART = arg("n", "n+1", make=distinct)
POSITIVE = arg("n", "n+1", make=between(0.5, 2))
OTHER = arg("n", "n+1", make=between(-1, 1))
FULL = (4, 1)


def quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy without its warnings about empty slices."""

    def call(*args: Any, **options: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args, **options)

    return call


# Reductions ---------------------------------------------------------------------------------------

case = Family("reductions", dtypes=NUMBERS, tolerance=4)
for name in ("sum", "prod"):
    case(name, [MATRIX])
    case(f"{name}:axis", [CUBE], lambda m, x, name=name: getattr(m, name)(x, axis=(0, 2), keepdims=True))
for name in ("any", "all"):
    case(name, [MATRIX], gradient=False)
    case(
        f"{name}:axis",
        [CUBE],
        lambda m, x, name=name: getattr(m, name)(x, axis=1, keepdims=True),
        gradient=False,
    )
case = Family("means", dtypes=NUMBERS, sizes=FULL, tolerance=10)
case("mean", [MATRIX])
case("mean:axis", [CUBE], lambda m, x: m.mean(x, axis=(0, 1), keepdims=True))
case("var", [CUBE], lambda m, x: m.var(x, axis=-1))
case("var:ddof", [CUBE], lambda m, x: m.var(x, axis=2, ddof=1))
case("std", [CUBE], lambda m, x: m.std(x, axis=-1, keepdims=True))
case = Family("extremes", dtypes=ORDERED, sizes=FULL)
for name in ("max", "min"):
    case(name, [APART])
    case(f"{name}:axis", [APART], lambda m, x, name=name: getattr(m, name)(x, axis=-1, keepdims=True))
for name in ("argmax", "argmin"):
    case(name, [APART], gradient=False)
    case(
        f"{name}:axis",
        [CUBE],
        lambda m, x, name=name: getattr(m, name)(x, axis=1, keepdims=True),
        gradient=False,
    )
case(
    "max_and_argmax",
    [APART],
    lambda m, x: m.max_and_argmax(x, axis=1),
    lambda x: [x.max(1), x.argmax(1)],
    jax=False,
)
case = Family("logsumexp", sizes=FULL, tolerance=4, where="special")
case("logsumexp", [MATRIX], lambda m, x: m.logsumexp(x, axis=-1, keepdims=True))
case("logsumexp:all", [MATRIX])
case = Family("more reductions", sizes=FULL, tolerance=4)
case(
    "logsumexp",
    [MATRIX],
    lambda m, x: m.logsumexp(x, axis=0),
    lambda x: sp.logsumexp(x, axis=0),
    jax=False,
)
case("ptp", [APART], lambda m, x: m.ptp(x, axis=1))
case("allclose", [MATRIX, OTHER], lambda m, x, y: m.allclose(x, y, atol=0.5), gradient=False)
case("isclose", [MATRIX, OTHER], lambda m, x, y: m.isclose(x, y, atol=0.5), gradient=False)
case("count_nonzero", [MATRIX], lambda m, x: m.count_nonzero(x > 0, axis=1), gradient=False, jax=False)

# Cumulative ---------------------------------------------------------------------------------------

case = Family("cumulative", dtypes=NUMBERS, tolerance=4)
for name in ("cumsum", "cumprod"):
    case(name, [MATRIX])
    case(f"{name}:axis", [CUBE], lambda m, x, name=name: getattr(m, name)(x, axis=1))
case("ediff1d", [MATRIX], dtypes=REALS)
case("diff", [MATRIX], lambda m, x: m.diff(x, axis=1), dtypes=("bool", *REALS, "complex128"))
case("diff:twice", [MATRIX], lambda m, x: m.diff(x, n=2, axis=1), dtypes=REALS, sizes=FULL)
case = Family("cumulative extremes", dtypes=REALS)
case("cummax", [APART], lambda m, x: m.cummax(x, axis=1), lambda x: np.maximum.accumulate(x, 1), jax=False)
case("cummin", [APART], lambda m, x: m.cummin(x, axis=0), lambda x: np.minimum.accumulate(x, 0), jax=False)
case = Family("curves", tolerance=4)
case("nancumsum", [MATRIX], lambda m, x: m.nancumsum(x, axis=1), jax=False)
case("nancumprod", [MATRIX], lambda m, x: m.nancumprod(x, axis=0), jax=False)
case("trapezoid", [MATRIX], lambda m, x: m.trapezoid(x, dx=0.5))
case("unwrap", [arg("n", make=between(-6, 6))], jax=False)
SORTED = arg(5, dtype="float64", make=lambda rng, shape, dtype: np.linspace(-1, 1, shape[0]))
HEIGHTS = arg(5, dtype="float64")
case("interp", [ROW, SORTED, HEIGHTS], same_dtype=False)

# Products -----------------------------------------------------------------------------------------

case = Family("products", dtypes=("int32", *COMPLEX), tolerance=8)
TURNED, VECTOR = arg("n+1", "n"), arg("n+1")
case("dot", [MATRIX, TURNED])
case("dot:vectors", [ROW, arg("n", make=between(-1, 1))])
case("dot:vector", [MATRIX, VECTOR])
case("matmul", [CUBE, arg(2, "n+1", 3)])
case("matmul:broadcast", [CUBE, TURNED])
case("matmul:vector", [ROW, MATRIX])
case("inner", [MATRIX, OTHER])
case("outer", [ROW, VECTOR])
case("tensordot", [CUBE, arg("n", "n+1", 3)])
case("tensordot:axes", [CUBE, MATRIX], lambda m, x, y: m.tensordot(x, y, axes=[[2, 1], [1, 0]]))
case("einsum", [CUBE, MATRIX, OTHER], lambda m, x, y, z: m.einsum("bij,kj,kl->bil", x, y, z))
case("einsum:diagonal", [arg("n", "n")], lambda m, x: m.einsum("ii->i", x))
case("einsum:implicit", [CUBE, CUBE], lambda m, x, y: m.einsum("bij,bkj", x, y))
case("vdot", [ROW, arg("n", make=between(-1, 1))])
case("vecdot", [MATRIX, OTHER])
case("matvec", [MATRIX, VECTOR])
case("vecmat", [ROW, MATRIX])
case("kron", [MATRIX, arg(2, 3)])
case("cross", [arg("n", 3), arg("n", 3, make=between(-1, 1))])

# Statistics ---------------------------------------------------------------------------------------

WEIGHTS = arg("n", make=between(0.5, 1))


def with_nan(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Some NaN, but never in the first place of the last axis."""
    values = distinct(rng, shape, dtype)
    holes = rng.random(shape) < 0.3
    holes[..., 0] = False
    values[holes] = np.nan
    return values


HOLES = arg(2, "n+1", make=with_nan)
case = Family("statistics", sizes=FULL, tolerance=10)
for name in ("median", "quantile", "percentile"):
    given: tuple[Any, ...] = {"median": (), "quantile": (0.3,), "percentile": (30,)}[name]
    case(name, [APART], lambda m, x, name=name, given=given: getattr(m, name)(x, *given, axis=1))
    case(f"{name}:all", [APART], lambda m, x, name=name, given=given: getattr(m, name)(x, *given))
for method in ("lower", "higher", "nearest", "midpoint"):
    case(f"quantile:{method}", [APART], lambda m, x, method=method: m.quantile(x, 0.4, axis=0, method=method))
case("quantile:several", [APART], lambda m, x: m.quantile(x, [0.0, 0.25, 1.0], axis=1), same_dtype=False)
case("average", [arg("n", 3), WEIGHTS], lambda m, x, w: m.average(x, axis=0, weights=w))
# NumPy makes these float64 at least.
case("cov", [arg(3, "n+1")], same_dtype=False)
case("cov:columns", [arg("n+1", 3)], lambda m, x: m.cov(x, rowvar=False, bias=True), same_dtype=False)
case("corrcoef", [arg(3, "n+2")], same_dtype=False)
for name in ("nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin", "nanmedian"):
    case(name, [HOLES], lambda m, x, name=name: getattr(m, name)(x, axis=1), gradient=False)
for name in ("nanargmax", "nanargmin"):
    case(name, [HOLES], lambda m, x, name=name: getattr(m, name)(x, axis=1), gradient=False)
case("nanquantile", [HOLES], lambda m, x: m.nanquantile(x, 0.3, axis=1), gradient=False)
case("nanpercentile", [HOLES], lambda m, x: m.nanpercentile(x, 70, axis=1), gradient=False)

# Sets ---------------------------------------------------------------------------------------------

SMALL, FEW = arg("n", make=between(0, 4)), arg(3, make=between(1, 6))
case = Family("sets", dtypes=("int64", "uint8", "float64"), gradient=False, jax=False)
case("unique", [SMALL])
case(
    "unique:all",
    [SMALL],
    lambda m, x: m.unique(x, return_index=True, return_inverse=True, return_counts=True),
)
for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d", "isin"):
    case(name, [SMALL, FEW])
case("in1d", [SMALL, FEW], reference=np.isin)
case = Family("counts", dtypes=("int64", "int8"), gradient=False, jax=False)
case("bincount", [SMALL])
case(
    "bincount:weights",
    [SMALL, arg("n", dtype="float64")],
    lambda m, x, w: m.bincount(x, w, minlength=7),
    sizes=FULL,
)
case = Family("histograms", sizes=(20, 1), gradient=False, jax=False)
case(
    "histogram",
    [ROW],
    lambda m, x: m.histogram(x, 5, range=(-2.0, 2.0)),
    quiet(lambda x: np.histogram(x, 5, (-2.0, 2.0))),
    same_dtype=False,
)
case("histogram_bin_edges", [ROW], lambda m, x: m.histogram_bin_edges(x, 4), same_dtype=False, sizes=(20,))
case = Family("choices of floats", dtypes=FLOATS, gradient=False, jax=False)
case("digitize", [ROW, SORTED], lambda m, x, bins: m.digitize(x, bins))
