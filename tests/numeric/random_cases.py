# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each distribution with parameters, and how NumPy draws the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

A = np.array([0.5, 1.0, 2.5])
B = np.array([[1.0], [3.0]])
P = np.array([0.1, 0.5, 0.85])
ROWS = np.array([[0.2, 0.3, 0.5], [0.7, 0.1, 0.2]])


@dataclass(frozen=True)
class Case:
    """A call of a function of `graphc.tensor.random`.

    Attributes:
        name: the function.
        args: its parameters; arrays become inputs.
        numpy: the same draws by a generator: (generator, *args, size) -> array.
        exact: whether bits are equal; otherwise a few units of the last place are allowed.
        options: further keywords.
    """

    name: str
    args: tuple[Any, ...]
    numpy: Callable[..., Any]
    exact: bool = True
    options: tuple[tuple[str, Any], ...] = ()


def _same(name: str, *args: Any, method: str = "") -> Case:
    return Case(name, args, lambda g, *xs, size: getattr(g, method or name)(*xs, size=size))


def _float32(name: str, *args: Any, method: str = "") -> Case:
    def draw(g: Any, *xs: Any, size: Any) -> Any:
        xs = tuple(np.asarray(x, np.float32) for x in xs)
        return getattr(g, method or name)(*xs, size=size, dtype=np.float32)

    return Case(name, args, draw, options=(("dtype", "float32"),))


def _sized(draw: Callable[..., Any]) -> Callable[..., Any]:
    """A reference that makes as many draws as its parameters have elements together."""

    def all_draws(g: Any, *xs: Any, size: Any) -> Any:
        shape = np.broadcast_shapes(*(np.shape(x) for x in xs)) if size is None else size
        return draw(g, *xs, shape)

    return all_draws


def _rows(draw: Callable[..., Any], *cores: int) -> Callable[..., Any]:
    """Draws one for each element of the batch; ``size`` is the batch."""

    def all_rows(g: Any, *xs: Any, size: Any) -> Any:
        xs = tuple(np.asarray(x) for x in xs)
        batch = size
        if batch is None:
            batch = np.broadcast_shapes(*(x.shape[: x.ndim - c] for x, c in zip(xs, cores, strict=True)))
        batch = (batch,) if isinstance(batch, int) else tuple(batch)
        xs = tuple(
            np.broadcast_to(x, (*batch, *x.shape[x.ndim - c :])) for x, c in zip(xs, cores, strict=True)
        )
        rows = [draw(g, *(x[i] for x in xs)) for i in np.ndindex(batch)]
        return np.array(rows).reshape((*batch, *np.shape(rows[0])))

    return all_rows


def _search(g: Any, p: Any) -> int:
    return int(np.searchsorted(p.cumsum(), g.random()))


CONTINUOUS = [
    _same("random"),
    _same("standard_normal"),
    _same("standard_exponential"),
    _same("standard_cauchy"),
    _same("uniform", -A, B),
    _same("normal", A, B),
    _same("exponential", A),
    _same("lognormal", A, B / 3),
    _same("gamma", A, method="standard_gamma"),
    Case("gamma", (A, None, B), lambda g, a, _, b, size: g.gamma(a, b, size)),
    _same("standard_gamma", A),
    _same("beta", A, B),
    _same("chisquare", A),
    _same("noncentral_chisquare", A, B),
    _same("f", A, B),
    _same("noncentral_f", A, B, 1.5),
    _same("standard_t", A + 1),
    _same("laplace", A, B),
    _same("logistic", A, B),
    _same("gumbel", A, B),
    _same("weibull", A),
    _same("power", A),
    _same("lomax", A, method="pareto"),
    _same("rayleigh", A),
    _same("triangular", -A, A / 2, B + 4),
    _same("vonmises", A, B),
    _same("wald", A, B),
    Case("pareto", (A, B), _sized(lambda g, a, b, size: b * (1 + g.pareto(a, size)))),
    Case("cauchy", (A, B), _sized(lambda g, a, b, size: a + b * g.standard_cauchy(size))),
    Case("halfcauchy", (A, B), _sized(lambda g, a, b, size: a + b * np.abs(g.standard_cauchy(size)))),
    Case("halfnormal", (A, B), _sized(lambda g, a, b, size: a + b * np.abs(g.standard_normal(size)))),
    Case("t", (A + 1, A, B), _sized(lambda g, d, a, b, size: a + b * g.standard_t(d, size))),
    Case("invgamma", (A, B), _sized(lambda g, a, b, size: b / g.standard_gamma(a, size))),
    Case(
        "gengamma",
        (A, B, A + 1),
        _sized(lambda g, a, p, s, size: s * g.standard_gamma(a / p, size) ** (1 / p)),
        exact=False,
    ),
    Case(
        "truncexpon",
        (A, A, B),
        _sized(lambda g, b, a, s, size: a - s * np.log1p(g.random(size) * np.expm1(-b))),
        exact=False,
    ),
    _float32("random"),
    _float32("standard_normal"),
    _float32("standard_exponential"),
    _float32("standard_gamma", A),
]
DISCRETE = [
    _same("integers", np.array([-3, 0, 5]), np.array([[6], [2**40]])),
    Case(
        "integers",
        (-5, np.array([3, 100, 2])),
        lambda g, a, b, size: g.integers(a, b, size, dtype=np.int8),
        options=(("dtype", "int8"),),
    ),
    Case(
        "integers",
        (0, np.array([3, 40000, 2])),
        lambda g, a, b, size: g.integers(a, b, size, dtype=np.uint16, endpoint=True),
        options=(("dtype", "uint16"), ("endpoint", True)),
    ),
    Case(
        "integers",
        (-(2**31), np.array([3, 2**31, 2])),
        lambda g, a, b, size: g.integers(a, b, size, dtype=np.int32),
        options=(("dtype", "int32"),),
    ),
    _same("poisson", A * 20),
    _same("geometric", P),
    _same("logseries", P),
    _same("zipf", A + 1),
    _same("binomial", np.array([[5], [400]]), P),
    _same("negative_binomial", B, P),
    _same("hypergeometric", np.array([10, 500, 3]), np.array([[20], [900]]), 12),
    Case("bernoulli", (P,), lambda g, p, size: g.binomial(1, p, size)),
    Case(
        "betabinom",
        (np.array([[5], [400]]), A, 2.0),
        _rows(lambda g, n, a, b: g.binomial(n, g.beta(a, b)), 0, 0, 0),
    ),
]
VECTORS = [
    Case("categorical", (ROWS,), _rows(_search, 1)),
    Case("categorical", (ROWS[0],), _rows(_search, 1)),
    Case(
        "dirichlet", (np.array([[1.0, 2.0, 0.5], [0.01, 0.02, 0.03]]),), _rows(lambda g, a: g.dirichlet(a), 1)
    ),
    Case("multinomial", (np.array([7, 200]), ROWS), _rows(lambda g, n, p: g.multinomial(n, p), 0, 1)),
]
