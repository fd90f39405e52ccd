# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Turns arguments into the arrays kernels take: exactly ndarray, native dtype, C-contiguous, aligned.

Whatever becomes an array of numbers, a constant, an argument, the value of a shared variable or a result of
users' code, goes through `demand_numbers` first: ``numpy.asarray`` would drop without a word what a value is
besides its numbers.
"""

from __future__ import annotations

import sys
from typing import Any, TypeVar

import numpy as np

from graphc_runtime.manifest import ArraySpec
from graphc_runtime.symbols import DESCRIPTORS, kind_letter

Value = TypeVar("Value")
_KINDS = "biufc"
_PLAIN = frozenset((np.ndarray, float, int, bool, complex, np.float64, np.int64, np.float32, np.bool_))
_ORDER = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def is_on_device(value: object) -> bool:
    """True if a value is an array of a CUDA device, ours or another library's."""
    kind = type(value)
    if kind is np.ndarray:
        return False
    # Other libraries make their interface anew each time that it is asked for, some of them for arrays of the
    # host as well, where asking fails.
    return hasattr(kind, "is_device_array") or hasattr(value, "__cuda_array_interface__")


def on_host(value: Value) -> Value | np.ndarray:
    """The value; of an array of a device a copy on the host."""
    return np.asarray(value) if is_on_device(value) else value


def demand_numbers(value: object) -> None:
    """Refuses values of which the numbers are not all: masked arrays, quantities with units, also in lists.

    Raises:
        NotImplementedError: it has a mask. TypeError: it has a unit.

    Examples:
        >>> demand_numbers([1.0, 2.0])
        >>> demand_numbers([np.ma.masked_less([1, 2], 2)])
        Traceback (most recent call last):
            ...
        NotImplementedError: tensors have no masks; fill the masked elements first: x.filled(value)
    """
    kind = type(value)
    if kind in _PLAIN:
        return
    # Lists of numbers are not looked through.
    if isinstance(value, list | tuple):
        if value and type(value[0]) not in _PLAIN:
            for item in value:
                demand_numbers(item)
        return
    # `numpy.ma` takes 8 ms to import: who has none has not imported it either.
    if "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray):
        raise NotImplementedError("tensors have no masks; fill the masked elements first: x.filled(value)")
    # As those of Astropy and unyt are arrays, and those of Pint have one.
    is_array = isinstance(value, np.ndarray)
    unit = getattr(value, "units", getattr(value, "unit", None)) if is_array else None
    if not is_array and hasattr(kind, "magnitude") and hasattr(kind, "units"):
        unit = getattr(value, "units", None)
    if unit is not None:
        raise TypeError(
            f"tensors have no units, but this {kind.__name__} has {str(unit) or 'one of pure numbers'}; pass "
            "its numbers in a unit of your choice"
        )


def is_canonical(value: np.ndarray, spec: ArraySpec) -> bool:
    """True if kernels can take the value as it is."""
    return (
        type(value) is np.ndarray
        and value.dtype is DESCRIPTORS[spec.dtype]
        and value.flags.carray | value.flags.c_contiguous & value.flags.aligned
        and fits(value.shape, spec)
    )


def fits(shape: tuple[int, ...], spec: ArraySpec) -> bool:
    """True if rank and static sizes agree."""
    return len(shape) == spec.rank and all(
        want in (None, have) for have, want in zip(shape, spec.shape, strict=True)
    )


def canonical(value: Any, spec: ArraySpec, name: str) -> np.ndarray:
    """The value as a canonical array: itself, a view, or a copy.

    Args:
        value: any array-like.
        spec: what is wanted. Casts that lose nothing are made; Python numbers and lists take the wanted dtype
            when it is of the same or a higher kind and holds every value.
        name: how errors call the argument.

    Raises:
        TypeError: dtype or number of dimensions cannot be used.
        ValueError: a static size differs, or a Python number does not fit the dtype.
    """
    if is_canonical(value, spec):
        ready: np.ndarray = value
        return ready
    array = _as_array(value, name)
    wanted = DESCRIPTORS[spec.dtype]
    if array.ndim != spec.rank:
        raise TypeError(f"{name}: expected {spec.rank} dimensions, given {array.ndim} (shape {array.shape})")
    if not fits(array.shape, spec):
        shape = ", ".join("?" if size is None else str(size) for size in spec.shape)
        raise ValueError(f"{name}: expected shape ({shape}), given {array.shape}")
    if array.dtype != wanted:
        array = _cast(array, wanted, name, weak=not isinstance(value, np.ndarray | np.generic))
    plain = np.ascontiguousarray(array).reshape(array.shape)  # ascontiguousarray makes 0-d arrays 1-d
    if plain.dtype is not wanted or not plain.flags.aligned or not plain.dtype.isnative:
        fresh = np.empty(plain.shape, wanted)
        fresh[...] = plain
        return fresh
    return plain


def _as_array(value: np.ndarray, name: str) -> np.ndarray:
    try:
        demand_numbers(value)
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: {type(value).__name__} cannot be turned into an array: {error}") from None
    if kind_letter(array.dtype) not in _KINDS:
        given = type(value).__name__ if not isinstance(value, np.ndarray) else f"dtype {array.dtype}"
        raise TypeError(f"{name}: expected numbers, given {given}")
    return array


def _cast(array: np.ndarray, wanted: np.dtype[Any], name: str, *, weak: bool) -> np.ndarray:
    if np.can_cast(array.dtype, wanted, "safe"):
        return array.astype(wanted)
    if not weak or _ORDER[kind_letter(array.dtype)] > _ORDER[kind_letter(wanted)]:
        raise TypeError(
            f"{name}: expected dtype {wanted}, given {array.dtype}, which cannot be cast without loss; "
            f"convert it with .astype({wanted.name!r})"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        result = array.astype(wanted)
    if wanted.kind in "iu" and not np.array_equal(result, array):
        raise ValueError(f"{name}: values from {array.min()} to {array.max()} do not fit dtype {wanted}")
    return result


def check_out(out: object, spec: ArraySpec, shape: tuple[int, ...], name: str) -> None:
    """Checks an array given as `out=`.

    Raises:
        TypeError: not an ndarray of the dtype.
        ValueError: another shape, or read-only.
    """
    if not isinstance(out, np.ndarray) or out.dtype.newbyteorder("=") != DESCRIPTORS[spec.dtype]:
        given = f"dtype {out.dtype}" if isinstance(out, np.ndarray) else type(out).__name__
        raise TypeError(f"{name}: expected an ndarray of dtype {spec.dtype}, given {given}")
    if out.shape != shape:
        raise ValueError(f"{name}: expected shape {shape}, given {out.shape}")
    if not out.flags.writeable:
        raise ValueError(f"{name}: expected a writeable array, given a read-only one")
