# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of C functions by ScalarBuilder: the C library, SciPy's special functions, and scalar kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

_DOUBLE = np.dtype("float64")


class CallMixin:
    """Functions that are neither arithmetic nor in the math dialect."""

    def fma(self: Any, x: Any, y: Any, z: Any) -> Any:
        """x * y + z of float32 or float64, rounded once."""
        return self.op("math.fma", x.dtype, x, y, z)

    def external(self: Any, symbol: str, *xs: Any) -> Any:
        """A pure function ``double symbol(double, ...)``, for operands and a result of any float dtype.

        Args:
            symbol: a name that `graphc_runtime.symbols` resolves, such as ``special_d_erfcx``, or that of a
                scalar kernel (`graphc.kernels.scalars`), such as ``graphc_scalar.zeta``.
            xs: operands of one dtype.
        """
        return self.cast(self.call(symbol, *(self.cast(x, _DOUBLE) for x in xs)), xs[0].dtype)

    def call(self: Any, symbol: str, *xs: Any) -> Any:
        """A pure C function whose operands and result have one dtype."""
        dtype = xs[0].dtype
        self._declare(symbol, dtype, len(xs))
        return self.op("func.call", dtype, *xs, callee=self.ir.FlatSymbolRefAttr.get(symbol))

    def _declare(self: Any, symbol: str, dtype: np.dtype, arity: int) -> None:
        """Declares a function in the module around the insertion point, where it is not."""
        module = self.ir.InsertionPoint.current.block.owner
        while module.parent is not None:
            module = module.parent
        block = module.regions[0].blocks[0]
        for op in block.operations:
            attributes = op.operation.attributes
            if "sym_name" in attributes and self.ir.StringAttr(attributes["sym_name"]).value == symbol:
                return
        kind = self.type(dtype)
        operands = ", ".join([str(kind)] * arity)
        text = f"func.func private @{symbol}({operands}) -> {kind} attributes {{llvm.readnone}}"
        self.ir.InsertionPoint.at_block_begin(block).insert(self.ir.Operation.parse(text))
