# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR of `graphc_<s,d,c,z>gemm`: row-major products on Fortran BLAS."""

from __future__ import annotations

import re

_DECLARATION = re.compile(r"^declare void @graphc_([sdcz])gemm\(.*\n", re.MULTILINE)
_TYPES = {"s": "float", "d": "double", "c": "{float, float}", "z": "{double, double}"}
_ONES = {
    "s": "float 1.0",
    "d": "double 1.0",
    "c": "{float, float} {float 1.0, float 0.0}",
    "z": "{double, double} {double 1.0, double 0.0}",
}


def define_gemm(ir_text: str) -> str:
    """The kernel's text with a definition for every `graphc_?gemm` it declares.

    A row-major C = A B is the column-major C^T = B^T A^T, so the operands swap and nothing is copied. The
    external symbols `blas_?gemm` (LP64 Fortran interface) are resolved when the object is loaded.
    """
    used = _DECLARATION.findall(ir_text)
    if not used:
        return ir_text
    text = _DECLARATION.sub("", ir_text) + "".join(_gemm(letter) for letter in used)
    known = "declare i64 @llvm.smax.i64(" in text
    return text if known else text + "declare i64 @llvm.smax.i64(i64, i64)\n"


# Up to this many multiplications a plain loop is faster than a call of BLAS. The loop is here, once per
# module, and not at each product, where it would dominate the time to compile a graph with many of them.
SMALL_WORK = 4096

# C[i, :] += op(A)[i, p] * op(B)[p, :]; the inner loop vectorises when B's rows are contiguous.
_SMALL = """  %mn = mul i64 %m, %n
  %work = mul i64 %mn, %k
  %fits = icmp ule i64 %work, {limit}
  br i1 %fits, label %small, label %large
small:
  %sai = select i1 %fa, i64 1, i64 %k
  %sap = select i1 %fa, i64 %m, i64 1
  %sbp = select i1 %fb, i64 1, i64 %n
  %sbj = select i1 %fb, i64 %k, i64 1
  %empty = icmp eq i64 %work, 0
  br i1 %empty, label %done, label %row
row:
  %i = phi i64 [ 0, %small ], [ %i.next, %row.end ]
  %ai = mul i64 %i, %sai
  %ci = mul i64 %i, %n
  br label %inner
inner:
  %p = phi i64 [ 0, %row ], [ %p.next, %inner.end ]
  %ap = mul i64 %p, %sap
  %a.index = add i64 %ai, %ap
  %a.at = getelementptr {type}, ptr %pa, i64 %a.index
  %x = load {type}, ptr %a.at
  %bp = mul i64 %p, %sbp
  br label %column
column:
  %j = phi i64 [ 0, %inner ], [ %j.next, %column ]
  %bj = mul i64 %j, %sbj
  %b.index = add i64 %bp, %bj
  %b.at = getelementptr {type}, ptr %pb, i64 %b.index
  %y = load {type}, ptr %b.at
  %c.index = add i64 %ci, %j
  %c.at = getelementptr {type}, ptr %pc, i64 %c.index
  %sum = load {type}, ptr %c.at
  %product = fmul contract {type} %x, %y
  %next = fadd contract {type} %sum, %product
  store {type} %next, ptr %c.at
  %j.next = add nuw nsw i64 %j, 1
  %j.more = icmp ult i64 %j.next, %n
  br i1 %j.more, label %column, label %inner.end
inner.end:
  %p.next = add nuw nsw i64 %p, 1
  %p.more = icmp ult i64 %p.next, %k
  br i1 %p.more, label %inner, label %row.end
row.end:
  %i.next = add nuw nsw i64 %i, 1
  %i.more = icmp ult i64 %i.next, %m
  br i1 %i.more, label %row, label %done
done:
  ret void
"""


def _gemm(letter: str) -> str:
    small = _SMALL.format(type=_TYPES[letter], limit=SMALL_WORK) if letter in "sd" else "  br label %large\n"
    return f"""
declare void @blas_{letter}gemm(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)
define internal void @graphc_{letter}gemm(
    i64 %ta, i64 %tb, i64 %m, i64 %n, i64 %k, i64 %a, i64 %b, i64 %c) noinline {{
entry:
  %ca = alloca i8
  %cb = alloca i8
  %ints = alloca [6 x i32]
  %one = alloca {_TYPES[letter]}
  %pa = inttoptr i64 %a to ptr
  %pb = inttoptr i64 %b to ptr
  %pc = inttoptr i64 %c to ptr
  %fa = icmp ne i64 %ta, 0
  %fb = icmp ne i64 %tb, 0
{small}large:
  %sa = select i1 %fa, i8 84, i8 78
  %sb = select i1 %fb, i8 84, i8 78
  store i8 %sa, ptr %ca
  store i8 %sb, ptr %cb
  store {_ONES[letter]}, ptr %one
  %pm = getelementptr i32, ptr %ints, i64 0
  %pn = getelementptr i32, ptr %ints, i64 1
  %pk = getelementptr i32, ptr %ints, i64 2
  %pla = getelementptr i32, ptr %ints, i64 3
  %plb = getelementptr i32, ptr %ints, i64 4
  %plc = getelementptr i32, ptr %ints, i64 5
  %lda = select i1 %fa, i64 %m, i64 %k
  %ldb = select i1 %fb, i64 %k, i64 %n
  %lda1 = call i64 @llvm.smax.i64(i64 %lda, i64 1)
  %ldb1 = call i64 @llvm.smax.i64(i64 %ldb, i64 1)
  %ldc1 = call i64 @llvm.smax.i64(i64 %n, i64 1)
  %m32 = trunc i64 %m to i32
  %n32 = trunc i64 %n to i32
  %k32 = trunc i64 %k to i32
  %lda32 = trunc i64 %lda1 to i32
  %ldb32 = trunc i64 %ldb1 to i32
  %ldc32 = trunc i64 %ldc1 to i32
  store i32 %m32, ptr %pm
  store i32 %n32, ptr %pn
  store i32 %k32, ptr %pk
  store i32 %lda32, ptr %pla
  store i32 %ldb32, ptr %plb
  store i32 %ldc32, ptr %plc
  call void @blas_{letter}gemm(ptr %cb, ptr %ca, ptr %pn, ptr %pm, ptr %pk, ptr %one, ptr %pb, ptr %plb,
    ptr %pa, ptr %pla, ptr %one, ptr %pc, ptr %plc)
  ret void
}}
"""
