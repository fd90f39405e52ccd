# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorting, searching, running sums, and reading and writing at positions, with each library's functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from cases import Case

COUNT = 1_000_000


def numpy_indexing() -> dict[str, Any]:
    """Functions of NumPy; a scatter copies first, as those of the other libraries do."""

    def scatter_add(x: Any, i: Any, y: Any) -> Any:
        out = x.copy()
        np.add.at(out, i, y)
        return out

    listed = ("argmax", "cumsum", "sort", "argsort", "median", "searchsorted")
    return {name: getattr(np, name) for name in listed} | {"scatter_add": scatter_add}


def symbolic_indexing(tensor: Any) -> dict[str, Any]:
    """Functions of graphc or PyTensor; what one of them lacks is missing."""
    listed = ("argmax", "cumsum", "sort", "argsort", "median", "searchsorted")
    names = {name: getattr(tensor, name) for name in listed if hasattr(tensor, name)}
    return names | {"scatter_add": lambda x, i, y: tensor.inc_subtensor(x[i], y)}


def jax_indexing() -> dict[str, Any]:
    """Functions of JAX."""
    import jax.numpy as jnp

    listed = ("argmax", "cumsum", "sort", "argsort", "median", "searchsorted")
    names = {name: getattr(jnp, name) for name in listed}
    return names | {"scatter_add": lambda x, i, y: x.at[i].add(y)}


def _vector(n: int = COUNT) -> Any:
    return np.random.default_rng(3).standard_normal(n)


def _positions() -> Any:
    return np.random.default_rng(4).integers(0, COUNT, COUNT)


_FASTEST = (("numpy", 1.0), ("pytensor", 1.0), ("jax", 1.0))


def _line(name: str, title: str, unit: str, inputs: Any, expression: Any) -> Case:
    return Case(name, title, unit, inputs, expression, lead=_FASTEST)


CASES = [
    _line("argmax", "argmax, 1e6 float64", "us", lambda: (_vector(),), lambda m, x: m.argmax(x)),
    # Sums that do not come near zero, where rounding would show.
    _line("cumsum", "cumsum, 1e6 float64", "us", lambda: (abs(_vector()),), lambda m, x: m.cumsum(x)),
    _line("sort", "sort, 1e6 float64", "ms", lambda: (_vector(),), lambda m, x: m.sort(x)),
    _line("sort_1000", "sort, 1,000 float64", "us", lambda: (_vector(1000),), lambda m, x: m.sort(x)),
    _line("argsort", "argsort, 1e6 float64", "ms", lambda: (_vector(),), lambda m, x: m.argsort(x)),
    _line("median", "median, 1e6 float64", "ms", lambda: (_vector(),), lambda m, x: m.median(x)),
    _line(
        "gather",
        "`x[i]`, 1e6 random positions",
        "us",
        lambda: (_vector(), _positions()),
        lambda m, x, i: x[i],
    ),
    _line(
        "scatter",
        "`x[i] += y`, 1e6 random positions",
        "us",
        lambda: (_vector(), _positions()),
        lambda m, x, i: m.scatter_add(x, i, x),
    ),
    # The size of the result depends on elements; JAX compiles no such function.
    _line("mask", "`x[x > 0]`, 1e6 float64", "us", lambda: (_vector(),), lambda m, x: x[x > 0]),
]
