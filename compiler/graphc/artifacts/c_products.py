# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products for freestanding code: BLAS's `sgemm` and `dgemm`, by columns, without blocking.

Small products never get here (`graphc.library.products`); large ones take several times as long as in BLAS.
"""
# mypy: ignore-errors

from __future__ import annotations

from functools import cache

from graphc.native import Type, Value
from graphc.native.builtins import cast, choose
from graphc.native.translate import Translator

_N = 78  # the letter


def gemm(transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc):
    """One column of the result after the other: sums of columns of a, or, with a transposed, products."""
    rows, columns, terms = cast(m[0], "i64"), cast(n[0], "i64"), cast(k[0], "i64")
    a_step, b_step, c_step = cast(lda[0], "i64"), cast(ldb[0], "i64"), cast(ldc[0], "i64")
    factor, kept, plain = alpha[0], beta[0], transb[0] == _N
    # Steps of b along k and along n.
    down = choose(plain, 1, b_step)
    along = choose(plain, b_step, 1)
    for j in range(columns):
        y, x = c[j * c_step :], b[j * along :]
        for i in range(rows):
            y[i] = choose(kept == 0.0, 0.0, y[i] * kept)
        if transa[0] == _N:
            for p in range(terms):
                f, column = x[p * down] * factor, a[p * a_step :]
                for i in range(rows):
                    y[i] += column[i] * f
        else:
            for i in range(rows):
                row, total = a[i * a_step :], x[0] - x[0]
                for p in range(terms):
                    total += row[p] * x[p * down]
                y[i] += total * factor


@cache
def products_ir() -> str:
    """The functions' text."""
    texts = []
    for letter, kind in (("s", "f32"), ("d", "f64")):
        t = Translator(letter, "reassoc contract", prefix=f"graphc_c_{letter}gemm")
        # c letter, i number, f floating point.
        types = {"c": Type("i8"), "i": Type("i32"), "f": Type(kind)}
        t.define(
            gemm, f"blas_{letter}gemm", [Value(f"%a{i}", types[x].to) for i, x in enumerate("cciiiffififfi")]
        )
        texts.append(t.text())
    return "".join(texts)
