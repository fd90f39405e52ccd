# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Maxima and sums of windows over the last two axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphc.graph.basic import Apply, Maybe, Variable, Variables
from graphc.ops.create import zeros as zeros_
from graphc.ops.elementwise import is_discrete
from graphc.ops.kernel import KernelOp
from graphc.ops.scattering import Gather, Scatter
from graphc.ops.shaping import reshape
from graphc.ops.sizes import sizes_of


class _Windows(KernelOp):
    """Base.

    Args:
        window: sizes of the windows along both axes.
        stride: steps of the windows.
        pad: how far the first window begins before the matrix, less than its size.
    """

    __props__ = ("window_h", "window_w", "stride_h", "stride_w", "pad_h", "pad_w")

    def __init__(self, window: tuple[int, int], stride: tuple[int, int], pad: tuple[int, int]) -> None:
        self.window_h, self.window_w = window
        self.stride_h, self.stride_w = stride
        self.pad_h, self.pad_w = pad

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return given, given

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True] * len(node.outputs), *[[False] * len(node.outputs)] * (len(node.inputs) - 1)]


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
        g, (x, *sizes) = cotangents[0], inputs
        if g is None or is_discrete(x):
            return [None] * len(inputs)
        *batch, h, w = sizes_of(x)
        zeros = zeros_([*batch, h * w], dtype=x.type.dtype)
        spread = Scatter("add")(zeros, _flat(g), _flat(outputs[1]))
        return [reshape(spread, [*batch, h, w]), *[None] * len(sizes)]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        if tangents[0] is None or is_discrete(inputs[0]):
            return [None, None]
        picked = Gather()(_flat(tangents[0]), _flat(outputs[1]))
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
        (g,), (x, *sizes) = cotangents, inputs
        if g is None or is_discrete(x):
            return [None] * len(inputs)
        settings = (self.window_h, self.window_w), (self.stride_h, self.stride_w), (self.pad_h, self.pad_w)
        back: Variable = self._adjoint()(*settings)(g, *sizes_of(x)[-2:])
        return [back, *[None] * len(sizes)]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        if tangents[0] is None or is_discrete(inputs[0]):
            return [None]
        return [self(tangents[0], *inputs[1:])]


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
