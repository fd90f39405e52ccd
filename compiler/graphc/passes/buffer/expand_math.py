# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementary functions as arithmetic that vectorises."""

from __future__ import annotations

from typing import Any

from graphc.ir.diagnostics import fail
from graphc.ir.walk import walk_for
from graphc.lowering.math import Builder, expansions
from graphc.lowering.math.formats import F32, F64
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

_CALLABLE = frozenset(
    f"math.{name}" for name in "exp exp2 log log2 log10 tanh sinh cosh asin acos atan erf".split()
)


@record()
class ExpandMath(Pass):
    """Replaces elementary functions on f16, f32 and f64 values by branch-free arithmetic.

    A call of libm in a loop body keeps LLVM from vectorising the loop. The expansions consist of
    arithmetic, bit operations, selects and fused multiply-add only, without fast-math flags, and are
    accurate to 2 units in the last place with IEEE special values (docs/math.md has the table). f16 is
    computed in f32. Functions with no expansion stay calls; `graphc.backends.cpu.veclib` tells LLVM about
    vector variants of those in glibc's libmvec. Operands may be scalars or vectors.

    Attributes:
        keep: names of functions to leave as calls, separated by commas, such as `exp,log`.
        limit: above this number of expansions in a module, functions whose library calls are accurate stay
            calls: hundreds of inline copies would take LLVM seconds to compile.
    """

    keep: str = ""
    limit: int = 48

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        table = dict(expansions())
        for name in filter(None, self.keep.split(",")):
            if table.pop(f"math.{name}", None) is None:
                known = ", ".join(sorted(key.removeprefix("math.") for key in expansions()))
                fail(
                    module.operation,
                    f"option keep names '{name}', which has no expansion; these have: {known}",
                )
        found = walk_for(module.operation, table)
        if len(found) > self.limit:
            # expm1 and log1p are not among these: upstream lowers them to formulas that cancel near 0.
            self.count("left as calls", sum(op.name in _CALLABLE for op in found))
            found = [op for op in found if op.name not in _CALLABLE]
        for op in found:
            self._expand(op, table[op.name])

    def _expand(self, op: ir.Operation, expansion: Any) -> None:
        operand = op.operands[0]
        element = operand.type.element_type if isinstance(operand.type, ir.VectorType) else operand.type
        if not isinstance(element, (ir.F64Type, ir.F32Type, ir.F16Type)):
            return
        ip = ir.InsertionPoint(op)
        half = isinstance(element, ir.F16Type)
        wide = _with_element(operand.type, ir.F32Type.get()) if half else operand.type
        builder = Builder(ip, op.location, wide, F64 if isinstance(element, ir.F64Type) else F32)
        if half:
            operand = builder.create("arith.extf", wide, [operand])
        value = expansion(builder, builder.number(operand)).value
        if half:
            value = builder.create("arith.truncf", op.results[0].type, [value])
        op.results[0].replace_all_uses_with(value)
        op.erase()
        self.count(f"expanded {expansion.__name__}")


def _with_element(value_type: ir.Type, element: ir.Type) -> ir.Type:
    return ir.VectorType.get(value_type.shape, element) if isinstance(value_type, ir.VectorType) else element
