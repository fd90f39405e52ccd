# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Evaluates operations whose operands are literals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphc.ir.references import evaluate
from graphc.ir.rewrite import Rewriter, apply_rules, is_tensor, tensor_type
from graphc.ir.traits import SIZES
from graphc.ir.views import TAKES_ROW
from graphc.passes import Pass
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir


@record()
class ConstantFolding(Pass):
    """Replaces graphc operations on literals by their value.

    The value is computed by the operation's NumPy reference, so folding and execution agree up to the
    rounding of the mathematical functions, and the dtype is kept exactly. An operation whose reference
    raises (an index out of bounds, a wrong element count) is left alone: it raises when the program runs.
    Index arithmetic is folded by upstream's canonicalize.

    Options:
        max-elements: largest operand and result that is folded. Larger literals would bloat the program and
            the cache key; they stay operations (`broadcast_to` of a scalar, say).

    Source: PyTensor's `constant_folding`.
    """

    stage = "graph"
    max_elements: int = 64

    def run(self, module: ir.Module) -> None:
        apply_rules(module, {"*": [self._folded]}, self.count)

    def _folded(self, rewriter: Rewriter, op: ir.Operation) -> ir.Value | None:
        if not op.name.startswith("graphc.") or op.name in TAKES_ROW or not len(op.results):
            return None
        values = []
        for operand in op.operands:
            value = rewriter.constant(operand)
            if value is None or (isinstance(value, np.ndarray) and value.size > self.max_elements):
                return None
            values.append(value)
        if not values or not is_tensor(op.results[0]) or not self._is_small(rewriter, op):
            return None
        element_type = op.results[0].type.element_type
        try:
            result = evaluate(op, values, rewriter.dtype(op.results[0]))
        except (ValueError, IndexError, ArithmeticError, NotImplementedError):
            return None
        if result.size > self.max_elements:
            return None
        return rewriter.literal(result, tensor_type(result.shape, element_type))

    def _is_small(self, rewriter: Rewriter, op: ir.Operation) -> bool:
        """True if the result is known to be small before it is computed; elementwise ones nearly are."""
        rule = SIZES.get(op.name)
        count = 1
        for known, equal in zip(op.results[0].type.shape, rule(op) if rule else (), strict=False):
            if known < 0 and equal:
                x, axis = equal[0]
                known = rewriter.constant(x) if axis < 0 else x.type.shape[axis]
            count *= known
            if known < 0:
                return False
        return count <= self.max_elements
