# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""lift-slices keeps what programs compute, in values, shapes and errors, and computes only what is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.backends.interpret.interpreter import run_function
from graphc.emit import emit_module
from graphc.graph.function_graph import FunctionGraph
from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir

from ._semantics import context

TIDY = ["canonicalize,cse", "graphc-shape-simplification", "canonicalize,cse"]
# Of x and y (n, 4), z (n, 3, 4) and a number k; how many slices go up.
PROGRAMS: dict[str, tuple[Callable[..., Any], int]] = {
    "elementwise": (lambda x, y, z, k: (pt.exp(x) + y * 2)[-1], 1),
    "a diamond": (lambda x, y, z, k: (lambda e: (e / (1 + e)).T[:, k])(pt.exp(x)), 1),
    "steps": (lambda x, y, z, k: pt.exp(x + y)[::-2, 1:], 1),
    "a row and a column": (lambda x, y, z, k: [pt.exp(x)[k], pt.exp(x)[:, 0]], 2),
    "softmax": (lambda x, y, z, k: pt.special.softmax(z, axis=-1)[-1], 1),
    "reductions": (lambda x, y, z, k: (z.max(axis=1) - z.sum(axis=-1, keepdims=False)[:, :1])[k], 2),
    "argmax": (lambda x, y, z, k: pt.argmax(z, axis=1)[-1], 1),
    "rows of a product": (lambda x, y, z, k: (x @ y.T)[k], 1),
    "columns of a product": (lambda x, y, z, k: (x.T @ y)[:, 1:3], 1),
    "batches of products": (lambda x, y, z, k: (z @ z.mT)[k:], 1),
    "broadcasts": (lambda x, y, z, k: pt.exp(pt.broadcast_to(x[:, None], z.shape) + z)[-1], 1),
    "joins": (lambda x, y, z, k: pt.tanh(pt.concatenate([x, y], axis=1))[k], 2),
    "a join along the axis stays": (lambda x, y, z, k: pt.concatenate([x, y])[-1], 0),
    "stacks as rows": (lambda x, y, z, k: ((z.reshape((z.shape[0] * 3, 4)) @ y.T) + 1).reshape(
        (z.shape[0], 3, y.shape[0]))[-1], 1),
    "rows as vectors": (lambda x, y, z, k: pt.exp(z.reshape((z.shape[0], 12)))[k], 1),
    "what else is read": (lambda x, y, z, k: (lambda e: [e.sum(), pt.tanh(e)[-1]])(pt.exp(x)), 1),
}  # fmt: skip


def _outcome(module: Any, inputs: list[Any]) -> Any:
    try:
        return run_function(module, inputs)
    except (ValueError, IndexError) as error:
        return type(error).__name__


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str) -> None:
    make, lifted = PROGRAMS[name]
    x, y, z, k = pt.dmatrix("x"), pt.dmatrix("y"), pt.dtensor3("z"), pt.lscalar("k")
    outputs = make(x, y, z, k)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    text = emit_module(FunctionGraph([x, y, z, k], outputs)).text
    with context(), ir.Location.unknown():
        before, after = ir.Module.parse(text), ir.Module.parse(text)
        run_pipeline(before, ["canonicalize,cse", "graphc-insert-checks"])
        report = run_pipeline(after, [*TIDY, "graphc-lift-slices"], verify_each=True)
        counts = report.runs[-1].statistics
        run_pipeline(after, ["graphc-insert-checks", "canonicalize,cse"], verify_each=True)
        rng = np.random.default_rng(1)
        # Also sizes that do not fit, and none.
        for n, m in ((3, 3), (1, 1), (3, 2), (0, 0), (2, 3)):
            values = [rng.normal(size=(n, 4)), rng.normal(size=(m, 4)), rng.normal(size=(n, 3, 4))]
            want, have = (_outcome(module, [*values, np.asarray(1)]) for module in (before, after))
            assert isinstance(want, str) == isinstance(have, str), (want, have, n, m)
            if not isinstance(want, str):
                for a, b in zip(want, have, strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-13)
        assert counts.get("slices lifted", 0) == lifted


# Of x and y (6, 5), v (1, 5) and indices i (2,), j (6,): how many takes go up.
TAKES: dict[str, tuple[Callable[..., Any], int]] = {
    "rows": (lambda x, y, v, i, j: (pt.exp(x) + y * 2)[i], 1),
    "columns of a row that is repeated": (lambda x, y, v, i, j: pt.exp(x * v)[:, i], 1),
    "rows of a row that is repeated": (lambda x, y, v, i, j: pt.exp(x * v)[i], 1),
    "elements": (lambda x, y, v, i, j: pt.log1p(pt.sqr(x) * 2)[pt.arange(6), j], 1),
    "elements of what is broadcast": (lambda x, y, v, i, j: pt.exp(x * v)[pt.arange(6), j], 1),
    "two that share": (lambda x, y, v, i, j: (lambda e: [pt.tanh(e)[i], (e * y)[i]])(pt.exp(x)), 2),
    "two indices stay": (lambda x, y, v, i, j: (lambda e: [e[i], e[j]])(pt.exp(x)), 0),
    "read in full": (lambda x, y, v, i, j: (lambda e: [e.sum(), e[i]])(pt.exp(x)), 0),
    "matrices of indices": (lambda x, y, v, i, j: pt.where(x > 0, pt.exp(x), pt.sqrt(-x))[pt.stack([i])], 1),
    "flags": (lambda x, y, v, i, j: pt.isnan(pt.log(x))[i], 1),
    "gradients": (lambda x, y, v, i, j: graphc.grad((pt.log(pt.sqr(x) + 1)[i] * 3).sum(), x), 0),
    "in a loop, which may hoist the function": (lambda x, y, v, i, j: graphc.scan(
        lambda k, x, j: pt.exp(x)[(j + k) % 6].sum(), sequences=[pt.arange(4)],
        non_sequences=[x, j[:2]], return_updates=False), 0),
}  # fmt: skip


@pytest.mark.parametrize("name", TAKES)
def test_takes(name: str) -> None:
    make, lifted = TAKES[name]
    x, y, v = (
        pt.tensor(k, dtype="float64", shape=s) for k, s in (("x", (6, 5)), ("y", (6, 5)), ("v", (1, 5)))
    )
    i, j = pt.tensor("i", dtype="int64", shape=(2,)), pt.tensor("j", dtype="int64", shape=(6,))
    outputs = make(x, y, v, i, j)
    inputs, outputs = [x, y, v, i, j], outputs if isinstance(outputs, list) else [outputs]
    f = graphc.function(inputs, outputs, on_unused_input="ignore")
    with context(), ir.Location.unknown():
        module = ir.Module.parse(emit_module(FunctionGraph(inputs, outputs)).text)
        report = run_pipeline(module, [*TIDY, "graphc-lift-slices"], verify_each=True)
        assert report.runs[-1].statistics.get("takes lifted", 0) == lifted
    slow = graphc.function(inputs, outputs, mode="reference", on_unused_input="ignore")
    rng = np.random.default_rng(2)
    for at in ([0, 4], [-1, -5], [3, 3], [0, 5], [9, 0], [0, -9]):
        values = [
            rng.normal(size=(6, 5)),
            rng.normal(size=(6, 5)),
            rng.normal(size=(1, 5)),
            np.array(at),
            np.arange(6) % 5,
        ]
        with np.errstate(all="ignore"):
            want, have = _called(slow, values), _called(f, values)
        assert isinstance(want, str) == isinstance(have, str), (want, have, at)
        if not isinstance(want, str):
            for a, b in zip(want, have, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-13)


def _called(f: Any, values: list[Any]) -> Any:
    try:
        return f(*values)
    except IndexError as error:
        return type(error).__name__
