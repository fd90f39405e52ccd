# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Evaluates operations whose operands are literals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.ir.references import evaluate
from graphc.ir.rewrite import Rewriter, is_tensor, tensor_type
from graphc.ir.views import GATHERS
from graphc.ir.walk import functions
from graphc.passes.manager.base import Pass

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir

_NOT_FOLDED = ("graphc.constant", "graphc.check", "graphc.scan", "graphc.random")


@dataclass
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
        for function in functions(module):
            rewriter = Rewriter(function, {"*": [self._fold]})
            rewriter.run()
            self.count("folded", sum(rewriter.counts.values()))

    def _fold(self, rewriter: Any, op: Any) -> Any:
        name = op.name
        if not name.startswith("graphc.") or name.startswith(_NOT_FOLDED):
            return None
        values = []
        for operand in op.operands:
            value = rewriter.constant(operand)
            if value is None or (isinstance(value, np.ndarray) and value.size > self.max_elements):
                return None
            values.append(value)
        if not values or not is_tensor(op.results[0]) or not self._is_small(op, values):
            return None
        element_type = op.results[0].type.element_type
        try:
            result = evaluate(op, values, rewriter.dtype(op.results[0]))
        except (ValueError, IndexError, ArithmeticError, NotImplementedError):
            return None
        if result.size > self.max_elements:
            return None
        return rewriter.literal(result, tensor_type(result.shape, element_type))

    def _is_small(self, op: ir.Operation, values: list[int | np.ndarray]) -> bool:
        """Whether the result is known to be small before it is computed."""
        sizes = [value for value in values if isinstance(value, int)]
        name = op.name
        if name in ("graphc.broadcast_to", "graphc.iota"):
            return all(size >= 0 for size in sizes) and int(np.prod(sizes, dtype=object)) <= self.max_elements
        if name == "graphc.matmul" or name in GATHERS:
            shape = op.results[0].type.shape
            return all(size >= 0 for size in shape) and int(np.prod(shape)) <= self.max_elements
        return True
