# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR of `graphc_<s,d>block_<m>_<n>_<k>_<nt><nt>`: products of small matrices whose sizes are known.

    graphc_?block_...(a, lda, b, ldb, c, ldc, accumulate)     c = op(a) op(b), added to c on demand

An n or a t stands for an operand as it is, or transposed.

Text, and not in the kernel language, for the reason that `graphc.native.vector_ir` gives.
"""

from __future__ import annotations

from graphc.native.vector_ir import VectorWriter

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
