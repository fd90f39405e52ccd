# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shapes, parameters, messages, derivatives and batches of draws."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from gradient_batches import verify_grads

import graphc
import graphc.tensor as pt
from graphc.errors import NullTypeGradError, UndefinedGradientError
from graphc.tensor import random
from graphc.tensor.random import RandomVariable
from graphc.tensor.random.distributions import DISTRIBUTIONS, MOST_PARAMETERS
from graphc.tensor.random.native import NATIVE
from graphc.tensor.random.pathwise import RULES
from graphc.transforms.vectorize import vectorize_graph

MODES = ["fast_run", "fast_compile", "reference"]


def new(seed=7):
    return graphc.shared(np.random.default_rng(seed))


def test_the_guide_lists_every_function():
    page = (Path(__file__).parents[3] / "docs" / "guide" / "random.md").read_text(encoding="utf-8")
    listed = {
        name for line in page.splitlines() if line.startswith("| `") for name in re.findall("`(\\w+)`", line)
    }
    assert set(random.DRAWS) <= listed & {*random.__all__}


def test_tables_agree():
    from graphc.library.random.draws import DRAWS
    from graphc.library.random.registers import FAST, TABLES
    from graphc.library.random.vectors import VECTORS

    assert set(NATIVE) == {*DRAWS, *VECTORS}
    assert set(FAST) <= set(DRAWS) and set(TABLES) <= set(FAST)
    for row in DISTRIBUTIONS.values():
        assert len(row.parameters) <= MOST_PARAMETERS
        assert len(RULES.get(row.name, ())) in (0, len(row.parameters))
        native = RandomVariable(row.name).native[0]
        assert native in NATIVE
        kinds = (DRAWS.get(native) or VECTORS[native]).parameters
        assert len(kinds) == len(row.parameters)


@pytest.mark.parametrize("size", [None, (), 0, 1, (2, 0), (3, 2), [np.int64(3), 2], np.array([1, 2])])
def test_sizes(size):
    f = graphc.function([], random.normal(size=size, rng=new()))
    expected = np.random.default_rng(7).normal(size=size if not isinstance(size, list) else tuple(size))
    np.testing.assert_array_equal(f(), expected)


def test_symbolic_sizes():
    n, v = pt.lscalar("n"), pt.lvector("v")
    x = random.normal(size=(n, 2), rng=new())
    y = random.poisson(pt.dvector("lam") * 0 + 4, size=None, rng=new())
    assert x.type.shape == (None, 2) and y.type.shape == (None,)
    f = graphc.function([n], x)
    np.testing.assert_array_equal(f(3), np.random.default_rng(7).normal(size=(3, 2)))
    assert f(0).shape == (0, 2)
    with pytest.raises(
        ValueError, match=r"a size must be at least 0, but is -1[\s\S]*test_random_variable.py"
    ):
        f(-1)
    g = graphc.function([v], random.normal(size=pt.specify_shape(v, (2,)), rng=new()))
    assert g(np.array([2, 3])).shape == (2, 3)
    shape = graphc.function([n], random.gamma(2.0, size=(n, n), rng=new()).shape)
    np.testing.assert_array_equal(shape(10**6), [10**6] * 2)


@pytest.mark.parametrize("mode", MODES)
def test_layouts_of_parameters(mode):
    loc = pt.dmatrix("loc")
    f = graphc.function([loc], random.normal(loc.T[::-1], 0.5, rng=new()), mode=mode)
    value = np.arange(12.0).reshape(3, 4)[:, ::-2]
    np.testing.assert_array_equal(f(value), np.random.default_rng(7).normal(value.T[::-1], 0.5))
    read_only = np.ones((2, 0))
    read_only.flags.writeable = False
    assert f(read_only).shape == (0, 2)


@pytest.mark.parametrize("mode", MODES)
def test_parameters_must_fit(mode):
    a, b = pt.dvector("a"), pt.dvector("b")
    f = graphc.function([a, b], random.normal(a, b, rng=new()), mode=mode)
    with pytest.raises(ValueError, match="the parameter scale has size 3 in dimension 0, the draws have 2"):
        f(np.ones(2), np.ones(3))
    with pytest.raises(ValueError, match="scale < 0"):
        f(np.ones(2), np.array([1.0, -1.0]))
    assert np.isnan(f(np.ones(2), np.array([1.0, np.nan]))[1])
    p = pt.dvector("p")
    g = graphc.function([p], random.categorical(p, rng=new()), mode=mode)
    with pytest.raises(ValueError, match="the parameter p has no elements"):
        g(np.ones(0))


@pytest.mark.parametrize("mode", ["fast_run", "reference"])
def test_constraints_have_numpys_words(mode):
    """What NumPy refuses, and only that."""
    n = np.nan
    cases = {
        "normal": [(0, -1), (0, 0), (0, n)],
        "uniform": [(2, 1), (1, 1), (0, np.inf), (n, 1)],
        "gamma": [(-1, 1), (1, -1), (0, 1)],
        "beta": [(0, 1), (1, 0), (n, 1)],
        "triangular": [(1, 0, 2), (0, 3, 2), (1, 1, 1), (0, 1, 2)],
        "wald": [(0, 1), (1, 0)],
        "f": [(0, 1), (1, -1)],
        "noncentral_f": [(1, 1, -1), (1, 1, 0)],
        "poisson": [(-1,), (n,), (1e30,), (0,)],
        "zipf": [(1,), (n,), (1.5,)],
        "binomial": [(3, 1.5), (3, n), (-1, 0.5), (0, 0.5)],
        "negative_binomial": [(0, 0.5), (3, 0), (1e300, 0.5), (2, 1)],
        "geometric": [(0,), (1.5,), (1,)],
        "logseries": [(1,), (-0.5,), (0,)],
        "hypergeometric": [(1, 1, 3), (10**9, 1, 1), (1, 1, -1), (1, 1, 2)],
        "integers": [(3, 3), (3, 4)],
    }
    for name, tuples in cases.items():
        discrete = {"hypergeometric": "iii", "integers": "ii", "binomial": "id"}
        kinds = discrete.get(name, "d" * len(tuples[0]))
        inputs = [pt.lscalar() if kind == "i" else pt.dscalar() for kind in kinds]
        f = graphc.function(inputs, getattr(random, name)(*inputs, rng=new()), mode=mode)
        for values in tuples:
            generator = np.random.default_rng(7)
            try:
                expected = getattr(generator, name)(*values)
            except (ValueError, OverflowError) as error:
                words = str(error).partition(",")[0].partition(" or ")[0]
                with pytest.raises(ValueError) as found:
                    f(*values)
                assert words in str(found.value) or "n must not be" in words, name
            else:
                np.testing.assert_equal(f(*values), expected, err_msg=name)


def test_messages_while_building():
    with pytest.raises(ValueError, match="normal has the parameters loc, scale, got 1"):
        RandomVariable("normal")(1.0)
    with pytest.raises(ValueError, match="more dimensions than size"):
        random.normal(np.zeros((2, 3)), 1.0, size=3)
    with pytest.raises(ValueError, match="whose size in dimension 0 is not that of the draws, 4"):
        random.normal(np.zeros(3), 1.0, size=4)
    with pytest.raises(ValueError, match="do not broadcast"):
        random.normal(np.zeros(3), np.ones(2))
    with pytest.raises(ValueError, match="must be a vector"):
        random.categorical(0.5)
    with pytest.raises(TypeError, match="must be an integer"):
        random.binomial(2.5, 0.5)
    with pytest.raises(TypeError, match="must be a real number"):
        random.normal(1j, 1)
    with pytest.raises(TypeError, match="cannot have dtype int64"):
        random.normal(dtype="int64")
    with pytest.raises(TypeError, match="integers have one of the dtypes"):
        random.integers(3, dtype="float64")
    with pytest.raises(ValueError, match="a rate or a scale"):
        random.gamma(1.0, 2.0, 3.0)
    with pytest.raises(ValueError, match="at least 0"):
        random.normal(size=-1)


def test_dtypes():
    assert random.normal(dtype="float32").type.dtype == "float32"
    assert random.poisson(dtype="int16").type.dtype == "int16"
    assert random.bernoulli(0.5, dtype="float64").type.dtype == "float64"
    f = graphc.function(
        [], [random.normal(rng=new(), dtype="float32"), random.poisson(4.0, rng=new(), dtype="int8")]
    )
    x, n = f()
    assert x == np.float32(np.random.default_rng(7).normal()) and x.dtype == np.float32
    assert n == np.random.default_rng(7).poisson(4.0) and n.dtype == np.int8
    i = pt.lscalar("i")
    g = graphc.function([i], random.integers(0, i, rng=new(), dtype="int8"))
    assert g(128).dtype == np.int8
    with pytest.raises(ValueError, match="high is out of bounds for int8"):
        g(129)


def test_floatx_is_the_dtype(monkeypatch):
    monkeypatch.setattr(graphc.config, "floatX", "float32")
    x = random.normal(0.0, 1.0, rng=new())
    assert x.type.dtype == "float32"
    assert graphc.function([], x)() == np.float32(np.random.default_rng(7).normal())


# -- arrays, positions and vectors ---------------------------------------------------------------------------


def test_choice_and_permutation_are_numpys():
    a, n = pt.dmatrix("a"), pt.lscalar("n")
    p = np.array([0.1, 0.2, 0.3, 0.4])
    values = np.arange(8.0).reshape(4, 2)
    outputs = {
        "integers": random.choice(n, size=(2, 3), rng=new()),
        "rows": random.choice(a, size=3, rng=new()),
        "weighted": random.choice(a, size=(3, 2), p=p, rng=new()),
        "one": random.choice(4, p=p, rng=new()),
        "distinct": random.choice(n, size=3, replace=False, rng=new()),
        "distinct weighted": random.choice(4, size=3, replace=False, p=p, rng=new()),
        "permutation": random.permutation(n, rng=new()),
        "shuffled": random.shuffle(a, rng=new()),
    }

    def g():
        return np.random.default_rng(7)

    expected = {
        "integers": g().choice(4, (2, 3)),
        "rows": g().choice(values, 3),
        "weighted": g().choice(values, (3, 2), p=p),
        "one": g().choice(4, p=p),
        "distinct": g().choice(4, 3, replace=False),
        "distinct weighted": g().choice(4, 3, replace=False, p=p),
        "permutation": g().permutation(4),
        "shuffled": g().permutation(values),
    }
    for mode in ("fast_run", "reference"):
        found = graphc.function([a, n], outputs, mode=mode)(values, 4)
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.Philox])
def test_permutations_of_any_size_and_seed(bits):
    """One seed and size can agree by chance; the generator after the draws agrees too."""
    n, x, m = pt.lscalar("n"), pt.lvector("x"), pt.dmatrix("m")
    following, order = random.permutation(
        n, rng=(rng := random.rng(bit_generator=bits.__name__)), return_next_rng=True
    )
    following, shuffled = random.shuffle(x, rng=following, return_next_rng=True)
    following, columns = random.permutation(m, axis=1, rng=following, return_next_rng=True)
    chosen = random.choice(x, size=1, replace=False, rng=following)
    for mode in ("fast_run", "reference"):
        f = graphc.function([rng, n, x, m], [order, shuffled, columns, chosen], mode=mode)
        for seed in range(30):
            size = (1, 2, 3, 5, 8, 64, 300)[seed % 7]
            values = np.arange(2.0 * size).reshape(2, size)
            g = np.random.Generator(bits(seed))
            vector = np.arange(size) * 3
            expected = [g.permutation(size)]
            g.shuffle(vector)
            expected += [
                vector,
                g.permutation(values, axis=1),
                g.choice(np.arange(size) * 3, 1, replace=False),
            ]
            for got, want in zip(
                f(np.random.Generator(bits(seed)), size, np.arange(size) * 3, values), expected, strict=True
            ):
                np.testing.assert_array_equal(got, want)


def test_choice_refuses_wrong_probabilities():
    p = pt.dvector("p")
    f = graphc.function([p], random.choice(2, size=2, p=p, rng=new()))
    with pytest.raises(ValueError, match="do not sum to 1"):
        f(np.array([0.5, 0.6]))
    with pytest.raises(ValueError, match="not non-negative"):
        f(np.array([1.5, -0.5]))
    with pytest.raises(ValueError):
        f(np.ones(3) / 3)
    with pytest.raises(ValueError, match="same size"):
        random.choice(3, p=np.array([0.5, 0.5]))
    m = pt.dvector("m")
    g = graphc.function([m], random.multinomial(3, m, rng=new()))
    assert g(np.array([0.5, 0.7])).sum() == 3, "NumPy does not look at the last one"
    with pytest.raises(ValueError, match=r"sum\(pvals\[:-1\]\) > 1.0"):
        g(np.array([0.9, 0.9, 0.1]))


def test_multivariate_normal_is_numpys():
    mean, cov = np.array([1.0, -2.0]), np.array([[2.0, 0.3], [0.3, 0.5]])
    rng = new()
    following, x = rng.multivariate_normal(mean, cov, size=(3,))
    f = graphc.function([], x, updates={rng: following})
    generator = np.random.default_rng(7)
    np.testing.assert_allclose(f(), generator.multivariate_normal(mean, cov, 3), rtol=1e-12)
    np.testing.assert_allclose(f(), generator.multivariate_normal(mean, cov, 3), rtol=1e-12)
    batch = random.multivariate_normal(np.stack([mean, mean + 1]), cov, method="cholesky", rng=new())
    generator = np.random.default_rng(7)
    rows = [generator.multivariate_normal(m, cov, method="cholesky") for m in (mean, mean + 1)]
    np.testing.assert_allclose(graphc.function([], batch)(), rows, rtol=1e-12)
    with pytest.raises(ValueError, match="method"):
        random.multivariate_normal(mean, cov, method="qr")


@pytest.mark.parametrize(
    "mean, cov, size",
    [
        ((3,), (3, 3), None),
        ((2, 3), (3, 3), None),
        ((3,), (4, 3, 3), None),
        ((2, 1, 3), (4, 3, 3), None),
        ((3,), (3, 3), ()),
        ((3,), (3, 3), (2, 2)),
        ((4, 3), (4, 3, 3), (2, 4)),
        ((1,), (1, 1), (0,)),
    ],
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("static", [True, False])
def test_normal_vectors_by_cholesky_are_compiled(mean, cov, size, dtype, static):
    given = np.random.default_rng(1)
    m, r = given.normal(size=mean), given.normal(size=cov)
    c = r @ np.swapaxes(r, -1, -2) + np.eye(cov[-1])
    types = [shape if static else [1 if n == 1 else None for n in shape] for shape in (mean, cov)]
    args = [pt.tensor(name, dtype="float64", shape=t) for name, t in zip("mc", types, strict=True)]
    rng = new()
    following, x = rng.multivariate_normal(*args, size=size, method="cholesky", dtype=dtype)
    f = graphc.function(args, x, updates={rng: following})
    assert f.report.fallbacks == []
    generator = np.random.default_rng(7)
    for _ in range(2):
        batch = np.broadcast_shapes(mean[:-1], cov[:-2]) if size is None else size
        drawn = generator.normal(size=(*batch, mean[-1]))
        want = m + np.einsum("...ij,...j->...i", np.linalg.cholesky(c), drawn)
        got = f(m, c)
        assert got.dtype == dtype
        np.testing.assert_allclose(got, want, rtol=1e-12 if dtype == "float64" else 1e-6)


def test_normal_vectors_by_cholesky_have_derivatives_and_are_checked():
    m, c = pt.dvector("m"), pt.dmatrix("c")
    x = random.multivariate_normal(m, c, method="cholesky", rng=new())
    f = graphc.function([m, c], [x.sum(), *graphc.grad(x.sum(), [m, c])])
    cov, at = np.array([[2.0, 0.3], [0.3, 0.5]]), np.zeros(2)
    _, to_mean, to_cov = f(at, cov)
    np.testing.assert_array_equal(to_mean, 1.0)
    step = 1e-6 * np.eye(2)
    slope = (f(at, cov + step)[0] - f(at, cov - step)[0]) / 2e-6
    np.testing.assert_allclose(np.trace(to_cov), slope, rtol=1e-6)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        f(at, -cov)
    with pytest.raises(ValueError, match="mean vectors and covariance matrices"):
        random.multivariate_normal(0.0, c, method="cholesky")


# -- without NumPy's library ---------------------------------------------------------------------------------


def test_draws_run_in_python_where_the_library_is_missing(monkeypatch):
    from graphc.tensor.random import op

    monkeypatch.setattr(op, "obstacle", lambda name: "the library is missing")
    rng = new()
    following, x = rng.normal(size=3)
    f = graphc.function([], x * 2, updates={rng: following})
    assert "the library is missing" in str(f.report)
    generator = np.random.default_rng(7)
    for _ in range(2):
        np.testing.assert_array_equal(f(), generator.normal(size=3) * 2)
    total = graphc.scan(
        lambda h: h + rng.normal()[1], outputs_info=[pt.zeros(())], n_steps=3, return_updates=False
    )
    assert graphc.function([], total)().shape == (3,)


# -- derivatives ---------------------------------------------------------------------------------------------

_A, _B = np.array([0.7, 1.5]), np.array([1.2, 0.4])
SMOOTH = {
    "normal": (_A, _B),
    "uniform": (_A, _A + _B),
    "lognormal": (_A, _B),
    "exponential": (_A,),
    "laplace": (_A, _B),
    "logistic": (_A, _B),
    "gumbel": (_A, _B),
    "cauchy": (_A, _B),
    "halfnormal": (_A, _B),
    "halfcauchy": (_A, _B),
    "rayleigh": (_B,),
    "weibull": (_A,),
    "power": (_A,),
    "lomax": (_A,),
    "pareto": (_A, _B),
}


def test_derivatives_by_differences():
    def draws(name):
        rng = new()
        return lambda *parameters: getattr(random, name)(*parameters, size=(3, 2), rng=rng).sum()

    verify_grads({name: (draws(name), parameters) for name, parameters in SMOOTH.items()})


def test_derivatives_by_some_parameters():
    a, b = pt.dscalar("a"), pt.dscalar("b")
    x = random.gamma(2.0, scale=b, rng=new())
    f = graphc.function([b], graphc.grad(x, b))
    np.testing.assert_allclose(f(2.0), np.random.default_rng(7).standard_gamma(2.0))
    with pytest.raises(NullTypeGradError, match="no derivative by the parameter shape; those by scale exist"):
        graphc.grad(random.gamma(a, scale=b, rng=new()), a)
    with pytest.raises(NullTypeGradError, match="disconnected_grad"):
        graphc.grad(random.beta(a, b, rng=new()), a)
    with pytest.raises(UndefinedGradientError, match="no derivative by the parameter a"):
        graphc.pushforward(random.beta(a, b, rng=new()), a, pt.ones(()))
    t = graphc.pushforward(random.normal(a, b, rng=new()), b, pt.ones(()))
    np.testing.assert_allclose(
        graphc.function([a, b], t)(1.0, 2.0), np.random.default_rng(7).normal(), rtol=1e-13
    )


def test_counts_have_no_derivative():
    lam = pt.dscalar("lam")
    x = random.poisson(lam, rng=new()).astype("float64")
    assert graphc.function([lam], graphc.grad(x * lam, lam))(3.0) == np.random.default_rng(7).poisson(3.0)


# -- batches -------------------------------------------------------------------------------------------------


def test_batches_share_one_generator():
    loc, scale = pt.dvector("loc"), pt.dscalar("scale")
    x = random.normal(loc, scale, size=(2, 3), rng=new())
    batch = pt.dmatrix("batch")
    f = graphc.function([batch, scale], vectorize_graph(x, {loc: batch}))
    value = np.arange(12.0).reshape(4, 3)
    expected = np.random.default_rng(7).normal(value[:, None], 2.0, (4, 2, 3))
    np.testing.assert_array_equal(f(value, 2.0), expected)
    p = pt.dvector("p")
    g = graphc.function([batch], vectorize_graph(random.categorical(p, rng=new()), {p: batch}))
    assert g(np.full((5, 3), 1 / 3)).shape == (5,)


def test_batches_of_sizes_are_drawn_one_after_the_other():
    n, m = pt.lscalar("n"), pt.lvector("m")
    f = graphc.function([m], vectorize_graph(random.normal(size=n, rng=new()), {n: m}))
    np.testing.assert_array_equal(f([2, 2]), np.random.default_rng(7).normal(size=(2, 2)))
    with pytest.raises(ValueError, match="have size 2 in dimension 0 in the first iteration, but 3"):
        f([2, 3])


def test_printing():
    rng = graphc.shared(np.random.default_rng(1), name="rng")
    text = graphc.dprint(random.normal(0, 1, size=3, rng=rng, name="x"), file="str")
    assert "normal" in text and "rng" in text and "x" in text
