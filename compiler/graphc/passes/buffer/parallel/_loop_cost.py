# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Estimates how long a loop runs, from the sizes that are known when it begins.

Times are picoseconds of vectorised code on one core, for double precision; they only have to tell work that
is worth waking a second core for from work that is not. A cost is a `Size` whose names are index values that
are known at run time only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from graphc.ir import build
from graphc.ir.helpers import callee_of
from graphc.ir.size import Size
from graphc.ir.value import as_index, built
from graphc.library.helpers import BlockProduct, Gemm, Helper
from graphc_dialects._mlir import ir

# Iterations of an inner loop whose bounds are only known inside.
_GUESS = 16
_MATH_DEFAULT = 1500
# Static sizes can make longer times than an index can hold: 50 days are enough.
_MOST = 2**62
_COSTS = {
    "memref.load": 100,
    "memref.store": 200,
    "arith.divf": 400,
    "arith.remf": 5000,
    "arith.divsi": 1500,
    "arith.divui": 1500,
    "arith.remsi": 1500,
    "arith.remui": 1500,
    "arith.constant": 0,
    "arith.index_cast": 0,
    "memref.dim": 0,
    "scf.yield": 0,
    "math.exp": 500,
    "math.log": 700,
    "math.sqrt": 400,
    "math.absf": 40,
    "math.floor": 80,
    "math.ceil": 80,
    "math.trunc": 80,
    "math.roundeven": 80,
    "math.copysign": 40,
    "math.fma": 40,
    "math.powf": 4000,
}
_ARITHMETIC = 40
# Calls are products of matrices.
_CALL, _MULTIPLY_ADD = 5_000, 40


def cost_value(cost: Size) -> ir.Value:
    """A cost as an index value, at the insertion point."""
    terms = {product: min(count, _MOST) for product, count in cost.terms.items()}
    return built(Size(min(cost.constant, _MOST), terms))


def _repeated(cost: Size, count: ir.Value | int) -> Size:
    """The cost of `count` repetitions."""
    return cost * count if isinstance(count, int) else Size.of(cost_value(cost) * count)


def unit_cost(loop: ir.Operation, helpers: Mapping[str, Helper]) -> Size:
    """The cost of a step of 1 of the loop's variable; index code is made at the insertion point.

    Args:
        loop: an `scf.for` after the insertion point.
        helpers: by name, what the module declares.
    """
    return _Estimate(loop, helpers).unit(loop)


class _Estimate:
    """Estimates loops inside `outer`; what is defined in `outer` is unknown before it."""

    def __init__(self, outer: ir.Operation, helpers: Mapping[str, Helper]) -> None:
        self._outer, self._helpers = outer, helpers
        self._outside: dict[ir.Block, bool] = {}

    def unit(self, loop: ir.Operation) -> Size:
        block = loop.regions[0].blocks[0]
        step = build.constant_value(loop.operands[2]) or 1
        total, blocks = self._block(block, block.arguments[0])
        cost = Size(-(-total.constant // step))
        for product, count in total.terms.items():
            part = cost_value(Size(0, {product: count}))
            cost += Size.of(part // step)
        return cost + blocks

    def _block(self, block: ir.Block, variable: ir.Value) -> tuple[Size, Size]:
        """Size of an iteration, and of the loops over the `step` positions that it stands for."""
        total, blocks = Size(), Size()
        for op in [op.operation for op in block.operations]:
            if op.name == "scf.for":
                if op.operands[0] == variable:
                    blocks = blocks + self.unit(op)
                else:
                    total = total + _repeated(self.unit(op), self._extent(op))
            elif len(op.regions):
                for region in op.regions:
                    for inner in region.blocks:
                        more, nested = self._block(inner, variable)
                        total, blocks = total + more, blocks + nested
            elif op.name == "func.call":
                total = total + self._call(op)
            else:
                total += _cost_of(op)
        return total, blocks

    def _call(self, call: ir.Operation) -> Size:
        helper = self._helpers.get(callee_of(call))
        if isinstance(helper, Gemm):
            return self._product(call)
        sizes = helper.sizes if isinstance(helper, BlockProduct) else ()
        return Size(_CALL + _MULTIPLY_ADD * math.prod(sizes))

    def _product(self, call: ir.Operation) -> Size:
        """A product of any sizes."""
        fixed, known, unknown = _CALL, _MULTIPLY_ADD, []
        for size in list(call.operands)[2:5]:
            number = build.constant_value(size)
            if number is not None:
                known *= number
            elif self._is_outside(size):
                unknown.append(build.create("arith.index_cast", [build.index_type()], [size]).result)
            else:
                known *= _GUESS
        if not unknown:
            return Size(fixed + known)
        total = as_index(known)
        for size in unknown:
            total = total * size
        return Size.of(total) + fixed

    def _extent(self, loop: ir.Operation) -> ir.Value | int:
        lower, upper = loop.operands[0], loop.operands[1]
        low, high = build.constant_value(lower), build.constant_value(upper)
        if low is not None and high is not None:
            return max(high - low, 0)
        if not (self._is_outside(lower) and self._is_outside(upper)):
            return self._width(lower, upper)
        return upper if low == 0 else upper - lower

    def _width(self, lower: ir.Value, upper: ir.Value) -> ir.Value | int:
        """The extent of a loop from `lower` to the minimum of `lower + width` and an end."""
        for least in minimum_of(upper):
            owner = least.owner
            if not isinstance(owner, ir.Block) and owner.name == "arith.addi" and lower in owner.operands:
                width = next(x for x in owner.operands if x != lower)
                if self._is_outside(width):
                    known = build.constant_value(width)
                    return width if known is None else known
        return _GUESS

    def _is_outside(self, value: ir.Value) -> bool:
        """True if a value is defined before the outer loop."""
        block = value.owner if isinstance(value.owner, ir.Block) else value.owner.operation.block
        known = self._outside.get(block)
        if known is None:
            parent: ir.Operation = block.owner.operation
            while parent != self._outer and parent.name not in ("func.func", "builtin.module"):
                parent = parent.parent.operation
            known = self._outside[block] = parent != self._outer
        return known


def minimum_of(value: ir.Value) -> list[ir.Value]:
    """The values that a value is the minimum of."""
    owner = value.owner
    is_minimum = not isinstance(owner, ir.Block) and owner.name == "arith.minsi"
    return list(owner.operands) if is_minimum else [value]


def _cost_of(op: ir.Operation) -> int:
    name = op.name
    if name in _COSTS:
        return _COSTS[name]
    return _MATH_DEFAULT if name.startswith("math.") else _ARITHMETIC
