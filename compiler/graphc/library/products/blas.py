# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR of `graphc_<s,d,c,z>gemm`: row-major products on Fortran BLAS and, where small, without.

    graphc_?gemm(ta, tb, m, n, k, a, lda, b, ldb, c, ldc, accumulate)     c = op(a) op(b)

`lda`, `ldb` and `ldc` are the distances of rows in elements. The product is added to c on demand.

Large products are divided into blocks, which the threads of the pool share, each with a BLAS that uses one
thread. Why not the threads of BLAS itself: those of OpenBLAS look for work for 25 milliseconds after each
product, at the cost of whatever else runs then, and a caller has to wait for all of them; rounding depends on
their number; only a global setting bounds it. Blocks cost 2 to 5 percent more, since parts of the operands
are packed several times.
"""

from __future__ import annotations

from graphc.library.products.ranges import (
    BLOCK_FRAME,
    PRODUCT,
    ROW,
    ROW_FRAME,
    TYPES,
    arguments,
    block_range,
    block_stores,
    row_range,
    row_stores,
)
from graphc.library.products.small import BUFFER

PARAMETERS = (
    "i64 %ta, i64 %tb, i64 %m, i64 %n, i64 %k, ptr %a, i64 %lda, ptr %b, i64 %ldb, ptr %c, i64 %ldc, "
    "i1 %accumulate"
)

# Up to this many multiplications, vector code is as fast as BLAS or faster; the second number is for b
# transposed. With one row or one column every element of the matrix is used once: there is nothing to gain
# until threads and prefetching help.
SMALL_WORK = 1 << 14
SMALL_TRANSPOSED = 1 << 15
SMALL_ROW = 512 * 512
# As `tb`: not transposed, and not to be done in any other way than that of small matrices, which takes any
# strides and sizes.
_HERE = 2
# Up to this many, OpenBLAS uses one thread whatever it is told. From the second number on there are several
# blocks: of about 256 by 256, at least 2, and at most 8 by 8.
ONE_THREAD = 1 << 18
DIVIDED = 1 << 20
# Time of a multiplication and addition.
_PICOSECONDS = {"s": 17, "d": 34, "c": 68, "z": 136}
# A vector times a matrix of so many bytes may be shared with threads that look for work: 2.5 microseconds at
# what one core reads from its second-level cache.
SHARED_BYTES = 256 << 10
_PICOSECONDS_PER_BYTE = 10

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
  %narrow = icmp slt i64 %n, 2
  %limit.column = select i1 %narrow, i64 {small}, i64 0
  %limit = select i1 %vector, i64 {row}, i64 %limit.column
  %fits = icmp ule i64 %work, %limit
  %take = or i1 %fits, %unfit
  br i1 %take, label %small, label %large
small:
  br i1 %vector, label %one, label %strided
one:
  %heavy = icmp uge i64 %work, {shared}
  %sap = select i1 %fa1, i64 %la, i64 1
  %unit = icmp eq i64 %sap, 1
  %not.fb1 = xor i1 %fb1, true
  %rows = or i1 %unit, %not.fb1
  br i1 %rows, label %fast, label %apart
fast:
  br i1 %heavy, label %shared, label %single
shared:
  call void @graphc_{letter}row.shared({row_arguments})
  ret void
single:
  br i1 %fb1, label %dots, label %row.one
row.one:
  call void @graphc_{letter}row(i64 %k, i64 %n1, ptr %pa, i64 %sap, ptr %pb, i64 %lb, ptr %c, i1 %accumulate)
  ret void
dots:
  call void @graphc_{letter}dots(i64 %k, i64 %n1, ptr %pa, ptr %pb, i64 %lb, ptr %c, i1 %accumulate)
  ret void
apart:
  call void @graphc_{letter}gemm(i64 0, i64 {here}, i64 %n1, i64 1, i64 %k, ptr %pb, i64 %lb,
    ptr %pa, i64 %sap, ptr %c, i64 1, i1 %accumulate)
  ret void
strided:
  br i1 %fb, label %columns, label %all
all:
  call void @graphc_{letter}gemm(i64 %ta, i64 {here}, i64 %m, i64 %n, i64 %k, ptr %a, i64 %lda,
    ptr %b, i64 %ldb, ptr %c, i64 %ldc, i1 %accumulate)
  ret void
columns:
  %j = phi i64 [ 0, %strided ], [ %j.next, %column.one ]
  %j.more = icmp slt i64 %j, %n
  br i1 %j.more, label %column.one, label %done
column.one:
  %bj = mul i64 %j, %ldb
  %b.at = getelementptr {type}, ptr %b, i64 %bj
  %cj = getelementptr {type}, ptr %c, i64 %j
  call void @graphc_{letter}gemm(i64 %ta, i64 {here}, i64 %m, i64 1, i64 %k, ptr %a, i64 %lda,
    ptr %b.at, i64 1, ptr %cj, i64 %ldc, i1 %accumulate)
  %j.next = add nsw i64 %j, 1
  br label %columns
done:
  ret void
"""


# The stride of a matrix with at most one row says nothing; BLAS wants it to be as long as a row all the same.
# Blocks are multiples of 16, which suits the kernels of BLAS.
_LARGE = """  %mn.all = mul i64 %m, %n
  %work.all = mul i64 %mn.all, %k
  %m.blocks = lshr i64 %m, 8
  %n.blocks = lshr i64 %n, 8
  %m.some = call i64 @llvm.smax.i64(i64 %m.blocks, i64 1)
  %n.some = call i64 @llvm.smax.i64(i64 %n.blocks, i64 1)
  %m.few = call i64 @llvm.smin.i64(i64 %m.some, i64 8)
  %n.few = call i64 @llvm.smin.i64(i64 %n.some, i64 8)
  %grid = mul i64 %m.few, %n.few
  %undivided = icmp eq i64 %grid, 1
  %worth = icmp uge i64 %work.all, {divided}
  %halve = and i1 %undivided, %worth
  %tall = icmp sge i64 %m, %n
  %halve.m = and i1 %halve, %tall
  %halve.n = xor i1 %halve, %halve.m
  %m.parts = select i1 %halve.m, i64 2, i64 %m.few
  %n.parts = select i1 %halve.n, i64 2, i64 %n.few
  %alone = icmp ule i64 %work.all, {one_thread}
  %down.all = select i1 %alone, i64 1, i64 %m.parts
  %across.all = select i1 %alone, i64 1, i64 %n.parts
{height}{width}{stores}  br i1 %alone, label %call, label %divide
call:
  call void @graphc_{letter}gemm.range(ptr %blocks, i64 0, i64 1)
  ret void
divide:
  %count = mul i64 %down, %across
  %each = udiv i64 %work.all, %count
  %time = mul i64 %each, {picoseconds}
  call void @graphc_share_blas(ptr @graphc_{letter}gemm.range, ptr %blocks, i64 0, i64 %count, i64 %time,
    i64 1)
  ret void
"""


def _part(name: str, size: str, parts: str, count: str) -> str:
    """The size of blocks, and how many there are."""
    return f"""  %{name}.less = sub i64 {parts}, 1
  %{name}.sum = add i64 {size}, %{name}.less
  %{name}.fair = udiv i64 %{name}.sum, {parts}
  %{name}.up = add i64 %{name}.fair, 15
  %{name}.even = and i64 %{name}.up, -16
  %{name} = call i64 @llvm.smax.i64(i64 %{name}.even, i64 16)
  %{count}.sum = add i64 {size}, %{name}
  %{count}.up = sub i64 %{count}.sum, 1
  %{count}.some = udiv i64 %{count}.up, %{name}
  %{count} = call i64 @llvm.smax.i64(i64 %{count}.some, i64 1)
"""


def gemm(letter: str, tile: int) -> str:
    """The definition of `graphc_<letter>gemm`, or `graphc_<s,d>gemm.any`, and of what it shares.

    Args:
        letter: s, d, c or z.
        tile: elements of a row of the result that the functions for rows do at a time, or a multiple: threads
            share them without changing a single sum.
    """
    row = _small(letter) if letter in "sd" else "  br label %large\n"
    large = _LARGE.format(
        letter=letter,
        divided=DIVIDED,
        one_thread=ONE_THREAD,
        picoseconds=_PICOSECONDS[letter],
        height=_part("height", "%m", "%down.all", "down"),
        width=_part("width", "%n", "%across.all", "across"),
        stores=block_stores("%blocks"),
    )
    ranges = block_range(letter)
    if letter in "sd":
        ranges += row_range(letter, tile) + _shared_row(letter, tile)
    name, linkage = f"graphc_{letter}gemm", ""
    if letter in "sd":
        name, linkage = f"{name}.any", "internal "
    return f"""{ranges}
define internal void @graphc_{letter}gemm.large({arguments(PRODUCT)}) noinline nounwind {{
  %blocks = alloca {BLOCK_FRAME}
{large}}}
define {linkage}void @{name}({PARAMETERS}) nounwind {{
entry:
  %fa = icmp ne i64 %ta, 0
  %fb = icmp ne i64 %tb, 0
{_stride("a", "%fa", "%m", "%k")}{_stride("b", "%fb", "%k", "%n")}{_stride("c", "false", "%m", "%n")}\
  %unfit.ab = or i1 %unfit.a, %unfit.b
  %unfit = or i1 %unfit.ab, %unfit.c
{row}large:
  call void @graphc_{letter}gemm.large({arguments(PRODUCT)})
  ret void
}}
"""


def small_gemm(letter: str, small: str, transposition: str, square: int) -> str:
    """The definition of `graphc_<letter>gemm` for real numbers, which does small matrices itself.

    The others are left to `graphc_<letter>gemm.any`, which `gemm` defines.

    Args:
        letter: s or d.
        small: code of `graphc.library.products.small.small_product`.
        transposition: code of the function of this name there; empty if b is never transposed.
        square: what it does at a time.
    """
    transposed = ""
    if transposition:
        transposed = f"""transposed:
{_round_up("%k", "%height", square)}{_round_up("%n", "%width", square)}\
  %area = mul i64 %height, %width
  %room = icmp ule i64 %area, {BUFFER}
  br i1 %room, label %packed, label %any
packed:
  musttail call void @graphc_{letter}gemm.packed({PARAMETERS})
  ret void
"""
    return f"""define void @graphc_{letter}gemm({PARAMETERS}) nounwind {{
entry:
  %mn = mul i64 %m, %n
  %work = mul i64 %mn, %k
  %least = call i64 @llvm.smin.i64(i64 %m, i64 %n)
  %wide = icmp sgt i64 %least, 1
  %fb = icmp eq i64 %tb, 1
  %limit = select i1 %fb, i64 {SMALL_TRANSPOSED}, i64 {SMALL_WORK}
  %light = icmp ule i64 %work, %limit
  %fits = and i1 %wide, %light
  %here = icmp eq i64 %tb, {_HERE}
  %take = or i1 %fits, %here
  %fa = icmp ne i64 %ta, 0
  %sai = select i1 %fa, i64 1, i64 %lda
  %sap = select i1 %fa, i64 %lda, i64 1
  br i1 %take, label %look, label %any
look:
  br i1 %fb, label %{"transposed" if transposition else "any"}, label %small
{transposed}any:
  musttail call void @graphc_{letter}gemm.any({PARAMETERS})
  ret void
{small}  ret void
}}
{_packed(letter, transposition, square) if transposition else ""}"""


def _packed(letter: str, transposition: str, square: int) -> str:
    """The product with b transposed into a buffer on the stack."""
    return f"""define internal void @graphc_{letter}gemm.packed({PARAMETERS}) noinline nounwind {{
begin:
  %buffer = alloca [{BUFFER} x {TYPES[letter]}], align 64
{_round_up("%n", "%width", square)}  br label %entry
{transposition}  call void @graphc_{letter}gemm(i64 %ta, i64 {_HERE}, i64 %m, i64 %n, i64 %k,
    ptr %a, i64 %lda, ptr %buffer, i64 %width, ptr %c, i64 %ldc, i1 %accumulate)
  ret void
}}
"""


def _round_up(value: str, result: str, unit: int) -> str:
    """The next multiple of a power of two."""
    return f"  {value}.up = add i64 {value}, {unit - 1}\n  {result} = and i64 {value}.up, -{unit}\n"


def declarations(letter: str) -> set[str]:
    """What the definitions of `gemm` call."""
    return {
        f"declare void @blas_{letter}gemm({', '.join(['ptr'] * 13)})",
        "declare void @graphc_share_blas(ptr, ptr, i64, i64, i64, i64)",
        "declare void @graphc_share_short(ptr, ptr, i64, i64)",
        "declare i64 @llvm.smin.i64(i64, i64)",
        "declare i64 @llvm.smax.i64(i64, i64)",
    }


def _small(letter: str) -> str:
    size = 4 if letter == "s" else 8
    return _SMALL.format(
        type=TYPES[letter],
        letter=letter,
        row=SMALL_ROW,
        small=SMALL_WORK,
        shared=SHARED_BYTES // size,
        here=_HERE,
        row_arguments=arguments(ROW),
    )


def _shared_row(letter: str, tile: int) -> str:
    """A vector times a matrix, with the help of threads that look for work."""
    time = _PICOSECONDS_PER_BYTE * (4 if letter == "s" else 8)
    return f"""define internal void @graphc_{letter}row.shared({arguments(ROW)}) noinline nounwind {{
  %frame = alloca {ROW_FRAME}
{row_stores("%frame")}  %tiles.up = add i64 %n1, {tile - 1}
  %tiles = udiv i64 %tiles.up, {tile}
  %work = mul i64 %k, %n1
  %cost = mul i64 %work, {time}
  call void @graphc_share_short(ptr @graphc_{letter}row.range, ptr %frame, i64 %tiles, i64 %cost)
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
