# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transforms of every size up to 130, and of some larger ones, by every algorithm."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.emit import emit_module
from graphc.graph.function_graph import FunctionGraph
from graphc.library import fourier
from graphc.library.fourier import table_of, unit_roots
from graphc.ops.fourier import FftTable, algorithm
from graphc.tensor import fft

RNG = np.random.default_rng(0)
KINDS = ("fft", "ifft", "rfft", "irfft")


def complex_numbers(shape, dtype):
    z = RNG.normal(size=shape) + 1j * RNG.normal(size=shape)
    return z.astype(np.result_type(dtype, "complex64"))


@lru_cache(maxsize=1)
def definition(n):
    """The matrix of the inverse transform, without its scale."""
    angle = 8 * np.arctan(np.longdouble(1)) * np.arange(n) / n
    return (np.cos(angle) + 1j * np.sin(angle))[np.outer(np.arange(n), np.arange(n)) % n]


def exact(kind, x, n):
    """The transform in extended precision, by its definition."""
    if kind == "irfft":
        full = np.zeros((*x.shape[:-1], n), complex)
        full[..., : n // 2 + 1] = x
        full[..., n // 2 + 1 :] = np.conj(x[..., 1 : (n + 1) // 2])[..., ::-1]
        full.imag[..., 0] = 0
        if n % 2 == 0:
            full.imag[..., n // 2] = 0
        return exact("ifft", full, n).real
    matrix = definition(n) if kind == "ifft" else definition(n).conj()
    out = x.astype(np.clongdouble) @ matrix
    if kind == "rfft":
        out = out[..., : n // 2 + 1]
    return out / n if kind == "ifft" else out


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_size(dtype):
    """One function of sizes that are data does them all; more rows than lanes, and a remainder."""
    z, x, h = pt.matrix(dtype=complex_numbers((), dtype).dtype.name), pt.matrix(dtype=dtype), None
    h, n = pt.matrix(dtype=z.dtype), pt.lscalar()
    f = graphc.function([z, x, h, n], [fft.fft(z), fft.ifft(z), fft.rfft(x), fft.irfft(h, n)])
    epsilon = np.finfo(dtype).eps
    for size in (*range(1, 131), 256, 251, 961):
        rows = 1 + size % 10
        a, c = RNG.normal(size=(rows, size)).astype(dtype), complex_numbers((rows, size), dtype)
        half = complex_numbers((rows, size // 2 + 1), dtype)
        results = f(c, a, half, size)
        for kind, data, got in zip(KINDS, (c, c, a, half), results, strict=True):
            want = exact(kind, data, size)
            scale = max(np.abs(want).max(), 1e-300)
            assert np.abs(got - want).max() < epsilon * scale * (3 + np.log2(size)), (kind, size)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_static_sizes(dtype):
    """Sizes of each algorithm: lanes of a row, rows side by side, one row alone, odd reals, Bluestein's."""
    widest = 8 if dtype == "float32" else 4
    outputs, inputs, arrays, wants = [], [], [], []
    for rows, n in ((11, 480), (11, 63), (11, 134), (1, 63), (1, 1024)):
        for kind in KINDS:
            shape = (rows, n // 2 + 1 if kind == "irfft" else n)
            data = RNG.normal(size=shape).astype(dtype) if kind == "rfft" else complex_numbers(shape, dtype)
            v = pt.tensor(dtype=data.dtype.name, shape=shape)
            inputs.append(v)
            arrays.append(data)
            outputs.append(getattr(fft, kind)(v, n))
            wants.append(getattr(np.fft, kind)(data, n))
    for got, want in zip(graphc.function(inputs, outputs)(*arrays), wants, strict=True):
        assert got.dtype == want.dtype
        assert np.abs(got - want).max() < np.finfo(dtype).eps * 12 * np.abs(want).max()
    assert fourier.complex_mode(63, widest) == fourier.LANES and fourier.real_mode(63, widest) == fourier.ODD
    assert algorithm(pt.constant(63), pt.constant(1), dtype, False)[1] == fourier.ALONE
    assert fourier.complex_mode(67, widest) == fourier.real_mode(134, widest) == fourier.CHIRP


@pytest.mark.parametrize("real", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_tables_of_both_kinds_are_equal(real, dtype):
    n, size = pt.lscalar(), pt.lscalar()
    f = graphc.function([n, size], FftTable(real)(pt.zeros((), dtype=dtype), n, size))
    for number in (1, 2, 15, 16, 63, 134, 480, 1024):
        static = table_of(number, real, dtype)
        found = f(number, 40 * number + 1024)[: len(static)]
        np.testing.assert_allclose(
            found, static, atol=30 * np.finfo(dtype).eps * max(np.abs(static), default=1)
        )


def test_roots_of_unity():
    k = np.arange(1000)
    angle = -8 * np.arctan(np.longdouble(1)) * k / 1000
    assert np.abs(unit_roots(k, 1000) - (np.cos(angle) + 1j * np.sin(angle))).max() < 2e-16
    assert np.all(np.abs(unit_roots(k, 1000)[[0, 250, 500, 750]] - [1, -1j, -1, 1j]) == 0)


def test_rows_do_not_touch_each_other():
    """Infinities and NaN of one row are not seen in others, whatever the rows that share vectors."""
    x = RNG.normal(size=(5, 63))
    x[2, 7], x[3, 0] = np.nan, np.inf
    v = pt.tensor(dtype="float64", shape=(5, 63))
    with np.errstate(invalid="ignore"):
        got, want = graphc.function([v], fft.rfft(v))(x), np.fft.rfft(x)
    np.testing.assert_allclose(got[[0, 1, 4]], want[[0, 1, 4]], atol=1e-13)
    assert np.isnan(got[2]).any() and not np.isfinite(got[3]).all()


def test_no_numbers_to_transform():
    x = pt.dmatrix()
    f = graphc.function([x], fft.rfft(x))
    assert f(np.ones((0, 4))).shape == (0, 3)
    with pytest.raises(ValueError, match="invalid number of data points"):
        f(np.ones((2, 0)))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_columns(dtype):
    """Columns in full vectors and what is left of them, in one part and in several."""
    inputs, arrays, outputs, wants = [], [], [], []
    for shape, axis in (((2, 63, 21), 1), ((48, 3), 0), ((30, 35), 0), ((5, 1, 2), 1)):
        z = complex_numbers(shape, dtype)
        v = pt.tensor(dtype=z.dtype.name, shape=shape)
        inputs.append(v)
        arrays.append(z)
        outputs += [fft.fft(v, axis=axis), fft.ifft(v, axis=axis)]
        wants += [np.fft.fft(z, axis=axis), np.fft.ifft(z, axis=axis)]
    text = emit_module(FunctionGraph(inputs, outputs)).text
    assert "fft_columns" in text and "fft_any" not in text
    f = graphc.function(inputs, outputs)
    for got, want in zip(f(*arrays), wants, strict=True):
        assert got.dtype == want.dtype
        assert np.abs(got - want).max() < np.finfo(dtype).eps * 12 * np.abs(want).max()


def test_columns_of_sequences():
    rows = pt.tensor3(dtype="complex128")
    mapped = graphc.map(
        lambda x: fft.fft(pt.specify_shape(x, (6, None)), axis=0), sequences=[rows], return_updates=False
    )
    z = complex_numbers((3, 6, 4), "float64")
    mapped = mapped[0] if isinstance(mapped, list | tuple) else mapped
    np.testing.assert_allclose(graphc.function([rows], mapped)(z), np.fft.fft(z, axis=1), atol=1e-13)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_one_row_becomes_many(dtype):
    """A kernel of one row is chosen by a size that is known; in batches there are more."""
    found, wanted, given, values = [], [], [], []
    for n in (1, 2, 3, 5, 6, 12):
        one, many = (pt.tensor("x", dtype=dtype, shape=shape) for shape in ((n,), (None, n)))
        x = complex_numbers((3, n), dtype)
        for transform, numpy in ((fft.fft, np.fft.fft), (fft.ifft, np.fft.ifft)):
            found += graphc.vectorize_graph([transform(one, axis=0)], {one: many})
            wanted.append(numpy(x))
        given.append(many)
        values.append(x)
    results = graphc.function(given, found)(*values)
    for have, want in zip(results, wanted, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-5)
