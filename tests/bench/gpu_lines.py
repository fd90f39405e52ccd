# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What gpu.py measures: graphs, inputs, references, and the same with other libraries.

Graphs are built where graphc is installed; all else needs NumPy alone, and the libraries that are compared.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Line:
    """Something that is measured.

    Attributes:
        name: of the line, and of the function in the artifact.
        dtypes: dtype and number of axes of each input.
        graph: takes `graphc.tensor` and the inputs.
        shapes: of the inputs when time is taken.
        small: of the inputs when results are compared with float64.
        peer: the same with arrays and a module in NumPy's style (CuPy, jax.numpy), or with PyTorch.
        moved: bytes that have to be read and written, of the sizes of the inputs; 0 where that is no measure.
        goal: least part of the bandwidth of copies.
    """

    name: str
    dtypes: Sequence[tuple[str, int]]
    graph: Callable[..., Any]
    shapes: Sequence[tuple[int, ...]]
    small: Sequence[tuple[int, ...]]
    peer: Callable[..., Any]
    moved: Callable[..., int]
    goal: float = 0.9

    def inputs(self, shapes: Sequence[tuple[int, ...]], seed: int = 0) -> list[np.ndarray]:
        """Values; large arrays repeat a block of random numbers, since drawing them would take long."""
        rng = np.random.default_rng(seed)
        found = []
        for (dtype, _), shape in zip(self.dtypes, shapes, strict=True):
            count = int(np.prod(shape, dtype=np.int64))
            block = rng.normal(size=min(count, 1 << 20)).astype(dtype)
            found.append(np.resize(block, shape))
        return found


N = 1 << 28
ROWS = 8192


def _softmax(m: Any, x: Any) -> Any:
    if m.__name__ == "torch":
        return m.softmax(x, 1)
    e = m.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def _sorted(m: Any, x: Any) -> Any:
    return m.sort(x, 1)[0] if m.__name__ == "torch" else m.sort(x, 1)


def _sum(m: Any, x: Any, *axis: int) -> Any:
    return x.sum(*axis)


def _chain(module: Any, x: Any) -> Any:
    """Twenty kernels: every second is a reduction that the next one waits for."""
    for _ in range(10):
        x = module.tanh(x - x.sum(0) / 4096)
    return x


def _network(m: Any, x: Any, u: Any, w: Any) -> Any:
    """The last state of a recurrent network."""
    state = x[0] @ u * 0

    def step(h: Any, row: Any) -> Any:
        return m.tanh(row @ u + h @ w)

    if m.__name__ == "jax.numpy":
        scan = importlib.import_module("jax").lax.scan
        return scan(lambda h, row: (step(h, row), None), state, x)[0]
    for row in x:
        state = step(state, row)
    return state


def _network_graph(pt: Any, x: Any, u: Any, w: Any) -> Any:
    states, _ = importlib.import_module("graphc").scan(
        lambda row, h, u, w: pt.tanh(row @ u + h @ w),
        sequences=[x],
        outputs_info=[x[0] @ u * 0],
        non_sequences=[u, w],
    )
    return states[-1]


def _network_gradient(m: Any, x: Any, u: Any, w: Any) -> Any:
    """The derivative of the sum of the squares of the last state by the weights of the states."""
    if m.__name__ == "jax.numpy":
        return importlib.import_module("jax").grad(lambda w: (_network(m, x, u, w) ** 2).sum())(w)
    states = [x[0] @ u * 0]
    for row in x:
        states.append(m.tanh(row @ u + states[-1] @ w))
    found, back = w * 0, 2 * states[-1]
    for after, before in zip(states[:0:-1], states[-2::-1], strict=True):
        inner = back * (1 - after * after)
        found, back = found + before.T @ inner, inner @ w.T
    return found


def _network_gradient_graph(pt: Any, x: Any, u: Any, w: Any) -> Any:
    cost = (_network_graph(pt, x, u, w) ** 2).sum()
    return importlib.import_module("graphc").grad(cost, w)


def _chains(m: Any, x: Any, a: Any) -> Any:
    """The last row of first-order autoregressions, side by side."""
    if m.__name__ == "jax.numpy":
        scan = importlib.import_module("jax").lax.scan
        return scan(lambda y, row: (a * y + row, None), x[0] * 0, x)[0]
    state = x[0] * 0
    for row in x:
        state = a * state + row
    return state


def _chains_graph(pt: Any, x: Any, a: Any) -> Any:
    states, _ = importlib.import_module("graphc").scan(
        lambda row, y, a: a * y + row, sequences=[x], outputs_info=[x[0] * 0], non_sequences=[a]
    )
    return states[-1]


LINES: tuple[Line, ...] = (
    Line(
        "fused_elementwise",
        (("float32", 1), ("float32", 1)),
        lambda pt, x, y: pt.exp(-x * x) * y + pt.tanh(y),
        ((N,), (N,)),
        ((10_007,), (10_007,)),
        lambda m, x, y: m.exp(-x * x) * y + m.tanh(y),
        lambda x, y: 12 * x[0],
    ),
    Line(
        "sum",
        (("float32", 1),),
        lambda pt, x: x.sum(),
        ((4 * N,),),
        ((100_003,),),
        _sum,
        lambda x: 4 * x[0],
    ),
    Line(
        "row_sums",
        (("float32", 2),),
        lambda pt, x: x.sum(axis=1),
        ((1 << 16, 1 << 12),),
        ((7, 1031),),
        lambda m, x: _sum(m, x, 1),
        lambda x: 4 * x[0] * x[1],
    ),
    Line(
        "column_sums",
        (("float32", 2),),
        lambda pt, x: x.sum(axis=0),
        ((1 << 16, 1 << 12),),
        ((1031, 7),),
        lambda m, x: _sum(m, x, 0),
        lambda x: 4 * x[0] * x[1],
    ),
    Line(
        "softmax",
        (("float32", 2),),
        lambda pt, x: pt.special.softmax(x, axis=1),
        ((ROWS, ROWS),),
        ((5, 1031),),
        _softmax,
        lambda x: 8 * x[0] * x[1],
        goal=0.85,
    ),
    Line(
        "transpose",
        (("float32", 2),),
        lambda pt, x: x.T + 1,
        ((1 << 14, 1 << 14),),
        ((37, 101),),
        lambda m, x: x.T + 1,
        lambda x: 8 * x[0] * x[1],
        goal=0.0,
    ),
    Line(
        "twenty_kernels",
        (("float32", 1),),
        lambda pt, x: _chain(pt, x),
        ((4096,),),
        ((4096,),),
        _chain,
        lambda x: 0,
        goal=0.0,
    ),
    Line(
        "one_kernel",
        (("float32", 1),),
        lambda pt, x: x + 1,
        ((256,),),
        ((256,),),
        lambda m, x: x + 1,
        lambda x: 0,
        goal=0.0,
    ),
    Line(
        "recurrent_network",
        (("float32", 3), ("float32", 2), ("float32", 2)),
        _network_graph,
        ((512, 128, 256), (256, 256), (256, 256)),
        ((5, 3, 4), (4, 4), (4, 4)),
        _network,
        lambda *shapes: 0,
        goal=0.0,
    ),
    Line(
        "recurrent_network_gradient",
        (("float32", 3), ("float32", 2), ("float32", 2)),
        _network_gradient_graph,
        ((512, 128, 256), (256, 256), (256, 256)),
        ((5, 3, 4), (4, 4), (4, 4)),
        _network_gradient,
        lambda *shapes: 0,
        goal=0.0,
    ),
    Line(
        "running_sums",
        (("float32", 1),),
        lambda pt, x: pt.cumsum(x),
        ((N,),),
        ((20_011,),),
        lambda m, x: m.cumsum(x, 0),
        lambda x: 12 * x[0],
    ),
    Line(
        "sort_rows",
        (("float32", 2),),
        lambda pt, x: pt.sort(x, axis=1),
        ((1 << 14, 4096),),
        ((3, 300),),
        _sorted,
        lambda x: 8 * x[0] * x[1],
        goal=0.0,
    ),
    Line(
        "product",
        (("float32", 2), ("float32", 2)),
        lambda pt, x, y: x @ y,
        ((8192, 8192), (8192, 8192)),
        ((33, 70), (70, 65)),
        lambda m, x, y: x @ y,
        lambda x, y: 4 * (x[0] * x[1] + y[0] * y[1] + x[0] * y[1]),
        goal=0.0,
    ),
    Line(
        "autoregressions",
        (("float32", 2), ("float32", 1)),
        _chains_graph,
        ((10_000, 10_000), (10_000,)),
        ((6, 5), (5,)),
        _chains,
        lambda *shapes: 0,
        goal=0.0,
    ),
)
