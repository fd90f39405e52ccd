# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes LLVM IR functions made of loops over vectors of floats.

Small products are written with this, and not in the kernel language: how many vectors a loop carries follows
from the target and from sizes, where a variable of that language is one value, and loops are written in the
form, with the test at their end and addresses that are kept as they are, of which machine code is made in
half the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

# Bytes that are cleared word by word.
_FEW = 64


class Writer:
    """Lines of IR, fresh value names, and the block being written."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._count = 0
        self.block = ""

    def text(self) -> str:
        """Everything written so far."""
        return "\n".join([*self._lines, ""])

    def line(self, text: str) -> None:
        self._lines.append(text)

    def label(self, name: str) -> None:
        """Begins a block."""
        self._lines.append(f"{name}:")
        self.block = name

    def let(self, instruction: str) -> str:
        """Writes an instruction and returns the name of its result."""
        self._count += 1
        self._lines.append(f"  %v{self._count} = {instruction}")
        return f"%v{self._count}"

    def address(self, base: str, offset: int) -> str:
        """Pointer `offset` bytes after `base`."""
        return self.let(f"getelementptr i8, ptr {base}, i64 {offset}") if offset else base

    def load(self, kind: str, base: str, offset: int) -> str:
        return self.let(f"load {kind}, ptr {self.address(base, offset)}")

    def store(self, kind: str, value: str, base: str, offset: int) -> None:
        self.line(f"  store {kind} {value}, ptr {self.address(base, offset)}")

    def clear(self, base: str, size: int) -> None:
        """Sets `size` bytes to zero: word by word if few, as the lowest level of code calls what fills."""
        if size % 8 == 0 and size <= _FEW:
            for offset in range(0, size, 8):
                self.store("i64", "0", base, offset)
        else:
            self.line(f"  call void @llvm.memset.p0.i64(ptr {base}, i8 0, i64 {size}, i1 false)")

    def require(self, condition: str, otherwise: str) -> None:
        """Goes on in a new block if the condition holds, else to the (cold) label."""
        self._count += 1
        block = f"ok{self._count}"
        self.line(f"  br i1 {condition}, label %{block}, label %{otherwise}, !prof !0")
        self.label(block)

    def all(self, conditions: Sequence[str]) -> str:
        """Conjunction of at least one i1."""
        return self._fold("and i1", conditions)

    def sum(self, values: Sequence[str]) -> str:
        """Sum of i64 values."""
        return self._fold("add i64", values) if values else "0"

    def product(self, values: Sequence[str]) -> str:
        """Product of i64 values."""
        return self._fold("mul i64", values) if values else "1"

    def _fold(self, operation: str, values: Sequence[str]) -> str:
        result = values[0]
        for value in values[1:]:
            result = self.let(f"{operation} {result}, {value}")
        return result


Body = Callable[[list[str]], list[str]]
_TYPES = {"s": ("float", "f32", 4), "d": ("double", "f64", 8)}
# Feature and its register size in bytes; the first that the target has counts.
_REGISTERS = (("+avx512f", 64), ("+avx", 32))


def register_bytes(features: str) -> int:
    """Size of the widest vector registers of a target, from its features as LLVM writes them."""
    enabled = set(features.split(","))
    return next((size for feature, size in _REGISTERS if feature in enabled), 16)


class Tile(Protocol):
    """Some columns of a matrix that are done together.

    Attributes:
        width: how many they are.
        padding: how many of them may lie beyond the last column of the matrix.
    """

    width: int
    padding: int

    def body(self, values: list[str]) -> list[str]:
        """The code of one tile, as `VectorWriter.loop` takes it."""


class VectorWriter(Writer):
    """A function's body on vectors of one element type.

    Args:
        letter: "s" or "d", as in the names of BLAS.
        register: bytes of a vector register.

    Attributes:
        scalar: the element type.
        lanes: elements in a register.
        declarations: of the intrinsics used.
    """

    def __init__(self, letter: str, register: int) -> None:
        super().__init__()
        self.scalar, self._suffix, self._size = _TYPES[letter]
        self.lanes = register // self._size
        self.declarations: set[str] = set()

    def vector(self, lanes: int) -> str:
        """Type of a vector."""
        return f"<{lanes} x {self.scalar}>"

    # -- control ---------------------------------------------------------------------------------------------

    def loop(self, count: str, carried: Sequence[tuple[str, str]], body: Body) -> list[str]:
        """Runs the body `count` times, an i64.

        The test stands at the end, after a first one, which is the form that LLVM makes of loops: code
        written this way needs no optimisation before machine code is made of it.

        Args:
            count: an i64; nothing happens if it is not positive.
            carried: type and first value of each carried value.
            body: given the carried values, writes the body and returns their new values.

        Returns:
            The carried values after the loop.
        """
        self._count += 1
        number, before = self._count, self.block
        left = f"%n{number}"
        values = [f"%c{number}.{m}" for m in range(len(carried))]
        some = self.let(f"icmp sgt i64 {count}, 0")
        self.line(f"  br i1 {some}, label %body{number}, label %done{number}")
        self.label(f"body{number}")
        place = len(self._lines)
        # After these the numbers are unknown: what loop strength reduction would make of the addresses is
        # no better than what is written, but takes half the time of making machine code.
        opaque = [
            self.let(f'call {kind} asm "", "=r,0"({kind} {name})') if kind in ("ptr", "i64") else name
            for (kind, _), name in zip(carried, values, strict=True)
        ]
        results = body(opaque)
        fewer = self.let(f"add nsw i64 {left}, -1")
        more = self.let(f"icmp ne i64 {fewer}, 0")
        last = self.block
        self.line(f"  br i1 {more}, label %body{number}, label %done{number}")
        phis = [f"  {left} = phi i64 [ {count}, %{before} ], [ {fewer}, %{last} ]"]
        exits = []
        for (kind, first), name, new in zip(carried, values, results, strict=True):
            phis.append(f"  {name} = phi {kind} [ {first}, %{before} ], [ {new}, %{last} ]")
            exits.append(f"  {name}.end = phi {kind} [ {first}, %{before} ], [ {new}, %{last} ]")
        self._lines[place:place] = phis
        self.label(f"done{number}")
        self._lines += exits
        return [f"{name}.end" for name in values]

    def columns(self, tiles: Sequence[Tile], carried: Sequence[tuple[str, str]]) -> None:
        """Goes over the columns of a matrix: with tiles of the first kind while they fit, then with the next.

        Args:
            tiles: the kinds; the last ones do all that the others leave.
            carried: as in `loop`; the last value is the number of columns from there on, an i64.
        """
        for tile in tiles:
            padded = self.let(f"add nsw i64 {carried[-1][1]}, {tile.padding}")
            values = self.loop(self.let(f"udiv i64 {padded}, {tile.width}"), carried, tile.body)
            carried = [(kind, value) for (kind, _), value in zip(carried, values, strict=True)]

    def when(self, condition: str, kind: str, count: int, body: Callable[[], list[str]]) -> list[str]:
        """Values that a body computes if a condition, an i1, holds; zeros otherwise.

        Args:
            condition: the i1.
            kind: type of each value.
            count: number of values.
            body: writes the code and returns its values.
        """
        self._count += 1
        number, before = self._count, self.block
        self.line(f"  br i1 {condition}, label %then{number}, label %end{number}")
        self.label(f"then{number}")
        values = body()
        last = self.block
        self.line(f"  br label %end{number}")
        self.label(f"end{number}")
        zero = "zeroinitializer"
        return [self.let(f"phi {kind} [ {zero}, %{before} ], [ {values[i]}, %{last} ]") for i in range(count)]

    # -- memory ----------------------------------------------------------------------------------------------

    def element(self, base: str, offset: str | int) -> str:
        """Address of an element."""
        return (
            base if offset in (0, "0") else self.let(f"getelementptr {self.scalar}, ptr {base}, i64 {offset}")
        )

    def read(self, address: str, lanes: int) -> str:
        """A vector from memory."""
        return self.let(f"load {self.vector(lanes)}, ptr {address}, align {self._size}")

    def write(self, value: str, address: str, lanes: int) -> None:
        self.line(f"  store {self.vector(lanes)} {value}, ptr {address}, align {self._size}")

    def read_masked(self, address: str, mask: str, lanes: int) -> str:
        """A vector whose other elements are not read, and are zero."""
        kind = self.vector(lanes)
        name = f"@llvm.masked.load.v{lanes}{self._suffix}.p0"
        self.declarations.add(f"declare {kind} {name}(ptr, i32, <{lanes} x i1>, {kind})")
        arguments = f"ptr {address}, i32 {self._size}, <{lanes} x i1> {mask}, {kind} zeroinitializer"
        return self.let(f"call {kind} {name}({arguments})")

    def write_masked(self, value: str, address: str, mask: str, lanes: int) -> None:
        kind = self.vector(lanes)
        name = f"@llvm.masked.store.v{lanes}{self._suffix}.p0"
        self.declarations.add(f"declare void {name}({kind}, ptr, i32, <{lanes} x i1>)")
        self.line(
            f"  call void {name}({kind} {value}, ptr {address}, i32 {self._size}, <{lanes} x i1> {mask})"
        )

    # -- values ----------------------------------------------------------------------------------------------

    def minimum(self, a: str, b: str) -> str:
        """The smaller of two signed i64."""
        less = self.let(f"icmp slt i64 {a}, {b}")
        return self.let(f"select i1 {less}, i64 {a}, i64 {b}")

    def first_lanes(self, count: str, lanes: int) -> str:
        """Mask of the first `count` lanes, an i64; all of them if there are more."""
        kind = f"<{lanes} x i64>"
        one = self.let(f"insertelement {kind} poison, i64 {count}, i64 0")
        every = self.let(f"shufflevector {kind} {one}, {kind} poison, <{lanes} x i32> zeroinitializer")
        numbers = ", ".join(f"i64 {lane}" for lane in range(lanes))
        return self.let(f"icmp sgt {kind} {every}, <{numbers}>")

    def broadcast(self, address: str, lanes: int) -> str:
        """A vector of equal elements, from one in memory."""
        kind = self.vector(lanes)
        value = self.let(f"load {self.scalar}, ptr {address}, align {self._size}")
        one = self.let(f"insertelement {kind} poison, {self.scalar} {value}, i64 0")
        return self.let(f"shufflevector {kind} {one}, {kind} poison, <{lanes} x i32> zeroinitializer")

    def gather(self, addresses: Sequence[str]) -> str:
        """A vector of elements that stand anywhere in memory."""
        kind, vector = self.vector(len(addresses)), "poison"
        for lane, address in enumerate(addresses):
            value = self.let(f"load {self.scalar}, ptr {address}, align {self._size}")
            vector = self.let(f"insertelement {kind} {vector}, {self.scalar} {value}, i64 {lane}")
        return vector

    def multiply_add(self, a: str, b: str, total: str, lanes: int) -> str:
        """`a * b + total`, in one operation where the target has it."""
        kind = self.vector(lanes)
        name = f"@llvm.fmuladd.v{lanes}{self._suffix}"
        self.declarations.add(f"declare {kind} {name}({kind}, {kind}, {kind})")
        return self.let(f"call {kind} {name}({kind} {a}, {kind} {b}, {kind} {total})")

    def add(self, a: str, b: str, lanes: int) -> str:
        return self.let(f"fadd {self.vector(lanes)} {a}, {b}")

    def add_all(self, values: Sequence[str], lanes: int) -> str:
        """The sum of vectors, in pairs."""
        level = list(values)
        while len(level) > 1:
            pairs = [self.add(a, b, lanes) for a, b in zip(level[::2], level[1::2], strict=False)]
            level = pairs + level[len(pairs) * 2 :]
        return level[0]

    def row_sums(self, vectors: Sequence[str], lanes: int) -> str:
        """A vector whose element r is the sum of the elements of vector r; at most as many vectors as lanes.

        Each step adds the two halves of every group of lanes, and packs two vectors into one.
        """
        level, group = list(vectors), lanes
        while group > 1:
            half, width = group // 2, lanes * min(len(level), 2)
            low = [lane for lane in range(width) if lane % group < half]
            high = [lane + half for lane in low]
            firsts, seconds = (level[::2], level[1::2]) if len(level) > 1 else (level, level)
            level = [
                self.add(self.shuffle(a, b, low, lanes), self.shuffle(a, b, high, lanes), len(low))
                for a, b in zip(firsts, seconds, strict=True)
            ]
            group, lanes = half, len(low)
        return level[0]

    def transposed(self, vectors: Sequence[str]) -> list[str]:
        """The columns of a square of as many vectors as they have lanes, a power of two."""
        rows, lanes = list(vectors), len(vectors)
        step = 1
        while step < lanes:
            low = [lane if not lane & step else lanes + lane - step for lane in range(lanes)]
            high = [lane + step if not lane & step else lanes + lane for lane in range(lanes)]
            for i in (i for i in range(lanes) if not i & step):
                a, b = rows[i], rows[i + step]
                rows[i], rows[i + step] = self.shuffle(a, b, low, lanes), self.shuffle(a, b, high, lanes)
            step *= 2
        return rows

    def shuffle(self, a: str, b: str, order: Sequence[int], lanes: int) -> str:
        kind = self.vector(lanes)
        positions = ", ".join(f"i32 {lane}" for lane in order)
        return self.let(f"shufflevector {kind} {a}, {kind} {b}, <{len(order)} x i32> <{positions}>")
