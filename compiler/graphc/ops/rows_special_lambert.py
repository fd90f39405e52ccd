# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise rows: the real branches of Lambert's W function."""

from __future__ import annotations

from typing import Any

from graphc.ops.external import register_kernel
from graphc.public import pt


def _slope(x: Any, out: Any, g: Any) -> Any:
    return g * pt.exp(-out) / (1 + out)


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
