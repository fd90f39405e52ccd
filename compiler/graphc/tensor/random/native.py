# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Meaning of the distributions of `graphc.random`, in NumPy: the reference of `graphc.library.random`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from graphc_runtime.generators import generator_of, state_of

Drawing = Callable[..., np.ndarray]


def draw_native(
    name: str, state: np.ndarray, parameters: Sequence[np.ndarray], sizes: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Draws, and the state after them.

    Args:
        name: a key of `NATIVE`.
        state: the state vector.
        parameters: arrays that broadcast to the batch, then vectors.
        sizes: of the draws.

    Raises:
        NotImplementedError: an unknown distribution.
        ValueError: a parameter that NumPy does not take.
    """
    draw = NATIVE.get(name)
    if draw is None:
        raise NotImplementedError(f"there is no distribution {name!r}")
    generator = generator_of(state)
    draws = draw(generator, *parameters, size=tuple(map(int, sizes)))
    return np.asarray(draws), state_of(generator)


def _method(name: str) -> Drawing:
    return lambda g, *xs, size: getattr(g, name)(*xs, size=size)


def _float32(name: str) -> Drawing:
    return lambda g, *xs, size: getattr(g, name)(*xs, size=size, dtype=np.float32)


def _bounded(bits: int) -> Drawing:
    """Integers from ``low`` to ``low + extent``, both kept in the signed type of that width."""
    signed, unsigned = f"int{bits}", f"uint{bits}"

    def draw(
        g: np.random.Generator, low: np.ndarray, extent: np.ndarray, *, size: tuple[int, ...]
    ) -> np.ndarray:
        last = extent.view(unsigned)
        if last.size == 1:
            last = last.reshape(())
        offsets = g.integers(0, last, size=size, dtype=unsigned, endpoint=True)
        return (offsets + low.view(unsigned)).astype(signed)

    return draw


def _affine(draw: Drawing) -> Drawing:
    """Draws times the last parameter, plus the one before it."""
    return lambda g, *xs, size: xs[-2] + xs[-1] * draw(g, *xs[:-2], size)


def _betabinom(
    g: np.random.Generator, n: np.ndarray, a: np.ndarray, b: np.ndarray, *, size: tuple[int, ...]
) -> np.ndarray:
    """Each probability is drawn right before the number that depends on it."""
    n, a, b = (np.broadcast_to(x, size) for x in (n, a, b))
    result = np.empty(size, np.int64)
    for i in np.ndindex(size):
        result[i] = g.binomial(n[i], g.beta(a[i], b[i]))
    return result


def _truncexpon(
    g: np.random.Generator, b: np.ndarray, loc: np.ndarray, scale: np.ndarray, *, size: tuple[int, ...]
) -> np.ndarray:
    return loc - scale * np.log1p(g.random(size) * np.expm1(-b))


def _gengamma(
    g: np.random.Generator, alpha: np.ndarray, p: np.ndarray, scale: np.ndarray, *, size: tuple[int, ...]
) -> np.ndarray:
    return scale * np.power(g.standard_gamma(alpha / p, size), 1 / p)


def _rows(x: np.ndarray, batch: tuple[int, ...]) -> np.ndarray:
    return np.broadcast_to(x, (*batch, x.shape[-1]))


def _search(side: str, normalised: bool) -> Drawing:
    def draw(g: np.random.Generator, p: np.ndarray, *, size: tuple[int, ...]) -> np.ndarray:
        result, rows = np.empty(size, np.int64), _rows(p, size)
        for i in np.ndindex(size):
            sums = rows[i].cumsum()
            if normalised:
                sums /= sums[-1]
            result[i] = min(np.searchsorted(sums, g.random(), side=side), len(sums) - 1)  # type: ignore[call-overload]
        return result

    return draw


def _dirichlet(g: np.random.Generator, alpha: np.ndarray, *, size: tuple[int, ...]) -> np.ndarray:
    result, rows = np.empty(size), _rows(alpha, size[:-1])
    for i in np.ndindex(size[:-1]):
        result[i] = g.dirichlet(rows[i])
    return result


def _multinomial(
    g: np.random.Generator, n: np.ndarray, p: np.ndarray, *, size: tuple[int, ...]
) -> np.ndarray:
    result, counts, rows = np.empty(size, np.int64), np.broadcast_to(n, size[:-1]), _rows(p, size[:-1])
    for i in np.ndindex(size[:-1]):
        result[i] = g.multinomial(counts[i], rows[i])
    return result


def _permutation(g: np.random.Generator, *, size: tuple[int, ...]) -> np.ndarray:
    result = np.empty(size, np.int64)
    for i in np.ndindex(size[:-1]):
        result[i] = g.permutation(size[-1])
    return result


_SAME_NAME = (
    "standard_normal standard_exponential standard_gamma standard_cauchy standard_t normal exponential gamma "
    "beta chisquare noncentral_chisquare f noncentral_f lognormal laplace gumbel logistic rayleigh weibull "
    "power triangular vonmises wald poisson geometric logseries zipf binomial negative_binomial "
    "hypergeometric"
).split()

NATIVE: dict[str, Drawing] = {
    **{name: _method(name) for name in _SAME_NAME},
    "standard_uniform": lambda g, *, size: g.random(size),
    "uniform": lambda g, low, extent, *, size: low + extent * g.random(size),
    "standard_uniform_f32": lambda g, *, size: g.random(size, dtype=np.float32),
    "standard_normal_f32": _float32("standard_normal"),
    "standard_exponential_f32": _float32("standard_exponential"),
    "standard_gamma_f32": _float32("standard_gamma"),
    "lomax": _method("pareto"),
    "pareto": lambda g, b, scale, *, size: scale * (1 + g.pareto(b, size)),
    "bernoulli": lambda g, p, *, size: g.binomial(1, p, size),
    "betabinom": _betabinom,
    "cauchy": _affine(lambda g, size: g.standard_cauchy(size)),
    "halfcauchy": _affine(lambda g, size: np.abs(g.standard_cauchy(size))),
    "halfnormal": _affine(lambda g, size: np.abs(g.standard_normal(size))),
    "t": _affine(lambda g, df, size: g.standard_t(df, size)),
    "invgamma": lambda g, shape, scale, *, size: scale / g.standard_gamma(shape, size),
    "gengamma": _gengamma,
    "truncexpon": _truncexpon,
    **{f"integers_{bits}": _bounded(bits) for bits in (64, 32, 16, 8)},
    "categorical": _search("left", False),
    "choice": _search("right", True),
    "dirichlet": _dirichlet,
    "multinomial": _multinomial,
    "permutation": _permutation,
}
