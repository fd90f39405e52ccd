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

Shapes = Sequence[tuple[int, ...]]


@dataclass(frozen=True)
class Line:
    """Something that is measured.

    Attributes:
        name: of the line, and of the function in the artifact.
        dtypes: dtype and number of axes of each input.
        graph: takes `graphc.tensor` and the inputs; gives a result, several, or these and updates of states.
        shapes: of the inputs when time is taken.
        small: of the inputs when results are compared with float64.
        peer: the same with arrays and a module in NumPy's style (CuPy, jax.numpy), or with PyTorch.
        moved: bytes that have to be read and written, of the sizes of the inputs; 0 where that is no measure.
        goal: least part of the bandwidth of copies.
        peers: the libraries that can do it, and in a time that is worth the wait.
        tf32: products round float32 factors to 10 bits.
        draw: makes the inputs, where normal numbers are none.
        compare: what of the results is compared, where not all of them is determined.
    """

    name: str
    dtypes: Sequence[tuple[str, int]]
    graph: Callable[..., Any]
    shapes: Shapes
    small: Shapes
    peer: Callable[..., Any]
    moved: Callable[..., int] = lambda *shapes: 0
    goal: float = 0.0
    peers: Sequence[str] = ("torch", "cupy", "jax")
    tf32: bool = False
    draw: Callable[[np.random.Generator, Shapes], list[np.ndarray]] | None = None
    compare: Callable[[Any], Any] = lambda results: results

    def inputs(self, shapes: Shapes, seed: int = 0) -> list[np.ndarray]:
        """Values; large arrays repeat a block of random numbers, since drawing them would take long."""
        rng = np.random.default_rng(seed)
        if self.draw is not None:
            return self.draw(rng, shapes)
        found = []
        for (dtype, _), shape in zip(self.dtypes, shapes, strict=True):
            count = int(np.prod(shape, dtype=np.int64))
            block = rng.normal(size=min(count, 1 << 20)).astype(dtype)
            found.append(np.resize(block, shape))
        return found


N = 1 << 28
ROWS = 8192
BINS = 100_000


def _float32(count: int) -> tuple[tuple[str, int], ...]:
    return (("float32", count),)


def _graphc() -> Any:
    return importlib.import_module("graphc")


def _is_jax(m: Any) -> bool:
    return m.__name__ == "jax.numpy"


def _softmax(m: Any, x: Any) -> Any:
    if m.__name__ == "torch":
        return m.softmax(x, 1)
    e = m.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def _sorted(m: Any, x: Any) -> Any:
    return m.sort(x, 1)[0] if m.__name__ == "torch" else m.sort(x, 1)


def _variance(m: Any, x: Any) -> Any:
    return ((x - x.mean(axis=1, keepdims=True)) ** 2).mean(axis=1)


def _normalised(m: Any, x: Any) -> Any:
    return (x - x.mean(axis=1, keepdims=True)) / (_variance(m, x)[:, None] + 1e-5) ** 0.5


def _permuted(m: Any, x: Any) -> Any:
    return (x.permute(2, 0, 1) if m.__name__ == "torch" else x.transpose(2, 0, 1)) * 2


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

    if _is_jax(m):
        scan = importlib.import_module("jax").lax.scan
        return scan(lambda h, row: (step(h, row), None), state, x)[0]
    for row in x:
        state = step(state, row)
    return state


def _network_graph(pt: Any, x: Any, u: Any, w: Any) -> Any:
    states, _ = _graphc().scan(
        lambda row, h, u, w: pt.tanh(row @ u + h @ w),
        sequences=[x],
        outputs_info=[x[0] @ u * 0],
        non_sequences=[u, w],
    )
    return states[-1]


def _network_gradient(m: Any, x: Any, u: Any, w: Any) -> Any:
    """The derivative of the sum of the squares of the last state by the weights of the states."""
    if _is_jax(m):
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
    return _graphc().grad(cost, w)


def _chains(m: Any, x: Any, a: Any) -> Any:
    """The last row of first-order autoregressions, side by side."""
    if _is_jax(m):
        scan = importlib.import_module("jax").lax.scan
        return scan(lambda y, row: (a * y + row, None), x[0] * 0, x)[0]
    state = x[0] * 0
    for row in x:
        state = a * state + row
    return state


def _chains_graph(pt: Any, x: Any, a: Any) -> Any:
    states, _ = _graphc().scan(
        lambda row, y, a: a * y + row, sequences=[x], outputs_info=[x[0] * 0], non_sequences=[a]
    )
    return states[-1]


def _joined(m: Any, x: Any) -> Any:
    join = m.cat if m.__name__ == "torch" else m.concatenate
    return join([m.exp(x), m.tanh(x), x * 2, x + 1])


def _joined_graph(pt: Any, x: Any) -> Any:
    return pt.concatenate([pt.exp(x), pt.tanh(x), x * 2, x + 1])


def _added_up(m: Any, i: Any, v: Any) -> Any:
    """The sums of the values of each index below 100,000."""
    if _is_jax(m):
        return m.zeros(BINS, v.dtype).at[i].add(v)
    if m.__name__ == "torch":
        return m.zeros(BINS, dtype=v.dtype, device=v.device).index_add(0, i, v)
    return m.bincount(i.astype(int), v, BINS).astype(v.dtype)


def _logistic(m: Any, w: Any, x: Any, y: Any) -> Any:
    """The mean loss of a logistic regression, and its gradient."""
    z = x @ w
    loss = (m.log1p(m.exp(-abs(z))) + (z + abs(z)) / 2 - y * z).mean()
    return loss, (1 / (1 + m.exp(-z)) - y) / len(y) @ x


def _logistic_graph(pt: Any, w: Any, x: Any, y: Any) -> Any:
    z = x @ w
    cost = (pt.log1p(pt.exp(-abs(z))) + pt.maximum(z, 0) - y * z).mean()
    return [cost, _graphc().grad(cost, w)]


def _layers(m: Any, a: Any, b: Any, c: Any, x: Any, y: Any) -> Any:
    """The squared error of a network of three layers, and its gradients."""
    first = m.tanh(x @ a)
    second = m.tanh(first @ b)
    error = second @ c - y
    back = 2 * error / (y.shape[0] * y.shape[1])
    inner = back @ c.T * (1 - second * second)
    outer = inner @ b.T * (1 - first * first)
    return (error**2).mean(), x.T @ outer, first.T @ inner, second.T @ back


def _layers_graph(pt: Any, a: Any, b: Any, c: Any, x: Any, y: Any) -> Any:
    cost = ((pt.tanh(pt.tanh(x @ a) @ b) @ c - y) ** 2).mean()
    return [cost, *_graphc().grad(cost, [a, b, c])]


def _process(m: Any, length: Any, scale: Any, x: Any, y: Any) -> Any:
    """The negative log likelihood of a Gaussian process, but for a constant, and its gradients."""

    def kernel(length: Any, scale: Any) -> Any:
        return scale * m.exp(-((x - x.T) ** 2) / length**2)

    def cost(length: Any, scale: Any) -> Any:
        solve = importlib.import_module("jax.scipy.linalg").solve_triangular
        factor = m.linalg.cholesky(kernel(length, scale) + 0.1 * m.eye(x.shape[0]))
        return 0.5 * (solve(factor, y, lower=True) ** 2).sum() + m.log(m.diagonal(factor)).sum()

    if _is_jax(m):
        value, slopes = importlib.import_module("jax").value_and_grad(cost, argnums=(0, 1))(length, scale)
        return value, *slopes
    k = kernel(length, scale)
    whole = k + 0.1 * m.eye(x.shape[0])
    inverse = m.linalg.inv(whole)
    weights = inverse @ y
    slope = 0.5 * (inverse - weights[:, None] * weights[None, :])
    value = 0.5 * (y @ weights) + m.log(m.diagonal(m.linalg.cholesky(whole))).sum()
    return value, (slope * k * 2 * (x - x.T) ** 2 / length**3).sum(), (slope * k / scale).sum()


def _process_graph(pt: Any, length: Any, scale: Any, x: Any, y: Any) -> Any:
    x = pt.specify_shape(x, (None, 1))
    kernel = scale * pt.exp(-((x - x.T) ** 2) / length**2) + 0.1 * pt.eye(x.shape[0])
    factor = pt.linalg.cholesky(kernel)
    solved = pt.linalg.solve_triangular(factor, y, lower=True)
    cost = 0.5 * (solved**2).sum() + pt.log(pt.diagonal(factor)).sum()
    return [cost, *_graphc().grad(cost, [length, scale])]


def _convolved(m: Any, x: Any, w: Any) -> Any:
    if _is_jax(m):
        return importlib.import_module("jax").lax.conv(x, w, (1, 1), "VALID")
    if m.__name__ == "torch":
        return m.nn.functional.conv2d(x, w)
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, w)


def _convolved_gradients(m: Any, x: Any, w: Any) -> Any:
    """The derivatives of the sum of the squares of a convolution by both its arguments."""
    if _is_jax(m):
        grad = importlib.import_module("jax").grad
        return grad(lambda x, w: (_convolved(m, x, w) ** 2).sum(), argnums=(0, 1))(x, w)
    if m.__name__ == "torch":
        x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
        return m.autograd.grad((_convolved(m, x, w) ** 2).sum(), (x, w))
    back = 2 * _convolved(m, x, w)
    height, width = w.shape[2:]
    padded = np.pad(back, ((0, 0), (0, 0), (height - 1, height - 1), (width - 1, width - 1)))
    to_x = _convolved(m, padded, w[:, :, ::-1, ::-1].transpose(1, 0, 2, 3))
    to_w = _convolved(m, x.transpose(1, 0, 2, 3), back.transpose(1, 0, 2, 3)).transpose(1, 0, 2, 3)
    return to_x, to_w


def _convolved_gradients_graph(pt: Any, x: Any, w: Any) -> Any:
    return _graphc().grad((pt.nn.conv2d(x, w) ** 2).sum(), [x, w])


def _root(m: Any, a: Any) -> Any:
    """The square root by Newton's method, until all are near."""
    if _is_jax(m):
        loop = importlib.import_module("jax").lax.while_loop
        return loop(lambda x: abs(x * x - a).max() >= 1e-10, lambda x: 0.5 * (x + a / x), a * 0 + 1)
    return m.sqrt(a)


def _root_graph(pt: Any, a: Any) -> Any:
    graphc = _graphc()

    def step(x: Any, a: Any) -> Any:
        return 0.5 * (x + a / x), graphc.until(pt.max(abs(x * x - a)) < 1e-10)

    given = {"outputs_info": [a * 0 + 1], "non_sequences": [a], "n_steps": 200}
    return graphc.scan(step, return_updates=False, **given)[-1]


def _chains_gradient(m: Any, x: Any, a: Any) -> Any:
    """The derivative of the sum of the squares of the last row of `_chains` by the coefficients."""
    if _is_jax(m):
        return importlib.import_module("jax").grad(lambda a: (_chains(m, x, a) ** 2).sum())(a)
    state, slope = x[0] * 0, x[0] * 0
    for row in x:
        state, slope = a * state + row, state + a * slope
    return 2 * state * slope


def _chains_gradient_graph(pt: Any, x: Any, a: Any) -> Any:
    return _graphc().grad((_chains_graph(pt, x, a) ** 2).sum(), a)


def _normal_graph(pt: Any, x: Any) -> Any:
    rng = _graphc().shared(np.random.Generator(np.random.Philox(0)))
    after, numbers = pt.random.normal(0, 1, size=(x.shape[0],), rng=rng, return_next_rng=True)
    return [numbers], {rng: after}


def _normal(m: Any, x: Any) -> Any:
    if _is_jax(m):
        random = importlib.import_module("jax").random
        return random.normal(random.key(0), x.shape, dtype=m.float64)
    if m.__name__ == "numpy":
        return np.random.Generator(np.random.Philox(0)).normal(size=x.shape)
    return m.randn(x.shape, dtype=m.float64, device=x.device)


def _definite(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    size = shape[-1]
    factor = rng.normal(size=(size, size))
    return np.broadcast_to((factor @ factor.T / size + np.eye(size)).astype(dtype), shape).copy()


def _draw_definite(dtype: str) -> Any:
    return lambda rng, shapes: [_definite(rng, shapes[0], dtype), *(rng.normal(size=s) for s in shapes[1:])]


def _draw_indexed(rng: np.random.Generator, shapes: Any) -> list[np.ndarray]:
    values = np.resize(rng.normal(size=1 << 16).astype("float32"), shapes[0])
    return [values, rng.integers(0, shapes[0][0], shapes[1])]


def _draw_bins(rng: np.random.Generator, shapes: Any) -> list[np.ndarray]:
    return [rng.integers(0, BINS, shapes[0]), rng.normal(size=shapes[1]).astype("float32")]


def _draw_logistic(rng: np.random.Generator, shapes: Any) -> list[np.ndarray]:
    w, x, y = (np.resize(rng.normal(size=1 << 20).astype("float32"), shape) for shape in shapes)
    return [w * np.float32(0.1), x, (y > 0).astype("float32")]


def _draw_layers(rng: np.random.Generator, shapes: Any) -> list[np.ndarray]:
    return [
        rng.normal(size=s).astype("float32") * np.float32(0.03 if i < 3 else 1) for i, s in enumerate(shapes)
    ]


def _draw_process(rng: np.random.Generator, shapes: Any) -> list[np.ndarray]:
    return [np.asarray(0.7), np.asarray(1.3), rng.normal(size=shapes[2]), rng.normal(size=shapes[3])]


def _draw_positive(rng: np.random.Generator, shapes: Any) -> list[np.ndarray]:
    return [rng.random(shapes[0]) + 0.5]


def _draw_recurrent(rng: np.random.Generator, shapes: Any) -> list[np.ndarray]:
    return [rng.normal(size=s).astype("float32") * np.float32(0.03) for s in shapes]


def _row_line(name: str, shape: tuple[int, int], graph: Any, peer: Any, moved: int, **more: Any) -> Line:
    small = (5, 1031) if shape[0] < shape[1] else (1031, 7)
    return Line(name, _float32(2), graph, (shape,), (small,), peer, lambda x: moved * x[0] * x[1], **more)


def _sums(axis: int, rows: int, columns: int) -> Line:
    name = f"{'row' if axis else 'column'}_sums_{rows}x{columns}"
    return _row_line(
        name,
        (rows, columns),
        lambda pt, x: x.sum(axis=axis),
        lambda m, x: x.sum(axis),
        4,
        goal=0.9,
        peers=("torch", "jax") if columns == 4096 else ("jax",),
    )


def _softmaxes(rows: int, columns: int) -> Line:
    name = f"softmax_{rows}x{columns}"
    peers = ("torch", "jax") if rows == columns else ("jax",)
    return _row_line(
        name,
        (rows, columns),
        lambda pt, x: pt.special.softmax(x, axis=1),
        _softmax,
        8,
        goal=0.9,
        peers=peers,
    )


def _products(size: int, dtype: str, **more: Any) -> Line:
    return Line(
        f"product_{size}_{'tf32' if more else dtype}",
        ((dtype, 2), (dtype, 2)),
        lambda pt, x, y: x @ y,
        ((size, size), (size, size)),
        ((33, 70), (70, 65)),
        lambda m, x, y: x @ y,
        peers=("torch", "jax"),
        **more,
    )


# In the order of what a user gains; those of the host come last.
LINES: tuple[Line, ...] = (
    *(_sums(1, rows, (1 << 28) // rows) for rows in (1 << 20, 1 << 16, 1 << 12, 64)),
    *(_sums(0, rows, (1 << 28) // rows) for rows in (1 << 20, 1 << 16, 1 << 12)),
    *(_softmaxes(rows, (1 << 28) // rows) for rows in (1 << 18, 2048)),
    _softmaxes(ROWS, ROWS),
    _row_line(
        "variance", (1 << 16, 4096), lambda pt, x: x.var(axis=1), _variance, 4, goal=0.9, peers=("jax",)
    ),
    _row_line("normalised", (1 << 16, 4096), _normalised, _normalised, 8, goal=0.9, peers=("torch", "jax")),
    _row_line(
        "argmax",
        (1 << 16, 4096),
        lambda pt, x: x.argmax(axis=1),
        lambda m, x: x.argmax(1),
        4,
        goal=0.9,
        peers=("torch", "jax"),
    ),
    Line(
        "logistic_regression",
        (("float32", 1), ("float32", 2), ("float32", 1)),
        _logistic_graph,
        ((512,), (1 << 20, 512), (1 << 20,)),
        ((5,), (37, 5), (37,)),
        _logistic,
        lambda w, x, y: 8 * x[0] * x[1],
        peers=("torch", "jax"),
        draw=_draw_logistic,
    ),
    *(
        Line(
            f"network{suffix}",
            (*_float32(2) * 5,),
            _layers_graph,
            ((1024, 1024), (1024, 1024), (1024, 256), (8192, 1024), (8192, 256)),
            ((7, 5), (5, 6), (6, 3), (9, 7), (9, 3)),
            _layers,
            peers=("torch", "jax"),
            draw=_draw_layers,
            tf32=bool(suffix),
        )
        for suffix in ("", "_tf32")
    ),
    Line(
        "cholesky_2048",
        (("float64", 2),),
        lambda pt, a: pt.linalg.cholesky(a),
        ((2048, 2048),),
        ((9, 9),),
        lambda m, a: m.linalg.cholesky(a),
        peers=("jax",),
        draw=_draw_definite("float64"),
    ),
    Line(
        "cholesky_20000x32",
        (("float32", 3),),
        lambda pt, a: pt.linalg.cholesky(a),
        ((20_000, 32, 32),),
        ((2, 5, 5),),
        lambda m, a: m.linalg.cholesky(a),
        peers=("jax",),
        draw=_draw_definite("float32"),
    ),
    Line(
        "solve_1024",
        (("float64", 2), ("float64", 2)),
        lambda pt, a, b: pt.linalg.solve(a, b),
        ((1024, 1024), (1024, 16)),
        ((9, 9), (9, 2)),
        lambda m, a, b: m.linalg.solve(a, b),
        peers=("jax",),
        draw=_draw_definite("float64"),
    ),
    Line(
        "eigh_512",
        (("float64", 2),),
        lambda pt, a: list(pt.linalg.eigh(a)),
        ((512, 512),),
        ((9, 9),),
        lambda m, a: m.linalg.eigh(a),
        peers=("jax",),
        draw=_draw_definite("float64"),
        compare=lambda results: results[0],
    ),
    Line(
        "gaussian_process_2048",
        (("float64", 0), ("float64", 0), ("float64", 2), ("float64", 1)),
        _process_graph,
        ((), (), (2048, 1), (2048,)),
        ((), (), (9, 1), (9,)),
        _process,
        peers=("jax",),
        draw=_draw_process,
    ),
    Line(
        "convolution",
        (*_float32(4) * 2,),
        lambda pt, x, w: pt.nn.conv2d(x, w),
        ((64, 64, 56, 56), (64, 64, 3, 3)),
        ((2, 3, 7, 6), (4, 3, 3, 2)),
        _convolved,
        peers=("torch", "jax"),
    ),
    Line(
        "convolution_gradients",
        (*_float32(4) * 2,),
        _convolved_gradients_graph,
        ((64, 64, 56, 56), (64, 64, 3, 3)),
        ((2, 3, 7, 6), (4, 3, 3, 2)),
        _convolved_gradients,
        peers=("jax",),
    ),
    Line(
        "scatter_add",
        (("int64", 1), ("float32", 1)),
        lambda pt, i, v: pt.inc_subtensor(pt.zeros((BINS,), dtype="float32")[i], v),
        ((1 << 24,), (1 << 24,)),
        ((300,), (300,)),
        _added_up,
        lambda i, v: 12 * i[0],
        peers=("torch", "jax"),
        draw=_draw_bins,
    ),
    Line(
        "sort_1e8",
        _float32(1),
        lambda pt, x: pt.sort(x),
        ((100_000_000,),),
        ((3_001,),),
        lambda m, x: m.sort(x),
        lambda x: 8 * x[0],
        peers=("jax", "cupy"),
    ),
    Line(
        "sort_rows",
        _float32(2),
        lambda pt, x: pt.sort(x, axis=1),
        ((1 << 14, 4096),),
        ((3, 300),),
        _sorted,
        lambda x: 8 * x[0] * x[1],
        peers=("torch", "jax"),
    ),
    Line(
        "mask",
        _float32(1),
        lambda pt, x: x[x > 0],
        ((1 << 26,),),
        ((1_031,),),
        lambda m, x: x[x > 0],
        lambda x: 6 * x[0],
        goal=0.5,
        peers=("cupy",),
    ),
    Line(
        "gather",
        (("float32", 1), ("int64", 1)),
        lambda pt, x, i: x[i] * 2,
        ((1 << 26,), (1 << 26,)),
        ((101,), (300,)),
        lambda m, x, i: x[i] * 2,
        lambda x, i: 12 * i[0] + 4 * x[0],
        peers=("jax",),
        draw=_draw_indexed,
    ),
    Line(
        "recurrent_network",
        (("float32", 3), ("float32", 2), ("float32", 2)),
        _network_graph,
        ((512, 128, 256), (256, 256), (256, 256)),
        ((5, 3, 4), (4, 4), (4, 4)),
        _network,
        peers=("jax",),
    ),
    Line(
        "recurrent_network_gradient",
        (("float32", 3), ("float32", 2), ("float32", 2)),
        _network_gradient_graph,
        ((512, 128, 256), (256, 256), (256, 256)),
        ((5, 3, 4), (4, 4), (4, 4)),
        _network_gradient,
        peers=("jax",),
    ),
    Line(
        "recurrent_network_1024",
        (("float32", 3), ("float32", 2), ("float32", 2)),
        _network_graph,
        ((100, 64, 1024), (1024, 1024), (1024, 1024)),
        ((5, 3, 4), (4, 4), (4, 4)),
        _network,
        peers=("jax",),
        draw=_draw_recurrent,
    ),
    Line(
        "newton",
        (("float64", 1),),
        _root_graph,
        ((1 << 20,),),
        ((301,),),
        _root,
        peers=("jax",),
        draw=_draw_positive,
    ),
    Line(
        "autoregressions",
        (("float32", 2), ("float32", 1)),
        _chains_graph,
        ((10_000, 10_000), (10_000,)),
        ((6, 5), (5,)),
        _chains,
        peers=("jax",),
        draw=_draw_recurrent,
    ),
    Line(
        "autoregressions_gradient",
        (("float32", 2), ("float32", 1)),
        _chains_gradient_graph,
        ((1_000, 10_000), (10_000,)),
        ((6, 5), (5,)),
        _chains_gradient,
        peers=("jax",),
        draw=_draw_recurrent,
    ),
    Line(
        "normal_1e8",
        (("float64", 1),),
        _normal_graph,
        ((100_000_000,),),
        ((3_001,),),
        _normal,
        lambda x: 8 * x[0],
        peers=("jax",),
        draw=lambda rng, shapes: [np.zeros(shapes[0])],
    ),
    Line(
        "transpose",
        _float32(2),
        lambda pt, x: x.T + 1,
        ((1 << 14, 1 << 14),),
        ((37, 101),),
        lambda m, x: x.T + 1,
        lambda x: 8 * x[0] * x[1],
        peers=("torch", "jax"),
        goal=0.85,
    ),
    Line(
        "permute",
        _float32(3),
        lambda pt, x: x.transpose(2, 0, 1) * 2,
        ((256, 1024, 1024),),
        ((3, 37, 41),),
        _permuted,
        lambda x: 8 * x[0] * x[1] * x[2],
        peers=("jax",),
        goal=0.85,
    ),
    Line(
        "tanh_float16",
        (("float16", 1),),
        lambda pt, x: pt.tanh(x) * 2,
        ((N,),),
        ((10_007,),),
        lambda m, x: m.tanh(x) * 2,
        lambda x: 4 * x[0],
        peers=("jax",),
        goal=0.9,
    ),
    Line(
        "join",
        _float32(1),
        _joined_graph,
        ((1 << 25,),),
        ((103,),),
        _joined,
        lambda x: 20 * x[0],
        peers=("jax",),
        goal=0.9,
    ),
    Line(
        "running_sums",
        _float32(1),
        lambda pt, x: pt.cumsum(x),
        ((N,),),
        ((20_011,),),
        lambda m, x: m.cumsum(x, 0),
        lambda x: 12 * x[0],
        goal=0.9,
        peers=("jax",),
    ),
    Line(
        "running_sums_of_columns",
        _float32(2),
        lambda pt, x: pt.cumsum(x, axis=0),
        ((ROWS, ROWS),),
        ((301, 7),),
        lambda m, x: m.cumsum(x, 0),
        lambda x: 8 * x[0] * x[1],
        peers=("jax",),
    ),
    _products(8192, "float32"),
    _products(8192, "float32", tf32=True),
    _products(8192, "float16"),
    _products(4096, "float64"),
    Line(
        "fused_elementwise",
        (*_float32(1) * 2,),
        lambda pt, x, y: pt.exp(-x * x) * y + pt.tanh(y),
        ((N,), (N,)),
        ((10_007,), (10_007,)),
        lambda m, x, y: m.exp(-x * x) * y + m.tanh(y),
        lambda x, y: 12 * x[0],
        goal=0.9,
        peers=("torch", "jax"),
    ),
    Line(
        "sum",
        _float32(1),
        lambda pt, x: x.sum(),
        ((2 * N,),),
        ((100_003,),),
        lambda m, x: x.sum(),
        lambda x: 4 * x[0],
        goal=0.9,
        peers=("jax",),
    ),
    Line(
        "scale_float64",
        (("float64", 1),),
        lambda pt, x: x * 2 + 1,
        ((1 << 27,),),
        ((1_031,),),
        lambda m, x: x * 2 + 1,
        lambda x: 16 * x[0],
        goal=0.9,
        peers=("jax",),
    ),
    Line(
        "twenty_kernels",
        _float32(1),
        _chain,
        ((4096,),),
        ((4096,),),
        _chain,
        peers=("torch", "jax"),
    ),
    Line("one_kernel", _float32(1), lambda pt, x: x + 1, ((256,),), ((256,),), lambda m, x: x + 1),
)
