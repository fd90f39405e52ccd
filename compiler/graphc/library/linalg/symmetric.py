# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Eigenvalues and eigenvectors of symmetric and Hermitian matrices.

Those of small real ones are found here (see `graphc.library.linalg.small_symmetric`), others by LAPACK.
"""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.library import kernel
from graphc.library.linalg import copy, copy_conj, transpose_here
from graphc.library.linalg.small import WIDTH
from graphc.library.linalg.small_symmetric import eigen
from graphc.native.builtins import call, ref, type_of, view

NO_CONVERGENCE = ("LinAlgError", "the algorithm did not converge")


def _eigh(attributes, a):
    return tuple(np.linalg.eigh(a, "L" if attributes["lower"] else "U"))


def _eigvalsh(attributes, a):
    return np.linalg.eigvalsh(a, "L" if attributes["lower"] else "U")


def _scratch(s):
    # Reals and integers of ?syevd with vectors, or complex and real numbers of ?heevd, and a copy.
    return (s["n"] * s["n"] * 5 + s["n"] * 80 + 64) * 16


def _cost(s):
    # Rotations that wait for each other, and for large matrices the multiplications.
    return s["n"] * s["n"] * (s["n"] * 100 + 25_000) + 100_000


@kernel("eigh", _eigh, scratch=_scratch, errors=[NO_CONVERGENCE], flags="contract", cost=_cost)
def eigh(a, w, v, scratch, n, *, lower):
    if n == 0 or is_done(a, w, v, n, lower, 1):
        return 0
    # By columns, the conjugate is the matrix itself.
    copy_conj(a, v, n * n)
    if decompose("V", v, w, scratch, n, lower) != 0:
        return 1
    transpose_here(v, n)
    return 0


@kernel("eigvalsh", _eigvalsh, scratch=_scratch, errors=[NO_CONVERGENCE], flags="contract", cost=_cost)
def eigvalsh(a, w, scratch, n, *, lower):
    if n == 0 or is_done(a, w, w, n, lower, 0):
        return 0
    work = view(scratch[(n * n * 4 + n * 80 + 64) * 16 :], type_of(a))
    copy(a, work, n * n)
    return decompose("N", work, w, scratch, n, lower)


def is_done(a, w, v, n, lower, vectors):
    """Decomposes small matrices, if they need no scaling; says whether it did."""
    if type_of(a).is_complex:
        return False
    if n > WIDTH:
        return False
    return eigen(a, w, v, n, lower, vectors) == 0


def decompose(job, a, w, scratch, n, lower):
    """Eigenvalues, and by columns in place of a the vectors."""
    kind = type_of(a)
    info = ref(0)
    way, half, size = ref(job), ref("U" if lower else "L"), ref(n)
    count = n * n * 2 + n * 64
    work = view(scratch, kind)
    integers = view(scratch[(n * n * 4 + n * 72) * 16 :], "i32")
    length, whole = ref(count), ref(n * 5 + 3)
    reals = (view(scratch[count * 16 :], kind.real), ref(n * n * 2 + n * 5 + 1)) if kind.is_complex else ()
    routine = "lapack_?heevd" if kind.is_complex else "lapack_?syevd"
    call(routine, way, half, size, a, size, w, work, length, *reals, integers, whole, info)
    return 1 if info[0] != 0 else 0
