# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs over a namespace: ``graphc.tensor``, or an environment of immediate mode.

A program is a list of steps, each a function of the namespace and of earlier values. It is grown as `graphs`
are: each step is tried on values, so that shapes and indices fit; functions that jump are applied to exact
values only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from graphs import MAX_ELEMENTS, Builder, Choices
from program_steps import RECIPES, Recipe

import graphc
import graphc.tensor as pt
from graphc.graph.basic import Variable
from graphc.graph.traversal import graph_inputs
from graphc.tensor.random import RandomGeneratorSharedVariable, state_of

DTYPES = (*("float64",) * 4, "float32", "float32", "int64", "bool")
SIZES = (3, 2, 4, 1, 5, 0)


class Symbolic:
    """``graphc.tensor`` with the loops of ``graphc``, as environments have them."""

    def __getattr__(self, name: str) -> Any:
        return getattr(pt, name) if hasattr(pt, name) else getattr(graphc, name)


SYMBOLIC = Symbolic()


@dataclass
class Program:
    """A random program.

    Attributes:
        inputs: symbolic inputs. values: an array for each.
        steps: name, places of the operands among inputs and earlier results, and recipe of each step.
        results: places of the results.
        scale: largest finite magnitude among all values, which bounds rounding errors.
        dtypes: dtypes of all values.
    """

    inputs: list[Variable] = field(default_factory=list)
    values: list[np.ndarray] = field(default_factory=list)
    steps: list[tuple[str, list[int], Recipe]] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    scale: float = 1.0
    dtypes: set[str] = field(default_factory=set)

    def run(self, namespace: Any, inputs: Sequence[Any]) -> list[Any]:
        """The results in a namespace: symbolic variables of symbolic inputs, tensors of tensors."""
        pool = list(inputs)
        for _, places, recipe in self.steps:
            pool.append(recipe(namespace, *(pool[i] for i in places)))
        return [pool[i] for i in self.results]

    def __str__(self) -> str:
        given = enumerate(zip(self.inputs, self.values, strict=True))
        lines = [f"v{i}: {x.type} = {v.tolist()} strides {v.strides}" for i, (x, v) in given]
        for n, (name, places, _) in enumerate(self.steps, len(self.inputs)):
            lines.append(f"v{n} = {name}({', '.join(f'v{i}' for i in places)})")
        lines.append(f"results {', '.join(f'v{i}' for i in self.results)}")
        graph = graphc.dprint(self.run(SYMBOLIC, self.inputs), print_type=True, file="str")
        return "\n".join([*lines, graph])

    __repr__ = __str__


class ProgramBuilder(Builder):
    """A program that grows."""

    def __init__(self, choices: Choices) -> None:
        super().__init__(choices)
        self.program = Program()

    def add_input(self) -> Variable:
        """An input of random dtype, rank and values; axes of size 1 are known as such."""
        c = self.choices
        shape = tuple(c.pick(SIZES) for _ in range(c.pick((1, 2, 0))))
        dtype = c.pick(DTYPES)
        static = tuple(1 if size == 1 else None for size in shape)
        x = pt.tensor(f"v{len(self.pool)}", dtype=dtype, shape=static)
        value = self._strided(np.asarray(self._random(dtype, shape), dtype))
        self.program.inputs.append(x)
        self.program.values.append(value)
        self.known[x] = value
        self.pool.append(x)
        self.exact.add(x)
        return x

    def value(self, v: Variable) -> np.ndarray:
        """The value of a variable; shared generators have their own."""
        for root in graph_inputs([v], blockers=set(self.known)):
            if isinstance(root, RandomGeneratorSharedVariable):
                self.known[root] = state_of(root.get_value())
        return super().value(v)

    def step(self) -> None:
        """Try one step; one that does not apply changes nothing."""
        name = self.choices.pick(list(RECIPES))
        chosen = RECIPES[name](self)
        if chosen is None:
            return
        operands, recipe, exact = chosen
        places = [self.pool.index(x) for x in operands]
        result = recipe(SYMBOLIC, *operands)
        value = self.value(result)
        if value.size > MAX_ELEMENTS or result in self.pool:
            return
        self.program.steps.append((name, places, recipe))
        self.pool.append(result)
        if exact:
            self.exact.add(result)

    def finish_program(self) -> Program:
        """Choose results."""
        program, c = self.program, self.choices
        count = len(self.pool)
        program.results = [count - 1]
        if c.chance(2):
            program.results.append(c.integer(0, count - 1))
        for value in self.known.values():
            program.dtypes.add(value.dtype.name)
            if value.dtype.kind == "f" and value.size:
                finite = np.abs(value[np.isfinite(value)].astype(np.float64))
                program.scale = max(program.scale, float(finite.max(initial=0.0)))
        return program


def build_program(choices: Choices, max_inputs: int = 3, max_steps: int = 8) -> Program:
    """A random program.

    Args:
        choices: source of decisions.
        max_inputs, max_steps: largest numbers of these.
    """
    builder = ProgramBuilder(choices)
    for _ in range(choices.integer(1, max_inputs)):
        builder.add_input()
    for _ in range(choices.integer(2, max_steps)):
        builder.step()
    return builder.finish_program()
