# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of C functions by ScalarBuilder: the C library, SciPy's special functions, and scalar kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.ir.build import declare
from graphc.ir.helpers import declare_helper
from graphc.library.helpers import PURE, ScalarCall

if TYPE_CHECKING:
    from graphc.lowering.scalar import Scalar

# How rows of the elementwise table name scalar kernels.
_SCALAR = "graphc_scalar."
_DOUBLE = np.dtype("float64")


class CallMixin:
    """Functions that are neither arithmetic nor in the math dialect."""

    def fma(self: Any, x: Scalar, y: Scalar, z: Scalar) -> Scalar:
        """x * y + z of float32 or float64, rounded once."""
        return self.op("math.fma", x.dtype, x, y, z)

    def external(self: Any, symbol: str, *xs: Scalar) -> Scalar:
        """A pure function ``double symbol(double, ...)``, for operands and a result of any float dtype.

        Args:
            symbol: a name that `graphc_runtime.symbols` resolves, such as ``special_d_dawsn``, or that of a
                scalar kernel (`graphc.library.scalars.registry`), such as ``graphc_scalar.zeta``.
            xs: operands of one dtype.
        """
        return self.cast(self.call(symbol, *(self.cast(x, _DOUBLE) for x in xs)), xs[0].dtype)

    def call(self: Any, symbol: str, *xs: Scalar) -> Any:
        """A pure C function whose operands and result have one dtype."""
        dtype = xs[0].dtype
        kind = self.type(dtype)
        around = self.ir.InsertionPoint.current.block.owner
        scalar = symbol.removeprefix(_SCALAR)
        if scalar != symbol:
            whole = dtype.kind in "iu"
            declare_helper(around, ScalarCall(scalar, len(xs), whole), [kind] * len(xs), [kind])
        else:
            declare(around, symbol, [kind] * len(xs), [kind], PURE)
        return self.op("func.call", dtype, *xs, callee=self.ir.FlatSymbolRefAttr.get(symbol))
