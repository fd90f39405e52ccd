# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The libraries that a compiled function calls, from the symbols of its object."""

from __future__ import annotations

import re
from collections.abc import Collection

# Of the C library itself, which every process has.
_PLAIN = frozenset("malloc free realloc memcpy memset memmove memcmp".split())
_RULES = (
    (r"blas_\w+|graphc_share_blas", "BLAS"),
    (r"lapack_\w+", "LAPACK"),
    (r"special_\w+", "SciPy's special functions"),
    (r"npyrandom_\w+", "NumPy's random draws"),
    (r"numpy_sort_\w+", "NumPy's sort functions"),
    (r"_ZGV\w+", "libmvec"),
    (r"graphc_\w+|descr_\w+|str_\w+|_?Py\w+", ""),
    (r"\w+", "libm"),
)


def need_of(symbol: str) -> str:
    """The library that has a symbol; empty for the runtime, Python and the C library."""
    if symbol in _PLAIN:
        return ""
    return next((need for pattern, need in _RULES if re.fullmatch(pattern, symbol)), "")


def needs_of(symbols: Collection[str]) -> tuple[str, ...]:
    """The libraries that have these symbols."""
    return tuple(sorted({need_of(symbol) for symbol in symbols} - {""}))
