# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Addresses of the external symbols that compiled code may use, found when they are first asked for."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

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
    "bfloat16",
)


def kind_letter(dtype: np.dtype) -> str:
    """NumPy's letter of a dtype's kind; ``f`` for bfloat16, too, which NumPy counts among structures."""
    kind = dtype.kind
    # Names of dtypes are put together each time that they are asked for.
    return "f" if kind == "V" and dtype.name == "bfloat16" else kind


# The singletons that arrays made by NumPy share; keeping them here keeps their addresses valid.
class _Descriptors(dict[str, np.dtype]):
    """NumPy's dtypes by name; that of ``ml_dtypes``, which not everybody has, when it is asked for."""

    def __missing__(self, name: str) -> np.dtype:
        if name != "bfloat16":
            raise KeyError(name)
        try:
            import ml_dtypes
        except ImportError:
            raise TypeError(
                "arrays of bfloat16 are those of ml_dtypes, which is not installed: "
                "pip install 'graphc[bfloat16]', or pip install ml_dtypes"
            ) from None
        self[name] = np.dtype(ml_dtypes.bfloat16)
        return self[name]


DESCRIPTORS = _Descriptors((name, np.dtype(name)) for name in DTYPES if name != "bfloat16")
_INTERNED: dict[str, str] = {}
_REGISTERED: dict[str, int] = {}


class _Addresses(dict[str, int]):
    """Addresses of symbols; others are found when they are asked for."""

    def __missing__(self, name: str) -> int:
        address = self[name] = _find(name)
        return address


# What loads objects asks here, since a call of a function for each symbol takes longer.
ADDRESSES = _Addresses()
_ALIVE: list[object] = []


def resolve(name: str) -> int:
    """Address of an external symbol.

    Args:
        name: a C-API function, `PyExc_*` or type; `PyArray_*`; `descr_<dtype>`; `str_<text>` (an interned
            str); `blas_<routine>`, `lapack_<routine>`; `special_<d for each operand>_<name>` (SciPy's C code
            of a special function of doubles; with an o after them for each of several results, which are
            written where pointers say); `npyrandom_<name>` (NumPy's C code for random draws);
            `numpy_sort_<dtype>`; a function of the C
            library, libm or libmvec; or a registered name.

    Raises:
        SymbolError: nothing of that name is known here.
    """
    return ADDRESSES[name]


def optional(name: str) -> int | None:
    """As `resolve`, but None for what is not known here."""
    try:
        return resolve(name)
    except SymbolError:
        return None


def register(name: str, address: int, keep_alive: object = None) -> None:
    """Makes `name` resolve to `address` in objects loaded from now on.

    Args:
        name: symbol name.
        address: its address.
        keep_alive: kept for the life of the process, for example the ctypes function at the address.
    """
    _REGISTERED[name] = address
    ADDRESSES.pop(name, None)
    _ALIVE.append(keep_alive)


def _find(name: str) -> int:
    if name in _REGISTERED:
        return _REGISTERED[name]
    for prefix, find in _FINDERS:
        if name.startswith(prefix):
            address = find(name)
            if address:
                return address
    raise SymbolError(
        f"the compiled code needs {name!r}, which this process does not have; register it with "
        "graphc_runtime.symbols.register, or compile again on this machine"
    )


def _descriptor(name: str) -> int | None:
    dtype = name.removeprefix("descr_")
    return id(DESCRIPTORS[dtype]) if dtype in DTYPES else None


def _interned(name: str) -> int:
    text = name.removeprefix("str_")
    return id(_INTERNED.setdefault(text, sys.intern(text)))


def _numpy(name: str) -> int | None:
    if name == "PyArray_Type":
        return id(np.ndarray)
    slot = NUMPY_API.get(name)
    return None if slot is None else ctypes.c_uint64.from_address(numpy_api_table() + 8 * slot).value


def _python(name: str) -> int | None:
    if name.startswith("PyExc_") or name.endswith(("Struct", "_Type")):
        try:
            return ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, name))
        except ValueError:
            return None
    return function(ctypes.pythonapi, name)


# Kinds of matrices that subroutines are for: functions that return numbers are called in a way of their own
# through cython_blas.
_MATRICES = frozenset(("ge", "sy", "he", "tr", "po", "or", "un", "gg"))


@cache
def _bundled_openblas() -> ctypes.CDLL | None:
    """The library that SciPy's wheels bring along; importing SciPy, which opens it too, takes 0.2 s."""
    spec = importlib.util.find_spec("scipy")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parents[1] / "scipy.libs"
    try:
        named = [name for name in os.listdir(folder) if name.startswith("libscipy_openblas-")]
        found = [name for name in named if name.endswith(".so")]
        return ctypes.CDLL(str(folder / found[0])) if len(found) == 1 else None
    except OSError:
        return None


def _linear_algebra(name: str) -> int | None:
    kind, _, routine = name.partition("_")
    is_subroutine = routine[:1] in ("s", "d", "c", "z") and routine[1:3] in _MATRICES
    bundled = _bundled_openblas() if is_subroutine else None
    address = None if bundled is None else function(bundled, f"scipy_{routine}_")
    if address is not None:
        return address
    try:
        module = importlib.import_module(f"scipy.linalg.cython_{kind}")
    except ImportError:
        # The library that NumPy's wheels bring along, whose integers have 64 bits.
        address = wide_integers.address(name)
        if address is None:
            what = f"the compiled code calls {kind.upper()} ({routine})"
            raise SymbolError(f"{what}: install SciPy") from None
        return address
    capsule = module.__pyx_capi__.get(routine)
    return None if capsule is None else _capsule_pointer(capsule)


def _special(name: str) -> int | None:
    _, operands, function_name = name.split("_", 2)
    try:
        module = importlib.import_module("scipy.special.cython_special")
    except ImportError:
        raise SymbolError(f"the compiled code calls scipy.special.{function_name}: install SciPy") from None
    # Functions for several types have one capsule for each, whose name is the C type. Cython's last parameter
    # is not read by functions of a module.
    count = operands.count("d")
    places = ["double"] * count + ["double *"] * (len(operands) - count)
    if count < len(operands):
        wanted = f"void ({', '.join(places)})"
    else:
        wanted = f"double ({', '.join(places)}, int __pyx_skip_dispatch)"
    names = re.compile(rf"(?:__pyx_fuse(?:_\d+)+)?{function_name}")
    for key, capsule in module.__pyx_capi__.items():
        if names.fullmatch(key) and _capsule_name(capsule) == wanted.encode():
            return _capsule_pointer(capsule)
    return None


def _capsule_name(capsule: object) -> bytes:
    name = ctypes.pythonapi["PyCapsule_GetName"]
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    found: bytes = name(capsule)
    return found


def _capsule_pointer(capsule: object) -> int:
    get = ctypes.pythonapi["PyCapsule_GetPointer"]
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get(capsule, _capsule_name(capsule)))


def _random(name: str) -> int:
    return npyrandom.address(name.removeprefix("npyrandom_"))


def has_vector_math() -> bool:
    """True if libmvec (glibc's vector functions `_ZGV*`) is here."""
    return library("libmvec.so.1") is not None


def _vector_math(name: str) -> int | None:
    found = library("libmvec.so.1")
    return None if found is None else function(found, name)


def _numpy_sort(name: str) -> int | None:
    return numpy_sort.address(name.removeprefix("numpy_sort_"))


def finder(prefix: str, find: Callable[[str], int | None]) -> None:
    """Says how symbols are found whose name begins so, before all other ways."""
    _FINDERS.insert(0, (prefix, find))


_FINDERS: list[tuple[str | tuple[str, ...], Callable[[str], int | None]]] = [
    ("descr_", _descriptor),
    ("str_", _interned),
    ("PyArray_", _numpy),
    (("Py", "_Py"), _python),
    (("blas_", "lapack_"), _linear_algebra),
    ("special_d", _special),
    ("_ZGV", _vector_math),
    ("npyrandom_", _random),
    ("numpy_sort_", _numpy_sort),
    ("", c_function),
]
