# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running sums and linear recurrences.

All states of a scan become recurrence operations, or none of them does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

from graphc.ir.kinds import static_shape
from graphc.ir.rewrite import erase_unused, tensor_type
from graphc.ir.scan_view import ScanView, is_padded, retention, scans
from graphc.ir.traits import Batch, CannotBatch
from graphc.ir.traits.recurrences import recurrence
from graphc.ir.views import take_rows
from graphc.passes import Pass
from graphc.passes.loops._batch import Batcher
from graphc.passes.loops._consumers import LastRowUses
from graphc.passes.loops.scan_to_map import (
    Trial,
    batcher_of,
    drop_if_empty,
    is_streamed,
    read_row,
    replace_traces,
    state_dependences,
)
from graphc.passes.loops.scan_to_reduce import (
    Fold,
    Linear,
    combined_stack,
    fold_of,
    initial_row,
    is_simple_state,
    linear_of,
    term_stack,
)
from graphc_dialects._base import add_index, const_index
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

if TYPE_CHECKING:
    pass


Step = Fold | Linear
# Rows of up to so many elements are carried in registers (graphc.lowering.scans.recurrences).
_REGISTERS = 8


class Recognition:
    """Recognised recurrences of the states of one scan without stop condition.

    Args:
        view: the scan.
        reassociate: whether products and linear recurrences may be computed in blocks.

    Attributes:
        counts: numbers of states by what they became.
    """

    def __init__(self, view: ScanView, reassociate: bool) -> None:
        self._view = view
        self._reassociate = reassociate
        self._carries = view.carries()
        self._dependences = state_dependences(view)
        self._steps: dict[str, Step] = {}
        self._results: dict[str, ir.Value] = {}
        self.counts: dict[str, int] = {}
        self._recognise()

    def _recognise(self) -> None:
        """Finds the steps, each after those of the states that its terms depend on."""
        if not all(is_simple_state(carry) and not is_padded(carry) for carry in self._carries.values()):
            return
        progress = True
        while progress:
            progress = False
            for name, carry in self._carries.items():
                step = None if name in self._steps else self._step(name, carry)
                if step is not None:
                    self._steps[name] = step
                    progress = True

    def _step(self, name: str, carry: ir.Operation) -> Step | None:
        step: Step | None = fold_of(self._view, name, carry, self._dependences)
        step = step or linear_of(self._view, name, carry, self._dependences)
        if step is None or not _is_defined(step, carry):
            return None
        terms = [term.value for term in (step.terms if isinstance(step, Fold) else [step.a, step.b])]
        known = set(self._steps)
        if any(not self._dependences.get(term, frozenset()) <= known for term in terms):
            return None
        return step if is_streamed(self._view, terms) else None

    def pays(self) -> bool:
        """True if all states are recognised, storing their rows is acceptable, and one becomes faster."""
        if set(self._steps) != set(self._carries):
            return False
        if not all(self._is_stored(name) for name in self._carries):
            return False
        return any(self._gains(step, self._carries[name]) for name, step in self._steps.items())

    def _is_stored(self, name: str) -> bool:
        """True if the rows of a state, or as many elements, are stored anyway."""
        carry = self._carries[name]
        if self._is_kept(name, carry):
            return True
        row = carry.operands[1].type
        collects = self._view.collects().items()
        collected = [op.operands[0].type for output, op in collects if self._is_kept(output, op)]
        return row in collected or (_elements(row) == 1 and bool(collected))

    def _is_kept(self, name: str, declaration: ir.Operation) -> bool:
        """True if all rows are kept, and more than the last one is used."""
        if retention(declaration)[0] == "last" or not self._view.traces(name):
            return False
        return not LastRowUses(self._view, name).only

    def _gains(self, step: Step, carry: ir.Operation) -> bool:
        row = carry.operands[1].type
        elements = _elements(row)
        if elements is None or not 1 <= elements <= _REGISTERS:
            return False
        if elements > 1:
            return True
        if isinstance(row.element_type, ir.IntegerType):
            return False
        return self._reassociate or (isinstance(step, Fold) and step.kind in ("add", "max", "min"))

    # -- rewriting -------------------------------------------------------------------------------------------

    def apply(self) -> bool:
        """Builds the operations and lets everything read their results; returns whether that was possible."""
        view = self._view
        with Trial(view.op) as trial:
            known: dict[Any, Callable[[], Any]] = {}
            self._batcher = batcher_of(view, known=known)
            try:
                for name, step in self._steps.items():
                    self._build(name, step, known)
                traces = {name: self._kept(name) for name in self._steps}
                stacks = {value: rows() for value, rows in known.items() if self._is_used(value)}
            except CannotBatch:
                return False
            trial.keep()
        for value, stack in stacks.items():
            read_row(self._view, value, stack)
        for name, carry in self._carries.items():
            replace_traces(view, name, traces[name])
            carry.erase()
        erase_unused(view.work())
        trial.tidy()
        return True

    def _build(self, name: str, step: Step, known: dict[Any, Callable[[], Any]]) -> None:
        b, view, carry = self._batcher, self._view, self._carries[name]
        initial = initial_row(carry)
        # The initial row is one of those that "last" counts.
        keep = retention(carry)[0] != "steps" or self._needs_rows_before(name, step)
        flags = {"reverse": view.reverse, "keep_initial": keep, "reassociate": self._reassociate}
        attributes = {flag: ir.BoolAttr.get(value) for flag, value in flags.items()}
        kind: str | None
        if isinstance(step, Fold):
            operands = [self._operand(combined_stack(b, view, step), initial)]
            kind, label = step.kind, "running sums and extremes"
        else:
            operands = [self._operand(term_stack(b, view, term), initial) for term in (step.a, step.b)]
            kind, label = None, "linear recurrences"
        operation, more = recurrence(kind)
        lead = b.static_rows + keep if b.static_rows >= 0 else -1
        type_ = tensor_type([lead, *list(initial.type.shape)[1:]], initial.type.element_type)
        with carry.location:
            result = b.create(operation, [*operands, initial, view.steps], type_, **attributes, **more)
        self._results[name] = result
        self.counts[label] = self.counts.get(label, 0) + 1
        after = const_index(int(keep and not view.reverse))
        before = const_index(int(view.reverse))
        known[carry.operands[1]] = _rows(b, result, after, carry.operands[1].type)
        for read in view.reads(name) if keep else ():
            known[read.results[0]] = _rows(b, result, before, read.results[0].type)

    def _operand(self, batch: Batch, initial: ir.Value) -> ir.Value:
        """A stack, or a row for all steps; its static sizes must not contradict the initial row."""
        value = self._batcher.aligned(batch)
        sizes = zip(static_shape(value), static_shape(initial), strict=True)
        if any(axis and a not in (None, 1, c) and c is not None for axis, (a, c) in enumerate(sizes)):
            raise CannotBatch("a row has another shape than the initial one")
        return value

    def _needs_rows_before(self, name: str, step: Step) -> bool:
        """True if anything uses the row before, or what the step makes of it on the way to the new row."""
        new, inside = self._carries[name].operands[1], step.path | {self._carries[name].operation}
        values = [op.results[0] for op in self._view.reads(name)]
        values += [result for op in step.path for result in op.results if result != new]
        return any(use.owner.operation not in inside for value in values for use in value.uses)

    def _is_used(self, value: ir.Value) -> bool:
        """True if something that stays uses a row in the body."""
        carries = {carry.operation for carry in self._carries.values()}
        return any(use.owner.operation not in carries for use in value.uses)

    def _kept(self, name: str) -> ir.Value:
        """Rows that the scan kept of a state."""
        result, carry = self._results[name], self._carries[name]
        keep, rows = retention(carry)
        kept = bool(result.owner.attributes["keep_initial"].value)
        if keep == "all" or (keep == "steps" and not kept):
            return result
        if keep == "steps":
            return _rows(self._batcher, result, const_index(int(not self._view.reverse)))()
        count = const_index(rows or 0)
        if self._view.reverse:
            return _slice(result, const_index(0), count, rows or 0)
        have = add_index(self._view.steps, const_index(1))
        return _slice(result, have - count, count, rows or 0)


def _rows(b: Batcher, result: ir.Value, offset: ir.Value, row: Any = None) -> Callable[[], ir.Value]:
    """The rows of a recurrence from one on, as many as there are steps; built when first asked for."""

    @cache
    def built() -> ir.Value:
        whole = not result.owner.attributes["keep_initial"].value
        rows = result if whole else _slice(result, offset, b.rows, b.static_rows)
        return rows if row is None else b.cast(rows, b.stack_type(row))

    return built


def _slice(x: ir.Value, offset: ir.Value, count: ir.Value, lead: int) -> ir.Value:
    """`count` rows of a tensor; `lead` is their number if it is static, else negative."""
    return take_rows(x, lead, (offset, count, const_index(1)))


def _is_defined(step: Step, carry: ir.Operation) -> bool:
    """True if the operation exists for the element type."""
    element = carry.operands[1].type.element_type
    if isinstance(step, Linear):
        return str(element) != "i1"
    if step.kind in ("and", "or"):
        return isinstance(element, ir.IntegerType)
    return not (isinstance(element, ir.ComplexType) and step.kind in ("max", "min"))


def _elements(row: ir.Type) -> int | None:
    """The number of elements of a row, None if it is not static."""
    return None if min(row.shape, default=0) < 0 else prod(row.shape)


@record()
class ScanToAssociative(Pass):
    """Replaces states that are running sums (products, extremes) or linear recurrences by one operation each.

    | step of the state | becomes |
    |---|---|
    | `acc = acc (+) g`: a sum, difference, product, maximum, minimum, "and" or "or" | a running operation |
    | `h = a * h + b`, with signs and operands in any order | a linear recurrence |

    g, a and b depend on sequences, on what is outside, and on states that were recognised before. Every use
    of a recognised state in the body reads rows of the operation's result. The loop is left without states,
    so that scan-to-map can do the rest of its work on whole stacks.

    A recognised loop must not become slower (cycles of a current x86-64 core, see
    graphc.lowering.scans.recurrences), so a scan is changed only if

    * all of its states are recognised: a loop that stays hides the latency of a running sum by its
      other work;
    * one of them gains. For rows of one element that is a running float sum (blocks: 1.25 cycles a step
      instead of 4) or a float extreme (NaN wins, 8 cycles latency; blocks of 4). Integers gain nothing over
      the loop, whose chain has a latency of 1, and neither do linear recurrences (one multiply-add, 4
      cycles) and float products, unless `reassociate` allows blocks of them. Rows of 2 to 8 elements, of
      static size, always gain: they stay in registers instead of being stored and loaded again in each
      step. Larger rows gain nothing: the loop over a row is the same;
    * g, a and b are elementwise work on rows of sequences or reductions of such rows; cheap ones are
      computed where they are read, others are vectorised first;
    * the scan keeps a state in full, or an output of at least its size, as the rows of all steps are stored.

    Float results differ by the order of summation within 8 steps, with an error bound an eighth of the
    loop's, and where sums of 8 neighbours overflow. Several terms `acc + g + f` are added as `acc + (g +
    f)`. Everything else is exact. Scans with a stop condition are left alone.

    Options:
        reassociate: blocks also for products and linear recurrences: powers of `a` and products of
            neighbours are made first, so that the rounding differs, and infinities do where these over- or
            underflow.

    Source: G. Blelloch, "Prefix sums and their applications" (1990); `jax.lax.associative_scan`.
    """

    stage = "graph"
    reassociate: bool = False

    def run(self, module: ir.Module) -> None:
        for op in scans(module.operation):
            view = ScanView(op)
            if view.stop is not None or not view.carries():
                continue
            recognition = Recognition(view, self.reassociate)
            if not recognition.pays() or not recognition.apply():
                continue
            self.count_all(recognition.counts)
            if drop_if_empty(view):
                self.count("scans removed")
