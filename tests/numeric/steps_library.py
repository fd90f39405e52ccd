# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Further steps of random graphs: sorting, running values, masks, linear algebra, loops, branches, draws.

They are a table of their own (see `steps.STEPS`): not every test that grows graphs can run all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from step_table import STEPS, Result, is_float, is_number, kind, square_fits, with_rank

import graphc
import graphc.tensor as pt

LIBRARY: dict[str, Callable[[Any], Result]] = {}


def step(function: Callable[[Any], Result]) -> Callable[[Any], Result]:
    """Add a step to the table, under the name of the function."""
    LIBRARY[function.__name__] = function
    return function


def is_wide_float(v: Any) -> bool:
    """Dtypes that LAPACK has."""
    return v.type.dtype in ("float32", "float64")


def not_empty(b: Any, v: Any) -> bool:
    return with_rank(v) and 0 not in b.shape(v)


def _exact_real(b: Any) -> Any:
    return b.operand(lambda v: v in b.exact and kind(v) in "iuf" and not_empty(b, v))


# Order --------------------------------------------------------------------------------------------


@step
def sort(b: Any) -> Result:
    x = _exact_real(b)
    if x is None:
        return None
    axis = b.choices.index(x.type.ndim)
    choice = b.choices.pick(["sort", "argsort", "flat", "topk", "median"])
    if choice == "median":
        return pt.median(x.astype("float64"), axis=axis), False
    if choice == "topk":
        return pt.topk(x, b.choices.integer(1, b.shape(x)[axis]), axis=axis), True
    if choice == "flat":
        return pt.sort(x, axis=None), True
    return getattr(pt, choice)(x, axis=axis), True


@step
def search(b: Any) -> Result:
    x, table = _exact_real(b), b.operand(lambda v: v in b.exact and kind(v) in "iuf" and v.type.ndim == 1)
    if x is None or table is None:
        return None
    return pt.searchsorted(
        pt.sort(table), x.astype(table.type.dtype), side=b.choices.pick(["left", "right"])
    ), True


@step
def unique(b: Any) -> Result:
    x = _exact_real(b)
    return None if x is None else (pt.unique(x), True)


@step
def gather(b: Any) -> Result:
    x = _exact_real(b)
    if x is None:
        return None
    axis = b.choices.index(x.type.ndim)
    order = pt.argsort(x, axis=axis)
    if b.choices.chance(2):
        return pt.take_along_axis(x, order, axis=axis), True
    return pt.put_along_axis(x * 1, order, x, axis=axis), True


# Running values -----------------------------------------------------------------------------------


@step
def cumulative(b: Any) -> Result:
    x = b.operand(lambda v: with_rank(v) and kind(v) in "iuf")
    if x is None:
        return None
    axis = b.choices.index(x.type.ndim)
    name = b.choices.pick(["cumsum", "cumprod", "cummax", "cummin"])
    # Products of numbers up to 1 do not grow.
    values = x if name != "cumprod" else pt.sign(x) if kind(x) != "f" else pt.clip(x, -1, 1)
    exact = x in b.exact and (name[3] == "m" or kind(x) != "f")
    return getattr(pt, name)(values, axis=axis), exact


@step
def difference(b: Any) -> Result:
    x = b.operand(lambda v: with_rank(v) and kind(v) in "iuf")
    if x is None:
        return None
    return pt.diff(x, axis=b.choices.index(x.type.ndim)), x in b.exact and kind(x) != "f"


# Masks and shapes ---------------------------------------------------------------------------------


@step
def mask(b: Any) -> Result:
    x = _exact_real(b)
    if x is None:
        return None
    chosen = pt.gt(x, 0)
    choice = b.choices.pick(["select", "rows", "update", "nonzero", "compress"])
    if choice == "select":
        return x[chosen], True
    if choice == "rows":
        return x[chosen.any(axis=tuple(range(1, x.type.ndim))) if x.type.ndim > 1 else chosen], True
    if choice == "update":
        return (pt.set_subtensor if b.choices.chance(2) else pt.inc_subtensor)(x[chosen], 1), kind(x) != "f"
    if choice == "nonzero":
        return pt.nonzero(chosen)[0], True
    return pt.compress(chosen.ravel(), x), True


@step
def rearrange(b: Any) -> Result:
    x = b.operand(with_rank)
    if x is None:
        return None
    axis = b.choices.index(x.type.ndim)
    return b.choices.pick(
        [
            lambda: pt.roll(x, 2, axis=axis),
            lambda: pt.repeat(x, 2, axis=axis),
            lambda: pt.tile(x, (2,) * x.type.ndim),
            lambda: pt.flip(x, axis),
            lambda: pt.pad(x, 1),
            lambda: pt.pad(x, [(0, 2)] * x.type.ndim, mode="edge") if not_empty(b, x) else pt.flip(x),
            lambda: pt.pad(x, 1, mode="symmetric") if not_empty(b, x) else pt.flip(x),
        ]
    )(), x in b.exact


@step
def triangle(b: Any) -> Result:
    x = b.operand(lambda v: v.type.ndim >= 2)
    if x is None:
        return None
    return b.choices.pick([pt.tril, pt.triu])(x, b.choices.integer(-2, 2)), x in b.exact


@step
def diagonal(b: Any) -> Result:
    x = b.operand(lambda v: v.type.ndim in (1, 2) and not_empty(b, v) and square_fits(b, v))
    return None if x is None else (pt.diag(x), x in b.exact)


# Linear algebra -----------------------------------------------------------------------------------


@step
def linear_algebra(b: Any) -> Result:
    x = b.operand(lambda v: v.type.ndim >= 2 and is_wide_float(v) and b.shape(v)[-2] <= 100)
    if x is None:
        return None
    part = pt.tanh(x)
    n = x.shape[-2]
    # Positive definite, with eigenvalues between 3 and 3 plus the number of columns.
    a = part @ pt.swapaxes(part, -1, -2) + 3 * pt.eye(n, dtype=x.type.dtype)
    linalg = pt.linalg
    functions = {
        "solve": lambda: linalg.solve(a, part, b_ndim=2),
        "positive": lambda: linalg.solve(a, part, assume_a="pos", b_ndim=2),
        "cholesky": lambda: linalg.cholesky(a),
        "triangular": lambda: linalg.solve_triangular(linalg.cholesky(a), part, lower=True, b_ndim=2),
        "inv": lambda: linalg.inv(a),
        "slogdet": lambda: linalg.slogdet(a)[1],
        "eigvalsh": lambda: linalg.eigvalsh(a),
        "qr": lambda: abs(linalg.qr(a)[1]),
        "expm": lambda: linalg.expm(part @ pt.swapaxes(part, -1, -2) / 8),
    }
    if 0 in b.shape(x):
        functions = {name: functions[name] for name in ("solve", "inv", "slogdet")}
    return functions[b.choices.pick(list(functions))](), False


@step
def contraction(b: Any) -> Result:
    x = b.operand(lambda v: v.type.ndim in (2, 3) and is_number(v) and b.shape(v)[-2] <= 100)
    if x is None:
        return None
    text = b.choices.pick(
        ["ij,kj->ik", "ij,ij->j", "ij,kj,kl->il"] if x.type.ndim == 2 else ["bij,bkj->bik", "bij,bij->i"]
    )
    return pt.einsum(text, *[x] * len(text.partition("->")[0].split(","))), False


@step
def convolution(b: Any) -> Result:
    x = b.operand(lambda v: v.type.ndim == 3 and is_wide_float(v) and not_empty(b, v))
    if x is None:
        return None
    taps = b.choices.integer(1, b.shape(x)[2])
    filters = b.rng.uniform(-1, 1, (2, b.shape(x)[1], taps)).astype(x.type.dtype)
    if b.choices.chance(3):
        return pt.nn.max_pool1d(x, taps), False
    return pt.nn.conv1d(x, pt.constant(filters), padding=b.choices.index(2)), False


@step
def fourier(b: Any) -> Result:
    x = b.operand(lambda v: is_wide_float(v) and not_empty(b, v))
    if x is None:
        return None
    y = pt.fft.rfft(x, axis=b.choices.index(x.type.ndim))
    return b.choices.pick([pt.real, pt.imag])(y), False


# Control ------------------------------------------------------------------------------------------


@step
def branch(b: Any) -> Result:
    x = b.operand(is_float)
    scalar = b.operand(lambda v: v in b.exact and v.type.ndim == 0 and kind(v) != "c")
    sized = b.operand(with_rank)
    if x is None or (scalar is None and sized is None):
        return None
    condition = pt.gt(sized.shape[0], 2) if scalar is None else pt.neq(scalar, 0)
    return graphc.ifelse(condition, pt.tanh(x) * 2, pt.cos(x) - x), False


@step
def loop(b: Any) -> Result:
    x = b.operand(lambda v: is_wide_float(v) and with_rank(v))
    if x is None:
        return None
    start = pt.zeros(tuple(x.shape[i] for i in range(1, x.type.ndim)), dtype=x.type.dtype)
    body = b.choices.pick(
        [
            lambda row, h: pt.tanh(row + h * 0.5),
            lambda row, h: h + row,
            lambda row, h: pt.maximum(h, row),
            # Contracting: others would amplify rounding errors in long loops.
            lambda row, h: pt.cos(h * 0.5) * pt.tanh(row) if row.type.ndim else pt.sin(row - h * 0.5),
        ]
    )
    result = graphc.scan(
        body, sequences=[x], outputs_info=[start], go_backwards=b.choices.chance(3), return_updates=False
    )
    return (result[-1] if not_empty(b, x) and b.choices.chance(3) else result), False


@step
def draws(b: Any) -> Result:
    x = b.operand(lambda v: v.type.dtype == "float64" and with_rank(v))
    if x is None:
        return None
    generator = pt.random.RandomGeneratorType("PCG64")(f"rng{len(b.graph.inputs)}")
    b.graph.inputs.append(generator)
    b.graph.values.append(pt.random.state_of(np.random.default_rng(b.choices.integer(0, 99))))
    b.known[generator] = b.graph.values[-1]
    n = x.shape[0]
    draw = b.choices.pick(
        [
            lambda: pt.random.uniform(-1, 1, size=(n, 2), rng=generator),
            lambda: pt.random.integers(0, 5, size=(n,), rng=generator),
            lambda: pt.random.normal(pt.tanh(x), 1.0, rng=generator),
        ]
    )
    return draw(), False


ALL = {**STEPS, **LIBRARY}
