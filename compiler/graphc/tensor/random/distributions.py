# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The distributions: their parameters, what these must fulfil, and how they are drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.tensor.random.expressions import Constraint
from graphc_runtime.record import record

# What the operation of the dialect has room for.
MOST_PARAMETERS = 3
_DTYPES = {"d": "float64", "q": "int64"}
# Where NumPy's draws of counts would overflow.
_MOST = float(np.iinfo(np.int64).max)
_LARGEST = float(np.finfo(np.float64).max)
_LARGEST_MEAN = _MOST - 10 * np.sqrt(_MOST)


@record(frozen=True)
class Parameter:
    """A parameter.

    Attributes:
        name: for messages.
        dtype: what it is converted to.
        core: 1 for a vector (of which the draws may have a batch), else 0.
    """

    name: str
    dtype: str
    core: int


@record(frozen=True)
class Distribution:
    """A distribution.

    Attributes:
        name: its name.
        parameters: in order.
        dtype: of the draws, before they are cast.
        constraints: what parameters must fulfil, in the order in which it is tested.
        arguments: (*parameters) -> what the native draw takes, where that differs.
        support: 1 if a draw is a vector, else 0.
        has_float32: whether NumPy draws float32 in another way.
    """

    name: str
    parameters: tuple[Parameter, ...]
    dtype: str
    constraints: tuple[Constraint, ...]
    arguments: Callable[..., Sequence[Any]] | None = None
    support: int = 0
    has_float32: bool = False


DISTRIBUTIONS: dict[str, Distribution] = {}


def _define(name: str, parameters: str, *constraints: Constraint, result: str = "d", **options: Any) -> None:
    """Adds a distribution. Parameters are names with a letter for the type: ``n:q``; capitals are vectors."""
    parsed = []
    for text in parameters.split():
        label, _, kind = text.partition(":")
        kind = kind or "d"
        parsed.append(Parameter(label, _DTYPES[kind.lower()], int(kind.isupper())))
    DISTRIBUTIONS[name] = Distribution(name, tuple(parsed), _DTYPES[result], constraints, **options)


def _nonnegative(name: str, i: int = 0) -> Constraint:
    return Constraint(f"{name} < 0", bad=lambda *xs: xs[i] < 0)


def _positive(name: str, i: int = 0) -> Constraint:
    return Constraint(f"{name} <= 0", bad=lambda *xs: xs[i] <= 0)


def _number(name: str, i: int = 0) -> Constraint:
    """Of draws that are integers, which have no NaN to answer with."""
    return Constraint(f"{name} <= 0, infinite or NaN", good=lambda *xs: (xs[i] > 0) & (xs[i] <= _LARGEST))


def _probability(i: int = 0) -> Constraint:
    return Constraint("p < 0, p > 1 or p is NaN", good=lambda *xs: (xs[i] >= 0) & (xs[i] <= 1))


_PROBABLE = Constraint("p <= 0, p > 1 or p contains NaNs", good=lambda *xs: (xs[-1] > 0) & (xs[-1] <= 1))

_define("standard_uniform", "", has_float32=True)
_define("standard_normal", "", has_float32=True)
_define("standard_exponential", "", has_float32=True)
_define("standard_gamma", "shape", _nonnegative("shape"), has_float32=True)
_define("standard_cauchy", "")
_define("standard_t", "df", _positive("df"))
_define(
    "uniform",
    "low high",
    Constraint("high - low < 0", bad=lambda low, high: high - low < 0),
    Constraint("high - low range exceeds valid bounds", good=lambda low, high: high - low <= _LARGEST),
    arguments=lambda low, high: (low, high - low),
)
_define("normal", "loc scale", _nonnegative("scale", 1))
_define("lognormal", "mean sigma", _nonnegative("sigma", 1))
for _name in ("laplace", "gumbel", "logistic", "cauchy", "halfcauchy", "halfnormal"):
    _define(_name, "loc scale", _nonnegative("scale", 1))
_define("t", "df loc scale", _positive("df"), _nonnegative("scale", 2))
_define("exponential", "scale", _nonnegative("scale"))
_define("truncexpon", "b loc scale", _positive("b"), _nonnegative("scale", 2))
_define("gamma", "shape scale", _nonnegative("shape"), _nonnegative("scale", 1))
_define("invgamma", "shape scale", _positive("shape"), _nonnegative("scale", 1))
_define("gengamma", "alpha p lambd", _positive("alpha"), _positive("p", 1), _positive("lambd", 2))
_define("beta", "a b", _positive("a"), _positive("b", 1))
_define("chisquare", "df", _positive("df"))
_define("noncentral_chisquare", "df nonc", _positive("df"), _nonnegative("nonc", 1))
_define("f", "dfnum dfden", _positive("dfnum"), _positive("dfden", 1))
_define(
    "noncentral_f", "dfnum dfden nonc", _positive("dfnum"), _positive("dfden", 1), _nonnegative("nonc", 2)
)
_define("rayleigh", "scale", _nonnegative("scale"))
_define("weibull", "a", _nonnegative("a"))
_define("power", "a", _positive("a"))
_define("pareto", "b scale", _positive("b"), _nonnegative("scale", 1))
_define("lomax", "a", _positive("a"))
_define("vonmises", "mu kappa", _nonnegative("kappa", 1))
_define("wald", "mean scale", _positive("mean"), _positive("scale", 1))
_define(
    "triangular",
    "left mode right",
    Constraint("left > mode", bad=lambda left, mode, right: left > mode),
    Constraint("mode > right", bad=lambda left, mode, right: mode > right),
    Constraint("left == right", bad=lambda left, mode, right: left.equals(right)),
)

_define(
    "poisson",
    "lam",
    Constraint("lam < 0 or lam is NaN", good=lambda lam: lam >= 0),
    Constraint("lam value too large", bad=lambda lam: lam > _LARGEST_MEAN),
    result="q",
)
_define("geometric", "p", _PROBABLE, result="q")
_define(
    "logseries", "p", Constraint("p < 0, p >= 1 or p is NaN", good=lambda p: (p >= 0) & (p < 1)), result="q"
)
_define("zipf", "a", Constraint("a <= 1 or a is NaN", good=lambda a: a > 1), result="q")
_define("bernoulli", "p", _probability(), result="q")
_define("binomial", "n:q p", _nonnegative("n"), _probability(1), result="q")
_define("betabinom", "n:q a b", _nonnegative("n"), _number("a", 1), _number("b", 2), result="q")
_define(
    "negative_binomial",
    "n p",
    _positive("n"),
    _PROBABLE,
    Constraint(
        "n too large or p too small", good=lambda n, p: (1.0 - p) * (n + 10.0 * n.sqrt()) / p <= _LARGEST_MEAN
    ),
    result="q",
)
_define(
    "hypergeometric",
    "ngood:q nbad:q nsample:q",
    Constraint(
        "both ngood and nbad must be less than 1000000000", bad=lambda good, bad, sample: good >= 10**9
    ),
    Constraint(
        "both ngood and nbad must be less than 1000000000", bad=lambda good, bad, sample: bad >= 10**9
    ),
    _nonnegative("ngood"),
    _nonnegative("nbad", 1),
    _nonnegative("nsample", 2),
    Constraint("ngood + nbad < nsample", bad=lambda good, bad, sample: good + bad < sample),
    result="q",
)
_define(
    "integers",
    "low:q high:q",
    Constraint("low >= high", bad=lambda low, high: low >= high),
    result="q",
    arguments=lambda low, high: (low, high - low - 1),
)

_define("categorical", "p:D", Constraint("p < 0 or p is NaN", good=lambda p: p >= 0), result="q")
_define(
    "choice",
    "p:D",
    Constraint("Probabilities are not non-negative", good=lambda p: p >= 0),
    Constraint(
        "Probabilities do not sum to 1", good=lambda p: (p.total() >= 1 - 1.5e-8) & (p.total() <= 1 + 1.5e-8)
    ),
    result="q",
)
_define("dirichlet", "alpha:D", Constraint("alpha < 0", bad=lambda alpha: alpha < 0), support=1)
_define(
    "multinomial",
    "n:q p:D",
    _nonnegative("n"),
    Constraint("pvals < 0, pvals > 1 or pvals contains NaNs", good=lambda n, p: (p >= 0) & (p <= 1)),
    Constraint("sum(pvals[:-1]) > 1.0", bad=lambda n, p: p.head_total() > 1 + 1e-12),
    result="q",
    support=1,
)
_define("permutation", "", result="q", support=1)
