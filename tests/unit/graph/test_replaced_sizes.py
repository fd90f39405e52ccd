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
    # These drop an axis, which must be known to be 1.
    "squeezed": pt.squeeze(S.reshape((-1, 4)), 0),
    "convolved": pt.convolve(S, S[:2]),
    "dropped": graphc.grad(pt.stack([S, 2 * S]).max(axis=0).sum(), S),
    "rows of one": pt.broadcast_to(S.sum(), (S.shape[0] // 4, 3))[0],
    "transformed": pt.fft.rfft(S).real,
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
    every = graphc.function([batch], vectorize_graph(list(OF_SIZES.values()), {S: batch}), mode="reference")
    one = graphc.function([S], list(OF_SIZES.values()), mode="reference")
    wanted = [one(row) for row in rows]
    for name, found, *each in zip(OF_SIZES, every(rows), *wanted, strict=True):
        np.testing.assert_allclose(found, each if found.ndim > each[0].ndim else each[0], err_msg=name)


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


# -- vectors that were made of elements ----------------------------------------------------------------------

A, B, C, N, M = *pt.scalars("a", "b", "c"), *pt.lscalars("n", "m")
MADE = {
    "stack": pt.stack([A, B, C]),
    "list": pt.as_tensor_variable([A, B * 1, C]),
    "constants": pt.stack([A, pt.constant(2.0), C]),
    "joined": pt.concatenate([pt.stack([A, B]), C[None]]),
    "part": pt.stack([A, B, C, A])[:3],
    "reshaped": pt.stack([[A, B, C]]).reshape((3,)),
    "expression": pt.stack([A, B, C]) * 1,
}
READ = {
    "first": lambda v: v[0],
    "last": lambda v: v[-1] * v[1],
    "NumPy's integer": lambda v: v[np.int64(1)],
    "in a tuple": lambda v: v[(2,)],
    "slice": lambda v: v[1:].sum(),
    "backwards": lambda v: (v[::-1] * [1, 2, 3]).sum(),
    "of a slice": lambda v: v[1:][-1],
    "unpacked": lambda v: (lambda one, _, other: one - other)(*v),
    "stacked again": lambda v: pt.stack([v[2], v[0]])[0],
    "joined again": lambda v: pt.concatenate([v[2:], v[:2]])[1],
    "split": lambda v: pt.split(v, [1, 2], 2)[1][0],
    "taken": lambda v: v[pt.constant([0, 2])].prod(),
    "set": lambda v: v[1:].set(0.0)[0] + v[0].set(5.0)[0] + v[2],
    "in a loop": lambda v: graphc.scan(
        lambda row, u: row * u[0] + u[1], [v], non_sequences=[v], return_updates=False
    ).sum(),
}
SIZED = {
    "zeros": lambda s: pt.zeros(s),
    "reshape": lambda s: pt.arange(12).reshape(s),
    "full": lambda s: pt.full((s[1], s[0]), 1.5),
    "broadcast": lambda s: pt.broadcast_to(pt.constant(1.0), s),
    "rows": lambda s: pt.arange(s[0]),
    "product": lambda s: s.prod() + s[0] - s[1:].sum(),
}


@pytest.mark.parametrize("made", MADE)
def test_elements_of_a_vector_are_read_from_it(made):
    """So a vector counts, whether it is differentiated by, replaced, given or an input."""
    v, w, batch = MADE[made], pt.tensor("w", shape=(3,)), pt.tensor("batch", shape=(None, 3))
    of_v, of_w = ([read(x) for read in READ.values()] for x in (v, w))
    values, row = (0.5, 2.0, -1.5), np.array([3.0, -2.0, 0.25])
    wanted = graphc.function([w], of_w, mode="reference")(row)
    rows = np.stack([row, row[::-1]])
    ways = {
        "givens": graphc.function([w], of_v, givens={v: w})(row),
        "input": graphc.function([v], of_v, mode="fast_compile")(row),
        "clone_replace": graphc.function([w], clone_replace(of_v, {v: w}), mode="reference")(row),
        "graph_replace": graphc.function([w], graph_replace(of_v, {v: w}), mode="reference")(row),
        "batch": graphc.function([batch], vectorize_graph(of_v, {v: batch}), mode="reference")(rows),
    }
    for way, found in ways.items():
        for name, want, have in zip(READ, wanted, found, strict=True):
            have = have[0] if way == "batch" else have
            np.testing.assert_allclose(have, want, rtol=1e-14, err_msg=f"{name} {way}")
    slopes = [graphc.grad(y, v) for y in of_v]
    found = graphc.function([A, B, C], [v, *of_v, *slopes], on_unused_input="ignore")(*values)
    at = found[0]
    exact = graphc.function([w], [*of_w, *(graphc.grad(y, w) for y in of_w)], mode="reference")(at)
    for want, have in zip(exact, found[1:], strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-14)


def test_sizes_are_read_from_their_vector():
    """What is known of its elements stays known; they are read from whatever stands for it."""
    for s in (pt.stack([N, M]), pt.concatenate([N[None], pt.stack([M])]), pt.stack([N * 1, M, N])[:2]):
        w, outputs = pt.tensor("w", dtype="int64", shape=(2,)), [size(s) for size in SIZED.values()]
        wanted = graphc.function([N, M], outputs)(3, 4)
        for found in (
            graphc.function([s], outputs)([3, 4]),
            graphc.function([w], outputs, givens={s: w})([3, 4]),
            graphc.function([w], clone_replace(outputs, {s: w}), mode="reference")([3, 4]),
        ):
            for want, have in zip(wanted, found, strict=True):
                np.testing.assert_array_equal(have, want)
    assert pt.zeros(pt.stack([N, pt.constant(3)])).type.shape == (None, 3)
    m = pt.matrix("m")
    text = graphc.function([m], m.reshape(pt.concatenate([m.shape, [1]]))).ir_stages()["graph (optimised)"]
    assert "graphc.join" not in text and "graphc.check" not in text


@pytest.mark.parametrize("shape", [(1,), (1, 1), (1, 1, 1)])
def test_constants_of_one_element_lose_all_axes(shape):
    """Only an element of a vector is a number that the vector was made of."""
    x = pt.matrix("x")
    one = pt.constant(np.full(shape, 2.0)).dimshuffle()
    output = [x * one.dimshuffle("x", "x"), graphc.grad(pt.var(x, where=np.full((1, 1), True)).sum(), x)]
    values = np.array([[1.0, 2.0], [4.0, 3.0]])
    for mode in ("fast_run", "fast_compile", "interpret", "reference"):
        doubled, slopes = graphc.function([x], output, mode=mode)(values)
        np.testing.assert_array_equal(doubled, 2 * values)
        np.testing.assert_allclose(slopes, (values - values.mean()) / 2, rtol=1e-12)
