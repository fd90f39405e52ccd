# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of a matrix of compressed rows and a dense matrix.

A matrix is given by its values, their columns, and where each row begins in these (SciPy's CSR). Compressed
columns are the rows of the transpose.
"""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.library import kernel
from graphc.native.builtins import cast, put, row, type_of

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


def _partial(attributes, data, indices, indptr, b, q, m):
    out = np.zeros((*b.shape[:-2], int(q), int(m), b.shape[-1]), b.dtype)
    rows = b.shape[-2]

    def one(data, indices, indptr, b):
        _check(indices, indptr, len(data), rows, int(m))
        result, row = np.zeros(out.shape[-3:], b.dtype), _rows(indptr)
        start = int(indptr[0])
        column, value = indices[start : start + len(row)], data[start : start + len(row), None]
        group = np.searchsorted(
            [first_row(indptr, rows, len(data), k, int(q)) for k in range(1, int(q))], row, "right"
        )
        np.add.at(result, (group, column), value * b[row])
        return result

    return _over_batch(one, out, data, indices, indptr, b)


# -- shares of the work --------------------------------------------------------------------------------------

# Values in one part of the rows, at least.
VALUES = 4096


def first_row(indptr, rows, z, part, parts):
    """The first row of a part, of which all have about as many values; after the last part, `rows`."""
    if part <= 0:
        return 0
    if part >= parts:
        return rows
    wanted = z * part // parts
    low, high = 0, rows
    while low < high:
        middle = (low + high) // 2
        if indptr[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


def parts_of(z, n):
    """Into how many parts rows with z values are divided for a product with n columns."""
    return max(1, min(64, z * max(n, 1) // VALUES))


def product_parts(z, n, *, transpose):
    return 1 if transpose else parts_of(z, n)


# Multiplications and columns of the dense matrix in one part of a transposed product, at least, and parts at
# most.
GROUP, COLUMNS, GROUPS = 65536, 32, 8


def column_width(z, n, m):
    """Number of columns of the dense matrix that one part of a transposed product multiplies."""
    parts = min(z * n // GROUP, z // (2 * m + 1), GROUPS - 1) + 1
    return ((n + parts - 1) // parts + 15) // 16 * 16


def partial_parts(z, n, q, m):
    """One part for each group of rows; if there is one group, one for some columns of the dense matrix."""
    width = column_width(z, n, m)
    return (n + width - 1) // width if q == 1 and n > 0 else q


def _cost(sizes):
    return 10_000 + sizes["z"] * 1000 + sizes["z"] * sizes["n"] * 300


# -- products ------------------------------------------------------------------------------------------------


@kernel("csr_product", _product, errors=ERRORS, flags="reassoc contract", cost=_cost, parts=product_parts)
def csr_product(data, indices, indptr, b, out, z, p, k, n, m, part, *, transpose):
    rows, columns = p - 1, m if transpose else k
    if rows != (k if transpose else m):
        return 1
    if transpose:
        return add_rows(data, indices, indptr, b, out, z, n, m, 0, rows, n)
    parts = parts_of(z, n)
    first, last = first_row(indptr, rows, z, part, parts), first_row(indptr, rows, z, part + 1, parts)
    if n == 1:
        return vector_rows(data, indices, indptr, b, out, z, columns, first, last)
    return matrix_rows(data, indices, indptr, b, out, z, columns, n, first, last)


@kernel(
    "csr_partial_product", _partial, errors=ERRORS, flags="reassoc contract", cost=_cost, parts=partial_parts
)
def csr_partial_product(data, indices, indptr, b, out, z, p, k, n, q, m, part):
    """The transposed product of one part of the rows after the other, each in a matrix of its own; of all
    rows and some columns if there is one such matrix.
    """
    rows = p - 1
    if rows != k:
        return 1
    if q == 1:
        width = column_width(z, n, m)
        at = part * width
        return add_rows(data, indices, indptr, b[at:], out[at:], z, n, m, 0, rows, min(width, n - at))
    first, last = first_row(indptr, rows, z, part, q), first_row(indptr, rows, z, part + 1, q)
    return add_rows(data, indices, indptr, b, out[part * m * n :], z, n, m, first, last, n)


def outside(j, columns):
    """True if there is no column j, in one comparison: as unsigned numbers, negative ones are large."""
    return cast(j, "u64") >= cast(columns, "u64")


def misplaced(start, end, z):
    """True if the values of a row are not among the z there are."""
    return start < 0 or end < start or end > z


def vector_rows(data, indices, indptr, b, out, z, columns, first, last):
    """Rows times a vector; returns the number of an error, or 0."""
    for i in range(first, last):
        start, end = cast(indptr[i], "int64"), cast(indptr[i + 1], "int64")
        if misplaced(start, end, z):
            return 2
        total = cast(0, type_of(out))
        for t in range(start, end):
            j = cast(indices[t], "int64")
            if outside(j, columns):
                return 3
            total += data[t] * b[j]
        out[i] = total
    return 0


def matrix_rows(data, indices, indptr, b, out, z, columns, n, first, last):
    """Rows times a matrix: a few columns at a time are kept in registers."""
    for i in range(first, last):
        start, end = cast(indptr[i], "int64"), cast(indptr[i + 1], "int64")
        if misplaced(start, end, z):
            return 2
        for t in range(start, end):
            j = cast(indices[t], "int64")
            if outside(j, columns):
                return 3
        if type_of(out).is_complex:
            for c in range(n):
                out[i * n + c] = 0
            for t in range(start, end):
                add_multiple(b[cast(indices[t], "int64") * n :], out[i * n :], data[t], n)
        else:
            c = 0
            while c + 16 <= n:
                row_times_columns(data, indices, b[c:], out[i * n + c :], n, start, end, 16, None)
                c += 16
            while c < n:
                row_times_columns(data, indices, b[c:], out[i * n + c :], n, start, end, 8, n - c)
                c += 8
    return 0


def row_times_columns(data, indices, b, out, n, start, end, lanes, left):
    """The sum of rows of b, times values; `left` is how many columns there are if not all lanes."""
    total = row(b, 0, lanes, 0)
    for t in range(start, end):
        total += data[t] * row(b, cast(indices[t], "int64") * n, lanes, left)
    put(out, 0, total, left)


def add_rows(data, indices, indptr, b, out, z, n, m, first, last, width):
    """The transposed product of some rows and of the first columns of b, which are n apart. Sums are in the
    order of the values, as SciPy's.
    """
    if width == n:
        for i in range(m * n):
            out[i] = 0
    else:
        for j in range(m):
            for c in range(width):
                out[j * n + c] = 0
    for i in range(first, last):
        start, end = cast(indptr[i], "int64"), cast(indptr[i + 1], "int64")
        if misplaced(start, end, z):
            return 2
        if n == 1:
            x = b[i]
            for t in range(start, end):
                j = cast(indices[t], "int64")
                if outside(j, m):
                    return 3
                out[j] += data[t] * x
        else:
            for t in range(start, end):
                j = cast(indices[t], "int64")
                if outside(j, m):
                    return 3
                add_multiple(b[i * n :], out[j * n :], data[t], width)
    return 0


def add_multiple(x, out, factor, n):
    """Adds a multiple of a row to a row."""
    if type_of(x).is_complex:
        for c in range(n):
            out[c] += factor * x[c]
    else:
        c = 0
        while c + 16 <= n:
            put(out, c, row(out, c, 16) + factor * row(x, c, 16))
            c += 16
        while c < n:
            put(out, c, row(out, c, 8, n - c) + factor * row(x, c, 8, n - c), n - c)
            c += 8


@kernel("csr_sampled_product", _sampled, errors=ERRORS, flags="reassoc contract", cost=_cost, parts=parts_of)
def csr_sampled_product(indices, indptr, a, b, out, z, p, m, n, k, part):
    if p - 1 != m:
        return 1
    parts = parts_of(z, n)
    first, last = first_row(indptr, m, z, part, parts), first_row(indptr, m, z, part + 1, parts)
    # Values that belong to no row.
    if part == 0:
        for t in range(max(0, min(z, cast(indptr[0], "int64")))):
            out[t] = 0
    if part == parts - 1:
        for t in range(max(0, cast(indptr[m], "int64")), z):
            out[t] = 0
    for i in range(first, last):
        start, end = cast(indptr[i], "int64"), cast(indptr[i + 1], "int64")
        if misplaced(start, end, z):
            return 2
        for t in range(start, end):
            j = cast(indices[t], "int64")
            if outside(j, k):
                return 3
            out[t] = a[i] * b[j] if n == 1 else inner(a[i * n :], b[j * n :], n)
    return 0


def inner(a, b, n):
    total = cast(0, type_of(a))
    for c in range(n):
        total += a[c] * b[c]
    return total
