# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops that only sum up.

The step of a state is recognised as a fold with an associative operation, or as a linear recurrence.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from graphc.ir.build import cast
from graphc.ir.kinds import reduce
from graphc.ir.known_rows import is_splat
from graphc.ir.rewrite import erase_unused, tensor_type
from graphc.ir.scan_view import ScanView, scans, taps_of, writes_of
from graphc.ir.traits import Batch, CannotBatch
from graphc.ir.walk import definition
from graphc.passes import Pass
from graphc.passes.loops._batch import Batcher
from graphc.passes.loops._consumers import LastRowUses
from graphc.passes.loops.scan_to_map import (
    Trial,
    batcher_of,
    build,
    drop_if_empty,
    is_streamed,
    state_dependences,
)
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

Dependences = dict[ir.Value, frozenset[str]]
_KINDS = {
    "graphc.add": "add",
    "graphc.sub": "add",
    "graphc.mul": "mul",
    "graphc.maximum": "max",
    "graphc.minimum": "min",
    "graphc.and": "and",
    "graphc.or": "or",
    "graphc.logical_and": "and",
    "graphc.logical_or": "or",
}
# The elementwise operation of each kind.
OPERATION = {"add": "add", "mul": "mul", "max": "maximum", "min": "minimum", "and": "and", "or": "or"}


@record()
class Term:
    """A value of the body, or its negative."""

    value: Any
    negative: bool = False


@record()
class Fold:
    """`acc = acc (+) term (+) term ...`.

    Attributes:
        kind: add, mul, max, min, and, or; for booleans one of the last two.
        terms: what is combined with the row before, in order of combination.
        path: the operations from the row before to the new one, that read included.
    """

    kind: str
    terms: list[Term]
    path: set[ir.Operation] = field(default_factory=set)


@record()
class Linear:
    """`h = a * h + b`; `path` as for `Fold`."""

    a: Term
    b: Term
    path: set[ir.Operation] = field(default_factory=set)


def is_simple_state(carry: ir.Operation) -> bool:
    """True if a state reads and writes just one row."""
    return taps_of(carry) == [-1] and writes_of(carry) == [0]


def fold_of(view: ScanView, name: str, carry: ir.Operation, dependences: Dependences) -> Fold | None:
    """The fold that a state is, or None."""
    value, fold = carry.operands[1], Fold("", [])
    boolean = str(value.type.element_type) == "i1"
    while True:
        op = _uncast(view, value, fold.path)
        if op is None:
            return None
        fold.path.add(op)
        if view.reads_state(op, name):
            return fold if fold.kind else None
        kind = _kind(op, boolean)
        if kind is None or fold.kind not in ("", kind):
            return None
        fold.kind = kind
        split = _split(op, name, dependences)
        if split is None or (op.name == "graphc.sub" and split[2]):
            return None
        value, other, _ = split
        fold.terms.insert(0, Term(other, op.name == "graphc.sub"))


def _kind(op: ir.Operation, boolean: bool) -> str | None:
    kind = _KINDS.get(op.name)
    if kind is None or (op.name.startswith("graphc.logical") and not boolean):
        return None
    if not boolean:
        return kind
    # For booleans a sum is "or", a product is "and", and so are the extremes. There is no difference.
    if op.name == "graphc.sub":
        return None
    return {"add": "or", "mul": "and", "max": "or", "min": "and"}.get(kind, kind)


def _uncast(view: ScanView, value: ir.Value, path: set[ir.Operation]) -> ir.Operation | None:
    """The operation of the body below changes of static sizes, which are added to the path."""
    while True:
        op = definition(value)
        if op is None or not view.is_inside(value):
            return None
        if op.name != "tensor.cast":
            return op
        path.add(op)
        value = op.operands[0]


def _split(op: ir.Operation, name: str, dependences: Dependences) -> tuple[ir.Value, ir.Value, bool] | None:
    """The operand that depends on a state, the other one, and whether it is the second that depends."""
    a, b = op.operands
    first, second = (name in dependences.get(x, ()) for x in (a, b))
    if first == second:
        return None
    return (b, a, True) if second else (a, b, False)


def linear_of(view: ScanView, name: str, carry: ir.Operation, dependences: Dependences) -> Linear | None:
    """The linear recurrence `h = a * h + b` that a state is: a product inside a sum or difference, and
    negations. Nothing is multiplied out, so that the arithmetic stays the same.
    """
    path: set[ir.Operation] = set()
    total, negative = _positive(view, carry.operands[1], path)
    if total is None or total.name not in ("graphc.add", "graphc.sub"):
        return None
    outer = _split(total, name, dependences)
    if outer is None:
        return None
    path.add(total)
    is_difference = total.name == "graphc.sub"
    b = Term(outer[1], negative ^ (is_difference and not outer[2]))
    product, negative_product = _positive(view, outer[0], path)
    if product is None or product.name != "graphc.mul":
        return None
    inner = _split(product, name, dependences)
    if inner is None:
        return None
    path.add(product)
    read = _uncast(view, inner[0], path)
    if read is None or not view.reads_state(read, name):
        return None
    path.add(read)
    return Linear(Term(inner[1], negative ^ negative_product ^ (is_difference and outer[2])), b, path)


def _positive(view: ScanView, value: ir.Value, path: set[ir.Operation]) -> tuple[ir.Operation | None, bool]:
    """The operation of the body below negations, which are added to the path, and whether it is negated."""
    negative = False
    op = _uncast(view, value, path)
    while op is not None and op.name == "graphc.neg":
        path.add(op)
        negative = not negative
        op = _uncast(view, op.operands[0], path)
    return op, negative


# -- stacks of what was recognised -------------------------------------------------------------------------


def term_stack(b: Batcher, view: ScanView, term: Term) -> Batch:
    """The stack of a term.

    Raises:
        CannotBatch: there is none.
    """
    batch = build(b, view, term.value)
    if not term.negative:
        return batch
    return Batch(b.create("graphc.neg", [batch.value], batch.value.type), batch.stacked)


def combined_stack(b: Batcher, view: ScanView, fold: Fold) -> Batch:
    """The stack of all terms of a fold, combined.

    Raises:
        CannotBatch: there is none.
    """
    total, *others = [term_stack(b, view, term) for term in fold.terms]
    for other in others:
        stacked = total.stacked or other.stacked
        batches = [total, other]
        operands = b.agreeing(batches) if stacked else [x.value for x in batches]
        shapes = zip(*(x.type.shape for x in operands), strict=True)
        shape = [_joint(sizes) for sizes in shapes]
        type_ = tensor_type(shape, operands[0].type.element_type)
        total = Batch(b.create(f"graphc.{OPERATION[fold.kind]}", operands, type_), stacked)
    return total


def _joint(sizes: tuple[int, ...]) -> int:
    wide = [size for size in sizes if size != 1] or [1]
    return max(wide)


def initial_row(carry: ir.Operation) -> ir.Value:
    """The initial row of a simple state as a stack whose type says that it is one row."""
    value = carry.operands[0]
    return cast(value, tensor_type([1, *list(value.type.shape)[1:]], value.type.element_type))


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
            moved = 0
            dependences: Dependences | None = None
            for name, carry in view.carries().items():
                if is_simple_state(carry):
                    dependences = state_dependences(view) if dependences is None else dependences
                    if self._move(view, name, carry, dependences):
                        moved, dependences = moved + 1, None
            if moved:
                self.count("states", moved)
                if drop_if_empty(view):
                    self.count("scans removed")

    def _move(self, view: ScanView, name: str, carry: ir.Operation, dependences: Dependences) -> bool:
        """Turns one simple state into a reduction, if it can be."""
        fold = fold_of(view, name, carry, dependences)
        if fold is None or any(term.value in dependences for term in fold.terms):
            return False
        if is_used_elsewhere(view, name, carry, fold.path):
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
        exact_product = fold.kind == "mul" and is_splat(carry.operands[0], 1)
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


def is_used_elsewhere(view: ScanView, name: str, carry: ir.Operation, path: set[ir.Operation]) -> bool:
    """True if anything but the fold itself uses a row of the state."""
    inside = path | {carry, *view.reads(name)}
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
    fold, create = {"add": "sum", "mul": "prod"}.get(kind, kind), b.create
    if kind in ("max", "min"):
        return reduce(fold, stack, [0], create=create, allow_empty=ir.BoolAttr.get(True))
    return reduce(fold, stack, [0], create=create)
