# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Leading batch axes for every kind of op: equal to a Python loop over the batch."""

from __future__ import annotations

import importlib
import itertools
import pkgutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.errors import VectorizeError
from graphc.graph.basic import Variable
from graphc.graph.op import FieldOp, Op
from graphc.graph.traversal import toposort
from graphc.ops.batching import batch_graph, rule_of
from graphc.ops.create import Iota
from graphc.ops.kernel import KernelOp
from graphc.ops.shaping import FitIndex
from graphc.printing import Print
from graphc.raise_op import Assert
from graphc.tensor import random
from graphc.transforms.vectorize import vectorize_graph

M, V, S = pt.tensor("M", dtype="float64", shape=(3, 4)), pt.dvector("V"), pt.dscalar("S")
N, C = pt.lscalar("N"), pt.scalar("C", dtype="bool")
CORES: list[Any] = [M, V, S, N, C]
RNG = np.random.default_rng(5)
BATCH = {
    M: RNG.normal(size=(2, 3, 4)),
    V: RNG.normal(size=(2, 3)),
    S: np.array([0.5, -1.5]),
    N: np.array([1, -1]),
    C: np.array([True, False]),
}


@graphc.as_op(itypes=[V.type, S.type], otypes=[V.type, S.type])
def python_op(v: Any, s: Any) -> Any:
    """No rule: a loop."""
    return np.sort(v) * s, v.max()


def _inner(a: Any, b: Any) -> Any:
    x, y = pt.dvector("x"), pt.dscalar("y")
    return graphc.OpFromGraph([x, y], [pt.exp(x) * y])(a, b)


def _rng() -> Any:
    return graphc.shared(np.random.default_rng(3))


# Each gives what is computed from the cores; draws have a test of their own.
CASES: dict[str, Callable[[], Any]] = {
    "elementwise": lambda: [M * S + V.sum(), pt.cast(M, "float32"), pt.switch(C, V, S)],
    "reductions": lambda: [M.sum(0), M.max(1), M.argmin(axis=0), pt.logsumexp(M)],
    "softmax": lambda: [pt.softmax(M, axis=0), pt.log_softmax(V)],
    "shapes": lambda: [M.T, M.reshape((2, 6)), pt.broadcast_to(V, (2, 3)), V.shape * S, V.size * N],
    "sizes": lambda: [pt.specify_shape(V, (3,)), FitIndex()(V, 3), pt.stack([N, N + 1]), pt.alloc(S, 2)],
    "ranges": lambda: [pt.arange(3) * N, Iota("float64")(S, 2.0, 3)],
    "joins": lambda: [pt.concatenate([V, V[:1] * S]), pt.stack([V, V * N])],
    "products": lambda: [V @ M, M @ M.T, pt.dot(V, V), M.T @ V],
    "slices": lambda: [M[1:, ::-1], M[1], M[N], V[N], M[:, N], M[N, N], M[N::2, 0].sum(), V[N::2]],
    "updates": lambda: [
        M[1:].set(S), M[0].inc(S), M[N].set(S), M[:, N].inc(V), M[N, N].set(S), V[N:].inc(S)
    ],
    "positions": lambda: [M[[0, 2, 0]], V[pt.stack([N, 0])], M[:, pt.stack([[N, 0], [1, N]])]],
    "puts": lambda: [
        M[[0, 0]].inc(S), V[pt.stack([N, N])].inc(S), M[:, pt.stack([N, 0])].set(V[:, None]), V[[0]].set(N)
    ],
    "conditionals": lambda: list(graphc.ifelse(C, [V * S, S], [V + 1, S * 2])),
    "conditionals of other shapes": lambda: [graphc.ifelse(C, V[:2], V[1:])],
    "scans": lambda: [
        graphc.scan(lambda v, h: h * v + S, sequences=V, outputs_info=S, return_updates=False),
        graphc.scan(lambda h: pt.tanh(h) * S, outputs_info=V, n_steps=3, return_updates=False)[-1],
    ],
    "loops of several lengths": lambda: [
        graphc.while_loop(lambda s: abs(s) < 9, lambda s: 2 * s, S),
        graphc.while_loop(lambda s: abs(s) < 9, lambda s: 2 * s, S, max_steps=20),
        graphc.fori_loop(0, N + 3, lambda i, s: s + i, S),
        graphc.scan(lambda h: h * 2, outputs_info=V, n_steps=N + 2, return_updates=False)[-1],
    ],
    "graphs as ops": lambda: [_inner(V, S)],
    "Python": lambda: python_op(V, S),
    "checks": lambda: [Assert("wrong")(V, S < 9), Print(global_fn=lambda op, x: None)(V)],
    "derivatives": lambda: [graphc.grad(pt.tanh(V * S).sum(), V), graphc.gradient.grad_clip(V, -1, 1)],
}  # fmt: skip


def results(name: str) -> list[Variable]:
    """What a case computes."""
    return list(CASES[name]())


def replaced(outputs: list[Variable], batched: list[Any]) -> tuple[dict[Any, Any], list[Any]]:
    """Batches for the cores, and the inputs of a function of the outputs."""
    replace = {x: pt.tensor(f"{x.name}s", dtype=x.dtype, shape=(None, *x.type.shape)) for x in batched}
    return replace, [replace.get(x, x) for x in CORES]


def run(inputs: list[Any], outputs: list[Any], values: list[Any], mode: str) -> list[np.ndarray]:
    """One call of a function."""
    return graphc.function(inputs, outputs, mode=mode, on_unused_input="ignore")(*values)


@pytest.mark.parametrize("name", CASES)
def test_batches_equal_a_loop(name):
    outputs = results(name)
    one = graphc.function(CORES, outputs, mode="reference", on_unused_input="ignore")
    read = [x for x in CORES if any(x in node.inputs for node in toposort(outputs))]
    for batched in (read, read[:1], read[1:]):
        replace, inputs = replaced(outputs, batched)
        values = [BATCH[x] if x in batched else BATCH[x][0] for x in CORES]
        expected = zip(
            *(one(*(BATCH[x][k if x in batched else 0] for x in CORES)) for k in range(2)), strict=True
        )
        got = vectorize_graph(outputs, replace)
        depends = [y is not x for x, y in zip(outputs, got, strict=True)]
        found = run(inputs, got, values, "fast_run" if batched is read else "reference")
        for have, want, is_batched in zip(found, expected, depends, strict=True):
            want = np.stack(want) if is_batched and have.ndim > want[0].ndim else want[0]
            assert have.dtype == want.dtype
            np.testing.assert_allclose(have, want, rtol=1e-12)


def test_draws():
    outputs = [
        random.normal(V, 2.0, rng=_rng()),
        random.multivariate_normal(V[:2], pt.eye(2), rng=_rng()),
        random.choice(5, size=3, replace=False, rng=_rng(), p=pt.softmax(pt.arange(5) * S)),
    ]
    replace, inputs = replaced(outputs, [V, S])
    f = graphc.function(inputs, vectorize_graph(outputs, replace), on_unused_input="ignore")
    values = [BATCH[x] if x in replace else BATCH[x][0] for x in CORES]
    normal, vectors, chosen = f(*values)
    rng = np.random.default_rng(3)
    np.testing.assert_array_equal(normal, rng.normal(BATCH[V], 2.0))
    rng = np.random.default_rng(3)
    expected = [rng.multivariate_normal(v[:2], np.eye(2)) for v in BATCH[V]]
    np.testing.assert_allclose(vectors, expected)
    # One generator goes through the batch: the second element does not repeat the first one's numbers.
    rng = np.random.default_rng(3)
    for row, s in zip(chosen, BATCH[S], strict=True):
        p = np.exp(np.arange(5) * s)
        np.testing.assert_array_equal(row, rng.choice(5, 3, replace=False, p=p / p.sum()))


def test_a_batch_of_generators():
    from graphc_runtime.generators import state_of

    rng = _rng()
    rngs = pt.tensor("rngs", dtype="uint64", shape=(None, 6))
    draws = vectorize_graph(random.normal(size=2, rng=rng), {rng: rngs})
    states = np.stack([state_of(np.random.default_rng(seed)) for seed in (1, 2)])
    expected = [np.random.default_rng(seed).normal(size=2) for seed in (1, 2)]
    np.testing.assert_array_equal(run([rngs], [draws], [states], "fast_run")[0], expected)


# Completeness -----------------------------------------------------------------------------------------------

# Bridges need other libraries and define no operations that batches have rules for.
_OTHERS = ("graphc.passes", "graphc.lowering", "graphc.backends", "graphc.library", "graphc.interop")
for _module in pkgutil.walk_packages(graphc.__path__, "graphc.", onerror=lambda name: None):
    if not _module.name.startswith(_OTHERS):
        importlib.import_module(_module.name)

# These run as loops, one element after the other.
LOOPS = {
    "PythonFunction": "it is the user's function, of which nothing else is known",
    "MultivariateNormal": "NumPy's generator draws in calls from Python",
    "Prologue": "the compiler makes it of a loop with Python ops, when batches are made already",
    "ChoiceWithoutReplacement": "NumPy's generator draws in calls from Python",
}


def subclasses(cls: type) -> set[type]:
    """All classes derived from a class."""
    return {cls, *(each for sub in cls.__subclasses__() for each in subclasses(sub))}


CLASSES = sorted(
    (
        cls
        for cls in subclasses(Op) - {Op, FieldOp, KernelOp}
        if cls.__module__.startswith("graphc.")
        and not cls.__name__.startswith("_")
        and cls.__name__ not in ("Sized", "PythonDraw")
    ),
    key=lambda cls: cls.__name__,
)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_op_has_a_rule_or_is_a_loop_for_a_reason(cls):
    reason = LOOPS.get(cls.__name__) or getattr(cls, "absent", {}).get("batch")
    if cls.__module__.startswith("graphc.sparse"):
        pytest.skip("sparse matrices have two axes, and no batches")
    assert (rule_of(object.__new__(cls)) is None) == bool(reason), (
        "a batching rule (a method batch, or one in graphc.ops.batching), or the reason for a loop"
    )


def test_the_cases_cover_the_ops():
    covered = {type(node.op).__name__ for name in CASES for node in toposort(results(name))}
    own = {"graphc.ops.advanced", "graphc.ops.batching", "graphc.ops.create", "graphc.ops.dimshuffle"}
    own |= {f"graphc.ops.{name}" for name in ("elementwise", "ifelse", "join", "linalg", "reduce", "reshape")}
    own |= {f"graphc.ops.{name}" for name in ("shape", "softmax", "subtensor")} | {"graphc.scan.op"}
    missing = {cls.__name__ for cls in CLASSES if cls.__module__ in own} - covered
    assert not missing


# Axes -------------------------------------------------------------------------------------------------------


def test_batch_axes_broadcast_from_the_right():
    xs, ys = pt.tensor("xs", dtype="float64", shape=(None, None)), pt.tensor("ys", shape=(5, 1, None, 1))
    outputs = [V.sum() * S, V + 1, pt.exp(S), pt.constant(2.0), V.shape[0]]
    got = vectorize_graph(outputs, {V: xs, S: ys})
    assert [y.type.ndim for y in got] == [4, 2, 4, 0, 0]
    assert got[2].type.shape == (5, 1, None, 1) and got[3] is outputs[3]
    a, b = np.arange(6.0).reshape(2, 3), RNG.normal(size=(5, 1, 4, 1))
    found = run([xs, ys], got, [a, b], "fast_run")
    np.testing.assert_allclose(found[0], a.sum(1) * b)
    np.testing.assert_allclose(found[1], a + 1)
    np.testing.assert_allclose(found[2], np.exp(b))
    assert found[4] == 3


def test_axes_that_lie_apart():
    x, y = pt.dscalar("x"), pt.dscalar("y")
    xs, ys = pt.tensor("xs", shape=(4, 1, 1)), pt.dvector("ys")
    (got,) = vectorize_graph([x * y], {x: xs, y: ys})
    a, b = RNG.normal(size=(4, 1, 1)), RNG.normal(size=3)
    np.testing.assert_allclose(run([xs, ys], [got], [a, b], "fast_run")[0], a * b)


def test_containers_and_plain_replacements():
    xs = pt.dmatrix("xs")
    assert isinstance(vectorize_graph(V * S, {V: xs}), Variable)
    assert isinstance(vectorize_graph((V * S,), {V: xs}), tuple)
    t = pt.dscalar("t")
    np.testing.assert_allclose(
        run([xs, t], [vectorize_graph(V * S, {V: xs, S: t})], [BATCH[V], 3.0], "reference")[0], BATCH[V] * 3
    )
    unchanged = V * 2
    assert vectorize_graph([unchanged], {S: pt.dvector()})[0] is unchanged
    assert graphc.vectorize_graph is vectorize_graph


def test_replacements_that_do_not_fit():
    with pytest.raises(ValueError, match="at least as many dimensions"):
        vectorize_graph(V * 2, {V: S})
    with pytest.raises(ValueError, match="must have one dimension more"):
        batch_graph([V * 2], {V: V}, 3)
    with pytest.raises(ValueError, match="equal sizes, or 1"):
        vectorize_graph(V * S, {V: pt.tensor(shape=(2, 3)), S: pt.tensor(shape=(4,))})


def test_sizes_that_differ_within_a_batch_fail_when_run():
    ns = pt.lvector("ns")
    f = graphc.function([ns], [vectorize_graph(pt.arange(N) * 2, {N: ns})])
    np.testing.assert_array_equal(f([2, 2])[0], [[0, 2], [0, 2]])
    with pytest.raises(ValueError, match=r"batch of.*size 2 in dimension 0 in the first iteration, but 3"):
        f([2, 3])


class Opaque(Op):
    """An op on values that are no tensors."""

    def make_node(self, x):
        return graphc.Apply(self, [x], [_Box()()])


class _Box(graphc.Type):
    """A type that is no tensor."""

    def filter(self, value, strict=False, allow_downcast=None):
        return value


def test_values_that_are_no_tensors_cannot_be_stacked():
    with pytest.raises(VectorizeError, match=r"no batching rule.*cannot stack"):
        vectorize_graph(Opaque()(V), {V: pt.dmatrix()})


def test_gradients_of_a_loop_over_a_batch():
    xs = pt.dmatrix("xs")

    class Cube(Op):
        __props__ = ()

        def make_node(self, x):
            return graphc.Apply(self, [x], [x.type()])

        def perform(self, node, inputs, output_storage):
            output_storage[0][0] = inputs[0] ** 3

        def pullback(self, inputs, outputs, cotangents):
            return [3 * inputs[0] ** 2 * cotangents[0]]

    y = vectorize_graph(Cube()(V), {V: xs})
    g = graphc.grad(y.sum(), xs)
    for mode, size in itertools.product(("fast_run", "reference"), (2, 0)):
        values = BATCH[V][:size]
        np.testing.assert_allclose(run([xs], [g], [values], mode)[0], 3 * values**2)


OF_ROWS = {
    "elementwise": lambda x, i: pt.exp(x) + 1,
    "a product": lambda x, i: pt.dot(x, pt.arange(3.0)),
    "set at a batch of indices": lambda x, i: pt.ones((4, 3, 2))[0, :, i].set(x),
    "added at a batch of indices": lambda x, i: pt.ones((3, 2))[:, i].inc(x),
    "a solution": lambda x, i: pt.linalg.solve(pt.eye(3) * 2, x),
    "a running sum": lambda x, i: pt.cumsum(x),
}


@pytest.mark.parametrize("name", OF_ROWS)
@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_a_batch_of_another_dtype_is_one_of_rows_of_that_dtype(name, dtype):
    x, i = pt.dvector("x"), pt.lscalar("i")
    out = OF_ROWS[name](x, i)
    rows, places = np.array([[0, 1, 2], [2, 1, 0]], dtype), np.array([0, -1])
    [found] = graphc.vectorize_graph([out], {x: pt.constant(rows), i: pt.constant(places)})
    wanted = [
        graphc.clone_replace(out, {x: pt.constant(row), i: pt.constant(place)}, rebuild_strict=False).eval()
        for row, place in zip(rows, places, strict=True)
    ]
    np.testing.assert_allclose(found.eval(), wanted, rtol=1e-6)
    assert found.dtype == wanted[0].dtype
