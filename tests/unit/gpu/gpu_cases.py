# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs of each kernel class, with inputs that cover the edges of blocks and vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import graphc
import graphc.tensor as pt
from graphc.graph.tensor.variable import TensorVariable
from graphc.ops.cumulative import Cumulative, LinearRecurrence
from graphc.tensor.random.type import RandomGeneratorType, RandomGeneratorVariable
from graphc_runtime.generators import state_of

Variables = Sequence[TensorVariable]


@dataclass(frozen=True)
class Case:
    """A graph.

    Attributes:
        inputs: dtype and number of dimensions of each.
        build: gives the outputs.
        shapes: of the inputs, for each run.
        kernels: how many kernels there are.
        registers: a bound on those of a thread.
        functions: how many functions kernels call.
        frame: bytes of the stack that calls of these take in a kernel, for results in memory.
        callers: how many kernels call them; None for all.
    """

    inputs: Sequence[tuple[str, int]]
    build: Callable[..., TensorVariable | list[TensorVariable]]
    shapes: Sequence[Sequence[tuple[int, ...]]]
    kernels: int = 1
    registers: int = 64
    functions: int = 0
    frame: int = 0
    callers: int | None = None

    def graph(self) -> tuple[Variables, list[TensorVariable]]:
        """Inputs and outputs."""
        variables = [
            pt.tensor(f"x{i}", dtype=dtype, shape=(None,) * ndim)
            for i, (dtype, ndim) in enumerate(self.inputs)
        ]
        outputs = self.build(*variables)
        return variables, outputs if isinstance(outputs, list) else [outputs]

    def text(self) -> str:
        """The module that is emitted."""
        inputs, outputs = self.graph()
        function = graphc.function(inputs, outputs, mode="interpret")
        return function.ir_stages()["graph"]

    def values(self, shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
        """Inputs of these shapes."""
        rng = np.random.default_rng(len(shapes) + sum(map(sum, shapes)))
        found = []
        for (dtype, _), shape in zip(self.inputs, shapes, strict=True):
            kind = np.dtype(dtype).kind
            if kind == "b":
                value = rng.random(shape) < 0.5
            elif kind in "iu":
                value = rng.integers(0, 7, shape)
            else:
                value = rng.normal(size=shape)
                if kind == "c":
                    value = value + 1j * rng.normal(size=shape)
            found.append(np.asarray(value).astype(dtype))
        return found


def _scan(step: Callable[..., TensorVariable], x: TensorVariable, state: TensorVariable) -> TensorVariable:
    return graphc.scan(step, sequences=[x], outputs_info=[state], return_updates=False)


def _network(
    x: TensorVariable, w: TensorVariable, gradient: bool = False
) -> TensorVariable | list[TensorVariable]:
    """The states of a recurrent network, or the last one's derivative by the weights."""
    states = _scan(lambda row, state: pt.tanh(row + state @ w), x, x[0])
    return list(graphc.grad(pt.sum(states[-1] ** 2), [w])) if gradient else states


def _structured(a: TensorVariable, b: TensorVariable) -> list[TensorVariable]:
    """Solutions of systems of which one triangle is read: the other one is of other numbers."""
    positive = a / 9 + 9 * pt.eye(a.shape[-1])
    return [
        pt.linalg.solve(positive, b, assume_a="pos", lower=True),
        pt.linalg.solve(a, b, assume_a="sym", transposed=True),
    ]


def _vectors(*sizes: int) -> list[list[tuple[int, ...]]]:
    return [[(n,)] for n in sizes]


_SIZES = (0, 1, 3, 1031)


def _philox() -> RandomGeneratorVariable:
    """A generator of which one of the next normal numbers is of a tail (see NumPy's `ki_double[0]`)."""
    words = np.random.Philox(7).random_raw(20_000)
    tails = np.flatnonzero((words & 255 == 0) & (words >> 53 & 255 > 0xEF))
    made = np.random.Generator(np.random.Philox(7))
    made.random(int(tails[0]) - 5)
    return RandomGeneratorType("Philox").filter_variable(pt.constant(state_of(made)))


_PHILOX = _philox()
CASES: dict[str, Case] = {
    **{
        f"elementwise {dtype}": Case(
            [(dtype, 1), (dtype, 1)], lambda x, y: x * y + x, [[(n,)] * 2 for n in _SIZES]
        )
        for dtype in (
            "float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 complex64 complex128"
        ).split()
    },
    "elementwise bool": Case(
        [("bool", 1), ("float32", 1)], lambda b, x: pt.switch(b, x, -x) > 0, [[(1031,)] * 2]
    ),
    "elementwise functions": Case(
        [("float32", 1)],
        lambda x: pt.exp(x) + pt.log(pt.abs(x)) + pt.tanh(x) + pt.sqrt(pt.abs(x)) + pt.floor(x),
        _vectors(*_SIZES),
        registers=96,
    ),
    "elementwise functions float64": Case(
        [("float64", 1)],
        lambda x: pt.erf(x) + pt.log1p(pt.abs(x)) + pt.expm1(x),
        _vectors(*_SIZES),
        registers=128,
    ),
    "trigonometric functions": Case(
        [("float64", 1)],
        lambda x: pt.sin(x) * pt.cos(x) + pt.arctan(x) + 1,
        _vectors(3, 131),
        functions=4,
        frame=16,
    ),
    "powers": Case(
        [("float64", 1), ("float64", 1)],
        lambda x, y: pt.pow(pt.abs(x) + 0.1, y) * 2 - pt.sqrt(pt.abs(y)),
        [[(3,)] * 2, [(131,)] * 2],
        functions=2,
        frame=16,
    ),
    "error functions": Case(
        [("float64", 1)], lambda x: pt.erf(x) * 0.5 + pt.erfc(x), _vectors(3, 131), registers=128
    ),
    "gammaln": Case(
        [("float64", 1)],
        lambda x: pt.gammaln(pt.abs(x) + 1) - pt.log1p(pt.abs(x)),
        _vectors(3, 131),
    ),
    "functions of complex numbers": Case(
        [("complex128", 1)],
        lambda x: pt.exp(x) * pt.sqrt(x) + pt.log(x),
        _vectors(3, 131),
        functions=4,
        frame=16,
    ),
    "broadcast row": Case(
        [("float32", 2), ("float32", 1)], lambda x, v: x * v, [[(5, 3), (3,)], [(3, 200), (200,)]]
    ),
    "broadcast scalar": Case(
        [("float32", 2), ("float32", 0)], lambda x, v: x * v, [[(5, 3), ()], [(31, 33), ()]]
    ),
    "strided": Case([("float32", 2)], lambda x: x[::-1, ::2] + 1, [[(5, 7)], [(0, 3)]]),
    "strided writes": Case(
        [("float32", 2)],
        lambda x: pt.inc_subtensor(pt.set_subtensor(x[1::2, ::-1], 0.0)[::-3], 1.0),
        [[(5, 7)], [(0, 3)]],
        kernels=5,
    ),
    "row sums": Case(
        [("float32", 2)], lambda x: pt.sum(pt.exp(x), axis=1), [[(3, 5)], [(2, 1031)], [(2, 0)]], kernels=3
    ),
    "row products": Case(
        [("float64", 3)], lambda x: pt.prod(x, axis=2), [[(2, 3, 5)], [(1, 2, 300)]], kernels=3
    ),
    "row maxima": Case([("int32", 2)], lambda x: pt.max(x, axis=1), [[(3, 5)], [(2, 300)]], kernels=3),
    "softmax": Case(
        [("float32", 2)], lambda x: pt.special.softmax(x, axis=1), [[(3, 5)], [(2, 1031)]], kernels=6
    ),
    "softmax float64": Case(
        [("float64", 2)],
        lambda x: pt.special.softmax(x, axis=1),
        [[(3, 5)], [(2, 300)]],
        kernels=6,
        registers=72,
    ),
    "log-sum-exp": Case(
        [("float32", 2)], lambda x: pt.logsumexp(x, axis=1), [[(3, 5)], [(2, 1031)]], kernels=5
    ),
    "layer norm": Case(
        [("float32", 2)],
        lambda x: (x - pt.mean(x, axis=1, keepdims=True)) / (pt.std(x, axis=1, keepdims=True) + 1),
        [[(3, 5)], [(2, 300)]],
        kernels=8,
    ),
    "sum of all": Case(
        [("float32", 2)], lambda x: pt.sum(x * x), [[(3, 5)], [(40, 1031)], [(0, 3)]], kernels=2
    ),
    "sum and maximum": Case(
        [("float64", 1)], lambda x: [pt.sum(x), pt.max(x)], [[(1,)], [(9000,)]], kernels=2
    ),
    "column sums": Case(
        [("float32", 2)], lambda x: pt.sum(pt.exp(x), axis=0), [[(3, 5)], [(700, 33)], [(0, 3)]], kernels=2
    ),
    "column maxima": Case(
        [("float64", 3)], lambda x: pt.max(x, axis=1), [[(2, 3, 5)], [(2, 40, 70)]], kernels=2
    ),
    "transpose": Case([("float32", 2)], lambda x: x.T + 1, [[(3, 5)], [(40, 70)], [(0, 3)]]),
    "transpose of axes": Case(
        [("float64", 3)], lambda x: x.transpose(2, 0, 1) * 2, [[(2, 3, 5)], [(2, 40, 33)]]
    ),
    "matrix product": Case(
        [("float32", 2), ("float32", 2)],
        lambda a, b: a @ b,
        [[(3, 5), (5, 2)], [(70, 33), (33, 65)]],
        kernels=2,
        registers=192,
    ),
    "product of halves": Case(
        [("float16", 2), ("float16", 2)],
        lambda a, b: a.T @ b,
        [[(5, 3), (5, 2)], [(33, 70), (33, 3)], [(16, 24), (16, 8)], [(0, 3), (0, 5)]],
        kernels=3,
        registers=128,
    ),
    "products of a batch": Case(
        [("float64", 4), ("float64", 4)],
        lambda a, b: a @ b.mT,
        [[(2, 2, 3, 5), (2, 2, 2, 5)], [(1, 1, 66, 18), (1, 1, 3, 18)]],
        kernels=1,
        registers=128,
    ),
    "complex products": Case(
        [("complex64", 2), ("complex64", 2)],
        lambda a, b: [a @ b, pt.cast(a, "complex128") @ pt.cast(b, "complex128")],
        [[(3, 5), (5, 2)], [(70, 18), (18, 3)]],
        kernels=4,
        registers=168,
    ),
    "sort": Case(
        [("float32", 2)],
        lambda x: pt.sort(x, axis=1),
        [[(3, 1)], [(2, 70)], [(0, 3)]],
        kernels=6,
        registers=128,
    ),
    "cholesky": Case(
        [("float64", 3)],
        lambda x: pt.linalg.cholesky(x @ x.mT + pt.eye(x.shape[-1])),
        [[(2, 3, 3)], [(1, 35, 35)]],
        kernels=12,
        registers=128,
    ),
    "triangular systems": Case(
        [("float32", 2), ("float32", 2)],
        lambda a, b: [
            pt.linalg.solve_triangular(pt.exp(a), b, lower=lower, trans=trans, unit_diagonal=True)
            for lower, trans in ((True, 0), (True, 1), (False, 0))
        ],
        [[(3, 3), (3, 2)], [(4, 4), (4, 33)]],
        kernels=13,
        registers=96,
    ),
    "systems and determinants": Case(
        [("float64", 3), ("float64", 3)],
        lambda a, b: [pt.linalg.solve(a, b), pt.linalg.det(a)],
        [[(2, 3, 3), (2, 3, 2)], [(1, 33, 33), (1, 33, 1)]],
        kernels=17,
        registers=128,
    ),
    "systems with structure": Case(
        [("float64", 3), ("float64", 3)],
        _structured,
        [[(2, 3, 3), (2, 3, 2)], [(1, 33, 33), (1, 33, 1)]],
        kernels=22,
        registers=64,
    ),
    "positions of extremes": Case(
        [("float32", 2)],
        lambda x: [pt.argmax(x, axis=1)],
        [[(3, 5)], [(0, 5)], [(2, 300)]],
        kernels=3,
    ),
    # Rows are read once for both; 512 threads have 64 KiB of reads under way.
    "positions of two extremes": Case(
        [("float32", 2)],
        lambda x: [pt.argmax(x, axis=1), pt.argmin(x, axis=1)],
        [[(3, 5)], [(0, 5)], [(2, 300)]],
        kernels=3,
        registers=96,
    ),
    "positions that sort": Case(
        [("int64", 1)], pt.argsort, [[(0,)], [(5,)], [(33,)]], kernels=6, registers=128
    ),
    "take": Case([("float32", 2), ("int64", 1)], lambda x, i: x[i], [[(8, 5), (4,)]], kernels=3),
    "scan": Case(
        [("float32", 2), ("float32", 1), ("float32", 0)],
        lambda x, h, a: _scan(lambda row, state: pt.tanh(a * state + row), x, h),
        [[(5, 3), (3,), ()], [(37, 70), (70,), ()], [(0, 3), (3,), ()]],
        kernels=2,
    ),
    "last row of a scan": Case(
        [("float64", 2), ("float64", 1), ("float64", 0)],
        lambda x, h, a: _scan(lambda row, state: pt.exp(a * state - row), x, h)[-1],
        [[(5, 3), (3,), ()], [(4, 70), (70,), ()]],
        kernels=3,
    ),
    "last row of chains": Case(
        [("float32", 2), ("float32", 1)],
        lambda x, a: _scan(lambda row, state: a * state + row, x, x[0] * 0)[-1],
        [[(5, 3), (3,)], [(4, 70), (70,)], [(1, 3), (3,)]],
        kernels=3,
    ),
    "recurrent network": Case(
        [("float32", 3), ("float32", 2)],
        _network,
        [[(3, 3, 5), (5, 5)], [(2, 5, 40), (40, 40)]],
        kernels=10,
        registers=178,
    ),
    "gradient of a recurrent network": Case(
        [("float64", 3), ("float64", 2)],
        lambda x, w: _network(x, w, gradient=True),
        [[(3, 3, 5), (5, 5)], [(2, 5, 40), (40, 40)]],
        kernels=19,
        registers=128,
    ),
    "put": Case(
        [("float32", 1), ("int64", 1)], lambda x, i: x[i].inc(1.0), [[(8,), (9,)]], kernels=12, registers=128
    ),
    "draws": Case(
        [("float64", 2)],
        lambda x: [
            pt.random.normal(x[0], 9.0, size=x.shape, rng=_PHILOX),
            pt.random.uniform(x[0], 9.0, size=x.shape, rng=_PHILOX) * 2,
        ],
        [[(3, 5)]],
        kernels=22,
        registers=96,
    ),
    "draws of several words": Case(
        [("float64", 1)],
        lambda x: pt.random.gamma(abs(x[0]), 2.0, size=x.shape, rng=_PHILOX),
        [[(150,)]],
        kernels=24,
        registers=96,
        functions=4,
        frame=16,
        callers=2,
    ),
    "running sums": Case([("float64", 1)], pt.cumsum, [[(0,)], [(29,)], [(9000,)]], kernels=2, registers=96),
    "running sums of columns": Case(
        [("float64", 2)], lambda x: pt.cumsum(x, axis=0), [[(3, 5)], [(3, 700)], [(300, 3)]], kernels=3
    ),
    "running products of rows": Case(
        [("float32", 3)],
        lambda x: pt.cumprod(x, axis=2),
        [[(2, 3, 5)], [(1, 2, 2100)]],
        kernels=2,
        registers=72,
    ),
    "running maxima, backwards": Case(
        [("float32", 1), ("complex128", 1)],
        lambda x, z: [Cumulative("max", reverse=True)(x), Cumulative("add", reverse=True)(z)],
        [[(5,), (0,)], [(8300,), (1100,)]],
        kernels=5,
        registers=96,
    ),
    "linear recurrence": Case(
        [("float64", 1), ("float64", 0)],
        lambda x, a: _scan(lambda row, state: pt.tanh(a) * state + row, x, pt.constant(0.5)),
        [[(5,), ()], [(8300,), ()]],
        kernels=3,
        registers=96,
    ),
    "linear recurrences": Case(
        [("float32", 2), ("float32", 2)],
        lambda a, b: [LinearRecurrence(reverse)(pt.tanh(a), b) for reverse in (False, True)],
        [[(0, 3), (0, 3)], [(3, 5), (3, 5)], [(130, 33), (130, 33)]],
        kernels=6,
        registers=96,
    ),
    "join": Case(
        [("float32", 2), ("float32", 2)],
        lambda x, y: pt.join(0, pt.exp(x), -y),
        [[(3, 5), (2, 5)]],
        kernels=2,
    ),
}
