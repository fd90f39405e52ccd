# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NumPy's sort functions as C functions: ``int sort(void *start, npy_intp n, void *)``.

NumPy keeps one for each dtype in the table `PyArray_ArrFuncs`; for plain numbers they use the widest vector
instructions that the machine has.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from graphc_runtime.cpu import host_flags, host_vendor
from graphc_runtime.libraries import numpy_api_table

# Position of `sort[0]` (quicksort) in the table: after 21 casts and 12 other functions.
_SORT = 33
# The instructions that NumPy's sorts with AVX-512 are compiled for.
_SKYLAKE = {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}
# Slot of `_PyDataType_GetArrFuncs` in NumPy's C API, which never changes within ABI 2.0.
_GET_ARR_FUNCS = 365


@cache
def address(dtype: str) -> int | None:
    """Address of the sort function of a dtype of numbers; None where there is none that works."""
    if int(np.__version__.split(".")[0]) < 2:
        return None
    getter = ctypes.c_uint64.from_address(numpy_api_table() + 8 * _GET_ARR_FUNCS).value
    if not getter:
        return None
    get: Any = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(getter)
    table = get(np.dtype(dtype))
    found = ctypes.c_uint64.from_address(table + 8 * _SORT).value if table else 0
    return found if found and _works(found, dtype) else None


def _works(found: int, dtype: str) -> bool:
    """True if the function sorts an example."""
    function: Any = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p)(found)
    example = (np.arange(100, dtype=np.uint64) * 37 % 101).astype(dtype)
    wanted = np.sort(example)
    return function(example.ctypes.data, example.size, None) == 0 and bool((example == wanted).all())


@cache
def quickest() -> bool:
    """True if NumPy's sort of numbers of 32 and 64 bits is faster than a radix sort at every size.

    Its partitions store the elements that a comparison chose (x86-simd-sort). With AVX-512 this is one
    instruction. Intel's processors do it as fast as they store anything: a million integers of 64 bits take 7
    ms on one core, and 20 ms by radix sort. AMD's family 25 has microcode for it: 53 ms, and 13 ms by radix
    sort. With AVX2 alone elements are permuted before they are stored: 14 ms on AMD's family 25, and 29 ms by
    radix sort, measured side by side. On other processors, those of Intel with AVX2 alone among them, it was
    not measured.
    """
    flags = host_flags()
    if "avx512f" in flags:
        return host_vendor() == "GenuineIntel" and flags >= _SKYLAKE and available()
    return "avx2" in flags and available()


def available() -> bool:
    """True if all numbers that are sorted this way can be."""
    unsigned = all(address(f"uint{bits}") for bits in (8, 16, 32, 64))
    return unsigned and all(address(f"{kind}{bits}") for kind in ("int", "float") for bits in (32, 64))
