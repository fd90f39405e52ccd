# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random graphs, with values for their inputs.

A graph grows one step at a time. Each step is tried on values as well (every node is run by its ``perform``),
so that the
indices and shapes that are chosen fit. All decisions come from one source of integers: hypothesis, which
shrinks them, or a
seeded generator.

Some functions jump, so that a rounding error in their operand changes their result by much: comparisons,
rounding, argmax,
casts to integers. They are applied only to *exact* variables: inputs, and what is computed without rounding.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from steps import STEPS

import graphc
import graphc.tensor as pt
from graphc.function.reference import perform_node
from graphc.graph.basic import Constant, Variable
from graphc.graph.traversal import toposort

DTYPES = (
    *("float64",) * 6,
    *("float32",) * 4,
    *("int64", "int32", "bool"),
    *("float16", "int8", "uint8", "uint32", "complex128"),
)
MAX_ELEMENTS = 400
SIZES = (3, 1, 2, 4, 5, 0, 7, 17)


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


@dataclass
class Graph:
    """A random graph.

    Attributes:
        inputs: its inputs. values: an array for each.
        outputs: what it computes.
        scale: largest finite magnitude among all intermediate values, which bounds rounding errors.
        steps: names of the steps that made it.
    """

    inputs: list[Variable] = field(default_factory=list)
    values: list[np.ndarray] = field(default_factory=list)
    outputs: list[Variable] = field(default_factory=list)
    scale: float = 1.0
    steps: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"steps: {', '.join(self.steps)}"]
        lines += [
            f"{x.name}: {x.type} = {v.tolist()} strides {v.strides}"
            for x, v in zip(self.inputs, self.values, strict=True)
        ]
        return "\n".join([*lines, graphc.dprint(self.outputs, print_type=True, file="str")])

    __repr__ = __str__


class Builder:
    """A graph that grows, and the values of its variables.

    Args:
        choices: source of decisions.
        table: the steps to choose from.
        sizes: the sizes of inputs to choose from; simple ones first.
        max_elements: how large values may be.
    """

    def __init__(
        self,
        choices: Choices,
        table: Mapping[str, Callable[[Any], Any]] = STEPS,
        sizes: Sequence[int] = SIZES,
        max_elements: int = MAX_ELEMENTS,
    ) -> None:
        self.choices, self.table, self.sizes, self.max_elements = choices, table, sizes, max_elements
        self.graph = Graph()
        self.pool: list[Variable] = []
        self.exact: set[Variable] = set()
        self.known: dict[Variable, np.ndarray] = {}
        self.rng = np.random.default_rng(choices.integer(0, 2**16))

    def value(self, v: Variable) -> np.ndarray:
        """The value of a variable, from the values of the inputs."""
        if v not in self.known and isinstance(v, Constant):
            self.known[v] = v.data
        if v not in self.known:
            for node in toposort([v], blockers=set(self.known)):
                results = perform_node(node, [self.value(x) for x in node.inputs])
                self.known.update(zip(node.outputs, results, strict=True))
        return self.known[v]

    def shape(self, v: Variable) -> tuple[int, ...]:
        """The shape of its value."""
        return self.value(v).shape

    def add_input(self) -> Variable:
        """An input of random dtype, rank, partly known shape, strides and values."""
        c = self.choices
        shape = tuple(c.pick(self.sizes) for _ in range(c.pick((1, 2, 0, 3))))
        if np.prod(shape) > self.max_elements:
            shape = shape[:1]
        static = tuple(size if c.chance(2) or (size == 1 and c.chance(2)) else None for size in shape)
        dtype = c.pick(DTYPES)
        x = pt.tensor(f"x{len(self.graph.inputs)}", dtype=dtype, shape=static)
        value = self._strided(np.asarray(self._random(dtype, shape), dtype))
        self.graph.inputs.append(x)
        self.graph.values.append(value)
        self.known[x] = value
        self.pool.append(x)
        self.exact.add(x)
        return x

    def _random(self, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
        kind = np.dtype(dtype).kind
        if kind == "b":
            return self.rng.integers(0, 2, shape).astype(bool)
        if kind in "iu":
            return self.rng.integers(0 if kind == "u" else -4, 6, shape).astype(dtype)
        value = self.rng.uniform(-2, 2, shape)
        if kind == "c":
            value = value + 1j * self.rng.uniform(-2, 2, shape)
        return value.astype(dtype)

    def _strided(self, value: np.ndarray) -> np.ndarray:
        """The same array with other strides, or read-only."""
        how = self.choices.pick(("plain", "plain", "fortran", "reversed", "spaced", "read-only"))
        if how == "fortran" and value.ndim:
            return np.asfortranarray(value)
        if how == "reversed" and value.ndim:
            return np.ascontiguousarray(value[::-1])[::-1]
        if how == "spaced" and value.ndim:
            wide = np.zeros((*value.shape[:-1], 2 * value.shape[-1]), value.dtype)
            wide[..., ::2] = value
            return wide[..., ::2]
        if how == "read-only":
            value = value.copy()
            value.flags.writeable = False
        return value

    def operand(self, fits: Callable[[Variable], bool] = lambda v: True) -> Variable | None:
        """A variable of the pool for which ``fits`` holds, later ones more likely; None if there is none."""
        found = [v for v in self.pool if fits(v)]
        if not found:
            return None
        recent = found[-3:][::-1]
        return self.choices.pick(found if self.choices.chance(3) else recent)

    def step(self) -> None:
        """Try one step; one that does not apply changes nothing."""
        name = self.choices.pick(list(self.table))
        made = self.table[name](self)
        if made is None:
            return
        result, exact = made
        value = self.value(result)
        if value.size > self.max_elements or result in self.pool:
            return
        self.graph.steps.append(name)
        self.pool.append(result)
        if exact:
            self.exact.add(result)

    def finish(self) -> Graph:
        """Choose outputs, gradients among them."""
        c, graph = self.choices, self.graph
        made = [v for v in self.pool if v.owner is not None] or self.pool
        graph.outputs = [made[-1]]
        if c.chance(2):
            graph.outputs.append(c.pick(made))
        if c.chance(3):
            graph.outputs += self._gradients(made)
        for y in graph.outputs:
            self.value(y)
        for value in self.known.values():
            if value.dtype.kind in "fc" and value.size:
                finite = np.abs(value[np.isfinite(value)].astype(np.complex128))
                graph.scale = max(graph.scale, float(finite.max(initial=0.0)))
        return graph

    def _gradients(self, made: list[Variable]) -> list[Variable]:
        costs = [v for v in made if np.dtype(v.type.dtype).kind == "f"]
        wrt = [x for x in self.graph.inputs if np.dtype(x.type.dtype).kind == "f"]
        if not costs or not wrt:
            return []
        self.graph.steps.append("grad")
        return graphc.grad(costs[-1].sum(), wrt, disconnected_inputs="ignore")


def build(
    choices: Choices, max_inputs: int = 3, max_steps: int = 8, min_steps: int = 1, **options: Any
) -> Graph:
    """A random graph.

    Args:
        choices: source of decisions.
        max_inputs: largest number of inputs.
        min_steps, max_steps: how many steps are tried.
        options: further arguments of `Builder`.
    """
    builder = Builder(choices, **options)
    for _ in range(choices.integer(1, max_inputs)):
        builder.add_input()
    for _ in range(choices.integer(min_steps, max_steps)):
        builder.step()
    return builder.finish()
