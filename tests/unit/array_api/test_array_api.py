# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The array API namespace: complete by name, and equal to NumPy, which follows the same standard."""

from __future__ import annotations

import collections.abc
import inspect
import pickle

import numpy as np
import pytest

import graphc
import graphc.array_api as xp
import graphc.tensor as pt
from graphc.graph.basic import Variable

# The standard's names, version 2024.12, by section.
STANDARD = {
    "constants": "e inf nan newaxis pi",
    "creation": (
        "arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like "
        "tril triu zeros zeros_like"
    ),
    "data types": (
        "astype broadcast_arrays broadcast_to can_cast finfo iinfo isdtype result_type bool int8 int16 "
        "int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128"
    ),
    "elementwise": (
        "abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert "
        "bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp "
        "expm1 floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal "
        "log log1p log2 log10 logaddexp logical_and logical_not logical_or logical_xor maximum minimum "
        "multiply negative nextafter not_equal positive pow real reciprocal remainder round "
        "sign signbit sin sinh square sqrt subtract tan tanh trunc"
    ),
    "indexing": "take take_along_axis",
    "inspection": "__array_namespace_info__",
    "linear algebra": "matmul matrix_transpose tensordot vecdot",
    "manipulation": (
        "concat expand_dims flip moveaxis permute_dims repeat reshape roll squeeze stack tile unstack"
    ),
    "searching": "argmax argmin count_nonzero nonzero searchsorted where",
    "sets": "unique_all unique_counts unique_inverse unique_values",
    "sorting": "argsort sort",
    "statistics": "cumulative_prod cumulative_sum max mean min prod std sum var",
    "utilities": "all any diff",
}
LINALG = (
    "cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank "
    "matrix_transpose outer pinv qr slogdet solve svd svdvals tensordot trace vecdot vector_norm"
).split()
FFT = ("fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftfreq rfftfreq fftshift ifftshift").split()
# Names that are left out, with the reason.
ABSENT: dict[str, str] = {}

A = np.array([[1.5, -2.0, 3.25], [0.5, 4.0, -6.0]])
B = np.array([[2.0, 1.0, -1.0], [3.0, 0.25, 7.0]])
I = np.array([[3, 1, 2], [3, 5, 1]])  # noqa: E741
S = np.array([[4.0, 1.0], [1.0, 3.0]])


@pytest.mark.parametrize("section", STANDARD)
def test_names_are_complete(section):
    missing = [name for name in STANDARD[section].split() if not hasattr(xp, name) and name not in ABSENT]
    assert not missing
    listed = {name for name in STANDARD[section].split() if not name.startswith("__")}
    assert listed - set(ABSENT) <= set(dir(xp))


def test_extensions_are_complete():
    assert set(LINALG) == set(xp.linalg.__all__) and set(FFT) == set(xp.fft.__all__)
    assert all(callable(getattr(xp.linalg, name)) for name in LINALG)
    assert all(callable(getattr(xp.fft, name)) for name in FFT)


def test_parameters_are_those_of_the_standard():
    """NumPy's main namespace is one of the standard, with further parameters."""
    different = []
    for name in " ".join(STANDARD.values()).split():
        ours, theirs = getattr(xp, name), getattr(np, name, None)
        if not inspect.isfunction(ours) or not inspect.isfunction(theirs):
            continue
        options = [p.name for p in inspect.signature(ours).parameters.values() if p.kind is p.KEYWORD_ONLY]
        unknown = set(options) - set(inspect.signature(theirs).parameters)
        different += [(name, each) for each in unknown - {"descending", "correction"}]
    # Parameters of the standard that NumPy calls otherwise, or does not take.
    assert {name for name, _ in different} <= {"asarray", "from_dlpack", "reshape", "linspace", "arange"}


def elementwise_cases():
    """Every elementwise function on operands that it takes."""
    integers = {name for name in STANDARD["elementwise"].split() if name.startswith("bitwise")}
    for name in STANDARD["elementwise"].split():
        if name == "clip":
            continue
        x, y = (I, I) if name in integers else (np.abs(A) / 10 + (name == "acosh"), np.abs(B))
        count = len(inspect.signature(getattr(xp, name)).parameters)
        yield name, (x, y)[:count]


def run(outputs, inputs, values):
    """Values of outputs."""
    return graphc.function(inputs, outputs, on_unused_input="ignore", mode="fast_compile")(*values)


def test_elementwise_functions():
    names, pairs, inputs = [], [], [pt.tensor(dtype=v.dtype, shape=v.shape) for v in (A, B, I)]
    for name, operands in elementwise_cases():
        names.append(name)
        pairs.append((getattr(xp, name)(*map(pt.constant, operands)), getattr(np, name)(*operands)))
    found = run([y for y, _ in pairs], inputs, [A, B, I])
    for name, got, (_, want) in zip(names, found, pairs, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, err_msg=name)
        assert got.dtype == want.dtype, name


CASES = [
    lambda n, a, b, i: [n.arange(4), n.arange(1, 9, 2), n.eye(3), n.eye(2, 3, k=1), n.linspace(0, 1, 5)],
    lambda n, a, b, i: [
        n.full((2,), 3.0),
        n.ones((2, 1), dtype=n.int8),
        n.zeros_like(i),
        n.tril(a),
        n.triu(a, k=1),
    ],
    lambda n, a, b, i: [*n.meshgrid(a[0, :], b[1, :]), n.asarray(a, dtype=n.float32), n.full_like(i, 2)],
    lambda n, a, b, i: [n.astype(a, n.int32), *n.broadcast_arrays(a, b[:, :1]), n.broadcast_to(a, (4, 2, 3))],
    lambda n, a, b, i: [n.concat((a, b), axis=1), n.concat((a, b), axis=None), n.stack((a, b), axis=-1)],
    lambda n, a, b, i: [n.expand_dims(a, axis=1), n.flip(a), n.flip(a, axis=0), n.moveaxis(a, 0, 1)],
    lambda n, a, b, i: [
        n.permute_dims(a, (1, 0)),
        n.repeat(a, 2, axis=0),
        n.reshape(a, (3, 2)),
        n.roll(a, 1),
    ],
    lambda n, a, b, i: [
        n.squeeze(n.expand_dims(a, axis=0), axis=0),
        n.tile(a, (2, 1)),
        *n.unstack(a, axis=1),
    ],
    lambda n, a, b, i: [
        n.take(a, n.asarray([0, 2]), axis=1),
        n.argmax(a, axis=0),
        n.argmin(a),
        *n.nonzero(a > 1),
    ],
    lambda n, a, b, i: [n.where(a > 0, a, b), n.searchsorted(n.asarray([0.0, 1.0]), a, side="right")],
    lambda n, a, b, i: [
        *n.unique_all(i),
        *n.unique_counts(i),
        *n.unique_inverse(i),
        n.sort(n.unique_values(i)),
    ],
    lambda n, a, b, i: [
        n.sort(a, axis=0),
        n.argsort(i),
        n.sum(i),
        n.sum(a, axis=1, keepdims=True),
        n.prod(a),
    ],
    lambda n, a, b, i: [
        n.mean(a, axis=0),
        n.max(a),
        n.min(a, axis=1),
        n.std(a),
        n.var(a, axis=0, correction=1),
    ],
    lambda n, a, b, i: [
        n.all(a > 0, axis=0),
        n.any(a > 0),
        n.clip(a, 0, 2),
        n.clip(a, min=0.0),
        n.clip(a, max=1),
    ],
    lambda n, a, b, i: [n.cumulative_sum(a, axis=1), n.cumulative_sum(i, axis=0, include_initial=True)],
    lambda n, a, b, i: [
        a @ n.matrix_transpose(b),
        n.matmul(a, b.T),
        n.tensordot(a, b, axes=2),
        n.vecdot(a, b),
    ],
]


@pytest.mark.parametrize("case", CASES)
def test_results_are_numpys(case):
    inputs = [pt.tensor(dtype=v.dtype, shape=v.shape) for v in (A, B, I)]
    symbolic = case(xp, *inputs)
    assert all(isinstance(y, Variable) for y in symbolic)
    for got, want in zip(run(symbolic, inputs, [A, B, I]), case(np, A, B, I), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)
        assert got.dtype == want.dtype


LINALG_CASES = [
    lambda n, s, a: [
        n.cholesky(s),
        n.cholesky(s, upper=True),
        n.det(s),
        n.inv(s),
        n.matrix_power(s, 3),
        n.trace(s),
    ],
    lambda n, s, a: [
        *n.slogdet(s),
        n.eigvalsh(s),
        n.eigh(s).eigenvalues,
        n.svdvals(a),
        n.pinv(a),
        n.matrix_rank(a),
    ],
    lambda n, s, a: [
        n.matrix_norm(a),
        n.vector_norm(a),
        n.vector_norm(a, axis=0, ord=1),
        n.outer(a[0, :], a[1, :]),
    ],
    lambda n, s, a: [
        n.solve(s, a),
        n.solve(s, a[:, 0]),
        n.cross(a, a[::-1, :]),
        n.diagonal(a, offset=1),
        n.qr(a).R,
    ],
]


@pytest.mark.parametrize("case", LINALG_CASES)
def test_linear_algebra(case):
    inputs = [pt.tensor(dtype="float64", shape=v.shape) for v in (S, A)]
    found = run(case(xp.linalg, *inputs), inputs, [S, A])
    for got, want in zip(found, case(np.linalg, S, A), strict=True):
        np.testing.assert_allclose(np.abs(got), np.abs(want), rtol=1e-10, atol=1e-13)


def test_fourier_transforms():
    x = pt.dmatrix("x")
    names = ["fft", "ifft", "rfft", "ihfft", "fftn", "ifftn", "rfftn", "fftshift", "ifftshift"]
    outputs = [getattr(xp.fft, name)(x) for name in names] + [
        xp.fft.irfft(xp.fft.rfft(x), n=3),
        xp.fft.hfft(x),
    ]
    outputs += [
        xp.fft.irfftn(xp.fft.rfftn(x), s=(2, 3), axes=(0, 1)),
        xp.fft.fftfreq(5),
        xp.fft.rfftfreq(5, d=2.0),
    ]
    expected = [getattr(np.fft, name)(A) for name in names] + [A, np.fft.hfft(A), A]
    expected += [np.fft.fftfreq(5), np.fft.rfftfreq(5, d=2.0)]
    for got, want in zip(run(outputs, [x], [A]), expected, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-12)


def test_descending_order():
    x = pt.lmatrix("x")
    values, order = run([xp.sort(x, descending=True), xp.argsort(x, descending=True, axis=1)], [x], [I])
    np.testing.assert_array_equal(values, -np.sort(-I))
    np.testing.assert_array_equal(order, np.argsort(-I, axis=1, kind="stable"))


def test_the_namespace_of_a_variable():
    x = pt.dmatrix("x")
    assert x.__array_namespace__() is xp and x.__array_namespace__(api_version="2022.12") is xp
    with pytest.raises(ValueError, match=r"versions are 2021.12, 2022.12, 2023.12, 2024.12, got '1999'"):
        x.__array_namespace__(api_version="1999")
    assert x.dtype == xp.float64 and x.dtype != xp.float32
    assert x.device == "cpu" and x.to_device("cpu") is x

    def softmax(values):  # written for the standard
        n = values.__array_namespace__()
        shifted = n.exp(values - n.max(values, axis=-1, keepdims=True))
        return shifted / n.sum(shifted, axis=-1, keepdims=True)

    np.testing.assert_allclose(softmax(x).eval({x: A}), softmax(A))


def test_types():
    x = pt.fmatrix("x")
    assert xp.result_type(x, xp.float64) == xp.float64 and xp.can_cast(x, xp.float64)
    assert not xp.can_cast(xp.float64, xp.int64)
    assert xp.isdtype(x.dtype, "real floating") and xp.isdtype(xp.int8, ("bool", "signed integer"))
    assert not xp.isdtype(xp.uint8, "signed integer") and xp.isdtype(xp.bool, xp.bool)
    with pytest.raises(ValueError, match="a kind must be one of"):
        xp.isdtype(xp.int8, "number")
    assert xp.finfo(x).bits == 32 and xp.iinfo(xp.int16).max == 2**15 - 1
    info = xp.__array_namespace_info__()
    assert info.capabilities()["data-dependent shapes"] and info.devices() == ["cpu"]
    assert info.default_dtypes()["integral"] == xp.int64 and info.default_device() == "cpu"
    assert set(info.dtypes(kind="real floating")) == {"float32", "float64"} and len(info.dtypes()) == 13
    with pytest.raises(ValueError, match="device= must be 'cpu'"):
        xp.zeros((2,), device="gpu")


def test_refusals():
    x = pt.dmatrix("x")
    with pytest.raises(ValueError, match="take needs an axis"):
        xp.take(x, [0])
    with pytest.raises(ValueError, match="cumulative_sum needs an axis"):
        xp.cumulative_sum(x)
    with pytest.raises(TypeError, match="add takes 2 arrays, got 1"):
        xp.add(x)
    with pytest.raises(AttributeError, match="has no 'cumprod'"):
        _ = xp.cumprod
    np.testing.assert_array_equal(xp.from_dlpack(A).data, A)


@pytest.mark.parametrize("name", list(xp.__array_namespace_info__().dtypes()))
def test_dtypes_that_are_equal_have_one_hash(name):
    env = graphc.immediate.Environment()
    theirs, ours = env.array_api, getattr(xp, name)
    x = theirs.zeros(2, dtype=ours)
    symbolic = graphc.tensor.vector(dtype=name)
    spellings = [ours, getattr(theirs, name), x.dtype, symbolic.dtype, name, xp.result_type(ours, ours)]
    assert all({a: 1}[b] == 1 and a == b and hash(a) == hash(b) for a in spellings for b in spellings)
    assert all(a == np.dtype(name) == a and np.dtype(a) == np.dtype(name) for a in spellings)
    assert np.zeros(2, x.dtype).dtype == name and f"{x.dtype}" == str(x.dtype) == name
    assert (x.dtype.kind, x.dtype.itemsize) == (np.dtype(name).kind, np.dtype(name).itemsize)
    assert x.dtype.startswith(name[:3]) and name[:3] in x.dtype and x.dtype != "no dtype"
    assert pickle.loads(pickle.dumps(x.dtype)) == name
    assert not isinstance(ours, collections.abc.Sequence)
    assert xp.isdtype(x.dtype, ours) and xp.isdtype(ours, ("bool", "numeric"))
