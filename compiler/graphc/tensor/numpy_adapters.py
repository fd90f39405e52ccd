# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NumPy functions that have other arguments here, or are put together from functions of ``graphc.tensor``.

Each takes ``find``, which gives the function of a name of ``graphc.tensor`` (or of an environment), and then
NumPy's arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.ops.checks import CheckAndRaise

if TYPE_CHECKING:
    from graphc.graph.tensor import AxisLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable

Find = Callable[[str], Any]


# Ufuncs -----------------------------------------------------------------------------------------------------


def _fmax(find: Find, a: TensorVariable, b: TensorVariable) -> TensorVariable:
    return find("where")(find("isnan")(a), b, find("where")(find("isnan")(b), a, find("maximum")(a, b)))


def _fmin(find: Find, a: TensorVariable, b: TensorVariable) -> TensorVariable:
    return find("where")(find("isnan")(a), b, find("where")(find("isnan")(b), a, find("minimum")(a, b)))


def _heaviside(find: Find, x: TensorVariable, at_zero: TensorVariable) -> TensorVariable:
    step = find("where")(find("lt")(x, 0), 0.0, find("where")(find("eq")(x, 0), at_zero, 1.0))
    return find("where")(find("isnan")(x), x, step)


def _modf(find: Find, x: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    whole = find("trunc")(x)
    return find("copysign")(find("where")(find("isinf")(x), 0.0, x - whole), x), whole


UFUNCS: dict[str, Callable[..., TensorVariable | tuple[TensorVariable, ...]]] = {
    "fmax": _fmax,
    "fmin": _fmin,
    "float_power": lambda find, a, b: find("pow")(find("cast")(a, "float64"), find("cast")(b, "float64")),
    "heaviside": _heaviside,
    "modf": _modf,
}


# Questions about types --------------------------------------------------------------------------------------


def _dtype_of(x: object) -> Any:
    return np.dtype(x.dtype) if hasattr(x, "dtype") and not isinstance(x, type) else x


def _size(find: Find, a: TensorVariable, axis: int | None = None) -> TensorVariable:
    return find("size")(a) if axis is None else find("shape")(a)[axis]


def _is_complex(find: Find, x: TensorVariable) -> bool:
    return np.dtype(x.dtype).kind == "c"


# Splitting --------------------------------------------------------------------------------------------------


def _pieces(x: TensorVariable, bounds: list[TensorVariable | int], axis: int) -> list[TensorVariable]:
    front = (slice(None),) * (axis % x.ndim)
    ends = [None, *bounds, None]
    return [x[(*front, slice(a, b))] for a, b in pairwise(ends)]


def _split(
    find: Find,
    ary: TensorVariable,
    indices_or_sections: int | Sequence[TensorVariable | int],
    axis: int = 0,
    exact: bool = True,
) -> list[TensorVariable]:
    """``numpy.split``: a number of equal parts, or the positions of the cuts.

    Raises:
        ValueError: the size is known and not a multiple of the number of parts.
    """
    if not isinstance(indices_or_sections, int | np.integer):
        return _pieces(ary, list(indices_or_sections), axis)
    count = int(indices_or_sections)
    if count < 1:
        raise ValueError(f"the number of parts must be at least 1, got {count}")
    size = find("shape")(ary)[axis]
    known = ary.type.shape[axis] if hasattr(ary, "type") else int(size)
    if known is not None and exact and known % count:
        raise ValueError(f"an axis of size {known} cannot be split into {count} equal parts")
    size = size if known is None else known
    if known is None and exact:
        message = f"the size of the axis is no multiple of {count}, the number of parts"
        size = CheckAndRaise(ValueError, message)(size, find("eq")(size % count, 0))
    # As NumPy, the first parts are longer by one where the size is no multiple.
    whole, rest = size // count, size % count
    smaller = find("minimum") if known is None else min
    bounds = [whole * i + smaller(rest, i) for i in range(1, count)]
    return _pieces(ary, bounds, axis)


def _array_split(
    find: Find, ary: TensorVariable, indices_or_sections: int, axis: int = 0
) -> list[TensorVariable]:
    return _split(find, ary, indices_or_sections, axis, exact=False)


def _unstack(find: Find, x: TensorVariable, /, *, axis: int = 0) -> tuple[TensorVariable, ...]:
    return tuple(find("moveaxis")(x, axis, 0))


# Others -----------------------------------------------------------------------------------------------------


def _round(find: Find, a: TensorVariable, decimals: int = 0, out: None = None) -> TensorVariable:
    _no_out(out)
    if np.dtype(a.dtype).kind not in "fc" and decimals >= 0:
        return a
    if decimals == 0:
        return find("round")(a)
    scale = 10.0 ** abs(decimals)
    scaled = a * scale if decimals > 0 else a / scale
    rounded = find("round")(scaled)
    return find("cast")(rounded / scale if decimals > 0 else rounded * scale, a.dtype)


def _clip(
    find: Find,
    a: TensorVariable,
    a_min: TensorLike | None = None,
    a_max: TensorLike | None = None,
    *,
    min: TensorLike | None = None,
    max: TensorLike | None = None,
) -> TensorVariable:
    low, high = (min if a_min is None else a_min), (max if a_max is None else a_max)
    if low is not None and high is not None:
        return find("clip")(a, low, high)
    if low is not None:
        return find("maximum")(a, low)
    return find("tensor_copy")(a) if high is None else find("minimum")(a, high)


def _no_out(out: object) -> None:
    if out is not None:
        raise TypeError("out= cannot take the result, as it has no value yet; write y = np.round(x)")


def _array_equal(
    find: Find, a1: TensorVariable, a2: TensorVariable, equal_nan: bool = False
) -> TensorVariable:
    """True if shapes and elements agree; arrays of other shapes are not compared."""
    a, b = (x if hasattr(x, "ndim") else find("as_tensor_variable")(x) for x in (a1, a2))
    if a.ndim != b.ndim:
        return find("as_tensor_variable")(False)
    same = find("eq")(a, b) if not equal_nan else find("isclose")(a, b, 0.0, 0.0, True)
    return find("ifelse")(
        find("all")(find("eq")(find("shape")(a), find("shape")(b))), find("all")(same), False
    )


def _average(
    find: Find,
    a: TensorVariable,
    axis: int | None = None,
    weights: TensorVariable | None = None,
    keepdims: bool = False,
) -> TensorVariable:
    if weights is None:
        return find("mean")(a, axis=axis, keepdims=keepdims)
    total = find("sum")(a * weights, axis=axis, keepdims=keepdims)
    return total / find("sum")(weights + find("zeros_like")(a), axis=axis, keepdims=keepdims)


def _nan_to_num(
    find: Find,
    x: TensorVariable,
    copy: bool = True,
    nan: float = 0.0,
    posinf: TensorLike | None = None,
    neginf: TensorLike | None = None,
) -> TensorVariable:
    if np.dtype(x.dtype).kind != "f":
        return x
    limits = np.finfo(x.dtype)
    top = float(limits.max) if posinf is None else posinf
    bottom = float(limits.min) if neginf is None else neginf
    where, numbers = find("where"), find("where")(find("isnan")(x), nan, x)
    numbers = where(find("eq")(x, np.inf), top, numbers)
    return where(find("eq")(x, -np.inf), bottom, numbers)


def _trace(
    find: Find, a: TensorVariable, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: str | None = None
) -> TensorVariable:
    return find("sum")(find("diagonal")(a, offset, axis1, axis2), axis=-1, dtype=dtype)


def _without_nan(kind: str, neutral: float) -> Callable[..., TensorVariable]:
    def reduce(find: Find, a: TensorVariable, axis: int | None = None, **options: bool) -> TensorVariable:
        return find(kind)(find("where")(find("isnan")(a), neutral, a), axis=axis, **options)

    return reduce


def _nanmean(find: Find, a: TensorVariable, axis: AxisLike = None, keepdims: bool = False) -> TensorVariable:
    total = FUNCTIONS["nansum"](find, a, axis, keepdims=keepdims)
    return total / find("sum")(find("logical_not")(find("isnan")(a)), axis=axis, keepdims=keepdims)


def _append(
    find: Find, arr: TensorVariable, values: TensorVariable, axis: int | None = None
) -> TensorVariable:
    parts = [find("as_tensor_variable")(x) for x in (arr, values)]
    return find("concatenate")([find("ravel")(x) for x in parts] if axis is None else parts, axis=axis or 0)


def _norm(
    find: Find, x: TensorVariable, ord: int | None = None, axis: int | None = None, keepdims: bool = False
) -> TensorVariable:
    """NumPy takes all elements as one vector where neither ``ord`` nor ``axis`` is given."""
    if ord is None and axis is None:
        return find("linalg.vector_norm")(x, keepdims=keepdims)
    return find("linalg.norm")(x, ord, axis, keepdims)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ndim": lambda find, a: a.ndim,
    "size": _size,
    "iscomplexobj": _is_complex,
    "isrealobj": lambda find, x: not _is_complex(find, x),
    "result_type": lambda find, *given: np.result_type(*map(_dtype_of, given)),
    "can_cast": lambda find, from_, to, casting="safe": np.can_cast(_dtype_of(from_), to, casting),
    "split": _split,
    "array_split": _array_split,
    "vsplit": _split,
    "hsplit": lambda find, ary, sections: _split(find, ary, sections, 1 if ary.ndim > 1 else 0),
    "dsplit": lambda find, ary, sections: _split(find, ary, sections, 2),
    "unstack": _unstack,
    "clip": _clip,
    "round": _round,
    "around": _round,
    "array_equal": _array_equal,
    "average": _average,
    "nan_to_num": _nan_to_num,
    "nansum": _without_nan("sum", 0),
    "nanprod": _without_nan("prod", 1),
    "nanmax": _without_nan("max", -np.inf),
    "nanmin": _without_nan("min", np.inf),
    "nanmean": _nanmean,
    "append": _append,
    "linalg.norm": _norm,
    "trace": _trace,
}
