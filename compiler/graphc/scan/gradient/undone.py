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

from graphc.graph.basic import Apply, Constant, Variable
from graphc.graph.tensor.type import TensorType
from graphc.graph.traversal import ancestors, graph_inputs
from graphc.ops.advanced import Put, Take
from graphc.ops.dimshuffle import DimShuffle
from graphc.ops.elementwise import Elementwise
from graphc.ops.subtensor import IncSubtensor, Subtensor
from graphc.scan.gradient.builder import ScanBuilder
from graphc.scan.gradient.run import Run
from graphc.scan.spec import State

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
