# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Discrete Fourier transforms of rows. `graphc.tensor.fft` has the functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphc.graph.basic import Apply, Flags, Maybe, Variable, Variables, only
from graphc.graph.op import multilinear, no_cotangents, no_tangents
from graphc.graph.tensor.convert import as_tensor_variable, constant
from graphc.ops.create import arange, zeros
from graphc.ops.join import stack
from graphc.ops.kernel import KernelOp
from graphc.ops.math import bitwise_or, cast, conj, eq, switch
from graphc.ops.reduce import prod
from graphc.ops.shape import known_size, size_of, sizes_of
from graphc.ops.shaping import reshape

if TYPE_CHECKING:
    from types import ModuleType

    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorConstant, TensorVariable


COMPLEX = {"float32": "complex64", "float64": "complex128"}
REAL = {complex_: real for real, complex_ in COMPLEX.items()}


def _library() -> ModuleType:
    """Plans and tables of transforms; loaded when a graph has a transform."""
    from graphc.library import fourier

    return fourier


def columns_table(n: TensorVariable, dtype: str) -> TensorConstant | None:
    """The roots of unity for transforms of columns of n numbers; None if stages do not do."""
    plan = _library()
    known = known_size(n)
    if not known or plan.largest_factor(known) > plan.LARGEST:
        return None
    return constant(plan.stages_table(known).astype(dtype))


def table(n: TensorVariable, dtype: str, real: bool) -> TensorVariable:
    """The roots of unity for transforms of n real or complex numbers: a constant if n is known."""
    known = known_size(n)
    if known is None:
        # Of the few kinds of algorithms, Bluestein's has the largest table.
        return FftTable(real)(zeros((), dtype=dtype), n, n * 40 + 1024)
    return constant(_library().table_of(known, real, dtype).astype(dtype))


def algorithm(n: TensorVariable, rows: TensorVariable, dtype: str, real: bool) -> tuple[bool, int, int]:
    """Algorithm for n numbers: whether a row fills the lanes of vectors, and the kernel's attributes.

    Args:
        n: size.
        rows: how many there are.
        dtype: of real and imaginary parts.
        real: whether the numbers are real.
    """
    plan = _library()
    known = known_size(n)
    if not known:
        return False, plan.ANY, 31
    widest = 8 if dtype == "float32" else 4
    mode = (plan.real_mode if real else plan.complex_mode)(known, widest)
    if mode == plan.LANES and not real and known_size(rows) == 1:
        mode = plan.ALONE
    return mode in (plan.ROW_4, plan.ROW_8), mode, plan.radices_of(known)


class FftTable(KernelOp):
    """The table for transforms of n numbers, from a 0-d float of the precision wanted, n, and its size.

    Args:
        real: of real numbers.
    """

    kernel = "fft_table"
    dtype_rule = "0 int64 -> 0"
    real: bool = False
    depends_on = ()

    pullback, pushforward = no_cotangents, no_tangents


class _Transform(KernelOp):
    """Base; operands are rows and the `table` of their size."""

    depends_on = (0,)

    pushforward = multilinear

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        return [self._back(inputs, only(cotangents)), *[None] * (len(inputs) - 1)]

    def _back(self, inputs: Variables, g: Variable) -> Variable:
        raise NotImplementedError

    def batch(self, node: Apply, inputs: Variables, batched: Flags, size: Variable | int) -> list[Variable]:
        """Rows of all batches are rows."""
        if any(batched[1:]):
            return super().batch(node, inputs, batched, size)
        *lead, n = sizes_of(inputs[0])
        out: Variable = self(reshape(inputs[0], [prod(stack(lead)), n]), *inputs[1:])
        return [reshape(out, [*lead, size_of(out, 1)])]


class Fft(_Transform):
    """Sums of ``x[j] * exp(-2 pi i j k / n)``, or of ``exp(+...)``; not divided by n.

    Args:
        inverse: the sign is +.
        mode, radices: see `algorithm`.
    """

    kernel = "fft"
    inverse: bool = False
    mode: int = 0
    radices: int = 31

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return [COMPLEX[given[1]], given[1]], [COMPLEX[given[1]]]

    def make_node(self, *inputs: TensorLike) -> Apply:
        """Of rows that may be several (batches of one, replacements) no kernel of one row is asked for."""
        plan, x = _library(), as_tensor_variable(inputs[0])
        if self.mode == plan.ALONE and x.type.shape[-2:-1] != (1,):
            return type(self)(self.inverse, plan.LANES, self.radices).make_node(x, *inputs[1:])
        return super().make_node(*inputs)

    def _back(self, inputs: Variables, g: Variable) -> Variable:
        # The matrix of the transform is symmetric.
        return self(g, inputs[1])


class FftAny(Fft):
    """`Fft` of sizes that are not known, or not multiples of the lanes of a vector."""

    kernel = "fft_any"


class FftColumns(_Transform):
    """`Fft` of the columns of matrices (b, n, c), of a size n whose prime factors are small.

    Args:
        inverse: the sign of the exponent is +.
        radices: see `algorithm`.
    """

    kernel = "fft_columns"
    inverse: bool = False
    radices: int = 31

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return [COMPLEX[given[1]], given[1]], [COMPLEX[given[1]]]

    def _back(self, inputs: Variables, g: Variable) -> Variable:
        return self(g, inputs[1])

    def batch(self, node: Apply, inputs: Variables, batched: Flags, size: Variable | int) -> list[Variable]:
        """Matrices of all batches are matrices."""
        if batched[1]:
            return KernelOp.batch(self, node, inputs, batched, size)
        *lead, n, c = sizes_of(inputs[0])
        out: Variable = self(reshape(inputs[0], [prod(stack(lead)), n, c]), inputs[1])
        return [reshape(out, [*lead, n, c])]


class Rfft(_Transform):
    """`Fft` of real rows of size n; takes n // 2 + 1 too, the number of frequencies that it returns.

    Args:
        mode, radices: see `algorithm`.
    """

    kernel = "rfft"
    mode: int = 0
    radices: int = 31

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return [given[1], given[1]], [COMPLEX[given[1]]]

    def _back(self, inputs: Variables, g: Variable) -> Variable:
        n = size_of(inputs[0], inputs[0].type.ndim - 1)
        back = (IrfftAny if isinstance(self, RfftAny) else Irfft)(self.mode, self.radices)
        return back(conj(g) * _weights(g, n, 0.5), inputs[1], n)


class RfftAny(Rfft):
    """`Rfft` of sizes that are not known, or not multiples of the lanes of a vector."""

    kernel = "rfft_any"


class Irfft(_Transform):
    """Inverse of `Rfft`, times n, of (b, n // 2 + 1); takes n too.

    Args:
        mode, radices: see `algorithm`.
    """

    kernel = "irfft"
    mode: int = 0
    radices: int = 31

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return [COMPLEX[given[1]], given[1]], [given[1]]

    def _back(self, inputs: Variables, g: Variable) -> Variable:
        x, roots, n = inputs
        back = (RfftAny if isinstance(self, IrfftAny) else Rfft)(self.mode, self.radices)
        out: Variable = back(g, roots, size_of(x, x.type.ndim - 1))
        return conj(out) * _weights(x, n, 2.0)


class IrfftAny(Irfft):
    """`Irfft` of sizes that are not known, or not multiples of the lanes of a vector."""

    kernel = "irfft_any"


def _weights(x: Variable, n: Variable, inside: float) -> Variable:
    """1 for the frequency 0 and that in the middle of an even size, another number for the others."""
    at = arange(size_of(x, x.type.ndim - 1))
    ends = bitwise_or(eq(at, 0), eq(2 * at, n))
    return cast(switch(ends, 1.0, inside), REAL[x.type.dtype])
