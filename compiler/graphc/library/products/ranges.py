# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR of the parts of matrix products that threads of the pool do.

`graphc_<s,d,c,z>gemm` puts its arguments into a frame; `graphc_?gemm.range` calls BLAS for some blocks of the
result, `graphc_?row.range` does some tiles of a row. What is a block or a tile depends on sizes only, so that
results do not depend on the number of threads.
"""

from __future__ import annotations

# Types and names of values.
Fields = tuple[tuple[str, str], ...]
TYPES = {"s": "float", "d": "double", "c": "{float, float}", "z": "{double, double}"}
ONE = {
    "s": "float 1.0",
    "d": "double 1.0",
    "c": "{float, float} {float 1.0, float 0.0}",
    "z": "{double, double} {double 1.0, double 0.0}",
}
# What ranges are told; the names are those of values in graphc_?gemm.
ROW: Fields = (
    ("i1", "%fb1"),
    ("ptr", "%pa"),
    ("i64", "%sap"),
    ("ptr", "%pb"),
    ("i64", "%lb"),
    ("ptr", "%c"),
    ("i64", "%k"),
    ("i64", "%n1"),
    ("i1", "%accumulate"),
)
PRODUCT: Fields = (
    *(("i1", "%fa"), ("i1", "%fb"), ("i1", "%accumulate")),
    *(("ptr", "%a"), ("ptr", "%b"), ("ptr", "%c")),
    *(("i64", "%m"), ("i64", "%n"), ("i64", "%k"), ("i64", "%fit.a"), ("i64", "%fit.b"), ("i64", "%fit.c")),
)
_BLOCKS: Fields = (*PRODUCT, ("i64", "%height"), ("i64", "%width"), ("i64", "%across"))


def arguments(fields: Fields) -> str:
    """As parameters, or passed on under the same names."""
    return ", ".join(f"{kind} {value}" for kind, value in fields)


def _frame(fields: Fields) -> str:
    return "{ " + ", ".join(kind for kind, _ in fields) + " }"


ROW_FRAME, BLOCK_FRAME = _frame(ROW), _frame(_BLOCKS)


def _stores(fields: Fields, frame: str, prefix: str) -> str:
    return "".join(
        f"  %{prefix}{i} = getelementptr {_frame(fields)}, ptr {frame}, i64 0, i32 {i}\n"
        f"  store {kind} {value}, ptr %{prefix}{i}\n"
        for i, (kind, value) in enumerate(fields)
    )


def _loads(fields: Fields) -> str:
    return "".join(
        f"  %f{i} = getelementptr {_frame(fields)}, ptr %frame, i64 0, i32 {i}\n"
        f"  {value} = load {kind}, ptr %f{i}\n"
        for i, (kind, value) in enumerate(fields)
    )


def row_stores(frame: str) -> str:
    """Fills the frame of a row."""
    return _stores(ROW, frame, "row.")


def block_stores(frame: str) -> str:
    """Fills the frame of blocks."""
    return _stores(_BLOCKS, frame, "block.")


def row_range(letter: str, tile: int) -> str:
    """`graphc_<letter>row.range(frame, first, past)`: some tiles of a vector times a matrix."""
    kind = TYPES[letter]
    return f"""define internal void @graphc_{letter}row.range(ptr %frame, i64 %first, i64 %past) nounwind {{
{_loads(ROW)}  %start = mul i64 %first, {tile}
  %stop = mul i64 %past, {tile}
  %fewer = icmp slt i64 %stop, %n1
  %end = select i1 %fewer, i64 %stop, i64 %n1
  %count = sub i64 %end, %start
  %rows = mul i64 %start, %lb
  %offset = select i1 %fb1, i64 %rows, i64 %start
  %b.at = getelementptr {kind}, ptr %pb, i64 %offset
  %y.at = getelementptr {kind}, ptr %c, i64 %start
  br i1 %fb1, label %dots, label %row
row:
  call void @graphc_{letter}row(i64 %k, i64 %count, ptr %pa, i64 %sap, ptr %b.at, i64 %lb, ptr %y.at,
    i1 %accumulate)
  ret void
dots:
  call void @graphc_{letter}dots(i64 %k, i64 %count, ptr %pa, ptr %b.at, i64 %lb, ptr %y.at, i1 %accumulate)
  ret void
}}
"""


def block_range(letter: str) -> str:
    """`graphc_<letter>gemm.range(frame, first, past)`: BLAS calls for some blocks of a product.

    A row-major C = A B is the column-major C^T = B^T A^T, so the operands swap and nothing is copied. The
    external symbols `blas_?gemm` (LP64 Fortran interface) are resolved when the object is loaded.
    """
    kind = TYPES[letter]
    numbers = ("%rows", "%columns", "%k", "%fit.a", "%fit.b", "%fit.c")
    return f"""define internal void @graphc_{letter}gemm.range(ptr %frame, i64 %first, i64 %past) nounwind {{
entry:
  %ca = alloca i8
  %cb = alloca i8
  %ints = alloca [6 x i32]
  %one = alloca {kind}
  %beta = alloca {kind}
{_loads(_BLOCKS)}  %sa = select i1 %fa, i8 84, i8 78
  %sb = select i1 %fb, i8 84, i8 78
  %start = select i1 %accumulate, {ONE[letter]}, {kind} zeroinitializer
  store i8 %sa, ptr %ca
  store i8 %sb, ptr %cb
  store {ONE[letter]}, ptr %one
  store {kind} %start, ptr %beta
  %a.step = select i1 %fa, i64 1, i64 %fit.a
  %b.step = select i1 %fb, i64 %fit.b, i64 1
  br label %block
block:
  %i = phi i64 [ %first, %entry ], [ %i.next, %block ]
  %down = udiv i64 %i, %across
  %right = urem i64 %i, %across
  %row = mul i64 %down, %height
  %column = mul i64 %right, %width
  %rows.left = sub i64 %m, %row
  %columns.left = sub i64 %n, %column
  %rows = call i64 @llvm.smin.i64(i64 %rows.left, i64 %height)
  %columns = call i64 @llvm.smin.i64(i64 %columns.left, i64 %width)
  %a.offset = mul i64 %row, %a.step
  %b.offset = mul i64 %column, %b.step
  %c.row = mul i64 %row, %fit.c
  %c.offset = add i64 %c.row, %column
  %a.at = getelementptr {kind}, ptr %a, i64 %a.offset
  %b.at = getelementptr {kind}, ptr %b, i64 %b.offset
  %c.at = getelementptr {kind}, ptr %c, i64 %c.offset
{"".join(_integer(i, value) for i, value in enumerate(numbers))}\
  call void @blas_{letter}gemm(ptr %cb, ptr %ca, ptr %int1, ptr %int0, ptr %int2, ptr %one, ptr %b.at,
    ptr %int4, ptr %a.at, ptr %int3, ptr %beta, ptr %c.at, ptr %int5)
  %i.next = add nsw i64 %i, 1
  %more = icmp slt i64 %i.next, %past
  br i1 %more, label %block, label %done
done:
  ret void
}}
"""


def _integer(position: int, value: str) -> str:
    """Stores a number as an argument `%int<position>`."""
    return f"""  %int{position} = getelementptr i32, ptr %ints, i64 {position}
  %short{position} = trunc i64 {value} to i32
  store i32 %short{position}, ptr %int{position}
"""
