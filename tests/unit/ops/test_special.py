# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Special functions: compiled code against SciPy, derivatives with respect to parameters, and messages."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import graphc
import graphc.tensor as pt
import graphc_runtime.symbols as symbols
from graphc.errors import NullTypeGradError
from graphc.library import scalars
from graphc.ops.elementwise import OPS, ROWS
from graphc_runtime.errors import SymbolError

# Operands far from the easy ones: name -> interval of each operand.
INTERVALS: dict[str, tuple[tuple[float, float], ...]] = {
    **dict.fromkeys(("erf", "erfc", "dawsn", "j0", "j1", "i0e", "i1e", "sinc", "exprel"), ((-30.0, 30.0),)),
    **dict.fromkeys(("erfcx", "erfi", "ndtr", "log_ndtr"), ((-20.0, 20.0),)),
    **dict.fromkeys(("gamma", "gammaln", "digamma", "trigamma", "rgamma"), ((0.01, 60.0),)),
    **dict.fromkeys(("y0", "y1", "k0", "k1", "k0e", "k1e", "exp1", "expi", "entr"), ((0.01, 40.0),)),
    **dict.fromkeys(
        ("erfinv", "ndtri", "logit", "ellipk", "ellipe", "ellipkm1", "erfcinv"), ((0.001, 0.999),)
    ),
    **dict.fromkeys(("ellipkinc", "ellipeinc"), ((-9.0, 9.0), (-20.0, 0.999))),
    "stdtrit": ((0.3, 30.0), (0.01, 0.99)),
    "ndtri_exp": ((-20.0, -0.01),),
    "spence": ((0.0, 5.0),),
    **dict.fromkeys(("i0", "i1"), ((-40.0, 40.0),)),
    **dict.fromkeys(("iv", "kv", "jv", "yv", "ive", "kve"), ((0.0, 12.0), (0.1, 30.0))),
    **dict.fromkeys(("gammainc", "gammaincc", "beta", "betaln", "poch"), ((0.1, 20.0), (0.1, 20.0))),
    **dict.fromkeys(("gammaincinv", "gammainccinv"), ((0.1, 20.0), (0.01, 0.99))),
    **dict.fromkeys(("xlogy", "rel_entr", "kl_div"), ((0.0, 9.0), (0.1, 9.0))),
    "xlog1py": ((0.0, 9.0), (-0.9, 9.0)),
    "logaddexp2": ((-50.0, 50.0), (-50.0, 50.0)),
    "owens_t": ((-4.0, 4.0), (-4.0, 4.0)),
    "zeta": ((1.01, 30.0), (0.05, 40.0)),
    "binom": ((0.1, 9.0), (0.1, 9.0)),
    **dict.fromkeys(("betainc", "betaincc", "betaincinv"), ((0.1, 9.0), (0.1, 9.0), (0.01, 0.99))),
    "hyp1f1": ((0.1, 5.0), (0.1, 5.0), (-9.0, 9.0)),
    "hyp2f1": ((0.1, 5.0), (0.1, 5.0), (0.1, 5.0), (-0.9, 0.9)),
}
# Values that lose digits by cancellation, in the reference too.
ABSOLUTE = {
    "kl_div",
    "sinc",
    "j0",
    "j1",
    "y0",
    "y1",
    "jv",
    "yv",
    "digamma",
    "gammaln",
    "betaln",
    "expi",
    "spence",
    "logaddexp2",
}


def _operands(name: str, dtype: str, count: int = 40) -> list[np.ndarray]:
    rng = np.random.default_rng(len(name))
    return [rng.uniform(low, high, count).astype(dtype) for low, high in INTERVALS[name]]


def _together(names: list[str], dtype: str, mode: str | None = None) -> list[tuple[str, Any, Any]]:
    """Value and reference of several functions, compiled in one function."""
    inputs, outputs, values = [], [], []
    for name in names:
        arrays = _operands(name, dtype)
        variables = [pt.vector(dtype=dtype) for _ in arrays]
        inputs += variables
        values += arrays
        outputs.append(getattr(pt, name)(*variables))
    got = graphc.function(inputs, outputs, mode=mode)(*values)
    expected = [ROWS[name].reference(*_operands(name, dtype)) for name in names]
    return list(zip(names, got, expected, strict=True))


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
def test_float64_values(mode: str) -> None:
    for name, got, expected in _together(list(INTERVALS), "float64", mode):
        atol = 1e-13 if name in ABSOLUTE else 0
        np.testing.assert_allclose(got, expected, rtol=3e-12, atol=atol, err_msg=name)


def test_float32_values_are_those_of_float64_rounded() -> None:
    for name, got, expected in _together(list(INTERVALS), "float32"):
        assert got.dtype == np.float32
        atol = 1e-6 if name in ABSOLUTE else 0
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=atol, err_msg=name)


def test_special_values() -> None:
    edge = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, -2.0, 1.0, 5e-324, 1e308, -1e308])
    names = [name for name, each in INTERVALS.items() if len(each) == 1 and name not in ("gammaln", "sinc")]
    x = pt.vector()
    got = graphc.function([x], [getattr(pt, name)(x) for name in names])(edge)
    for name, value in zip(names, got, strict=True):
        expected = ROWS[name].reference(edge)
        # SciPy's overflow or are imprecise at the ends of the range, where ours have the value.
        usable = np.abs(edge) < 1e300 if name in ("j0", "j1", "y0", "y1", "erfi", "dawsn") else edge == edge
        usable &= ~((edge == 5e-324) & (np.array(name in ("k0", "k1", "k0e", "k1e", "digamma", "rgamma"))))
        expected, value = expected[usable], value[usable]
        np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-300, err_msg=name)


def test_gammaln_at_the_ends_of_the_range() -> None:
    x = pt.vector()
    got = graphc.function([x], pt.gammaln(x))(np.array([-np.inf, 5e-324, np.inf, -3.0, np.nan]))
    np.testing.assert_allclose(got, [-np.inf, 744.4400719213812, np.inf, np.inf, np.nan])


@pytest.mark.parametrize("name", ["erfcx", "gammainc", "zeta"])
def test_layouts(name: str) -> None:
    arity = ROWS[name].arity
    variables = [pt.matrix() for _ in range(arity)]
    f = graphc.function(variables, OPS[name](*variables))
    rng = np.random.default_rng(0)
    bases = [rng.uniform(1.1, 4, (6, 8)) for _ in range(arity)]
    for view in (lambda a: a, lambda a: a[::-1, ::2], lambda a: a.T, lambda a: a[:0], lambda a: a[:1, :1]):
        arrays = [view(base) for base in bases]
        np.testing.assert_allclose(f(*arrays), ROWS[name].reference(*arrays), rtol=1e-13)
    scalar = pt.scalar()
    one = graphc.function([scalar], OPS[name](*[scalar] * arity))(np.array(2.5))
    np.testing.assert_allclose(one, ROWS[name].reference(*[np.array(2.5)] * arity))


def test_zeta_at_the_ends_of_the_range() -> None:
    """Sums end where terms are 0 or infinite."""
    s, q = pt.vector(), pt.vector()
    cases = [(1e300, 2.0, 0.0), (1e300, 0.5, np.inf), (1e5, 1.0, 1.0), (1.0, 2.0, np.inf), (0.5, 2.0, np.nan)]
    cases += [(2.0, 1e300, 1e-300), (2.0, -1.0, np.inf), (2.5, -1.5, np.nan), (np.inf, 3.0, 0.0)]
    cases += [(2.0, np.inf, 0.0), (3.0, 1e-150, np.inf), (40.0, -1e15 - 0.5, 2.0**41)]
    first, second, expected = np.array(cases).T
    np.testing.assert_allclose(graphc.function([s, q], pt.zeta(s, q))(first, second), expected, rtol=1e-14)


def test_polygamma() -> None:
    n, x = pt.lvector(), pt.vector()
    orders = np.array([0, 1, 2, 3, 7, 1, 2, -1])
    places = np.array([0.3, 4.0, 0.01, 30.0, 2.0, -0.4, -7.3, 1.0])
    got = graphc.function([n, x], pt.polygamma(n, x))(orders, places)
    np.testing.assert_allclose(got[:-1], scipy.special.polygamma(orders, places)[:-1], rtol=1e-13)
    assert np.isnan(got[-1])


def test_compositions() -> None:
    x = pt.vector()
    names = ["gammal", "gammau", "chi2sf", "factorial", "multigammaln", "log_expit", "loggamma"]
    special = graphc.tensor.special
    outputs = [special.gammal(2.5, x), special.gammau(2.5, x), special.chi2sf(x, 3), special.factorial(x)]
    outputs += [special.multigammaln(x + 2, 3), special.log_expit(-x), special.loggamma(x)]
    v = np.linspace(0.2, 5, 9)
    s = scipy.special
    expected = [s.gammainc(2.5, v) * s.gamma(2.5), s.gammaincc(2.5, v) * s.gamma(2.5), s.chdtrc(3, v)]
    expected += [s.factorial(v), s.multigammaln(v + 2, 3), s.log_expit(-v), s.loggamma(v)]
    for name, got, want in zip(names, graphc.function([x], outputs)(v), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-15, err_msg=name)


def _mp_derivative(function: Any, position: int, operands: tuple[float, ...]) -> float:
    mp = pytest.importorskip("mpmath").mp

    def of(t: Any) -> Any:
        return function(*(t if i == position else mp.mpf(x) for i, x in enumerate(operands)))

    with mp.workdps(40):
        return float(mp.diff(of, mp.mpf(operands[position])))


CASES = [
    ("gammainc", 0, (0.5, 0.3)),
    ("gammainc", 0, (10.0, 15.0)),
    ("gammainc", 0, (1e-3, 0.01)),
    ("gammainc", 0, (100.0, 90.0)),
    ("betainc", 0, (0.5, 0.3, 0.2)),
    ("betainc", 0, (30.0, 70.0, 0.29)),
    ("betainc", 1, (2.0, 1.0, 0.9)),
    ("betainc", 1, (100.0, 3.0, 0.99)),
    ("hyp2f1", 0, (0.5, 0.3, 1.2, 0.2)),
    ("hyp2f1", 0, (1.0, -2.5, 4.0, -3.0)),
    ("hyp2f1", 1, (2.0, 1.0, 3.5, 0.9)),
    ("hyp2f1", 2, (1.5, 2.0, 2.5, -0.7)),
]


def test_derivatives_with_respect_to_parameters() -> None:
    mp = pytest.importorskip("mpmath").mp
    exact = {
        "gammainc": lambda a, x: mp.gammainc(a, 0, x, regularized=True),
        "betainc": lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
        "hyp2f1": mp.hyp2f1,
    }
    inputs, gradients, values = [], [], []
    for name, position, operands in CASES:
        variables = [pt.scalar() for _ in operands]
        inputs += variables
        values += [np.array(x) for x in operands]
        gradients.append(graphc.grad(OPS[name](*variables), variables[position]))
    for case, got in zip(CASES, graphc.function(inputs, gradients)(*values), strict=True):
        name, position, operands = case
        expected = _mp_derivative(exact[name], position, operands)
        np.testing.assert_allclose(got, expected, rtol=2e-13, err_msg=str(case))


def test_undefined_derivatives_name_the_operand() -> None:
    n, x = pt.scalar("n"), pt.scalar("x")
    with pytest.raises(NullTypeGradError, match=r"gradient of polygamma with respect to input 0 \(n\)"):
        graphc.grad(pt.polygamma(n, x), n)
    graphc.grad(pt.polygamma(n, x), x)


def test_gradients_that_have_several_forms() -> None:
    """Next to places where a formula changes."""
    points = {
        "sinc": np.array([0.0, 0.0499, 0.0501, 1.0, 2.5]),
        "spence": np.array([0.5, 1.0, 1.5]),
        "ellipk": np.array([0.0, 0.3, -2.0]),
        "ellipe": np.array([0.0, 0.3, -2.0]),
        "exprel": np.array([0.0, 1e-3, 2.0]),
        "log_ndtr": np.array([-30.0, -1.0, 0.0, 5.0]),
    }
    for name, values in points.items():
        eps = 1e-6
        x = pt.vector()
        f = graphc.function([x], [OPS[name](x), graphc.grad(pt.sum(OPS[name](x)), x)])
        numeric = (f(values + eps)[0] - f(values - eps)[0]) / (2 * eps)
        np.testing.assert_allclose(f(values)[1], numeric, rtol=1e-6, atol=1e-8, err_msg=name)


def test_second_derivatives_where_first_ones_have_a_limit() -> None:
    """Of elliptic integrals at 0, of the dilogarithm at 1; and of x * log(y) by both at x = 0."""
    x, y = pt.vector("x"), pt.vector("y")
    slopes = [graphc.grad(f(x).sum(), x) for f in (pt.ellipk, pt.ellipe, lambda t: pt.spence(1 + t))]
    curves = [graphc.grad(slope.sum(), x) for slope in slopes]
    t = np.array([0.0, 1e-9, -1e-5, 1e-3])
    found = graphc.function([x], [*slopes, *curves])(t)
    quarter = np.pi / 8
    wanted = [
        quarter * (1 + 9 / 8 * t + 75 / 64 * t**2), -quarter * (1 + 3 / 8 * t + 15 / 64 * t**2),
        -1 + t / 2 - t**2 / 3,
        quarter * (9 / 8 + 75 / 32 * t), -quarter * (3 / 8 + 15 / 32 * t), 0.5 - 2 * t / 3,
    ]  # fmt: skip
    for got, want, rtol in zip(found, wanted, [2e-9] * 3 + [1e-5] * 3, strict=True):
        np.testing.assert_allclose(got, want, rtol=rtol)
    mixed = [graphc.grad(graphc.grad(f(x, y).sum(), y).sum(), x) for f in (pt.xlogy, pt.xlog1py)]
    points = np.array([0.0, 0.0, 2.0]), np.array([0.5, 3.0, 4.0])
    found = graphc.function([x, y], mixed, on_unused_input="ignore")(*points)
    np.testing.assert_allclose(found, [1 / points[1], 1 / (1 + points[1])])


def test_artifacts_state_what_they_need() -> None:
    x = pt.vector()
    f = graphc.function([x], [pt.j0(x), pt.zeta(2.0, x)])
    needed = set(f.executor.executable.manifest.symbols)
    assert "special_d_j0" in needed
    assert not any(name.startswith("graphc_scalar") for name in needed), "kernels are part of the code"
    f = graphc.function([x], [pt.i0(x), pt.i0e(x), pt.i1(x), pt.i1e(x)])
    needed = f.executor.executable.manifest.symbols
    assert not any(name.startswith("special_") for name in needed), "a call keeps a loop from vectors"


def test_symbols() -> None:
    assert symbols.resolve("special_d_erfcx") != symbols.resolve("special_ddd_betainc")
    for name in ("special_dd_erfcx", "special_d_nothing"):
        with pytest.raises(SymbolError, match=name):
            symbols.resolve(name)


def test_kernels_compile_to_what_they_say() -> None:
    """Scalar kernels in Python and as machine code."""
    rng = np.random.default_rng(3)
    for name, arity in (
        ("gammainc_da", 2),
        ("betainc_da", 3),
        ("betainc_db", 3),
        ("hyp2f1_da", 4),
        ("hyp2f1_dc", 4),
    ):
        arrays = [rng.uniform(0.1, 0.9, 20) for _ in range(arity)]
        variables = [pt.vector() for _ in arrays]
        got = graphc.function(variables, OPS[name](*variables))(*arrays)
        np.testing.assert_allclose(got, scalars.reference(name)(*arrays), rtol=1e-12)
    assert np.isnan(scalars.reference("gammainc_da")(np.array(-1.0), np.array(1.0)))


def test_powers_of_infinities_and_zeros() -> None:
    x = pt.vector()
    v = np.array([-np.inf, np.inf, -0.0, 0.0, -1.0, 4.0, np.nan])
    exponents = (0.5, -0.5, 1.5, *range(-9, 10))
    with np.errstate(all="ignore"):
        for got, y in zip(graphc.function([x], [x**y for y in exponents])(v), exponents, strict=True):
            expected = np.power(v, y)
            np.testing.assert_array_equal(got, expected, err_msg=str(y))
            np.testing.assert_array_equal(np.signbit(got[:4]), np.signbit(expected[:4]), err_msg=str(y))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_whole_powers_over_the_whole_range(dtype: str) -> None:
    """Subnormal results, too, and up to where they overflow."""
    limits, rng = np.finfo(dtype), np.random.default_rng(3)
    x = pt.vector(dtype=dtype)
    exponents = [n for n in range(-9, 10) if n]
    ends = np.array([[np.log2(float(limits.smallest_subnormal)), limits.maxexp] for _ in exponents])
    with np.errstate(all="ignore"):
        for n, (low, high) in zip(exponents, ends, strict=True):
            v = np.exp2(rng.uniform(low, high, 4000) / (n if abs(n) > 1 else 1)).astype(dtype)
            got = graphc.function([x], x ** np.array(n, dtype))(v)
            expected = np.power(v.astype(np.longdouble), n)
            room = 5 * np.spacing(abs(expected.astype(dtype)))
            close = (abs(got - expected) <= room) | (got == expected.astype(dtype))
            assert close.all(), (n, v[~close][:3], got[~close][:3])


def test_a_quotient_of_exponentials_with_infinities() -> None:
    x = pt.matrix()
    rows = np.array([[np.inf, 1, 2], [-np.inf, 1, 2], [np.nan, 1, 2], [-np.inf] * 3, [800, 1, 2]])
    quotient = pt.exp(x) / pt.sum(pt.exp(x), axis=1, keepdims=True)
    got = graphc.function([x], [quotient, pt.log(quotient)])(rows)
    with np.errstate(all="ignore"):
        expected = np.exp(rows) / np.exp(rows).sum(1, keepdims=True)
        logarithms = np.log(expected)
    np.testing.assert_allclose(got[0][:4], expected[:4], rtol=1e-14)
    np.testing.assert_allclose(got[1][:4], logarithms[:4], rtol=1e-14)
    np.testing.assert_array_equal(got[0][4], [1, 0, 0])


# Functions with several results ---------------------------------------------------------------------------

EDGE = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -1e-300, 700.0, -700.0, 1e5, -1e5, 1e300])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_each_result_is_scipys(dtype: str) -> None:
    """Far out and at the ends of the range, too, in compiled code, loops and immediate mode."""
    x, m = pt.vector("x", dtype=dtype), pt.vector("m", dtype=dtype)
    with np.errstate(over="ignore"):
        points = np.concatenate([EDGE, np.linspace(-9, 9, 13)]).astype(dtype)
    share = np.linspace(-0.1, 1.1, len(points)).astype(dtype)
    names = ("airy", "airye", "sici", "shichi", "fresnel")
    outputs = [result for name in names for result in getattr(pt.special, name)(x)]
    outputs += [
        *pt.special.ellipj(x, m),
        *[graphc.scan(lambda t: pt.special.airy(t)[2], sequences=[x], return_updates=False)],
    ]
    found = graphc.function([x, m], outputs)(points, share)
    with np.errstate(all="ignore"):
        wide, wider = points.astype(float), share.astype(float)
        expected = [y for name in names for y in getattr(scipy.special, name)(wide)]
        expected += [*scipy.special.ellipj(wide, wider), scipy.special.airy(wide)[2]]
        for got, right in zip(found, expected, strict=True):
            np.testing.assert_array_equal(got, right.astype(dtype))
        np.testing.assert_array_equal(
            pt.special.stdtrit([3.0, 3.0, -1.0], [0.0, 1.0, 0.5]).eval(),
            scipy.special.stdtrit([3, 3, -1], [0, 1, 0.5]),
        )


# A function of a namespace; its value in mpmath; where derivatives are asked for.
def _jacobi(kind: str) -> Any:
    return lambda u, m: mpmath.ellipfun(kind, u, m=m)


def _quantile(df: Any, p: Any) -> Any:
    def rest(t: Any) -> Any:
        tail = mpmath.betainc(df / 2, 0.5, 0, df / (df + t * t), regularized=True) / 2
        return (tail if t < 0 else 1 - tail) - p

    return mpmath.findroot(rest, scipy.special.stdtrit(float(df), float(p)), tol=1e-60)


JACOBI: list[tuple[float, ...]] = [(0.7, 0.9), (5.0, 0.3), (-2.0, 0.01)]
SLOPES: dict[str, tuple[Any, Any, list[tuple[float, ...]]]] = {
    "airy_ai": (lambda x: pt.special.airy(x)[0], mpmath.airyai, [(-7.0,), (0.0,), (3.0,)]),
    "airy_bip": (lambda x: pt.special.airy(x)[3], lambda x: mpmath.airybi(x, 1), [(-7.0,), (0.0,), (3.0,)]),
    "airye_ai": (
        lambda x: pt.special.airye(x)[0],
        lambda x: mpmath.airyai(x) * mpmath.exp(2 * x**1.5 / 3),
        [(0.1,), (7.0,), (61.0,), (1e5,)],
    ),
    "airye_bip": (
        lambda x: pt.special.airye(x)[3],
        lambda x: mpmath.airybi(x, 1) / mpmath.exp(2 * x**1.5 / 3),
        [(0.1,), (7.0,), (61.0,), (1e4,)],
    ),
    "si": (lambda x: pt.special.sici(x)[0], mpmath.si, [(-3.0,), (1e-9,), (40.0,)]),
    "ci": (lambda x: pt.special.sici(x)[1], mpmath.ci, [(1e-9,), (40.0,)]),
    "shi": (lambda x: pt.special.shichi(x)[0], mpmath.shi, [(-3.0,), (1e-9,), (40.0,)]),
    "chi": (lambda x: pt.special.shichi(x)[1], mpmath.chi, [(1e-9,), (40.0,)]),
    "fresnel_s": (lambda x: pt.special.fresnel(x)[0], mpmath.fresnels, [(-3.1,), (0.3,), (8.9,)]),
    "fresnel_c": (lambda x: pt.special.fresnel(x)[1], mpmath.fresnelc, [(-3.1,), (0.3,), (8.9,)]),
    "ellipkm1": (pt.special.ellipkm1, lambda p: mpmath.ellipk(1 - p), [(1e-9,), (0.5,), (1.01,), (30.0,)]),
    "ellipkinc": (pt.special.ellipkinc, mpmath.ellipf, [(0.7, 0.9), (5.0, 0.3), (-2.0, -30.0), (1.5, 1e-9)]),
    "ellipeinc": (pt.special.ellipeinc, mpmath.ellipe, [(0.7, 0.9), (5.0, 0.3), (-2.0, -30.0), (1.5, 1e-9)]),
    "ellipj_sn": (lambda u, m: pt.special.ellipj(u, m)[0], _jacobi("sn"), JACOBI),
    "ellipj_cn": (lambda u, m: pt.special.ellipj(u, m)[1], _jacobi("cn"), JACOBI),
    "ellipj_dn": (lambda u, m: pt.special.ellipj(u, m)[2], _jacobi("dn"), JACOBI),
    "stdtrit": (pt.special.stdtrit, _quantile, [(3.0, 0.9), (0.7, 1e-6), (40.0, 0.4), (5.0, 0.501)]),
}  # fmt: skip


@pytest.mark.parametrize("name", SLOPES)
def test_slopes_of_first_and_second_order(name: str) -> None:
    function, exact, points = SLOPES[name]
    variables = [pt.scalar() for _ in points[0]]
    first = graphc.grad(function(*variables), variables)
    second = [graphc.grad(slope, variables, disconnected_inputs="ignore") for slope in first]
    compiled = graphc.function(variables, [*first, *(y for row in second for y in row)])
    count = len(variables)
    orders = [
        *np.eye(count, dtype=int),
        *(a + b for a in np.eye(count, dtype=int) for b in np.eye(count, dtype=int)),
    ]
    with mpmath.workdps(60):
        for point in points:
            place = [mpmath.mpf(x) for x in point]
            for got, order in zip(compiled(*point), orders, strict=True):
                right = (
                    mpmath.diff(exact, place, tuple(map(int, order)))
                    if count > 1
                    else mpmath.diff(exact, place[0], int(order[0]))
                )
                assert abs(got - right) <= 2e-9 * abs(right) + 1e-12, (
                    point,
                    order,
                    got,
                    mpmath.nstr(right, 17),
                )


def test_spherical_harmonics_and_their_slopes() -> None:
    theta, phi = pt.vector("theta"), pt.vector("phi")
    places = np.array([0.0, 0.3, 1.5, 3.0, np.pi, -0.4, 4.0]), np.linspace(-3, 3, 7)
    for n, m in ((0, 0), (3, -2), (5, 3), (4, 4), (1, 2), (-1, 0), (40, -7)):
        y = pt.special.sph_harm_y(n, m, theta, phi)
        cost = pt.real(y).sum() + 2 * pt.imag(y).sum()
        value, *slopes = graphc.function([theta, phi], [y, *graphc.grad(cost, [theta, phi])])(*places)
        np.testing.assert_allclose(value, scipy.special.sph_harm_y(n, m, *places), rtol=1e-11, atol=1e-13)
        # SciPy's derivative is that along the sphere, which at the back of a pole is the negative one.
        step = 1e-6
        for i, slope in enumerate(slopes):
            up, down = (
                scipy.special.sph_harm_y(n, m, *(x + sign * step * (i == k) for k, x in enumerate(places)))
                for sign in (1, -1)
            )
            expected = (up - down) / (2 * step)
            np.testing.assert_allclose(slope, expected.real + 2 * expected.imag, atol=1e-6 * max(1, n))
    swapped = pt.special.sph_harm(2, 3, phi, theta)
    # Of constants NumPy computes them, which rounds otherwise on some machines.
    values = graphc.function([theta, phi], [swapped, pt.special.sph_harm_y(3, 2, theta, phi)])(*places)
    np.testing.assert_array_equal(*values)
    with pytest.raises(NullTypeGradError, match="whole numbers"):
        graphc.grad(pt.real(pt.special.sph_harm_y(theta, 0, phi, phi)).sum(), theta)


def test_immediate_mode() -> None:
    env = graphc.immediate.Environment()
    x = env.as_tensor([0.5, 1.5])
    for name in ("airy", "sici", "fresnel"):
        found = getattr(env.special, name)(x)
        for got, right in zip(found, getattr(scipy.special, name)([0.5, 1.5]), strict=True):
            np.testing.assert_array_equal(np.asarray(got), right)
    found = env.special.wofz(x)
    np.testing.assert_allclose(np.asarray(found), scipy.special.wofz([0.5, 1.5]), rtol=1e-14)


def test_python_numbers_do_not_widen() -> None:
    """However many of them come before an array."""
    x = pt.vector(dtype="float32")
    results = [
        pt.hyp2f1(1.0, 2, 3.0, x),
        pt.betainc(1, 2, x),
        pt.special.sph_harm_y(1, 0, x, 1.0),
        pt.special.ellipkinc(1, x),
    ]
    assert [y.type.dtype for y in results] == ["float32", "float32", "complex64", "float32"]


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
def test_zeta_far_out(mode):
    """Where powers underflow, and the square of an argument would overflow; SciPy has NaN for q = 2.5."""
    s, q = (m.ravel() for m in np.meshgrid([1e15, 1e153, 1e155, 7e298, 1.7e308], [1.0, 2.5, 1e10, 7e298]))
    x, y = pt.vectors("x", "y")
    value = pt.zeta(x, y)
    found, slope = graphc.function([x, y], [value, graphc.grad(value.sum(), y)], mode=mode)(s, q)
    np.testing.assert_array_equal(found, np.where(q == 1, 1.0, 0.0))
    np.testing.assert_array_equal(slope[q > 1], 0.0)
