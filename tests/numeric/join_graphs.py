# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random graphs full of joins, with what NumPy makes of them.

Every step is done to a variable and to an array. Joined are what elementwise operations, reductions,
products, gathers, updates, scans and other joins compute, seen through views, also several times;
arguments; empty arrays.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

import graphc
import graphc.tensor as pt

SIZES = (3, 2, 1, 4, 0)
DTYPES = ("float64", "float64", "float32", "int64", "bool", "complex128")


class Choices:
    """Where decisions come from: ``integer(low, high)`` returns an int, both ends included; 0 is the simplest
    choice.
    """

    def __init__(self, integer: Callable[[int, int], int]) -> None:
        self.integer = integer

    @classmethod
    def seeded(cls, seed: int) -> Choices:
        """Decisions of a pseudorandom generator."""
        return cls(random.Random(seed).randint)

    def index(self, count: int) -> int:
        """A number below ``count``."""
        return self.integer(0, count - 1)

    def pick(self, items: Sequence[Any]) -> Any:
        """One of the items."""
        return items[self.index(len(items))]

    def chance(self, one_in: int) -> bool:
        """True once in ``one_in`` times."""
        return self.integer(0, one_in - 1) == one_in - 1


class Pair(NamedTuple):
    """A variable and its value."""

    variable: Any
    value: np.ndarray


@dataclass
class JoinGraph:
    """A graph under construction.

    Attributes:
        inputs: variables and values of the arguments.
        pool: everything computed so far.
    """

    choices: Choices
    dtype: str
    inputs: list[Pair] = field(default_factory=list)
    pool: list[Pair] = field(default_factory=list)
    outputs: list[Pair] = field(default_factory=list)

    def argument(self, shape: Sequence[int]) -> Pair:
        """A new argument, of static or dynamic shape."""
        number = len(self.inputs)
        values = np.random.default_rng(number).integers(-3, 4, shape).astype(self.dtype)
        kind = tuple(shape) if self.choices.chance(3) else (None,) * len(shape)
        pair = Pair(pt.tensor(f"x{number}", dtype=self.dtype, shape=kind), values)
        self.inputs.append(pair)
        return pair

    def of_shape(self, shape: tuple[int, ...], depth: int) -> Pair:
        """Something of a shape, computed by a few steps."""
        known = [pair for pair in self.pool if pair.value.shape == shape]
        if known and self.choices.chance(4):
            return self.choices.pick(known)
        if depth <= 0 or len(shape) > 3:
            return self.argument(shape)
        variable, value = self.choices.pick(_BY_RANK[len(shape)])(self, shape, depth - 1)
        pair = Pair(variable, np.asarray(value))
        assert pair.value.shape == shape, (pair, shape)
        self.pool.append(pair)
        return pair

    def size(self) -> int:
        """A size of a dimension."""
        return self.choices.pick(SIZES)


Maker = Callable[[JoinGraph, tuple[int, ...], int], Pair]


def _elementwise(graph: JoinGraph, shape: tuple[int, ...], depth: int) -> Pair:
    x = graph.of_shape(shape, depth)
    if graph.dtype == "bool":
        return Pair(~x.variable, ~x.value)
    which = graph.choices.index(3)
    if which == 0:
        return Pair(x.variable * 2 + 1, x.value * 2 + 1)
    if which == 1:
        y = graph.of_shape(shape, depth)
        return Pair(x.variable - y.variable, x.value - y.value)
    return Pair(pt.abs(x.variable).astype(graph.dtype), np.abs(x.value).astype(graph.dtype))


def _sum(graph: JoinGraph, shape: tuple[int, ...], depth: int) -> Pair:
    axis = graph.choices.index(len(shape) + 1)
    x = graph.of_shape((*shape[:axis], graph.size(), *shape[axis:]), depth)
    if graph.dtype == "bool":
        return Pair(x.variable.any(axis=axis), np.asarray(x.value.any(axis=axis)))
    return Pair(x.variable.sum(axis=axis), x.value.sum(axis=axis))


def _transpose(graph: JoinGraph, shape: tuple[int, ...], depth: int) -> Pair:
    x = graph.of_shape(shape[::-1], depth)
    return Pair(x.variable.T, x.value.T)


def _matmul(graph: JoinGraph, shape: tuple[int, ...], depth: int) -> Pair:
    if graph.dtype == "bool":
        return _elementwise(graph, shape, depth)
    inner = graph.size()
    x, y = graph.of_shape((shape[0], inner), depth), graph.of_shape((inner, shape[1]), depth)
    return Pair(x.variable @ y.variable, x.value @ y.value)


def _matrix_vector(graph: JoinGraph, shape: tuple[int, ...], depth: int) -> Pair:
    if graph.dtype == "bool":
        return _elementwise(graph, shape, depth)
    inner = graph.size()
    x, y = graph.of_shape((shape[0], inner), depth), graph.of_shape((inner,), depth)
    return Pair(x.variable @ y.variable, x.value @ y.value)


def _ravel(graph: JoinGraph, shape: tuple[int, ...], depth: int) -> Pair:
    rows = next(n for n in (3, 2, 1) if shape[0] % n == 0)
    x = graph.of_shape((rows, shape[0] // rows), depth)
    return Pair(x.variable.ravel(), x.value.ravel())


def _reshape(graph: JoinGraph, shape: tuple[int, ...], depth: int) -> Pair:
    x = graph.of_shape((shape[0] * shape[1],), depth)
    return Pair(x.variable.reshape(shape), x.value.reshape(shape))


def _row(graph: JoinGraph, shape: tuple[int, ...], depth: int) -> Pair:
    x = graph.of_shape((2, *shape), depth)
    return Pair(x.variable[1], x.value[1])


def _reverse(graph: JoinGraph, shape: tuple[int, ...], depth: int) -> Pair:
    x = graph.of_shape(shape, depth)
    return Pair(x.variable[::-1], x.value[::-1])


def _take(graph: JoinGraph, shape: tuple[int, ...], depth: int) -> Pair:
    x = graph.of_shape((2, *shape[1:]), depth)
    where = np.arange(shape[0]) % 2
    return Pair(x.variable[where], x.value[where])


def _update(graph: JoinGraph, shape: tuple[int, ...], depth: int) -> Pair:
    x = graph.of_shape(shape, depth)
    sliced = x.variable[:1]
    if shape[0] < 2 or not hasattr(sliced.owner.op, "idx_list"):
        return x
    # The first row is set, unless the slice has been seen through.
    y = graph.of_shape(shape[1:], depth)
    value = np.array(x.value)
    value[0] = y.value
    return Pair(pt.set_subtensor(sliced, pt.expand_dims(y.variable, 0)), value)


def _tiled(graph: JoinGraph, shape: tuple[int, ...], depth: int) -> Pair:
    if shape[0] < 2:
        return _join(graph, shape, depth)
    cut = graph.choices.integer(1, shape[0] - 1)
    a, b = graph.of_shape((cut, *shape[1:]), depth), graph.of_shape((shape[0] - cut, *shape[1:]), depth)
    buffer = pt.zeros(shape, dtype=graph.dtype)
    split = a.variable.shape[0] if graph.choices.chance(2) else cut
    first = pt.set_subtensor(buffer[:split], a.variable)
    return Pair(pt.set_subtensor(first[split:], b.variable), np.concatenate([a.value, b.value]))


def _running_sum(graph: JoinGraph, shape: tuple[int, ...], depth: int) -> Pair:
    if graph.dtype == "bool":
        return _elementwise(graph, shape, depth)
    x, start = graph.of_shape(shape, depth), graph.of_shape(shape[1:], depth)
    trace = graphc.scan(
        lambda row, h: pt.specify_shape(h * 2 + row, shape[1:]),
        sequences=[x.variable],
        outputs_info=[pt.specify_shape(start.variable, shape[1:])],
        return_updates=False,
    )
    rows, h = [], start.value
    for row in x.value:
        h = (h * 2 + row).astype(graph.dtype)
        rows.append(h)
    return Pair(trace, np.array(rows, graph.dtype).reshape(shape))


def _joining_scan(graph: JoinGraph, shape: tuple[int, ...], depth: int) -> Pair:
    """Rows that are joins."""
    if graph.dtype == "bool":
        return _elementwise(graph, shape, depth)
    x = graph.of_shape(shape, depth)
    n = shape[1] // 2
    collected = graphc.scan(
        lambda row: pt.concatenate([row[n:] * 2, row[:n] + 1]),
        sequences=[x.variable],
        outputs_info=[None],
        return_updates=False,
    )
    return Pair(collected, np.concatenate([x.value[:, n:] * 2, x.value[:, :n] + 1], axis=1))


def _join(graph: JoinGraph, shape: tuple[int, ...], depth: int) -> Pair:
    axis = graph.choices.index(len(shape))
    parts: list[Pair] = []
    left = shape[axis]
    while left or not parts:
        size = graph.choices.integer(0, left) if len(parts) < 3 else left
        left -= size
        parts.append(graph.of_shape((*shape[:axis], size, *shape[axis + 1 :]), depth))
    named = axis - len(shape) if graph.choices.chance(3) else axis
    joined = pt.concatenate([part.variable for part in parts], axis=named)
    return Pair(joined, np.concatenate([part.value for part in parts], axis=axis))


def _repeated(graph: JoinGraph, shape: tuple[int, ...], depth: int) -> Pair:
    if shape[0] % 2:
        return _join(graph, shape, depth)
    x = graph.of_shape((shape[0] // 2, *shape[1:]), depth)
    return Pair(pt.concatenate([x.variable, x.variable]), np.concatenate([x.value, x.value]))


def _part_of_split(graph: JoinGraph, shape: tuple[int, ...], depth: int) -> Pair:
    other = graph.size()
    x = graph.of_shape(shape, depth)
    y = graph.of_shape((other, *shape[1:]), depth)
    joined = pt.concatenate([x.variable, y.variable])
    parts = pt.split(joined, [x.variable.shape[0], y.variable.shape[0]], 2)
    return Pair(parts[0], x.value)


def _neighbours(graph: JoinGraph, shape: tuple[int, ...], depth: int) -> Pair:
    x = graph.of_shape(shape, depth)
    cut = graph.choices.integer(0, shape[0])
    return Pair(pt.concatenate([x.variable[:cut], x.variable[cut:]]), x.value)


def _stack(graph: JoinGraph, shape: tuple[int, ...], depth: int) -> Pair:
    if not 0 < shape[0] <= 4:
        return _join(graph, shape, depth)
    rows = [graph.of_shape(shape[1:], depth) for _ in range(shape[0])]
    return Pair(pt.stack([row.variable for row in rows]), np.stack([row.value for row in rows]))


_ANY: list[Maker] = [_elementwise, _sum, _elementwise]
_ROWS: list[Maker] = [
    *(_join, _join, _join, _repeated, _part_of_split, _neighbours, _stack, _tiled),
    *(_reverse, _take, _update, _running_sum),
]
_BY_RANK: dict[int, list[Maker]] = {
    0: _ANY,
    1: [*_ANY, *_ROWS, _ravel, _row, _matrix_vector],
    2: [*_ANY, *_ROWS, _transpose, _matmul, _reshape, _joining_scan],
    3: [*_ANY, *_ROWS, _transpose],
}


def build(choices: Choices, depth: int = 4) -> JoinGraph:
    """A graph with one to three results, at least one of which is a join."""
    graph = JoinGraph(choices, choices.pick(DTYPES))
    rank = choices.pick((1, 2, 2, 3))
    shape = tuple(choices.pick((4, 3, 2, 6, 1)) for _ in range(rank))
    graph.outputs.append(_join(graph, shape, depth))
    for _ in range(choices.index(3)):
        graph.outputs.append(choices.pick(graph.pool or graph.outputs))
    return graph
