# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bfloat16: casts to the bit, arithmetic as in float32 with rounded results, in every way to run."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from scipy import special

import graphc
import graphc.tensor as pt
import graphc_runtime
from graphc.immediate import Environment
from graphc.transforms.vectorize import vectorize_graph

BF16 = np.dtype(ml_dtypes.bfloat16)
# Half a unit in the last of 8 digits, and what two or three roundings more make of it.
EXACT, ONCE, OFTEN = 0.0, 2.0**-8, 6 * 2.0**-8


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(BF16)


X, ROW = numbers(3, 4), numbers(4, seed=1)
SYMMETRIC = (np.eye(3) * 4 + 0.5).astype(BF16)


def _scan(x: Any, h: Any) -> Any:
    return graphc.scan(lambda row, h: pt.tanh(h * 0.5 + row), sequences=[x], outputs_info=[h])


def _loop(x: np.ndarray, h: np.ndarray) -> np.ndarray:
    rows = []
    for row in x:
        h = np.tanh(h * 0.5 + row)
        rows.append(h)
    return np.array(rows)


# name: the graph, NumPy on float32, operands, tolerance, dtype of the result
CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[np.ndarray, ...], float, str]] = {
    "exp": (pt.exp, np.exp, (X,), ONCE, "bfloat16"),
    "sigmoid": (pt.sigmoid, special.expit, (X,), ONCE, "bfloat16"),
    "sum of terms": (
        lambda x, w: x * w + x / (1 + w * w) - w,
        lambda x, w: x * w + x / (1 + w * w) - w,
        (X, ROW),
        OFTEN,
        "bfloat16",
    ),
    "python numbers": (lambda x: 2 * x + 0.5, lambda x: 2 * x + 0.5, (X,), OFTEN, "bfloat16"),
    "with float32": (lambda x, w: x * w, lambda x, w: x * w, (X, ROW.astype("float32")), EXACT, "float32"),
    "with float16": (lambda x, w: x * w, lambda x, w: x * w, (X, ROW.astype("float16")), ONCE, "float32"),
    "with float64": (lambda x, w: x * w, lambda x, w: x * w, (X, ROW.astype("float64")), ONCE, "float64"),
    "with int8": (lambda x, n: x * n, lambda x, n: x * n, (X, np.arange(4, dtype="int8")), ONCE, "bfloat16"),
    "with int64": (lambda x, n: x * n, lambda x, n: x * n, (X, np.arange(4)), ONCE, "float64"),
    "comparison": (lambda x, w: x < w, lambda x, w: x < w, (X, ROW), EXACT, "bool"),
    "where": (
        lambda x, w: pt.where(x < w, x, w),
        lambda x, w: np.where(x < w, x, w),
        (X, ROW),
        EXACT,
        "bfloat16",
    ),
    "sum": (lambda x: x.sum(axis=0), lambda x: x.sum(axis=0), (X,), ONCE, "bfloat16"),
    "sum in float32": (lambda x: x.sum(dtype="float32"), np.sum, (X,), 1e-6, "float32"),
    "mean": (lambda x: x.mean(axis=1), lambda x: x.mean(axis=1), (X,), ONCE, "bfloat16"),
    "var": (lambda x: x.var(axis=1), lambda x: x.var(axis=1), (X,), OFTEN, "bfloat16"),
    "max": (lambda x: x.max(axis=1), lambda x: x.max(axis=1), (X,), EXACT, "bfloat16"),
    "argmax": (lambda x: x.argmax(axis=1), lambda x: x.argmax(axis=1), (X,), EXACT, "int64"),
    "cumsum": (lambda x: pt.cumsum(x, axis=1), lambda x: np.cumsum(x, axis=1), (X,), OFTEN, "bfloat16"),
    "softmax": (lambda x: pt.softmax(x, axis=1), lambda x: special.softmax(x, 1), (X,), OFTEN, "bfloat16"),
    "sort": (lambda x: pt.sort(x, axis=1), lambda x: np.sort(x, 1), (X,), EXACT, "bfloat16"),
    "product": (lambda x, w: x @ w, lambda x, w: x @ w, (X, ROW), ONCE, "bfloat16"),
    "einsum": (
        lambda x, w: pt.einsum("ij,j->i", x, w),
        lambda x, w: np.einsum("ij,j->i", x, w),
        (X, ROW),
        OFTEN,
        "bfloat16",
    ),
    "inverse": (pt.linalg.inv, np.linalg.inv, (SYMMETRIC,), OFTEN, "bfloat16"),
    "cholesky": (pt.linalg.cholesky, np.linalg.cholesky, (SYMMETRIC,), ONCE, "bfloat16"),
    "slices": (lambda x: x[::-1, 1:], lambda x: x[::-1, 1:], (X,), EXACT, "bfloat16"),
    "rows": (lambda x: x[[0, 2, 1]], lambda x: x[[0, 2, 1]], (X,), EXACT, "bfloat16"),
    "mask": (lambda x: x[x > 0], lambda x: x[x > 0], (X,), EXACT, "bfloat16"),
    "transpose": (lambda x: x.T.reshape((6, 2)), lambda x: x.T.reshape(6, 2), (X,), EXACT, "bfloat16"),
    "join": (
        lambda x: pt.concatenate([x, x[:1]]),
        lambda x: np.concatenate([x, x[:1]]),
        (X,),
        EXACT,
        "bfloat16",
    ),
    "join with float32": (
        lambda x, w: pt.concatenate([x, w[None]]),
        lambda x, w: np.concatenate([x, w[None]]),
        (X, ROW.astype("float32")),
        EXACT,
        "float32",
    ),
    "set": (
        lambda x, w: pt.set_subtensor(x[0], w),
        lambda x, w: np.concatenate([w[None], x[1:]]),
        (X, ROW.astype("float32")),
        ONCE,
        "bfloat16",
    ),
    "increase": (
        lambda x, w: pt.inc_subtensor(x[0], w),
        lambda x, w: np.concatenate([x[:1] + w, x[1:]]),
        (X, ROW.astype("float32")),
        ONCE,
        "bfloat16",
    ),
    "scatter": (
        lambda x: pt.inc_subtensor(x[[0, 0]], x[[1, 2]]),
        lambda x: np.concatenate([x[:1] + x[1] + x[2], x[1:]]),
        (X,),
        OFTEN,
        "bfloat16",
    ),
    "pad": (lambda x: pt.pad(x, 1), lambda x: np.pad(x, 1), (X,), EXACT, "bfloat16"),
    "full": (
        lambda x: pt.full(x.shape, 2.5, dtype="bfloat16"),
        lambda x: np.full(x.shape, 2.5),
        (X,),
        EXACT,
        "bfloat16",
    ),
    "arange": (
        lambda x: pt.arange(4, dtype="bfloat16") + pt.zeros_like(x),
        lambda x: np.arange(4) + np.zeros_like(x),
        (X,),
        EXACT,
        "bfloat16",
    ),
    "from int64": (lambda n: n.astype("bfloat16"), lambda n: n, (np.arange(-3, 100),), EXACT, "bfloat16"),
    "to int32": (lambda x: (x * 8).astype("int32"), lambda x: (x * 8).astype("int32"), (X,), EXACT, "int32"),
    "loop": (_scan, _loop, (X, ROW), OFTEN, "bfloat16"),
    "last row": (lambda x, h: _scan(x, h)[-1], lambda x, h: _loop(x, h)[-1], (X, ROW), OFTEN, "bfloat16"),
}


def wide(*values: np.ndarray) -> list[np.ndarray]:
    return [v.astype("float32") if v.dtype == BF16 else v for v in values]


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_operations(name: str, static: bool) -> None:
    build, reference, values, tolerance, dtype = CASES[name]
    xs = [pt.tensor(dtype=v.dtype.name, shape=v.shape if static else (None,) * v.ndim) for v in values]
    graph = build(*xs)
    want = reference(*wide(*values))
    for mode in ("fast_run", "reference", "interpret") if static else ("fast_run", "fast_compile"):
        found = graphc.function(xs, graph, mode=mode)(*values)
        assert found.dtype.name == graph.type.dtype == dtype
        assert found.shape == np.shape(want)
        np.testing.assert_allclose(
            found.astype("float64"), np.asarray(want, "float64"), rtol=tolerance, atol=tolerance
        )


def test_casts_have_the_bits_of_ml_dtypes() -> None:
    x, y = pt.vector("x", dtype="bfloat16"), pt.vector("y", dtype="float32")
    every = np.arange(1 << 16, dtype="uint16").view(BF16)
    np.testing.assert_array_equal(
        graphc.function([x], x.astype("float32"))(every).view("uint32"),
        every.astype("float32").view("uint32"),
    )
    rng = np.random.default_rng(0)
    random = rng.integers(0, 1 << 32, 100_000, dtype="uint32").view("float32")
    ties = (rng.integers(0, 1 << 16, 10_000, dtype="uint32") << 16 | 0x8000).view("float32")
    given = np.concatenate([random, ties, np.float32([0, -0.0, np.inf, -np.inf, np.nan, 3.4e38, 1e-45])])
    narrow = graphc.function([y], y.astype("bfloat16"))
    with np.errstate(all="ignore"):
        want = given.astype(BF16)
    for found in (narrow(given), pt.constant(given).astype("bfloat16").eval()):
        np.testing.assert_array_equal(found.view("uint16"), want.view("uint16"))


@pytest.mark.parametrize(
    ("cost", "slope"),
    [
        (lambda x: (pt.softmax(x, axis=1) ** 2).sum(), None),
        (lambda x: (x[[0, 0, 1]] ** 2).sum(), None),
        (lambda x: pt.where(x > 0, x, 0.1 * x).sum(), None),
        (lambda x: ((x @ ROW.astype("float64")) ** 2).mean(), None),
        (lambda x: (_scan(x, pt.zeros((4,), dtype=x.dtype))[-1] ** 2).sum(), None),
    ],
)
def test_gradients_are_those_of_float64(cost: Callable[[Any], Any], slope: None) -> None:
    x, wide = pt.matrix("x", dtype="bfloat16"), pt.matrix("wide", dtype="float64")
    g = graphc.grad(cost(x), x)
    assert g.type.dtype == "bfloat16"
    found = graphc.function([x], g)(X).astype("float64")
    want = graphc.function([wide], graphc.grad(cost(wide), wide))(X.astype("float64"))
    np.testing.assert_allclose(found, want, rtol=8 * 2.0**-8, atol=4 * 2.0**-8)


def test_updates_keep_the_dtype() -> None:
    p = graphc.shared(ROW.copy(), name="p")
    loss = ((p - 1) ** 2).sum()
    step = graphc.function([], loss, updates=[(p, p - 0.25 * graphc.grad(loss, p))])
    again = pickle.loads(pickle.dumps(step))
    for f in (step, again):
        losses = [float(f()) for _ in range(8)]
        assert losses[-1] < 1e-2 * losses[0]
    assert p.get_value().dtype == BF16


def test_artifact_eager_jit_and_batches(tmp_path: Any) -> None:
    x = pt.vector("x", dtype="bfloat16")
    want = np.tanh(ROW.astype("float32") * 2)
    graphc.export(graphc.function([x], pt.tanh(x * 2), name="f"), tmp_path / "f.gcx")
    env = Environment()
    batch = pt.matrix("batch", dtype="bfloat16")
    for found in (
        graphc_runtime.load(tmp_path / "f.gcx").f(ROW),
        np.asarray(env.tanh(env.as_tensor(ROW) * 2.0)),
        graphc.jit(lambda v: np.tanh(v * 2.0))(ROW),
        graphc.function([batch], vectorize_graph(pt.tanh(x * 2), {x: batch}))(np.stack([ROW, ROW]))[1],
    ):
        assert found.dtype == BF16
        np.testing.assert_allclose(found.astype("float32"), want, rtol=2 * ONCE)


def test_arguments() -> None:
    x = pt.vector("x", dtype="bfloat16")
    double = graphc.function([x], x * 2)
    assert [*map(float, double([1.0, 2.5]))] == [2.0, 5.0]
    assert [*map(float, double(np.array([1, 2], "int8")))] == [2.0, 4.0]
    with pytest.raises(TypeError, match="expected dtype bfloat16"):
        double(np.ones(2, "float32"))
    with pytest.raises(TypeError, match="bfloat16 into an array of int64"):
        pt.set_subtensor(pt.lvector()[:2], x)
    with pytest.raises(TypeError, match="cannot have dtype bfloat16"):
        pt.random.normal(dtype="bfloat16")
    with pytest.raises(TypeError, match="no bfloat16; take float32"):
        graphc.sparse.matrix("csr", dtype="bfloat16")


def test_missing_package() -> None:
    """Without ml_dtypes the message says how it is installed, and nothing else needs it."""
    code = (
        "import sys; sys.modules['ml_dtypes'] = None\n"
        "import graphc.tensor as pt\n"
        "assert pt.exp(pt.zeros(())).eval() == 1\n"
        "try: pt.vector('x', dtype='bfloat16')\n"
        "except TypeError as error: print(error)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'graphc[bfloat16]'" in ran.stdout


def test_every_operation_of_graphc_says_if_it_takes_bits() -> None:
    """What computes with bits of bfloat16 would be silently wrong."""
    import graphc.ops as ops
    from graphc.graph.op import Op

    moving = {
        *(
            "Assert",
            "Required",
            "Cast",
            "CheckAndRaise",
            "DimShuffle",
            "IfElse",
            "Join",
            "Reshape",
            "SpecifyShape",
            "FitIndex",
        ),
        *("BroadcastTo", "Sized", "Subtensor", "Take", "WithDerivativesOf", "Shape", "Shape_i", "MakeVector"),
    }
    pending, found = [Op], set()
    while pending:
        for each in pending.pop().__subclasses__():
            pending.append(each)
            if each.__module__.startswith(f"{ops.__name__}.") and each.takes_as_stored is True:
                found.add(each.__name__)
    assert {name for name in found if not name.startswith("_")} <= moving | {"IncSubtensor"}
