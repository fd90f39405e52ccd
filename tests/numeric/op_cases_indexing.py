# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of indexing, masks, sorting and searching."""

from __future__ import annotations

from typing import Any

import numpy as np
from op_table import NUMBERS, ORDERED, Family, arg, between, distinct

import graphc.tensor as pt

ROW, MATRIX, CUBE = arg("n"), arg("n", "n+1"), arg(2, "n", "n+1")
APART = arg("n", "n+1", make=distinct)
APART_ROW = arg("n", make=distinct)
FULL = (4, 1)


def positions(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Indices of an axis of 4, negative ones among them."""
    return rng.integers(-4, 4, shape).astype(dtype)


def order(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """A permutation in each row."""
    return np.argsort(rng.random(shape), axis=-1).astype(dtype)


PLACES, TABLE = arg("n", dtype="int64", make=positions), arg(4, "n+1")
MASK, ROW_MASK = arg("n", "n+1", dtype="bool"), arg("n", dtype="bool")
OTHER = arg("n", "n+1", make=between(-1, 1))

# Indexing -----------------------------------------------------------------------------------------

case = Family("indexing", dtypes=NUMBERS)
case("take", [TABLE, PLACES], lambda m, x, i: m.take(x, i, axis=0))
case(
    "take:axis",
    [arg("n", 4), arg(2, "n", dtype="int64", make=positions)],
    lambda m, x, i: m.take(x, i, axis=1),
)
case(
    "take:wrap",
    [TABLE, arg("n", dtype="int64", make=between(-9, 9))],
    lambda m, x, i: m.take(x, i, axis=0, mode="wrap"),
)
case(
    "take:clip",
    [TABLE, arg("n", dtype="int64", make=between(-9, 9))],
    lambda m, x, i: m.take(x, i, axis=0, mode="clip"),
)
INDICES: dict[str, Any] = {
    "slices": lambda x, i: x[1:, ::-1],
    "integer": lambda x, i: x[-1],
    "newaxis": lambda x, i: x[:, None, 1:],
    "array": lambda x, i: x[i],
    "array and slice": lambda x, i: x[i, 1:],
    "outer array": lambda x, i: x[:, i % 1],
    "two arrays": lambda x, i: x[i, i % 1],
    "array and integer": lambda x, i: x[i, 0],
}
for name, index in INDICES.items():
    case(f"getitem:{name}", [TABLE, PLACES], lambda m, x, i, index=index: index(x, i))
case("getitem:around", [arg(4, "n", 4), PLACES], lambda m, x, i: x[i, :, i])
case("getitem:mask", [MATRIX, ROW_MASK], lambda m, x, mask: x[mask], jax=False)
case("getitem:full mask", [MATRIX, MASK], lambda m, x, mask: x[mask], jax=False)


def _updated(x: np.ndarray, index: Any, y: Any, kind: str) -> np.ndarray:
    x = x.copy()
    if kind == "set":
        x[index] = y
    else:
        {"inc": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[kind].at(x, index, y)
    return x


ROWS_OF_TABLE = arg("n", "n+1", make=between(0, 1))
case = Family("updates", dtypes=("int32", "float32", "float64", "complex128"), jax=False)
case(
    "set_subtensor",
    [TABLE, arg("n+1")],
    lambda m, x, y: m.set_subtensor(x[2], y),
    lambda x, y: _updated(x, 2, y, "set"),
)
case(
    "inc_subtensor",
    [TABLE, arg("n+1")],
    lambda m, x, y: m.inc_subtensor(x[1:3], y),
    lambda x, y: _updated(x, slice(1, 3), y, "inc"),
)
case(
    "inc_subtensor:array",
    [TABLE, PLACES, ROWS_OF_TABLE],
    lambda m, x, i, y: m.inc_subtensor(x[i], y),
    lambda x, i, y: _updated(x, i, y, "inc"),
    gradient=(0, 2),
)
case(
    "set_subtensor:array",
    [TABLE, PLACES, ROWS_OF_TABLE],
    lambda m, x, i, y: m.set_subtensor(x[i], y),
    lambda x, i, y: _updated(x, i, y, "set"),
    gradient=(0, 2),
)
case(
    "set_subtensor:mask",
    [MATRIX, MASK],
    lambda m, x, mask: m.set_subtensor(x[mask], 3),
    lambda x, mask: _updated(x, mask, 3, "set"),
)

for name in ("mul", "max", "min"):
    case(
        f"{name}_subtensor",
        [TABLE, PLACES, ROWS_OF_TABLE],
        lambda m, x, i, y, name=name: getattr(m, f"{name}_subtensor")(x[i], y),
        lambda x, i, y, name=name: _updated(x, i, y, name),
        gradient=False,
        dtypes=("int32", "float32", "float64"),
    )

# Masks --------------------------------------------------------------------------------------------

case = Family("masks", dtypes=("bool", "int64", "float32", "float64"), jax=False, gradient=False)
case("nonzero", [MATRIX], lambda m, x: m.nonzero(x > 0) if m is not pt else m.nonzero(pt.gt(x, 0)))
case("argwhere", [MATRIX])
case("flatnonzero", [MATRIX])
case("nonzero_values", [MATRIX], reference=lambda x: x[x.nonzero()])
case = Family("choosing", dtypes=("int64", "float32", "float64"), jax=False)
case("compress", [ROW_MASK, MATRIX], lambda m, c, x: m.compress(c, x, axis=0))
case("extract", [MASK, MATRIX])
case("select", [MASK, MATRIX, OTHER], lambda m, c, x, y: m.select([c, y > 0], [x, y], default=2))
case(
    "choose",
    [arg("n", "n+1", dtype="int64", make=between(0, 1)), MATRIX, OTHER],
    lambda m, i, x, y: m.choose(i, [x, y]),
)
case("where", [MASK, MATRIX, OTHER], jax=True)
case("switch", [MASK, MATRIX, OTHER], reference=np.where)

# Sorting ------------------------------------------------------------------------------------------

case = Family("sorting", dtypes=ORDERED)
case("sort", [APART])
case("sort:axis", [APART], lambda m, x: m.sort(x, axis=0))
case("sort:flat", [APART], lambda m, x: m.sort(x, axis=None))
case("argsort", [APART], lambda m, x: m.argsort(x, kind="stable"), gradient=False)
case(
    "searchsorted",
    [arg(5, make=between(-2, 2)), ROW],
    lambda m, a, x: m.searchsorted(m.sort(a), x),
    gradient=False,
)
case(
    "searchsorted:right",
    [arg(5, make=between(-2, 2)), ROW],
    lambda m, a, x: m.searchsorted(m.sort(a), x, side="right"),
    gradient=False,
)
case("sort_complex", [APART_ROW], dtypes=("float64", "complex128"), gradient=False, jax=False)
case = Family("selection", dtypes=("int64", "float32", "float64"), sizes=FULL, jax=False)
ELEMENTS = arg("n", 6, make=distinct)
case("partition", [ELEMENTS], lambda m, x: m.sort(m.partition(x, 3)[..., :4], axis=-1))
case(
    "argpartition",
    [arg("n", 6, dtype="float64", make=distinct)],
    lambda m, x: m.sort(m.take_along_axis(x, m.argpartition(x, 3), axis=-1)[..., :4], axis=-1),
    gradient=False,
)
case("topk", [ELEMENTS], lambda m, x: m.topk(x, 3), lambda x: np.sort(x)[..., :-4:-1])
DISTINCT = arg("n", 6, dtype="float64", make=distinct)
case(
    "argtopk", [DISTINCT], lambda m, x: m.argtopk(x, 2), lambda x: np.argsort(x)[..., :-3:-1], gradient=False
)
case(
    "topk_and_argtopk",
    [DISTINCT],
    lambda m, x: m.topk_and_argtopk(x, 2),
    lambda x: [np.sort(x)[..., :-3:-1], np.argsort(x)[..., :-3:-1]],
    gradient=False,
)
case = Family("along axes", dtypes=NUMBERS)
ORDER = arg("n", "n+1", dtype="int64", make=order)
case("take_along_axis", [MATRIX, ORDER], lambda m, x, i: m.take_along_axis(x, i, axis=1))


def _put(x: np.ndarray, i: np.ndarray, y: np.ndarray) -> np.ndarray:
    x = x.copy()
    np.put_along_axis(x, i, y, axis=1)
    return x


case(
    "put_along_axis",
    [MATRIX, ORDER, OTHER],
    lambda m, x, i, y: m.put_along_axis(x, i, y, axis=1),
    _put,
    jax=False,
)
