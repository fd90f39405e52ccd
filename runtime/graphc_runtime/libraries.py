# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Libraries of the process, their functions, and NumPy's table of C functions."""

from __future__ import annotations

import ctypes
import importlib
from typing import Any


def numpy_api_table() -> int:
    """Address of NumPy's C API table."""
    umath: Any = importlib.import_module("numpy._core._multiarray_umath")
    get = ctypes.pythonapi["PyCapsule_GetPointer"]
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get(umath._ARRAY_API, None))


def c_function(name: str) -> int | None:
    """A function of the C library or of libm."""
    for file in (None, "libm.so.6"):
        found = library(file)
        address = None if found is None else function(found, name)
        if address:
            return address
    return None


class _Place(ctypes.Structure):
    """Dl_info of dladdr."""

    _fields_ = [
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    ]


def library_of(address: int) -> ctypes.CDLL | None:
    """The library that a function is in, and those that it needs; None where the system does not tell."""
    dladdr = getattr(ctypes.CDLL(None), "dladdr", None)
    place = _Place()
    if dladdr is None or not dladdr(ctypes.c_void_p(address), ctypes.byref(place)) or not place.file:
        return None
    return library(place.file.decode())


_LIBRARIES: dict[str | None, ctypes.CDLL | None] = {}


def library(file: str | None) -> ctypes.CDLL | None:
    """A library by its file; None where there is none. Without a file, what the process has loaded."""
    if file not in _LIBRARIES:
        try:
            _LIBRARIES[file] = ctypes.CDLL(file)
        except OSError:
            _LIBRARIES[file] = None
    return _LIBRARIES[file]


def function(library: ctypes.CDLL, name: str) -> int | None:
    """Address of a function of a library; None where it has none of that name."""
    try:
        return ctypes.cast(library[name], ctypes.c_void_p).value
    except AttributeError:
        return None
