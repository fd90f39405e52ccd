# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Row-major products on Fortran BLAS and, where small, without: `graphc_<s,d,c,z>gemm`.

    graphc_?gemm(ta, tb, m, n, k, a, lda, b, ldb, c, ldc, accumulate)     c = op(a) op(b)

`lda`, `ldb` and `ldc` are the distances of rows in elements. The product is added to c on demand.

Large products are divided into blocks, which the threads of the pool share, each with a BLAS that uses one
thread. Why not the threads of BLAS itself: those of OpenBLAS look for work for 25 milliseconds after each
product, at the cost of whatever else runs then, and a caller has to wait for all of them; rounding depends on
their number; only a global setting bounds it. Blocks cost 2 to 5 percent more, since parts of the operands
are packed several times. What is a block or a tile depends on sizes only, so that results do not depend on
the number of threads.
"""
# mypy: ignore-errors

from __future__ import annotations

from functools import cache

from graphc.native import BOOL, I64, Static, Type, Value
from graphc.native.builtins import (
    address,
    at,
    call,
    cast,
    choose,
    function,
    inlined,
    invoke,
    local,
    ref,
    type_of,
    variable,
    view,
)
from graphc.native.translate import Translator

# Up to this many multiplications, vector code is as fast as BLAS or faster; the second number is for b
# transposed. With one row or one column every element of the matrix is used once: there is nothing to gain
# until threads and prefetching help.
SMALL_WORK = 1 << 14
SMALL_TRANSPOSED = 1 << 15
SMALL_ROW = 512 * 512
# Up to so many elements, b stays in the nearest cache whatever the rows of a: then vector code is faster for
# any number of them. BLAS copies both into buffers before each of few multiplications.
NARROW = 1 << 10
# As `tb`: not transposed, and not to be done in any other way than that of small matrices, which takes any
# strides and sizes.
HERE = 2
# Up to this many, OpenBLAS uses one thread whatever it is told. From the second number on there are several
# blocks: of about 256 by 256, at least 2, and at most 8 by 8; a power of two each way.
ONE_THREAD = 1 << 18
DIVIDED = 1 << 20
# Time of a multiplication and addition.
_PICOSECONDS = {"s": 17, "d": 34, "c": 68, "z": 136}
# A vector times a matrix of so many bytes may be shared with threads that look for work: 2.5 microseconds at
# what one core reads from its second-level cache.
SHARED_BYTES = 256 << 10
_PICOSECONDS_PER_BYTE = 10
_KINDS = {"s": "f32", "d": "f64", "c": "c64", "z": "c128"}
_T, _N = 84, 78  # letters


def product(ta, tb, m, n, k, a, lda, b, ldb, c, ldc, accumulate):
    """The product, with BLAS or, with one row or column or strides that BLAS does not accept, without."""
    fa, fb = ta != 0, tb != 0
    fit_a, odd_a = stride(fa, m, k, lda)
    fit_b, odd_b = stride(fb, k, n, ldb)
    fit_c, odd_c = stride(False, m, n, ldc)
    if not type_of(c).is_complex:
        work, odd = m * n * k, odd_a | odd_b | odd_c
        # A column is a row if operands, and hence everything about them, are exchanged.
        swaps = (n == 1) & (ldc == 1) & (m != 1)
        if swaps | (m == 1):
            if (work <= SMALL_ROW) | odd:
                x, matrix = choose(swaps, b, a), choose(swaps, a, b)
                lx, lm = choose(swaps, ldb, lda), choose(swaps, lda, ldb)
                fx, fm = choose(swaps, not fb, fa), choose(swaps, not fa, fb)
                one_row(x, choose(fx, lx, 1), matrix, lm, fm, c, k, m * n, accumulate)
                return
        elif odd | (work <= choose(n < 2, SMALL_WORK, 0)):
            strided(ta, fb, m, n, k, a, lda, b, ldb, c, ldc, accumulate)
            return
    code = variable("graphc_?gemm.large", "u8")
    invoke(code, fa, fb, accumulate, a, b, c, m, n, k, fit_a, fit_b, fit_c)


@inlined
def stride(transposed, rows, columns, ld):
    """The stride for BLAS, and whether BLAS would refuse it: rows that overlap or run backwards. That of a
    matrix with at most one row says nothing; BLAS wants it to be as long as a row all the same.
    """
    length = max(choose(transposed, rows, columns), 1)
    fit = choose(choose(transposed, columns, rows) <= 1, length, ld)
    return fit, fit < length


@inlined
def gemm(ta, m, n, k, a, lda, b, ldb, c, ldc, accumulate):
    """The way of small matrices, whatever the sizes."""
    invoke(variable("graphc_?gemm", "u8"), ta, HERE, m, n, k, a, lda, b, ldb, c, ldc, accumulate)


@inlined
def strided(ta, fb, m, n, k, a, lda, b, ldb, c, ldc, accumulate):
    if fb:
        for j in range(n):
            gemm(ta, m, 1, k, a, lda, b[j * ldb :], 1, c[j:], ldc, accumulate)
    else:
        gemm(ta, m, n, k, a, lda, b, ldb, c, ldc, accumulate)


@inlined
def one_row(x, step, matrix, ld, transposed, c, k, n, accumulate):
    """A vector times a matrix; with the help of threads that look for work if that is large."""
    if (step != 1) & transposed:
        gemm(0, n, 1, k, matrix, ld, x, step, c, 1, accumulate)
    elif k * n >= SHARED_BYTES // (type_of(c).bits // 8):
        code = variable("graphc_?row.shared", "u8")
        invoke(code, x, step, matrix, ld, transposed, c, k, n, accumulate)
    else:
        row(x, step, matrix, ld, transposed, c, k, n, accumulate)


@inlined
def row(x, step, matrix, ld, transposed, c, k, n, accumulate):
    if transposed:
        invoke(variable("graphc_?dots", "u8"), k, n, x, matrix, ld, c, accumulate)
    else:
        invoke(variable("graphc_?row", "u8"), k, n, x, step, matrix, ld, c, accumulate)


def shared_row(x, step, matrix, ld, transposed, c, k, n, accumulate, tile):
    frame, code = local(10, "i64"), function(do_tiles, type_of(c).to, "i64", "i64")
    frame[0], frame[1], frame[2] = address(x), step, address(matrix)
    frame[3], frame[4], frame[5] = ld, cast(transposed, "i64"), address(c)
    frame[6], frame[7], frame[8], frame[9] = k, n, cast(accumulate, "i64"), cast(tile, "i64")
    tiles = cast(n + tile - 1, "u64") // tile
    cost = k * n * (_PICOSECONDS_PER_BYTE * type_of(c).bits // 8)
    call("graphc_share_short", code, frame, cast(tiles, "i64"), cost)


def do_tiles(given, first, past):
    """Some tiles of a row: what a thread does."""
    kind, frame = type_of(given), view(given, "i64")
    start, ld, transposed = first * frame[9], frame[3], frame[4] != 0
    count = min(past * frame[9], frame[7]) - start
    matrix = at(frame[2], kind)[choose(transposed, start * ld, start) :]
    c = at(frame[5], kind)[start:]
    row(at(frame[0], kind), frame[1], matrix, ld, transposed, c, frame[6], count, frame[8] != 0)


def large(fa, fb, accumulate, a, b, c, m, n, k, fit_a, fit_b, fit_c, time):
    """Divides a product into blocks."""
    work = m * n * k
    alone = work <= ONE_THREAD
    down, across = blocks_along(m), blocks_along(n)
    if alone:
        down, across = 1, 1
    elif down * across == 1 and work >= DIVIDED:
        down, across = choose(m >= n, 2, 1), choose(m >= n, 1, 2)
    height, width = part(m, down), part(n, across)
    across = parts(n, width)
    frame, code = local(15, "i64"), function(do_blocks, type_of(c).to, "i64", "i64")
    frame[0], frame[1], frame[2] = cast(fa, "i64"), cast(fb, "i64"), cast(accumulate, "i64")
    frame[3], frame[4], frame[5] = address(a), address(b), address(c)
    frame[6], frame[7], frame[8] = m, n, k
    frame[9], frame[10], frame[11] = fit_a, fit_b, fit_c
    frame[12], frame[13], frame[14] = height, width, across
    if alone:
        invoke(code, frame, 0, 1)
    else:
        count = parts(m, height) * across
        each = cast(work, "u64") // cast(count, "u64")
        call("graphc_share_blas", code, frame, 0, count, cast(each * time, "i64"), 1)


@inlined
def blocks_along(size):
    """Number of blocks along a dimension: 1, 2, 4 or 8, of about 256, so that two threads, or four,
    have equal shares.
    """
    count = size >> 8
    return choose(count > 5, 8, choose(count > 2, 4, max(count, 1)))


@inlined
def part(size, count):
    """The size of blocks: multiples of 16, which suits the kernels of BLAS."""
    fair = cast(size + count - 1, "u64") // cast(count, "u64")
    return max((cast(fair, "i64") + 15) & -16, 16)


@inlined
def parts(size, length):
    """Number of blocks."""
    return max(cast(cast(size + length - 1, "u64") // cast(length, "u64"), "i64"), 1)


def do_blocks(given, first, past):
    """Some blocks of a product, by BLAS unless b is small: what a thread does.

    A row-major C = A B is the column-major C^T = B^T A^T, so the operands swap and nothing is copied. The
    external symbols `blas_?gemm` (LP64 Fortran interface) are resolved when the object is loaded.
    """
    kind, frame = type_of(given), view(given, "i64")
    fa, fb = frame[0] != 0, frame[1] != 0
    la, lb, lc, height, width, across = frame[9], frame[10], frame[11], frame[12], frame[13], frame[14]
    letter_a, letter_b = ref(choose(fa, _T, _N), "u8"), ref(choose(fb, _T, _N), "u8")
    k, ref_a, ref_b, ref_c = ref(frame[8]), ref(la), ref(lb), ref(lc)
    one, beta = ref(1.0, kind), ref(cast(frame[2], kind), kind)
    for i in range(first, past):
        down = cast(cast(i, "u64") // cast(across, "u64"), "i64")
        i_row, i_column = down * height, (i - down * across) * width
        a = at(frame[3], kind)[i_row * choose(fa, 1, la) :]
        b = at(frame[4], kind)[i_column * choose(fb, lb, 1) :]
        c = at(frame[5], kind)[i_row * lc + i_column :]
        rows, columns = ref(min(frame[6] - i_row, height)), ref(min(frame[7] - i_column, width))
        if not kind.is_complex and (frame[7] * frame[8] <= NARROW) & (not fb):
            gemm(frame[0], rows[0], columns[0], frame[8], a, la, b, lb, c, lc, frame[2] != 0)
        else:
            call("blas_?gemm", letter_b, letter_a, columns, rows, k, one, b, ref_b, a, ref_a, beta, c, ref_c)


@cache
def define_blas(letter: str) -> str:
    """The definition of `graphc_<letter>gemm`, or `graphc_<s,d>gemm.any`.

    Args:
        letter: s, d, c or z.
    """
    t, kinds = _translator(letter)
    names = "ta tb m n k a lda b ldb c ldc accumulate".split()
    is_real = letter in "sd"
    symbol = f"graphc_{letter}gemm.any" if is_real else f"graphc_{letter}gemm"
    t.define(product, symbol, _formal(names, kinds), "internal " if is_real else "")
    return t.definitions() + "".join(f"declare void @{line}\n" for line in _large_functions(letter))


def define_large(letter: str, tile: int) -> tuple[str, frozenset[str]]:
    """Callees of products where a call more takes no time to speak of: `graphc_<letter>gemm.large`, and
    `graphc_<s,d>row.shared` for one row of the result.

    Args:
        letter: s, d, c or z.
        tile: elements of a row of the result that the functions for rows do at a time, or a multiple: threads
            share them without changing a single sum.
    """
    t, kinds = _translator(letter)
    names = "fa fb accumulate a b c m n k fit_a fit_b fit_c".split()
    statics = [Static(_PICOSECONDS[letter])]
    t.define(large, f"graphc_{letter}gemm.large", [*_formal(names, kinds), *statics])
    if letter in "sd":
        names = "x step matrix ld transposed c k n accumulate".split()
        t.define(shared_row, f"graphc_{letter}row.shared", [*_formal(names, kinds), Static(tile)])
    return t.definitions(), frozenset(t.declarations)


def _large_functions(letter: str) -> list[str]:
    """Declarations of the functions of `define_large`."""
    numbers = "ptr, ptr, ptr, i64, i64, i64, i64, i64, i64"
    found = [f"graphc_{letter}gemm.large(i1, i1, i1, {numbers})"]
    if letter in "sd":
        found.append(f"graphc_{letter}row.shared(ptr, i64, ptr, i64, i1, ptr, i64, i64, i1)")
    return found


def _translator(letter: str) -> tuple[Translator, dict[str, Type]]:
    """A translator, and the types of parameters that are no sizes."""
    kind = Type(_KINDS[letter], True)
    kinds = dict.fromkeys(("a", "b", "c", "x", "matrix"), kind)
    kinds |= dict.fromkeys(("fa", "fb", "transposed", "accumulate"), BOOL)
    return Translator(letter, prefix=f"graphc_{letter}gemm", apart=False), kinds


def _formal(names: list[str], kinds: dict[str, Type]) -> list[Value]:
    return [Value(f"%{name}", kinds.get(name, I64)) for name in names]
