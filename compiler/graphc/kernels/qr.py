# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""QR decompositions, by LAPACK."""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.kernels import kernel
from graphc.kernels.builtins import call, ref, type_of, view
from graphc.kernels.dense import copy, identity, over_batch, transpose

# LAPACK's blocks are at most that wide.
_BLOCK = 64


def _mode(shape, k):
    return "reduced" if k == min(shape) else "complete"


@over_batch("qr")
def _qr(attributes, a, k):
    return tuple(np.linalg.qr(a, _mode(a.shape, k)))


def _scratch(s):
    # The reflectors (as many columns as Q has), their factors, and work space.
    return (s["m"] * s["n"] + s["m"] * s["k"] + s["k"] + (s["n"] + s["k"] + 1) * _BLOCK) * 16


def reflectors(a, columns, tau, work, m, n):
    """Factors the matrix into reflectors, by columns."""
    info = ref(0)
    transpose(a, columns, m, n)
    call("lapack_?geqrf", ref(m), ref(n), columns, ref(m), tau, work, ref((n + 1) * _BLOCK), info)


def upper(columns, r, m, n, k):
    for i in range(k):
        for j in range(n):
            r[i * n + j] = columns[j * m + i] if j >= i else 0.0


@kernel("qr", _qr, scratch=_scratch)
def qr(a, q, r, scratch, m, n, k):
    if m == 0 or n == 0:
        identity(q, m, k)
        for i in range(k * n):
            r[i] = 0.0
        return
    kind = type_of(a)
    columns = view(scratch, kind)
    tau = columns[m * n + m * k :]
    work = tau[k:]
    reflectors(a, columns, tau, work, m, n)
    upper(columns, r, m, n, k)
    info = ref(0)
    name = "lapack_?ungqr" if kind.is_complex else "lapack_?orgqr"
    call(name, ref(m), ref(k), ref(min(m, n)), columns, ref(m), tau, work, ref((k + 1) * _BLOCK), info)
    transpose(columns, q, k, m)


@over_batch("qr_r")
def _qr_r(attributes, a, k):
    return np.linalg.qr(a, "r")


@kernel("qr_r", _qr_r, scratch=_scratch)
def qr_r(a, r, scratch, m, n, k):
    if m == 0 or n == 0:
        return
    columns = view(scratch, type_of(a))
    tau = columns[m * n :]
    reflectors(a, columns, tau, tau[k:], m, n)
    upper(columns, r, m, n, k)


@over_batch("qr_raw")
def _qr_raw(attributes, a, k):
    return tuple(np.linalg.qr(a, "raw"))


@kernel("qr_raw", _qr_raw, scratch=_scratch)
def qr_raw(a, h, tau, scratch, m, n, k):
    if m == 0 or n == 0:
        return
    columns = view(scratch, type_of(a))
    reflectors(a, columns, tau, columns[m * n :], m, n)
    copy(columns, h, m * n)
