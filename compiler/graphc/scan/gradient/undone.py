# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States that an iteration changes in part: the reverse loop undoes the changes.

A step along the gradient of what an iteration reads of a table, `w - rate * grad(loss, w)`, is the table
minus zeros with a row put in: an update, as which `Updates` sees it. In compiled code
`graphc.passes.graph._updates` does the same.

The body of a reverse loop may need the row of a state as an iteration read it. Where a row is made from the
one before by updates alone, the rows of all iterations are not stored for that. The reverse loop has the row
as a state of its own: it starts from the last one, and each of its iterations puts back what the updates
overwrote. The forward loop stores that, at the cost of what an iteration writes; so do the indices that
depend on the row itself. The row that is put back has the bits that it had. What a loop stores has one size
in all iterations, so that only updates of as many elements in each of them are undone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.gradient.accumulate import is_zeros
from graphc.graph.basic import Apply, Constant, Variable
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.tensor.type import TensorType
from graphc.graph.traversal import ancestors, graph_inputs
from graphc.ops.advanced import Put, Take
from graphc.ops.create import zeros as zeros_
from graphc.ops.dimshuffle import DimShuffle
from graphc.ops.elementwise import Elementwise
from graphc.ops.join import concatenate
from graphc.ops.math import minimum
from graphc.ops.shape import known_size, size_of
from graphc.ops.subtensor import IncSubtensor, Subtensor
from graphc.scan.gradient.forward import ScanBuilder
from graphc.scan.spec import State
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc.scan.op import Scan


def truncated(op: Scan, taken: TensorVariable) -> tuple[Variable, Variable | None]:
    """Number of steps that a gradient goes back.

    Args:
        op: a `Scan`; the gradient goes back over at most ``op.truncate_gradient`` iterations.
        taken: number of iterations that the loop makes.

    Returns:
        The number of iterations, and how many there are before these; None for none.

    Raises:
        NotImplementedError: the loop rewrites rows of its states (mit-mot), so that the rows before the first
            of these iterations are not known.
    """
    limit = op.truncate_gradient
    known = known_size(taken)
    if limit < 0 or (known is not None and known <= limit):
        return taken, None
    if any(len(state.writes) > 1 for state in op.spec.states):
        raise NotImplementedError(
            f"{op} has truncate_gradient={limit} and states that rewrite older rows (mit-mot); its gradient "
            "cannot be limited to the last iterations. Leave truncate_gradient at -1"
        )
    n_steps = as_tensor_variable(limit if known is not None else minimum(taken, limit))
    n_steps = n_steps.astype("int64")
    return n_steps, taken - n_steps


def initial_rows(window: Any, skipped: TensorLike) -> Variable:
    """The cotangent of the initial rows of a loop from that of the rows before the last iterations.

    Args:
        window: cotangent of the K rows before the first iteration that the gradient reaches, oldest first.
        skipped: number of iterations before that one. The rows that these computed count as constants.
    """
    rows = size_of(window, 0)
    before = minimum(skipped, rows)
    zeros = zeros_(
        (before, *(size_of(window, axis) for axis in range(1, window.type.ndim))), window.type.dtype
    )
    return concatenate([zeros, window[: rows - before]])


Key = tuple[str, int]


@record()
class Run:
    """Iterations of a loop, as a loop without a stop condition has them.

    Attributes:
        op: the `Scan`; its stop condition and its limit of the gradient count no more.
        inputs: outer inputs of the loop by name, as they were given.
        outputs: its outer outputs.
        n_steps: number of iterations of the run.
        taken: number of iterations of the loop.
        rows_before: how many rows that the loop stacked lie before those of the run; None for none.
        reads_before: the same for the rows of the sequences.
    """

    op: Any
    inputs: dict[str, Variable]
    outputs: dict[str, Variable]
    n_steps: Variable
    taken: Variable
    rows_before: Variable | None
    reads_before: Variable | None

    @classmethod
    def of(cls, op: Scan, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> Run:
        """The iterations of an application of ``op`` that its gradient goes over.

        Raises:
            NotImplementedError: the gradient of a loop that rewrites rows is limited to some iterations.
        """
        given = dict(zip(op.spec.outer_input_names(), inputs, strict=True))
        found = dict(zip(op.spec.outer_output_names(), outputs, strict=True))
        taken: Any = found["n_steps"] if op.spec.is_while else given["n_steps"]
        n_steps, skipped = truncated(op, taken)
        reads = None if op.reverse else skipped
        if op.reverse and op.spec.is_while:
            reads = given["n_steps"] - taken
        return cls(op, given, found, n_steps, taken, None if op.reverse else skipped, reads)

    @property
    def is_truncated(self) -> bool:
        """True if the run may be shorter than the loop."""
        return self.n_steps is not self.taken

    @property
    def inner_inputs(self) -> dict[Key, Variable]:
        """Inner inputs by name and tap."""
        return dict(zip(self.op.spec.inner_input_names(), self.op.inner_inputs, strict=True))

    @cached_property
    def inner_outputs(self) -> dict[Key, Variable]:
        """Inner outputs by name and write offset; states as updates of the rows before, if they are."""
        found = dict(zip(self.op.spec.inner_output_names(), self.op.inner_outputs, strict=True))
        for state in self.op.spec.states:
            if state.taps == (-1,) and state.writes == (0,):
                old = self.inner_inputs[state.name, -1]
                found[state.name, 0] = Updates(old).of(found[state.name, 0])
        return found

    def sequence(self, name: str) -> Variable:
        """A sequence, without the rows that only iterations before the run read."""
        return _after(self.inputs[name], self.reads_before)

    def trace(self, name: str) -> Variable:
        """The rows of a state (initial rows and steps) or of an output that belong to the run."""
        return _after(self.outputs[name], self.rows_before)

    def own(self, rows: Variable) -> Variable:
        """Of rows that are stored as the loop's outputs are, those from the run's first one on."""
        return _after(rows, self.rows_before)

    def row_of(self, name: str, write: int) -> int | None:
        """The tap at which `trace` has what an iteration writes; None if it is overwritten later."""
        state = next((s for s in self.op.spec.states if s.name == name), None)
        if state is None:
            return 0
        if len(state.writes) > 1 or write:
            return None
        return 0 if self.op.reverse else state.window

    def row_read(self, name: str, tap: int) -> int | None:
        """The tap at which `trace` has what is read at ``tap`` of a state; None if overwritten later."""
        state = next(s for s in self.op.spec.states if s.name == name)
        if state.writes[0] <= tap:
            return None
        return -tap if self.op.reverse else state.window + tap

    def recorded(self, variables: Sequence[Variable]) -> list[Variable]:
        """Values of inner variables in each iteration of the run, from a loop that also returns these.

        The loop does what the original one does; the compiler merges the two.
        """
        spec, inner, rows = self.op.spec, self.inner_inputs, self.inner_outputs
        builder = ScanBuilder()
        for sequence in spec.sequences:
            taps = {tap: inner[sequence.name, tap] for tap in sequence.taps}
            builder.sequence(sequence.name, self.inputs[sequence.name], taps)
        for state in spec.states:
            taps = {tap: inner[state.name, tap] for tap in state.taps}
            writes = {write: rows[state.name, write] for write in state.writes}
            builder.state(state.name, self.inputs[state.name], taps, writes)
        for role in spec.untraced:
            builder.untraced(role.name, self.inputs[role.name], inner[role.name, 0], rows[role.name, 0])
        for role in spec.invariants:
            builder.invariant(role.name, self.inputs[role.name], inner[role.name, 0])
        if spec.is_while:
            builder.until(rows["until", 0])
        names = [builder.output(v.name or "value", v) for v in variables]
        found = builder.build(
            self.inputs["n_steps"], name=self.op.name, reverse=self.op.reverse, unroll=self.op.unroll
        )
        return [_after(found[name], self.rows_before) for name in names]


def _after(x: Variable, skipped: Variable | None) -> Variable:
    if skipped is None or (isinstance(skipped, Constant) and not int(skipped.data)):
        return x
    return x[skipped:]


# Rows of fewer elements are stored: that costs less than to update them.
_SMALL = 32


def undo_updates(builder: ScanBuilder, run: Run, needed: set[Variable]) -> list[Variable]:
    """Puts rows that updates are undone in, in the place of such rows of the forward loop.

    Args:
        builder: of the reverse loop.
        run: the iterations.
        needed: what the expressions in ``builder`` use.

    Returns:
        Variables of the forward iteration whose values have to be recorded.
    """
    recorded: dict[Variable, None] = {}
    replaced: dict[Variable, Variable] = {}
    states: list[tuple[State, Variable, Variable]] = []
    for state in run.op.spec.states:
        updates = _updates(run, state)
        versions = [node.outputs[0] for node in updates]
        if not updates or needed.isdisjoint([run.inner_inputs[state.name, -1], *versions]):
            continue
        newest = row = versions[-1].type.make_variable(state.name)
        for node in reversed(updates):
            replaced[node.outputs[0]] = row
            old, indices = at_places(node, node.inputs[0]), node.inputs[2:]
            recorded[old] = None
            recorded.update((v, None) for v in indices if _depends(v, run))
            row = changed(node, row, old, True)
        replaced[run.inner_inputs[state.name, -1]] = row
        states.append((state, newest, row))
    if not states:
        return []
    builder.substitute({**replaced, **{v: v for v in recorded}})
    for state, newest, row in states:
        trace = run.trace(state.name)
        last = trace[:1] if run.op.reverse else trace[-1:]
        builder.state(state.name, last, {-1: newest}, {0: row})
    return list(recorded)


def _updates(run: Run, state: State) -> list[Apply]:
    """The updates that make the row of a state from the one before, in order; none if something else does."""
    if state.taps != (-1,) or state.writes != (0,):
        return []
    old, value = run.inner_inputs[state.name, -1], run.inner_outputs[state.name, 0]
    if not isinstance(old.type, TensorType) or not old.type.ndim or _is_small(old.type):
        return []
    found: list[Apply] = []
    while value is not old:
        node = value.owner
        if node is None or not isinstance(node.op, IncSubtensor | Put) or node.inputs[0].type != value.type:
            return []
        if not _has_one_size(at_places(node, node.inputs[0]), run):
            return []
        found.insert(0, node)
        value = node.inputs[0]
    return found


def _is_small(kind: TensorType) -> bool:
    size = 1
    for known in kind.shape:
        if known is None:
            return False
        size *= known
    return size < _SMALL


def _depends(index: Variable, run: Run) -> bool:
    """True if an index is computed from rows of states."""
    rows = {run.inner_inputs[state.name, tap] for state in run.op.spec.states for tap in state.taps}
    return not rows.isdisjoint(ancestors([index]))


def _has_one_size(x: Variable, run: Run) -> bool:
    """True if it is known that all iterations compute a value of the same shape."""
    if (isinstance(x.type, TensorType) and None not in x.type.shape) or _is_invariant([x], run):
        return True
    node = x.owner
    if node is None:
        return all(x is not run.inner_inputs[role.name, 0] for role in run.op.spec.untraced)
    if isinstance(node.op, Subtensor):
        operands, bounds = iter(node.inputs[1:]), []
        for entry in node.op.idx_list:
            own = [next(operands) for _ in range(entry.operands())]
            bounds += [] if entry.single else own
        return _has_one_size(node.inputs[0], run) and _is_invariant(bounds, run)
    if isinstance(node.op, IncSubtensor | Put):
        return _has_one_size(node.inputs[0], run)
    by_operands = isinstance(node.op, Elementwise | Take | DimShuffle)
    return by_operands and all(_has_one_size(v, run) for v in node.inputs)


def _is_invariant(values: Sequence[Variable], run: Run) -> bool:
    """True if values are the same in all iterations."""
    fixed = {run.inner_inputs[role.name, 0] for role in run.op.spec.invariants}
    return all(v in fixed or isinstance(v, Constant) for v in graph_inputs(values))


# -- updates in other words ----------------------------------------------------------------------------------

# Expressions of more operations than this one after the other are not followed.
_MAX_DEPTH = 40
# Linear in these operands, whatever the others are.
_LINEAR = {"neg": (0,), "mul": (0, 1), "true_div": (0,)}
Terms = list[tuple[Apply, Variable]]


def at_places(node: Apply, x: Variable) -> Variable:
    """The elements of an array that an update changes."""
    op, indices = node.op, node.inputs[2:]
    if isinstance(op, Put):
        return Take(op.axis)(x, *indices)
    assert isinstance(op, IncSubtensor)
    return Subtensor(op.idx_list)(x, *indices)


def changed(node: Apply, x: Variable, y: Variable, replaces: bool) -> Variable:
    """An array with elements replaced, or increased, where an update changes elements of another one."""
    op, indices = node.op, node.inputs[2:]
    if isinstance(op, Put):
        return Put(op.axis, replaces)(x, y, *indices)
    assert isinstance(op, IncSubtensor)
    return IncSubtensor(op.idx_list, replaces)(x, y, *indices)


class Updates:
    """Finds the updates of one array.

    Args:
        old: the array.
    """

    def __init__(self, old: Variable) -> None:
        self._old = old
        self._known: dict[Variable, Variable | None] = {old: old}
        self._terms: dict[Variable, Terms | None] = {}

    def of(self, value: Variable) -> Variable:
        """A value as updates of the array, one after the other, or as it is where it is anything else."""
        found = self._updated(value, _MAX_DEPTH)
        return value if found is None else found

    def _updated(self, value: Variable, depth: int) -> Variable | None:
        if value not in self._known:
            node = value.owner if depth and value.type == self._old.type else None
            self._known[value] = None if node is None else self._find(value, node, depth - 1)
        return self._known[value]

    def _find(self, value: Variable, node: Apply, depth: int) -> Variable | None:
        operands = node.inputs
        if isinstance(node.op, IncSubtensor | Put):
            base = self._updated(operands[0], depth)
            if base is not None and base is not operands[0]:
                value = changed(node, base, operands[1], node.op.set_instead_of_inc)
            return None if base is None else value
        name = node.op.name if isinstance(node.op, Elementwise) else None
        if name in ("add", "sub"):
            for x, other in (operands, operands[::-1]) if name == "add" else (operands,):
                base = self._updated(x, depth)
                terms = None if base is None else self._placed(other, depth)
                if base is not None and terms is not None:
                    for update, y in terms:
                        base = changed(update, base, -y if name == "sub" else y, False)
                    return base
        return self._chosen(node, depth) if name == "switch" else None

    def _chosen(self, node: Apply, depth: int) -> Variable | None:
        """Of an array with one part changed, and that array, by one condition."""
        condition, *choices = node.inputs
        if not _is_number(condition):
            return None
        for kept, other in (choices[::-1], choices):
            base = self._updated(kept, depth)
            new = None if base is None else self._updated(other, depth)
            update = None if new is None else new.owner
            if update is None or update.inputs[0] is not base or not isinstance(update.op, IncSubtensor):
                continue
            part, y = at_places(update, base), update.inputs[1]
            y = y if update.op.set_instead_of_inc else part + y
            pair = (y, part) if other is choices[0] else (part, y)
            return changed(update, base, node.op(condition.dimshuffle(()), *pair), True)
        return None

    def _placed(self, value: Variable, depth: int) -> Terms | None:
        """Updates of zeros that make a value, with what they add; None if it is made otherwise."""
        if value not in self._terms:
            node = value.owner if depth else None
            self._terms[value] = None if node is None else self._find_placed(node, depth - 1)
        return self._terms[value]

    def _find_placed(self, node: Apply, depth: int) -> Terms | None:
        if isinstance(node.op, IncSubtensor | Put):
            x, y, *_ = node.inputs
            adds = not node.op.set_instead_of_inc
            if is_zeros(x):
                # What is set in zeros is added to them, where no position occurs twice.
                return [(node, y)] if adds or isinstance(node.op, IncSubtensor) else None
            before = self._placed(x, depth) if adds else None
            return None if before is None else [*before, (node, y)]
        if not isinstance(node.op, Elementwise):
            return None
        for position, x in enumerate(node.inputs):
            terms = self._placed(x, depth) if _is_zero_at(node, position) and not _is_number(x) else None
            is_one = terms is not None and len(terms) == 1 and isinstance(terms[0][0].op, IncSubtensor)
            if terms is not None and (is_one or position in _LINEAR.get(node.op.name, ())):
                return [(update, _function_at(node, position, update, y)) for update, y in terms]
        return None


def _function_at(node: Apply, position: int, update: Apply, y: Variable) -> Variable:
    """An operation of the elements that are updated, and of those of its other operands at their places."""
    operands: list[Variable] = []
    for i, x in enumerate(node.inputs):
        there = x.dimshuffle(()) if _is_number(x) else at_places(update, x)
        operands.append(y if i == position else there)
    return node.op(*operands)


def _is_number(x: Variable) -> bool:
    return isinstance(x.type, TensorType) and all(size == 1 for size in x.type.shape)


def _is_zero_at(node: Apply, position: int) -> bool:
    """True if a result is 0 where an operand is."""
    assert isinstance(node.op, Elementwise)
    if position in _LINEAR.get(node.op.name, ()):
        return True
    shape = (1,) * node.outputs[0].type.ndim
    values: list[np.ndarray] = []
    for i, x in enumerate(node.inputs):
        if i == position:
            values.append(np.zeros(shape, x.type.numpy_dtype))
        elif isinstance(x, Constant) and x.data.size == 1:
            values.append(x.data.reshape(shape))
        else:
            return False
    found: list[Any] = [[None]]
    node.op.perform(node, values, found)
    return not found[0][0].any()
