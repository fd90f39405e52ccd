# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions and pooling: against SciPy and loops, for every stride, padding, dilation and group."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.signal
from gradient_batches import verify_grads

import graphc
import graphc.tensor as pt
from graphc.tensor import nn, signal

RNG = np.random.default_rng(0)
PADDINGS = ("valid", "same", "full", "half", 1, [(1, 2), (0, 3)])


def sides(padding, size, reach, stride):
    if padding == "same":
        total = max((-(-size // stride) - 1) * stride + reach - size, 0)
        return total // 2, total - total // 2
    return {"valid": (0, 0), "full": (reach - 1,) * 2, "half": (reach // 2,) * 2}[padding]


def correlate(x, f, stride, padding, dilation, groups):
    """By the definition."""
    (n, _, *hw), (o, d, p, q) = x.shape, f.shape
    reach = [(p - 1) * dilation[0] + 1, (q - 1) * dilation[1] + 1]
    if isinstance(padding, str):
        widths = [sides(padding, *each) for each in zip(hw, reach, stride, strict=True)]
    else:
        widths = [(padding, padding)] * 2 if isinstance(padding, int) else padding
    x = np.pad(x, [(0, 0), (0, 0), *widths])
    r, s = (max(0, (m - k) // step + 1) for m, k, step in zip(x.shape[2:], reach, stride, strict=True))
    out = np.zeros((n, o, r, s), x.dtype)
    for k, y, z in product(range(o), range(r), range(s)):
        group = k // (o // groups)
        top, left = y * stride[0], z * stride[1]
        part = x[
            :, group * d : group * d + d,
            top : top + reach[0] : dilation[0], left : left + reach[1] : dilation[1],
        ]  # fmt: skip
        out[:, k, y, z] = (part * f[k]).sum((1, 2, 3))
    return out


@pytest.mark.parametrize("groups, filters", [(1, (5, 4, 3, 2)), (2, (8, 2, 3, 2)), (4, (4, 1, 2, 3))])
def test_conv2d(groups, filters):
    x, f = RNG.normal(size=(2, 4, 9, 8)), RNG.normal(size=filters)
    # Every pair of two of them.
    cases = [
        (stride, padding, [(1, 1), (2, 1)][(i + j) % 2])
        for (i, stride), (j, padding) in product(enumerate([(1, 1), (2, 3)]), enumerate(PADDINGS))
    ]
    X, F = pt.tensor(dtype="float64", shape=x.shape), pt.tensor(dtype="float64", shape=filters)
    outputs = [nn.conv2d(X, F, s, p, d, groups) for s, p, d in cases]
    for mode in ("fast_compile", "reference"):
        results = graphc.function([X, F], outputs, mode=mode)(x, f)
        for case, got in zip(cases, results, strict=True):
            stride, padding, dilation = case
            want = correlate(x, f, stride, padding, dilation, groups)
            np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-12, err_msg=str(case))
            assert got.flags.c_contiguous


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex128", "int32"])
def test_sizes_and_dtypes_that_are_not_known(dtype):
    x, f = (RNG.integers(-3, 4, s).astype(dtype) for s in ((2, 3, 7, 6), (4, 3, 3, 3)))
    X, F = (pt.tensor(dtype=dtype, shape=(None,) * 4) for _ in range(2))
    outputs = [nn.conv2d(X, F, 2, p) for p in PADDINGS] + [nn.conv2d(X, F, flip=True)]
    results = graphc.function([X, F], outputs)(x[:, :, ::-1], f)
    wide = np.dtype(dtype) if dtype != "int32" else np.dtype("float64")
    for padding, got in zip(PADDINGS, results, strict=False):
        want = correlate(x[:, :, ::-1], f, (2, 2), padding, (1, 1), 1)
        np.testing.assert_array_equal(got, want)
        assert got.dtype == wide
    flipped = correlate(x[:, :, ::-1], f[:, :, ::-1, ::-1], (1, 1), "valid", (1, 1), 1)
    np.testing.assert_array_equal(results[-1], flipped)


def test_empty_and_large():
    X, F = pt.dtensor4(), pt.dtensor4()
    f = graphc.function([X, F], nn.conv2d(X, F))
    cases = [
        ((0, 2, 5, 5), (3, 2, 2, 2)),
        ((2, 0, 5, 5), (3, 0, 2, 2)),
        ((1, 2, 1, 1), (3, 2, 2, 2)),
        ((1, 2, 5, 5), (0, 2, 2, 2)),
    ]
    for x, w in cases:
        want = correlate(np.ones(x), np.ones(w), (1, 1), "valid", (1, 1), 1)
        assert f(np.ones(x), np.ones(w)).shape == want.shape
    # More patches than are held at a time.
    x, w = RNG.normal(size=(1, 8, 90, 90)), RNG.normal(size=(4, 8, 5, 5))
    want = sum(scipy.signal.correlate2d(x[0, c], w[1, c], "valid") for c in range(8))
    np.testing.assert_allclose(f(x, w)[0, 1], want, rtol=1e-9, atol=1e-9)


def test_gradients_of_every_order():
    x, f, y = RNG.normal(size=(2, 4, 5, 4)), RNG.normal(size=(6, 2, 3, 2)), RNG.normal(size=(2, 6, 3, 2))

    def conv(x, f):
        return nn.conv2d(x, f, (2, 1), "same", (1, 2), groups=2)

    def transposed(y, f):
        return nn.conv2d_transpose(y, f, (2, 1), "same", (1, 2), groups=2)

    verify_grads({"conv": (conv, [x, f]), "transposed": (transposed, [y, f])})
    X, F, T = (
        pt.tensor(dtype="float64", shape=x.shape),
        pt.tensor(dtype="float64", shape=f.shape),
        pt.dtensor4(),
    )
    first = graphc.grad((conv(X, F) ** 3).sum(), [X, F])
    second = graphc.grad((first[0] ** 2).sum() + (first[1] ** 3).sum(), [X, F])
    forward = graphc.pushforward(conv(X, F), [X], [T])
    outputs = [*first, *second, *(forward if isinstance(forward, list) else [forward])]
    results = [graphc.function([X, F, T], outputs, mode=m)(x, f, x + 1) for m in ("fast_run", "reference")]
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(results[0][-1], correlate(x + 1, f, (2, 1), "same", (1, 2), 2), rtol=1e-10)


@pytest.mark.parametrize("padding", PADDINGS[:1] + PADDINGS[2:])
def test_transposed_convolution_is_the_adjoint(padding):
    x, f = RNG.normal(size=(2, 3, 9, 11)), RNG.normal(size=(4, 3, 3, 2))
    y = correlate(x, f, (2, 2), padding, (1, 1), 1)
    g = RNG.normal(size=y.shape)
    back = nn.conv2d_transpose(g, f, 2, padding)
    short = [m - n for m, n in zip(x.shape[2:], back.type.shape[2:], strict=True)]
    back = nn.conv2d_transpose(g, f, 2, padding, output_padding=short).eval()
    assert back.shape == x.shape
    np.testing.assert_allclose((back * x).sum(), (g * y).sum())


def test_one_dimension():
    x, f = RNG.normal(size=(2, 4, 11)), RNG.normal(size=(6, 2, 3))
    X, F = pt.dtensor3(), pt.tensor(dtype="float64", shape=(6, 2, 3))
    options = [(1, "valid", 1), (2, "same", 2), (1, (2, 1), 1), (3, "full", 1)]
    outputs = [nn.conv1d(X, F, *each, groups=2) for each in options]
    y = nn.conv1d_transpose(outputs[0], F, groups=2)
    *results, back = graphc.function([X, F], [*outputs, y])(x, f)
    for (s, p, d), got in zip(options, results, strict=True):
        pads = [(0, 0), p] if isinstance(p, tuple) else p
        if not isinstance(p, tuple):
            pads = [(0, 0), sides(p, 11, 2 * d + 1, s)]
        want = correlate(x[:, :, None], f[:, :, None], (1, s), pads, (1, d), 2)[:, :, 0]
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-12)
    assert back.shape == x.shape


def test_vectorized():
    x, f = RNG.normal(size=(3, 2, 2, 5, 5)), RNG.normal(size=(4, 2, 3, 3))
    X, F = pt.dtensor4(), pt.dtensor4()
    one = nn.conv2d(X, F)
    many = graphc.map(
        lambda x, f: nn.conv2d(x, f), sequences=[pt.as_tensor(x)], non_sequences=[F], return_updates=False
    )
    many = many[0] if isinstance(many, list | tuple) else many
    want = np.stack([graphc.function([X, F], one)(each, f) for each in x])
    np.testing.assert_allclose(graphc.function([F], many)(f), want, rtol=1e-11)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x, f: nn.conv2d(x[0], f), "4-d images and filters"),
        (lambda x, f: nn.conv2d(x[:, :1], f), "1 channels"),
        (lambda x, f: nn.conv2d(x, f, stride=0), "stride must be at least 1"),
        (lambda x, f: nn.conv2d(x, f, stride=(1, 2, 3)), "an integer or 2 of them"),
        (lambda x, f: nn.conv2d(x, f, padding="some"), "padding must be one of"),
        (lambda x, f: nn.conv2d(x, f, padding=-1), "at least 0"),
        (lambda x, f: nn.conv2d(x, f[:3, :1], groups=2), "3 filters cannot be divided into 2 groups"),
        (lambda x, f: nn.max_pool2d(x, 2, padding=2), "windows of size 2 without elements"),
        (lambda x, f: signal.convolve2d(x, f[0, 0, 0]), "a filter of at least 2"),
        (lambda x, f: signal.convolve2d(x, f, boundary="edge"), "boundary must be one of"),
        (lambda x, f: signal.convolve2d(x, f, method="slow"), "method must be one of"),
        (lambda x, f: signal.convolve1d(x, f[0, 0, 0], "some"), "mode must be one of"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.ones((2, 2, 5, 5)), np.ones((4, 2, 3, 3)))


def test_channels_are_checked_at_run_time():
    X, F = pt.dtensor4(), pt.dtensor4()
    with pytest.raises(ValueError, match="expected 3"):
        graphc.function([X, F], nn.conv2d(X, F))(np.ones((1, 2, 5, 5)), np.ones((1, 3, 2, 2)))


# -- pooling -------------------------------------------------------------------------------------------------


def pool(x, window, stride, padding, function):
    """By the definition; elements outside are NaN."""
    hw = x.shape[-2:]
    if isinstance(padding, str):
        padding = [sides(padding, *each) for each in zip(hw, window, stride, strict=True)]
    x = np.pad(x, [(0, 0)] * (x.ndim - 2) + padding, constant_values=np.nan)
    r, s = ((m - k) // step + 1 for m, k, step in zip(x.shape[-2:], window, stride, strict=True))
    rows = [
        [function(x[..., y * stride[0] :, z * stride[1] :][..., : window[0], : window[1]]) for z in range(s)]
        for y in range(r)
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


@pytest.mark.parametrize("static", [True, False])
def test_pooling(static):
    x = RNG.normal(size=(2, 3, 9, 8))
    X = pt.tensor(dtype="float64", shape=x.shape if static else (None,) * 4)
    strides, paddings = [(3, 2), (1, 1), (2, 3)], ["valid", "same", "full", "half", [(1, 0), (0, 1)]]
    # Every stride and every padding, of images of static shape and of others; each pair for one of these.
    pairs = product(enumerate(strides), enumerate(paddings))
    cases = [(stride, padding) for (i, stride), (j, padding) in pairs if (i + j) % 2 == static]
    outputs = []
    for stride, padding in cases:
        outputs += [nn.max_pool2d(X, (3, 2), stride, padding), nn.avg_pool2d(X, (3, 2), stride, padding)]
        outputs.append(nn.avg_pool2d(X, (3, 2), stride, padding, count_include_pad=True))
    for mode in ("fast_compile", "reference"):
        results = iter(graphc.function([X], outputs, mode=mode)(x))
        for stride, padding in cases:
            for function in (np.nanmax, np.nanmean, lambda w, axis: np.nansum(w, axis) / 6):
                want = pool(x, (3, 2), stride, padding, lambda w, f=function: f(w, axis=(-2, -1)))
                np.testing.assert_allclose(next(results), want, rtol=1e-12, atol=1e-14)


def test_pooling_of_sequences_integers_and_nan():
    x = RNG.integers(-9, 9, (2, 3, 8))
    largest, mean = graphc.function([], [nn.max_pool1d(x, 3, 2, "same"), nn.avg_pool1d(x, 2)])()
    triples = x[..., [[0, 1, 2], [2, 3, 4], [4, 5, 6]]]
    np.testing.assert_array_equal(largest[..., :3], triples.max(-1))
    np.testing.assert_array_equal(mean, x.reshape(2, 3, 4, 2).mean(-1))
    assert largest.dtype == x.dtype
    y = np.array([[1.0, np.nan, 3.0, 4.0]])
    np.testing.assert_array_equal(nn.max_pool1d(y, 2).eval(), [[np.nan, 4.0]])


def test_gradients_of_pooling():
    x = RNG.normal(size=(2, 5, 6))
    largest = (lambda x: nn.max_pool2d(x, 3, 2, "same"), [x])
    verify_grads({"largest": largest, "mean": (lambda x: nn.avg_pool2d(x, (2, 3), 1, "half"), [x])})
    v = pt.dtensor3()
    outputs = []
    for pooled in (nn.max_pool2d(v, 2, 1), nn.avg_pool2d(v, 2, 1)):
        g = graphc.grad((pooled**3).sum(), v)
        outputs += [g, graphc.grad((g**2).sum(), v)]
    both = [graphc.function([v], outputs, mode=m)(x) for m in ("fast_run", "reference")]
    for got, want in zip(*both, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10)


# -- signals -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n, k", [(7, 3), (3, 7), (5, 4)])
def test_signals(n, k):
    for dtype, static in product(("float64", "int64"), (True, False)):
        x, y = (RNG.normal(size=(2, n)) * 9).astype(dtype), (RNG.normal(size=k) * 9).astype(dtype)
        X = pt.tensor(dtype=dtype, shape=x.shape if static else (None, None))
        Y = pt.tensor(dtype=dtype, shape=y.shape if static else (None,))
        modes = ("full", "same", "valid")
        outputs = [signal.convolve1d(X, Y, mode) for mode in modes]
        outputs += [signal.convolve2d(X, pt.stack([Y, 2 * Y]), mode) for mode in modes[:2]]
        results = graphc.function([X, Y], outputs, mode="fast_compile")(x, y)
        expected = [np.array([scipy.signal.convolve(row, y, mode) for row in x]) for mode in modes]
        expected += [scipy.signal.convolve2d(x, np.stack([y, 2 * y]), mode) for mode in modes[:2]]
        for got, want in zip(results, expected, strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-9)


BOUNDARIES = [("fill", 0), ("fill", 0.5), ("wrap", 0), ("symm", 0)]


@pytest.mark.parametrize("data, kernel", [((5, 6), (3, 4)), ((3, 3), (5, 8)), ((4, 4), (4, 4))])
def test_boundaries_and_methods(data, kernel):
    x, f = RNG.normal(size=data), RNG.normal(size=kernel)
    cases = [
        (mode, boundary, ("direct", "fft")[(i + j) % 2])
        for (i, mode), (j, boundary) in product(enumerate(("full", "same", "valid")), enumerate(BOUNDARIES))
    ]
    for static in (True, False):
        X = pt.tensor(dtype="float64", shape=data if static else (None, None))
        F = pt.tensor(dtype="float64", shape=kernel if static else (None, None))
        outputs = [
            signal.convolve2d(X, F, mode, boundary, value, method)
            for mode, (boundary, value), method in cases
        ]
        results = graphc.function([X, F], outputs, mode="fast_compile" if static else "reference")(x, f)
        for case, got in zip(cases, results, strict=True):
            mode, (boundary, value), _ = case
            want = scipy.signal.convolve2d(x, f, mode, boundary, value)
            np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-13, err_msg=str(case))


def test_many_filters():
    x, y = RNG.normal(size=(2, 3, 7)), RNG.normal(size=(3, 4))
    X, Y = pt.tensor3(), pt.matrix()
    for mode in ("full", "same", "valid"):
        want = [[scipy.signal.convolve(a, b, mode) for a, b in zip(rows, y, strict=True)] for rows in x]
        np.testing.assert_allclose(signal.convolve1d(X, Y, mode).eval({X: x, Y: y}), want, rtol=1e-12)
    images, filters = RNG.normal(size=(2, 1, 6, 5)), RNG.normal(size=(3, 2, 2))
    want = [[scipy.signal.convolve2d(i[0], f, "same", "wrap") for f in filters] for i in images]
    for method in ("direct", "fft"):
        got = signal.convolve2d(images, filters, "same", "wrap", method=method).eval()
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-13)


def test_gradients_of_boundaries():
    x, f = RNG.normal(size=(4, 5)), RNG.normal(size=(3, 2))
    verify_grads(
        {
            (boundary, method): (
                lambda x, f, boundary=boundary, value=value, method=method: signal.convolve2d(
                    x, f, "full", boundary, value, method
                ),
                [x, f],
            )
            for (boundary, value), method in product(BOUNDARIES[1:], ("direct", "fft"))
        }
    )


def test_large_filters_go_through_transforms():
    x, f = RNG.normal(size=(40, 41)), RNG.normal(size=(24, 25))
    y = signal.convolve2d(x, f)
    assert "conv2d" not in graphc.printing.debugprint(y, file="str").lower()
    np.testing.assert_allclose(y.eval(), scipy.signal.convolve2d(x, f), rtol=1e-10, atol=1e-10)
