# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops: a region in which every state and output is declared, by name, by an operation of its own.

`keep` says which rows remain: "all" (initial rows and steps), "steps", or "last" with `rows = n`, the n most
recent ones; with `padded`, zeros that nobody reads stand for missing ones. What is neither sequence nor state
is captured from above. `scan_prev` names the index of its loop, so that nested loops cannot be confused.
"""

from collections.abc import Sequence
from typing import Any

from graphc_dialects._base import (
    Bit,
    Flag,
    Graphc,
    GraphcOp,
    Operation,
    Tensor,
    array,
    attribute_of,
    check_shape,
    dim_of,
    fail,
    shape_text,
)
from graphc_dialects._mlir import ext, ir
from graphc_dialects.check import Checking
from graphc_dialects.scan_shapes import trace_size
from graphc_dialects.scan_verify import carry_of, verify_scan, verify_trace

# The bindings make this class when the namespace is defined, so type checkers do not know it.
_Type: Any = Graphc.Type  # type: ignore[attr-defined]

KEEP = ("all", "steps", "last")


class LoopType(_Type, name="loop"):
    """The loop as a value, from which its results are taken."""


class ScanOp(Operation, name="scan", traits=[Checking]):
    """Runs its body for `t = 0..n-1` (or `n-1..0` with `reverse`).

    The body reads what is outside directly, declares states with `scan_carry` and per-iteration results with
    `scan_collect`, and ends with `scan_end`. It has no effect but the checks in its body.
    """

    n: ext.Operand[ir.IndexType]
    res: ext.Result[LoopType]
    body: ext.Region
    reverse: Flag

    def verify_invariants(self) -> bool:
        """Checks the body's block, and that states are declared once and read as declared."""
        return verify_scan(self)


class ScanSeqOp(GraphcOp, name="scan_seq", traits=[ext.Pure]):
    """Row `i` of `x`, along its first axis; `i` must be in range."""

    x: ext.Operand[Tensor]
    i: ext.Operand[ir.IndexType]
    res: ext.Result[Tensor]

    def verify_invariants(self) -> bool:
        """Checks the element type and that the result has the shape of a row."""
        if len(self.operands) != 2 or len(self.results) != 1:
            return fail(self, "expects 2 operands and 1 result")
        x, row = self.operands[0].type, self.results[0].type
        if type(x) is not ir.RankedTensorType or type(row) is not ir.RankedTensorType:
            return fail(self, f"reads a row of a ranked tensor, but is given {x} and gives {row}")
        if not len(x.shape):
            return fail(self, "cannot read rows of a scalar")
        if x.element_type != row.element_type:
            return fail(self, f"result element type must be {x.element_type}, but is {row.element_type}")
        return check_shape(self, list(row.shape), list(x.shape)[1:])

    def reify_dynamic(self, dim: int) -> Any:
        """The size of the next axis of x."""
        return dim_of(self.operands[0], dim + 1)


class ScanPrevOp(GraphcOp, name="scan_prev", traits=[ext.Pure]):
    """The row of a state from `-tap` iterations ago; `t` is the index of the scan it belongs to."""

    t: ext.Operand[ir.IndexType]
    state: ir.StringAttr
    tap: ir.IntegerAttr
    res: ext.Result[Tensor]

    def verify_invariants(self) -> bool:
        """Checks the attributes; the enclosing scan checks the rest."""
        if not isinstance(attribute_of(self, "state"), ir.StringAttr):
            return fail(self, "needs a string attribute 'state'")
        tap = attribute_of(self, "tap")
        if not isinstance(tap, ir.IntegerAttr) or tap.value >= 0:
            return fail(self, "needs a negative integer attribute 'tap'")
        if len(self.operands) != 1 or len(self.results) != 1:
            return fail(self, "expects 1 operand and 1 result")
        block = self.operands[0].owner
        if not isinstance(block, ir.Block) or block != self.operation.block:
            return fail(self, "its operand must be the index of the scan in whose body it is")
        if block.owner.name != "graphc.scan":
            return fail(self, "reads a state outside of a scan")
        return True

    def reify_dynamic(self, dim: int) -> Any:
        """The size of the state's initial rows."""
        return dim_of(carry_of(self).operands[0], dim + 1)


class ScanCarryOp(Operation, name="scan_carry"):
    """Declares a state: `initial` holds one row for each iteration the oldest tap reaches back, oldest first;
    the `next` values are written to the offsets `writes`.
    """

    initial: ext.Operand[Tensor]
    next: Sequence[ext.Operand[Tensor]]
    state: ir.StringAttr
    keep: ir.StringAttr

    def verify_invariants(self) -> bool:
        """Checks taps, writes, retention and types."""
        taps, writes = array(self, "taps"), array(self, "writes")
        if taps is None or writes is None or not _check_retention(self):
            return False
        if not taps or taps != sorted(set(taps)) or taps[-1] >= 0:
            return fail(self, f"taps must be negative and ascending, but are {taps}")
        if writes != sorted(set(writes)) or not writes or writes[-1] != 0 or writes[0] <= taps[0]:
            return fail(self, f"writes must ascend from above {taps[0]} to 0, but are {writes}")
        if len(self.operands) != 1 + len(writes):
            return fail(
                self, f"needs initial rows and {len(writes)} new ones, but has {len(self.operands)} operands"
            )
        initial, row = self.operands[0].type, self.operands[1].type
        if type(initial) is not ir.RankedTensorType or type(row) is not ir.RankedTensorType:
            return fail(self, f"carries ranked tensors, but is given {initial} and {row}")
        if not len(initial.shape) or initial.shape[0] not in (-taps[0], ir.ShapedType.get_dynamic_size()):
            return fail(self, f"initial must hold {-taps[0]} rows, but has shape {shape_text(initial.shape)}")
        if initial.element_type != row.element_type or len(initial.shape) != len(row.shape) + 1:
            return fail(self, f"a state that starts as rows of {initial} cannot go on as {row}")
        for axis, (have, want) in enumerate(zip(row.shape, list(initial.shape)[1:], strict=True)):
            if have != want and have >= 0 and want >= 0:
                return fail(self, f"dimension {axis} of a row starts as {want}, but goes on as {have}")
        return True


class ScanCollectOp(Operation, name="scan_collect"):
    """Declares a result that stacks `y` over the iterations."""

    y: ext.Operand[Tensor]
    state: ir.StringAttr
    keep: ir.StringAttr

    def verify_invariants(self) -> bool:
        """Checks the retention and that a tensor is collected."""
        if len(self.operands) != 1 or type(self.operands[0].type) is not ir.RankedTensorType:
            return fail(self, "collects one ranked tensor")
        return _check_retention(self)


class ScanEndOp(Operation, name="scan_end", traits=[ir.IsTerminatorTrait]):
    """Ends the body; a true `stop` makes this iteration the last."""

    stop: Sequence[ext.Operand[Bit]]

    def verify_invariants(self) -> bool:
        """Checks that there is at most one condition."""
        return len(self.operands) <= 1 or fail(self, "takes at most one condition")


class ScanTraceOp(GraphcOp, name="scan_trace", traits=[ext.Pure]):
    """The trace of a state or output: its kept rows along a new first axis."""

    scan: ext.Operand[LoopType]
    state: ir.StringAttr
    res: ext.Result[Tensor]

    def verify_invariants(self) -> bool:
        """Checks the result against the declaration in the scan."""
        return verify_trace(self)

    def reify_dynamic(self, dim: int) -> Any:
        """Rows: iterations run, and initial rows where they are kept. Other axes: as the rows."""
        return trace_size(self, dim)


class ScanStepsOp(Operation, name="scan_steps", traits=[ext.Pure]):
    """Number of iterations that were run."""

    scan: ext.Operand[LoopType]
    res: ext.Result[ir.IndexType]


def _check_retention(op: Any) -> bool:
    for name in ("state", "keep"):
        if not isinstance(attribute_of(op, name), ir.StringAttr):
            return fail(op, f"needs a string attribute '{name}'")
    keep = op.attributes["keep"].value
    if keep not in KEEP:
        return fail(op, f"keep must be one of {', '.join(KEEP)}, but is {keep}")
    rows = attribute_of(op, "rows")
    if (keep == "last") != isinstance(rows, ir.IntegerAttr):
        return fail(op, "'rows' belongs to keep = \"last\", and only to it")
    if rows is not None and rows.value < 0:
        return fail(op, f"cannot keep {rows.value} rows")
    if "padded" in op.attributes and keep != "last":
        return fail(op, "'padded' belongs to keep = \"last\", and only to it")
    return True
