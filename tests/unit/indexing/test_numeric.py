# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise functions made of others, against NumPy."""

from __future__ import annotations

import numpy as np

import graphc
import graphc.tensor as pt

FLOATS = [
    lambda p, x, y: p.nan_to_num(x),
    lambda p, x, y: p.nan_to_num(x, nan=1.0, posinf=2.0, neginf=3.0),
    lambda p, x, y: p.isposinf(x),
    lambda p, x, y: p.isneginf(x),
    lambda p, x, y: p.positive(x),
    lambda p, x, y: p.fmax(x, y),
    lambda p, x, y: p.fmin(x, y),
    lambda p, x, y: p.fmod(x, y),
    lambda p, x, y: p.modf(x)[0],
    lambda p, x, y: p.modf(x)[1],
    lambda p, x, y: p.trunc(x) if p is np else p.fix(x),
    lambda p, x, y: p.float_power(x, y),
    lambda p, x, y: p.heaviside(x, y),
]
INTEGERS = [lambda p, i, j: p.fmod(i, j), lambda p, i, j: p.bitwise_count(i), lambda p, i, j: p.fmax(i, j)]


def test_floats():
    special = np.array([0.0, -0.0, 1.5, -2.25, np.inf, -np.inf, np.nan, 1e300, 7.0])
    a, b = (v.ravel() for v in np.meshgrid(special, special))
    for dtype in ("float64", "float32"):
        x, y = (pt.tensor(dtype=dtype, shape=(None,)) for _ in range(2))
        f = graphc.function([x, y], [function(pt, x, y) for function in FLOATS])
        with np.errstate(all="ignore"):
            values = a.astype(dtype), b.astype(dtype)
            expected = [function(np, *values) for function in FLOATS]
        for number, (got, want) in enumerate(zip(f(*values), expected, strict=True)):
            np.testing.assert_allclose(got, want, rtol=1e-14, err_msg=str(number))
            assert got.dtype == want.dtype, number
            if want.dtype.kind == "f" and number not in (5, 6):
                signs = ~np.isnan(want)
                np.testing.assert_array_equal(np.signbit(got)[signs], np.signbit(want)[signs], str(number))


def test_integers():
    for dtype in ("int64", "int8", "uint32"):
        limits = np.iinfo(dtype)
        special = np.array([0, 1, 3, 7, limits.max, limits.min], dtype)
        a, b = (v.ravel() for v in np.meshgrid(special, special))
        a, b = a[b != 0], b[b != 0]
        i, j = (pt.tensor(dtype=dtype, shape=(None,)) for _ in range(2))
        f = graphc.function([i, j], [function(pt, i, j) for function in INTEGERS])
        for got, function in zip(f(a, b), INTEGERS, strict=True):
            with np.errstate(all="ignore"):
                want = function(np, a, b)
            keep = ~((a == limits.min) | (b == limits.min)) if want.dtype != np.uint8 else slice(None)
            np.testing.assert_array_equal(got[keep], want[keep])
            assert got.dtype == want.dtype
