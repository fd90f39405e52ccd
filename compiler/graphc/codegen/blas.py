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


def _gemm(letter: str) -> str:
    return f"""
declare void @blas_{letter}gemm(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)
define internal void @graphc_{letter}gemm(
    i64 %ta, i64 %tb, i64 %m, i64 %n, i64 %k, i64 %a, i64 %b, i64 %c) noinline {{
entry:
  %ca = alloca i8
  %cb = alloca i8
  %ints = alloca [6 x i32]
  %one = alloca {_TYPES[letter]}
  %fa = icmp ne i64 %ta, 0
  %fb = icmp ne i64 %tb, 0
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
  %pa = inttoptr i64 %a to ptr
  %pb = inttoptr i64 %b to ptr
  %pc = inttoptr i64 %c to ptr
  call void @blas_{letter}gemm(ptr %cb, ptr %ca, ptr %pn, ptr %pm, ptr %pk, ptr %one, ptr %pb, ptr %plb,
    ptr %pa, ptr %pla, ptr %one, ptr %pc, ptr %plc)
  ret void
}}
"""
