# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""lift-slices keeps what programs compute, in values, shapes and errors, and computes only what is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc.tensor as pt
from graphc.backends.interpret.interpreter import run_function
from graphc.emit import emit_module
from graphc.graph.function_graph import FunctionGraph
from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir
from graphc_dialects.dialect import new_context

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
    with new_context(), ir.Location.unknown():
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
