# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels on matrices: routines that they share, and the batch loop of their references.

LAPACK's matrices are stored by columns: to it, a matrix of ours is its own transpose.
"""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.native.builtins import call, conj, imag, real, ref, sqrt, type_of
from graphc_dialects.signatures import SIGNATURES

# Calling LAPACK costs about as much as factoring a matrix of this size.
SMALL = 24


def copy(x, out, n):
    for i in range(n):
        out[i] = x[i]


def copy_conj(x, out, n):
    for i in range(n):
        out[i] = conj(x[i])


def fill(out, value, n):
    for i in range(n):
        out[i] = value


def transpose(x, out, m, n):
    for i in range(m):
        for j in range(n):
            out[j * m + i] = x[i * n + j]


def transpose_here(x, n):
    for i in range(n):
        for j in range(i):
            x[i * n + j], x[j * n + i] = x[j * n + i], x[i * n + j]


def identity(out, m, n):
    for i in range(m):
        for j in range(n):
            out[i * n + j] = 1.0 if i == j else 0.0


def mirror(a, out, n, lower, hermitian):
    """The whole of a symmetric or Hermitian matrix of which one triangle is read."""
    for i in range(n):
        for j in range(i):
            x = a[i * n + j] if lower else a[j * n + i]
            y = conj(x) if hermitian else x
            out[i * n + j] = x if lower else y
            out[j * n + i] = y if lower else x
        out[i * n + i] = a[i * n + i]
        if hermitian:
            out[i * n + i] = real(a[i * n + i])


def swap_rows(a, i, j, n):
    for c in range(n):
        a[i * n + c], a[j * n + c] = a[j * n + c], a[i * n + c]


def magnitude(z):
    """Of a pivot: any norm will do."""
    if type_of(z).is_complex:
        return abs(real(z)) + abs(imag(z))
    else:
        return abs(z)


def absolute(z):
    """Absolute value, whose square need not be a number of the type."""
    if type_of(z).is_complex:
        large = max(abs(real(z)), abs(imag(z)))
        small = min(abs(real(z)), abs(imag(z)))
        if small == 0.0 or large - large != 0.0:
            return large + small
        ratio = small / large
        return large * sqrt(1.0 + ratio * ratio)
    else:
        return abs(z)


def product(a, b, out, m, n, k):
    """out = a @ b, of shapes (m, n) and (n, k)."""
    if m > SMALL:
        one, zero = ref(1.0, type_of(a)), ref(0.0, type_of(a))
        way, rows = ref("N"), ref(k)
        call("blas_?gemm", way, way, rows, ref(m), ref(n), one, b, rows, a, ref(n), zero, out, rows)
        return
    for i in range(m):
        for c in range(k):
            out[i * k + c] = 0.0
        for j in range(n):
            for c in range(k):
                out[i * k + c] += a[i * n + j] * b[j * k + c]


def over_batch(name):
    """Decorates a reference on core arrays, ``f(attributes, *cores, *sizes)``: it then takes batches."""

    def decorate(function):
        def reference(attributes, *inputs):
            signature = SIGNATURES[name]
            count = len(signature.operands)
            arrays, given = inputs[:count], [int(size) for size in inputs[count:]]
            sizes = dict(zip(signature.given, given, strict=True))
            for x, core in zip(arrays, signature.operands, strict=True):
                sizes.update(zip(core, x.shape[x.ndim - len(core) :], strict=True))
            batch = arrays[0].shape[: arrays[0].ndim - len(signature.operands[0])]
            shapes = [(*batch, *(sizes[dim] for dim in core)) for core in signature.results]
            results = [None] * len(shapes)
            for index in np.ndindex(*batch):
                found = function(attributes, *(x[index] for x in arrays), *given)
                values = found if isinstance(found, tuple) else (found,)
                for i, value in enumerate(values):
                    if results[i] is None:
                        results[i] = np.empty(shapes[i], np.asarray(value).dtype)
                    results[i][index] = value
            results = [
                np.empty(shape, arrays[0].dtype) if r is None else r
                for r, shape in zip(results, shapes, strict=True)
            ]
            return tuple(results) if len(results) > 1 else results[0]

        return reference

    return decorate
