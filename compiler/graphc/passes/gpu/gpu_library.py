# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Factors and systems of large matrices by the vendor's libraries, where these are there in a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphc.ir import build
from graphc.ir.helpers import callee_of
from graphc.ir.value import all_of, as_index, literal
from graphc.ir.walk import functions, walk
from graphc.library.helpers import LibraryAsked, LibraryFound
from graphc.library.linalg.solve import GENERAL, POSITIVE
from graphc.library.linalg.symmetric import NO_CONVERGENCE
from graphc.lowering.calls import call, product, write_to
from graphc.lowering.carried import either
from graphc.lowering.partial_reductions import nest, position
from graphc.lowering.random import BUFFERS, LIBRARY, OPERATION
from graphc.passes import Pass
from graphc.passes.buffer.kernel_pointers import is_proven_contiguous
from graphc.passes.gpu._host import LibraryCall, calls_of
from graphc.passes.gpu._kernel import H200, allocate
from graphc.passes.gpu.gpu_factor import NOT_POSITIVE, SMALL, is_checked, largest_of
from graphc.passes.gpu.gpu_placement import TRANSFORMS
from graphc_dialects._mlir import ir
from graphc_dialects.signatures import SIGNATURES
from graphc_runtime.record import record

_NAN = float("nan")


class Batch:
    """Matrices of a call, and what is asked of libraries about all of them.

    Args:
        op: the call.
        source: buffer that has the matrices, or other arrays.
        core: how many dimensions these have.
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
        """Computes each element of an array.

        Args:
            target: the array; its dimensions after those of the batch are numbered from 0.
            inputs: arrays, each with the numbers of its dimensions after those of the batch.
            body: gives the element, of those of the inputs; `at` says where it is.
        """
        batch = len(self.sizes)
        rank = ir.MemRefType(target.type).rank
        before = list(range(batch))
        operands = [(x, [*before, *(batch + axis for axis in axes)]) for x, axes in inputs]
        nest(operands, [(target, range(rank))], [False] * rank, lambda given: [body(given[:-1])])

    def at(self, axis: int) -> ir.Value:
        """Place of an element along a dimension after those of the batch, in a body."""
        return position(len(self.sizes) + axis)

    def whole(self, source: ir.Value) -> ir.Value:
        """An array with its elements side by side: itself, or a copy."""
        return source if is_proven_contiguous(source) else self.copy(source)

    def copy(self, source: ir.Value, *, across: bool = False) -> ir.Value:
        """A copy of an array, its elements side by side; of square matrices, with `across`, by columns, as
        libraries read them.
        """
        sizes = [self.rows] * 2 if across else build.dims(source)[len(self.sizes) :]
        made = self.array(*sizes)
        self.fill(made, [(source, (1, 0) if across else range(len(sizes)))], lambda given: given[0])
        return made

    def triangle(self, source: ir.Value, *, lower: bool) -> ir.Value:
        """A copy of square matrices whose lower or upper triangle is the library's lower one."""
        return self.copy(source, across=lower)

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
        nest(
            [(terms, [*axes, len(axes)])],
            [(target, axes)],
            [*(False for _ in axes), True],
            lambda both: [combine(both[1], both[0])],
        )

    def status(self, infos: ir.Value, error: int) -> ir.Value:
        """0, or the number of an error if a library has found something wrong with a matrix."""
        wrong = self.array(kind=ir.IntegerType.get_signless(64))
        code = build.const_i64(error)
        self.fill(wrong, [(infos, [])], lambda given: build.select(is_fine(given[0]), 0, code))
        return largest_of(wrong)

    def infos(self) -> ir.Value:
        """Statuses of the library, one for each matrix: 0 if it is fine."""
        return self.array(kind=ir.IntegerType.get_signless(32))

    def ask(
        self,
        routine: str,
        arrays: Sequence[ir.Value],
        numbers: Sequence[ir.Value | int],
        count: ir.Value | None = None,
    ) -> None:
        """Asks a library, of each array of the batch; see `graphc_runtime.cuda.libraries.ROUTINES`."""
        given = [write_to(array) for array in arrays]
        given += [as_index(x) for x in numbers]
        call(self._op, LibraryAsked(routine), [*given, self.count if count is None else count])


def is_fine(info: ir.Value) -> ir.Value:
    """True if a library has found nothing wrong with a matrix."""
    return info.equals(0)


# -- what is asked for --------------------------------------------------------------------------------------


class Work:
    """Work of libraries for a call.

    Args:
        op: the call, whose results and flags are written.
    """

    libraries: Sequence[str] = ("cusolver",)
    # That a matrix is singular, by its number among the errors of the library's kernel.
    error = 1
    # Whether the second operand has right sides, of which there may be none.
    has_right_sides = False

    def __init__(self, op: LibraryCall) -> None:
        self.op, self.batch = op, Batch(op.op, op.buffers[0])
        self.source, self.result = op.buffers[0], op.buffers[len(op.kernel.types) - 1]
        self.n = self.batch.rows

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
        if infos is None or not is_checked(self.op):
            return [build.const_i64(0)]
        return [self.batch.status(infos, self.error)]

    def ask(self) -> ir.Value | None:
        """Writes the results; gives what a library has said of the matrices, None if nothing can be wrong."""
        raise NotImplementedError

    def solved(self, right: ir.Value, infos: ir.Value, *, across: bool = False) -> None:
        """Writes solutions that lie in an array, or NaN; with `across`, by columns."""
        self.batch.fill(
            self.result,
            [(right, (1, 0) if across else (0, 1)), (infos, [])],
            lambda given: build.select(is_fine(given[1]), given[0], _NAN),
        )

    def triangular(
        self, a: ir.Value, right: ir.Value, *, upper: bool, across: bool, unit: bool = False
    ) -> None:
        """Solves X op(A) = B in place of B, for matrices as the library sees them: our transposes."""
        k, n, batch = build.dims(right)[-1], self.n, self.batch

        def one() -> None:
            # A column is what it is, from the left.
            batch.ask("trsv", [a, right], [int(upper), int(not across), int(unit), n, n, 1])

        def several() -> None:
            batch.ask("trsm", [a, right], [1, int(upper), int(across), int(unit), k, n, n, k, n])

        either(k.equals(1), [], one, several)


class Cholesky(Work):
    """Factors, of the library's lower triangle, of which it takes half as long as of the upper one: lower
    triangles are turned round, upper ones are lower ones by columns.
    """

    def ask(self) -> ir.Value | None:
        lower, batch, n = bool(self.op.attribute("lower")), self.batch, self.n
        work, infos = batch.triangle(self.source, lower=lower), batch.infos()
        batch.ask("potrf", [work, infos], [0, n, n])

        def element(given: list[ir.Value]) -> ir.Value:
            i, j = batch.at(0), batch.at(1)
            inside = build.select(j <= i if lower else i <= j, given[0], 0.0)
            return build.select(is_fine(given[1]), inside, _NAN)

        batch.fill(self.result, [(work, (1, 0) if lower else (0, 1)), (infos, [])], element)
        return infos


class Triangular(Work):
    """Solutions of X^T op(A)^T = B^T, in place of B^T."""

    libraries = ("cublas",)
    has_right_sides = True

    def ask(self) -> ir.Value | None:
        op, batch = self.op, self.batch
        unit = bool(op.attribute("unit_diagonal"))
        a, right = batch.whole(self.source), batch.copy(op.buffers[1])
        upper, across = bool(op.attribute("lower")), bool(op.attribute("trans"))
        self.triangular(a, right, upper=upper, across=across, unit=unit)
        if unit:
            batch.fill(self.result, [(right, (0, 1))], lambda given: given[0])
            return None
        infos, word = batch.infos(), ir.IntegerType.get_signless(32)
        zeros = batch.array(self.n, kind=word)
        batch.fill(
            zeros, [(a, (0, 0))], lambda given: build.select(given[0].equals(0.0), literal(1, word), 0)
        )
        batch.combined(zeros, infos, literal(0, word), lambda a, b: a | b)
        self.solved(right, infos)
        return infos


class Positive(Work):
    """Solutions by a Cholesky factor: two triangular systems."""

    libraries = ("cusolver", "cublas")
    error, has_right_sides = NOT_POSITIVE, True

    def ask(self) -> ir.Value | None:
        lower, batch, n = bool(self.op.attribute("lower")), self.batch, self.n
        work, infos = batch.triangle(self.source, lower=lower), batch.infos()
        right = batch.copy(self.op.buffers[1])
        batch.ask("potrf", [work, infos], [0, n, n])
        # A = L L^T by columns: X^T L L^T = B^T.
        for across in (True, False):
            self.triangular(work, right, upper=False, across=across)
        self.solved(right, infos)
        return infos


class General(Work):
    """Solutions, inverses and determinants by LU factors with row exchanges."""

    def __init__(self, op: LibraryCall) -> None:
        super().__init__(op)
        self._is_solve = self.has_right_sides = op.kernel.name == "solve"

    def ask(self) -> ir.Value | None:
        op, batch, n = self.op, self.batch, self.n
        word = ir.IntegerType.get_signless(32)
        is_half = self._is_solve and op.attribute("assume") != GENERAL
        work, infos, pivots = self._matrix(is_half), batch.infos(), batch.array(n, kind=word)
        batch.ask("getrf", [work, pivots, infos], [n, n, n])
        if op.kernel.name in ("det", "slogdet"):
            self._determinant(work, pivots, infos)
            return None
        if not self._is_solve:
            right = batch.array(n, n)
            one = literal(1.0, batch.kind)
            batch.fill(right, [], lambda given: build.select(batch.at(0).equals(batch.at(1)), one, 0.0))
            k, across = n, False
        else:
            sides = op.buffers[1]
            k = build.dims(sides)[-1]
            right = batch.array(k, n)
            batch.fill(right, [(sides, (1, 0))], lambda given: given[0])
            across = is_half or not op.attribute("transposed")
        others = batch.infos()
        batch.ask("getrs", [work, pivots, right, others], [int(across), n, k, n, n])
        # The inverse of a transpose, by columns, is the inverse.
        self.solved(right, infos, across=self._is_solve)
        return infos

    def _matrix(self, is_half: bool) -> ir.Value:
        """The matrices as they are; of a symmetric one both triangles are the one that is said."""
        if not is_half:
            return self.batch.copy(self.source)
        batch, lower = self.batch, bool(self.op.attribute("lower"))
        made = batch.array(self.n, self.n)

        def element(given: list[ir.Value]) -> ir.Value:
            i, j = batch.at(0), batch.at(1)
            return build.select(j <= i if lower else i <= j, given[0], given[1])

        batch.fill(made, [(self.source, (0, 1)), (self.source, (1, 0))], element)
        return made

    def _determinant(self, work: ir.Value, pivots: ir.Value, infos: ir.Value) -> None:
        """The product of the pivots, with the sign of the row exchanges; 0 if one is 0."""
        batch, name = self.batch, self.op.kernel.name
        results = self.op.buffers[1 : len(self.op.kernel.types)]
        one, zero = literal(1.0, batch.kind), literal(0.0, batch.kind)

        def term(given: list[ir.Value]) -> ir.Value:
            pivot, row, info = given
            stays = (as_index(row) - 1).equals(batch.at(0))
            return build.select(is_fine(info), build.select(stays, pivot, zero - pivot), zero)

        terms = batch.array(self.n)
        batch.fill(terms, [(work, (0, 0)), (pivots, (0,)), (infos, [])], term)
        if name == "det":
            batch.combined(terms, results[0], one, lambda a, b: a * b)
            return
        signs, logs = batch.array(self.n), batch.array(self.n)

        def sign(given: list[ir.Value]) -> ir.Value:
            x = given[0]
            return build.select(x > 0.0, one, build.select(x < 0.0, zero - one, x))

        batch.fill(signs, [(terms, (0,))], sign)
        batch.fill(logs, [(terms, (0,))], lambda given: build.math("log", build.math("absf", given[0])))
        batch.combined(signs, results[0], one, lambda a, b: a * b)
        batch.combined(logs, results[1], zero, lambda a, b: a + b)


# -- what the host does without a library -------------------------------------------------------------------


class Alone:
    """An operation without kernels, of which there is a function of the host.

    Args:
        op: the call of the function, marked with what it stands for. Its arrays lie side by side.
        short: whether factors of float32 may be rounded to 10 bits.
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

    def require(self, infos: ir.Value) -> None:
        """An error unless a library has found nothing wrong with the matrices."""
        status, zero = as_index(self.batch.status(infos, 1)), build.const_index(0)
        message = f"{self.name}: {NO_CONVERGENCE[1]}"
        build.check(status.equals(zero), status, zero, message, NO_CONVERGENCE[0])

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
        work = batch.triangle(self.operands[0], lower=bool(self.attribute("lower")))
        infos, has_vectors = batch.infos(), len(results) > 1
        batch.ask("syevd", [work, results[0], infos], [int(has_vectors), 0, n, n])
        if has_vectors:
            batch.fill(results[1], [(work, (1, 0))], lambda given: given[0])
        self.require(infos)


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
            inverse = self.attribute("inverse")
            numbers: list[ir.Value | int] = [size["c"], n, 1, inverse]
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


_WORK: dict[str, type[Work]] = {
    "cholesky": Cholesky,
    "solve_triangular": Triangular,
    **dict.fromkeys(("solve", "inv", "det", "slogdet"), General),
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
        for op in [op for function in functions(module) for op in walk(function)]:
            if op.name == "func.call" and callee_of(op).endswith(BUFFERS):
                self._copy_operands(op)
            if op.name == "func.call" and LIBRARY in op.attributes:
                kind = _ALONE[ir.StringAttr(op.attributes[LIBRARY][OPERATION]).value]
                with ir.InsertionPoint(op), op.location:
                    self._choose(op, kind(op, short=self.precision == "tf32"))
        for found in calls_of(module, _WORK):
            op, size, dtype = found.op, ir.MemRefType(found.buffers[0].type).shape[-1], found.dtypes[0]
            if dtype.kind == "f" and dtype.itemsize >= 4 and not 0 <= size <= SMALL:
                is_positive = found.kernel.name == "solve" and found.attribute("assume") == POSITIVE
                with ir.InsertionPoint(op), op.location:
                    self._choose(op, (Positive if is_positive else _WORK[found.kernel.name])(found))

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

        chosen = either(all_of([*is_there, *work.conditions()]), kinds, work.lower, moved)
        for old, new in zip(op.results, chosen, strict=True):
            for use in [use for use in old.uses if use.owner.operation.name != "scf.yield"]:
                use.owner.operation.operands[use.operand_number] = new
        self.count("calls")
