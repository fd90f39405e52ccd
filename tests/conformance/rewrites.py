# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of PyTensor's rewrites as tests of values.

Such a test rewrites a graph and compares the result with one that it writes down, which has to have the same
values: that is asked of graphc. A graph that "was rewritten" is the graph itself here, and two graphs are
equal when a function of both gives equal arrays where they are defined (`_sample`). Facts that a test states
with ``assume`` hold for the samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from absent import absent, use

import graphc
from graphc.graph.replace import equal_computations
from graphc.graph.tensor.type import TensorType
from graphc.graph.traversal import explicit_graph_inputs

# What the test that runs states of its inputs.
FACTS: dict[Any, set[str]] = {}


def assume(x: Any, **facts: bool | None) -> Any:
    """State facts of an input, for example ``orthogonal=True``; returns it."""
    stated = {fact for fact, holds in facts.items() if holds}
    if stated and getattr(x, "owner", None) is not None:
        use("pytensor.assumptions.assume of an expression")
    FACTS.setdefault(_key(x), set()).update(stated)
    return x


def _key(x: Any) -> Any:
    """Copies of graphs have other inputs of the same names."""
    return getattr(x, "name", None) or x


def _sample(variable: Any, sizes: Sequence[int], rng: np.random.Generator) -> Any:
    """A value of a variable: positive and near to one, and with a heavy diagonal, so that most expressions of
    tests of rewrites are defined there.
    """
    if not isinstance(variable.type, TensorType):
        use("pytensor.graph.rewriting: values of a type that is not a tensor's")
    shape = tuple(int(rng.choice(sizes)) if n is None else n for n in variable.type.shape)
    dtype = np.dtype(variable.type.dtype)
    if dtype.kind in "iu":
        unique = "unique_indices" in FACTS.get(_key(variable), ())
        value = np.arange(np.prod(shape)).reshape(shape) if unique else rng.integers(0, 3, shape)
        return value.astype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    value = rng.uniform(0.5, 1.5, shape)
    if len(shape) > 1:
        value = value + 3 * np.eye(*shape[-2:])
    for fact in sorted(FACTS.get(_key(variable), ())):
        value = _WITH[fact](value)
    return value.astype(dtype)


def _rolled(value: np.ndarray) -> np.ndarray:
    """A permutation of this shape; of a matrix with more columns than rows, some rows of one."""
    return np.broadcast_to(np.roll(np.eye(*value.shape[-2:]), 1, -1), value.shape)


# Makes a matrix one of which a fact holds.
_WITH = {
    "diagonal": lambda x: x * np.eye(*x.shape[-2:]),
    "lower_triangular": np.tril,
    "upper_triangular": np.triu,
    "symmetric": lambda x: x + np.swapaxes(x, -1, -2),
    "positive_definite": lambda x: x @ np.swapaxes(x, -1, -2),
    "orthogonal": lambda x: np.linalg.qr(x)[0],
    "permutation": _rolled,
    "selection": _rolled,
}


def equal_values(
    xs: Sequence[Any],
    ys: Sequence[Any],
    in_xs: Sequence[Any] = (),
    in_ys: Sequence[Any] = (),
    **options: Any,
) -> bool:
    """For ``equal_computations``: equal values, dtypes and shapes at a point, or equal graphs. Unknown sizes
    are the first of some numbers for which all graphs have a value.
    """
    xs, ys, in_xs, in_ys = (list(graphs or ()) for graphs in (xs, ys, in_xs, in_ys))
    assert len(xs) == len(ys), f"{len(xs)} and {len(ys)} graphs"
    if equal_computations(xs, ys, in_xs, in_ys):
        return True
    ys = graphc.clone_replace(ys, dict(zip(in_ys, in_xs, strict=True)))
    graphs = [graphc.tensor.as_tensor_variable(graph) for graph in (*xs, *ys)]
    inputs = list(explicit_graph_inputs(graphs))
    function = graphc.function(inputs, graphs, on_unused_input="ignore")
    values = _first_value(function, inputs)
    for x, y in zip(values[: len(xs)], values[len(xs) :], strict=True):
        same = x.dtype == y.dtype or not options.get("strict_dtype", True)
        same = same and np.shape(x) == np.shape(y)
        tolerance = 1e-4 if x.dtype in ("float32", "complex64") else 1e-9
        assert same and np.allclose(x, y, rtol=tolerance, atol=tolerance, equal_nan=True), f"{x!r}, not {y!r}"
    return True


def _first_value(function: Any, inputs: Sequence[Any]) -> Any:
    """The value for sizes that fit: the same one for all dimensions, or any."""
    first = None
    rng = np.random.default_rng(1)
    for sizes in (*([size] for size in (3, 2, 5, 4, 1, 7, 10)), *[[2, 3]] * 100, *[[1, 2, 3, 4, 5]] * 200):
        try:
            return function(*(_sample(x, sizes, rng) for x in inputs))
        except (ValueError, IndexError) as error:
            first = first or error
    raise first  # type: ignore[misc]


def same_value(x: Any, y: Any) -> bool:
    """For ``x is y`` and ``x == y`` in asserts: of variables, their values."""
    if isinstance(x, graphc.Variable) and isinstance(y, graphc.Variable):
        return equal_values([x], [y])
    return x is y or bool(x == y)


def not_rewritten(graph: Any, *args: Any, **kwargs: Any) -> Any:
    """For ``rewrite_graph``: what graphc makes of a graph shows in its values only."""
    return graph


class NoRewrites:
    """For databases of rewrites and what is made of them: rewrites nothing."""

    def query(self, *args: Any, **kwargs: Any) -> NoRewrites:
        return self

    including = excluding = requiring = get = __getitem__ = query

    def rewrite(self, fgraph: Any) -> None:
        """Leave a graph as it is."""

    __call__ = apply = rewrite


def no_rewrites(*rewrites: Any, **kwargs: Any) -> NoRewrites:
    """For what makes a rewriter of graphs of rewrites of nodes."""
    return NoRewrites()


# Facts of matrices, as parameters of tests.
_KEYS = tuple(absent(f"pytensor.assumptions.{name.upper()}") for name in _WITH)
# For all tests, by name.
NAMES: dict[str, Any] = {
    "assume": assume,
    **dict.fromkeys(("ALL_KEYS", "MATRIX_KEYS"), _KEYS),
    "rewrite_graph": not_rewritten,
    "optdb": NoRewrites(),
    "predefined_optimizers": NoRewrites(),
    **dict.fromkeys(("out2in", "in2out", "dfs_rewriter"), no_rewrites),
    **dict.fromkeys(("RewriteDatabaseQuery", "WalkingGraphRewriter"), no_rewrites),
}
# What the helpers of the suite get.
IN_HELPERS: dict[str, Any] = {"equal_computations": equal_values}
# What modules of tests of rewrites get in place of what they import, and for `internals`.
IN_REWRITING: dict[str, Any] = {
    "__same_value__": same_value,
    "equal_computations": equal_values,
    "assert_equal_computations": equal_values,
}
