# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Expressions that overflow, underflow or cancel as they are written, at scales from 1 to 1000.

The identities are those whose values PyTensor's tests of its stabilise and specialise rewrites assert
(tests/tensor/rewriting/test_math.py, test_special.py, test_basic.py), and others of their kind: with more
terms, factors that are known only at run time, and views between. Each is compared with mpmath, with its
gradient, in each mode, in loops, with static and unknown sizes, in both widths.
"""

from __future__ import annotations

from functools import cache, partial
from itertools import combinations_with_replacement, pairwise

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

import graphc
import graphc.tensor as pt
from graphc.backends.cpu.pipeline import pipeline
from graphc.ops.elementwise import OPS

SCALES = (1, 10, 100, 800, 1000)
UNITS = [
    (0.9, 0.4, -0.7),
    (-0.8, 0.3, 0.95),
    (1.0, -1.0, 0.5),
    (-1.0, -0.6, -0.2),
    (0.7, 1.0, 0.1),
    (-0.3, -1.0, 1.0),
]
POINTS = np.array([np.multiply(scale, unit) for scale in SCALES for unit in UNITS])


class Exact:
    """The functions of the expressions, for numbers of mpmath."""

    log, exp, log1p, expm1, erf, erfc = mp.log, mp.exp, mp.log1p, mp.expm1, mp.erf, mp.erfc
    tanh, cosh, sinh, arctanh, arcsinh, sqrt = mp.tanh, mp.cosh, mp.sinh, mp.atanh, mp.asinh, mp.sqrt
    maximum, minimum, abs = max, min, abs

    def sigmoid(x):
        return 1 / (1 + mp.exp(-x))

    def arccosh(x):
        return mp.acosh(x)

    def exp2(x):
        return mpf(2) ** x

    def log2(x):
        return mp.log(x) / mp.log(2)

    def log10(x):
        return mp.log10(x)

    def ndtr(x):
        return mp.erfc(-x / mp.sqrt(2)) / 2

    def sqr(x):
        return x * x

    def reciprocal(x):
        return 1 / x

    def logit(x):
        return mp.log(x / (1 - x))

    def clip(x, low, high):
        return min(max(x, mpf(low)), mpf(high))

    def switch(c, x, y):
        return x if c else y

    def iv(order, x):
        return mp.besseli(order, x)

    def kv(order, x):
        return mp.besselk(order, x)

    def xlogy(x, y):
        return x * mp.log(y)

    def xlog1py(x, y):
        return x * mp.log(1 + y)

    def i0(x):
        return mp.besseli(0, x)

    def i1(x):
        return mp.besseli(1, x)


def total(terms):
    """The sum of a list, or of the rows of a matrix."""
    return sum(terms[1:], start=terms[0]) if isinstance(terms, list) else terms.sum(axis=0)


def product(terms):
    if isinstance(terms, list):
        return terms[0] * terms[1] * terms[2]
    return pt.prod(terms, axis=0)


def rows(m, *xs):
    """What is reduced: rows of a matrix, or a list of numbers."""
    return list(xs) if m is Exact else pt.stack(xs)


# Of m, the functions, and a, b and c; those without a value at a point are left out there.
CASES = {
    # test_log1p, test_log1mexp_stabilization, test_logdiffexp_stabilization
    "log(1 + exp)": lambda m, a, b, c: m.log(1 + m.exp(a)),
    "log(exp + 1)": lambda m, a, b, c: m.log(m.exp(a) + 1.0),
    "log1p(exp)": lambda m, a, b, c: m.log1p(m.exp(a)),
    "log1p(exp + exp)": lambda m, a, b, c: m.log1p(m.exp(a) + m.exp(b)),
    "log(1 - exp)": lambda m, a, b, c: m.log(1 - m.exp(a)),
    "log1p(-exp)": lambda m, a, b, c: m.log1p(-m.exp(a)),
    "log(-expm1)": lambda m, a, b, c: m.log(-m.expm1(a)),
    "log(-(exp - 1))": lambda m, a, b, c: m.log(-(m.exp(a) - 1)),
    "log(expm1)": lambda m, a, b, c: m.log(m.expm1(a)),
    "log(-(1 - exp))": lambda m, a, b, c: m.log(-(1 - m.exp(a))),
    "log(exp - exp)": lambda m, a, b, c: m.log(m.exp(a) - m.exp(b)),
    "log(exp + exp - exp)": lambda m, a, b, c: m.log(m.exp(a) + m.exp(b) - m.exp(c)),
    # TestExpLog, TestFuncInverse
    "log(exp)": lambda m, a, b, c: m.log(m.exp(a)),
    "log1p(expm1)": lambda m, a, b, c: m.log1p(m.expm1(a)),
    "exp(log(exp(log(exp))))": lambda m, a, b, c: m.exp(m.log(m.exp(m.log(m.exp(a))))),
    "log2(exp2)": lambda m, a, b, c: m.log2(m.exp2(a)),
    "log2(exp)": lambda m, a, b, c: m.log2(m.exp(a)),
    "log10(exp)": lambda m, a, b, c: m.log10(m.exp(a) + m.exp(b)),
    "log(reciprocal)": lambda m, a, b, c: m.log(m.reciprocal(m.exp(a))),
    "log(sqrt)": lambda m, a, b, c: m.log(m.sqrt(m.exp(a))),
    "log(sqr)": lambda m, a, b, c: m.log(m.sqr(m.exp(a))),
    "log(2**x)": lambda m, a, b, c: m.log(2.0**a + 3.0**b),
    "log(exp ** y)": lambda m, a, b, c: m.log(m.exp(a) ** b),
    "arctanh(tanh)": lambda m, a, b, c: m.arctanh(m.tanh(a)),
    "arcsinh(sinh)": lambda m, a, b, c: m.arcsinh(m.sinh(a)),
    "arccosh(cosh)": lambda m, a, b, c: m.arccosh(m.cosh(a)),
    "logit(sigmoid)": lambda m, a, b, c: m.logit(m.sigmoid(a)),
    "log odds": lambda m, a, b, c: m.log(m.sigmoid(a) / (1 - m.sigmoid(a))),
    "odds": lambda m, a, b, c: m.sigmoid(a) / (1 - m.sigmoid(a)),
    "inverse odds": lambda m, a, b, c: (1 - m.sigmoid(a)) / m.sigmoid(a),
    # TestSigmoidRewrites, TestSoftplusRewrites
    "log(sigmoid)": lambda m, a, b, c: m.log(m.sigmoid(a)),
    "log(1 - sigmoid)": lambda m, a, b, c: m.log(1 - m.sigmoid(a)),
    "log1p(-sigmoid)": lambda m, a, b, c: m.log1p(-m.sigmoid(a)),
    "exp / (1 + exp)": lambda m, a, b, c: m.exp(a) / (1 + m.exp(a)),
    "1 / (1 + exp)": lambda m, a, b, c: 1 / (1 + m.exp(-a)),
    "-1 / (1 + exp)": lambda m, a, b, c: -1.0 / (1 + m.exp(-a)),
    "1 - exp / (1 + exp)": lambda m, a, b, c: 1 - m.exp(a) / (1 + m.exp(a)),
    "1 - 1 / (1 + exp)": lambda m, a, b, c: 1 - 1 / (1 + m.exp(-a)),
    "two sigmoids": lambda m, a, b, c: -m.exp(a) / ((1 + m.exp(a)) * (1 + m.exp(-a))),
    "exp * sigmoid(-x)": lambda m, a, b, c: m.exp(a) * m.sigmoid(-a),
    "sigmoid * exp(-x)": lambda m, a, b, c: -(-1 * (-m.sigmoid(a))) * m.exp(-a),
    "sigmoids and exps": lambda m, a, b, c: -b * m.sigmoid(a) * (c * (-1 * b) * m.exp(-a)),
    # TestLocalErf, TestLocalErfc
    "1 + erf": lambda m, a, b, c: 1 + m.erf(a),
    "1 - erf": lambda m, a, b, c: 1 - m.erf(a),
    "erf - 1": lambda m, a, b, c: m.erf(a) + (-1),
    "1 - erfc": lambda m, a, b, c: (-1.0 * m.erfc(a)) + 1,
    "log(erfc)": lambda m, a, b, c: m.log(m.erfc(a)),
    "log(1 + erf)": lambda m, a, b, c: m.log(0.5 * (1 + m.erf(a))),
    "log1p(-erf)": lambda m, a, b, c: m.log1p(-m.erf(a)),
    "log(ndtr)": lambda m, a, b, c: m.log(m.ndtr(a)),
    "log(1 - ndtr)": lambda m, a, b, c: m.log(1 - m.ndtr(a)),
    "log(1 - tanh)": lambda m, a, b, c: m.log(1 - m.tanh(a)),
    "log(1 - tanh ** 2)": lambda m, a, b, c: m.log(1 - m.tanh(a) ** 2) + m.log1p(-m.sqr(m.tanh(b))),
    "log(1 - tanh * tanh)": lambda m, a, b, c: (
        m.log(1 - m.tanh(a) * m.tanh(a)) + m.log1p(-(m.tanh(b) * m.tanh(b)))),
    # test_local_mul_exp_to_exp_add, test_local_mul_pow_to_pow_add
    "exp * exp": lambda m, a, b, c: m.exp(a) * m.exp(-0.99 * a),
    "four exps": lambda m, a, b, c: m.exp(a) * m.exp(b) / m.exp(c) * m.exp(c - b - 0.9 * a),
    "exp * y * exp": lambda m, a, b, c: m.exp(a) * b * m.exp(1 - a) * c,
    "exp / exp": lambda m, a, b, c: m.exp(a) / m.exp(a - 2),
    "exp * exp(-x)": lambda m, a, b, c: m.exp(a) * m.exp(-a),
    "powers": lambda m, a, b, c: a**100 * a**-100,
    "powers of a factor": lambda m, a, b, c: a**200 * b * a**-199,
    "sqr of exp": lambda m, a, b, c: m.log(m.sqr(m.exp(a)) * m.exp(b)),
    "root of exp": lambda m, a, b, c: m.sqrt(m.exp(1.2 * a)),
    # test_local_log_add_exp, test_local_log_sum_exp
    "log(exp + exp)": lambda m, a, b, c: m.log(m.exp(a) + m.exp(b)),
    "log(three exps)": lambda m, a, b, c: m.log(m.exp(a) + m.exp(b) + m.exp(c)),
    "log(four exps)": lambda m, a, b, c: m.log(m.exp(a) + m.exp(b) + m.exp(a - b) + m.exp(a + b)),
    "log(exps and numbers)": lambda m, a, b, c: m.log(2 + 3 * m.exp(a) + m.exp(b) + 0.5),
    "log(1 + exps)": lambda m, a, b, c: m.log(1 + m.exp(a) + m.exp(b) + m.exp(c)),
    "log(mixture)": lambda m, a, b, c: m.log(0.3 * m.exp(a) + 0.7 * m.exp(b)),
    "log(mixed)": lambda m, a, b, c: m.log(m.sigmoid(c) * m.exp(a) + (1 - m.sigmoid(c)) * m.exp(b)),
    "log(weighted)": lambda m, a, b, c: m.log(c * c * m.exp(a) + (b * b + 1) * m.exp(b)),
    "log(y * exp)": lambda m, a, b, c: m.log(b * m.exp(a)),
    "log(exp * -y)": lambda m, a, b, c: m.log(-(m.exp(a) * (b / m.exp(c)))),
    "log(-y * exp + exp)": lambda m, a, b, c: m.log(m.exp(a) - c * m.exp(b)),
    "log(exp / y)": lambda m, a, b, c: m.log(m.exp(a) / b),
    "log(exp * exp)": lambda m, a, b, c: m.log(m.exp(a) * m.exp(b) / m.sigmoid(c)),
    "log(sum)": lambda m, a, b, c: m.log(total(rows(m, m.exp(a), m.exp(b), m.exp(c)))),
    "log(weighted sum)": lambda m, a, b, c: m.log(total(rows(m, b * b * m.exp(a), m.exp(b), m.exp(c)))),
    "log(mean)": lambda m, a, b, c: m.log(total(rows(m, m.exp(a), m.exp(b), m.exp(c))) / 3),
    "log(prod)": lambda m, a, b, c: m.log(product(rows(m, m.exp(a), m.exp(b), m.sigmoid(c)))),
    "log(share)": lambda m, a, b, c: m.log(m.exp(a) / total(rows(m, m.exp(a), m.exp(b), m.exp(c)))),
    "log(share of terms)": lambda m, a, b, c: m.log(m.exp(a) / (m.exp(c) + m.exp(a) + m.exp(b))),
    "log(1 - share)": lambda m, a, b, c: m.log(1 - m.exp(a) / (m.exp(a) + m.exp(b))),
    "share": lambda m, a, b, c: m.exp(a) / (m.exp(a) + m.exp(b) + m.exp(c)),
    # the same value twice, and squares of what may be negative
    "log(exp twice)": lambda m, a, b, c: m.log(m.exp(a) * m.exp(a)),
    "log1p(exp twice)": lambda m, a, b, c: m.log1p(m.exp(a) * m.exp(a)),
    "log(twice three)": lambda m, a, b, c: m.log(m.sigmoid(a) * b * m.exp(c) * m.sigmoid(a) * m.exp(c) * b),
    "exps twice": lambda m, a, b, c: m.exp(a) * m.exp(a) / (m.exp(c) * m.exp(c)) * m.exp(2 * c - 1.9 * a),
    "log(sqr(y * exp))": lambda m, a, b, c: m.log(m.sqr(b * m.exp(a))),
    "log((y * exp) ** 2)": lambda m, a, b, c: m.log((b * m.exp(a) / c) ** 2),
    "log(sum of squares)": lambda m, a, b, c: m.log(
        total(rows(m, m.sqr(b * m.exp(a)), (c / m.exp(b)) ** 2, m.exp(c) * m.exp(c)))
    ),
    # test_log_kv_stabilization, test_log_iv_stabilization
    "log(kv)": lambda m, a, b, c: m.log(m.kv(4.5, m.abs(a))),
    "log(iv)": lambda m, a, b, c: m.log(m.iv(4.5, m.abs(a))),
    "log(i0)": lambda m, a, b, c: m.log(m.i0(a)),
    "i1 / i0": lambda m, a, b, c: b * m.i1(a) / m.i0(a),
    "iv / iv": lambda m, a, b, c: (
        (m.iv(1.5, m.abs(a)) - b * m.iv(2, m.abs(a)) / 3) / (m.iv(2.5, m.abs(a)) * c)),
    "kv / kv": lambda m, a, b, c: -m.kv(1.5, m.abs(a)) ** 2 / m.kv(2.5, m.abs(a)) / (m.kv(0.5, m.abs(a)) / b),
    # functions of what underflows
    "log(softplus)": lambda m, a, b, c: m.log(m.log1p(m.exp(a))),
    "log(-log(sigmoid))": lambda m, a, b, c: m.log(-m.log(m.sigmoid(a))),
    "log(-log(1 - sigmoid))": lambda m, a, b, c: m.log(-m.log(1 - m.sigmoid(a))),
    "log1mexp(-softplus)": lambda m, a, b, c: m.log(-m.expm1(-m.log1p(m.exp(a)))),
    "cloglog": lambda m, a, b, c: m.log(1 - m.exp(-m.exp(m.minimum(a, 2)))),
    "cloglog of a weight": lambda m, a, b, c: m.log1p(-m.exp(-3 * m.exp(m.minimum(a, 2)))),
    "log(expm1(exp))": lambda m, a, b, c: m.log(m.expm1(m.exp(m.minimum(a, 2)))),
    "log(-log1p(-sigmoid))": lambda m, a, b, c: m.log(-m.log1p(-m.sigmoid(a) / 2)),
    "log(tanh * exp)": lambda m, a, b, c: m.log(m.tanh(m.sigmoid(a)) * m.exp(b)),
    "log(erf(sigmoid))": lambda m, a, b, c: m.log(m.erf(m.sigmoid(a))),
    "log(x ** 400)": lambda m, a, b, c: m.log(a**400) + m.log(b ** (-300)),
    "log(sqr of difference)": lambda m, a, b, c: m.log((m.exp(a) - m.exp(b)) ** 2),
    "log(sqr of expm1)": lambda m, a, b, c: m.log(m.expm1(a) ** 2 * m.exp(b)),
    "log(abs of difference)": lambda m, a, b, c: m.log(m.abs(m.exp(a) - m.exp(b)) / m.abs(m.sinh(c))),
    # quotients of what over- or underflows; the logarithm of none is asked for
    "exp / difference": lambda m, a, b, c: m.exp(a) / (m.exp(a) - m.exp(b)),
    "exp / sum": lambda m, a, b, c: m.exp(a) / (m.exp(b) + m.exp(c)) * m.exp(-0.9 * a),
    "exp / weighted": lambda m, a, b, c: m.exp(a) / (b * m.exp(a) + c * m.exp(b)),
    "density / difference": lambda m, a, b, c: m.sigmoid(a) / (m.sigmoid(a) - m.sigmoid(b)) * m.sigmoid(-a),
    "density / tail": lambda m, a, b, c: m.exp(-a * a) / m.erfc(a),
    "hazard": lambda m, a, b, c: b * m.exp(-0.5 * a * a) / m.ndtr(-a),
    "exp / squared sum": lambda m, a, b, c: m.exp(a) / m.sqr(1 + m.exp(a)) * m.exp(0.1 * a),
    "tail * sum": lambda m, a, b, c: (1 + m.exp(a)) * m.sigmoid(-a + 1),
    "tail * exp": lambda m, a, b, c: m.exp(a * a) * m.erfc(a + 1),
    "coth": lambda m, a, b, c: m.cosh(a) / m.sinh(a),
    "exp / expm1": lambda m, a, b, c: m.exp(a) / m.expm1(a),
    # a number of times the logarithm of what over- or underflows
    "xlogy(y, sigmoid)": lambda m, a, b, c: m.xlogy(b, m.sigmoid(a)) + m.xlogy(c, 1 - m.sigmoid(a)),
    "xlogy(y, exps)": lambda m, a, b, c: m.xlogy(m.exp(c / 200), m.exp(a) + m.exp(b)),
    "xlog1py(y, exp)": lambda m, a, b, c: m.xlog1py(b, m.exp(a)) + m.xlog1py(c, -m.sigmoid(-a)),
    # and more of their kind
    "log(cosh)": lambda m, a, b, c: m.log(m.cosh(a)),
    "log(sinh)": lambda m, a, b, c: m.log(m.sinh(a)),
    "log(maximum)": lambda m, a, b, c: m.log(m.maximum(m.exp(a), m.exp(b))),
    "log(clip)": lambda m, a, b, c: m.log(m.clip(m.exp(a), 1e-30, 1e30)),
    "log(switch)": lambda m, a, b, c: m.log(m.switch(a > 0, m.exp(b), m.sigmoid(c))),
}  # fmt: skip
# How many digits 1 less such a function needs grows with the square of its argument.
STEEP = frozenset(
    ["density / tail", "hazard", "tail * exp"]
    + [name for name in CASES if ("erf" in name or "ndtr" in name) and "(sigmoid)" not in name]
)
# A special function whose own error grows with its argument.
LOOSE = frozenset(["log(kv)", "log(iv)", "log(i0)", "i1 / i0", "iv / iv", "kv / kv"])
# The maximum less the logarithm of a sum: as exact as the largest operand. So are slopes of what goes to 1.
ABSOLUTE = frozenset(
    [
        "log(share)",
        "coth",
        "exp / expm1",
        "exp / difference",
        "exp / weighted",
        "density / difference",
        "tail * sum",
    ]
)
# The slope of a sigmoid from its result is as exact as 1 where nothing rewrites it.
SIGMOIDS = frozenset(name for name in CASES if "sigmoid" in name or "(1 + exp)" in name or name == "share")
# Not those with kinks, and those that do not depend on anything.
SMOOTH = CASES.keys() - {"log(maximum)", "log(clip)", "log(switch)", "powers", "exp / exp", "exp * exp(-x)"}


@cache
def exact(name, point):
    """The value and the derivatives by a, b and c; None where there is none."""
    size = max(abs(x) for x in point)
    digits = int(60 + (40 if name in LOOSE else 0.7 * size * size if name in STEEP else 1.3 * size))
    if digits > 5000:
        return None
    with mp.workdps(digits):
        numbers = [mpf(x) for x in point]

        def along(k, step):
            return CASES[name](Exact, *(x + step * (i == k) for i, x in enumerate(numbers)))

        try:
            value, step = along(0, 0), mpf(10) ** (-digits // 4)
            if isinstance(value, mp.mpc) or not mp.isfinite(value):
                return None
            slopes = [(along(k, step) - along(k, -step)) / (2 * step) for k in range(3)]
        except (ValueError, ZeroDivisionError):
            return None
        if any(isinstance(slope, mp.mpc) for slope in slopes):
            return None
        return value, slopes


def close(found, wanted, relative, dtype, what, absolute=0):
    info = np.finfo(dtype)
    if abs(wanted) > float(info.max) / 100:
        return
    bound = relative * abs(wanted) + 1e4 * float(info.tiny) + absolute
    assert np.isfinite(found) and abs(mpf(float(found)) - wanted) <= bound, (
        *what,
        float(found),
        mp.nstr(wanted, 12),
    )


def check(results, dtype, mode, points):
    relative = {"float64": 3e-11, "float32": 2e-3}[dtype]
    failures = []
    for name in CASES:
        value, *slopes = results[name]
        for i, point in enumerate(points):
            known = exact(name, tuple(float(x) for x in point))
            if known is None:
                continue
            loose = relative * (1e3 if name in LOOSE else 1)
            inexact = name in ABSOLUTE or (mode == "reference" and name in SIGMOIDS)
            absolute = float(np.finfo(dtype).eps) * max(1, *abs(point)) ** 2 if inexact else 0
            try:
                if mode != "reference":
                    close(value[i], known[0], loose, dtype, (name, "value", tuple(point)), absolute)
                if name in SMOOTH and abs(known[0]) < 1e300:
                    scale = max(abs(slope) for slope in known[1])
                    for k, slope in enumerate(slopes):
                        if abs(known[1][k]) > scale * 1e-9:
                            what = (name, "abc"[k], tuple(point))
                            close(slope[i], known[1][k], loose, dtype, what, absolute)
            except AssertionError as error:
                failures.append(str(error).splitlines()[0])
    assert not failures, "\n".join(failures)


def with_slopes(build, inputs):
    y = build(pt, *inputs)
    return [y, *graphc.grad(y.sum(), inputs, disconnected_inputs="ignore")]


@pytest.mark.parametrize(
    ("mode", "dtype", "static"),
    [
        ("fast_run", "float64", False),
        ("fast_run", "float32", True),
        ("fast_compile", "float64", True),
        ("reference", "float64", False),
    ],
)
def test_far_out(mode, dtype, static):
    points = POINTS.astype(dtype)
    inputs = [pt.tensor(n, shape=(len(points) if static else None,), dtype=dtype) for n in "abc"]
    results = {name: with_slopes(build, inputs) for name, build in CASES.items()}
    with np.errstate(all="ignore"):
        found = graphc.function(inputs, results, mode=mode)(*points.T)
    check(found, dtype, mode, points)


def test_in_a_loop():
    """Each step computes the expressions and slopes of one point."""
    inputs = [pt.vector(n) for n in "abc"]

    def step(*row):
        return [x for build in CASES.values() for x in with_slopes(build, row)]

    columns = graphc.scan(step, inputs, return_updates=False)
    groups = {name: columns[4 * i : 4 * i + 4] for i, name in enumerate(CASES)}
    with np.errstate(all="ignore"):
        found = graphc.function(inputs, groups)(*POINTS.T)
    check(found, "float64", "fast_run", POINTS)


# What only moves or selects elements of p, at rows n and columns y, or where a mask is true.
VIEWS = {
    "index": lambda p, n, y: p[0],
    "run-time index": lambda p, n, y: p[n[0], y[1]],
    "transpose": lambda p, n, y: p.T,
    "slice": lambda p, n, y: p[1:, ::-2],
    "new axis": lambda p, n, y: p[:, None, :] + 0 * p[None],
    "pairs": lambda p, n, y: p[n, y],
    "rows": lambda p, n, y: p[n],
    "columns": lambda p, n, y: p[:, y],
    "take_along_axis": lambda p, n, y: pt.take_along_axis(p, y[:3, None], axis=1),
    "mask": lambda p, n, y: p[pt.arange(12).reshape((3, 4)) % 5 > 1],
    "reshape": lambda p, n, y: p.reshape((2, 6)),
    "flat": lambda p, n, y: p.ravel()[y],
    "broadcast": lambda p, n, y: pt.broadcast_to(p, (2, 3, 4)),
    "repeat": lambda p, n, y: pt.repeat(p, 2, axis=0),
    "tile": lambda p, n, y: pt.tile(p, (2, 1)),
    "roll": lambda p, n, y: pt.roll(p, 1, axis=1),
    "flip": lambda p, n, y: pt.flip(p),
    "diagonal": lambda p, n, y: pt.diagonal(p),
    "concatenation": lambda p, n, y: pt.concatenate([p, p[::-1]], axis=0),
    "stack": lambda p, n, y: pt.stack([p[0], p[2]]),
    "split": lambda p, n, y: pt.split(p, [1, 2], 2, axis=0)[1],
    "two views": lambda p, n, y: p.T[y][:, 1:].reshape((-1,)),
}
FAR = np.array([[800.0, 0.0, -800.0, 3.0], [1.0, 2.0, 3.0, -1.0], [-1000.0, 500.0, -40.0, 501.0]])


def behind_views(x, n, y):
    """Logarithms of views of functions, and views of the logarithms, by name."""
    pairs = {
        "softmax": (pt.special.softmax(x, axis=1), pt.special.log_softmax(x, axis=1)),
        "exp": (pt.exp(x), x),
        "sigmoid": (pt.sigmoid(x), -pt.softplus(-x)),
        "erfc": (pt.erfc(x / 30), pt.log_ndtr(-np.sqrt(2) * x / 30) + np.log(2)),
    }
    found, wanted = {}, {}
    for name, view in VIEWS.items():
        for kind, (p, log) in pairs.items():
            if name != "new axis":
                found[f"{name} of {kind}"] = pt.log(view(p, n, y))
                wanted[f"{name} of {kind}"] = view(log, n, y)
        found[f"{name}, 1 - sigmoid"] = pt.log(1 - view(pt.sigmoid(x), n, y))
        wanted[f"{name}, 1 - sigmoid"] = -pt.softplus(view(x, n, y))
        found[f"{name}, log1p"] = pt.log1p(view(pt.exp(x), n, y))
        wanted[f"{name}, log1p"] = pt.softplus(view(x, n, y))
        if name not in ("new axis", "concatenation", "stack", "roll"):  # elements of several arrays
            found[f"{name}, arccosh"] = pt.arccosh(view(pt.cosh(x), n, y))
            wanted[f"{name}, arccosh"] = pt.maximum(abs(view(x, n, y)), 0)
            found[f"{name}, logit"] = pt.logit(view(pt.sigmoid(x), n, y))
            wanted[f"{name}, logit"] = view(x, n, y)
    del found["new axis, 1 - sigmoid"], found["new axis, log1p"]
    return found, wanted


def with_gradients(expressions, mode, static):
    """Values and slopes at the points far out, by name."""
    x = pt.tensor("x", shape=(3, 4) if static else (None, None), dtype="float64")
    n, y = pt.lvector("n"), pt.lvector("y")

    def with_gradient(v):
        weights = pt.cos(pt.arange(v.size)).reshape(v.shape)
        return [v, graphc.grad((v * weights).sum(), x)]

    chosen = {name: with_gradient(v) for name, v in expressions(x, n, y).items()}
    with np.errstate(all="ignore"):
        return graphc.function([x, n, y], chosen, mode=mode)(FAR, [0, 2, 1, 0], [3, 0, 2, 2])


@cache
def exact_behind_views():
    return with_gradients(lambda *operands: behind_views(*operands)[1], "reference", static=True)


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("mode", ["fast_run", "fast_compile", "reference"])
def test_behind_views(mode, static):
    """The oracle has the view of the logarithm, op by op in NumPy."""
    exact = exact_behind_views()
    for name, (value, slope) in with_gradients(lambda *xs: behind_views(*xs)[0], mode, static).items():
        if mode != "reference":
            np.testing.assert_allclose(value, exact[name][0], 1e-12, 1e-300, err_msg=name)
        np.testing.assert_allclose(slope, exact[name][1], 1e-9, 1e-12, err_msg=name)


def test_logarithms_of_one_value_are_computed_once():
    """Where the value is computed, outside of loops that only read it."""
    x, i = pt.matrix("x"), pt.lvector("i")
    p = pt.special.softmax(x, axis=1)
    steps = graphc.scan(
        lambda k, total: total + pt.log(p[0, k]) * pt.log(p[1, k]), i, np.float64(0), return_updates=False
    )
    for mode in ("fast_run", "fast_compile"):
        f = graphc.function([x, i], steps, mode=mode)
        stages = f.ir_stages()
        text = stages[next(name for name in stages if "optimised" in name)]
        inside = text.partition("graphc.scan")[2]
        assert text.count("graphc.exp") == 1 and "graphc.exp" not in inside, mode
        logs = np.log([[0.2, 0.3], [0.5, 0.5]])
        np.testing.assert_allclose(f(logs, [0, 1])[-1], 2 * np.log(0.5) * np.mean(np.log([0.4, 0.6])))


def test_every_mode_stabilises_and_fuses():
    """Values do not depend on the mode; a chain of elementwise operations is one loop in each."""
    x = pt.vector("x")
    y = x
    for k in range(40):
        y = pt.tanh(y * (1 + 0.01 * k)) * x - pt.exp(-y)
    counts = {}
    for mode in ("fast_run", "fast_compile"):
        f = graphc.function([x], y, mode=mode)
        counts[mode] = f.ir_stages()["tensor"].count("linalg.generic")
        names = [name for name, _ in pipeline(mode)]
        assert {"graphc-stabilize", "graphc-constant-folding", "graphc-fusion"} <= set(names)
    assert counts["fast_compile"] == counts["fast_run"] == 1


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
def test_infinities_zeros_and_nothing(mode):
    """What is infinite, NaN, 0 or empty comes out as if numbers had no limits."""
    v, w, s, e = pt.vector("v"), pt.vector("w"), pt.scalar("s"), pt.matrix("e")
    inf, nan = np.inf, np.nan
    cases = [
        (
            pt.log(pt.exp(v) - pt.exp(w)),
            [-inf, -inf, -1, inf, 3],
            [-1, -inf, -inf, 1, inf],
            [nan, -inf, -1, inf, nan],
        ),
        (pt.log(pt.exp(v) + pt.exp(w) + pt.exp(-v)), [-inf, inf, 0], [-inf, -inf, nan], [inf, inf, nan]),
        (pt.log(pt.exp(v) + pt.exp(w)), [-inf, inf, inf], [-inf, inf, -inf], [-inf, inf, inf]),
        (pt.log(w * pt.exp(v) + 0.5), [inf, inf, -inf, 800], [0.5, -1, 3, 0], [inf, nan, *[np.log(0.5)] * 2]),
        (pt.log(pt.exp(v) * w), [800, 800, -inf], [-1, 0, 1], [nan, -inf, -inf]),
        (pt.exp(v) ** w, [-inf, 800, -800], [0, 0, 2], [1, 1, 0]),
        (pt.log(pt.exp(v) ** w), [-inf, 800, -800], [0, 0, 2], [0, 0, -1600]),
        (v**100 * v**-100 + 0 * w, [0, inf, nan, 2], [0, 0, 0, 0], [nan, nan, nan, 1]),
        (v**7 * v**-3 + 0 * w, [2, inf, nan, -3], [0, 0, 0, 0], [16, inf, nan, 81]),
    ]
    for i, (y, first, second, wanted) in enumerate(cases):
        found = graphc.function([v, w], y, mode=mode)(np.array(first, float), np.array(second, float))
        np.testing.assert_allclose(found, wanted, err_msg=f"{mode} {i}")
    y = pt.log(s * pt.exp(v) + (1 - s) * pt.exp(w))
    outs = [y, *graphc.grad(y.sum(), [v, w])]
    found = graphc.function([v, w, s], outs, mode=mode)([500.0, -500, 800], [-500.0, 500, -800], 0.0)
    np.testing.assert_allclose(found, [[-500, 500, -800], [0, 0, 0], [1, 1, 1]])
    y = pt.log((w * pt.exp(v)).sum())
    outs = [y, *graphc.grad(y, [v, w])]
    value, *slopes = graphc.function([v, w], outs, mode=mode)([1200.0, 1201, 800], [-1.0, 1.0, 0.0])
    np.testing.assert_allclose(value, 1200 + np.log(np.e - 1))
    share = 1 / (np.e - 1)
    np.testing.assert_allclose(
        slopes, [[-share, np.e * share, 0], [share, np.e * share, np.exp(-400) * share]], atol=1e-15
    )
    for y, wanted in (
        (pt.log(pt.exp(e).sum(axis=1)), -inf),
        (pt.log((e * pt.exp(e)).sum(axis=1)), -inf),
        (pt.log(pt.prod(pt.exp(e), axis=1)), 0),
    ):
        value, slope = graphc.function([e], [y, graphc.grad(y.sum(), e)], mode=mode)(np.zeros((2, 0)))
        np.testing.assert_array_equal(value, [wanted, wanted])
        assert slope.shape == (2, 0)


# Differences of distribution functions ----------------------------------------------------------------------

CUTS = np.array([-1.0, 0.0, 1.5])


def _erf_half(z):
    return 0.5 * (1 + pt.erf(z / np.sqrt(2.0).astype(z.dtype)))


def _erfc_half(z):
    return 0.5 * pt.erfc(-z / np.sqrt(2.0).astype(z.dtype))


# A distribution function, and its upper tail, which is that of the opposite number.
DISTRIBUTIONS = {
    "ndtr": (pt.special.ndtr, lambda z: mpmath.erfc(z / mpmath.sqrt(2)) / 2),
    "erfc": (_erfc_half, lambda z: mpmath.erfc(z / mpmath.sqrt(2)) / 2),
    "erf": (_erf_half, lambda z: mpmath.erfc(z / mpmath.sqrt(2)) / 2),
    "twice erf": (pt.erf, mpmath.erfc),
    "sigmoid": (pt.sigmoid, lambda z: 1 / (1 + mpmath.exp(z))),
    "tanh": (pt.tanh, lambda z: 2 / (1 + mpmath.exp(2 * z))),
}
FROM_MINUS_ONE = frozenset(("twice erf", "tanh"))


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_logarithms_of_differences_of_distribution_functions(dtype, mode):
    """Ordered models: both functions are 0, or both are 1, far out; also parts of an array, with its ends."""
    x, points = (
        pt.vector("x", dtype=dtype),
        np.array([0.3, *(s * t for t in (1, 10, 100, 800) for s in (1, -1))]),
    )
    cuts, outputs = CUTS.astype(dtype), []
    for name, (function, _) in DISTRIBUTIONS.items():
        p = function(cuts - x[:, None])
        low = -1 if name in FROM_MINUS_ONE else 0
        ends = [pt.full_like(p[:, :1], low), p, pt.ones_like(p[:, :1])]
        whole = pt.concatenate(ends, axis=1)
        apart = pt.log(function(cuts[1:] - x[:, None]) - function(cuts[:-1] - x[:, None]))
        for value in (apart, pt.log(p[:, 1:] - p[:, :-1]), pt.log(whole[:, 1:] - whole[:, :-1])):
            outputs += [value.sum(1), graphc.grad(value.sum(), x)]
    found = iter(graphc.function([x], outputs, mode=mode)(points.astype(dtype)))
    bound = {"float64": 1e-10, "float32": 2e-4}[dtype]

    def exact(tail, x, whole):
        total = mpmath.log(tail(x - CUTS[0])) + mpmath.log(tail(CUTS[-1] - x)) if whole else 0
        for low, high in pairwise(CUTS):
            low, high = mpmath.mpf(low) - x, mpmath.mpf(high) - x
            # Of the smaller tails.
            total += mpmath.log(tail(low) - tail(high) if low + high > 0 else tail(-high) - tail(-low))
        return total

    with mpmath.workdps(60):
        for name, (_, tail) in DISTRIBUTIONS.items():
            places = [mpmath.mpf(float(t)) for t in points.astype(dtype)]
            for whole in (False, False, True):
                density = partial(exact, tail, whole=whole)
                values = np.array([float(density(t)) for t in places])
                slopes = np.array([float(mpmath.diff(density, t)) for t in places])
                np.testing.assert_allclose(next(found), values, rtol=bound, err_msg=name)
                np.testing.assert_allclose(next(found), slopes, rtol=10 * bound, atol=bound, err_msg=name)


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile", "interpret"])
def test_equal_factors_and_terms_are_as_many_as_they_are(mode):
    """Distribution functions and halves in products, ones and exponentials in sums, several times each."""
    x = pt.dvector("x")
    normal, logistic, half = 1 + pt.erf(x), 1 + pt.tanh(x), 0.5 * pt.erfc(x)
    parts = [normal, logistic, half, pt.sigmoid(x), pt.exp(x), pt.erfc(-x)]
    pairs = [
        (pt.log(pt.as_tensor(a) * ((a * a / b) / b) * (a / c)), pt.log(a) * 4 - pt.log(b) * 2 - pt.log(c))
        for a in parts
        for b in parts
        for c in parts[:3]
    ]
    one, e, share = pt.constant(1.0), pt.exp(x), pt.sigmoid(x)
    for terms in combinations_with_replacement([one, e, share, pt.exp(-2 * x)], 3):
        total = terms[0] + terms[1] + terms[2]
        values = [
            pt.log(total),
            pt.log1p(total),
            e / total,
            1 / total,
            total / (1 + total),
            share / (1 + total),
        ]
        pairs += [(value, value) for value in values]
        pairs.append((slope := graphc.grad(sum(values).sum(), x), slope))
    f = graphc.function([x], [a for a, _ in pairs], mode=mode)
    g = graphc.function([x], [b for _, b in pairs], mode="reference")
    at = np.array([-1.5, -0.2, 0.3, 1.0])
    for found, want in zip(f(at), g(at), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-9)


def _log_product(a, b):
    """The logarithm of the product of exponentials, in long double, and the derivatives of its sum."""
    terms = a.astype(np.longdouble)[..., None] + b.astype(np.longdouble)[..., None, :, :]
    top = terms.max(-2, keepdims=True)
    parts = np.exp(terms - top)
    total = parts.sum(-2, keepdims=True)
    return (np.log(total) + top)[..., 0, :], (parts / total).sum(-1), (parts / total).sum(-3)


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_logarithms_of_matrix_products(dtype, mode):
    """Of exponentials, and of one with what is positive; at scales where all entries over- or underflow."""
    rng, near = np.random.default_rng(3), {"float64": 1e-12, "float32": 2e-4}[dtype]
    a, b = pt.matrix("a", dtype=dtype), pt.matrix("b", dtype=dtype)
    stacks = pt.tensor3("a", dtype=dtype), pt.tensor3("b", dtype=dtype)
    cases = [(a, b, pt.dot(pt.exp(a), pt.exp(b)), 1), (a, b, pt.dot(pt.exp(b.T), pt.exp(a).T).T, 1)]
    cases += [(a, b, pt.dot(pt.exp(a), b), 0), (*stacks, pt.exp(stacks[0]) @ pt.exp(stacks[1]), 1)]
    for x, y, product, is_exponent in cases:
        value = pt.log(product)
        f = graphc.function([x, y], [value, *graphc.grad(value.sum(), [x, y])], mode=mode)
        for offset in (0, 30, -30, 80, -340, 400, 800, -1000, 1e5):
            u = (rng.normal(size=(4, 5)) + offset).astype(dtype)
            w = rng.normal(size=(5, 3)) + (offset if is_exponent else 0)
            w = w.astype(dtype) if is_exponent else np.exp(w).astype(dtype)
            logs = w if is_exponent else np.log(w.astype(np.longdouble))
            given = [np.stack([v] * 2) if x.type.ndim == 3 else v for v in (u, w)]
            wanted = _log_product(u, logs)
            wanted = (*wanted[:2], wanted[2] if is_exponent else wanted[2] / w)
            for got, right in zip(f(*given), wanted, strict=True):
                np.testing.assert_allclose(got, np.broadcast_to(right, got.shape).astype(dtype), near, near)


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
def test_logarithms_of_matrix_products_keep_what_is_finite(mode):
    """Rows with entries far apart, of nothing, and infinite ones; second derivatives."""
    a, b = pt.matrix("a"), pt.matrix("b")
    value = pt.log(pt.dot(pt.exp(a), pt.exp(b)))
    f = graphc.function([a, b], value, mode=mode)
    apart = np.array([[300.0, -340.0], [-340.0, 300.0], [0.0, -np.inf], [-np.inf, -np.inf], [np.inf, 0.0]])
    with np.errstate(all="ignore"):
        wanted = np.log(np.exp(apart) @ np.exp(-apart[:2]))
    np.testing.assert_allclose(f(apart, -apart[:2]), wanted, 1e-12)
    assert f(np.zeros((2, 0)), np.zeros((0, 3))).tolist() == [[-np.inf] * 3] * 2
    slope = graphc.grad(value.sum(), a)
    g = graphc.function([a, b], [slope, graphc.grad((slope**2).sum(), a)], mode=mode)
    u, w = np.array([[0.3, -0.7, 1.0], [0.1, 0.2, -0.4]]), np.array([[0.5, 0.1], [-0.2, 0.4], [0.0, 1.0]])
    for far, near in zip(g(u + 900, w - 850), g(u, w), strict=True):
        np.testing.assert_allclose(far, near, 1e-9)


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_weighted_sums_of_exponentials(dtype, mode):
    """Sums are taken over a rough size of the largest term: weights of 0, subnormal and infinite ones."""
    x, w = pt.matrix("x", dtype=dtype), pt.matrix("w", dtype=dtype)
    two = w[:, 0] * pt.exp(x[:, 0]) + w[:, 1] * pt.exp(x[:, 1])
    values = [pt.log(two), pt.log(pt.sum(w * pt.exp(x), axis=1))]
    f = graphc.function([x, w], [*values, *(graphc.grad(v.sum(), x) for v in values)], mode=mode)
    tiny, huge = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    exponents = np.array([[-50, 2000], [2000, 1999], [-2000, -2001], [900, 3], [5, 5], [1, 2]], dtype)
    weights = np.array([[2, 0], [0.3, 5], [7, 1e-9], [tiny, 1], [huge, huge], [np.inf, 1]], dtype)
    sizes = np.log(weights.astype(np.longdouble), where=weights > 0, out=np.full(weights.shape, -np.inf, "g"))
    wanted = np.logaddexp(*(exponents + sizes).T)
    shares = np.exp(exponents + sizes - np.where(np.isinf(wanted), 0, wanted)[:, None])
    for number, got in enumerate(f(exponents, weights)):
        right = wanted if number < 2 else shares
        known = np.isfinite(wanted)
        np.testing.assert_allclose(
            got[known], right[known].astype(dtype), 3e-6 if dtype == "float32" else 1e-12
        )
        assert number > 1 or got[-1] == np.inf


def test_rough_logarithm():
    """Within 0.7 of the logarithm of the magnitude in all modes; that of 0 is infinite."""
    for dtype in ("float64", "float32", "float16"):
        x = pt.vector("x", dtype=dtype)
        info = np.finfo(dtype)
        values = np.geomspace(info.tiny, info.max / 2, 301).astype(dtype)
        values[::2] *= -1
        values[-1] = 0
        for mode in ("fast_run", "fast_compile", "interpret", "reference"):
            got = graphc.function([x], OPS["rough_log"](x), mode=mode)(values)
            assert got[-1] == -np.inf and got.dtype == dtype
            assert np.max(np.abs(got[:-1] - np.log(np.abs(values[:-1])))) < 0.71
