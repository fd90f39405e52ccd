# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Windows over the last two axes: maxima, sums, and convolutions with their two adjoints, of which each is
the derivative of the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphc.graph.basic import Apply, Maybe, Variable, Variables, only
from graphc.graph.op import multilinear
from graphc.ops.counting import Gather, Scatter
from graphc.ops.create import zeros as zeros_
from graphc.ops.kernel import KernelOp
from graphc.ops.shape import size_of, sizes_of
from graphc.ops.shaping import reshape
from graphc.ops.table.arithmetic import promote


class _Convolution(KernelOp):
    """Base of three ops that are linear in both of their operands.

    Args:
        stride: steps of the filter along both axes.
        pad: zeros before the image along both axes; how many are after it follows from the sizes.
        dilation: distances of the elements of the filter along both axes.
        groups: how many groups the channels of image and result are divided into.
    """

    __props__ = ("stride_h", "stride_w", "pad_h", "pad_w", "dilation_h", "dilation_w", "groups")
    depends_on = (0, 1)

    def __init__(
        self,
        stride: tuple[int, int] = (1, 1),
        pad: tuple[int, int] = (0, 0),
        dilation: tuple[int, int] = (1, 1),
        groups: int = 1,
    ) -> None:
        self.stride_h, self.stride_w = stride
        self.pad_h, self.pad_w = pad
        self.dilation_h, self.dilation_w = dilation
        self.groups = groups

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        common = promote(*map(np.dtype, given)).name
        dtype = {"float16": "float32"}.get(common, common)
        if dtype not in ("float32", "float64", "complex64", "complex128"):
            dtype = "float64"
        return [dtype, dtype], [dtype]

    def _with(
        self, kind: type[_Convolution], x: Variable, y: Variable, sizes_from: Variable, ndim: int
    ) -> Variable:
        """Another op of the three with the same attributes, whose result has the last sizes of a variable."""
        op = kind(
            (self.stride_h, self.stride_w),
            (self.pad_h, self.pad_w),
            (self.dilation_h, self.dilation_w),
            self.groups,
        )
        rank = sizes_from.type.ndim
        return op(x, y, *(size_of(sizes_from, axis) for axis in range(rank - ndim, rank)))

    def _adjoints(self, x: Variable, y: Variable, g: Variable) -> list[Variable]:
        """Gradients of both operands from that of the result."""
        raise NotImplementedError

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (x, y, *sizes), g = inputs, only(cotangents)
        return [*self._adjoints(x, y, g), *[None] * len(sizes)]

    pushforward = multilinear


class Conv2d(_Convolution):
    """Cross-correlation of images (n, c, h, w) with filters (o, c / groups, p, q): (n, o, r, s).

    Takes images, filters, r and s. Source: im2col of Chellapilla, Puri and Simard (2006).
    """

    kernel = "conv2d"

    def _adjoints(self, x: Variable, f: Variable, g: Variable) -> list[Variable]:
        return [self._with(Conv2dInput, g, f, x, 3), self._with(Conv2dFilters, x, g, f, 3)]


class Conv2dInput(_Convolution):
    """Adjoint of `Conv2d` in the images, which is transposed convolution.

    Takes (n, o, r, s), filters (o, c / groups, p, q), c, h and w; the result is (n, c, h, w).
    """

    kernel = "conv2d_input"

    def _adjoints(self, x: Variable, f: Variable, g: Variable) -> list[Variable]:
        return [self._with(Conv2d, g, f, x, 2), self._with(Conv2dFilters, g, x, f, 3)]


class Conv2dFilters(_Convolution):
    """Adjoint of `Conv2d` in the filters.

    Takes images (n, c, h, w), (n, o, r, s), and the sizes c / groups, p and q of the result, which is
    (o, c / groups, p, q).
    """

    kernel = "conv2d_filters"

    def _adjoints(self, x: Variable, y: Variable, g: Variable) -> list[Variable]:
        return [self._with(Conv2dInput, y, g, x, 3), self._with(Conv2d, x, g, y, 2)]


class _Windows(KernelOp):
    """Base.

    Args:
        window: sizes of the windows along both axes.
        stride: steps of the windows.
        pad: how far the first window begins before the matrix, less than its size.
    """

    __props__ = ("window_h", "window_w", "stride_h", "stride_w", "pad_h", "pad_w")
    depends_on = (0,)

    def __init__(self, window: tuple[int, int], stride: tuple[int, int], pad: tuple[int, int]) -> None:
        self.window_h, self.window_w = window
        self.stride_h, self.stride_w = stride
        self.pad_h, self.pad_w = pad

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return given, given


class MaxPool(_Windows):
    """Maxima of windows (NaN counts as largest), and their positions in the flattened matrix.

    Takes (..., h, w) and the numbers r, s of windows along both axes; of equal elements the first counts.
    """

    kernel = "max_pool"

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        if np.dtype(given[0]).kind == "c":
            raise TypeError(f"max_pool needs numbers that can be compared, got {given[0]}")
        return given, [given[0], "int64"]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True, False], *[[False, False]] * (len(node.inputs) - 1)]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        g, (x, *sizes) = only(cotangents), inputs
        *batch, h, w = sizes_of(x)
        zeros = zeros_([*batch, h * w], dtype=x.type.dtype)
        spread = Scatter("add")(zeros, _flat(g), _flat(outputs[1]))
        return [reshape(spread, [*batch, h, w]), *[None] * len(sizes)]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        picked = Gather()(_flat(only(tangents)), _flat(outputs[1]))
        return [reshape(picked, sizes_of(outputs[1])), None]


def _flat(x: Variable) -> Variable:
    """With the last two axes as one."""
    *batch, h, w = sizes_of(x)
    return reshape(x, [*batch, h * w])


class _LinearWindows(_Windows):
    """Base of two ops of which each is the adjoint of the other."""

    def _adjoint(self) -> type[_Windows]:
        raise NotImplementedError

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        g, (x, *sizes) = only(cotangents), inputs
        settings = (self.window_h, self.window_w), (self.stride_h, self.stride_w), (self.pad_h, self.pad_w)
        back: Variable = self._adjoint()(*settings)(g, *sizes_of(x)[-2:])
        return [back, *[None] * len(sizes)]

    pushforward = multilinear


class WindowSum(_LinearWindows):
    """Sums of windows; takes (..., h, w) and the numbers r, s of windows along both axes."""

    kernel = "window_sum"

    def _adjoint(self) -> type[_Windows]:
        return WindowSpread


class WindowSpread(_LinearWindows):
    """Adjoint of `WindowSum`; takes (..., r, s) and the sizes h, w."""

    kernel = "window_spread"

    def _adjoint(self) -> type[_Windows]:
        return WindowSum
