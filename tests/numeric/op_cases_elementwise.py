# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of elementwise functions, made from the table of rows: every public name of every row."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special
from op_cases import DOMAINS
from op_table import NUMBERS, Argument, Family, arg, between, space

import graphc.tensor as pt
from graphc.ops.elementwise import Elementwise, Row, Undefined
from graphc.tensor import special as special_functions

SIZES = (5, 1, 0)
_FLOATING = tuple(dtype for dtype in NUMBERS if dtype.startswith("float"))
_TOLERANCE = {"pow": 10, "tan": 10, "hyp2f1_da": 1e6, "hyp2f1_dc": 1e6, "gammainc_da": 1e5, "betainc_da": 1e5,
              "betainc_db": 1e5}  # fmt: skip
# Rows that jump, or have no values for which NumPy's function is the same.
_WITHOUT_GRADIENT = {"copysign", "angle", "round", "sign"}


def polygamma_order(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Small natural numbers."""
    return rng.integers(1, 4, shape).astype(dtype)


def floor_divide(x: Any, y: Any) -> np.ndarray:
    """NumPy's, but for infinite numbers what the quotient rounds down to."""
    found = np.asarray(np.floor_divide(x, y))
    if found.dtype.kind != "f":
        return found
    infinite = np.isinf(x) | np.isinf(y)
    return np.where(infinite, np.floor(np.true_divide(x, y)), found).astype(found.dtype)


def _arguments(name: str, row: Row) -> list[Argument]:
    low, high = DOMAINS.get(name, (-2.0, 2.0))
    makes = [between(low + 1e-9 * i, high) for i in range(row.arity)]
    if name == "polygamma":
        makes[0] = polygamma_order
    return [arg("n", "n+1", make=make) for make in makes]


def _dtypes(name: str, row: Row) -> tuple[str, ...]:
    """The dtypes for which NumPy has a loop and the result a dtype of ours."""
    found = []
    for dtype in NUMBERS:
        try:
            result = row.resolve((np.dtype(dtype),) * row.arity)
        except TypeError:
            continue
        # Integers are converted to a float dtype: one of them shows it.
        converted = dtype.startswith(("int", "uint", "bool")) and result[-1].kind in "fc" and dtype != "int64"
        if not converted and not (name == "pow" and np.dtype(dtype).kind in "iu"):
            found.append(dtype)
    return tuple(found)


def _gradient(name: str, row: Row) -> bool | tuple[int, ...]:
    if row.grad is None or name in _WITHOUT_GRADIENT or "float64" not in _dtypes(name, row):
        return False
    if row.resolve((np.dtype("float64"),) * row.arity)[-1].kind == "b":
        return False
    return tuple(i for i, rule in enumerate(row.grad) if not isinstance(rule, Undefined))


case = Family("elementwise", sizes=SIZES)
_DONE = {"second", "switch", "identity"}
# A row's first name is that of its case: NumPy's, by which JAX's function is found, too.
_NAMES = [
    (name, getattr(pt, name))
    for name in sorted(pt.math.__all__, key=lambda name: not hasattr(np, name))
    if isinstance(getattr(pt, name), Elementwise)
]
_SPECIAL = [
    (f"special.{name}", getattr(special_functions, name))
    for name in special_functions.__all__
    if isinstance(getattr(special_functions, name), Elementwise)
]
FIRST: dict[str, str] = {}


def _jax(name: str) -> Any:
    """JAX's function of that name, where it has one."""

    def call(m: Any, *xs: Any) -> Any:
        for where in ("", "special"):
            found = getattr(space(where, 2), name, None)
            if found is not None:
                return found(*xs)
        raise AttributeError(name)

    return call


def _reference(row: Row) -> Any:
    """NumPy's function in the loop that the row says."""

    def call(*xs: np.ndarray) -> np.ndarray:
        *loop, result = row.resolve(tuple(x.dtype for x in xs))
        found = row.reference(*(x.astype(dtype) for x, dtype in zip(xs, loop, strict=True)))
        return np.asarray(found, result)

    return call


for _name, _op in _NAMES:
    _row = _op.row
    if _row.name in _DONE or _row.name in FIRST:
        continue
    FIRST[_row.name] = _name
    case(
        _name,
        _arguments(_row.name, _row),
        lambda m, *xs, op=_op: op(*xs),
        _reference(_row),
        dtypes=_dtypes(_row.name, _row),
        gradient=_gradient(_row.name, _row),
        tolerance=_TOLERANCE.get(_row.name, 4 if _row.name not in dir(scipy.special) else 100),
        jax=_jax(_name),
    )
# Further names of the same operations.
SYNONYMS = {name: op.row.name for name, op in (*_NAMES, *_SPECIAL) if FIRST.get(op.row.name) != name}

case = Family("elementwise functions", sizes=SIZES, dtypes=("int64", *_FLOATING))
X, Y = arg("n", "n+1"), arg("n", "n+1", make=between(0.5, 3))
case("divmod", [X, Y], None, lambda x, y: (floor_divide(x, y), np.mod(x, y)), gradient=False)
case("round", [arg("n", "n+1", make=between(-9, 9))], gradient=False)
case(
    "round:away",
    [X],
    lambda m, x: m.round(x, "half_away_from_zero"),
    lambda x: np.copysign(np.floor(np.abs(x) + x.dtype.type(0.5)), x).astype(x.dtype),
    gradient=False,
    jax=False,
    dtypes=_FLOATING,
)

# NumPy's functions that are made of several rows.
for _name in ("fix", "float_power", "fmax", "fmin", "fmod", "heaviside", "positive"):
    _binary = _name in ("float_power", "fmax", "fmin", "fmod", "heaviside")
    case(_name, [Y, X] if _binary else [X], gradient=False, dtypes=("int64", "float32", "float64"))
for _name in ("fabs", "frexp", "isneginf", "isposinf", "modf", "nan_to_num"):
    case(_name, [X], gradient=False, dtypes=("float32", "float64"))
case("bitwise_count", [X], gradient=False, dtypes=("int8", "int64", "uint8"))
case = Family("sliding products", sizes=(5, 1), tolerance=10, dtypes=("int64", "float32", "float64"))
for _name in ("convolve", "correlate"):
    case(_name, [arg("n"), arg(3)], lambda m, x, y, name=_name: getattr(m, name)(x, y, "full"))
