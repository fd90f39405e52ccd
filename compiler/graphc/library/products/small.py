# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR of products of small matrices whose sizes are known at run time only.

A tile of the result, 4 rows of two vectors or one, has its sums in registers while p runs: a piece of row p
of b is multiplied with an element of each row of a, whose strides do not matter: a may be transposed. The
last tile may extend beyond the last row: there the last row stands in for those that do not exist, is
computed several times, and written with the same values. Columns beyond the last one are masked.

If b is transposed its rows are transposed into a buffer on the stack first, in squares of registers.

Text, and not in the kernel language, for the reason that `graphc.native.vector_ir` gives.
"""

from __future__ import annotations

from graphc.library.products.blas import HERE, NARROW, ONE_THREAD, SMALL_TRANSPOSED, SMALL_WORK
from graphc.native.vector_ir import VectorWriter

PARAMETERS = (
    "i64 %ta, i64 %tb, i64 %m, i64 %n, i64 %k, ptr %a, i64 %lda, ptr %b, i64 %ldb, ptr %c, i64 %ldc, "
    "i1 %accumulate"
)

# Rows of a tile. With more, sums would wait less for those before, but several tiles are under way at once.
_HEIGHT = 4
# Elements of the buffer for a transposed operand, 8 KB at most.
BUFFER = 1024
_SQUARE = 8


def small_product(letter: str, register: int) -> VectorWriter:
    """The block `small` and what follows it, up to where the product is done.

    Values it uses: `%m`, `%n`, `%k`, the addresses `%a`, `%b`, `%c`, the strides `%sai` and `%sap` of a and
    `%ldb` and `%ldc` of rows, in elements, and `%accumulate`. There have to be elements.
    """
    w = VectorWriter(letter, register)
    w.label("small")
    lanes = w.lanes
    tiles = [_Columns(w, lanes, 2, False, 0)]
    if register == 64:  # masks cost nothing; half a register does for what is narrow
        tiles += [
            _Columns(w, lanes, 1, True, lanes // 2 - 1),
            _Columns(w, lanes // 2, 1, True, lanes // 2 - 1),
        ]
    elif register == 32:
        tiles += [_Columns(w, lanes, 1, False, 0), _Columns(w, lanes, 1, True, lanes - 1)]
    else:
        tiles += [_Columns(w, lanes, 1, False, 0), _Columns(w, 1, 1, False, 0)]
    w.columns(tiles, [("ptr", "%b"), ("ptr", "%c"), ("i64", "%n")])
    return w


class _Columns:
    """Tiles of a column of vectors.

    Args:
        w: the function.
        lanes: elements of a vector.
        vectors: how many are across.
        masked: the tile may extend beyond the last column.
        padding: by how many elements it may.
    """

    def __init__(self, w: VectorWriter, lanes: int, vectors: int, masked: bool, padding: int) -> None:
        self._w, self._lanes, self._vectors, self._masked = w, lanes, vectors, masked
        self.width, self.padding = lanes * vectors, padding

    def body(self, values: list[str]) -> list[str]:
        """All rows of some columns; carries b, c and the number of columns from there on."""
        w = self._w
        self._b, c, left = values
        if self._masked:
            self._mask = w.first_lanes(left, self._lanes)
        w.loop(_parts(w, "%m", _HEIGHT), [("ptr", "%a"), ("ptr", c), ("i64", "%m")], self._rows)
        beyond = w.let(f"sub nsw i64 {left}, {self.width}")
        return [w.element(self._b, self.width), w.element(c, self.width), beyond]

    def _rows(self, values: list[str]) -> list[str]:
        """One tile; carries a, c and the number of rows from there on."""
        w, kind = self._w, self._w.vector(self._lanes)
        a, c, left = values
        last = w.let(f"sub nsw i64 {left}, 1")
        numbers = [w.minimum(str(row), last) for row in range(1, _HEIGHT)]
        self._a_rows = ["0", *(w.let(f"mul i64 {number}, %sai") for number in numbers)]
        c_rows = [c, *(w.element(c, w.let(f"mul i64 {number}, %ldc")) for number in numbers)]
        count = _HEIGHT * self._vectors
        sums = w.when("%accumulate", kind, count, lambda: [x for row in c_rows for x in self._pieces(row)])
        carried = [("ptr", a), ("ptr", self._b), *((kind, value) for value in sums)]
        sums = w.loop("%k", carried, self._next)[2:]
        for number, value in enumerate(sums):
            row, vector = divmod(number, self._vectors)
            self._write(value, w.element(c_rows[row], vector * self._lanes))
        following = [
            w.element(x, w.let(f"mul i64 {step}, {_HEIGHT}")) for x, step in ((a, "%sai"), (c, "%ldc"))
        ]
        return [*following, w.let(f"sub nsw i64 {left}, {_HEIGHT}")]

    def _next(self, values: list[str]) -> list[str]:
        """One p; carries the addresses of its elements of a and b, and the sums."""
        w = self._w
        a, b, *sums = values
        pieces = self._pieces(b)
        new: list[str] = []
        for row in self._a_rows:
            factor = w.broadcast(w.element(a, row), self._lanes)
            new += [w.multiply_add(factor, x, sums[len(new) + i], self._lanes) for i, x in enumerate(pieces)]
        return [w.element(a, "%sap"), w.element(b, "%ldb"), *new]

    def _pieces(self, row: str) -> list[str]:
        """The vectors of a row of the tile."""
        addresses = [self._w.element(row, vector * self._lanes) for vector in range(self._vectors)]
        if self._masked:
            return [self._w.read_masked(address, self._mask, self._lanes) for address in addresses]
        return [self._w.read(address, self._lanes) for address in addresses]

    def _write(self, value: str, address: str) -> None:
        if self._masked:
            self._w.write_masked(value, address, self._mask, self._lanes)
        else:
            self._w.write(value, address, self._lanes)


def square(letter: str, register: int) -> int:
    """Rows and columns that `transposition` does at a time."""
    return min(_SQUARE, VectorWriter(letter, register).lanes)


def transposition(letter: str, register: int) -> VectorWriter:
    """Code that writes `%n` rows of `%k` elements at `%b` as columns at `%buffer`.

    Other values: the strides `%ldb` and `%width`, a multiple of `square`, of rows. The buffer has room for
    multiples of `square`, and its elements beyond `%n` and `%k` have any values afterwards.
    """
    w = VectorWriter(letter, register)
    w.label("entry")
    size = square(letter, register)

    def rows(values: list[str]) -> list[str]:
        b, to, left = values
        last = w.let(f"sub nsw i64 {left}, 1")
        numbers = [w.minimum(str(row), last) for row in range(1, size)]
        offsets = ["0", *(w.let(f"mul i64 {number}, %ldb") for number in numbers)]

        def squares(values: list[str]) -> list[str]:
            at, to, left = values
            mask = w.first_lanes(left, size)
            pieces = [w.read_masked(w.element(at, offset), mask, size) for offset in offsets]
            for column in w.transposed(pieces):
                w.write(column, to, size)
                to = w.element(to, "%width")
            return [w.element(at, size), to, w.let(f"sub nsw i64 {left}, {size}")]

        w.loop(_parts(w, "%k", size), [("ptr", b), ("ptr", to), ("i64", "%k")], squares)
        following = w.element(b, w.let(f"mul i64 %ldb, {size}"))
        return [following, w.element(to, size), w.let(f"sub nsw i64 {left}, {size}")]

    w.loop(_parts(w, "%n", size), [("ptr", "%b"), ("ptr", "%buffer"), ("i64", "%n")], rows)
    return w


def _parts(w: VectorWriter, count: str, size: int) -> str:
    return w.let(f"udiv i64 {w.let(f'add nsw i64 {count}, {size - 1}')}, {size}")


def small_gemm(letter: str, small: str, transposition: str, square: int) -> str:
    """The definition of `graphc_<letter>gemm` for real numbers, which does small matrices itself.

    The others are left to `graphc_<letter>gemm.any`, which `graphc.library.products.blas` defines.

    Args:
        letter: s or d.
        small: code of `small_product`.
        transposition: code of the function of this name; empty if b is never transposed.
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
  %some = select i1 %fb, i64 {SMALL_TRANSPOSED}, i64 {SMALL_WORK}
  %nk = mul i64 %n, %k
  %narrow = icmp ule i64 %nk, {NARROW}
  %limit = select i1 %narrow, i64 {ONE_THREAD}, i64 %some
  %light = icmp ule i64 %work, %limit
  %fits = and i1 %wide, %light
  %here = icmp eq i64 %tb, {HERE}
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
  %buffer = alloca [{BUFFER} x {VectorWriter(letter, 16).scalar}], align 64
{_round_up("%n", "%width", square)}  br label %entry
{transposition}  call void @graphc_{letter}gemm(i64 %ta, i64 {HERE}, i64 %m, i64 %n, i64 %k,
    ptr %a, i64 %lda, ptr %buffer, i64 %width, ptr %c, i64 %ldc, i1 %accumulate)
  ret void
}}
"""


def _round_up(value: str, result: str, unit: int) -> str:
    """The next multiple of a power of two."""
    return f"  {value}.up = add i64 {value}, {unit - 1}\n  {result} = and i64 {value}.up, -{unit}\n"
