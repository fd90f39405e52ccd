# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of recipes: what a line of a program may be, and how often.

A recipe is a function of a `growing.Builder` that adds one line or a few; it raises `Unfit` where it finds no
operands. `library` makes a line of any case of `op_table`, and so of any public function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from case_text import all_cases, helpers_of, text_of
from fitting import to_domain, to_dtype, to_shape
from growing import Builder, Unfit
from op_table import Argument, Case

Recipe = Callable[[Builder], Any]
RECIPES: dict[str, Recipe] = {}
_WEIGHTS: dict[str, float] = {}


def recipe(weight: float = 1.0) -> Callable[[Recipe], Recipe]:
    """Adds a recipe to the table."""

    def add(function: Recipe) -> Recipe:
        RECIPES[function.__name__] = function
        _WEIGHTS[function.__name__] = weight
        return function

    return add


def weights() -> list[float]:
    """How likely each recipe is."""
    return [_WEIGHTS[name] for name in RECIPES]


# The public library -------------------------------------------------------------------------------


@cache
def _families() -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for case in all_cases():
        found.setdefault(case.family, []).append(case)
    return found


@cache
def _case_line(case: Case, count: int) -> tuple[str, tuple[str, ...]]:
    """The text of a case with ``{0}``, ``{1}`` ... for its arguments, and sources of its helpers."""
    text = text_of(case, [f"_{i}_" for i in range(count)])
    helpers = tuple(inspect.getsource(f) for f in helpers_of(case, text).values())
    return text, helpers


@recipe(12)
def library(b: Builder) -> None:
    families = _families()
    names = list(families)
    (family,) = b.r.choices(names, [len(families[name]) ** 0.6 for name in names])
    apply_case(b, b.pick(families[family]))


def apply_case(b: Builder, case: Case) -> list[str]:
    """Add a line that is a case of the table, its operands made of what there is.

    Raises:
        Unfit: a domain has no counterpart, or the line does not work.
    """
    dtype = str(b.pick(case.dtypes))
    if b.values and not b.chance(3):
        found = {str(v.dtype) for v in b.values.values()}
        dtype = str(b.pick([d for d in case.dtypes if d in found] or (dtype,)))
    elif b.chance(2):
        dtype = str(b.dtype(b.operand()))
    n = _size(b, case)
    misfit = b.r.randrange(len(case.arguments)) if b.chance(14) else -1
    operands: list[str] = []
    anywhere = b.chance(8)  # NumPy has no say outside of a function's domain
    for i, argument in enumerate(case.arguments):
        shape = _shape(argument, n)
        if i == misfit and shape:
            axis = b.r.randrange(len(shape))
            shape = (*shape[:axis], b.pick([1, 2, 0, 5]), *shape[axis + 1 :])
        operands.append(_argument(b, argument, shape, dtype, anywhere))
    text, helpers = _case_line(case, len(operands))
    for i, name in enumerate(operands):
        text = text.replace(f"_{i}_", name)
    within = not anywhere or all(a.make.__name__ in ("uniform", "distinct") for a in case.arguments)
    within = within and not any(
        a.make.__name__ == "distinct" and _has_ties(b.values[name])
        for a, name in zip(case.arguments, operands, strict=True)
    )
    # A formula of ours is one for the case's dtypes: of others, NumPy's steps may wrap around.
    within = within and (case.reference is None or dtype in case.dtypes)
    numpy = None if within else ""
    return b.add(text, case.name, operands, numpy, helpers, may_fail=b.chance(2))


def _has_ties(x: np.ndarray) -> bool:
    return len(np.unique(x)) < x.size


def _shape(argument: Argument, n: int) -> tuple[int, ...]:
    sizes = (dim if isinstance(dim, int) else int(eval(dim, {}, {"n": n})) for dim in argument.dims)
    return tuple(sizes)  # our own short expressions


def _size(b: Builder, case: Case) -> int:
    """A size for which a value that is there fits, or one of the case's."""
    fits = [
        n
        for n in range(8)
        for value in b.values.values()
        if case.arguments
        and value.shape == _shape(case.arguments[0], n)
        and (n in case.sizes or n >= min((s for s in case.sizes if s), default=8))
    ]
    if fits and not b.chance(5):
        return int(b.pick(fits))
    return int(b.pick([n for n in case.sizes if n < 8] or [3]))


def _argument(b: Builder, argument: Argument, shape: tuple[int, ...], dtype: str, anywhere: bool) -> str:
    wanted = argument.dtype or dtype
    plain = argument.make.__name__ in ("uniform", "distinct")
    if int(np.prod(shape)) > b.max_elements:
        raise Unfit
    ready = [n for n, v in b.values.items() if v.shape == shape and str(v.dtype) == wanted]
    if ready and not b.chance(6):
        name = str(b.r.choice(ready))
    elif b.chance(8) and len(b.inputs) < 6 and shape == _shape(argument, shape[0] if shape else 0):
        return _own_input(b, argument, shape, wanted)
    else:
        name = to_shape(b, to_dtype(b, b.operand(), wanted), shape)
    if not plain and not (anywhere and argument.make.__name__.startswith("between")):
        try:
            return to_domain(b, name, argument)
        except Unfit:  # no counterpart: an input of its own
            return _own_input(b, argument, shape, wanted)
    return name


def _own_input(b: Builder, argument: Argument, shape: tuple[int, ...], dtype: str) -> str:
    try:
        return b.add_input(value=argument.make(np.random.default_rng(b.r.randrange(99)), shape, dtype))
    except (ValueError, IndexError) as error:  # a size that does not fit
        raise Unfit from error


def is_float(x: np.ndarray) -> bool:
    return x.dtype.kind == "f"


def is_number(x: np.ndarray) -> bool:
    return x.dtype.kind != "b"


def is_real(x: np.ndarray) -> bool:
    return x.dtype.kind in "fiu"


def with_rank(x: np.ndarray) -> bool:
    return x.ndim > 0


def axis_of(b: Builder, name: str) -> int:
    """An axis, counted from either end."""
    rank = len(b.shape(name))
    return b.r.randint(-rank, rank - 1)


READERS = (
    *("join", "join", "kernel", "kernel", "stack", "pad", "fill_parts", "update", "product", "library"),
    *("scan", "view"),
)


@recipe(3)
def several_readers(b: Builder) -> None:
    """One value, and readers that want it in different places: in a join, for a kernel, as a result."""
    x = b.operand(lambda v: v.dtype.kind == "f" and v.ndim > 0 and v.size > 1)
    b.focus = b.one(
        b.pick(["pt.exp({x})", "{x} * 2", "{x} + 1", "pt.tanh({x})", "{x} * {x}"]).format(x=x),
        "several_readers",
    )
    b.insist = True
    try:
        for name in b.r.sample(READERS, b.r.choice([2, 3, 4])):
            before = len(b.steps)
            try:
                RECIPES[name](b)
            except Unfit:
                continue
            b.kept += [n for step in b.steps[before:] for n in step.names if n in b.values][-1:]
    finally:
        b.insist = False


import recipes_arrays  # noqa: E402
import recipes_complex  # noqa: E402
import recipes_control  # noqa: E402
import recipes_elements  # noqa: E402
import recipes_limits  # noqa: E402
import recipes_stable  # noqa: E402
import recipes_users  # noqa: E402

__all__ = [
    "RECIPES",
    "recipes_arrays",
    "recipes_complex",
    "recipes_control",
    "recipes_elements",
    "recipes_limits",
    "recipes_stable",
    "recipes_users",
    "weights",
]
