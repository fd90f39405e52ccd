# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The steps of random programs.

A step takes a `programs.ProgramBuilder` and returns operands and a function of the namespace and of these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from step_table import fits_elementwise, is_float, kind

from graphc.graph.basic import Variable

# A function of the namespace and its operands.
Recipe = Callable[..., Any]
# What a choice of a step returns: the operands, the recipe, and whether the result is free of rounding.
Chosen = tuple[list[Variable], Recipe, bool] | None

RECIPES: dict[str, Callable[[Any], Chosen]] = {}


def recipe(choose: Callable[[Any], Chosen]) -> Callable[[Any], Chosen]:
    """Add a step to the table."""
    RECIPES[choose.__name__.strip("_")] = choose
    return choose


# Elementwise ------------------------------------------------------------------------------------------------

UNARY: tuple[Recipe, ...] = (
    lambda ns, x: ns.exp(ns.clip(x, -3, 3)),
    lambda ns, x: ns.log(abs(x) + 0.5),
    lambda ns, x: ns.tanh(x),
    lambda ns, x: ns.sqrt(abs(x) + 0.1),
    lambda ns, x: ns.sin(x) * 2,
    lambda ns, x: ns.sigmoid(x),
    lambda ns, x: -x,
    lambda ns, x: x**2 - 1,
    lambda ns, x: 1 / (abs(x) + 0.5),
)
BINARY: tuple[Recipe, ...] = (
    lambda ns, x, y: x + y,
    lambda ns, x, y: x * y,
    lambda ns, x, y: ns.maximum(x, y),
    lambda ns, x, y: x / (abs(y) + 1),
    lambda ns, x, y: x - 0.5 * y,
)
COMPARE: tuple[Recipe, ...] = (
    lambda ns, x, y: x < y,
    lambda ns, x, y: ns.eq(x, y),
    lambda ns, x, y: ns.ge(x, y),
)


@recipe
def unary(b: Any) -> Chosen:
    x = b.operand(is_float)
    return None if x is None else ([x], b.choices.pick(UNARY), False)


def _rank(v: Any) -> int:
    return v.type.ndim


def _rows(b: Any, v: Any) -> bool:
    """Whether it has rows."""
    return _rank(v) > 0 and b.shape(v)[0] > 0


def _pair(b: Any, fits: Callable[[Variable], bool]) -> list[Variable] | None:
    x = b.operand(fits)
    y = x if x is None else b.operand(lambda y: fits(y) and fits_elementwise(b, x, y))
    return None if y is None else [x, y]


@recipe
def binary(b: Any) -> Chosen:
    operands = _pair(b, lambda v: kind(v) in "if")
    return None if operands is None else (operands, b.choices.pick(BINARY), False)


@recipe
def compare(b: Any) -> Chosen:
    operands = _pair(b, lambda v: v in b.exact and kind(v) in "if")
    return None if operands is None else (operands, b.choices.pick(COMPARE), True)


@recipe
def where(b: Any) -> Chosen:
    condition = b.operand(lambda v: kind(v) == "b")
    if condition is None:
        return None
    x = b.operand(lambda v: is_float(v) and fits_elementwise(b, condition, v))
    if x is None:
        return None
    return [condition, x], lambda ns, c, x: ns.where(c, x, -1.5), False


@recipe
def convert(b: Any) -> Chosen:
    x = b.operand(lambda v: v in b.exact)
    dtype = b.choices.pick(("float64", "float32", "int64"))
    return None if x is None else ([x], lambda ns, x: ns.cast(x, dtype), True)


# Reductions -------------------------------------------------------------------------------------------------


def _axis(b: Any, x: Variable, or_all: bool = True) -> int | None:
    ndim = _rank(x)
    return b.choices.pick([None] * or_all + list(range(-1, ndim - 1)))


@recipe
def reduce(b: Any) -> Chosen:
    x = b.operand(lambda v: kind(v) in "if" and _rank(v) > 0 and b.value(v).size > 0)
    if x is None:
        return None
    axis, keepdims = _axis(b, x), b.choices.chance(3)
    name = b.choices.pick(("sum", "mean", "max", "min", "var"))
    exact = name in ("max", "min") and x in b.exact
    return [x], lambda ns, x: getattr(ns, name)(x, axis=axis, keepdims=keepdims), exact


@recipe
def argmax(b: Any) -> Chosen:
    x = b.operand(lambda v: v in b.exact and _rank(v) > 0 and b.value(v).size > 0)
    axis = None if x is None else _axis(b, x)
    return None if x is None else ([x], lambda ns, x: ns.argmax(x, axis=axis), True)


@recipe
def softmax(b: Any) -> Chosen:
    x = b.operand(lambda v: is_float(v) and _rank(v) > 0 and b.value(v).size > 0)
    axis = None if x is None else _axis(b, x, or_all=False)
    return None if x is None else ([x], lambda ns, x: ns.special.softmax(x, axis=axis), False)


@recipe
def cumulative(b: Any) -> Chosen:
    x = b.operand(lambda v: kind(v) in "if" and _rank(v) > 0)
    axis = None if x is None else _axis(b, x, or_all=False)
    return None if x is None else ([x], lambda ns, x: ns.cumsum(x, axis=axis), False)


# Arrays -----------------------------------------------------------------------------------------------------


@recipe
def index(b: Any) -> Chosen:
    x = b.operand(lambda v: _rows(b, v))
    if x is None:
        return None
    last = b.shape(x)[0] - 1
    one, other = b.choices.integer(-last - 1, last), b.choices.integer(0, last)
    entry = b.choices.pick((one, slice(1, None), slice(None, None, -1), slice(None, -1), [other, one]))
    return [x], lambda ns, x: x[entry], x in b.exact


@recipe
def update(b: Any) -> Chosen:
    x = b.operand(lambda v: is_float(v) and _rows(b, v))
    if x is None:
        return None
    place = b.choices.pick((0, slice(1, None), [0, -1, 0]))
    accumulate = b.choices.chance(2)
    return [x], lambda ns, x: x[place].inc(1.5) if accumulate else x[place].set(0.25), False


@recipe
def take(b: Any) -> Chosen:
    i = b.operand(lambda v: kind(v) == "i" and v in b.exact)
    x = i if i is None else b.operand(lambda v: _rows(b, v))
    if x is None:
        return None
    return [x, i], lambda ns, x, i: ns.take(x, i % x.shape[0], axis=0), x in b.exact


@recipe
def join(b: Any) -> Chosen:
    x = b.operand(lambda v: _rank(v) > 0)
    if x is None:
        return None
    same = [v for v in b.pool if _rank(v) == _rank(x) and b.shape(v)[1:] == b.shape(x)[1:]]
    y = b.choices.pick(same)
    return [x, y], lambda ns, x, y: ns.concatenate([x, y, x], axis=0), x in b.exact and y in b.exact


@recipe
def stack(b: Any) -> Chosen:
    x = b.operand()
    same = [v for v in b.pool if x is not None and b.shape(v) == b.shape(x)]
    if x is None or _rank(x) > 1:
        return None
    y, axis = b.choices.pick(same), b.choices.pick((0, -1))
    return [x, y], lambda ns, x, y: ns.stack([x, y], axis=axis), x in b.exact and y in b.exact


@recipe
def rearrange(b: Any) -> Chosen:
    x = b.operand()
    if x is None:
        return None
    how: Recipe = b.choices.pick(
        (
            lambda ns, x: x.T,
            lambda ns, x: ns.ravel(x),
            lambda ns, x: ns.expand_dims(x, 0),
            lambda ns, x: ns.reshape(x, (-1, 1)),
            lambda ns, x: ns.flip(x) if x.ndim else x + x,
        )
    )
    return [x], how, x in b.exact


@recipe
def product(b: Any) -> Chosen:
    x = b.operand(lambda v: is_float(v) and _rank(v) > 0)
    if x is None:
        return None
    # Its own transpose always fits.
    return [x], lambda ns, x: ns.dot(x, x.T), False


# Control ----------------------------------------------------------------------------------------------------


@recipe
def ifelse(b: Any) -> Chosen:
    c = b.operand(lambda v: v in b.exact and kind(v) in "if" and b.value(v).size > 0)
    x = c if c is None else b.operand(is_float)
    if x is None:
        return None
    same = [v for v in b.pool if _rank(v) == _rank(x) and is_float(v)]
    y, lazy = b.choices.pick(same), b.choices.chance(2)

    def choose(ns: Any, c: Any, x: Any, y: Any) -> Any:
        condition = c.max() > 0
        return ns.ifelse(condition, lambda: ns.exp(-x * x), y) if lazy else ns.ifelse(condition, x * 2, y)

    return [c, x, y], choose, False


@recipe
def scan(b: Any) -> Chosen:
    x = b.operand(lambda v: is_float(v) and _rows(b, v))
    if x is None:
        return None
    which = b.choices.integer(0, 2)

    def loop(ns: Any, x: Any) -> Any:
        first = ns.zeros_like(x[0])
        if which == 0:
            return ns.scan(lambda row, h: ns.tanh(row + 0.5 * h), x, first, return_updates=False)
        if which == 1:
            return ns.scan(lambda h: 0.5 * h + 1, None, x[0], n_steps=3, return_updates=False)[-1]
        return ns.scan(lambda row, w: row * w, x, None, x[0], return_updates=False)

    return [x], loop, False


@recipe
def loop(b: Any) -> Chosen:
    x = b.operand(lambda v: is_float(v))
    n = x if x is None else b.operand(lambda v: kind(v) == "i" and v in b.exact and b.value(v).size > 0)
    if n is None:
        return None

    def repeat(ns: Any, x: Any, n: Any) -> Any:
        return ns.fori_loop(0, n.max() % 5, lambda i, s: 0.5 * s + x, x)

    return [x, n], repeat, False


@recipe
def double(b: Any) -> Chosen:
    n = b.operand(lambda v: kind(v) == "i" and _rank(v) == 0 and v in b.exact)
    if n is None:
        return None
    return [n], lambda ns, n: ns.while_loop(lambda s: s < 20, lambda s: 2 * abs(s) + 1, n), True


# Draws ------------------------------------------------------------------------------------------------------


PARAMETERS: dict[str, tuple[float, ...]] = {
    "uniform": (-1.0, 2.0),
    "normal": (0.5, 2.0),
    "exponential": (1.5,),
    "integers": (0, 7),
    "poisson": (3.0,),
}


@recipe
def draw(b: Any) -> Chosen:
    x = b.operand(is_float)
    seed = b.choices.integer(0, 100)
    name = b.choices.pick(list(PARAMETERS))

    def draws(ns: Any, *given: Any) -> Any:
        rng = ns.random.default_rng(seed)
        rng, first = rng.normal(given[0], 0.5) if given else rng.exponential(1.5)
        _, second = getattr(rng, name)(*PARAMETERS[name], size=(3,))
        return first + second.sum() if given else second

    return ([] if x is None or b.choices.chance(3) else [x]), draws, False
