# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of a matrix of compressed rows and a dense matrix.

A matrix is given by its values, their columns, and where each row begins in these (SciPy's CSR). Compressed
columns are the rows of the transpose.
"""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.kernels import kernel
from graphc.kernels.builtins import cast, type_of

ERRORS = [
    ("ValueError", "the number of rows does not fit the other matrix"),
    ("ValueError", "indptr must rise from 0 to at most the number of values"),
    ("IndexError", "a column is out of bounds"),
]


def _rows(indptr):
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def _check(indices, indptr, z, rows, columns):
    messages = (
        len(indptr) - 1 != rows,
        bool(np.any(np.diff(indptr) < 0)) or (len(indptr) > 0 and (indptr[0] < 0 or indptr[-1] > z)),
        bool(np.any((indices < 0) | (indices >= columns))),
    )
    for (error, message), bad in zip(ERRORS, messages, strict=True):
        if bad:
            raise {"ValueError": ValueError, "IndexError": IndexError}[error](message)


def _over_batch(function, results, *arrays):
    """Applies a function to each element of a batch."""
    batch = results.shape[: arrays[0].ndim - 1]
    for index in np.ndindex(*batch):
        results[index] = function(*(x[index] for x in arrays))
    return results


def _product(attributes, data, indices, indptr, b, m):
    transpose = attributes["transpose"]
    out = np.zeros((*b.shape[:-2], int(m), b.shape[-1]), b.dtype)
    rows, columns = (b.shape[-2], int(m)) if transpose else (int(m), b.shape[-2])

    def one(data, indices, indptr, b):
        _check(indices, indptr, len(data), rows, columns)
        result, row = np.zeros(out.shape[-2:], b.dtype), _rows(indptr)
        count = len(row)
        start = int(indptr[0])
        column, value = indices[start : start + count], data[start : start + count, None]
        np.add.at(result, column if transpose else row, value * b[row if transpose else column])
        return result

    return _over_batch(one, out, data, indices, indptr, b)


def _sampled(attributes, indices, indptr, a, b):
    def one(indices, indptr, a, b):
        _check(indices, indptr, len(indices), len(a), len(b))
        result, row = np.zeros(len(indices), a.dtype), _rows(indptr)
        start = int(indptr[0])
        result[start : start + len(row)] = np.sum(a[row] * b[indices[start : start + len(row)]], axis=-1)
        return result

    return _over_batch(one, np.zeros(indices.shape, a.dtype), indices, indptr, a, b)


@kernel("csr_product", _product, errors=ERRORS, flags="contract")
def csr_product(data, indices, indptr, b, out, z, p, k, n, m, *, transpose):
    rows, columns = p - 1, m if transpose else k
    if rows != (k if transpose else m):
        return 1
    for i in range(m * n):
        out[i] = 0
    for i in range(rows):
        start, end = cast(indptr[i], "int64"), cast(indptr[i + 1], "int64")
        if start < 0 or end < start or end > z:
            return 2
        for t in range(start, end):
            j = cast(indices[t], "int64")
            if j < 0 or j >= columns:
                return 3
            if transpose:
                add_multiple(b[i * n :], out[j * n :], data[t], n)
            else:
                add_multiple(b[j * n :], out[i * n :], data[t], n)
    return 0


def add_multiple(x, out, factor, n):
    for c in range(n):
        out[c] += factor * x[c]


@kernel("csr_sampled_product", _sampled, errors=ERRORS, flags="reassoc contract")
def csr_sampled_product(indices, indptr, a, b, out, z, p, m, n, k):
    if p - 1 != m:
        return 1
    for t in range(z):
        out[t] = 0
    for i in range(m):
        start, end = cast(indptr[i], "int64"), cast(indptr[i + 1], "int64")
        if start < 0 or end < start or end > z:
            return 2
        for t in range(start, end):
            j = cast(indices[t], "int64")
            if j < 0 or j >= k:
                return 3
            out[t] = inner(a[i * n :], b[j * n :], n)
    return 0


def inner(a, b, n):
    total = cast(0, type_of(a))
    for c in range(n):
        total += a[c] * b[c]
    return total
