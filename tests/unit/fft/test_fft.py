# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fourier transforms: equal to NumPy's for sizes of every kind, with right gradients."""

from __future__ import annotations

import numpy as np
import pytest
from gradient_batches import verify_grads

import graphc
import graphc.tensor as pt
from graphc.tensor import fft, fourier

RNG = np.random.default_rng(0)
# By rows side by side, by lanes of a row, and by Bluestein's algorithm.
SIZES = (6, 48, 67)


def signals(n, dtype="float64"):
    real = RNG.normal(size=(3, n)).astype(dtype)
    z = (RNG.normal(size=(3, n)) + 1j * RNG.normal(size=(3, n))).astype(np.result_type(dtype, "complex64"))
    half = z[:, : n // 2 + 1].copy() if n > 1 else z
    return z, real, half


def close(got, want, tolerance):
    assert got.dtype == want.dtype and got.shape == want.shape
    assert np.abs(got - want).max(initial=0) <= tolerance * max(np.abs(want).max(initial=0), 1)


@pytest.mark.parametrize("mode", ["fast_compile", "reference"])
def test_modes(mode):
    inputs, arrays, outputs, expected = [], [], [], []
    for n in SIZES:
        data = signals(n)
        z, x, h = (pt.tensor(dtype=v.dtype.name, shape=v.shape) for v in data)
        inputs += [z, x, h]
        arrays += data
        outputs += [fft.fft(z), fft.ifft(z), fft.rfft(x), fft.irfft(h, n)]
        expected += [
            np.fft.fft(data[0]),
            np.fft.ifft(data[0]),
            np.fft.rfft(data[1]),
            np.fft.irfft(data[2], n),
        ]
    for got, want in zip(graphc.function(inputs, outputs, mode=mode)(*arrays), expected, strict=True):
        close(got, want, 1e-14)


def test_axes_sizes_norms_and_dtypes():
    x, z = RNG.normal(size=(4, 6, 5)), signals(6)[0]
    i = RNG.integers(-5, 5, (3, 8))

    def results(m):
        return [
            *(
                m.fft(x, n, axis, norm)
                for n, axis, norm in ((None, 0, "ortho"), (9, 1, "forward"), (3, -1, None))
            ),
            *(m.ifft(z, n, 0, norm) for n, norm in ((None, "ortho"), (5, "forward"), (2, "backward"))),
            *(
                m.rfft(x, n, axis, norm)
                for n, axis, norm in ((None, 0, "ortho"), (9, 1, "forward"), (4, 2, None))
            ),
            *(
                m.irfft(z, n, axis, norm)
                for n, axis, norm in ((None, 0, "ortho"), (7, 1, "forward"), (4, 1, None))
            ),
            *(m.hfft(z), m.hfft(z, 7, 1, "forward"), m.ihfft(x, norm="ortho"), m.fft(i), m.rfft(i)),
            *(m.fft2(x), m.ifft2(x, (3, 4)), m.rfft2(x), m.irfft2(z), m.fftn(x), m.ifftn(z, axes=(0,))),
            *(m.rfftn(x, norm="ortho"), m.irfftn(x, (4, 6), (0, 1)), m.fftn(x, (2, 8), (1, 2))),
            *(m.fftshift(x), m.ifftshift(x), m.fftshift(x, 2), m.ifftshift(x, axes=(0, 1))),
            *(m.fftfreq(n, 0.25) for n in (1, 7, 8)),
            *(m.rfftfreq(n) for n in (1, 7, 8)),
        ]

    for got, want in zip(graphc.function([], results(fft))(), results(np.fft), strict=True):
        close(got, want, 1e-13)


def test_strides_and_sizes_that_are_data():
    x, n = pt.dmatrix("x"), pt.lscalar("n")
    f = graphc.function([x, n], [fft.rfft(x, n), fft.fft(x, n, axis=0), fft.irfft(x, n), fft.fftfreq(n)])
    a = RNG.normal(size=(8, 12))
    for view in (a, a[::2, ::-1], a[:0], a[:1, :1], a.T):
        for size in (1, 4, 7, 20):
            expected = [
                np.fft.rfft(view, size),
                np.fft.fft(view, size, 0),
                np.fft.irfft(view, size),
                np.fft.fftfreq(size),
            ]
            for got, want in zip(f(view, size), expected, strict=True):
                close(got, want, 1e-13)


def test_gradients():
    def energy(z):
        weights = pt.reshape(pt.arange(z.shape[0] * z.shape[1]), z.shape)
        return (weights * (pt.sqr(pt.real(z)) + pt.imag(z))).sum()

    def inverse(n):
        return lambda h: fft.irfft(pt.complex(h[0], h[1]), n) ** 2

    cases = {}
    for n in (5, 6, 8):
        x, h = RNG.normal(size=(2, n)), RNG.normal(size=(2, 2, n // 2 + 1))
        cases |= {
            f"rfft of {n}": (lambda x: energy(fft.rfft(x)), [x]),
            f"fft of {n}": (lambda x: energy(fft.fft(x, norm="ortho")), [x]),
            f"ifft2 of {n}": (lambda x: energy(fft.ifft2(x)), [x]),
            f"irfft of {n}": (inverse(n), [h]),
        }
    verify_grads(cases)
    v, t = pt.tensor(dtype="float64", shape=(6,)), pt.tensor(dtype="float64", shape=(6,))
    forward = graphc.pushforward(fft.rfft(v), [v], [t])
    forward = forward[0] if isinstance(forward, list) else forward
    a = RNG.normal(size=6)
    np.testing.assert_allclose(
        graphc.function([v, t], forward, on_unused_input="ignore")(a, a), np.fft.rfft(a)
    )


def test_in_a_loop():
    x = RNG.normal(size=(4, 3, 8))
    rows = graphc.map(lambda r: fft.rfft(r), sequences=[pt.as_tensor(x)], return_updates=False)
    rows = rows[0] if isinstance(rows, list | tuple) else rows
    np.testing.assert_allclose(rows.eval(), np.fft.rfft(x), atol=1e-13)


def test_errors():
    with pytest.raises(ValueError, match="norm must be"):
        fft.fft(np.ones(3), norm="some")
    with pytest.raises(ValueError, match="invalid number of data points"):
        fft.rfft(np.ones(3), 0)
    with pytest.raises(ValueError, match="at least one dimension"):
        fft.fft(np.ones(()))
    with pytest.raises(TypeError, match="takes real numbers"):
        fft.rfft(np.ones(3, complex))
    with pytest.raises(ValueError, match="out of range"):
        fft.fft(np.ones(3), axis=1)
    with pytest.raises(ValueError, match="2 sizes are given for 1 axes"):
        fft.fftn(np.ones((3, 3)), (2, 2), (0,))


def test_forms_of_pytensor():
    """A first axis of batches, a last one of real and imaginary parts."""
    x, i = pt.dtensor3("x"), pt.iscalar("i")
    X = RNG.normal(size=(2, 4, 5))
    F = np.fft.rfftn(X, axes=(1, 2))
    packed = fourier.rfft(x)
    back = [fourier.irfft(packed, norm=norm, is_odd=True) for norm in (None, "ortho", "no_norm")]
    even = fourier.irfft(packed)
    ortho = fourier.rfft(x, norm="ortho")
    axes = [fourier.fft(x, 6), fourier.fft(x, None, i)]
    f = graphc.function([x, i], [packed, ortho, even, *back, *axes])
    for axis in (0, 1, -1):
        got = f(X, axis)
        want = [
            np.stack([F.real, F.imag], -1),
            np.stack([F.real, F.imag], -1) / 20**0.5,
            np.fft.irfftn(F, s=(4, 4), axes=(1, 2)),
            *(X * scale for scale in (1, 20**0.5, 20)),
            np.fft.fft(X, 6),
            np.fft.fft(X, axis=axis),
        ]
        for g, w in zip(got, want, strict=True):
            close(g, w, 1e-13)
    for bad in ({"norm": "backward"}, {"is_odd": 3}):
        with pytest.raises(ValueError, match="irfft"):
            fourier.irfft(packed, **bad)
    with pytest.raises(TypeError, match="batches"):
        fourier.rfft(pt.dvector("v"))
