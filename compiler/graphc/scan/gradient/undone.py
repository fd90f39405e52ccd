# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States that an iteration changes in part: the reverse loop undoes the changes.

The body of a reverse loop may need the row of a state as an iteration read it. Where a row is made from the
one before by updates alone, the rows of all iterations are not stored for that. The reverse loop has the row
as a state of its own: it starts from the last one, and each of its iterations puts back what the updates
overwrote. The forward loop stores that, at the cost of what an iteration writes; so do the indices that
depend on the row itself. The row that is put back has the bits that it had. What a loop stores has one size
in all iterations, so that only updates of as many elements in each of them are undone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

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

    @property
    def inner_outputs(self) -> dict[Key, Variable]:
        """Inner outputs by name and write offset."""
        return dict(zip(self.op.spec.inner_output_names(), self.op.inner_outputs, strict=True))

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
            old, indices = _overwritten(node), node.inputs[2:]
            recorded[old] = None
            recorded.update((v, None) for v in indices if _depends(v, run))
            row = _put_back(node, row, old)
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
        if not _has_one_size(_overwritten(node), run):
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


def _overwritten(node: Apply) -> Variable:
    """The elements that an update changes, before it does."""
    op, x, indices = node.op, node.inputs[0], node.inputs[2:]
    if isinstance(op, Put):
        return Take(op.axis)(x, *indices)
    assert isinstance(op, IncSubtensor)
    return Subtensor(op.idx_list)(x, *indices)


def _put_back(node: Apply, row: Variable, old: Variable) -> Variable:
    """The row before an update from the one after it."""
    op, indices = node.op, node.inputs[2:]
    if isinstance(op, Put):
        return Put(op.axis, True)(row, old, *indices)
    assert isinstance(op, IncSubtensor)
    return IncSubtensor(op.idx_list, True)(row, old, *indices)


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
