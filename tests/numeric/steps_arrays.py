# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of random graphs that change shapes, index, and multiply matrices (see `steps`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from step_table import Result, is_float, is_number, square_fits, step, with_rank

import graphc.tensor as pt

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
            lambda: (pt.eye(n), True) if square_fits(b, x) else None,
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
        return (pt.dot(x, x.T), False) if square_fits(b, x) else None
    return pt.dot(x, y), False


@step
def batched_product(b: Any) -> Result:
    x = b.operand(lambda v: v.type.ndim == 3 and is_float(v) and b.shape(v)[1] <= 100)
    return None if x is None else (pt.matmul(x, pt.swapaxes(x, -1, -2)), False)


@step
def outer(b: Any) -> Result:
    x = b.operand(lambda v: v.type.ndim == 1 and is_float(v) and square_fits(b, v))
    return None if x is None else (pt.outer(x, x), False)
