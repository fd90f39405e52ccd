# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""References of the accuracy sweep for functions of parameters: two to four operands, in usual ranges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mpmath import mp, mpf
from ulp_references import Case


def _betainc(a: Any, b: Any, x: Any) -> Any:
    return mp.betainc(a, b, 0, x, regularized=True)


def _betaincc(a: Any, b: Any, x: Any) -> Any:
    return mp.betainc(a, b, x, 1, regularized=True)


def _gammainc(a: Any, x: Any) -> Any:
    return mp.gammainc(a, 0, x, regularized=True)


def _gammaincc(a: Any, x: Any) -> Any:
    return mp.gammainc(a, x, regularized=True)


def _along(function: Callable[..., Any], i: int) -> Callable[..., Any]:
    """The derivative with respect to operand i."""

    def slope(*xs: Any) -> Any:
        return mp.diff(lambda t: function(*xs[:i], t, *xs[i + 1 :]), xs[i], h=mpf(10) ** -16)

    return slope


def _root(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The last operand for which the function has a value: Newton's method from SciPy's."""

    def exact(*xs: Any) -> Any:
        import scipy.special

        y = xs[-1]
        if not 0 < y < 1:
            return mpf("nan")
        x = mpf(float(getattr(scipy.special, name)(*map(float, xs))))
        slope = _along(function, len(xs) - 1)
        for _ in range(3):
            x -= (function(*xs[:-1], x) - y) / slope(*xs[:-1], x)
        return x

    return exact


def _owens_t(h: Any, a: Any) -> Any:
    return mp.quad(lambda t: mp.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), [0, a]) / (2 * mp.pi)


def _stdtr(df: Any, t: Any) -> Any:
    tail = mp.betainc(df / 2, mpf(1) / 2, 0, df / (df + t * t), regularized=True) / 2
    return tail if t < 0 else 1 - tail


def _jacobi(kind: str) -> Callable[..., Any]:
    return lambda u, m: mp.ellipfun(kind, u, m=m)


def _legendre(n: Any, m: Any, theta: Any) -> Any:
    return mp.re(mp.spherharm(n, m, theta, 0))


_SHAPE = (0.3, 30.0)
_UNIT = (0.02, 0.98)
_HYPER = ((0.3, 4.0), (0.3, 4.0), (0.5, 6.0), (-2.0, 0.9))
PARAMETERS: dict[str, Case] = {
    "clip": Case(lambda x, low, high: min(max(x, low), high), (), ((-5, 5), (-4, 0), (0, 4))),
    "betainc": Case(_betainc, (), (_SHAPE, _SHAPE, _UNIT), 40),
    "betaincc": Case(_betaincc, (), (_SHAPE, _SHAPE, _UNIT), 40),
    "betaincinv": Case(_root("betaincinv", _betainc), (), (_SHAPE, _SHAPE, _UNIT), 80),
    "betainc_da": Case(_along(_betainc, 0), (), (_SHAPE, _SHAPE, _UNIT), 80),
    "betainc_db": Case(_along(_betainc, 1), (), (_SHAPE, _SHAPE, _UNIT), 80),
    "gammainc_da": Case(_along(_gammainc, 0), (), (_SHAPE, (0.1, 40)), 80),
    "gammaincinv": Case(_root("gammaincinv", _gammainc), (), (_SHAPE, _UNIT), 80),
    "gammainccinv": Case(_root("gammainccinv", _gammaincc), (), (_SHAPE, _UNIT), 80),
    "hyp2f1": Case(mp.hyp2f1, (), _HYPER, 40),
    "hyp2f1_da": Case(_along(mp.hyp2f1, 0), (), _HYPER, 80),
    "hyp2f1_dc": Case(_along(mp.hyp2f1, 2), (), _HYPER, 80),
    "hyp1f1": Case(mp.hyp1f1, (), ((0.3, 4.0), (0.5, 6.0), (-20.0, 20.0)), 40),
    "ellipkinc": Case(mp.ellipf, (), ((-6.0, 6.0), (-20.0, 1.0)), 40),
    "ellipeinc": Case(mp.ellipe, (), ((-6.0, 6.0), (-20.0, 1.0)), 40),
    "ellipkinc_dm": Case(_along(mp.ellipf, 1), (), ((-6.0, 6.0), (-20.0, 0.99)), 80),
    "ellipeinc_dm": Case(_along(mp.ellipe, 1), (), ((-6.0, 6.0), (-20.0, 0.99)), 80),
    "ellipj_sn": Case(_jacobi("sn"), (), ((-6.0, 6.0), _UNIT), 40),
    "ellipj_cn": Case(_jacobi("cn"), (), ((-6.0, 6.0), _UNIT), 40),
    "ellipj_dn": Case(_jacobi("dn"), (), ((-6.0, 6.0), _UNIT), 40),
    "ellipj_ph": Case(
        lambda u, m: mp.findroot(lambda t: mp.ellipf(t, m) - u, mp.asin(mp.ellipfun("sn", u, m=m))),
        (),
        ((-1.5, 1.5), _UNIT),
        80,
    ),
    "sph_legendre": Case(_legendre, (), ((0, 20), (-20, 20), (0.05, 3.1)), 20, whole=(0, 1)),
    "stdtrit": Case(_root("stdtrit", _stdtr), (), (_SHAPE, _UNIT), 80),
    "owens_t": Case(_owens_t, (), ((-5.0, 5.0), (-5.0, 5.0)), 80),
    "polygamma": Case(lambda n, x: mp.psi(int(n), x), (), ((0, 20), (0.05, 50)), 10, whole=(0,)),
    "ive": Case(lambda v, x: mp.exp(-x) * mp.besseli(v, x), (), ((0, 20), (0.1, 100)), 40),
    "kve": Case(lambda v, x: mp.exp(x) * mp.besselk(v, x), (), ((0, 20), (0.1, 100)), 40),
}
