# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""QR decompositions with exchanged columns, by LAPACK."""
# mypy: ignore-errors

from __future__ import annotations

from graphc.library import kernel
from graphc.library.linalg import identity, over_batch, transpose
from graphc.native.builtins import call, ref, type_of, view

_BLOCK = 64


@over_batch("qr_pivoted")
def _reference(attributes, a, k):
    from scipy.linalg import qr

    m, n = a.shape
    if a.size == 0:
        import numpy as np

        return np.eye(m, k, dtype=a.dtype), np.zeros((k, n), a.dtype), np.arange(n, dtype="int32")
    return tuple(qr(a, mode="economic" if k == min(m, n) else "full", pivoting=True, check_finite=False))


def _scratch(s):
    # Columns (as many as Q has), factors of the reflectors, work space, and norms of complex columns.
    return (s["m"] * s["n"] + s["m"] * s["k"] + s["k"] + (s["n"] + s["k"] + 1) * _BLOCK + s["n"] * 2) * 16


@kernel("qr_pivoted", _reference, scratch=_scratch)
def qr_pivoted(a, q, r, order, scratch, m, n, k):
    for j in range(n):
        order[j] = 0 if m > 0 else j + 1
    if m == 0 or n == 0:
        identity(q, m, k)
        for i in range(k * n):
            r[i] = 0.0
    else:
        kind = type_of(a)
        columns = view(scratch, kind)
        tau = columns[m * n + m * k :]
        work = tau[k:]
        info = ref(0)
        size = (n + 1) * _BLOCK
        transpose(a, columns, m, n)
        if kind.is_complex:
            norms = view(scratch[(m * n + m * k + k + (n + k + 1) * _BLOCK) * 16 :], kind.real)
            call("lapack_?geqp3", ref(m), ref(n), columns, ref(m), order, tau, work, ref(size), norms, info)
        else:
            call("lapack_?geqp3", ref(m), ref(n), columns, ref(m), order, tau, work, ref(size), info)
        for i in range(k):
            for j in range(n):
                r[i * n + j] = columns[j * m + i] if j >= i else 0.0
        name = "lapack_?ungqr" if kind.is_complex else "lapack_?orgqr"
        size = (k + 1) * _BLOCK
        call(name, ref(m), ref(k), ref(min(m, n)), columns, ref(m), tau, work, ref(size), info)
        transpose(columns, q, k, m)
    for j in range(n):
        order[j] = order[j] - 1
