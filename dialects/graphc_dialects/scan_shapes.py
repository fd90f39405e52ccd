# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes of a scan's results, computed outside of its body."""

from typing import Any

from graphc_dialects._base import add_index, const_index, dim_of
from graphc_dialects._mlir import ir
from graphc_dialects.conditional_shapes import (
    CONDITIONALS,
    conditional_size,
    may_run_anywhere,
    origin,
    results_of_regions,
    same_size,
)
from graphc_dialects.conditional_shapes import UnknownSize as UnknownSize
from graphc_dialects.scan_verify import carry_of, declarations, is_state
from graphc_dialects.walk import is_inside, walk


def trace_size(trace: Any, axis: int) -> Any:
    """Index value with the size of a `scan_trace` along an axis, at the current insertion point.

    Raises:
        UnknownSize: the shape of a row depends on the iteration.
    """
    scan = trace.operands[0].owner
    declaration = declarations(scan)[ir.StringAttr(trace.attributes["state"]).value]
    if axis:
        if is_state(declaration):
            return dim_of(declaration.operands[0], axis)
        return outside_size(scan, declaration.operands[0], axis - 1)
    keep = ir.StringAttr(declaration.attributes["keep"]).value
    if keep == "last":
        return const_index(ir.IntegerAttr(declaration.attributes["rows"]).value)
    steps = steps_of(scan)
    if keep == "all" and is_state(declaration):
        steps = add_index(steps, const_index(-next(iter(declaration.attributes["taps"]))))
    return steps


def steps_of(scan: Any) -> Any:
    """Number of iterations that a scan runs; its bound unless a condition can end it."""
    end = scan.regions[0].blocks[0].operations[-1]
    if not len(end.operands):
        return scan.operands[0]
    return ir.Operation.create("graphc.scan_steps", [ir.IndexType.get()], [scan.results[0]]).result


def outside_size(scan: Any, value: Any, axis: int) -> Any:
    """The size of a value of the body, from values outside of it.

    Raises:
        UnknownSize: it depends on the iteration.
    """
    return Outside(scan).size(value, axis)


class Outside:
    """Copies index code out of the body of one scan, to the insertion point of each call.

    Args:
        scan: the operation.
    """

    def __init__(self, scan: Any) -> None:
        self._scan = scan.operation
        self._memo: dict[Any, Any] = {}
        self._anywhere = False

    def size(self, value: Any, axis: int) -> Any:
        """The size of a value of the body along an axis."""
        size = value.type.shape[axis]
        if size >= 0:
            return const_index(size)
        if not is_inside(value, self._scan):
            return dim_of(value, axis)
        op = value.owner
        if op.name == "graphc.scan_seq":
            return self.size(op.operands[0], axis + 1)
        if op.name == "graphc.scan_prev":
            return self.size(carry_of(op).operands[0], axis + 1)
        if op.name == "tensor.cast":
            return self.size(op.operands[0], axis)
        if op.name not in CONDITIONALS and not op.name.startswith("graphc."):
            raise UnknownSize(f"the shape of a row is computed by {op.name}, which does not tell it")
        # The rule is asked for inside, where its operands are visible; what it builds there is copied out.
        with ir.InsertionPoint(op):
            if op.name in CONDITIONALS:
                inside = conditional_size(value, axis)
            else:
                inside = op.opview.reify(axis, value.result_number)
        return self.copy(inside)

    def copy(self, value: Any) -> Any:
        """A value of the body, computed again at the current insertion point."""
        if not is_inside(value, self._scan):
            return value
        if value not in self._memo:
            self._memo[value] = self._copy(value)
        return self._memo[value]

    def _copy(self, value: Any) -> Any:
        op = value.owner
        if isinstance(op, ir.Block) or op.name in ("graphc.scan_seq", "graphc.scan_prev"):
            # Printing the value would verify and number the whole module, and most callers catch this.
            what = "the step" if isinstance(op, ir.Block) else op.name
            raise UnknownSize(f"the shape of a row depends on the iteration, through {what}")
        op = op.operation
        if op.name == "tensor.dim":
            position = op.operands[1].owner
            if not isinstance(position, ir.Block) and position.name == "arith.constant":
                return self.size(op.operands[0], ir.IntegerAttr(position.attributes["value"]).value)
        if op.name in ("arith.select", "scf.if") and (size := self._either(value)) is not None:
            return size
        if self._anywhere and not may_run_anywhere(op):
            raise UnknownSize(f"the size of a result of scf.if depends on {op.name}")
        if len(op.regions) and op.name != "scf.if":
            raise UnknownSize(f"the shape of a row depends on an inner loop: {op.name}")
        # With a region, also what it captures from the body.
        captured = {
            x: self.copy(x)
            for inner in [op, *walk(op)]
            for x in inner.operands
            if is_inside(x, self._scan) and (inner == op or not is_inside(x, op))
        }
        new = op.clone().operation
        for inner in [new, *walk(new)]:
            for position, operand in enumerate(inner.operands):
                if operand in captured:
                    inner.operands[position] = captured[operand]
        return new.results[value.result_number if hasattr(value, "result_number") else 0]

    def _either(self, value: Any) -> Any:
        """The size that a condition decides about; None unless it is one size either way.

        So the condition may depend on the iteration. What runs in one region only must be unable to fail.
        """
        op = value.owner.operation
        is_select, before = op.name == "arith.select", self._anywhere
        sizes = list(op.operands)[1:] if is_select else results_of_regions(op, value.result_number)
        self._anywhere = before or not is_select
        try:
            one, *others = (origin(self.copy(x)) for x in sizes)
        except UnknownSize:
            return None
        finally:
            self._anywhere = before
        return one if all(same_size(one, other) for other in others) else None
