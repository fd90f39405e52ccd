# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The steps of which random graphs are made.

A step is a function of a `graphs.Builder`. It returns a new variable and whether its value is exact (no
rounding), or None where it finds no operands that fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import graphc.tensor as pt

Result = tuple[Any, bool] | None
STEPS: dict[str, Callable[[Any], Result]] = {}


def step(function: Callable[[Any], Result]) -> Callable[[Any], Result]:
    """Add a step to the table, under the name of the function."""
    STEPS[function.__name__] = function
    return function


def kind(v: Any) -> str:
    """NumPy's kind letter of the dtype."""
    return np.dtype(v.type.dtype).kind


def is_float(v: Any) -> bool:
    return kind(v) == "f"


def is_number(v: Any) -> bool:
    return kind(v) != "b"


def is_integer(v: Any) -> bool:
    return kind(v) in "iu"


def with_rank(v: Any) -> bool:
    return v.type.ndim > 0


def fits_elementwise(b: Any, x: Any, y: Any) -> bool:
    """Whether two variables broadcast: sizes agree, or are statically 1."""
    pairs = zip(reversed(b.shape(x)), reversed(b.shape(y)), strict=False)
    statics = zip(reversed(x.type.shape), reversed(y.type.shape), strict=False)
    return all(m == n or 1 in static for (m, n), static in zip(pairs, statics, strict=False))


# Elementwise --------------------------------------------------------------------------------------

# Functions of reals that are defined and moderate everywhere.
SMOOTH = {
    "exp": lambda x: pt.exp(pt.clip(x, -3, 3)),
    "expm1": lambda x: pt.expm1(pt.minimum(x, 2)),
    "log": lambda x: pt.log(abs(x) + 0.5),
    "log1p": lambda x: pt.log1p(x * x),
    "sqrt": lambda x: pt.sqrt(abs(x) + 0.1),
    "sin": pt.sin,
    "cos": pt.cos,
    "arctan": pt.arctan,
    "tanh": pt.tanh,
    "arcsinh": pt.arcsinh,
    "sigmoid": pt.sigmoid,
    "softplus": pt.softplus,
    "abs": abs,
    "neg": lambda x: -x,
    "square": lambda x: x**2,
    "power": lambda x: (abs(x) + 0.5) ** 1.5,
    "reciprocal": lambda x: 1 / (abs(x) + 0.5),
    "affine": lambda x: x * 2 - 1,
}


@step
def unary(b: Any) -> Result:
    x = b.operand(is_float)
    if x is None:
        return None
    name = b.choices.pick(list(SMOOTH))
    return SMOOTH[name](x), name in ("abs", "neg") and x in b.exact


@step
def binary(b: Any) -> Result:
    x = b.operand(is_number)
    y = x if x is None else b.operand(lambda y: is_number(y) and fits_elementwise(b, x, y))
    if y is None:
        return None
    f = b.choices.pick(
        [
            pt.add,
            pt.mul,
            pt.sub,
            lambda x, y: x / (abs(y) + 1) if kind(y) != "c" else x * y,
            lambda x, y: pt.maximum(x, y) if "c" not in (kind(x), kind(y)) else x + y,
            lambda x, y: pt.minimum(x, y) if "c" not in (kind(x), kind(y)) else x - y,
        ]
    )
    integers = is_integer(x) and is_integer(y)
    result = f(x, y)
    return result, integers and is_integer(result) and x in b.exact and y in b.exact


@step
def compare(b: Any) -> Result:
    x = b.operand(lambda v: v in b.exact and kind(v) != "c")
    y = x if x is None else b.operand(lambda y: y in b.exact and kind(y) != "c" and fits_elementwise(b, x, y))
    if y is None:
        return None
    return b.choices.pick([pt.lt, pt.le, pt.gt, pt.ge, pt.eq, pt.neq])(x, y), True


@step
def select(b: Any) -> Result:
    condition = b.operand(lambda v: kind(v) == "b")
    if condition is None:
        return None
    x = b.operand(lambda v: is_number(v) and fits_elementwise(b, condition, v))
    if x is None:
        return None
    return pt.where(condition, x, b.choices.pick([0, 1])), x in b.exact


@step
def logical(b: Any) -> Result:
    x = b.operand(lambda v: kind(v) == "b")
    y = x if x is None else b.operand(lambda y: kind(y) == "b" and fits_elementwise(b, x, y))
    if y is None:
        return None
    return b.choices.pick([lambda x, y: x & y, lambda x, y: x | y, lambda x, y: x ^ y, lambda x, y: ~x])(
        x, y
    ), True


@step
def rounding(b: Any) -> Result:
    x = b.operand(lambda v: v in b.exact and is_float(v))
    return None if x is None else (b.choices.pick([pt.floor, pt.ceil, pt.sign, pt.trunc])(x), True)


@step
def integers(b: Any) -> Result:
    x = b.operand(lambda v: is_integer(v) and v in b.exact)
    if x is None:
        return None
    return b.choices.pick(
        [lambda x: x // 3, lambda x: x % 3, lambda x: x * x, lambda x: -x, lambda x: x & 5]
    )(x), True


@step
def cast(b: Any) -> Result:
    x = b.operand(lambda v: kind(v) != "c")
    if x is None:
        return None
    exact = x in b.exact
    # A negative number has no value in unsigned types, and an inexact one may round to either side.
    targets = ["float64", "float32"]
    if exact:
        targets += ["int64", "int32", "bool"]
    target = b.choices.pick(targets)
    return x.astype(target), exact


@step
def complex_parts(b: Any) -> Result:
    z = b.operand(lambda v: kind(v) == "c")
    if z is None:
        x = b.operand(lambda v: v.type.dtype == "float64")
        return None if x is None else (x * 1j + 1, False)
    return b.choices.pick([pt.real, pt.imag, abs, pt.conj, lambda z: z * z, lambda z: z + 1j])(z), False


# Reductions ---------------------------------------------------------------------------------------


def _axes(b: Any, x: Any) -> Any:
    if b.choices.chance(3):
        return None
    axes = [axis for axis in range(x.type.ndim) if b.choices.chance(2)]
    return tuple(axes) or b.choices.index(x.type.ndim)


@step
def reduction(b: Any) -> Result:
    x = b.operand(lambda v: with_rank(v) and kind(v) in "fiu")
    if x is None:
        return None
    axis, keepdims = _axes(b, x), b.choices.chance(2)
    names = ["sum", "mean", "max", "min", "prod", "var"]
    if 0 in b.shape(x):
        names = ["sum", "prod"]
    name = b.choices.pick(names)
    exact = x in b.exact and (name in ("max", "min") or (is_integer(x) and name in ("sum", "prod")))
    return getattr(pt, name)(x, axis=axis, keepdims=keepdims), exact


@step
def logsumexp(b: Any) -> Result:
    x = b.operand(lambda v: with_rank(v) and is_float(v) and 0 not in b.shape(v))
    return None if x is None else (pt.logsumexp(x, axis=b.choices.index(x.type.ndim)), False)


@step
def softmax(b: Any) -> Result:
    x = b.operand(lambda v: with_rank(v) and is_float(v) and 0 not in b.shape(v))
    return None if x is None else (pt.softmax(x, axis=b.choices.index(x.type.ndim)), False)


@step
def any_all(b: Any) -> Result:
    x = b.operand(lambda v: with_rank(v) and kind(v) == "b")
    return None if x is None else (b.choices.pick([pt.any, pt.all])(x, axis=_axes(b, x)), True)


@step
def argument(b: Any) -> Result:
    x = b.operand(lambda v: with_rank(v) and v in b.exact and kind(v) in "fiu" and 0 not in b.shape(v))
    if x is None:
        return None
    return b.choices.pick([pt.argmax, pt.argmin])(x, axis=b.choices.index(x.type.ndim)), True


# Shapes -------------------------------------------------------------------------------------------


@step
def transpose(b: Any) -> Result:
    x = b.operand(lambda v: v.type.ndim > 1)
    if x is None:
        return None
    axes = list(range(x.type.ndim))
    order = [axes.pop(b.choices.index(len(axes))) for _ in range(x.type.ndim)]
    return x.dimshuffle(*order), x in b.exact


@step
def expand(b: Any) -> Result:
    x = b.operand(lambda v: v.type.ndim < 3)
    if x is None:
        return None
    return pt.expand_dims(x, b.choices.index(x.type.ndim + 1)), x in b.exact


@step
def squeeze(b: Any) -> Result:
    x = b.operand(lambda v: 1 in v.type.shape)
    return None if x is None else (pt.squeeze(x, axis=x.type.shape.index(1)), x in b.exact)


@step
def reshape(b: Any) -> Result:
    x = b.operand()
    if x is None:
        return None
    size = int(np.prod(b.shape(x)))
    shapes: list[Any] = [(-1,), (size,), (1, size), (size, 1)]
    shapes += [(d, -1) for d in (2, 3, 4) if size and size % d == 0]
    if x.type.ndim == 2:
        shapes.append((x.shape[1], x.shape[0]))
    return x.reshape(b.choices.pick(shapes)), x in b.exact


@step
def broadcast(b: Any) -> Result:
    x = b.operand(lambda v: v.type.ndim < 3)
    if x is None:
        return None
    lead = b.choices.pick([2, 1, 0])
    sizes = [3 if static == 1 else size for size, static in zip(b.shape(x), x.type.shape, strict=True)]
    return pt.broadcast_to(x, (lead, *sizes)), x in b.exact


@step
def concatenate(b: Any) -> Result:
    x = b.operand(with_rank)
    if x is None:
        return None
    axis = b.choices.index(x.type.ndim)

    def rest(v: Any) -> tuple[int, ...]:
        return tuple(size for i, size in enumerate(b.shape(v)) if i != axis)

    y = b.operand(
        lambda v: v.type.ndim == x.type.ndim and rest(v) == rest(x) and v.type.dtype == x.type.dtype
    )
    return pt.concatenate([x, y], axis=axis), x in b.exact and y in b.exact


@step
def stack(b: Any) -> Result:
    x = b.operand(lambda v: v.type.ndim < 3)
    return None if x is None else (pt.stack([x, x * 2 if is_number(x) else ~x], axis=0), False)


@step
def create(b: Any) -> Result:
    x = b.operand(with_rank)
    if x is None:
        return None
    n = x.shape[0]
    return b.choices.pick(
        [
            lambda: (pt.arange(n), True),
            lambda: (pt.zeros((n, 2)), True),
            lambda: (pt.ones_like(x), True),
            lambda: (pt.full((2, n), 0.5), True),
            lambda: (pt.eye(n), True),
            lambda: (pt.arange(1.0, 7.0, 1.5), True),
        ]
    )()


# Indexing -----------------------------------------------------------------------------------------


def _item(b: Any, size: int) -> Any:
    c = b.choices
    choice = c.pick(["slice", "step", "negative", "full", "index"])
    if choice == "index" and size:
        return c.integer(-size, size - 1)
    low, high = c.integer(0, size), c.integer(-2, size + 1)
    return {
        "slice": slice(low, None),
        "step": slice(None, high, 2),
        "negative": slice(None, None, -1) if c.chance(2) else slice(high, low, -2),
    }.get(choice, slice(None))


def _index(b: Any, x: Any) -> tuple[Any, ...]:
    items = [_item(b, size) for size in b.shape(x)[: b.choices.integer(1, x.type.ndim)]]
    if b.choices.chance(4):
        items.insert(b.choices.index(len(items) + 1), None)
    return tuple(items)


@step
def basic_index(b: Any) -> Result:
    x = b.operand(with_rank)
    return None if x is None else (x[_index(b, x)], x in b.exact)


@step
def symbolic_index(b: Any) -> Result:
    x = b.operand(lambda v: with_rank(v) and b.shape(v)[0] > 0)
    if x is None:
        return None
    n = x.shape[0]
    return b.choices.pick([lambda: x[n - 1], lambda: x[: n // 2], lambda: x[n // 3 : n - 1]])(), x in b.exact


@step
def take(b: Any) -> Result:
    x = b.operand(lambda v: with_rank(v) and 0 not in b.shape(v))
    if x is None:
        return None
    axis = b.choices.index(x.type.ndim)
    size = b.shape(x)[axis]
    indices = b.rng.integers(-size, size, b.choices.pick([(3,), (2, 2), (0,), (6,)]))
    return pt.take(x, indices, axis=axis), x in b.exact


@step
def update(b: Any) -> Result:
    x = b.operand(lambda v: with_rank(v) and is_float(v))
    if x is None:
        return None
    region = x[tuple(item for item in _index(b, x) if item is not None)]
    if b.choices.chance(2):
        return pt.inc_subtensor(region, 0.5), False
    return pt.set_subtensor(region, 2 * region[...]), False


@step
def put(b: Any) -> Result:
    x = b.operand(lambda v: with_rank(v) and is_float(v) and b.shape(v)[0] > 0)
    if x is None:
        return None
    indices = b.rng.integers(-b.shape(x)[0], b.shape(x)[0], 4)
    f = b.choices.pick([pt.inc_subtensor, pt.set_subtensor])
    return f(x[indices], x[indices[::-1].copy()]), False


# Products -----------------------------------------------------------------------------------------


@step
def dot(b: Any) -> Result:
    x = b.operand(lambda v: v.type.ndim in (1, 2) and is_number(v))
    if x is None:
        return None
    inner = b.shape(x)[-1]
    y = b.operand(lambda v: v.type.ndim in (1, 2) and is_number(v) and b.shape(v)[-2:][0] == inner)
    if y is None:
        return pt.dot(x, x.T), False
    return pt.dot(x, y), False


@step
def batched_product(b: Any) -> Result:
    x = b.operand(lambda v: v.type.ndim == 3 and is_float(v))
    return None if x is None else (pt.matmul(x, pt.swapaxes(x, -1, -2)), False)


@step
def outer(b: Any) -> Result:
    x = b.operand(lambda v: v.type.ndim == 1 and is_float(v))
    return None if x is None else (pt.outer(x, x), False)
