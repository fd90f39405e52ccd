# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products: the functions that a kernel declares, from the modules that write them.

Products of small matrices whose sizes are known are written here, `graphc_<s,d>block_<m>_<n>_<k>_<nt><nt>`:

    graphc_?block_...(a, lda, b, ldb, c, ldc, accumulate)     c = op(a) op(b), added to c on demand

An n or a t stands for an operand as it is, or transposed.

Text, and not in the kernel language, for the reason that `graphc.native.vector_ir` gives.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from graphc.library.helpers import BlockProduct, Gemm, Helper, of_kind
from graphc.library.products.blas import define_blas, define_large
from graphc.library.products.rows import SUMS, dot_products, row_product
from graphc.library.products.small import small_gemm, small_product, square, transposition
from graphc.native.parts import Definitions, Part
from graphc.native.vector_ir import VectorWriter, register_bytes

_ROWS = 8  # sums kept in registers
_SUMS = 4  # fewer would wait for the latency of additions
_UNROLLED = 192  # multiplications of vectors; products with more loop over p


def block_product(
    letter: str, register: int, sizes: tuple[int, int, int], transposed: tuple[bool, bool]
) -> VectorWriter:
    """The function's body. Vectors have as many elements as a power of two that is left of a row of c."""
    w = VectorWriter(letter, register)
    w.label("entry")
    block = _Block(w, sizes, transposed)
    rows, columns = sizes[0], sizes[1]
    at = 0
    while at < columns:
        lanes = w.lanes
        while lanes > columns - at:
            lanes //= 2
        for first in range(0, rows, _ROWS):
            block.emit(range(first, min(first + _ROWS, rows)), at, lanes)
        at += lanes
    return w


class _Block:
    """Rows of c, in vectors."""

    def __init__(self, w: VectorWriter, sizes: tuple[int, int, int], transposed: tuple[bool, bool]) -> None:
        m, n, self._k = sizes
        self._w, self._transposed = w, transposed
        self._unrolled = m * -(-n // w.lanes) * self._k <= _UNROLLED
        self._source = w.let("select i1 %accumulate, ptr %c, ptr @graphc_zeros")
        self._lds = w.let("select i1 %accumulate, i64 %ldc, i64 0")

    def emit(self, rows: range, column: int, lanes: int) -> None:
        """The elements `column` to `column + lanes` of some rows."""
        w, kind = self._w, self._w.vector(lanes)
        self._a_rows = [self._multiple("%lda", row) for row in rows]
        self._b_columns = [self._multiple("%ldb", column + lane) for lane in range(lanes)]
        self._rows, self._column, self._lanes = rows, column, lanes
        start = [w.read(w.element(self._row(self._source, self._lds, row), column), lanes) for row in rows]
        if self._unrolled:
            sums = self._all(start)
        else:
            carried = [("ptr", "%a"), ("ptr", "%b"), *((kind, value) for value in start)]
            sums = w.loop(str(self._k), carried, self._next)[2:]
        for row, value in zip(rows, sums, strict=True):
            w.write(value, w.element(self._row("%c", "%ldc", row), column), lanes)

    def _all(self, start: list[str]) -> list[str]:
        """Straight-line code for all p, divided among sets of sums if there are few rows."""
        ways = max(1, _SUMS // len(start))
        sums = [start, *[["zeroinitializer"] * len(start)] * (ways - 1)]
        a, b = "%a", "%b"
        pieces: list[str] = []
        for p in range(self._k):
            pieces = pieces[1:] or self._square(p)
            a, b, *sums[p % ways] = self._next([a, b, *sums[p % ways]], *pieces[:1])
        used = sums[: max(1, min(ways, self._k))]
        return [self._w.add_all(values, self._lanes) for values in zip(*used, strict=True)]

    def _square(self, p: int) -> list[str]:
        """Pieces of a transposed b from p on: transposing a square of registers takes fewer instructions than
        collecting the elements of each piece. None where b has no square there.
        """
        w, lanes = self._w, self._lanes
        if not self._transposed[1] or lanes == 1 or p + lanes > self._k:
            return []
        rows = [w.element("%b", offset) for offset in self._b_columns]
        return w.transposed([w.read(w.element(row, p), lanes) for row in rows])

    def _next(self, values: list[str], piece: str = "") -> list[str]:
        """One p; carries the addresses of its elements of a and b, and the sums. The piece of b is read if it
        is not given.
        """
        w, (transpose_a, transpose_b) = self._w, self._transposed
        a, b, *sums = values
        piece = piece or self._piece(b)
        new = []
        for row, offset, total in zip(self._rows, self._a_rows, sums, strict=True):
            factor = w.broadcast(w.element(a, row if transpose_a else offset), self._lanes)
            new.append(w.multiply_add(factor, piece, total, self._lanes))
        following_a = w.element(a, "%lda" if transpose_a else 1)
        following_b = w.element(b, 1 if transpose_b else "%ldb")
        return [following_a, following_b, *new]

    def _piece(self, b: str) -> str:
        """A row of the second operand, in part."""
        w = self._w
        if self._transposed[1]:
            return w.gather([w.element(b, offset) for offset in self._b_columns])
        return w.read(w.element(b, self._column), self._lanes)

    def _multiple(self, stride: str, number: int) -> str:
        return self._w.let(f"mul i64 {stride}, {number}") if number else "0"

    def _row(self, base: str, stride: str, row: int) -> str:
        return self._w.element(base, self._multiple(stride, row))


_VECTOR = "i64 %k, i64 %n, ptr noalias readonly %x, "
_MATRIX = "ptr noalias readonly %b, i64 %ldb, ptr noalias %y, i1 %accumulate"
_ROW, _DOTS = f"{_VECTOR}i64 %incx, {_MATRIX}", f"{_VECTOR}{_MATRIX}"
_TYPES = (
    "i64, i64, ptr, i64, ptr, i64, ptr, i1",
    "i64, i64, ptr, ptr, i64, ptr, i1",
    "i64, i64, i64, i64, i64, ptr, i64, ptr, i64, ptr, i64, i1",
)
_ZEROS = "@graphc_zeros = internal constant [512 x i8] zeroinitializer, align 64\n"
_BLOCK_PARAMETERS = (
    "ptr noalias readonly %a, i64 %lda, ptr noalias readonly %b, i64 %ldb, ptr noalias %c, i64 %ldc, "
    "i1 %accumulate"
)


def product_parts(helpers: Iterable[Helper], features: str) -> list[Part]:
    """The products among what a kernel declares, in their final form: to optimise them costs several times
    the time to make machine code of them. With AVX, machine code of the first level is as fast as that of the
    third one, and takes three quarters of the time to make.

    Each product of known sizes is a part of its own, and so are all others of a type: many functions have the
    one or the other.

    Args:
        helpers: what the kernel declares.
        features: of the target, as LLVM writes them.
    """
    helpers, register = [*helpers], register_bytes(features)
    found = []
    for gemm in of_kind(helpers, Gemm):
        tile = SUMS * register // (4 if gemm.letter == "s" else 8)
        level = 1 if register > 16 else 3
        found.append(Part(_general(gemm.letter, register, gemm.packs), finished=True, level=level))
        found.append(Part(_large(gemm.letter, tile), finished=True, level=0))
    found += [Part(_block(block, register), finished=True) for block in of_kind(helpers, BlockProduct)]
    return found


@cache
def _general(letter: str, register: int, transposes: bool) -> str:
    """`graphc_<letter>gemm`, for any sizes."""
    made = Definitions()
    made.add(_ZEROS)
    made.add(define_blas(letter))
    if letter in "sd":
        made.add(*_real_functions(letter, register, transposes))
    return made.text()


@cache
def _large(letter: str, tile: int) -> str:
    """Callees for large matrices."""
    made = Definitions()
    text, declarations = define_large(letter, tile)
    if letter in "sd":
        rows = {
            f"declare void @graphc_{letter}row({_TYPES[0]})",
            f"declare void @graphc_{letter}dots({_TYPES[1]})",
            f"declare void @graphc_{letter}gemm({_TYPES[2]})",
        }
        declarations |= rows
    made.add(text, declarations)
    return made.text()


@cache
def _block(block: BlockProduct, register: int) -> str:
    """A product of known sizes."""
    made = Definitions()
    made.add(_ZEROS)
    w = block_product(block.letter, register, block.sizes, block.transposed)
    made.add(_function("void", block.symbol, _BLOCK_PARAMETERS, w), w.declarations)
    return made.text()


@cache
def _real_functions(letter: str, register: int, transposes: bool) -> tuple[str, frozenset[str]]:
    """Definitions of `graphc_?row`, `graphc_?dots` and `graphc_?gemm`, and the declarations they need."""
    row, dots = row_product(letter, register), dot_products(letter, register)
    text = _function("void", f"graphc_{letter}row", _ROW, row)
    text += _function("void", f"graphc_{letter}dots", _DOTS, dots)
    writers = [row, dots, small_product(letter, register)]
    if transposes:
        writers.append(transposition(letter, register))
    small, *transposed = (w.text() for w in writers[2:])
    text += small_gemm(letter, small, "".join(transposed), square(letter, register))
    return text, frozenset().union(*(w.declarations for w in writers))


def _function(result: str, name: str, parameters: str, w: VectorWriter) -> str:
    return f"define {result} @{name}({parameters}) nounwind {{\n{w.text()}  ret void\n}}\n"
