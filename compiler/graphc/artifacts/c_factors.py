# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Triangular systems, Cholesky and LU factors for freestanding code: LAPACK's functions of real matrices.

They are called for matrices of more than 24 rows (`graphc.library.linalg`), do not block, and take
several times as long as LAPACK's where matrices are large. Arguments are those of BLAS and LAPACK, matrices
lie by columns; complex matrices and other factors need a library.

Heapsort of numbers none of which is NaN stands in for NumPy's sort functions.
"""

# mypy: ignore-errors

from __future__ import annotations

from collections.abc import Collection
from functools import cache

from graphc.native import BYTE, I64, Type, Value
from graphc.native.builtins import cast, sqrt
from graphc.native.translate import Translator


def sift(data, root, count):
    """Lets the element at a root sink to where both of its children are smaller."""
    value, at = data[root], root
    while 2 * at + 1 < count:
        larger = 2 * at + 1
        other = min(larger + 1, count - 1)
        if data[other] > data[larger]:
            larger = other
        if data[larger] <= value:
            break
        data[at] = data[larger]
        at = larger
    data[at] = value


def heapsort(data, count, unused):
    for i in range(count // 2 - 1, -1, -1):
        sift(data, i, count)
    for last in range(count - 1, 0, -1):
        largest = data[0]
        data[0] = data[last]
        data[last] = largest
        sift(data, 0, last)
    return cast(0, "i32")


@cache
def sort_ir() -> str:
    """The functions' text."""
    t = Translator(prefix="graphc_c_sort", apart=False)
    kinds = [
        ("uint", 8),
        ("uint", 16),
        *((kind, bits) for kind in ("uint", "int", "float") for bits in (32, 64)),
    ]
    for kind, bits in kinds:
        data = Value("%data", Type(f"{kind[0]}{bits}", True))
        parameters = [data, Value("%count", I64), Value("%unused", BYTE.to)]
        t.define(heapsort, f"numpy_sort_{kind}{bits}", parameters)
    return t.text()


_N, _L, _UNIT, _LEFT = 78, 76, 85, 76  # letters N, L, U, L


def potrf(uplo, n, a, lda, info):
    rows, step = cast(n[0], "i64"), cast(lda[0], "i64")
    info[0] = 0
    # Of the upper factor, this is the transpose.
    down = 1 if uplo[0] == _L else step
    along = step if uplo[0] == _L else 1
    for j in range(rows):
        rest = a[j * down + j * along]
        for k in range(j):
            x = a[j * down + k * along]
            rest -= x * x
        if not rest > 0.0:
            info[0] = cast(j + 1, "i32")
            return
        pivot = sqrt(rest)
        a[j * down + j * along] = pivot
        for i in range(j + 1, rows):
            total = a[i * down + j * along]
            for k in range(j):
                total -= a[i * down + k * along] * a[j * down + k * along]
            a[i * down + j * along] = total / pivot


def trsm(side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb):
    left, unit = side[0] == _LEFT, diag[0] == _UNIT
    step, apart = cast(lda[0], "i64"), cast(ldb[0], "i64")
    size = cast(m[0], "i64") if left else cast(n[0], "i64")
    count = cast(n[0], "i64") if left else cast(m[0], "i64")
    # On the right, it is the transposed system.
    plain = (trans[0] == _N) == left
    lower = (uplo[0] == _L) == plain
    down = 1 if plain else step
    along = step if plain else 1
    row = 1 if left else apart
    column = apart if left else 1
    factor = alpha[0]
    for c in range(count):
        for i in range(size):
            b[i * row + c * column] *= factor
    triangle(a, down, along, b, row, column, size, count, lower, unit)


def triangle(a, down, along, b, row, column, size, count, lower, unit):
    """Solves in place; a, element (i, j) of which is at i * down + j * along, is lower or upper."""
    for t in range(size):
        i = t if lower else size - 1 - t
        for s in range(t):
            k = s if lower else size - 1 - s
            f = a[i * down + k * along]
            for c in range(count):
                b[i * row + c * column] -= f * b[k * row + c * column]
        if not unit:
            pivot = a[i * down + i * along]
            for c in range(count):
                b[i * row + c * column] = b[i * row + c * column] / pivot


def exchange(b, i, j, row, column, count):
    for c in range(count):
        x = b[i * row + c * column]
        b[i * row + c * column] = b[j * row + c * column]
        b[j * row + c * column] = x


def getrf(m, n, a, lda, pivots, info):
    rows, columns, step = cast(m[0], "i64"), cast(n[0], "i64"), cast(lda[0], "i64")
    info[0] = 0
    for j in range(min(rows, columns)):
        p = j
        best = abs(a[j + j * step])
        for i in range(j + 1, rows):
            if abs(a[i + j * step]) > best:
                best = abs(a[i + j * step])
                p = i
        pivots[j] = cast(p + 1, "i32")
        if p != j:
            exchange(a, j, p, 1, step, columns)
        pivot = a[j + j * step]
        if pivot == 0.0:
            if info[0] == 0:
                info[0] = cast(j + 1, "i32")
        else:
            for i in range(j + 1, rows):
                a[i + j * step] = a[i + j * step] / pivot
            for c in range(j + 1, columns):
                f = a[j + c * step]
                for i in range(j + 1, rows):
                    a[i + c * step] -= a[i + j * step] * f


def getrs(trans, n, nrhs, a, lda, pivots, b, ldb, info):
    size, count = cast(n[0], "i64"), cast(nrhs[0], "i64")
    step, apart = cast(lda[0], "i64"), cast(ldb[0], "i64")
    info[0] = 0
    if trans[0] == _N:
        for i in range(size):
            exchange(b, i, cast(pivots[i], "i64") - 1, 1, apart, count)
        triangle(a, 1, step, b, 1, apart, size, count, True, True)
        triangle(a, 1, step, b, 1, apart, size, count, False, False)
    else:
        triangle(a, step, 1, b, 1, apart, size, count, True, False)
        triangle(a, step, 1, b, 1, apart, size, count, False, True)
        for t in range(size):
            i = size - 1 - t
            exchange(b, i, cast(pivots[i], "i64") - 1, 1, apart, count)


def getri(n, a, lda, pivots, work, lwork, info):
    size, step = cast(n[0], "i64"), cast(lda[0], "i64")
    info[0] = 0
    for j in range(size):
        if a[j + j * step] == 0.0:
            info[0] = cast(j + 1, "i32")
            return
    # The inverse of the upper factor, column by column.
    for j in range(size):
        last = 1.0 / a[j + j * step]
        a[j + j * step] = last
        for i in range(j):
            total = a[i + i * step] * a[i + j * step]
            for k in range(i + 1, j):
                total += a[i + k * step] * a[k + j * step]
            a[i + j * step] = -total * last
    # Then the lower one from the right.
    for t in range(size):
        j = size - 1 - t
        for i in range(j + 1, size):
            work[i] = a[i + j * step]
            a[i + j * step] = 0.0
        for k in range(j + 1, size):
            f = work[k]
            for i in range(size):
                a[i + j * step] -= a[i + k * step] * f
    for t in range(size):
        j = size - 1 - t
        p = cast(pivots[j], "i64") - 1
        if p != j:
            exchange(a, j, p, step, 1, size)


# Arguments: c letter, i number, f floating point.
_FUNCTIONS = (
    (potrf, "lapack_{}potrf", "ci" + "fii"),
    (trsm, "blas_{}trsm", "cccc" + "ii" + "ffifi"),
    (getrf, "lapack_{}getrf", "iifiii"),
    (getrs, "lapack_{}getrs", "ciifiifii"),
    (getri, "lapack_{}getri", "ifiifii"),
)


_KINDS = {"s": "f32", "d": "f64"}
FACTORS = frozenset(symbol.format(letter) for letter in _KINDS for _, symbol, _ in _FUNCTIONS)


def factors_ir(symbols: Collection[str]) -> str:
    """The text of some of the `FACTORS`."""
    texts = []
    for letter, kind in _KINDS.items():
        translator = Translator(letter, "contract", prefix=f"graphc_c_{letter}")
        types = {"c": Type("i8"), "i": Type("i32"), "f": Type(kind)}
        for function, name, arguments in _FUNCTIONS:
            if name.format(letter) in symbols:
                given = [Value(f"%a{i}", types[x].to) for i, x in enumerate(arguments)]
                translator.define(function, name.format(letter), given)
        texts.append(translator.text())
    return "".join(texts)
