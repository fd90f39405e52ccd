# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products, decompositions and solvers, alone and for each matrix of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.graph.basic import Apply

import graphc
import graphc.tensor as pt
from graphc.interop.pytensor.convert import (
    Converter,
    NoConversion,
    Row,
    Values,
    calls,
    convert,
    converts,
    of_row,
)
from graphc.interop.pytensor.equal_rows import element
from graphc.ops.factors import Sylvester
from graphc.ops.matrices import TridiagonalFactor
from graphc.ops.spectral import Eigh

if TYPE_CHECKING:
    from pytensor.graph.basic import Variable as PyTensorVariable
    from pytensor.graph.op import Op

    from graphc.graph.basic import Variable
    from graphc.graph.tensor import TensorLike
    from graphc.interop.pytensor.convert import Result


@converts("Blockwise")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """The batched form of the core op, or its rule vectorised."""
    core = op.core_op
    if type(core).__name__ == "Cholesky":
        return _cholesky(core, node, inputs, c)
    if (row := _BATCHED.get(type(core).__name__)) is not None:
        return of_row(row)(core, inputs)
    if op.batch_ndim(node) == 0:
        return convert(core, node, inputs, c)
    core_node = op._create_dummy_core_node(node.inputs)
    inner = Converter(c)
    batch = op.batch_ndim(node)
    replaced = {}
    for variable, x in zip(core_node.inputs, inputs, strict=True):
        # Lengths of ranges, for one: with a length for each element there would be a loop over the batch.
        found = element(x, batch) if x.type.kind in "iu" else x
        if found is x:
            replaced[inner.new_input(variable)] = x
        else:
            inner.bind([variable], [found])
    results = inner.convert(core_node.outputs)
    made = graphc.vectorize_graph(results, replaced) if replaced else results
    sizes = _batch_sizes(inputs, batch)
    return [_repeated(result, sizes, out.type.ndim) for out, result in zip(node.outputs, made, strict=True)]


def _batch_sizes(inputs: Values, batch: int) -> list[Variable | None]:
    """The sizes of the batch, None where all inputs have 1."""
    sizes: list[Variable | None] = []
    for axis in range(batch):
        varying = [x for x in inputs if x.type.shape[axis] != 1]
        sizes.append(varying[0].shape[axis] if varying else None)
    return sizes


def _repeated(result: Variable, sizes: list[Variable | None], ndim: int) -> Variable:
    """A result with all of the batch, also if what differs within that does not matter for it."""
    known = result.type.shape
    whole = all(size is None or n != 1 for size, n in zip(sizes, known, strict=False))
    if result.type.ndim == ndim and whole:
        return result
    core = range(result.type.ndim - (ndim - len(sizes)), result.type.ndim)
    batch = [1 if size is None else size for size in sizes]
    return pt.broadcast_to(result, [*batch, *(result.shape[axis] for axis in core)])


def _dot(op: Op, x: Variable, y: Variable) -> Variable:
    return pt.dot(x, y) if max(x.type.ndim, y.type.ndim) <= 2 else pt.matmul(x, y)


@converts("Cholesky")
def _cholesky(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """PyTensor gives NaN for a matrix that is not positive definite, and a sampler goes on.

    The factor of ``L @ L.T`` is L, as in its rewrite `cholesky_ldotlt`, up to the signs of columns.
    """
    factor = _factor(node.inputs[0])
    if factor is None:
        return pt.linalg.cholesky(inputs[0], lower=op.lower, on_error="nan")
    known = c.convert([factor])[0]
    known = known * pt.sign(pt.diagonal(known, axis1=-2, axis2=-1))[..., None, :]
    known = known if op.lower else pt.swapaxes(known, -1, -2)
    return pt.dimshuffle(known, [*["x"] * (inputs[0].type.ndim - known.type.ndim), *range(known.type.ndim)])


def _factor(product: PyTensorVariable) -> PyTensorVariable | None:
    """The matrix of which another is the product with its transpose, if PyTensor says it is triangular."""
    node = product.owner
    if node is not None and _is_dimshuffle(node, expands=True):
        node = node.inputs[0].owner
    core = None if node is None else getattr(node.op, "core_op", node.op)
    if node is None or type(core).__name__ != "Dot":
        return None
    factor, transposed = node.inputs
    swaps = transposed.owner is not None and transposed.owner.inputs[0] is factor
    known = getattr(factor.tag, "lower_triangular", False) and factor.type.shape[-1] == factor.type.shape[-2]
    if not swaps or not known or factor.type.shape[-1] is None:
        return None
    return factor if _is_dimshuffle(transposed.owner, expands=False) else None


def _is_dimshuffle(node: Apply, expands: bool) -> bool:
    """True if a node only gives axes of size 1 before the others, or only swaps the last two axes."""
    order = getattr(node.op, "new_order", None)
    axes = [*range(node.inputs[0].type.ndim)]
    if not expands:
        axes[-2:] = axes[:-3:-1]
    return order is not None and list(order) == ["x"] * (len(order) - len(axes)) * expands + axes


def _eigh(op: Op, a: Variable, b: Variable | None = None) -> Any:
    """Eigenvalues and vectors, from the triangle that the op says: by ``UPLO`` before PyTensor 3."""
    return pt.linalg.eigh(a, b, lower=op.UPLO == "L" if hasattr(op, "UPLO") else bool(op.lower))


def _qr(op: Op, a: Variable) -> Any:
    """PyTensor's names of modes are SciPy's, where "full" is NumPy's "complete"."""
    if op.mode == "raw":
        raise NoConversion("the mode raw, LAPACK's own form")
    return pt.linalg.qr(a, mode=op.mode, pivoting=op.pivoting)


def _lu(op: Op, a: Variable) -> Result:
    first, *factors = pt.linalg.lu(a, permute_l=op.permute_l, p_indices=op.p_indices)
    # The exchanges of rows are real.
    return [first if op.permute_l or op.p_indices else pt.real(first), *factors]


def _schur(op: Op, a: Variable) -> Any:
    if a.type.dtype.startswith("complex") and op.output == "real":
        raise NoConversion("the real Schur form of a complex matrix")
    return pt.linalg.schur(a, output=op.output, sort=op.sort)


def _qz(op: Op, a: Variable, b: Variable) -> Any:
    output, values = "complex" if op.complex_output else "real", op.return_eigenvalues
    return pt.linalg.qz(a, b, output=output, sort=op.sort, return_eigenvalues=values)


def _lstsq(op: Op, a: Variable, b: Variable, *rcond: Variable) -> Any:
    if b.type.ndim != 2:
        raise NoConversion("its results have other types than PyTensor says for a vector")
    return pt.linalg.lstsq(a, b, *rcond)


def _eigvalsh_pullback(op: Op, a: Variable, b: Variable, by_values: Variable) -> Result:
    w, v = pt.linalg.eigh(a, b, lower=op.lower)
    weights = (by_values, -by_values * w)
    return [_one_triangle(pt.dot(v * weight, pt.transpose(v)), op.lower) for weight in weights]


def _one_triangle(x: TensorLike, lower: bool) -> Any:
    """Adds the other triangle to the one that counts."""
    if lower:
        return pt.tril(x) + pt.transpose(pt.triu(x, 1))
    return pt.triu(x) + pt.transpose(pt.tril(x, -1))


calls(
    {
        "BatchedDot": "batched_dot",
        "Dot22": "dot",
        "Gemv CGemv": lambda op, y, alpha, a, x, beta: beta * y + alpha * pt.dot(a, x),
        "Gemm": lambda op, z, alpha, x, y, beta: beta * z + alpha * pt.dot(x, y),
        "Dot22Scalar": lambda op, x, y, alpha: pt.dot(x, y) * alpha,
        "Ger CGer": lambda op, a, alpha, x, y: a + alpha * pt.outer(x, y),
    }
)
calls(
    {
        "Lstsq": _lstsq,
        # Derivatives of eigenvalues and vectors as graphc's own, which exist where values are equal.
        "EighGrad": lambda op, a, w, v, *by: Eigh(op.UPLO == "L").pullback([a], [w, v], list(by)),
        "EigvalshGrad": _eigvalsh_pullback,
    },
    "pytensor.tensor",
)
calls(
    {
        "LogDet": lambda op, x: pt.linalg.slogdet(x)[1],
        # A matrix whose factor exists.
        "PosDefMatrix": lambda op, x: pt.invert(pt.any(pt.isnan(pt.linalg.cholesky(x, on_error="nan")))),
    },
    "pymc",
)
# Of matrices, and so of batches of them.
_BATCHED: dict[str, Row] = {
    "Dot": _dot,
    "Solve": lambda op, a, b: pt.linalg.solve(
        a, b, assume_a=op.assume_a, lower=op.lower, b_ndim=op.b_ndim, on_error="nan"
    ),
    "SolveTriangular": lambda op, a, b: pt.linalg.solve_triangular(
        a, b, lower=op.lower, unit_diagonal=op.unit_diagonal, b_ndim=op.b_ndim, on_error="nan"
    ),
    "CholeskySolve": lambda op, factor, b: pt.linalg.cho_solve((factor, op.lower), b, b_ndim=op.b_ndim),
    "Eigh": _eigh,
    "Eigvalsh": lambda op, *matrices: _eigh(op, *matrices)[0],
    "QR": _qr,
    "LU": _lu,
    "Schur": _schur,
    "QZ": _qz,
    # Sylvester's equation of matrices in Schur form.
    "TRSYL": lambda op, *matrices: Sylvester()(*matrices),
    "LUFactorTridiagonal": lambda op, dl, d, du: tuple(
        TridiagonalFactor()(dl, d, du, pt.maximum(d.shape[d.type.ndim - 1] - 2, 0))
    ),
    "SolveLUFactorTridiagonal": lambda op, *factors_and_b: pt.linalg.tridiagonal_lu_solve(
        factors_and_b[:-1], factors_and_b[-1], b_ndim=op.b_ndim, transposed=op.transposed
    ),
    "MatrixInverse": "linalg.inv",
    "MatrixPinv": "linalg.pinv hermitian",
    "Det": "linalg.det",
    "SLogDet": "linalg.slogdet",
    "Eig": "linalg.eig",
    "SVD": "linalg.svd full_matrices compute_uv",
    "LUFactor": "linalg.lu_factor",
    "PivotToPermutations": "linalg.pivot_to_permutation inverse",
    "Expm": "linalg.expm",
    "BlockDiagonal": "linalg.block_diag",
    "KroneckerProduct": "linalg.kron",
    "TensorInv": "linalg.tensorinv ind",
    "TensorSolve": "linalg.tensorsolve axes",
}
calls(_BATCHED, "pytensor.tensor")
