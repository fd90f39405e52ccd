# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR of matrix products for freestanding code: BLAS's `sgemm` and `dgemm`, by columns, without blocking.

Small products never get here (`graphc.library.products`); large ones take several times as long as in BLAS.
"""

from __future__ import annotations

_TYPES = {"s": "float", "d": "double"}

# One column of the result after the other: sums of columns of a, or, with a transposed, products of columns.
_GEMM = """
define void @blas_{letter}gemm(ptr %transa, ptr %transb, ptr %pm, ptr %pn, ptr %pk, ptr %palpha,
    ptr noalias %a, ptr %plda, ptr noalias %b, ptr %pldb, ptr %pbeta, ptr noalias %c, ptr %pldc) nounwind {{
entry:
  %ca = load i8, ptr %transa
  %cb = load i8, ptr %transb
  %plain.a = icmp eq i8 %ca, 78
  %plain.b = icmp eq i8 %cb, 78
  %m.short = load i32, ptr %pm
  %n.short = load i32, ptr %pn
  %k.short = load i32, ptr %pk
  %lda.short = load i32, ptr %plda
  %ldb.short = load i32, ptr %pldb
  %ldc.short = load i32, ptr %pldc
  %m = sext i32 %m.short to i64
  %n = sext i32 %n.short to i64
  %k = sext i32 %k.short to i64
  %lda = sext i32 %lda.short to i64
  %ldb = sext i32 %ldb.short to i64
  %ldc = sext i32 %ldc.short to i64
  %alpha = load {type}, ptr %palpha
  %beta = load {type}, ptr %pbeta
  %fresh = fcmp oeq {type} %beta, 0.0
; Steps of b along k and along n.
  %b.k = select i1 %plain.b, i64 1, i64 %ldb
  %b.n = select i1 %plain.b, i64 %ldb, i64 1
  br label %columns
columns:
  %j = phi i64 [ 0, %entry ], [ %j.next, %column.done ]
  %j.more = icmp slt i64 %j, %n
  br i1 %j.more, label %column, label %end
end:
  ret void
column:
  %cj = mul i64 %j, %ldc
  %c.at = getelementptr {type}, ptr %c, i64 %cj
  %bj = mul i64 %j, %b.n
  %b.at = getelementptr {type}, ptr %b, i64 %bj
  br label %scale
scale:
  %s = phi i64 [ 0, %column ], [ %s.next, %scale.one ]
  %s.more = icmp slt i64 %s, %m
  br i1 %s.more, label %scale.one, label %scaled
scale.one:
  %s.at = getelementptr {type}, ptr %c.at, i64 %s
  %old = load {type}, ptr %s.at
  %kept = fmul {type} %old, %beta
  %start = select i1 %fresh, {type} 0.0, {type} %kept
  store {type} %start, ptr %s.at
  %s.next = add nsw i64 %s, 1
  br label %scale
scaled:
  br i1 %plain.a, label %sums, label %dots
sums:
  %l = phi i64 [ 0, %scaled ], [ %l.next, %sum.done ]
  %l.more = icmp slt i64 %l, %k
  br i1 %l.more, label %sum, label %column.done
sum:
  %bl = mul i64 %l, %b.k
  %b.l.at = getelementptr {type}, ptr %b.at, i64 %bl
  %b.l = load {type}, ptr %b.l.at
  %factor = fmul {type} %b.l, %alpha
  %al = mul i64 %l, %lda
  %a.l = getelementptr {type}, ptr %a, i64 %al
  br label %rows
rows:
  %i = phi i64 [ 0, %sum ], [ %i.next, %row ]
  %i.more = icmp slt i64 %i, %m
  br i1 %i.more, label %row, label %sum.done
row:
  %a.i = getelementptr {type}, ptr %a.l, i64 %i
  %c.i = getelementptr {type}, ptr %c.at, i64 %i
  %x = load {type}, ptr %a.i
  %y = load {type}, ptr %c.i
  %xy = fmul contract {type} %x, %factor
  %z = fadd contract {type} %y, %xy
  store {type} %z, ptr %c.i
  %i.next = add nsw i64 %i, 1
  br label %rows
sum.done:
  %l.next = add nsw i64 %l, 1
  br label %sums
dots:
  %r = phi i64 [ 0, %scaled ], [ %r.next, %dot.done ]
  %r.more = icmp slt i64 %r, %m
  br i1 %r.more, label %dot, label %column.done
dot:
  %ar = mul i64 %r, %lda
  %a.r = getelementptr {type}, ptr %a, i64 %ar
  br label %terms
terms:
  %t = phi i64 [ 0, %dot ], [ %t.next, %term ]
  %total = phi {type} [ 0.0, %dot ], [ %total.next, %term ]
  %t.more = icmp slt i64 %t, %k
  br i1 %t.more, label %term, label %dot.done
term:
  %a.t = getelementptr {type}, ptr %a.r, i64 %t
  %bt = mul i64 %t, %b.k
  %b.t = getelementptr {type}, ptr %b.at, i64 %bt
  %u = load {type}, ptr %a.t
  %v = load {type}, ptr %b.t
  %uv = fmul reassoc contract {type} %u, %v
  %total.next = fadd reassoc contract {type} %total, %uv
  %t.next = add nsw i64 %t, 1
  br label %terms
dot.done:
  %c.r = getelementptr {type}, ptr %c.at, i64 %r
  %w = load {type}, ptr %c.r
  %part = fmul contract {type} %total, %alpha
  %sum.r = fadd contract {type} %w, %part
  store {type} %sum.r, ptr %c.r
  %r.next = add nsw i64 %r, 1
  br label %dots
column.done:
  %j.next = add nsw i64 %j, 1
  br label %columns
}}
"""


def products_ir() -> str:
    """The functions' text."""
    return "".join(_GEMM.format(letter=letter, type=kind) for letter, kind in _TYPES.items())
