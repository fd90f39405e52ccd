# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs that were built with static sizes, of which a variable is replaced by one of unknown size."""

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.graph.replace import clone_replace, graph_replace
from graphc.transforms.vectorize import vectorize_graph

S, X = pt.tensor("s", dtype="float64", shape=(4,)), pt.vector("x")
FOUR = np.array([1.0, 2.0, 4.0, 8.0])
OTHER = pt.constant(np.arange(8.0))

OF_SIZES = {
    "mean": S.mean(),
    "var": S.var(),
    "sum": S.sum(),
    "size": S.size,
    "shape": S.shape,
    "arange": pt.arange(S.shape[0]),
    "zeros": pt.zeros_like(S),
    "ones": pt.ones_like(S).sum(),
    "reshape": S.reshape((2, -1)),
    "full": pt.full(S.shape, 3.0),
    "eye": pt.eye(S.shape[0]),
    "linspace": pt.linspace(0, 1, S.shape[0]),
    "alloc": pt.alloc(1.0, S.shape[0]),
    "steps of 2": pt.arange(0, S.shape[0], 2),
    "last": S[-1],
    "sort": pt.sort(S),
    "sizes": pt.prod(S.shape),
    "gradient": graphc.grad(S.mean(), S),
    "of slices": graphc.grad((S[1:] * S[:-1]).sum(), S),
    "roll": pt.roll(S, 1),
    "computed": (2 * S).mean(),
    "of computed": pt.zeros_like(2 * S),
    "cumsum": pt.cumsum(S),
    "median": pt.median(S),
    "loop": graphc.scan(lambda a: a * 2, S, return_updates=False),
    "part": OTHER[: S.shape[0]],
    "element": OTHER[S.shape[0] - 1],
    "part that is set": pt.set_subtensor(OTHER[S.shape[0] :], 1.0),
    "repeat": pt.repeat(OTHER, S.shape[0]),
    "power": OTHER ** S.shape[0],
    "steps": graphc.scan(lambda a: a * 2, outputs_info=[1.0], n_steps=S.shape[0], return_updates=False),
}


def replaced(form):
    """The graphs with X in the place of S."""
    if form.endswith("givens"):
        return OF_SIZES, X, {"givens": {S: X}, "rebuild_strict": form.startswith("strict")}
    replace = {
        "graph_replace": lambda y: graph_replace(y, {S: X}, strict=False),
        "clone_replace": lambda y: clone_replace(y, {S: X}),
        "of other types": lambda y: clone_replace(y, {S: X}, rebuild_strict=False),
        "vectorize_graph": lambda y: vectorize_graph(y, {S: X}),
    }[form]
    return {name: replace(y) for name, y in OF_SIZES.items()}, X, {}


@pytest.mark.parametrize(
    "form", ["graph_replace", "clone_replace", "of other types", "vectorize_graph", "givens", "strict givens"]
)
def test_sizes_are_checked(form):
    """A value of the size that the graph was built for gives what it gives for the old variable, one of
    another size an error: never a result for the old size.
    """
    outputs, v, options = replaced(form)
    f = graphc.function([v], outputs, mode="reference", **options)
    wanted = graphc.function([S], OF_SIZES, mode="reference")(FOUR)
    for name, value in f(FOUR).items():
        np.testing.assert_array_equal(value, wanted[name], err_msg=name)
    for name in outputs:
        one = graphc.function([v], outputs[name], mode="reference", **options)
        with pytest.raises(ValueError, match=r"another shape|expected"):
            one(np.ones(6))
    chosen = [outputs[name] for name in ("mean", "zeros", "size", "shape", "gradient")]
    for output in chosen:
        compiled = graphc.function([v], output, **options)
        compiled(FOUR)
        with pytest.raises(ValueError, match=r"another shape|expected"):
            compiled(np.ones(6))


def test_contradicting_sizes():
    """No check at run time is needed."""
    other = pt.tensor("other", dtype="float64", shape=(6,))
    for replace in (graph_replace, clone_replace, vectorize_graph):
        with pytest.raises(TypeError, match=r"cannot (replace s|use other)"):
            replace(S.mean(), {S: other})
    batch = pt.tensor("batch", dtype="float64", shape=(None, 6))
    with pytest.raises(TypeError, match="cannot replace s"):
        vectorize_graph(S.mean(), {S: batch})


def test_batches():
    batch = pt.matrix("batch")
    f = graphc.function([batch], vectorize_graph([S.mean(), S - S.mean()], {S: batch}))
    rows = np.arange(8.0).reshape(2, 4)
    means, centred = f(rows)
    np.testing.assert_array_equal(means, rows.mean(axis=1))
    np.testing.assert_array_equal(centred, rows - rows.mean(axis=1, keepdims=True))
    with pytest.raises(ValueError, match=r"another shape|expected"):
        f(np.ones((2, 6)))


def test_inner_variables():
    """What is replaced may be computed, and what replaces it may know the size."""
    y = S * 2
    cost = y.mean() + pt.zeros_like(y).sum()
    g = graph_replace(cost, {y: X})
    f = graphc.function([X], g)
    assert f(FOUR) == FOUR.mean()
    with pytest.raises(ValueError, match=r"another shape|expected"):
        f(np.ones(6))
    assert graphc.function([S], graph_replace(cost, {y: S + 1}))(FOUR) == FOUR.mean() + 1


def test_batches_of_graphs_that_read_only_sizes():
    names = [
        name for name in OF_SIZES if name in ("size", "shape", "arange", "zeros", "sizes", "steps", "eye")
    ]
    for batch, shape in ((pt.matrix("m"), (3,)), (pt.tensor3("t"), (2, 3))):
        for name in names:
            output = vectorize_graph(OF_SIZES[name], {S: batch})
            f = graphc.function([batch], output, mode="fast_compile", on_unused_input="ignore")
            want = OF_SIZES[name].eval({S: FOUR})
            np.testing.assert_array_equal(
                np.broadcast_to(f(np.ones((*shape, 4))), want.shape), want, err_msg=name
            )
            with pytest.raises(ValueError, match=r"another shape|expected 4"):
                f(np.ones((*shape, 5)))
