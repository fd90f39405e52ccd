# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Equality of arrays, exact and up to rounding."""

from __future__ import annotations

import numpy as np

# Room for a few hundred roundings of the narrower type, which is what reordered reductions need.
_TOLERANCES = {
    np.dtype("float16"): (5e-3, 1e-3),
    np.dtype("float32"): (2e-5, 1e-6),
    np.dtype("complex64"): (2e-5, 1e-6),
}


def tolerances(*dtypes: np.dtype) -> tuple[float, float]:
    """Relative and absolute tolerance for values of these dtypes, those of the least precise one."""
    found = [_TOLERANCES.get(np.dtype(dtype), (1e-9, 1e-11)) for dtype in dtypes]
    return max(r for r, _ in found), max(a for _, a in found)


def arrays_equal(a: np.ndarray, b: np.ndarray, force_same_dtype: bool = True) -> bool:
    """Whether shape, elements and (with ``force_same_dtype``) dtype agree; NaN equals NaN."""
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or (force_same_dtype and a.dtype != b.dtype):
        return False
    return bool(np.all((a == b) | ((a != a) & (b != b))))


def arrays_close(
    a: np.ndarray,
    b: np.ndarray,
    allow_remove_inf: bool = False,
    allow_remove_nan: bool = False,
    rtol: float | None = None,
    atol: float | None = None,
) -> bool:
    """Whether shape and dtype agree and elements are within ``atol + rtol * |b|``; equal infinities and NaNs
    agree.

    Args:
        a, b: arrays.
        allow_remove_inf: ignore elements where exactly one of the arrays is infinite.
        allow_remove_nan: ignore elements where exactly one of the arrays is NaN.
        rtol, atol: tolerances; by default those of `tolerances`.
    """
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind not in "fc":
        return arrays_equal(a, b)
    default_rtol, default_atol = tolerances(a.dtype)
    close = np.isclose(
        a, b, default_rtol if rtol is None else rtol, default_atol if atol is None else atol, equal_nan=True
    )
    if allow_remove_inf:
        close = close | (np.isinf(a) ^ np.isinf(b))
    if allow_remove_nan:
        close = close | (np.isnan(a) ^ np.isnan(b))
    return bool(np.all(close))
