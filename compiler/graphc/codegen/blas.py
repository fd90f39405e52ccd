# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR of `graphc_<s,d,c,z>gemm`: row-major products on Fortran BLAS and, where small, without.

    graphc_?gemm(ta, tb, m, n, k, a, lda, b, ldb, c, ldc, accumulate)     c = op(a) op(b)

`lda`, `ldb` and `ldc` are the distances of rows in elements. The product is added to c on demand.
"""

from __future__ import annotations

_TYPES = {"s": "float", "d": "double", "c": "{float, float}", "z": "{double, double}"}
_ONE = {
    "s": "float 1.0",
    "d": "double 1.0",
    "c": "{float, float} {float 1.0, float 0.0}",
    "z": "{double, double} {double 1.0, double 0.0}",
}
PARAMETERS = (
    "i64 %ta, i64 %tb, i64 %m, i64 %n, i64 %k, ptr %a, i64 %lda, ptr %b, i64 %ldb, ptr %c, i64 %ldc, "
    "i1 %accumulate"
)

# Up to this many multiplications, vector code is faster than a call of BLAS. With one row or one column every
# element of the matrix is used once: there is nothing to gain until threads and prefetching help.
SMALL_WORK = 4096
SMALL_ROW = 512 * 512

# A column is a row if operands, and hence everything about them, are exchanged. Strides that BLAS does not
# accept (rows that overlap or run backwards) are left to the small path, whatever the size.
_SMALL = """  %row = icmp eq i64 %m, 1
  %column = icmp eq i64 %n, 1
  %dense = icmp eq i64 %ldc, 1
  %not.row = xor i1 %row, true
  %column.dense = and i1 %column, %dense
  %swap = and i1 %column.dense, %not.row
  %m1 = select i1 %swap, i64 1, i64 %m
  %n1 = select i1 %swap, i64 %m, i64 %n
  %pa = select i1 %swap, ptr %b, ptr %a
  %pb = select i1 %swap, ptr %a, ptr %b
  %la = select i1 %swap, i64 %ldb, i64 %lda
  %lb = select i1 %swap, i64 %lda, i64 %ldb
  %not.fa = xor i1 %fa, true
  %not.fb = xor i1 %fb, true
  %fa1 = select i1 %swap, i1 %not.fb, i1 %fa
  %fb1 = select i1 %swap, i1 %not.fa, i1 %fb
  %mn = mul i64 %m, %n
  %work = mul i64 %mn, %k
  %vector = icmp eq i64 %m1, 1
  %limit = select i1 %vector, i64 {row}, i64 {small}
  %fits = icmp ule i64 %work, %limit
  %take = or i1 %fits, %unfit
  %sai = select i1 %fa1, i64 1, i64 %la
  %sap = select i1 %fa1, i64 %la, i64 1
  br i1 %take, label %small, label %large
small:
  %unit = icmp eq i64 %sap, 1
  %some = icmp sgt i64 %m1, 0
  br i1 %some, label %rows, label %done
rows:
  %i = phi i64 [ 0, %small ], [ %i.next, %row.end ]
  %ai = mul i64 %i, %sai
  %a.at = getelementptr {type}, ptr %pa, i64 %ai
  %ci = mul i64 %i, %ldc
  %c.at = getelementptr {type}, ptr %c, i64 %ci
  br i1 %fb1, label %transposed, label %plain
plain:
  call void @graphc_{letter}row(i64 %k, i64 %n1, ptr %a.at, i64 %sap, ptr %pb, i64 %lb, ptr %c.at,
    i1 %accumulate)
  br label %row.end
transposed:
  br i1 %unit, label %dots, label %elements
dots:
  call void @graphc_{letter}dots(i64 %k, i64 %n1, ptr %a.at, ptr %pb, i64 %lb, ptr %c.at, i1 %accumulate)
  br label %row.end
elements:
  %j = phi i64 [ 0, %transposed ], [ %j.next, %element ]
  %j.more = icmp slt i64 %j, %n1
  br i1 %j.more, label %element, label %row.end
element:
  %bj = mul i64 %j, %lb
  %b.at = getelementptr {type}, ptr %pb, i64 %bj
  %cj = getelementptr {type}, ptr %c.at, i64 %j
  call void @graphc_{letter}row(i64 %k, i64 1, ptr %a.at, i64 %sap, ptr %b.at, i64 1, ptr %cj, i1 %accumulate)
  %j.next = add nsw i64 %j, 1
  br label %elements
row.end:
  %i.next = add nuw nsw i64 %i, 1
  %i.more = icmp slt i64 %i.next, %m1
  br i1 %i.more, label %rows, label %done
done:
  ret void
"""


def gemm(letter: str) -> str:
    """The definition of `graphc_<letter>gemm`.

    A row-major C = A B is the column-major C^T = B^T A^T, so the operands swap and nothing is copied. The
    external symbols `blas_?gemm` (LP64 Fortran interface) are resolved when the object is loaded. The stride
    of a matrix with at most one row says nothing; BLAS wants it to be as long as a row all the same.
    """
    kind = _TYPES[letter]
    if letter in "sd":
        small = _SMALL.format(type=kind, letter=letter, row=SMALL_ROW, small=SMALL_WORK)
    else:
        small = "  br label %large\n"
    return f"""declare void @blas_{letter}gemm({", ".join(["ptr"] * 13)})
define void @graphc_{letter}gemm({PARAMETERS}) nounwind {{
entry:
  %ca = alloca i8
  %cb = alloca i8
  %ints = alloca [6 x i32]
  %one = alloca {kind}
  %beta = alloca {kind}
  %fa = icmp ne i64 %ta, 0
  %fb = icmp ne i64 %tb, 0
{_stride("a", "%fa", "%m", "%k")}{_stride("b", "%fb", "%k", "%n")}{_stride("c", "false", "%m", "%n")}\
  %unfit.ab = or i1 %unfit.a, %unfit.b
  %unfit = or i1 %unfit.ab, %unfit.c
{small}large:
  %sa = select i1 %fa, i8 84, i8 78
  %sb = select i1 %fb, i8 84, i8 78
  %start = select i1 %accumulate, {_ONE[letter]}, {kind} zeroinitializer
  store i8 %sa, ptr %ca
  store i8 %sb, ptr %cb
  store {_ONE[letter]}, ptr %one
  store {kind} %start, ptr %beta
{"".join(_integer(i, value) for i, value in enumerate(("%m", "%n", "%k", "%fit.a", "%fit.b", "%fit.c")))}\
  call void @blas_{letter}gemm(ptr %cb, ptr %ca, ptr %int1, ptr %int0, ptr %int2, ptr %one, ptr %b, ptr %int4,
    ptr %a, ptr %int3, ptr %beta, ptr %c, ptr %int5)
  ret void
}}
"""


def _stride(name: str, transposed: str, rows: str, columns: str) -> str:
    """Values `%fit.<name>`, the stride for BLAS, and `%unfit.<name>`, whether BLAS would refuse it."""
    return f"""  %rows.{name} = select i1 {transposed}, i64 {columns}, i64 {rows}
  %columns.{name} = select i1 {transposed}, i64 {rows}, i64 {columns}
  %some.{name} = icmp sgt i64 %columns.{name}, 1
  %length.{name} = select i1 %some.{name}, i64 %columns.{name}, i64 1
  %single.{name} = icmp sle i64 %rows.{name}, 1
  %fit.{name} = select i1 %single.{name}, i64 %length.{name}, i64 %ld{name}
  %unfit.{name} = icmp slt i64 %fit.{name}, %length.{name}
"""


def _integer(position: int, value: str) -> str:
    """Stores a number as an argument `%int<position>`."""
    return f"""  %int{position} = getelementptr i32, ptr %ints, i64 {position}
  %short{position} = trunc i64 {value} to i32
  store i32 %short{position}, ptr %int{position}
"""
