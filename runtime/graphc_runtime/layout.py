# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kinds of native entries that this process can use; every struct offset they rely on is checked first.

Three tiers: `struct` reads fields of CPython's and NumPy's objects directly, `buffer` uses the buffer
protocol and exported functions only, `python` calls kernels through ctypes.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import sys

import numpy as np

from graphc_runtime import symbols
from graphc_runtime.errors import LoadError
from graphc_runtime.loader import host_machine

TIERS = ("struct", "buffer", "python")

OB_REFCOUNT, OB_TYPE = 0, 8
TUPLE_SIZE, LIST_SIZE, LIST_ITEMS = 16, 16, 24
ARRAY_DATA, ARRAY_NDIM, ARRAY_DIMS, ARRAY_BASE, ARRAY_DESCR, ARRAY_FLAGS = 16, 24, 32, 48, 56, 64
FLAG_C, FLAG_OWNDATA, FLAG_ALIGNED, FLAG_WRITEABLE = 0x1, 0x4, 0x100, 0x400


def tier() -> str:
    """The best tier that works here: "struct", "buffer" or "python".

    The environment variable GRAPHC_CALL_TIER lowers it (tests run on every tier).

    Raises:
        ValueError: GRAPHC_CALL_TIER names no tier.
    """
    return _tier(os.environ.get("GRAPHC_CALL_TIER"))


@functools.cache
def _tier(wanted: str | None) -> str:
    if wanted and wanted not in TIERS:
        raise ValueError(f"GRAPHC_CALL_TIER is {wanted!r}; expected one of {', '.join(TIERS)}")
    best = "struct" if not struct_problem() else "buffer" if not buffer_problem() else "python"
    return max(best, wanted or best, key=TIERS.index)


def tuple_items() -> int:
    """Offset of a tuple's first item: 24, or 32 where tuples cache their hash."""
    return tuple.__basicsize__


@functools.cache
def buffer_problem() -> str:
    """Reason for which the buffer tier cannot be used; empty if it can."""
    if sys.implementation.name != "cpython":
        return f"{sys.implementation.name} is not CPython"
    if struct.calcsize("P") != 8 or sys.byteorder != "little":
        return "not a 64-bit little-endian process"
    try:
        host_machine()
        version = ctypes.PYFUNCTYPE(ctypes.c_uint)(symbols.resolve("PyArray_GetNDArrayCVersion"))()
        pointer = symbols.resolve("PyArray_GetPtr")
    except LoadError as error:
        return str(error)
    if version != 0x2000000:
        return f"NumPy's C ABI is {version:#x}, not 2.0"
    array = np.arange(3.0)
    get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(pointer)
    index = (ctypes.c_int64 * 1)(1)
    if get_pointer(array, ctypes.addressof(index)) != array.ctypes.data + 8:
        return "PyArray_GetPtr"
    return _new_problem()


@functools.cache
def struct_problem() -> str:
    """Reason for which the struct tier cannot be used; empty if it can."""
    problem = buffer_problem()
    if problem:
        return problem
    if "t" in sys.abiflags or hasattr(sys, "getobjects"):
        return "a free-threaded or reference-tracing build"
    if object.__basicsize__ != 16:
        return "the object header is not 16 bytes"
    samples: tuple[np.ndarray, ...] = (
        np.zeros((5, 7, 11))[1:4, ::2, ::-1],
        np.zeros(3),
        np.array([[1, 2]], np.float32),
        np.zeros((2, 3), order="F"),
        np.frombuffer(bytes(24), "u1")[1:17].view("f8"),
        np.zeros(()),
    )
    return _container_problem() or next(filter(None, [_array_problem(a) for a in samples]), "")


def _array_problem(array: np.ndarray) -> str:
    address = id(array)
    dims = _word(address + ARRAY_DIMS)
    facts = {
        "type": _word(address + OB_TYPE) == id(np.ndarray),
        "data": _word(address + ARRAY_DATA) == array.ctypes.data,
        "ndim": _int(address + ARRAY_NDIM) == array.ndim,
        "dims": tuple(_word(dims + 8 * i) for i in range(array.ndim)) == array.shape,
        "descr": _word(address + ARRAY_DESCR) == id(array.dtype),
        "base": _word(address + ARRAY_BASE) == (0 if array.base is None else id(array.base)),
        "references": _counts_references(array),
        "flags": _int(address + ARRAY_FLAGS) == array.flags.num,
    }
    wrong = [name for name, right in facts.items() if not right]
    return f"ndarray fields {', '.join(wrong)} are elsewhere" if wrong else ""


def _counts_references(array: np.ndarray) -> bool:
    before = _int(id(array) + OB_REFCOUNT)
    holder = [array]
    after = _int(id(array) + OB_REFCOUNT)
    return after == before + len(holder)


def _container_problem() -> str:
    first, second = object(), object()
    pair, items = (first, second), [first, second]
    if _word(id(pair) + TUPLE_SIZE) != 2 or _word(id(items) + LIST_SIZE) != 2:
        return "sizes of tuples or lists are elsewhere"
    if [_word(id(pair) + tuple_items() + 8 * i) for i in (0, 1)] != [id(first), id(second)]:
        return "items of tuples are elsewhere"
    if [_word(_word(id(items) + LIST_ITEMS) + 8 * i) for i in (0, 1)] != [id(first), id(second)]:
        return "items of lists are elsewhere"
    return ""


def _new_problem() -> str:
    """PyArray_NewFromDescr takes over a reference to the descr and returns a plain C array."""
    new = ctypes.PYFUNCTYPE(
        ctypes.py_object,
        *(ctypes.py_object, ctypes.py_object, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p),
        *(ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p),
    )(symbols.resolve("PyArray_NewFromDescr"))
    descr = symbols.DESCRIPTORS["float64"]
    shape = (ctypes.c_int64 * 2)(3, 5)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(descr))
    array = new(np.ndarray, descr, 2, ctypes.addressof(shape), None, None, 0, None)
    good = type(array) is np.ndarray and array.shape == (3, 5) and array.dtype is descr and array.flags.carray
    return "" if good else "PyArray_NewFromDescr"


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def _int(address: int) -> int:
    return ctypes.c_int32.from_address(address).value
