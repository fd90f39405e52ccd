# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dtypes and values at the edges of functions, as NumPy has them; small forms of PyTensor."""

import warnings

import numpy as np
import pytest
from scipy import special

import graphc
import graphc.tensor as pt
from graphc.tensor import random

DTYPES = ["bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex64", "complex128"]
FUNCTIONS = {
    "angle": lambda m, x: m.angle(x),
    "sinc": lambda m, x: m.sinc(x),
    "i0": lambda m, x: m.i0(x),
    "vander": lambda m, x: m.vander(x, 3),
    "corrcoef": lambda m, x: m.corrcoef(x),
    "cov": lambda m, x: m.cov(x),
    "isposinf": lambda m, x: m.isposinf(x),
    "isneginf": lambda m, x: m.isneginf(x),
    "fix": lambda m, x: m.fix(x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_dtypes(name):
    for dtype in DTYPES:
        x = pt.vector("x", dtype=dtype)
        if name == "sinc" and np.dtype(dtype).kind == "c":
            continue  # not defined
        try:
            want = FUNCTIONS[name](np, np.ones(3, dtype)).dtype
        except TypeError:
            with pytest.raises(TypeError):
                FUNCTIONS[name](pt, x)
        else:
            assert FUNCTIONS[name](pt, x).dtype == want, dtype


def test_slopes_where_a_magnitude_has_none():
    x, y = pt.dvector("x"), pt.dvector("y")
    slopes = [graphc.grad(pt.fmod(x, 0.7).sum(), x)]
    slopes.append(graphc.grad(graphc.grad(pt.nn.huber_loss(x, y).sum(), x).sum(), x))
    slopes.append(graphc.grad(pt.nn.huber_loss(x, y, 0.5).sum(), x))
    found = graphc.function([x, y], slopes)(np.array([0.0, -1.0, 2.0]), np.array([0.0, -1.2, 0.0]))
    np.testing.assert_allclose(found, [[1, 1, 1], [1, 1, 0], [0, 0.2, 0.5]])
    delta = pt.dscalar("delta")
    loss = pt.nn.huber_loss(x, 0.0, delta)
    slope = graphc.function([x, delta], [loss, graphc.grad(loss.sum(), delta)])
    value, by_delta = slope(np.array([0.25, -3.0, 3.0]), 0.5)
    np.testing.assert_allclose(value, [0.03125, 1.375, 1.375])
    np.testing.assert_allclose(by_delta, 5.0)


def test_even_parts():
    x, m, cube = pt.dvector("x"), pt.matrix("m", shape=(4, 5)), pt.tensor("cube", shape=(None, None, None))
    pairs = [(pt.hsplit, np.hsplit), (pt.vsplit, np.vsplit), (pt.dsplit, np.dsplit)]
    values = np.arange(48.0).reshape(4, 2, 6)
    f = graphc.function([cube], [part for ours, _ in pairs for part in (*ours(cube, 2), *ours(cube, [1]))])
    wanted = [part for _, theirs in pairs for part in (*theirs(values, 2), *theirs(values, [1]))]
    for got, want in zip(f(values), wanted, strict=True):
        np.testing.assert_array_equal(got, want)
    with pytest.raises(ValueError, match=r"hsplit: axis 1 has no 2 parts of one size.*got size 5"):
        pt.hsplit(m, 2)
    for split in (pt.hsplit, np.hsplit):
        f = graphc.function([x], split(x, 2))
        assert [part.tolist() for part in f(np.arange(4.0))] == [[0, 1], [2, 3]]
        with pytest.raises(ValueError, match="hsplit: axis 0 has no 2 parts of one size"):
            f(np.arange(5.0))


@pytest.mark.parametrize("name", ["linspace", "logspace", "geomspace"])
def test_negative_counts(name):
    n = pt.lscalar("n")
    with pytest.raises(ValueError, match=f"{name}: num, .* at least 0, got -3"):
        getattr(pt, name)(1, 2, -3)
    f = graphc.function([n], getattr(pt, name)(1, 2, n))
    np.testing.assert_allclose(f(3), getattr(np, name)(1, 2, 3))
    with pytest.raises(ValueError, match=f"{name}: num, .* at least 0"):
        f(-3)


@pytest.mark.parametrize("mode", ["fast_run", "reference"])
def test_median_of_nothing(mode):
    m, x = pt.dmatrix("m"), pt.fvector("x")
    f = graphc.function(
        [m, x], [pt.median(m, axis=0), pt.median(m, axis=1), pt.median(m), pt.median(x)], mode=mode
    )
    for shape in ((0, 3), (3, 0), (0, 0), (2, 3), (3, 1)):
        value = np.random.default_rng(0).normal(size=shape)
        row = value.ravel().astype("float32")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = [np.median(value, axis=0), np.median(value, axis=1), np.median(value), np.median(row)]
        for got, expected in zip(f(value, row), want, strict=True):
            np.testing.assert_array_equal(got, expected)
            assert got.dtype == expected.dtype
    assert np.isnan(pt.median(pt.zeros((0,))).eval())
    slope = graphc.function([m], graphc.grad(pt.median(m, axis=1).sum(), m), mode=mode)
    np.testing.assert_array_equal(slope([[1.0, 5.0, 3.0]]), [[0, 0, 1]])


def test_ndtri_exp():
    x = pt.dvector("x")
    y = pt.ndtri_exp(x)
    f = graphc.function([x], [y, graphc.grad(y.sum(), x)])
    points = np.array([-1e-3, -0.5, -3.0, -100.0, -1e5])
    value, slope = f(points)
    np.testing.assert_allclose(value, special.ndtri_exp(points), rtol=1e-12)
    step = 1e-5 * np.abs(points)
    numeric = (special.ndtri_exp(points + step) - special.ndtri_exp(points - step)) / (2 * step)
    np.testing.assert_allclose(slope, numeric, rtol=1e-4)


def test_an_update_of_an_input_that_each_call_gives():
    s, y = pt.dscalar("s"), pt.dscalar("y")
    f = graphc.function([graphc.In(s, update=s + y), y], s * y)
    assert f(3.0, 2.0) == 6 and f(5.0, 2.0) == 10
    with pytest.raises(TypeError):
        f(y=1.0)


@pytest.mark.parametrize("trust", [False, True])
def test_generators_as_inputs_that_are_trusted(trust):
    rng = random.RandomGeneratorType()("rng")
    following, draws = random.normal(size=(3,), rng=rng, return_next_rng=True)
    f = graphc.function([rng], [following, draws], trust_input=trust)
    np.testing.assert_array_equal(f(np.random.default_rng(3))[1], np.random.default_rng(3).normal(size=3))


def test_graphs_made_from_another_description_have_its_lines():
    x, y = pt.dvector("x"), pt.dvector("y")
    with graphc.located("model.stan", 12, "priors"):
        z = x + y
    assert (x * y).owner.location.file == __file__
    with pytest.raises(ValueError, match=r"model.stan:12 in priors"):
        graphc.function([x, y], z)(np.ones(2), np.ones(3))


def test_object_arrays_of_variables_say_what_to_do():
    with pytest.raises(TypeError, match=r"graphc.tensor.stack"):
        pt.as_tensor_variable(np.array([pt.dscalar(), 1.0], dtype=object))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64"])
def test_functions_of_integers_are_no_float16(dtype):
    """NumPy's are: exp(int8(12)) would be infinite."""
    x = pt.vector("x", dtype=dtype)
    y = [pt.exp(x), pt.hypot(x, x), pt.fabs(x), pt.reciprocal(x), pt.ldexp(x, 1), pt.frexp(x)[0]]
    want = "float64" if dtype == "int64" else "float32"
    assert {v.type.dtype for v in y} == {want}
    assert pt.arctan2(x, np.float16(1)).dtype == np.arctan2(np.ones(1, dtype), np.float16(1)).dtype
    value = np.ones(2, dtype) if dtype == "bool" else np.array([1, 80], dtype)
    wide = value.astype(want)
    for mode in ("fast_run", "reference"):
        f = graphc.function([x], y[:4], mode=mode)
        wanted = [np.exp(wide), np.hypot(wide, wide), wide, 1 / wide]
        for got, expected in zip(f(value), wanted, strict=True):
            assert got.dtype == want
            np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_real_dtypes_of_complex_reductions():
    """The real part, with NumPy's warning: products are taken of the complex numbers."""
    x = pt.zmatrix("x")
    value = np.array([[1 + 2j, 3 + 5j]])
    cases = [(pt.mean, 2), (pt.sum, 4), (pt.prod, -7), (lambda x, dtype: pt.mean(x, (), dtype), [[1, 3]])]
    for dtype in ("float64", "float32", "float16", "int64"):
        outputs = []
        for function, _ in cases:
            with pytest.warns(np.exceptions.ComplexWarning, match="imaginary") as caught:
                outputs.append(function(x, dtype=dtype))
            assert caught[0].filename == __file__
        # The mean of integers is floating point.
        wanted = ["float64" if dtype == "int64" else dtype, dtype, dtype, "float64"]
        assert [y.dtype for y in outputs[:3]] == wanted[:3]
        for got, (_, expected) in zip(graphc.function([x], outputs)(value), cases, strict=True):
            np.testing.assert_array_equal(got, expected)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pt.sum(x, dtype="complex64"), pt.mean(x, dtype="bool"), pt.sum(x, dtype="bool")
    with pytest.warns(np.exceptions.ComplexWarning):
        slope = graphc.grad(pt.mean(pt.sqr(x), dtype="float64"), x)
    assert np.isfinite(slope.eval({x: value})).all()


LIMITS = [((None, 2), {}), ((0, None), {}), ((), {"max": 1}), ((), {"min": 1}), ((), {"min": None, "max": 2})]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int8", "uint8", "int64", "bool"])
@pytest.mark.parametrize(("limits", "named"), [*LIMITS, ((None, None), {}), ((1, 2), {})])
def test_one_sided_clip(dtype, limits, named):
    """A limit that is None, or is not given, is none; as a function, method and NumPy's function of it."""
    values = np.array([-3, -1, 0, 1, 2, 5]).astype(dtype)
    x = pt.vector("x", dtype=dtype)
    expected = values if limits == (None, None) else np.clip(values, *limits, **named)
    env = graphc.immediate.Environment()
    found = [make(x, *limits, **named).eval({x: values}) for make in (pt.clip, type(x).clip, np.clip)]
    for result in (*found, np.asarray(env.clip(values, *limits, **named))):
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)


def test_slopes_of_one_sided_clip():
    """They are those of both sides: of the limit itself the slope is that of x."""
    x, high = pt.vector("x"), pt.scalar("high")
    below = pt.clip(x, None, high)
    slopes = graphc.grad(below.sum(), [x, high])
    found = graphc.function([x, high], slopes)([1.0, 2.0, 3.0, np.inf, -np.inf], 2.0)
    np.testing.assert_array_equal(found[0], [1, 1, 0, 0, 1])
    assert found[1] == 2
    np.testing.assert_array_equal(
        pt.clip(x, 0, None).eval({x: [np.nan, np.inf, -np.inf]}), [np.nan, np.inf, 0]
    )
    with pytest.raises(TypeError, match="clip takes the operands x, min, max"):
        pt.clip(x, low=2)


@pytest.mark.parametrize("name", ["argmax", "argmin", "max", "min"])
@pytest.mark.parametrize("mode", ["fast_run", "fast_compile", "interpret", "reference", "immediate"])
def test_extremes_of_nothing(mode, name):
    """An error along an axis without elements, also where there is no result; as in NumPy."""
    env = graphc.immediate.Environment()
    shapes = [((0, 0), 0), ((0, 0), 1), ((0, 0), None), ((0, 3), 1), ((3, 0), 1), ((3, 0), 0), ((0,), 0)]
    for shape, axis in [*shapes, ((0, 2, 0), 2), ((0, 2, 0), 1), ((2, 0, 40), 2), ((0, 0, 40), 1)]:
        a = np.zeros(shape)
        x = pt.tensor("x", shape=(None,) * len(shape))

        def computed(a=a, x=x, axis=axis):
            if mode == "immediate":
                return np.asarray(getattr(env, name)(a, axis=axis))
            return graphc.function([x], getattr(pt, name)(x, axis=axis), mode=mode)(a)

        try:
            expected = getattr(np, name)(a, axis=axis).shape
        except ValueError:
            with pytest.raises(ValueError, match=r"no elements|empty|zero-size|no extreme"):
                computed()
        else:
            assert computed().shape == expected
