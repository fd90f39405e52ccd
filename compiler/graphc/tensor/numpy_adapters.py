# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NumPy functions that have other arguments here, or are put together from functions of ``graphc.tensor``.

Each takes ``find``, which gives the function of a name of ``graphc.tensor`` (or of an environment), and then
NumPy's arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.ops.checks import CheckAndRaise

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable

Find = Callable[[str], Any]


# Questions about types --------------------------------------------------------------------------------------


def _dtype_of(x: object) -> Any:
    return np.dtype(x.dtype) if hasattr(x, "dtype") and not isinstance(x, type) else x


def _size(find: Find, a: TensorVariable, axis: int | None = None) -> TensorVariable:
    return find("size")(a) if axis is None else find("shape")(a)[axis]


def _is_complex(find: Find, x: TensorVariable) -> bool:
    return np.dtype(x.dtype).kind == "c"


# Others -----------------------------------------------------------------------------------------------------


def _split(
    find: Find, ary: TensorVariable, indices_or_sections: int | Sequence[TensorVariable | int], axis: int = 0
) -> list[TensorVariable]:
    """``numpy.split``: a number of equal parts, or the positions of the cuts.

    Raises:
        ValueError: the size is known and not a multiple of the number of parts.
    """
    if isinstance(indices_or_sections, int | np.integer) and indices_or_sections > 0:
        count = int(indices_or_sections)
        size = find("shape")(ary)[axis]
        known = ary.type.shape[axis] if hasattr(ary, "type") else int(size)
        if known is None:
            message = f"the size of the axis is no multiple of {count}, the number of parts"
            ary = CheckAndRaise(ValueError, message)(ary, find("eq")(size % count, 0))
        elif known % count:
            raise ValueError(f"an axis of size {known} cannot be split into {count} equal parts")
    return find("array_split")(ary, indices_or_sections, axis)


def _round(find: Find, a: TensorVariable, decimals: int = 0, out: None = None) -> TensorVariable:
    if out is not None:
        raise TypeError("out= cannot take the result, as it has no value yet; write y = np.round(x)")
    return a if np.dtype(a.dtype).kind not in "fc" and decimals >= 0 else find("round")(a, decimals)


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
    "clip": _clip,
    "round": _round,
    "around": _round,
    "linalg.norm": _norm,
}
