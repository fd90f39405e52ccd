# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Discrete Fourier transforms of rows. `graphc.tensor.fft` has the functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.graph.basic import Apply, Variable
from graphc.ops._pt import pt
from graphc.ops.kernel import KernelOp
from graphc.ops.sizes import known_size, size_of, sizes_of
from graphc.tensor.basic import constant

Variables = Sequence[Variable]
Maybe = Sequence[Variable | None]

COMPLEX = {"float32": "complex64", "float64": "complex128"}
REAL = {complex_: real for real, complex_ in COMPLEX.items()}
# Larger prime factors take another algorithm (see `graphc.kernels.fourier`).
_LARGEST = 61


def is_smooth(n: int) -> bool:
    """Whether all prime factors of a size are small."""
    for p in (2, *range(3, _LARGEST + 1, 2)):
        while n > 1 and n % p == 0:
            n //= p
    return n <= 1


def table(n: Any, dtype: str) -> Any:
    """The roots of unity: a constant if the size is known."""
    known = known_size(n)
    if known is None:
        return FftTable()(pt.zeros((), dtype=REAL[dtype]), n)
    # From angles up to pi / 4, so that the roots are symmetric.
    k = np.arange(known)
    octant, rest = np.divmod(8 * k, max(known, 1))
    odd = octant % 2 == 1
    angle = np.where(odd, known - rest, rest) * (np.pi / 4) / max(known, 1)
    c, s = np.cos(angle), np.sin(angle)
    first = np.where(odd, s, c) + 1j * np.where(odd, c, s)
    roots = first * np.array([1, 1j, -1, -1j])[octant // 2]
    return constant(np.conj(roots).astype(dtype))


class FftTable(KernelOp):
    """``exp(-2 pi i k / n)`` for k from 0 to n - 1, from a 0-d float of the precision wanted, and n."""

    kernel = "fft_table"

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return given, [COMPLEX[given[0]]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False], [False]]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        return [None, None]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        return [None]


class _Transform(KernelOp):
    """Base; operands are rows and the `table` of their size."""

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], *[[False]] * (len(node.inputs) - 1)]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        if tangents[0] is None:
            return [None]
        return [self(tangents[0], *inputs[1:])]  # type: ignore[list-item]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        rest = [None] * (len(inputs) - 1)
        return [None if cotangents[0] is None else self._back(inputs, cotangents[0]), *rest]

    def _back(self, inputs: Variables, g: Any) -> Variable:
        raise NotImplementedError

    def batch(self, node: Apply, inputs: Sequence[Any], batched: Sequence[bool], size: Any) -> list[Variable]:
        """Rows of all batches are rows."""
        if any(batched[1:]):
            return super().batch(node, inputs, batched, size)
        *lead, n = sizes_of(inputs[0])
        out: Any = self(pt.reshape(inputs[0], [pt.prod(pt.stack(lead)), n]), *inputs[1:])
        return [pt.reshape(out, [*lead, size_of(out, 1)])]


class Fft(_Transform):
    """Sums of ``x[j] * exp(-2 pi i j k / n)``, or of ``exp(+...)``; not divided by n.

    Args:
        inverse: the sign is +.
    """

    kernel = "fft"
    __props__ = ("inverse",)

    def __init__(self, inverse: bool = False) -> None:
        self.inverse = inverse

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return [given[1], given[1]], [given[1]]

    def _back(self, inputs: Variables, g: Any) -> Variable:
        # The matrix of the transform is symmetric.
        return self(g, inputs[1])  # type: ignore[return-value]


class FftAny(Fft):
    """`Fft` of sizes that are not known, or have large prime factors (Bluestein, 1970)."""

    kernel = "fft_any"


class Rfft(_Transform):
    """`Fft` of real rows of even size n; takes n / 2 + 1 too, the number of frequencies that it returns."""

    kernel = "rfft"

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return [REAL[given[1]], given[1]], [given[1]]

    def _back(self, inputs: Variables, g: Any) -> Variable:
        weights = _weights(g, 0.5)
        return Irfft()(pt.conj(g) * weights, inputs[1])  # type: ignore[operator, return-value]


class Irfft(_Transform):
    """Inverse of `Rfft`, times n, of (b, n / 2 + 1)."""

    kernel = "irfft"

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return [given[1], given[1]], [REAL[given[1]]]

    def _back(self, inputs: Variables, g: Any) -> Variable:
        x, roots = inputs
        return pt.conj(Rfft()(g, roots, size_of(x, x.type.ndim - 1))) * _weights(x, 2.0)  # type: ignore[attr-defined, operator]


def _weights(x: Any, inside: float) -> Any:
    """1 for the first and the last frequency, another number for those between."""
    k = size_of(x, x.type.ndim - 1)
    at = pt.arange(k)
    ends = pt.or_(pt.eq(at, 0), pt.eq(at, k - 1))
    return pt.cast(pt.switch(ends, 1.0, inside), REAL[x.type.dtype])
