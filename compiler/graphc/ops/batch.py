# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adds one leading batch axis to some variables of a graph, and so of all that is computed from them.

An op says how by ``batch(node, inputs, batched, size) -> list of outputs``; the rules of graphc's own ops are
in `graphc.ops.batching`. Where there is no rule, or none for the inputs that are batched, a loop applies the
op to one element of the batch after the other (`graphc.scan.batch_loop`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from graphc import hooks
from graphc.errors import VectorizeError
from graphc.graph.basic import Apply, Variable
from graphc.graph.traversal import toposort
from graphc.ops.batching import rule_of
from graphc.ops.bounds import FULL
from graphc.ops.shaping import repeat
from graphc.ops.subtensor import Subtensor

# How many of the last rows of a variable are read; None where it may be any.
RowsRead = Callable[[Variable], int | None]


def batch_graph(
    outputs: Sequence[Variable], replace: Mapping[Variable, Variable], size: Any
) -> list[Variable]:
    """The graph of ``outputs`` for a batch of values of some variables.

    Args:
        outputs: tensor variables.
        replace: variables of the graph, and what stands for each: a variable with one more leading axis.
        size: the size of this axis, an int or a 0-d integer variable.

    Returns:
        The outputs with the batch axis first; those that do not depend on the batch are repeated along it.

    Raises:
        ValueError: a replacement has not exactly one dimension more than what it replaces.
        VectorizeError: a value that is no tensor depends on the batch.
    """
    found, batched = batch_some(outputs, replace, size)
    return [y if is_batched else repeat(y, size) for y, is_batched in zip(found, batched, strict=True)]


def batch_some(
    outputs: Sequence[Variable], replace: Mapping[Variable, Variable], size: Variable | int
) -> tuple[list[Variable], list[bool]]:
    """The outputs for a batch, and which of them have its axis, the first."""
    memo: dict[Variable, Variable] = {}
    for old, new in replace.items():
        if rank_of(new) != rank_of(old) + 1:
            raise ValueError(
                f"the batch for {old} of type {old.type} must have one dimension more, "
                f"got {new} of type {new.type}"
            )
        memo[old] = new
    outputs = _without_rules(outputs, set(replace))
    nodes = list(toposort(outputs, blockers=set(replace)))
    rows_read = _last_rows_read(nodes, outputs)
    for node in nodes:
        if any(x in memo for x in node.inputs):
            memo.update(zip(node.outputs, _batch_node(node, memo, size, rows_read), strict=True))
    return [memo.get(y, y) for y in outputs], [_is_batched(y, memo) for y in outputs]


def rank_of(v: Variable) -> int:
    """Number of dimensions; values that are no tensors have none."""
    return int(getattr(v.type, "ndim", 0))


def _is_batched(v: Variable, memo: Mapping[Variable, Variable]) -> bool:
    return v in memo and rank_of(memo[v]) == rank_of(v) + 1


def _batch_node(
    node: Apply, memo: Mapping[Variable, Variable], size: Variable | int, rows_read: RowsRead
) -> list[Variable]:
    """The outputs of a node for a batch of some of its inputs; an output of unchanged rank is the same for
    all.
    """
    inputs = [memo.get(x, x) for x in node.inputs]
    batched = [_is_batched(x, memo) for x in node.inputs]
    if not any(batched):
        # Only sizes of batched variables reach here: the value is another expression of the same rank.
        return node.clone_with_new_inputs(inputs, strict=False).outputs
    rule = rule_of(node.op)
    if rule is None:
        return hooks.loop_over_batch()(
            node, inputs, batched, size, f"{node.op} has no batching rule", rows_read
        )
    try:
        return rule(node.op, node, inputs, batched, size)
    except VectorizeError as error:
        return hooks.loop_over_batch()(node, inputs, batched, size, str(error), rows_read)


def _without_rules(outputs: Sequence[Variable], roots: Collection[Variable]) -> Sequence[Variable]:
    """The outputs with the values of ops that only have rules for derivatives, where these depend on roots.

    Their further inputs are no part of the value, and need not be computed for a batch of it.
    """
    memo: dict[Variable, Variable] = {}
    depends = set(roots)
    for node in toposort(outputs, blockers=roots):
        if depends.isdisjoint(node.inputs):
            continue
        depends.update(node.outputs)
        inputs = [memo.get(x, x) for x in node.inputs]
        if node.op.inline_on is not None and not hasattr(node.op, "inner_outputs"):
            memo.update(zip(node.outputs, node.op.inline_on(inputs), strict=True))
        elif any(x in memo for x in node.inputs):
            memo.update(
                zip(node.outputs, node.clone_with_new_inputs(inputs, strict=False).outputs, strict=True)
            )
    return [memo.get(y, y) for y in outputs] if memo else outputs


def _last_rows_read(nodes: Iterable[Apply], outputs: Iterable[Variable]) -> RowsRead:
    """Rows of variables that the nodes of a graph read.

    Args:
        nodes: all of them.
        outputs: variables that are wanted as they are.
    """
    readers: dict[Variable, list[Apply]] = {}
    for node in nodes:
        for x in node.inputs:
            readers.setdefault(x, []).append(node)
    return lambda v: _rows_read(v, readers, set(outputs))


def _rows_read(v: Variable, readers: Mapping[Variable, list[Apply]], outputs: set[Variable]) -> int | None:
    """Number of last rows that are read: by ``v[-1]``, perhaps of ``v[k:]``."""
    if v in outputs or not getattr(v.type, "ndim", 0):
        return None
    most = 0
    for node in readers.get(v, ()):
        if not isinstance(node.op, Subtensor) or node.inputs[0] is not v:
            return None
        entry = node.op.idx_list[0]
        if entry.start == -1 and (entry.single or (entry.stop, entry.step) == (None, None)):
            rows: int | None = 1
        elif isinstance(entry.start, int) and entry == FULL._replace(start=entry.start) and entry.start >= 0:
            after = _rows_read(node.outputs[0], readers, outputs)
            rows = None if after is None else entry.start + after
        else:
            rows = None
        if rows is None:
            return None
        most = max(most, rows)
    return max(most, 1)
