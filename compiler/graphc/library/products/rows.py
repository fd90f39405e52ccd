# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR of `graphc_<s,d>row` and `graphc_<s,d>dots`: a vector times a matrix, of any size.

    graphc_?row(k, n, x, incx, b, ldb, y, accumulate)     y[j] = sum_p x[p] b[p, j]
    graphc_?dots(k, n, x, b, ldb, y, accumulate)          y[j] = sum_p x[p] b[j, p]

They add to y on demand. `incx` and `ldb` count elements; rows of b and y are contiguous. Nothing beyond the
ends of rows is touched. Both are made for operands in the first and second-level cache, as in loops that
call them in each iteration; beyond, BLAS with its threads is faster.

Text, and not in the kernel language, for the reason that `graphc.native.vector_ir` gives.
"""

from __future__ import annotations

from graphc.native.vector_ir import Body, VectorWriter

# Sums are kept in this many registers: enough to hide the latency of an addition, half of what AVX2 has.
SUMS = 8


def row_product(letter: str, register: int) -> VectorWriter:
    """The body of `graphc_?row`.

    A tile of columns has its sums in registers while p runs: an element of x is broadcast and multiplied with
    a piece of row p of b. Wide tiles have 8 sums. Narrow ones divide p among several sets of sums, as one
    alone would wait for each addition.
    """
    w = VectorWriter(letter, register)
    w.label("entry")
    tiles = [_Columns(w, 8, w.lanes, 1)]
    if register == 64:
        tiles.append(_Columns(w, 2, w.lanes, 2, masked=True))
    else:  # loads with a mask cost more, or have no instruction at all
        tiles.append(_Columns(w, 2, w.lanes, 4))
        tiles.append(_Columns(w, 1, w.lanes, 4, masked=True) if register > 16 else _Columns(w, 1, 1, 4))
    w.columns(tiles, [("ptr", "%b"), ("ptr", "%y"), ("i64", "%n")])
    return w


class _Columns:
    """A tile of columns of `graphc_?row`.

    Args:
        w: the function.
        vectors: number of vectors across the tile.
        lanes: elements of each.
        ways: sets of sums that p is divided among.
        masked: the tile may extend beyond the last column.
    """

    def __init__(self, w: VectorWriter, vectors: int, lanes: int, ways: int, masked: bool = False) -> None:
        self._w, self._vectors, self._lanes, self._ways = w, vectors, lanes, ways
        self.width, self._masked = vectors * lanes, masked
        self.padding = self.width - 1 if masked else 0

    def body(self, values: list[str]) -> list[str]:
        """One tile; carries the matrix, the result and the number of columns from there on."""
        w, kind = self._w, self._w.vector(self._lanes)
        b, y, left = values
        if self._masked:
            counts = [w.let(f"sub nsw i64 {left}, {v * self._lanes}") for v in range(self._vectors)]
            self._masks = [w.first_lanes(count, self._lanes) for count in counts]
        source = w.let(f"select i1 %accumulate, ptr {y}, ptr @graphc_zeros")
        sums = [self._read(source, v) for v in range(self._vectors)]
        sums += ["zeroinitializer"] * (self._vectors * (self._ways - 1))
        count = w.let(f"udiv i64 %k, {self._ways}")
        carried = [("ptr", "%x"), ("ptr", b), *((kind, value) for value in sums)]
        x, row, *sums = w.loop(count, carried, self._rows(self._ways))
        if self._ways > 1:
            rest = w.let(f"urem i64 %k, {self._ways}")
            carried = [("ptr", x), ("ptr", row), *((kind, value) for value in sums[: self._vectors])]
            sums = w.loop(rest, carried, self._rows(1))[2:] + sums[self._vectors :]
        for v in range(self._vectors):
            self._write(w.add_all(sums[v :: self._vectors], self._lanes), y, v)
        return [w.element(b, self.width), w.element(y, self.width), w.let(f"sub i64 {left}, {self.width}")]

    def _rows(self, ways: int) -> Body:
        """Some rows of the matrix, one for each set of sums."""

        def body(values: list[str]) -> list[str]:
            w, new = self._w, []
            x, row, *sums = values
            for way in range(ways):
                factor = w.broadcast(x, self._lanes)
                for v in range(self._vectors):
                    total = sums[way * self._vectors + v]
                    new.append(w.multiply_add(factor, self._read(row, v), total, self._lanes))
                x, row = w.element(x, "%incx"), w.element(row, "%ldb")
            return [x, row, *new]

        return body

    def _read(self, base: str, v: int) -> str:
        address = self._w.element(base, v * self._lanes)
        if self._masked:
            return self._w.read_masked(address, self._masks[v], self._lanes)
        return self._w.read(address, self._lanes)

    def _write(self, value: str, base: str, v: int) -> None:
        address = self._w.element(base, v * self._lanes)
        if self._masked:
            self._w.write_masked(value, address, self._masks[v], self._lanes)
        else:
            self._w.write(value, address, self._lanes)


def dot_products(letter: str, register: int) -> VectorWriter:
    """The body of `graphc_?dots`.

    Up to 8 rows of b at a time: a piece of x is multiplied with the same piece of each, and the elements of
    each sum are added up at the end. In the last tile the last row stands in for those that do not exist.
    """
    w = VectorWriter(letter, register)
    w.label("entry")
    tile = _Rows(w, min(SUMS, w.lanes))
    count = w.let(f"udiv i64 {w.let(f'add nsw i64 %n, {tile.rows - 1}')}, {tile.rows}")
    w.loop(count, [("ptr", "%b"), ("ptr", "%y"), ("i64", "%n")], tile.body)
    return w


class _Rows:
    """A tile of rows of `graphc_?dots`."""

    def __init__(self, w: VectorWriter, rows: int) -> None:
        self._w, self.rows, self._ways = w, rows, max(1, SUMS // rows)

    def body(self, values: list[str]) -> list[str]:
        """One tile; carries the matrix, the result and the number of rows from there on."""
        w, rows = self._w, self.rows
        kind, lanes = w.vector(w.lanes), w.lanes
        b, y, left = values
        self._rows_at = self._row_addresses(b, left)
        step = self._ways * lanes
        sums = ["zeroinitializer"] * (rows * self._ways)
        count = w.let(f"udiv i64 %k, {step}")
        carried = [("i64", "0"), *((kind, value) for value in sums)]
        position, *sums = w.loop(count, carried, self._pieces)
        rest = w.let(f"sub i64 %k, {position}")
        count = w.let(f"udiv i64 {w.let(f'add nsw i64 {rest}, {lanes - 1}')}, {lanes}")
        carried = [("i64", position), *((kind, value) for value in sums[:rows])]
        sums = w.loop(count, carried, self._last_piece)[1:] + sums[rows:]
        totals = [w.add_all(sums[row::rows], lanes) for row in range(rows)]
        mask = w.first_lanes(left, rows)
        previous = w.read_masked(w.let(f"select i1 %accumulate, ptr {y}, ptr @graphc_zeros"), mask, rows)
        w.write_masked(w.add(w.row_sums(totals, lanes), previous, rows), y, mask, rows)
        following = w.element(b, w.let(f"mul i64 %ldb, {rows}"))
        return [following, w.element(y, rows), w.let(f"sub i64 {left}, {rows}")]

    def _row_addresses(self, b: str, left: str) -> list[str]:
        w, last = self._w, self._w.let(f"sub nsw i64 {left}, 1")
        addresses = [b]
        for row in range(1, self.rows):
            offset = w.let(f"mul i64 {w.minimum(str(row), last)}, %ldb")
            addresses.append(w.element(b, offset))
        return addresses

    def _pieces(self, values: list[str]) -> list[str]:
        w, new = self._w, []
        position, *sums = values
        for way in range(self._ways):
            x = w.read(w.element("%x", position), w.lanes)
            for row, address in enumerate(self._rows_at):
                piece = w.read(w.element(address, position), w.lanes)
                new.append(w.multiply_add(x, piece, sums[way * self.rows + row], w.lanes))
            position = w.let(f"add nuw nsw i64 {position}, {w.lanes}")
        return [position, *new]

    def _last_piece(self, values: list[str]) -> list[str]:
        w, new = self._w, []
        position, *sums = values
        mask = w.first_lanes(w.let(f"sub nsw i64 %k, {position}"), w.lanes)
        x = w.read_masked(w.element("%x", position), mask, w.lanes)
        for address, total in zip(self._rows_at, sums, strict=True):
            piece = w.read_masked(w.element(address, position), mask, w.lanes)
            new.append(w.multiply_add(x, piece, total, w.lanes))
        return [w.let(f"add nuw nsw i64 {position}, {w.lanes}"), *new]
