# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops that only sum up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.ir.rewrite import erase_unused, tensor_type
from graphc.ir.scan_view import ScanView, scans
from graphc.ir.traits.interfaces import CannotBatch
from graphc.passes.loops._last_row import LastRowUses
from graphc.passes.loops._recognise import (
    OPERATION,
    combined_stack,
    fold_of,
    initial_row,
    is_one,
    is_simple_state,
)
from graphc.passes.loops.scan_to_map import Trial, batcher_of, drop_if_empty, is_streamed, state_dependences
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc.passes.loops._batch import Batcher
    from graphc.passes.loops._recognise import Fold


@record()
class ScanToReduce(Pass):
    """Replaces a state that only accumulates, and of which only the last row is used, by a reduction.

    The state is `acc = acc (+) g` where (+) is a sum (or difference), product, maximum, minimum, or a
    logical or bitwise "and" or "or" of booleans, and g depends on no state. It becomes `initial (+)
    reduce(g)`, a reduction along the first axis of the stack of all g. Reductions fuse with what computes
    their operand, so
    no stack is stored: g must be elementwise work on rows of sequences, or reductions of such rows.

    The result may differ from the loop's as reductions do: float sums are added in blocks (see
    docs/passes/buffer.md, linalg-to-loops), and `initial` comes last, so that sums which overflow on the way
    may differ. Integers wrap to the same result, maxima and minima are the same (NaN wins in both). Float
    products become reductions only if `initial` is the literal 1, where the order of factors is the same,
    or with `reassociate`. Without iterations the result is `initial`.

    "Only the last row" is `keep = "last", rows = 1`, or uses of the trace that surely read no other row.
    Scans with a stop condition are left alone, and so are states that anything else in the body reads.

    Options:
        reassociate: also float products with any initial value; over- and underflow may then differ.

    Source: the idea of `jax.lax.reduce` from `fori_loop` idioms; G. Blelloch, "Prefix sums and their
    applications" (1990).
    """

    stage = "graph"
    reassociate: bool = False

    def run(self, module: ir.Module) -> None:
        for op in scans(module.operation):
            view = ScanView(op)
            if view.stop is not None:
                continue
            moved = sum(self._move(view, name) for name in view.carries())
            if moved:
                self.count("states", moved)
                if drop_if_empty(view):
                    self.count("scans removed")

    def _move(self, view: ScanView, name: str) -> bool:
        """Turns one state into a reduction, if it can be."""
        carry = view.carries()[name]
        if not is_simple_state(carry):
            return False
        dependences = state_dependences(view)
        fold = fold_of(view, name, carry, dependences)
        if fold is None or any(term.value in dependences for term in fold.terms):
            return False
        if _is_used_elsewhere(view, name, carry, fold.path):
            return False
        uses = LastRowUses(view, name)
        if not uses.only or not is_streamed(view, [term.value for term in fold.terms]):
            return False
        with Trial(view.op) as trial:
            try:
                row = self._reduced(view, carry, fold)
            except CannotBatch:
                return False
            if row is None:
                return False
            trial.keep()
        with ir.InsertionPoint(view.op), carry.location:
            uses.replace(row)
        carry.erase()
        erase_unused(view.work())
        trial.tidy()
        return True

    def _reduced(self, view: ScanView, carry: ir.Operation, fold: Fold) -> ir.Value | None:
        """The last row; None if the state should stay."""
        initial = initial_row(carry)
        element = initial.type.element_type
        floating = not isinstance(element, ir.IntegerType)
        exact_product = fold.kind == "mul" and is_one(carry.operands[0])
        if fold.kind == "mul" and floating and not (exact_product or self.reassociate):
            return None
        if not _has_reduction(fold.kind, element):
            return None
        b = batcher_of(view)
        stack = b.repeated(combined_stack(b, view, fold))
        if not _fits(b, stack, initial):
            return None
        total = _reduce(b, stack, fold.kind)
        first = b.dimshuffle(initial, range(1, len(initial.type.shape)))
        return b.create(f"graphc.{OPERATION[fold.kind]}", [first, total], first.type)


def _is_used_elsewhere(view: ScanView, name: str, carry: ir.Operation, path: set[ir.Operation]) -> bool:
    """True if anything but the fold itself uses a row of the state."""
    inside = path | {carry.operation} | set(view.reads(name))
    values = [result for op in inside for result in op.results]
    return any(use.owner.operation not in inside for value in values for use in value.uses)


def _has_reduction(kind: str, element: ir.Type) -> bool:
    """True if the reduction exists for an element type: extremes of complex numbers have an order that is not
    total, bitwise ones are reduced for booleans only.
    """
    if kind in ("and", "or"):
        return str(element) == "i1"
    return not (isinstance(element, ir.ComplexType) and kind in ("max", "min"))


def _fits(b: Batcher, stack: ir.Value, initial: ir.Value) -> bool:
    """True if rows surely fit the initial one: the loop would find out only if it ran."""
    sizes = zip(stack.type.shape, b.dims.shape(stack), b.dims.shape(initial), strict=True)
    return all(
        axis == 0 or static == 1 or b.dims.same(key, want) for axis, (static, key, want) in enumerate(sizes)
    )


def _reduce(b: Batcher, stack: ir.Value, kind: str) -> ir.Value:
    """A reduction along the first axis."""
    shape = list(stack.type.shape)[1:]
    attributes: dict[str, ir.Attribute] = {"axes": ir.DenseI64ArrayAttr.get([0])}
    if kind in ("max", "min"):
        attributes["allow_empty"] = ir.BoolAttr.get(True)
    name = {"add": "sum", "mul": "prod"}.get(kind, kind)
    type_ = tensor_type(shape, stack.type.element_type)
    return b.create(f"graphc.reduce_{name}", [stack], type_, **attributes)
