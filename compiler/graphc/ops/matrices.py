# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``_MatrixOp``, the base of linear algebra, and what its gradients are written with.

Rules of ops transpose without conjugation. Functions of a matrix that conjugate nothing (solve, inv, det, lu,
expm) transpose as they are; for the others a cotangent is conjugated first, so that the formulas of the
literature, for the inner product Re(tr(G^H dA)), apply; what they give is conjugated at the end.

``Matmul`` is the matrix product, with which ``dot``, ``matmul``, ``outer`` and ``tensordot`` are written;
factors of banded and tridiagonal matrices are here, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from graphc.errors import UndefinedGradientError
from graphc.graph.basic import Apply, Flags, Maybe, Variable, Variables, describe, only
from graphc.graph.op import Op, multilinear
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.tensor.type import TensorType
from graphc.graph.undefined import grad_not_implemented
from graphc.ops.create import eye as eye_
from graphc.ops.create import tril, triu
from graphc.ops.elementwise import cast_to, is_complex
from graphc.ops.kernel import KernelOp, _CoreOp
from graphc.ops.math import conj as conj_
from graphc.ops.math import real as real_
from graphc.ops.shape import size_of, sizes_of
from graphc.ops.shaping import (
    all_batched,
    dimshuffle,
    expand_dims,
    reshape,
    shape_padright,
    specify_shape,
    swapaxes,
)
from graphc.ops.table.arithmetic import promote

if TYPE_CHECKING:
    from graphc.emit.emitter import Emitter
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc_runtime.thunk import Register


def _with_size(x: Variable, axis: int, size: int | None) -> Variable:
    """x with a size that its type does not know."""
    if size is None or x.type.shape[axis] is not None:
        return x
    sizes: list[int | None] = [None] * x.type.ndim
    sizes[axis] = size
    return specify_shape(x, sizes)


class Matmul(Op):
    """Product over the last axis of a and the last but one of b; leading axes are a batch and agree."""

    takes_as_stored = False

    __props__ = ()

    def make_node(self, a: TensorLike, b: TensorLike) -> Apply:
        a, b = as_tensor_variable(a), as_tensor_variable(b)
        if a.type.ndim < 2 or a.type.ndim != b.type.ndim:
            raise TypeError(f"Matmul takes operands of equal rank of at least 2, got {a.type} and {b.type}")
        dtype = promote(a.type.numpy_dtype, b.type.numpy_dtype).name
        a, b = cast_to(a, dtype), cast_to(b, dtype)
        left, right = a.type.shape, b.type.shape
        self._agree(a, b, left[-1], right[-2], f"the last of {left}, the last but one of {right}")
        batch = []
        for m, n in zip(left[:-2], right[:-2], strict=True):
            self._agree(a, b, m, n, f"leading dimensions of {left} and {right}")
            batch.append(n if m is None else m)
        return Apply(self, [a, b], [TensorType(dtype, (*batch, left[-2], right[-1])).make_variable()])

    def _agree(self, a: Variable, b: Variable, m: int | None, n: int | None, where: str) -> None:
        if m is not None and n is not None and m != n:
            raise ValueError(
                f"matrix product of {a}{describe(a.location)} and {b}{describe(b.location)}: sizes {m} and "
                f"{n} differ ({where})"
            )

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        a, b = inputs
        if a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
            raise ValueError(
                f"matrix product of arrays of shapes {a.shape} and {b.shape}{describe(node.location)}"
            )
        with np.errstate(all="ignore"):
            output_storage[0][0] = np.matmul(a, b)

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (a, b), g = inputs, only(cotangents)
        # Cotangents know the sizes that their operands know, and the axes that are summed over are equal.
        size_a, size_b = a.type.shape[-1], b.type.shape[-2]
        return [
            self(g, transposed(_with_size(b, -2, size_a))),
            self(transposed(_with_size(a, -1, size_b)), g),
        ]

    pushforward = multilinear

    def batch(self, node: Apply, inputs: Variables, batched: Flags, size: Variable | int) -> list[Variable]:
        a, b = inputs
        if all(batched) or node.inputs[0].type.ndim > 2:
            return [self(*all_batched(inputs, batched, size))]
        # One product of a tall (or wide) matrix instead of a batch of products.
        if batched[0]:
            n, m, k = sizes_of(a)
            rows = self(reshape(a, (n * m, k)), b)
            return [reshape(rows, (n, m, size_of(b, 1)))]
        n, k, p = sizes_of(b)
        columns = self(a, reshape(dimshuffle(b, (1, 0, 2)), (k, n * p)))
        return [dimshuffle(reshape(columns, (size_of(a, 0), n, p)), (1, 0, 2))]

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        names, types = self._refined(node, operands, e)
        attrs = "transpose_a = false, transpose_b = false"
        out = node.outputs[0].type
        if out.dtype != "float16":
            return [e.op("graphc.matmul", names, types, e.type_of(node.outputs[0]), attrs)]
        # Products of float16 are added up in float32, as NumPy's are.
        wide = [kind.replace("f16", "f32") for kind in types]
        names = [e.op("graphc.cast", [x], [t], w) for x, t, w in zip(names, types, wide, strict=True)]
        single = e.tensor_type("float32", out.shape)
        product = e.op("graphc.matmul", names, wide, single, attrs)
        return [e.op("graphc.cast", [product], [single], e.type_of(node.outputs[0]))]

    def _refined(self, node: Apply, operands: Sequence[str], e: Emitter) -> tuple[list[str], list[str]]:
        """The operands, and their types, with what each knows of sizes that they have in common: a product
        is rewritten into operations that would broadcast a static 1.
        """
        shapes: list[list[int | None]] = [list(x.type.shape) for x in node.inputs]
        rank = len(shapes[0])
        for axes in (*((i, i) for i in range(rank - 2)), (rank - 1, rank - 2)):
            for side, axis in enumerate(axes):
                known = shapes[1 - side][axes[1 - side]]
                if shapes[side][axis] is None and known is not None:
                    given, expected = e.dim_of(node.inputs[side], operands[side], axis), e.const_index(known)
                    message = (
                        f"matrix product: the {('left', 'right')[side]} operand has size {{given}} in "
                        f"dimension {axis}, the other one needs {{expected}}"
                    )
                    e.check(e.compare("eq", given, expected), given, expected, message)
                    shapes[side][axis] = known
        types = [e.tensor_type(x.type.dtype, shape) for x, shape in zip(node.inputs, shapes, strict=True)]
        names = [
            e.cast_type(operand, e.type_of(x), wanted)
            for x, operand, wanted in zip(node.inputs, operands, types, strict=True)
        ]
        return names, types


class _FloatCores(_CoreOp):
    """Base of ops whose operands have one dtype, of floats or complex numbers."""

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        dtype = float_dtype(*given)
        return [dtype] * len(given), self.result_dtypes(dtype)

    def result_dtypes(self, dtype: str) -> Sequence[str]:
        """Dtypes of the results, from that of the operands."""
        return [dtype] * len(self.signature.results)


class _MatrixOp(_FloatCores, KernelOp):
    """Those that a kernel computes."""

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        if self.depends_on is not None:
            return super().connection_pattern(node)
        count = len(self.signature.operands)
        return [[i < count] * len(node.outputs) for i in range(len(node.inputs))]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        return NotImplemented


def float_dtype(*given: str) -> str:
    """The dtype that LAPACK computes in for operands of these: float32 or 64, complex64 or 128."""
    dtype = np.result_type(*(np.result_type(d, "float64") if np.dtype(d).kind in "biu" else d for d in given))
    return "float32" if dtype == np.float16 else dtype.name


def real_dtype(dtype: str) -> str:
    """Dtype of the real part."""
    return np.empty(0, dtype).real.dtype.name


def complex_dtype(dtype: str) -> str:
    """Dtype of complex numbers with parts of this precision."""
    return np.result_type(dtype, "complex64").name


def mm(a: Variable, b: Variable) -> TensorVariable:
    """Matrix product of equal batches."""
    return Matmul()(a, b)


def transposed(x: Variable) -> TensorVariable:
    """x with its last two axes exchanged."""
    return swapaxes(x, -1, -2)


def conj(x: Any) -> TensorVariable:
    """Conjugate; real variables as they are."""
    return conj_(x) if is_complex(x) else x


def adjoint(x: Variable) -> TensorVariable:
    """Conjugate transpose."""
    return conj(transposed(x))


def real(x: TensorVariable) -> TensorVariable:
    """Real part; real variables as they are."""
    return real_(x) if is_complex(x) else x


def eye_like(x: Variable, axis: int = -1, dtype: str | None = None) -> TensorVariable:
    """An identity matrix of the size of an axis of x."""
    return eye_(size_of(x, x.type.ndim + axis if axis < 0 else axis), dtype=dtype or x.type.dtype)


def on_diagonal(v: Variable) -> TensorVariable:
    """Matrices with the given diagonals, (..., n) to (..., n, n)."""
    return shape_padright(v) * eye_like(v)


def diagonal(x: Variable) -> TensorVariable:
    """Diagonals of matrices."""
    return as_tensor_variable(x).diagonal(axis1=-2, axis2=-1)


def in_triangle(m: Variable, lower: bool, hermitian: bool = True) -> Variable:
    """Cotangent of the triangle that was read, from that of the whole matrix.

    Args:
        m: cotangent of the Hermitian (or symmetric) matrix.
        lower: whether the lower triangle was read.
        hermitian: whether the other triangle is the conjugate.
    """
    other = adjoint(m) if hermitian else transposed(m)
    half = tril(m + other, -1) if lower else triu(m + other, 1)
    on = diagonal(m)
    return half + on_diagonal(real(on) if hermitian else on)


def add(terms: Sequence[Variable | None]) -> Variable:
    """Sum of the terms that are not None, of which there is one at least."""
    result: Variable | None = None
    for term in terms:
        if term is not None:
            result = term if result is None else result + term
    assert result is not None
    return result


def differences(x: Variable) -> Variable:
    """1 / (x_j - x_i), and 0 on the diagonal."""
    eye = eye_like(x)
    spread = expand_dims(x, -2) - expand_dims(x, -1)
    return (1 - eye) / (spread + eye)


class CholeskyBanded(_MatrixOp):
    """Bands of the Cholesky factor, from bands of one half of a positive definite matrix.

    Args:
        lower: whether they are those below the diagonal.
    """

    kernel = "cholesky_banded"
    lower: bool = False

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (c,), g = outputs, only(cotangents)
        if is_complex(c):
            raise UndefinedGradientError("cholesky_banded has a gradient for real matrices only")
        return [CholeskyBandedPullback(self.lower)(c, g)]


class CholeskyBandedPullback(_MatrixOp):
    """Cotangent of the bands from the factor's bands and their cotangent.

    Source: I. Murray, "Differentiation of the Cholesky decomposition", 2016.
    """

    kernel = "cholesky_banded_pullback"
    lower: bool = False
    absent: ClassVar[dict[str, str]] = {"pullback": "it is a derivative already, and the kernel has none"}

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        raise UndefinedGradientError("cholesky_banded has no second derivative; use cholesky")


class TridiagonalFactor(_MatrixOp):
    """LU factors of a tridiagonal matrix from its diagonals (below, main, above) and max(n - 2, 0): those of
    L, of U with two more diagonals above, and the rows exchanged, as LAPACK's gttrf leaves them.
    """

    kernel = "tridiagonal_factor"
    absent: ClassVar[dict[str, str]] = {"pullback": "systems have one: solve(..., assume_a='tridiagonal')"}

    def result_dtypes(self, dtype: str) -> Sequence[str]:
        return [*[dtype] * 4, "int32"]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        raise UndefinedGradientError(
            'tridiagonal_lu_factor has no gradient; use solve(a, b, assume_a="tridiagonal")'
        )


class TridiagonalSolve(_MatrixOp):
    """Solution of a system by what `TridiagonalFactor` gave.

    Args:
        transposed: solve with the transpose.
    """

    kernel = "tridiagonal_solve"
    transposed: bool = False
    depends_on = (0, 1, 2, 3, 5)

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        dtype = float_dtype(*given[:4], given[5])
        return [*[dtype] * 4, "int32", dtype], [dtype]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        *factors, _ = inputs
        g = only(cotangents)
        why = 'use solve(a, b, assume_a="tridiagonal")'
        undefined: list[Variable] = [grad_not_implemented(self, i, x, why) for i, x in enumerate(factors[:4])]
        return [*undefined, None, TridiagonalSolve(not self.transposed)(*factors, g)]
