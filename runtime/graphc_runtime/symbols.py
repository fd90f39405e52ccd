# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Addresses of the external symbols that compiled code may use, found when they are first asked for."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from graphc_runtime import npyrandom, numpy_sort, wide_integers
from graphc_runtime.errors import SymbolError
from graphc_runtime.libraries import c_function, function, library, numpy_api_table

# Slots of NumPy's C API table (numpy/__multiarray_api.h); they never change within ABI 2.0.
NUMPY_API = {
    "PyArray_GetNDArrayCVersion": 0,
    "PyArray_DescrFromType": 45,
    "PyArray_NewFromDescr": 94,
    "PyArray_GetPtr": 160,
    "PyArray_GetNDArrayCFeatureVersion": 211,
}

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)

# The singletons that arrays made by NumPy share; keeping them here keeps their addresses valid.
DESCRIPTORS: dict[str, np.dtype[Any]] = {name: np.dtype(name) for name in DTYPES}
_INTERNED: dict[str, str] = {}
_REGISTERED: dict[str, int] = {}
_KNOWN: dict[str, int] = {}
_ALIVE: list[Any] = []


def resolve(name: str) -> int:
    """Address of an external symbol.

    Args:
        name: a C-API function, `PyExc_*` or type; `PyArray_*`; `descr_<dtype>`; `str_<text>` (an interned
            str); `blas_<routine>`, `lapack_<routine>`; `special_<d for each operand>_<name>` (SciPy's C code
            of a special function of doubles); `npyrandom_<name>` (NumPy's C code for random draws);
            `numpy_sort_<dtype>`; a function of the C
            library, libm or libmvec; or a registered name.

    Raises:
        SymbolError: nothing of that name is known here.
    """
    address = _KNOWN.get(name)
    if address is None:
        address = _KNOWN[name] = _find(name)
    return address


def optional(name: str) -> int | None:
    """As `resolve`, but None for what is not known here."""
    try:
        return resolve(name)
    except SymbolError:
        return None


def register(name: str, address: int, keep_alive: Any = None) -> None:
    """Makes `name` resolve to `address` in objects loaded from now on.

    Args:
        name: symbol name.
        address: its address.
        keep_alive: kept for the life of the process, for example the ctypes function at the address.
    """
    _REGISTERED[name] = address
    _KNOWN.pop(name, None)
    _ALIVE.append(keep_alive)


def _find(name: str) -> int:
    if name in _REGISTERED:
        return _REGISTERED[name]
    for pattern, find in _FINDERS:
        match = re.fullmatch(pattern, name)
        if match:
            address = find(match)
            if address:
                return address
    raise SymbolError(
        f"the compiled code needs {name!r}, which this process does not have; register it with "
        "graphc_runtime.symbols.register, or compile again on this machine"
    )


def _descriptor(match: re.Match[str]) -> int | None:
    return id(DESCRIPTORS[match[1]]) if match[1] in DESCRIPTORS else None


def _interned(match: re.Match[str]) -> int:
    return id(_INTERNED.setdefault(match[1], sys.intern(match[1])))


def _numpy(match: re.Match[str]) -> int | None:
    if match[0] == "PyArray_Type":
        return id(np.ndarray)
    slot = NUMPY_API.get(match[0])
    return None if slot is None else ctypes.c_uint64.from_address(numpy_api_table() + 8 * slot).value


def _python(match: re.Match[str]) -> int | None:
    name = match[0]
    if re.fullmatch(r"PyExc_\w+|_Py_\w+Struct|Py\w+_Type", name):
        try:
            return ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, name))
        except ValueError:
            return None
    return function(ctypes.pythonapi, name)


# Subroutines: functions that return numbers are called in a way of their own through cython_blas.
_SUBROUTINES = re.compile(r"[sdcz](ge|sy|he|tr|po|or|un|gg)\w+")


@cache
def _bundled_openblas() -> ctypes.CDLL | None:
    """The library that SciPy's wheels bring along; importing SciPy, which opens it too, takes 0.2 s."""
    spec = importlib.util.find_spec("scipy")
    if spec is None or spec.origin is None:
        return None
    found = list(Path(spec.origin).parents[1].glob("scipy.libs/libscipy_openblas-*.so"))
    try:
        return ctypes.CDLL(str(found[0])) if len(found) == 1 else None
    except OSError:
        return None


def _linear_algebra(match: re.Match[str]) -> int | None:
    bundled = _bundled_openblas() if _SUBROUTINES.fullmatch(match[2]) else None
    address = None if bundled is None else function(bundled, f"scipy_{match[2]}_")
    if address is not None:
        return address
    try:
        module = importlib.import_module(f"scipy.linalg.cython_{match[1]}")
    except ImportError:
        address = _wide_linear_algebra(match)
        if address is None:
            what = f"the compiled code calls {match[1].upper()} ({match[2]})"
            raise SymbolError(f"{what}: install SciPy") from None
        return address
    capsule = module.__pyx_capi__.get(match[2])
    return None if capsule is None else _capsule_pointer(capsule)


def _wide_linear_algebra(match: re.Match[str]) -> int | None:
    """As `_linear_algebra`, of the library that NumPy's wheels bring along, whose integers have 64 bits."""
    return wide_integers.address(match[0])


def _special(match: re.Match[str]) -> int | None:
    try:
        module = importlib.import_module("scipy.special.cython_special")
    except ImportError:
        raise SymbolError(f"the compiled code calls scipy.special.{match[2]}: install SciPy") from None
    # Functions for several types have one capsule for each, whose name is the C type. Cython's last parameter
    # is not read by functions of a module.
    wanted = f"double ({', '.join(['double'] * len(match[1]))}, int __pyx_skip_dispatch)"
    names = re.compile(rf"(?:__pyx_fuse(?:_\d+)+)?{match[2]}")
    for key, capsule in module.__pyx_capi__.items():
        if names.fullmatch(key) and _capsule_name(capsule) == wanted.encode():
            return _capsule_pointer(capsule)
    return None


def _capsule_name(capsule: Any) -> bytes:
    name = ctypes.pythonapi["PyCapsule_GetName"]
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    found: bytes = name(capsule)
    return found


def _capsule_pointer(capsule: Any) -> int:
    get = ctypes.pythonapi["PyCapsule_GetPointer"]
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get(capsule, _capsule_name(capsule)))


def _random(match: re.Match[str]) -> int:
    return npyrandom.address(match[1])


def has_vector_math() -> bool:
    """Whether libmvec (glibc's vector functions `_ZGV*`) is here."""
    return library("libmvec.so.1") is not None


def _vector_math(match: re.Match[str]) -> int | None:
    found = library("libmvec.so.1")
    return None if found is None else function(found, match[0])


def _c_library(match: re.Match[str]) -> int | None:
    return c_function(match[0])


def _numpy_sort(match: re.Match[str]) -> int | None:
    return numpy_sort.address(match[1])


def finder(pattern: str, find: Callable[[re.Match[str]], int | None]) -> None:
    """Says how symbols are found whose name fits a pattern, before all other ways."""
    _FINDERS.insert(0, (pattern, find))


_FINDERS: list[tuple[str, Callable[[re.Match[str]], int | None]]] = [
    (r"descr_(\w+)", _descriptor),
    (r"str_(\w+)", _interned),
    (r"PyArray_\w+", _numpy),
    (r"_?Py\w+", _python),
    (r"(blas|lapack)_(\w+)", _linear_algebra),
    (r"special_(d+)_(\w+)", _special),
    (r"_ZGV\w+", _vector_math),
    (r"npyrandom_(\w+)", _random),
    (r"numpy_sort_(\w+)", _numpy_sort),
    (r"\w+", _c_library),
]
