# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a tensor type accepts as a value; see ``TensorType.filter``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphc.config import config
from graphc.errors import IntegerRangeError
from graphc.graph.basic import Variable
from graphc.graph.tensor.compare import arrays_equal
from graphc_runtime.marshal import demand_numbers

if TYPE_CHECKING:
    from graphc.graph.tensor.type import TensorType


def filter_array(type_: TensorType, value: object, strict: bool, allow_downcast: bool | None) -> np.ndarray:
    """Convert ``value`` to an aligned array of native byte order, or raise TypeError (NotImplementedError for
    masked arrays). An array that is one already is returned as it is, also of a class derived from
    ``ndarray``, as a map of a file.
    """
    if isinstance(value, Variable):
        raise TypeError(
            f"expected an array for {type_}, got the symbolic variable {value}; use givens= or eval() instead"
        )
    demand_numbers(value)
    if strict:
        array = _exact(type_, value)
    elif allow_downcast:
        array = _cast(type_, value, _as_array(type_, value, None))
    elif isinstance(value, np.ndarray):
        array = _widened(type_, value)
    else:
        array = _from_python(type_, value, allow_downcast)
    _check_shape(type_, array)
    if not array.flags.aligned:
        array = array.copy()
    return array


def _exact(type_: TensorType, value: object) -> np.ndarray:
    if not isinstance(value, np.ndarray):
        raise TypeError(
            f"expected an array of {type_} (strict), got {value!r:.80} of type {type(value).__name__}"
        )
    if value.dtype != type_.numpy_dtype:
        raise TypeError(f"expected dtype {type_.dtype} (strict), got an array of dtype {value.dtype}")
    return value


def _as_array(type_: TensorType, value: object, dtype: np.dtype | None) -> np.ndarray:
    try:
        return np.asarray(value, dtype=dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(
            f"expected a value for {type_}, got {value!r:.80} of type {type(value).__name__}: {error}"
        ) from None


def _cast(type_: TensorType, value: object, array: np.ndarray) -> np.ndarray:
    """Cast without looking at the values, as ``astype`` does; ``array`` is what NumPy makes of ``value``."""
    if array.dtype.kind not in "biufc":
        return _as_array(type_, value, type_.numpy_dtype)
    if array.dtype.kind == "c" and type_.numpy_dtype.kind != "c":
        array = array.real
    with np.errstate(all="ignore"):
        return array.astype(type_.numpy_dtype, copy=False)


def _widened(type_: TensorType, array: np.ndarray) -> np.ndarray:
    """Cast an array only to a dtype that holds all its values."""
    wanted = type_.numpy_dtype
    if array.dtype == wanted:
        return array if array.dtype.isnative else array.astype(wanted)
    # int64 to float64 may round, but NumPy, and every user, counts it as a safe cast.
    if array.dtype.kind not in "biufc" or not np.can_cast(array.dtype, wanted, "safe"):
        raise TypeError(
            f"expected dtype {type_.dtype}, got {array.dtype}, and a cast could lose information; "
            f"use astype({type_.dtype!r}), or allow_downcast=True (allow_input_downcast=True for a function)"
        )
    return array.astype(wanted)


def _from_python(type_: TensorType, value: object, allow_downcast: bool | None) -> np.ndarray:
    """Convert numbers and nested lists, whose dtype nobody chose, when the values survive: NumPy's scalars,
    too, which are what its functions return for Python numbers.
    """
    array = _as_array(type_, value, None)
    wanted = type_.numpy_dtype
    if array.dtype == wanted and array.dtype.isnative:
        return array
    if array.dtype.kind not in "biufc" and array.size:
        raise TypeError(f"expected a value for {type_}, got {value!r:.80} of type {type(value).__name__}")
    if allow_downcast is None and type(value) is float and type_.dtype == config.floatX:
        return _cast(type_, value, array)
    converted = _cast(type_, value, array)
    if np.can_cast(array.dtype, wanted, "safe"):
        return converted
    # A complex number differs from its real part unless the imaginary part is 0.
    if arrays_equal(converted, array, force_same_dtype=False):
        return converted
    is_range = array.dtype.kind in "iu" and wanted.kind in "iu"
    raise (IntegerRangeError if is_range else TypeError)(
        f"expected a value for {type_}, got {value!r:.80}, which changes when converted to {type_.dtype}; "
        "allow_downcast=True (allow_input_downcast=True for a function) accepts that"
    )


def _check_shape(type_: TensorType, array: np.ndarray) -> None:
    if array.ndim != type_.ndim:
        raise TypeError(
            f"wrong number of dimensions: expected {type_.ndim} for {type_}, "
            f"got {array.ndim} with shape {array.shape}"
        )
    for axis, (expected, given) in enumerate(zip(type_.shape, array.shape, strict=True)):
        if expected is not None and expected != given:
            raise TypeError(
                f"wrong size of dimension {axis}: expected {expected} for {type_}, "
                f"got {given} with shape {array.shape}"
            )
