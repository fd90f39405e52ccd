# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Singular values and vectors, and the pseudo-inverse: of small real matrices here, else by LAPACK.

LAPACK sees the transpose: its left vectors by columns are the rows of ours on the right.
"""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.library.linalg.dense import copy, identity, magnitude, over_batch
from graphc.library.linalg.small import WIDTH
from graphc.library.linalg.small_singular import singular
from graphc.library.linalg.symmetric import NO_CONVERGENCE
from graphc.library.registry import kernel
from graphc.native.builtins import call, conj, ref, type_of, view


@over_batch("svd")
def _svd(attributes, a, k):
    return tuple(np.linalg.svd(a, full_matrices=False))


@over_batch("svd_full")
def _svd_full(attributes, a, k):
    return tuple(np.linalg.svd(a))


@over_batch("singular_values")
def _values(attributes, a, k):
    return np.linalg.svd(a, compute_uv=False)


def _scratch(s):
    # A copy, numbers of the matrix's dtype, reals and integers, each with what LAPACK asks for at least.
    return s["m"] * s["n"] * 16 + work_bytes(s["m"], s["n"], s["k"]) * 2 + 8 * s["k"] * 4 + 256


def work_bytes(m, n, k):
    return (4 * k * k + 80 * (m + n) + 2 * k * (m + n) + 64) * 16


def decompose(job, a, u, s, vh, scratch, m, n, k, columns_u, rows_v):
    kind = type_of(a)
    if k == 0:
        identity(u, m, columns_u)
        identity(vh, rows_v, n)
        return 0
    if not kind.is_complex:
        if m <= WIDTH and n <= WIDTH:
            if singular(a, u, s, vh, m, n, columns_u, rows_v, job != "N") == 0:
                return 0
    # With infinities LAPACK may never return.
    if not is_finite(a, m * n):
        return 1
    matrix = view(scratch, kind)
    work = view(scratch[m * n * 16 :], kind)
    reals = view(scratch[m * n * 16 + work_bytes(m, n, k) :], kind.real)
    integers = view(scratch[m * n * 16 + 2 * work_bytes(m, n, k) :], "i32")
    copy(a, matrix, m * n)
    info = ref(0)
    length = ref(work_bytes(m, n, k) // 16)
    # Rows of u have k elements, or m where all of them are asked for.
    way, wide, high, row = ref(job), ref(n), ref(m), ref(k if job == "S" else m)
    if kind.is_complex:
        call(
            "lapack_?gesdd", way, wide, high, matrix, wide, s, vh, wide, u, row, work, length, reals,
            integers, info,
        )  # fmt: skip
    else:
        call(
            "lapack_?gesdd", way, wide, high, matrix, wide, s, vh, wide, u, row, work, length, integers, info,
        )  # fmt: skip
    return 1 if info[0] != 0 else 0


def is_finite(a, n):
    """Whether all of n numbers are; sums of numbers times 0 are 0 or NaN."""
    rest = magnitude(a[0]) * 0.0
    for i in range(1, n):
        rest += magnitude(a[i]) * 0.0
    return rest == 0.0


def _cost(s):
    # Rotations that wait for each other, and for large matrices the multiplications.
    return s["m"] * s["n"] * (s["k"] * 100 + 45_000) + 100_000


@kernel("svd", _svd, scratch=_scratch, errors=[NO_CONVERGENCE], flags="contract", cost=_cost)
def svd(a, u, s, vh, scratch, m, n, k):
    return decompose("S", a, u, s, vh, scratch, m, n, k, k, k)


@kernel("svd_full", _svd_full, scratch=_scratch, errors=[NO_CONVERGENCE], flags="contract", cost=_cost)
def svd_full(a, u, s, vh, scratch, m, n, k):
    return decompose("A", a, u, s, vh, scratch, m, n, k, m, n)


@kernel("singular_values", _values, scratch=_scratch, errors=[NO_CONVERGENCE], flags="contract", cost=_cost)
def singular_values(a, s, scratch, m, n, k):
    nothing = view(scratch[m * n * 16 + 2 * work_bytes(m, n, k) + 32 * k :], type_of(a))
    return decompose("N", a, nothing, s, nothing, scratch, m, n, k, 0, 0)


@over_batch("pinv")
def _pinv(attributes, a, rcond):
    if not a.size:
        return np.zeros(a.shape[::-1], a.dtype)
    return np.linalg.pinv(a, rcond)


def _pinv_scratch(s):
    # k is the smaller size; the sum of both bounds it from above without a comparison.
    k = s["m"] + s["n"]
    values = s["m"] * k + k * s["n"] + k
    return s["m"] * s["n"] * 16 + work_bytes(s["m"], s["n"], k) * 2 + 40 * k + 256 + values * 16


def _pinv_cost(s):
    return s["m"] * s["n"] * (s["m"] * 50 + s["n"] * 50 + 50_000) + 100_000


@kernel("pinv", _pinv, scratch=_pinv_scratch, errors=[NO_CONVERGENCE], flags="contract", cost=_pinv_cost)
def pinv(a, rcond, out, scratch, m, n):
    k = min(m, n)
    rest = scratch[m * n * 16 + work_bytes(m, n, k) * 2 + 8 * k * 4 + 256 :]
    u = view(rest, type_of(a))
    vh = u[m * k :]
    s = view(view(vh[k * n :], "u8"), type_of(a).real)
    if decompose("S", a, u, s, vh, scratch, m, n, k, k, k) != 0:
        return 1
    for i in range(n * m):
        out[i] = 0.0
    for l in range(k):  # noqa: E741
        if s[l] > rcond[0] * s[0]:
            for j in range(n):
                f = conj(vh[l * n + j]) / s[l]
                for i in range(m):
                    out[j * m + i] += f * conj(u[i * k + l])
    return 0
