# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums and products of narrow floats are accumulated in wider ones."""

from __future__ import annotations

from math import prod

from graphc.ir.kinds import FOLDS, reduced_axes
from graphc.ir.rewrite import tensor_type
from graphc.ir.walk import walk_for
from graphc.passes import Pass
from graphc_dialects._mlir import ir

_WIDENED = ("_sum", "_prod")
# Sums of two numbers are rounded to the same one in any precision.
_FEW = 2


class WideSums(Pass):
    """Accumulates sums and products of narrow floats in wider ones.

    `reduce_sum` and `reduce_prod` of float16 are accumulated in float32, those of float32 in float64, those
    of complex64 in complex128. What is reduced is cast, and so is the result. Both casts become part of the
    loops around them. Thus the sum of 1e8, 1 and -1e8 is 1 in float32 as well, and partial products neither
    overflow nor underflow.

    Sums with the attribute `narrow` stay: those of softmax, whose terms have one sign, and products of
    vectors, which are as accurate as BLAS's. It runs late, so that rewrites see sums as the graph has them.

    Source: `acc_dtype` of PyTensor's `CAReduceDtype`.
    """

    stage = "graph"
    acts_on = frozenset(name for name in FOLDS if name.endswith(_WIDENED))

    def run(self, module: ir.Module) -> None:
        self.count("wide accumulators", sum(map(_widen, walk_for(module.operation, self.acts_on))))


def _widen(op: ir.Operation) -> bool:
    x, result = op.operands[0], op.results[0]
    wide = _wider(x.type.element_type)
    reduced = [x.type.shape[axis] for axis in reduced_axes(op)]
    if wide is None or "narrow" in op.attributes or (min(reduced, default=1) >= 0 and prod(reduced) <= _FEW):
        return False
    with ir.InsertionPoint(op), op.location:
        operand = ir.Operation.create("graphc.cast", [tensor_type(x.type.shape, wide)], [x]).result
        kind = tensor_type(result.type.shape, wide)
        total = ir.Operation.create(op.name, [kind], [operand], {"axes": op.attributes["axes"]}).result
        result.replace_all_uses_with(ir.Operation.create("graphc.cast", [result.type], [total]).result)
    op.erase()
    return True


def _wider(element: ir.Type) -> ir.Type | None:
    """The type that numbers are accumulated in; None for their own."""
    if isinstance(element, ir.ComplexType):
        part = _wider(element.element_type)
        return None if part is None else ir.ComplexType.get(part)
    if isinstance(element, ir.F16Type):
        return ir.F32Type.get()
    return ir.F64Type.get() if isinstance(element, ir.F32Type) else None
