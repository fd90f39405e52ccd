# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Factors and systems by the threads of a block: the kernels for devices beside those of one core.

They are written in the notation of devices (`passes/gpu/_notation.py`), which they get as `of`: `of.share`
and `of.cells` give each thread its part of a range or of a matrix, all threads go through `of.span`, and what
one has written the others read after `of.barrier`. A matrix is what has elements `a[i, j]`, in shared memory
or that of the device; `passes/gpu/gpu_library.py` chooses, fills and launches.

Source: G. Golub and C. Van Loan, "Matrix Computations", outer product Cholesky, column-oriented substitution,
Gaussian elimination with partial pivoting.
"""
# mypy: ignore-errors

from __future__ import annotations


def cholesky(of, work, n):
    """Makes Cholesky's factor of a matrix of `n` rows in its lower triangle; returns whether there is one.

    A thread has rows of what is left of the matrix; other columns may be beside it.
    """

    def column(j, carried):
        pivot, after = work[j, j], j + 1
        fine = carried[0] & (pivot > 0.0).value
        root = pivot.f("sqrt")
        of.barrier()
        with of.on_first_thread():
            work[j, j] = root
        with of.share(n, after) as i:
            work[i, j] /= root
        of.barrier()
        with of.share(n, after) as i:
            own = work[i, j]
            with of.span(i + 1, after) as k:
                work[i, k] -= own * work[k, j]
        of.barrier()
        return [fine]

    return of.carry(n, [of.flag(True)], column)[0]


def substitute(of, a, x, n, k, first, *, forward, transposed=False, unit=False):
    """Solves a triangular system in place: each row of the solution is taken off those that are left.

    Args:
        of: the notation.
        a: the matrix, of `n` rows.
        x: has the right sides in `k` columns from `first` on; threads have elements of what is left.
        forward: whether the first row is the first one that is known.
        transposed: whether the system is that of the transposed matrix.
        unit: whether the diagonal counts as ones.
    """
    with of.span(n) as step:
        # As many rows are left from either end.
        left = n - 1 - step
        i = step if forward else left
        if not unit:
            pivot = a[i, i]
            with of.share(k) as c:
                x[i, c + first] /= pivot
            of.barrier()
        start = i + 1 if forward else 0
        with of.cells(left, k) as (number, c):
            row, column = number + start, c + first
            x[row, column] -= (a[i, row] if transposed else a[row, i]) * x[i, column]
        of.barrier()


def eliminate(of, work, n, width, log):
    """Elimination with row exchanges in a matrix, the right sides after its rows, `width` numbers each.

    Returns:
        whether no pivot is 0; and the determinant's sign with its logarithm, or 1 with the determinant.
    """

    def largest(j):
        """The row from j on with the first largest element of column j; each thread looks for itself."""

        def body(i, carried):
            size = abs(work[i, j])
            more = (size > work.number(carried[0])).value
            return [of.select(more, x, y) for x, y in zip((size.value, i), carried, strict=True)]

        return of.carry(n, [abs(work[j, j]).value, j], body, start=j + 1)[1]

    def column(j, carried):
        """Brings the largest element of a column into its row, and takes that off the rows below."""
        fine, sign, value = carried
        row = largest(j)
        of.barrier()
        # Where the row is its own, a thread writes what it has read.
        with of.share(width) as c:
            work[j, c], work[row, c] = work[row, c], work[j, c]
        of.barrier()
        pivot, below = work[j, j], j + 1
        regular = pivot.differs(0.0).value
        with of.share(n, below) as i:
            work[i, j] = of.select(regular, (work[i, j] / pivot).value, 0.0)
        of.barrier()
        with of.cells(n - below, width - below) as (i, c):
            i, c = below + i, below + c
            work[i, c] -= work[i, j] * work[j, c]
        of.barrier()
        return [fine & regular, *with_pivot(sign, value, pivot, row.differs(j))]

    def with_pivot(sign, value, pivot, moved):
        """The determinant, or its sign and logarithm, with one more pivot."""

        def turned(x):
            return of.select(moved, (-x).value, x.value)

        if not log:
            return sign, turned(work.number(value) * pivot)
        size = abs(pivot).f("log")
        return turned(work.number(sign) * pivot.sign()), (work.number(value) + size).value

    one, nothing = work.number(1.0).value, work.number(0.0).value
    return of.carry(n, [of.flag(True), one, nothing if log else one], column)
