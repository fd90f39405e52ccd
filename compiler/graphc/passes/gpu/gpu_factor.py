# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Factors, systems, inverses and determinants of batches of matrices, one block of threads a matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from graphc.ir import build
from graphc.ir.value import as_index, larger, literal, smaller
from graphc.library.linalg import by_block
from graphc.library.linalg.solve import GENERAL, POSITIVE
from graphc.lowering.calls import product
from graphc.lowering.carried import carry, span
from graphc.lowering.complex_functions import Real
from graphc.lowering.partial_reductions import nest
from graphc.lowering.scalar_builder import Scalar, ScalarBuilder
from graphc.passes import Pass
from graphc.passes.gpu import _notation
from graphc.passes.gpu._host import LibraryCall, calls_of
from graphc.passes.gpu._kernel import GRID, Kernel, allocate, blocks_for
from graphc.passes.gpu._notation import (
    WARP,
    barrier,
    block_id,
    cells,
    grid_dim,
    on_first_thread,
    split,
    true,
)
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# Sides of matrices that one warp works on in shared memory, and threads of larger ones.
SMALL, _THREADS = WARP, 256
_NAN = float("nan")
# Of the errors of the library's `solve`, that a matrix is not positive definite.
NOT_POSITIVE = 2
_OF_SYSTEMS = ("solve", "inv", "det", "slogdet")


class Matrix:
    """A matrix in memory, whose elements are `matrix[i, j]`.

    Numbers are those of a `ScalarBuilder`, which lets a product and a sum be rounded once.

    Args:
        buffer: of a real element type.
        dtype: of its numbers.
        before: the indices before its own.
    """

    def __init__(self, buffer: ir.Value, dtype: np.dtype, before: Sequence[ir.Value] = ()) -> None:
        self._buffer, self._before, self._dtype = buffer, before, dtype

    def __getitem__(self, place: tuple[ir.Value, ir.Value]) -> Real:
        return self.number(self._buffer[(*self._before, *place)])

    def number(self, value: ir.Value | float) -> Real:
        """A number of the matrix's dtype, or a constant."""
        b, dtype = ScalarBuilder(ir), self._dtype
        return Real(b, Scalar(value, dtype) if isinstance(value, ir.Value) else b.const(value, dtype))

    def __setitem__(self, place: tuple[ir.Value, ir.Value], number: Real | ir.Value) -> None:
        value = number.value if isinstance(number, Real) else number
        self._buffer[(*self._before, *place)] = value


def _write(result: Matrix, n: ir.Value, k: ir.Value, fine: ir.Value, value: Matrix, first: ir.Value) -> None:
    """The columns of a solution, or NaN."""
    with cells(n, k) as (i, c):
        result[i, c] = build.select(fine, value[i, c + first].value, _NAN)


def _in_triangle(i: ir.Value, j: ir.Value, lower: bool) -> tuple[ir.Value, ir.Value]:
    """Place of an element of a symmetric matrix in the triangle that is said."""
    high, low = larger(i, j), smaller(i, j)
    return (high, low) if lower else (low, high)


# -- factors and systems ------------------------------------------------------------------------------------


class Work:
    """Work of the threads of a block on a matrix, whose right sides are beside it in the memory to work in.

    Args:
        call: for a batch of them.
    """

    def __init__(self, call: LibraryCall) -> None:
        self._call, self._dtype = call, call.dtypes[0]
        self._buffers = call.buffers[: len(call.kernel.types)]

    @property
    def sides(self) -> tuple[ir.Value, ir.Value]:
        """Rows and columns of the memory to work in, at the insertion point."""
        *_, n, k = build.dims(self._buffers[1])
        return n, n + k

    def write(self, indices: list[ir.Value], work: Matrix) -> ir.Value:
        """Writes it.

        Args:
            indices: of the matrix in the batch.
            work: memory to work in.

        Returns:
            True if the matrix is fine; all threads have the same answer.
        """
        raise NotImplementedError

    def _is(self, name: str) -> bool:
        """One of the call's flags."""
        return bool(self._call.attribute(name))

    def _matrices(self, indices: list[ir.Value]) -> list[Matrix]:
        """Operands and results of the call, of a place in the batch."""
        return [Matrix(x, self._dtype, indices) for x in self._buffers]


class Cholesky(Work):
    """The factor of a matrix."""

    @property
    def sides(self) -> tuple[ir.Value, ir.Value]:
        n = build.dims(self._buffers[0])[-1]
        return n, n

    def write(self, indices: list[ir.Value], work: Matrix) -> ir.Value:
        (source, result), (n, _), lower = self._matrices(indices), self.sides, self._is("lower")
        with cells(n, n) as (i, j):
            work[i, j] = source[(i, j) if lower else (j, i)]
        barrier()
        fine = by_block.cholesky(_notation, work, n)
        with cells(n, n) as (i, j):
            inside = j <= i if lower else i <= j
            value = build.select(inside, work[(i, j) if lower else (j, i)].value, 0.0)
            result[i, j] = build.select(fine, value, _NAN)
        return fine


class Triangular(Work):
    """The solution of a triangular system; threads have elements of what is left."""

    @property
    def sides(self) -> tuple[ir.Value, ir.Value]:
        *_, n, k = build.dims(self._buffers[1])
        return n, k

    def write(self, indices: list[ir.Value], work: Matrix) -> ir.Value:
        (a, b, result), (n, k), fine = self._matrices(indices), self.sides, true()
        across, unit = self._is("trans"), self._is("unit_diagonal")
        if not unit:
            (fine,) = carry(n, [fine], lambda i, carried: [carried[0] & a[i, i].differs(0.0).value])
        with cells(n, k) as (i, c):
            work[i, c] = b[i, c]
        barrier()
        forward = self._is("lower") != across
        by_block.substitute(_notation, a, work, n, k, 0, forward=forward, transposed=across, unit=unit)
        _write(result, n, k, fine, work, as_index(0))
        return fine


class Positive(Work):
    """The solution of a system by Cholesky's factor."""

    def write(self, indices: list[ir.Value], work: Matrix) -> ir.Value:
        a, b, result = self._matrices(indices)
        *_, n, k = build.dims(self._buffers[1])
        with cells(n, n) as (i, j):
            work[i, j] = a[_in_triangle(i, j, self._is("lower"))]
        with cells(n, k) as (i, c):
            work[i, n + c] = b[i, c]
        barrier()
        fine = by_block.cholesky(_notation, work, n)
        by_block.substitute(_notation, work, work, n, k, n, forward=True)
        by_block.substitute(_notation, work, work, n, k, n, forward=False, transposed=True)
        _write(result, n, k, fine, work, n)
        return fine


class Elimination(Work):
    """Elimination with row exchanges in a matrix, the right sides after its rows."""

    def __init__(self, call: LibraryCall) -> None:
        super().__init__(call)
        self._name = call.kernel.name
        is_solve = self._name == "solve"
        self._is_system, self._is_log = self._name in ("solve", "inv"), self._name == "slogdet"
        self._is_half = is_solve and call.attribute("assume") != GENERAL
        self._lower = is_solve and bool(call.attribute("lower"))
        self._transposed = is_solve and not self._is_half and bool(call.attribute("transposed"))

    @property
    def sides(self) -> tuple[ir.Value, ir.Value]:
        n = build.dims(self._buffers[0])[-1]
        if not self._is_system:
            return n, n
        return n, n + (n if self._name == "inv" else build.dims(self._buffers[1])[-1])

    def write(self, indices: list[ir.Value], work: Matrix) -> ir.Value:
        (n, width), matrices = self.sides, self._matrices(indices)
        k = width - n
        with cells(n, n) as (i, j):
            work[i, j] = matrices[0][self._place(i, j)]
        if self._is_system:
            with cells(n, k) as (i, c):
                if self._name == "inv":
                    work[i, n + c] = build.select(i.equals(c), work.number(1.0).value, 0.0)
                else:
                    work[i, n + c] = matrices[1][i, c]
        barrier()
        fine, sign, value = by_block.eliminate(_notation, work, n, width, self._is_log)
        if not self._is_system:
            with on_first_thread():
                values = [sign, value] if self._is_log else [value]
                for number, buffer in zip(values, self._buffers[1:], strict=True):
                    buffer[indices] = number
            return true()
        by_block.substitute(_notation, work, work, n, k, n, forward=False)
        _write(matrices[-1], n, k, fine, work, n)
        return fine

    def _place(self, i: ir.Value, j: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Position of an element: of a symmetric matrix in the triangle that is said."""
        if not self._is_half:
            return (j, i) if self._transposed else (i, j)
        return _in_triangle(i, j, self._lower)


# -- kernels ------------------------------------------------------------------------------------------------


class MatrixKernels:
    """Two kernels of a call for a batch of matrices: one warp a matrix, for sides up to 32, in shared memory,
    and a block a matrix for larger ones, in memory of the device. The sizes say which of them is launched.

    Args:
        call: its operation is to be erased afterwards. The first buffer has the matrices.
        work: writes what is done with a matrix.
        columns: the most columns of the memory to work in for small matrices.
        checked: whether it is an error if a matrix is not fine.
        error: which one, by its number among those of the library's kernel.
    """

    def __init__(
        self, call: LibraryCall, work: Work, columns: int = SMALL, *, checked: bool, error: int = 1
    ) -> None:
        self._call, self._work, self._columns, self._error = call, work, columns, error
        self._small = Kernel(call.op, f"{call.kernel.name}_small")
        with self._small.host():
            *self._sizes, _, _ = build.dims(call.buffers[0])
            self._count = product(self._sizes)
            rows, wide = work.sides
            self._is_small = (rows <= SMALL) & (wide <= columns)
            many = build.select(self._is_small, 0, self._count)
            self._memory = allocate([many, rows, wide], ir.MemRefType(call.buffers[0].type).element_type)
            self._status = allocate([self._count], ir.IntegerType.get_signless(64)) if checked else None
            self._threads = larger(blocks_for(rows, WARP, _THREADS // WARP), 1) * WARP

    def lower(self) -> None:
        """The kernels and their launches; what used the call's status reads that of all matrices."""
        large = Kernel(self._call.op, self._call.kernel.name)
        kind = ir.MemRefType(self._memory.type).element_type
        # One element more in a row: threads that read a column do not meet in one bank.
        shared = self._small.shared([SMALL, self._columns + 1], kind)
        self._write(self._small, lambda number: Matrix(shared, self._call.dtypes[0]))
        self._write(large, lambda number: Matrix(self._memory, self._call.dtypes[0], [number]))
        with self._small.host():
            grid = smaller(self._count, GRID)
            grids = build.select(self._is_small, grid, 0), build.select(self._is_small, 0, grid)
        self._small.launch([grids[0]], [WARP])
        large.launch([grids[1]], [self._threads])
        op = self._call.op
        with ir.InsertionPoint(op), op.location:
            status = build.const_i64(0) if self._status is None else largest_of(self._status)
        op.results[0].replace_all_uses_with(status)

    def _write(self, kernel: Kernel, memory: Callable[[ir.Value], Matrix]) -> None:
        with kernel.body(), span(self._count, block_id(), grid_dim()) as number:
            fine = self._work.write(split(number, self._sizes), memory(number))
            if self._status is not None:
                with on_first_thread():
                    self._status[number] = build.select(fine, build.const_i64(0), self._error)
            barrier()


def largest_of(numbers: ir.Value) -> ir.Value:
    """The largest of an array of numbers, on the host; 0 if there are none."""
    kind, rank = ir.MemRefType(numbers.type).element_type, ir.MemRefType(numbers.type).rank
    if not rank:
        return numbers[()]
    found = allocate([], kind)
    build.fill_buffer(literal(0, kind), found)
    nest([(numbers, range(rank))], [(found, [])], [True] * rank, lambda both: [larger(*both)])
    return found[()]


@record()
class GpuFactor(Pass):
    """Makes kernels of calls for factors, systems, inverses and determinants of float32 and float64.

    The factors are Cholesky's; systems are general or triangular.

    Where no side is longer than 32, one warp has a matrix, in shared memory; otherwise a block of up to 256
    threads, in memory of the device. Sizes say which of the two kernels is launched. A factor is made column
    by column, and a thread has rows of what is left; a triangular system is solved row by row, and threads
    have elements of what is left. Other systems are solved by elimination with row exchanges, the right sides
    beside the matrix, which may be of twice as many columns then; so are those that are said to be symmetric,
    of which one triangle is read, and those that are said to be positive definite by Cholesky's factor.
    Matrices that have no factor, or are singular, are noted for each matrix of the batch;
    if that is an error, the host reads whether there is one.

    The algorithms are those of `library/linalg/by_block.py`.
    """

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for call in calls_of(module, ("cholesky", "solve_triangular", *_OF_SYSTEMS)):
            name = call.kernel.name
            if call.dtypes[0].kind != "f" or call.dtypes[0].itemsize < 4:
                continue
            is_positive = name == "solve" and call.attribute("assume") == POSITIVE
            kind = Positive if is_positive else _OTHERS.get(name, Elimination)
            columns = SMALL if name in _OTHERS else 2 * SMALL
            error = NOT_POSITIVE if is_positive else 1
            MatrixKernels(call, kind(call), columns, checked=is_checked(call), error=error).lower()
            call.erase()
            self.count("calls")


_OTHERS: dict[str, type[Work]] = {"cholesky": Cholesky, "solve_triangular": Triangular}


def is_checked(call: LibraryCall) -> bool:
    """True if a matrix that has no factor, or is singular, is an error."""
    if call.kernel.name in ("det", "slogdet"):
        return False
    if "unit_diagonal" in call.kernel.keywords and call.attribute("unit_diagonal"):
        return False
    return call.kernel.may_fail
