# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Factors and systems of batches of matrices, by a block of threads for each or by the vendor's libraries;
what else these compute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial

import numpy as np

from graphc.ir import build
from graphc.ir.helpers import callee_of
from graphc.ir.value import all_of, as_index, flag, larger, literal, smaller
from graphc.library.helpers import LibraryAsked, LibraryFound
from graphc.library.linalg import by_block
from graphc.library.linalg.solve import GENERAL, POSITIVE
from graphc.library.linalg.symmetric import NO_CONVERGENCE
from graphc.lowering.calls import call, product, write_to
from graphc.lowering.carried import carry, either, span
from graphc.lowering.complex_functions import Real
from graphc.lowering.partial_reductions import nest, position
from graphc.lowering.random import BUFFERS, LIBRARY, OPERATION
from graphc.lowering.scalar_builder import Scalar, ScalarBuilder
from graphc.passes import Pass
from graphc.passes.buffer.kernel_pointers import is_proven_contiguous
from graphc.passes.gpu import _notation
from graphc.passes.gpu._host import LibraryCall, calls_of, host_operations
from graphc.passes.gpu._kernel import GRID, H200, Kernel, allocate, blocks_for
from graphc.passes.gpu._notation import WARP, barrier, block_id, cells, grid_dim, on_first_thread, split
from graphc.passes.gpu.gpu_placement import TRANSFORMS
from graphc_dialects._mlir import ir
from graphc_dialects.signatures import SIGNATURES
from graphc_runtime.record import record

# Sides of matrices that one warp works on in shared memory, and threads of larger ones.
SMALL, _THREADS = WARP, 256
_NAN = float("nan")


class Batch:
    """Matrices of a call, and what is asked of libraries about all of them.

    Args:
        op: the call.
        source: buffer that has the matrices, or other arrays.
        core: how many dimensions these have; those of an array are numbered from 0 after the batch's.
    """

    def __init__(self, op: ir.Operation, source: ir.Value, core: int = 2) -> None:
        self._op = op
        sizes = build.dims(source)
        self.sizes, self.rows = sizes[: len(sizes) - core], sizes[-core]
        self.kind = ir.MemRefType(source.type).element_type
        self.count = product(self.sizes)

    def array(self, *sizes: ir.Value | int, kind: ir.Type | None = None) -> ir.Value:
        """A new array with some sizes for each matrix."""
        return allocate([*self.sizes, *sizes], self.kind if kind is None else kind)

    def fill(
        self,
        target: ir.Value,
        inputs: Sequence[tuple[ir.Value, Sequence[int]]],
        body: Callable[[list[ir.Value]], ir.Value],
    ) -> None:
        """Computes each element of an array, of those of others with their dimensions; `at` says where."""
        batch, rank = len(self.sizes), ir.MemRefType(target.type).rank
        operands = [(x, [*range(batch), *(batch + axis for axis in axes)]) for x, axes in inputs]
        nest(operands, [(target, range(rank))], [False] * rank, lambda given: [body(given[:-1])])

    def at(self, axis: int) -> ir.Value:
        """Place of an element along a dimension, in a body."""
        return position(len(self.sizes) + axis)

    def copy(self, source: ir.Value, *, across: bool = False) -> ir.Value:
        """A copy of an array, its elements side by side; of square matrices, with `across`, by columns, as
        libraries read them: our lower triangle is the library's then.
        """
        sizes = [self.rows] * 2 if across else build.dims(source)[len(self.sizes) :]
        made = self.array(*sizes)
        self.fill(made, [(source, (1, 0) if across else range(len(sizes)))], lambda given: given[0])
        return made

    def combined(
        self,
        terms: ir.Value,
        target: ir.Value,
        first: ir.Value,
        combine: Callable[[ir.Value, ir.Value], ir.Value],
    ) -> None:
        """Writes what the terms of each matrix come to."""
        build.fill_buffer(first, target)
        axes = list(range(len(self.sizes)))
        reduced = [*(False for _ in axes), True]
        nest([(terms, [*axes, len(axes)])], [(target, axes)], reduced, lambda x: [combine(x[1], x[0])])

    def status(self, infos: ir.Value, error: int) -> ir.Value:
        """0, or the number of an error if a library has found something wrong with a matrix."""
        wrong = self.array(kind=ir.IntegerType.get_signless(64))
        code = build.const_i64(error)
        self.fill(wrong, [(infos, [])], lambda given: build.select(given[0].equals(0), 0, code))
        return _largest_of(wrong)

    def words(self, *sizes: ir.Value) -> ir.Value:
        """Words of the library for each matrix, such as a status: 0 if it is fine."""
        return self.array(*sizes, kind=ir.IntegerType.get_signless(32))

    def ask(
        self,
        routine: str,
        arrays: Sequence[ir.Value],
        numbers: Sequence[ir.Value | int],
        count: ir.Value | None = None,
    ) -> None:
        """Asks a library, of each array of the batch; see `graphc_runtime.cuda.libraries.ROUTINES`."""
        given = [*map(write_to, arrays), *map(as_index, numbers)]
        call(self._op, LibraryAsked(routine), [*given, self.count if count is None else count])


def _largest_of(numbers: ir.Value) -> ir.Value:
    """The largest of an array of numbers, on the host; 0 if there are none."""
    kind, rank = ir.MemRefType(numbers.type).element_type, ir.MemRefType(numbers.type).rank
    if not rank:
        return numbers[()]
    found = allocate([], kind)
    build.fill_buffer(literal(0, kind), found)
    nest([(numbers, range(rank))], [(found, [])], [True] * rank, lambda both: [larger(*both)])
    return found[()]


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


def _in_triangle(i: ir.Value, j: ir.Value, lower: bool) -> tuple[ir.Value, ir.Value]:
    """Place of an element of a symmetric matrix in the triangle that is said."""
    high, low = larger(i, j), smaller(i, j)
    return (high, low) if lower else (low, high)


# -- factors and systems ------------------------------------------------------------------------------------


class Work:
    """A call for factors or systems of a batch of matrices, which is the first buffer's.

    There are two kernels: one warp has a matrix with sides up to 32, in shared memory; a block has a larger
    one, in memory of the device. The sizes say which of them is launched. Or a library is asked.
    """

    libraries: Sequence[str] = ("cusolver",)
    # That a matrix is singular, by its number among the errors of the library's kernel.
    error = 1
    # The most columns of the memory to work in for small matrices.
    columns = SMALL
    # Whether the second operand has right sides, of which there may be none.
    has_right_sides = False

    def __init__(self, of: LibraryCall) -> None:
        self.op, self.name, self._dtype = of, of.kernel.name, of.dtypes[0]
        self._buffers = of.buffers[: len(of.kernel.types)]
        self.source, self.result = self._buffers[0], self._buffers[-1]

    def _is(self, name: str) -> bool:
        """One of the call's flags."""
        return bool(self.op.attribute(name))

    @property
    def is_checked(self) -> bool:
        """True if a matrix that has no factor, or is singular, is an error."""
        if self.name in ("det", "slogdet"):
            return False
        return self.op.kernel.may_fail and not (
            "unit_diagonal" in self.op.kernel.keywords and self._is("unit_diagonal")
        )

    # -- kernels -------------------------------------------------------------------------------------------

    @property
    def sides(self) -> tuple[ir.Value, ir.Value]:
        """Rows and columns of the memory to work in, at the insertion point: the right sides are beside the
        matrix.
        """
        *_, n, k = build.dims(self._buffers[1])
        return n, n + k

    def write(self, indices: list[ir.Value], work: Matrix) -> ir.Value:
        """Writes what the threads of a block do with a matrix.

        Args:
            indices: of the matrix in the batch.
            work: memory to work in.

        Returns:
            True if the matrix is fine; all threads have the same answer.
        """
        raise NotImplementedError

    def _matrices(self, indices: list[ir.Value]) -> list[Matrix]:
        """Operands and results of the call, of a place in the batch."""
        return [Matrix(x, self._dtype, indices) for x in self._buffers]

    def in_kernels(self) -> None:
        """The kernels and their launches; what used the call's status reads that of all matrices."""
        op, kind = self.op.op, ir.MemRefType(self.source.type).element_type
        small = Kernel(op, f"{self.name}_small")
        with small.host():
            *sizes, _, _ = build.dims(self.source)
            count = product(sizes)
            rows, wide = self.sides
            is_small = (rows <= SMALL) & (wide <= self.columns)
            memory = allocate([build.select(is_small, 0, count), rows, wide], kind)
            word = ir.IntegerType.get_signless(64)
            status = allocate([count], word) if self.is_checked else None
            threads = larger(blocks_for(rows, WARP, _THREADS // WARP), 1) * WARP
        large = Kernel(op, self.name)
        # One element more in a row: threads that read a column do not meet in one bank.
        shared = small.shared([SMALL, self.columns + 1], kind)
        for kernel in (small, large):
            with kernel.body(), span(count, block_id(), grid_dim()) as number:
                place = (shared, self._dtype) if kernel is small else (memory, self._dtype, [number])
                fine = self.write(split(number, sizes), Matrix(*place))
                if status is not None:
                    with on_first_thread():
                        status[number] = build.select(fine, build.const_i64(0), self.error)
                barrier()
        with small.host():
            grid = smaller(count, GRID)
            grids = build.select(is_small, grid, 0), build.select(is_small, 0, grid)
        small.launch([grids[0]], [WARP])
        large.launch([grids[1]], [threads])
        with ir.InsertionPoint(op), op.location:
            found = build.const_i64(0) if status is None else _largest_of(status)
        op.results[0].replace_all_uses_with(found)

    # -- a library -----------------------------------------------------------------------------------------

    @cached_property
    def batch(self) -> Batch:
        return Batch(self.op.op, self.source)

    @property
    def n(self) -> ir.Value:
        """Rows of a matrix."""
        return self.batch.rows

    def conditions(self) -> list[ir.Value]:
        """Flags: libraries take less time than kernels."""
        of, n, count = H200, self.n, self.batch.count
        requests = count * (n // of.request_rows + of.request)
        kernels = (count // of.matrices + 1) * (n * of.row + n * n // of.cubes * n)
        large = [n > SMALL, requests < kernels]
        return [*large, build.dims(self.op.buffers[1])[-1] > 0] if self.has_right_sides else large

    def lower(self) -> list[ir.Value]:
        """Asks; gives the status of the call."""
        infos = self.ask()
        if infos is None or not self.is_checked:
            return [build.const_i64(0)]
        return [self.batch.status(infos, self.error)]

    def ask(self) -> ir.Value | None:
        """Writes the results; gives what a library has said of the matrices, None if nothing can be wrong."""
        raise NotImplementedError

    def _solved(self, right: ir.Value, infos: ir.Value, *, across: bool = False) -> None:
        """Writes solutions that lie in an array, or NaN; with `across`, by columns."""
        self.batch.fill(
            self.result,
            [(right, (1, 0) if across else (0, 1)), (infos, [])],
            lambda given: build.select(given[1].equals(0), given[0], _NAN),
        )

    def _triangular(
        self, a: ir.Value, right: ir.Value, *, upper: bool, across: bool, unit: bool = False
    ) -> None:
        """Solves X op(A) = B in place of B, for matrices as the library sees them: our transposes."""
        k, n, ask = build.dims(right)[-1], self.n, partial(self.batch.ask, arrays=[a, right])
        # A column is what it is, from the left.
        one: list[ir.Value | int] = [int(upper), int(not across), int(unit), n, n, 1]
        several: list[ir.Value | int] = [1, int(upper), int(across), int(unit), k, n, n, k, n]
        either(k.equals(1), [], lambda: ask("trsv", numbers=one), lambda: ask("trsm", numbers=several))


def _write(result: Matrix, n: ir.Value, k: ir.Value, fine: ir.Value, value: Matrix, first: ir.Value) -> None:
    """The columns of a solution, or NaN."""
    with cells(n, k) as (i, c):
        result[i, c] = build.select(fine, value[i, c + first].value, _NAN)


class Cholesky(Work):
    """Factors. The library takes half as long for its lower triangle as for the upper one: our lower ones are
    turned round, upper ones are lower ones by columns.
    """

    @property
    def sides(self) -> tuple[ir.Value, ir.Value]:
        n = build.dims(self.source)[-1]
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

    def ask(self) -> ir.Value | None:
        lower, batch, n = self._is("lower"), self.batch, self.n
        work, infos = batch.copy(self.source, across=lower), batch.words()
        batch.ask("potrf", [work, infos], [0, n, n])

        def element(given: list[ir.Value]) -> ir.Value:
            i, j = batch.at(0), batch.at(1)
            inside = build.select(j <= i if lower else i <= j, given[0], 0.0)
            return build.select(given[1].equals(0), inside, _NAN)

        batch.fill(self.result, [(work, (1, 0) if lower else (0, 1)), (infos, [])], element)
        return infos


class Triangular(Work):
    """Triangular systems: threads have elements of what is left; by a library X^T op(A)^T = B^T, in place."""

    libraries, has_right_sides = ("cublas",), True

    @property
    def sides(self) -> tuple[ir.Value, ir.Value]:
        *_, n, k = build.dims(self._buffers[1])
        return n, k

    def write(self, indices: list[ir.Value], work: Matrix) -> ir.Value:
        (a, b, result), (n, k), fine = self._matrices(indices), self.sides, flag(True)
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

    def ask(self) -> ir.Value | None:
        batch, source, unit = self.batch, self.source, self._is("unit_diagonal")
        a = source if is_proven_contiguous(source) else batch.copy(source)
        right = batch.copy(self.op.buffers[1])
        self._triangular(a, right, upper=self._is("lower"), across=self._is("trans"), unit=unit)
        if unit:
            batch.fill(self.result, [(right, (0, 1))], lambda given: given[0])
            return None
        infos, one = batch.words(), literal(1, ir.IntegerType.get_signless(32))
        zeros = batch.words(self.n)
        batch.fill(zeros, [(a, (0, 0))], lambda given: build.select(given[0].equals(0.0), one, 0))
        batch.combined(zeros, infos, literal(0, one.type), lambda a, b: a | b)
        self._solved(right, infos)
        return infos


class Positive(Work):
    """Systems by a Cholesky factor: two triangular ones. That it does not exist is the second error."""

    libraries, has_right_sides = ("cusolver", "cublas"), True
    error, columns = 2, 2 * SMALL

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

    def ask(self) -> ir.Value | None:
        batch, n = self.batch, self.n
        work, infos = batch.copy(self.source, across=self._is("lower")), batch.words()
        right = batch.copy(self.op.buffers[1])
        batch.ask("potrf", [work, infos], [0, n, n])
        # A = L L^T by columns: X^T L L^T = B^T.
        for across in (True, False):
            self._triangular(work, right, upper=False, across=across)
        self._solved(right, infos)
        return infos


class General(Work):
    """Systems, inverses and determinants by elimination with row exchanges."""

    columns = 2 * SMALL

    def __init__(self, of: LibraryCall) -> None:
        super().__init__(of)
        is_solve = self._is_solve = self.has_right_sides = self.name == "solve"
        self._is_system, self._is_log = self.name in ("solve", "inv"), self.name == "slogdet"
        # Of symmetric ones one triangle is read.
        self._is_half = is_solve and of.attribute("assume") != GENERAL
        self._lower = is_solve and self._is("lower")
        self._transposed = is_solve and not self._is_half and self._is("transposed")

    @property
    def sides(self) -> tuple[ir.Value, ir.Value]:
        n = build.dims(self.source)[-1]
        if not self._is_system:
            return n, n
        return n, n + (build.dims(self._buffers[1])[-1] if self._is_solve else n)

    def write(self, indices: list[ir.Value], work: Matrix) -> ir.Value:
        (n, width), matrices = self.sides, self._matrices(indices)
        k = width - n
        with cells(n, n) as (i, j):
            place = (j, i) if self._transposed else (i, j)
            work[i, j] = matrices[0][_in_triangle(i, j, self._lower) if self._is_half else place]
        if self._is_system:
            with cells(n, k) as (i, c):
                if self._is_solve:
                    work[i, n + c] = matrices[1][i, c]
                else:
                    work[i, n + c] = build.select(i.equals(c), work.number(1.0).value, 0.0)
        barrier()
        fine, sign, value = by_block.eliminate(_notation, work, n, width, self._is_log)
        if not self._is_system:
            with on_first_thread():
                values = [sign, value] if self._is_log else [value]
                for number, buffer in zip(values, self._buffers[1:], strict=True):
                    buffer[indices] = number
            return flag(True)
        by_block.substitute(_notation, work, work, n, k, n, forward=False)
        _write(matrices[-1], n, k, fine, work, n)
        return fine

    def ask(self) -> ir.Value | None:
        batch, n = self.batch, self.n
        work, infos, pivots = self._matrix(), batch.words(), batch.words(n)
        batch.ask("getrf", [work, pivots, infos], [n, n, n])
        if not self._is_system:
            self._determinant(work, pivots, infos)
            return None
        if self._is_solve:
            sides = self.op.buffers[1]
            k = build.dims(sides)[-1]
            right = batch.array(k, n)
            batch.fill(right, [(sides, (1, 0))], lambda given: given[0])
        else:
            k, right, one = n, batch.array(n, n), literal(1.0, batch.kind)
            batch.fill(right, [], lambda given: build.select(batch.at(0).equals(batch.at(1)), one, 0.0))
        across, others = self._is_solve and not self._transposed, batch.words()
        batch.ask("getrs", [work, pivots, right, others], [int(across), n, k, n, n])
        # The inverse of a transpose, by columns, is the inverse.
        self._solved(right, infos, across=self._is_solve)
        return infos

    def _matrix(self) -> ir.Value:
        """The matrices as they are; of a symmetric one both triangles are the one that is said."""
        if not self._is_half:
            return self.batch.copy(self.source)
        batch = self.batch
        made = batch.array(self.n, self.n)

        def element(given: list[ir.Value]) -> ir.Value:
            i, j = batch.at(0), batch.at(1)
            return build.select(j <= i if self._lower else i <= j, given[0], given[1])

        batch.fill(made, [(self.source, (0, 1)), (self.source, (1, 0))], element)
        return made

    def _determinant(self, work: ir.Value, pivots: ir.Value, infos: ir.Value) -> None:
        """The product of the pivots, with the sign of the row exchanges; 0 if one is 0."""
        batch, results = self.batch, self._buffers[1:]
        one, zero = literal(1.0, batch.kind), literal(0.0, batch.kind)

        def term(given: list[ir.Value]) -> ir.Value:
            pivot, row, info = given
            stays = (as_index(row) - 1).equals(batch.at(0))
            return build.select(info.equals(0), build.select(stays, pivot, zero - pivot), zero)

        def sign(given: list[ir.Value]) -> ir.Value:
            x = given[0]
            return build.select(x > 0.0, one, build.select(x < 0.0, zero - one, x))

        terms = batch.array(self.n)
        batch.fill(terms, [(work, (0, 0)), (pivots, (0,)), (infos, [])], term)
        if not self._is_log:
            batch.combined(terms, results[0], one, lambda a, b: a * b)
            return
        signs, logs = batch.array(self.n), batch.array(self.n)
        batch.fill(signs, [(terms, (0,))], sign)
        batch.fill(logs, [(terms, (0,))], lambda given: build.math("log", build.math("absf", given[0])))
        batch.combined(signs, results[0], one, lambda a, b: a * b)
        batch.combined(logs, results[1], zero, lambda a, b: a + b)


_WORK: dict[str, type[Work]] = {
    "cholesky": Cholesky,
    "solve_triangular": Triangular,
    **dict.fromkeys(("solve", "inv", "det", "slogdet"), General),
}


def _work_of(module: ir.Module) -> list[Work]:
    """The calls for factors and systems of float32 and float64."""
    found = [x for x in calls_of(module, _WORK) if x.dtypes[0].kind == "f" and x.dtypes[0].itemsize >= 4]
    positive = [x.kernel.name == "solve" and x.attribute("assume") == POSITIVE for x in found]
    return [(Positive if p else _WORK[x.kernel.name])(x) for x, p in zip(found, positive, strict=True)]


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
        for work in _work_of(module):
            work.in_kernels()
            work.op.erase()
            self.count("calls")


# -- what the host does without a library -------------------------------------------------------------------


class Alone:
    """An operation without kernels: a call of a function of the host, marked with what it stands for, whose
    arrays lie side by side. With `short`, factors of float32 may be rounded to 10 bits.
    """

    libraries: Sequence[str] = ("cusolver",)

    def __init__(self, op: ir.Operation, *, short: bool) -> None:
        self.short = short
        said = op.attributes[LIBRARY]
        self.op, self.name = op, ir.StringAttr(said[OPERATION]).value
        self._said, signature = said, SIGNATURES[self.name]
        given = list(op.operands)
        # Tables of transforms are not among them.
        self.operands = [x for x in given if isinstance(x.type, ir.MemRefType)]
        count = len(self.operands)
        self.batch = Batch(op, self.operands[0], len(signature.operands[0]))
        # Core dimensions by name.
        self.size: dict[str, ir.Value] = {}
        for buffer, core in zip(self.operands, signature.operands, strict=False):
            for name, size in zip(core, build.dims(buffer)[len(self.batch.sizes) :], strict=True):
                self.size.setdefault(name, size)
        self.size |= dict(zip(signature.given, given[count:], strict=False))
        self._cores = signature.results

    def attribute(self, name: str) -> int:
        """One of the operation's attributes."""
        return int(ir.IntegerAttr(self._said[name]).value)

    def lower(self) -> list[ir.Value]:
        """Asks; gives the results, as the call does."""
        kinds = [ir.MemRefType(x.type) for x in self.op.results]
        made = [
            self.batch.array(*(self.size[name] for name in core), kind=kind.element_type)
            for core, kind in zip(self._cores, kinds, strict=True)
        ]
        self.ask(made)
        return [build.create("memref.cast", [kind], [x]).result for x, kind in zip(made, kinds, strict=True)]

    def conditions(self) -> list[ir.Value]:
        """Flags: sizes are such that the library is faster."""
        raise NotImplementedError

    def ask(self, results: Sequence[ir.Value]) -> None:
        """Writes the results."""
        raise NotImplementedError


class Eigenvalues(Alone):
    """Eigenvalues, and vectors, which are columns: to the library rows."""

    def conditions(self) -> list[ir.Value]:
        return [self.size["n"] > SMALL]

    def ask(self, results: Sequence[ir.Value]) -> None:
        batch, n = self.batch, self.size["n"]
        # As for Cholesky's factors, of the lower triangle.
        work = batch.copy(self.operands[0], across=bool(self.attribute("lower")))
        infos, has_vectors = batch.words(), len(results) > 1
        batch.ask("syevd", [work, results[0], infos], [int(has_vectors), 0, n, n])
        if has_vectors:
            batch.fill(results[1], [(work, (1, 0))], lambda given: given[0])
        status, zero = as_index(batch.status(infos, 1)), build.const_index(0)
        message = f"{self.name}: {NO_CONVERGENCE[1]}"
        build.check(status.equals(zero), status, zero, message, NO_CONVERGENCE[0])


class Convolution(Alone):
    """Convolutions of images, and their adjoints."""

    libraries = ("cudnn",)

    def conditions(self) -> list[ir.Value]:
        size = self.size
        found = [product(list(size.values())) > 0]
        # Results are of any size here, with zeros where images end; of one size in the library.
        for (image, window, result), axis in (("hpr", "h"), ("wqs", "w")):
            pad, stride, dilation = (
                self.attribute(f"{name}_{axis}") for name in ("pad", "stride", "dilation")
            )
            room = size[image] + 2 * pad - (size[window] - 1) * dilation - 1
            last = (size[result] - 1) * stride
            found += [room > last - 1, room < last + stride]
        return found

    def ask(self, results: Sequence[ir.Value]) -> None:
        first, second = self.operands
        if self.name == "conv2d_input":
            first, second = second, first
        names = "pad_h pad_w stride_h stride_w dilation_h dilation_w groups".split()
        sizes = [self.size[name] for name in "nchwodpqrs"]
        steps = [self.attribute(name) for name in names]
        self.batch.ask(self.name, [first, second, results[0]], [*sizes, *steps, int(self.short)])


class Transform(Alone):
    """Fourier transforms of rows or columns."""

    libraries = ("cufft",)

    def conditions(self) -> list[ir.Value]:
        return [product([size for name, size in self.size.items() if name != "t"]) > 0]

    def ask(self, results: Sequence[ir.Value]) -> None:
        batch, source, size = self.batch, self.operands[0], self.size
        kind, rows, n = self.name.removesuffix("_any"), size["b"], size["n"]
        if kind == "fft_columns":
            numbers: list[ir.Value | int] = [size["c"], n, 1, self.attribute("inverse")]
            batch.ask("fft", [source, results[0]], numbers, batch.count * rows)
        elif kind == "fft":
            batch.ask("fft", [source, results[0]], [rows, n, 0, self.attribute("inverse")])
        else:
            given = source if kind == "rfft" else self._half(source, n)
            batch.ask(kind, [given, results[0]], [rows, n, size["k"]])

    def _half(self, source: ir.Value, n: ir.Value) -> ir.Value:
        """A copy of frequencies, which may be lost, those of real numbers without an imaginary part."""
        batch, last = self.batch, n // 2
        made = batch.array(*build.dims(source)[len(batch.sizes) :])

        def element(given: list[ir.Value]) -> ir.Value:
            kind = ir.ComplexType(batch.kind).element_type
            re, im = (build.create(f"complex.{part}", [kind], [given[0]]).result for part in ("re", "im"))
            at = batch.at(1)
            is_real = at.equals(0) | at.equals(last) & (n % 2).equals(0)
            im = build.select(is_real, literal(0.0, kind), im)
            return build.create("complex.create", [batch.kind], [re, im]).result

        batch.fill(made, [(source, (0, 1))], element)
        return made


_ALONE: dict[str, type[Alone]] = {
    **dict.fromkeys(TRANSFORMS, Transform),
    **dict.fromkeys(("eigh", "eigvalsh"), Eigenvalues),
    **dict.fromkeys(("conv2d", "conv2d_input", "conv2d_filters"), Convolution),
}


@record()
class GpuLibrary(Pass):
    """Asks the vendor's libraries for factors, systems, inverses and determinants of large matrices.

    Whether a library is there is known when a function is called, and so are sizes: a condition of the host
    chooses between requests and the call, of which later passes make kernels. cuSOLVER computes factors,
    cuBLAS solves triangular systems; a batch is one request for each matrix. So a matrix alone of more than
    32 rows goes there, and of larger batches those of which our kernels, which have one block for a matrix,
    would take longer: both are estimated from the number of rows and of matrices.

    To a library, which has columns side by side, an array is its transpose: triangles change their names, and
    systems are solved from the other side. Only general right sides are turned round.

    What has no kernels is a call of a function of the host: eigenvalues, which cuSOLVER computes, too, and
    convolutions, which cuDNN does. Without the library arrays move to the host and back. Transfers are of
    what lies side by side: parts of arrays, and transposes, are copied before such a call.

    Attributes:
        precision: of factors of float32 in convolutions, "float32" or "tf32".
    """

    precision: str = "float32"

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for op in host_operations(module, "func.call"):
            if callee_of(op).endswith(BUFFERS):
                self._copy_operands(op)
            if LIBRARY in op.attributes:
                kind = _ALONE[ir.StringAttr(op.attributes[LIBRARY][OPERATION]).value]
                with ir.InsertionPoint(op), op.location:
                    self._choose(op, kind(op, short=self.precision == "tf32"))
        for work in _work_of(module):
            op, size = work.op.op, ir.MemRefType(work.source.type).shape[-1]
            if not 0 <= size <= SMALL:
                with ir.InsertionPoint(op), op.location:
                    self._choose(op, work)

    def _copy_operands(self, op: ir.Operation) -> None:
        """Copies what does not lie side by side."""
        for place, operand in enumerate(op.operands):
            if not isinstance(operand.type, ir.MemRefType) or is_proven_contiguous(operand):
                continue
            with ir.InsertionPoint(op), op.location:
                made = allocate(build.dims(operand), ir.MemRefType(operand.type).element_type)
                build.create("memref.copy", [], [operand, made])
                op.operands[place] = build.create("memref.cast", [operand.type], [made]).result
            self.count("copies")

    def _choose(self, op: ir.Operation, work: Work | Alone) -> None:
        """Puts a call into a branch of the host, requests into the other one, at the insertion point."""
        bit, kinds = ir.IntegerType.get_signless(1), [x.type for x in op.results]
        is_there = [call(op, LibraryFound(name), [], [bit]).results[0] for name in work.libraries]

        def moved() -> list[ir.Value]:
            ir.InsertionPoint.current.insert(op.detach_from_parent())
            return list(op.results)

        is_faster = all_of([*is_there, *work.conditions()])
        if build.constant_value(is_faster) == 0:
            return
        chosen = either(is_faster, kinds, work.lower, moved)
        for old, new in zip(op.results, chosen, strict=True):
            for use in [use for use in old.uses if use.owner.operation.name != "scf.yield"]:
                use.owner.operation.operands[use.operand_number] = new
        self.count("calls")
