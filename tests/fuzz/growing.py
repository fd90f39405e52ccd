# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Grows programs: each line is tried on values as it is added, so that sizes and indices of the next fit."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from judging import interpret
from op_runner import VIEWS
from program import COMPLEX_IN, Input, Program, Step, flat, run_step, symbolic_space

import graphc
import graphc.tensor as pt
from graphc.graph.basic import Variable
from graphc.graph.tensor.type import TensorType

DTYPES = (
    *("float64",) * 8,
    *("float32",) * 4,
    *("int64",) * 2,
    *(
        "int32",
        "bool",
        "float16",
        "complex128",
        "int8",
        "uint8",
        "int16",
        "uint16",
        "uint32",
        "uint64",
        "complex64",
    ),
)
SIZES = (3, 3, 2, 2, 1, 4, 5, 0, 7, 17)
RANKS = (1, 2, 2, 2, 3, 0)
LAYOUTS = ("plain",) * 6 + (
    "spaced",
    "negative strides",
    "read-only",
    "Fortran order",
    "unaligned",
    "byte-swapped",
)
MAX_ELEMENTS = 400
# One program in so many has arrays of which loops are shared by threads.
LARGE_IN = 30
LARGE_SIZES, LARGE_ELEMENTS = (64, 1, 300, 1000, 7), 200_000
LARGEST = 1e8


class Unfit(Exception):
    """A recipe finds no operands, or a line does not work on these."""


class Builder:
    """A program that grows.

    Attributes:
        r: source of all decisions.
        values: of all names so far. variables: the same as graph.
        raises: the last line fails on these values.
        focus: a value that many lines read. insist: whether all do that can.
        kept: names that become results.
        renewed: what shared variables are mostly updated to.
        max_elements: how large values may be.
    """

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.inputs: list[Input] = []
        self.steps: list[Step] = []
        self.variables: dict[str, Any] = {}
        self.values: dict[str, np.ndarray] = {}
        self.known: dict[Variable, Any] = {}
        self.space = symbolic_space()
        self.raises = False
        self.calm = self.r.random() < 0.6
        large = self.r.random() * LARGE_IN < 1
        self.sizes = LARGE_SIZES if large else SIZES
        self.dtypes: Sequence[str] = DTYPES
        self.layouts: Sequence[str] = LAYOUTS
        self.max_elements = LARGE_ELEMENTS if large else MAX_ELEMENTS
        self.refused: list[str] = []
        self.focus, self.insist = "", False
        self.kept: list[str] = []
        self.renewed: dict[str, str] = {}

    # -- inputs --------------------------------------------------------------------------------------

    def add_input(
        self,
        shape: Sequence[int] | None = None,
        dtype: str = "",
        value: np.ndarray | None = None,
        shared: bool = False,
    ) -> str:
        """A new input of random dtype, sizes (some of them known) and values."""
        r = self.r
        if value is None:
            if shape is None:
                shape = tuple(r.choice(self.sizes) for _ in range(r.choice(RANKS)))
                if np.prod(shape) > self.max_elements:
                    shape = shape[:1]
            value = self.numbers(tuple(shape), dtype or r.choice(self.dtypes))
        known = r.choice((0.0, 0.4, 0.4, 1.0))
        static = tuple(
            size if r.random() < known or (size == 1 and r.random() < 0.6) else None for size in value.shape
        )
        shared = shared or (r.random() < 0.06 and value.size > 0)
        layout = "plain" if shared else r.choice(self.layouts)
        if layout == "repeated" and value.ndim:
            value = np.array(np.broadcast_to(value[:1], value.shape) if value.size else value)
        x = Input(f"x{len(self.inputs)}", value, static, layout, shared)
        return self._include(x)

    def add_generator(self) -> str:
        """The state of a random generator."""
        seed = np.asarray(self.r.randrange(1000))
        return self._include(Input(f"x{len(self.inputs)}", seed, (), generator=True))

    def _include(self, x: Input) -> str:
        if x.shared:
            v: Any = graphc.shared(x.value.copy(), x.name, shape=x.static)
        elif x.generator:
            v = pt.random.RandomGeneratorType("PCG64")(x.name)
        else:
            v = pt.tensor(x.name, dtype=str(x.value.dtype), shape=x.static)
        self.inputs.append(x)
        self.variables[x.name] = v
        if x.generator:
            self.known[v] = pt.random.state_of(np.random.default_rng(int(x.value)))
        else:
            self.values[x.name] = self.known[v] = x.value
        return x.name

    def numbers(self, shape: tuple[int, ...], dtype: str, how: str = "") -> np.ndarray:
        """Values of a dtype: few different ones, many, or with special ones among them."""
        rng = np.random.default_rng(self.r.randrange(2**32))
        kind = np.dtype(dtype).kind
        how = how or self.r.choice(("few", "many", "many", "special" if not self.calm else "few"))
        if kind == "b":
            return np.asarray(rng.integers(0, 2, shape).astype(bool))
        if kind in "iu":
            value = rng.integers(0 if kind == "u" else -4, 6, shape).astype(dtype)
            if how == "special" or self.chance(8):
                low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
                return self._sprinkle(value, [low, high, low + 1, high - 1, 0], rng)
            return np.asarray(value)
        value = rng.integers(-8, 9, shape) / 4 if how == "few" else rng.uniform(-2, 2, shape)
        if kind == "c":
            value = value + 1j * (rng.integers(-4, 5, shape) / 4)
        value = np.asarray(value).astype(dtype)
        if how != "special" or kind == "c":
            return value
        large = [65504.0, -65504.0] if dtype == "float16" else [1e15, -1e15]
        return self._sprinkle(value, [np.nan, np.inf, -np.inf, 0.0, -0.0, *large], rng)

    def _sprinkle(self, value: np.ndarray, specials: list[Any], rng: np.random.Generator) -> np.ndarray:
        value = np.array(value)
        places = rng.random(value.shape) < 0.25
        value[places] = rng.choice(np.array(specials, value.dtype), int(places.sum()))
        return value

    # -- operands ------------------------------------------------------------------------------------

    def pick(self, items: Sequence[Any]) -> Any:
        """One of them.

        Raises:
            Unfit: there are none.
        """
        if not items:
            raise Unfit
        return self.r.choice(items)

    def chance(self, one_in: float) -> bool:
        """True once in so many times."""
        return self.r.random() * one_in < 1

    def operand(self, fits: Callable[[np.ndarray], bool] = lambda x: True, fresh: bool = True) -> str:
        """A name whose value fits, later ones more likely; a new input where there is none.

        Raises:
            Unfit: none fits, and new inputs do not either.
        """
        found = [name for name, value in self.values.items() if fits(value)]
        if self.focus in found and (self.insist or self.chance(2)):
            return self.focus
        if found and not (fresh and self.chance(12)):
            return str(self.r.choice(found[-4:] if self.chance(2) else found))
        if fresh and len(self.inputs) < 6:
            for _ in range(12):
                shape = tuple(self.r.choice(self.sizes) for _ in range(self.r.choice(RANKS)))
                if np.prod(shape) > self.max_elements:
                    continue
                value = self.numbers(shape, self.r.choice(self.dtypes))
                if fits(value):
                    return self.add_input(value=value)
        return str(self.pick(found))

    def shape(self, name: str) -> tuple[int, ...]:
        return self.values[name].shape

    def dtype(self, name: str) -> np.dtype:
        return self.values[name].dtype

    # -- lines ---------------------------------------------------------------------------------------

    def add(
        self,
        text: str,
        kind: str,
        operands: Sequence[str] = (),
        numpy: str | None = None,
        helpers: Sequence[str] = (),
        may_fail: bool = False,
        exact: bool = False,
    ) -> list[str]:
        """Add a line.

        Returns:
            The names that it defines.

        Raises:
            Unfit: it cannot be built, or not be run on these values (unless it may fail).
        """
        if self.raises:
            raise Unfit
        step = Step(("v0",), text, kind, tuple(operands), numpy, tuple(helpers), exact)
        scope = {**self.space, **self.variables}
        for source in helpers:
            exec(source, scope)
        try:
            found = flat(eval(text, scope))
        except Exception as error:
            self.refused.append(f"{type(error).__name__}: {str(error)[:200]} in {text}")
            raise Unfit from error
        if not found or not all(isinstance(v, Variable) and isinstance(v.type, TensorType) for v in found):
            raise Unfit
        step = replace(step, names=tuple(self._fresh(len(found))))
        try:
            with np.errstate(all="ignore"):
                interpret(found, self.known)
        except Exception as error:
            if not may_fail:
                raise Unfit from error
            self.raises = True
        self._accept(step, found)
        return list(step.names)

    def _fresh(self, count: int) -> list[str]:
        start = sum(len(step.names) for step in self.steps)
        return [f"v{start + i}" for i in range(count)]

    def _accept(self, step: Step, found: list[Any]) -> None:
        if not self.raises:
            values = [np.asarray(self.known.get(v, getattr(v, "data", None))) for v in found]
            if any(value.size > self.max_elements for value in values):
                raise Unfit
            if self.calm and any(_large(value) for value in values):
                raise Unfit
            self.values.update(zip(step.names, values, strict=True))
        self.variables.update(zip(step.names, found, strict=True))
        self.steps.append(step)

    def one(self, text: str, kind: str, **options: Any) -> str:
        """Add a line that defines one name."""
        return self.add(text, kind, **options)[0]

    # -- results -------------------------------------------------------------------------------------

    def finish(self) -> Program:
        """Choose results: values, aliases of each other, views, inputs."""
        r, made = self.r, [n for step in self.steps for n in step.names if n in self.values]
        if self.raises:
            return Program(tuple(self.inputs), tuple(self.steps), self.steps[-1].names, (), True).pruned()
        if not made:
            made = [x.name for x in self.inputs if not x.generator]
        outputs = [made[-1], *self.kept, *(r.choice(made) for _ in range(r.choice((0, 1, 1, 2, 3))))]
        if self.chance(2):  # all that nothing else reads
            read = {name for step in self.steps for name in step.reads}
            outputs += [name for name in made if name not in read][-5:]
        if self.chance(8):
            outputs.append(r.choice([x.name for x in self.inputs if not x.generator] or outputs))
        if self.chance(3):
            outputs = list(dict.fromkeys(outputs))
        return Program(tuple(self.inputs), tuple(self.steps), tuple(outputs), tuple(self._updates())).pruned()

    def _updates(self) -> list[tuple[str, str]]:
        found = []
        for x in self.inputs:
            fits = [
                n
                for n, v in self.values.items()
                if v.shape == x.value.shape and v.dtype == x.value.dtype and n != x.name
                and _within(self.variables[n].type.shape, x.static)
            ]  # fmt: skip
            if x.shared and fits:
                new = self.renewed.get(x.name, "")
                found.append((x.name, new if new in fits and not self.chance(4) else self.r.choice(fits)))
        return found


def _within(sizes: Sequence[int | None], static: Sequence[int | None]) -> bool:
    return all(s is None or s == n for n, s in zip(sizes, static, strict=True))


def _large(value: np.ndarray) -> bool:
    if value.dtype.kind not in "fc" or not value.size:
        return False
    with np.errstate(all="ignore"):
        return bool(np.nanmax(np.abs(np.where(np.isfinite(value), value, 0)).astype("float64")) > LARGEST)


def grow(seed: int, steps: int = 9) -> Program:
    """The program of a seed.

    Args:
        seed: of all decisions.
        steps: the largest number of lines, but for those that fit operands.
    """
    from recipes import RECIPES, weights
    from recipes_complex import CHANCES, COMPLEX
    from recipes_users import CHANCES as OF_USERS
    from recipes_users import USERS_IN

    b = Builder(seed)
    names, chances = list(RECIPES), weights()
    if seed % COMPLEX_IN == 1:
        b.dtypes, b.calm = COMPLEX, True
        chances = [CHANCES.get(name, 0.25 * chance) for name, chance in zip(names, chances, strict=True)]
    elif seed % USERS_IN == 3:
        b.layouts = tuple(VIEWS)
        chances = [OF_USERS.get(name, 0.25 * chance) for name, chance in zip(names, chances, strict=True)]
    for _ in range(b.r.choice((1, 1, 2, 2, 3))):
        b.add_input()
    for _ in range(b.r.randint(2, steps)):
        if b.chance(4):
            b.focus = str(b.r.choice([*b.values] or [""]))
        for _ in range(4):
            (name,) = b.r.choices(names, chances)
            before = len(b.steps)
            try:
                RECIPES[name](b)
            except Unfit:
                b.raises = b.raises and len(b.steps) > before
                if not b.raises:
                    continue
            break
        if b.raises:
            break
    return b.finish()


__all__ = ["Builder", "Unfit", "grow", "run_step"]
