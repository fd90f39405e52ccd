# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of operations on core arrays; it needs no MLIR.

A signature is that of a NumPy gufunc: `(m,n),(n,k)->(m,k)`. All operands have the same leading dimensions.
Sizes of results that no operand has are given as further operands of index type.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

Core = tuple[str, ...]


@dataclass(frozen=True)
class Signature:
    """Core dimensions of operands and results by name.

    Attributes:
        operands: dimensions of each operand.
        results: dimensions of each result.
        dims: all names in order of appearance.
        given: those that only results have.
    """

    operands: tuple[Core, ...]
    results: tuple[Core, ...]

    @classmethod
    def parse(cls, text: str) -> Signature:
        """From a gufunc's signature."""
        sides = [
            tuple(tuple(filter(None, core.split(","))) for core in re.findall(r"\(([^)]*)\)", side))
            for side in text.replace(" ", "").split("->")
        ]
        return cls(sides[0], sides[1])

    @property
    def dims(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(dim for core in (*self.operands, *self.results) for dim in core))

    @property
    def given(self) -> tuple[str, ...]:
        known = {dim for core in self.operands for dim in core}
        return tuple(dim for dim in self.dims if dim not in known)

    def place(self, dim: str) -> tuple[int, int] | None:
        """First operand with a core dimension, and its position there counted from the end (negative)."""
        for number, core in enumerate(self.operands):
            if dim in core:
                return number, core.index(dim) - len(core)
        return None


SIGNATURES: dict[str, Signature] = {}
DOCS: dict[str, str] = {}


def _add(name: str, signature: str, doc: str) -> None:
    SIGNATURES[name] = Signature.parse(signature)
    DOCS[name] = doc


_add("cholesky", "(n,n)->(n,n)", "Cholesky factor of a symmetric positive definite matrix.")
_add(
    "cholesky_pullback",
    "(n,n),(n,n)->(n,n)",
    "Cotangent of a symmetric matrix from its lower factor and the cotangent of that.",
)
_add("solve_triangular", "(n,n),(n,k)->(n,k)", "Solution of a triangular system.")
_add("solve", "(n,n),(n,k)->(n,k)", "Solution of a linear system.")
_add(
    "solve_banded", "(p,n),(n,k)->(n,k)", "Solution of a banded system; row i of the bands is diagonal u - i."
)
_add("lu_factor", "(m,n)->(m,n),(k)", "LU factors in one matrix, and the row exchanges.")
_add("det", "(n,n)->()", "Determinant.")
_add("slogdet", "(n,n)->(),()", "Sign and logarithm of the absolute value of the determinant.")
_add("inv", "(n,n)->(n,n)", "Inverse.")
_add("pivot_to_permutation", "(k)->(m)", "The permutation of m rows that exchanges make.")
_add(
    "permute_rows", "(n,k),(n)->(n,k)", "Rows in another order: out[i] = x[order[i]], or the inverse of that."
)
_add("qr", "(m,n)->(m,k),(k,n)", "Orthonormal and upper triangular factor.")
_add("qr_r", "(m,n)->(k,n)", "Upper triangular factor of the QR decomposition.")
_add("qr_raw", "(m,n)->(n,m),(k)", "Householder reflectors and their factors, as LAPACK leaves them.")
_add("eigh", "(n,n)->(n),(n,n)", "Eigenvalues, ascending, and eigenvectors of a Hermitian matrix.")
_add("eigvalsh", "(n,n)->(n)", "Eigenvalues of a Hermitian matrix, ascending.")
_add("eig", "(n,n)->(n),(n,n)", "Eigenvalues and right eigenvectors.")
_add("svd", "(m,n)->(m,k),(k),(k,n)", "Singular value decomposition.")
_add("svd_full", "(m,n)->(m,m),(k),(n,n)", "Singular value decomposition with square unitary factors.")
_add("singular_values", "(m,n)->(k)", "Singular values, descending.")
_add(
    "pinv",
    "(m,n),()->(n,m)",
    "Pseudo-inverse; singular values up to the second operand times the largest count as 0.",
)
_add("expm", "(n,n)->(n,n)", "Matrix exponential.")
_add("sylvester", "(m,m),(n,n),(m,n)->(m,n)", "Solution X of A X + X B = C.")
_add("qr_pivoted", "(m,n)->(m,k),(k,n),(n)", "QR decomposition of a[:, order], and the order.")
_add(
    "schur", "(n,n)->(n,n),(n,n)", "Schur form and its unitary vectors; `sort`: which eigenvalues come first."
)
_add("sqrtm", "(n,n)->(n,n)", "Square root of a complex matrix.")
_add("logm", "(n,n)->(n,n)", "Logarithm of a complex matrix.")
_add("cholesky_banded", "(p,n)->(p,n)", "Bands of the Cholesky factor of a banded positive definite matrix.")
_add(
    "cholesky_banded_pullback",
    "(p,n),(p,n)->(p,n)",
    "Cotangent of the bands from that of the factor's bands.",
)
_add(
    "tridiagonal_factor",
    "(p),(n),(p)->(p),(n),(p),(q),(n)",
    "LU factors of a tridiagonal matrix, as LAPACK leaves them.",
)
_add(
    "tridiagonal_solve",
    "(p),(n),(p),(q),(n),(n,k)->(n,k)",
    "Solution of a system by the factors of a tridiagonal matrix.",
)
_add("sort", "(n)->(n)", "Elements in ascending order, NaN last.")
_add("argsort", "(n)->(n)", "Positions that sort the elements; equal ones stay in their order.")
_add("partition", "(n),(k)->(n)", "Elements with those of the ranks `k` in their sorted places.")
_add("argpartition", "(n),(k)->(n)", "Positions of what `partition` returns.")
_add("searchsorted", "(n),(k)->(k)", "Where values go in a sorted array; `right`: after equal ones.")
_add("flatnonzero", "(n)->(k)", "Positions of the true elements, of which there are k.")
_add("compress", "(n),(n)->(k)", "The elements where a mask is true, of which there are k.")
_add("repeat_positions", "(n)->(k)", "Every position as often as it says; k in all.")
_add("repeat_length", "(n)->()", "The sum of numbers that are not negative.")
_add("gather", "(n),(k)->(k)", "Elements at positions, which are different in each core array.")
_add("scatter", "(n),(k),(k)->(n)", "x with y put at positions; `kind`: set, add, multiply, max, min.")
_add("conv2d", "(n,c,h,w),(o,d,p,q)->(n,o,r,s)", "Cross-correlation of images with filters; d = c / groups.")
_add("conv2d_input", "(n,o,r,s),(o,d,p,q)->(n,c,h,w)", "Adjoint of conv2d in the images.")
_add("conv2d_filters", "(n,c,h,w),(n,o,r,s)->(o,d,p,q)", "Adjoint of conv2d in the filters.")
_add("max_pool", "(h,w)->(r,s),(r,s)", "Maxima of windows of a matrix, and where in it they are.")
_add("window_sum", "(h,w)->(r,s)", "Sums of windows of a matrix.")
_add("window_spread", "(r,s)->(h,w)", "Adjoint of window_sum.")
_add(
    "arg_extreme", "(n)->()", "Position of the first largest element, or with `smallest` smallest; NaN wins."
)
_add("topk", "(n)->(k),(k)", "The k largest elements, or with `smallest` smallest, and their positions.")
_add("contained", "(n),(k)->(n)", "Which elements occur in a sorted array.")
_add("count_true", "(n)->()", "Number of true elements.")
_add("bin_length", "(n)->()", "The largest number plus 1, of numbers that are not negative.")
_add("count_bins", "(n)->(k)", "How often each number below k occurs.")
_add("sum_bins", "(n),(n)->(k)", "For each number below k, the sum of its weights.")
_add("histogram", "(n),(k),()->(k)", "Elements in each bin: left edges, last edge; `uniform`: equal widths.")
_add("weighted_histogram", "(n),(n),(k),()->(k)", "The same with sums of weights.")
_add("fft", "(b,n),(t)->(b,n)", "Discrete Fourier transform of rows; a table of roots of unity is given.")
_add("fft_any", "(b,n),(t)->(b,n)", "As fft, of any size.")
_add("fft_columns", "(b,n,c),(t)->(b,n,c)", "Discrete Fourier transform of the columns of matrices.")
_add("rfft", "(b,n),(t)->(b,k)", "Transform of real rows: the k = n // 2 + 1 frequencies from 0 on.")
_add("rfft_any", "(b,n),(t)->(b,k)", "As rfft, of any size.")
_add("irfft", "(b,k),(t)->(b,n)", "Inverse of rfft, times n.")
_add("irfft_any", "(b,k),(t)->(b,n)", "As irfft, of any size.")
_add("fft_table", "(),()->(t)", "Roots of unity for transforms of n numbers, n the second operand.")
_add("running", "(n)->(n)", "Running sum, product, maximum or minimum (`kind`); `reverse`: from the end.")
_add(
    "csr_product",
    "(z),(z),(p),(k,n)->(m,n)",
    "Product of compressed rows (values, columns, starts) and a matrix.",
)
_add(
    "csr_partial_product",
    "(z),(z),(p),(k,n)->(q,m,n)",
    "Products of the transpose of q groups of compressed rows and a matrix.",
)
_add(
    "csr_sampled_product",
    "(z),(p),(m,n),(k,n)->(z)",
    "The elements of a b^T at the places of compressed rows.",
)
