# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise rows: the real branches of Lambert's W function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.ops.external import register_kernel
from graphc.ops.math import exp

if TYPE_CHECKING:
    from graphc.graph.tensor.variable import TensorVariable


def _slope(x: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
    return g * exp(-out) / (1 + out)


register_kernel(
    "lambertw0",
    "The w with w exp(w) = x that is at least -1, for x from -1/e on; NaN elsewhere.",
    1,
    grad=(_slope,),
)
register_kernel(
    "lambertw1",
    "The w with w exp(w) = x that is at most -1, for x from -1/e to 0; NaN elsewhere.",
    1,
    grad=(_slope,),
)
