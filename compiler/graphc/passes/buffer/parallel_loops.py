# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops whose iterations several cores can share become functions of a range."""

from __future__ import annotations

from graphc.ir import build
from graphc.ir.helpers import HELPER, attribute_of, callee_of, declared
from graphc.ir.walk import blocks_of, functions, walk
from graphc.library.helpers import Gemm, Helper, Split
from graphc.library.pool import THRESHOLD_PICOSECONDS
from graphc.passes import Pass
from graphc.passes.buffer.outline_loops import Captured, cost_value, is_independent, unit_cost
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# A range of a loop without inner loops begins at a multiple of this many iterations, so that the vectorised
# part of each range, and hence each result, is the same however the work is split.
_ALIGNMENT = 1024


@record()
class ParallelLoops(Pass):
    """Outlines independent `scf.for` loops of a function's block, so that several cores can share them.

    The body goes to a function `@graphc_body_<n>(lower, upper, captured...)`, and the loop becomes a call
    of `@graphc_split_<n>(lower, upper, cost, alignment, captured...)`, which `graphc.library.pool`
    defines: it calls the body once for the whole range where the work is small (the range times `cost`,
    picoseconds estimated from the sizes at run time, stays below 40 microseconds), and otherwise gives
    ranges to the threads of the pool. Memory is captured as a whole, and views of it are made again in the
    body, so that its arguments do not overlap.

    The function is `@graphc_split_products_<n>` where the body is a product of matrices of any size, one for
    each position in a batch: large ones are divided themselves.

    Left alone are loops that carry values, that contain checks, allocations or calls other than products of
    matrices, whose iterations may depend on each other, and those that are known to be short.

    Attributes:
        limit: outline at most this many loops, the first ones of the module: each takes LLVM some
            milliseconds.
    """

    limit: int = 32

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        helpers = declared(module)
        for function in functions(module):
            for block in function.regions[0].blocks:
                self._visit(module, helpers, block)

    def _visit(self, module: ir.Module, helpers: dict[str, Helper], block: ir.Block) -> None:
        for op in [op.operation for op in block.operations]:
            if op.name == "scf.if":
                for inner in blocks_of(op):
                    self._visit(module, helpers, inner)
            elif op.name == "scf.for" and self.statistics.get("split loops", 0) < self.limit:
                self._split(module, helpers, op)

    def _split(self, module: ir.Module, helpers: dict[str, Helper], loop: ir.Operation) -> None:
        if not is_independent(loop, helpers):
            return
        with ir.InsertionPoint(loop), loop.location:
            split = _Outlining(module, helpers, loop, self.statistics.get("split loops", 0))
            if split.is_worthwhile():
                split.outline()
                self.count("split loops")


class _Outlining:
    """Makes one loop a call; the insertion point is before it."""

    def __init__(
        self, module: ir.Module, helpers: dict[str, Helper], loop: ir.Operation, number: int
    ) -> None:
        self._module, self._helpers, self._loop, self._number = module, helpers, loop, number
        self._lower, self._upper, _ = loop.operands
        *self._bounds, self._constant_step = map(build.constant_value, loop.operands)

    def is_worthwhile(self) -> bool:
        """True if the loop may be long; makes the code of its cost."""
        step = self._constant_step
        if step is None:
            return False
        low, high = self._bounds
        extent = None if low is None or high is None else high - low
        if extent is not None and extent <= step:
            return False
        self._cost = unit_cost(self._loop, self._helpers)
        short = extent is not None and not self._cost.terms
        return not (short and self._cost.constant * (extent or 0) < THRESHOLD_PICOSECONDS)

    def outline(self) -> None:
        members = walk(self._loop)
        used = {x for op in members for x in op.operands}
        bounds = [x for x in (self._lower, self._upper) if x not in used]
        captured = Captured([self._loop, *members], without=bounds)
        values = captured.values
        index = build.index_type()
        types = [value.type for value in values]
        inside = [op.operation.name for op in self._loop.regions[0].blocks[0].operations]
        nested = "scf.for" in inside or "func.call" in inside
        step = self._constant_step or 1
        alignment = step if nested or step != 1 else _ALIGNMENT
        operands = [self._lower, self._upper, cost_value(self._cost), build.const_index(alignment), *values]
        called = [self._helpers.get(callee_of(op)) for op in members if op.name == "func.call"]
        split = Split(self._number, any(isinstance(helper, Gemm) for helper in called))
        build.call(split.symbol, [], operands)
        self._declare(split, [index] * 4 + types)
        body = self._define(split.body, [index] * 2 + types)
        lower, upper, *arguments = body.arguments
        with ir.InsertionPoint(body):
            end = build.create("func.return", [], [])
        self._loop.move_before(end)
        with ir.InsertionPoint(self._loop):
            captured.replace(arguments)
        self._loop.operands[0], self._loop.operands[1] = lower, upper

    def _declare(self, split: Split, types: list[ir.Type]) -> None:
        with ir.InsertionPoint.at_block_begin(self._module.body):
            self._function(split.symbol, types).attributes[HELPER] = attribute_of(split)

    def _define(self, name: str, types: list[ir.Type]) -> ir.Block:
        with ir.InsertionPoint(self._module.body):
            op = self._function(name, types)
        return ir.Block.create_at_start(op.regions[0], types)

    def _function(self, name: str, types: list[ir.Type]) -> ir.Operation:
        attributes = {
            "sym_name": ir.StringAttr.get(name),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [])),
            "sym_visibility": ir.StringAttr.get("private"),
        }
        return ir.Operation.create("func.func", attributes=attributes, regions=1)
