# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""BLAS and LAPACK where there is no SciPy: NumPy's own library, whose integers have 64 bits.

Compiled code passes 32-bit ones. Small functions between the two convert them: machine code that
`graphc.library.wide_integers` is the source of, loaded when the first of them is asked for.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import numpy as np

from graphc_runtime import elf
from graphc_runtime.errors import LoadError, SymbolError
from graphc_runtime.libraries import c_function
from graphc_runtime.loader import LoadedObject, host_machine, load_object
from graphc_runtime.wide_integers_code import OBJECT


@cache
def library() -> ctypes.CDLL | None:
    """NumPy's library, if its wheel brought one along."""
    found = list(Path(np.__file__).parents[1].glob("numpy.libs/libscipy_openblas64_*.so"))
    try:
        return ctypes.CDLL(str(found[0])) if len(found) == 1 else None
    except OSError:
        return None


def address(name: str) -> int | None:
    """Address of a routine with 32-bit integers, such as ``lapack_dpotrf``; None if there is none here."""
    try:
        code = _code()
    except LoadError:
        return None
    return code.address(name) if code is not None and name in code else None


@cache
def _code() -> LoadedObject | None:
    """The functions, which stay loaded: compiled code has their addresses."""
    import base64
    import zlib

    if library() is None:
        return None
    machine = "aarch64" if host_machine() == elf.AARCH64 else "x86_64"
    code = load_object(zlib.decompress(base64.b64decode(OBJECT[machine])), _resolve)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(code))
    return code


def _resolve(name: str) -> int:
    """A routine of the library, or a function of the C library."""
    kind, _, routine = name.partition("64_")
    if kind not in ("blas", "lapack"):
        address = c_function(name)
        if address is None:
            raise SymbolError(f"the functions that convert integers need {name!r}, which is missing here")
        return address
    try:
        function = getattr(library(), f"scipy_{routine}_64_")
    except AttributeError:
        raise SymbolError(f"NumPy's library has no {routine}") from None
    return ctypes.cast(function, ctypes.c_void_p).value or 0
