# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Batching, which gives each op one more leading axis (see `graphc.transforms.vectorize`).

A rule is a function of ``(op, node, inputs, batched, size)``: the node without the batch, its inputs with it,
which of them have the axis, and its size. It returns the outputs with the axis, or without it where they are
the same for all.

Where each element of a batch has indices of its own, the batch axis and the indexed one are joined, and the
indices count in both.

`batch_graph` adds the axis to some variables of a graph, and so to all that is computed from them. An op says
how by ``batch(node, inputs, batched, size) -> list of outputs``; the rules of ops that index are here. Where
there is no rule, or none for the inputs that are batched, a loop applies the op to one element of the batch
after the other (`graphc.scan.batch_loop`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import singledispatch
from typing import Any

from graphc import hooks
from graphc.errors import VectorizeError
from graphc.graph.basic import Apply, Flags, Variable, Variables
from graphc.graph.op import Op
from graphc.graph.traversal import toposort
from graphc.ops.advanced import Put, Take
from graphc.ops.create import Iota
from graphc.ops.join import Join
from graphc.ops.shape import MakeVector, product_of, size_of, sizes_of
from graphc.ops.shaping import all_batched, dimshuffle, repeat, reshape
from graphc.ops.subtensor import FULL, SYMBOLIC, Entry, IncSubtensor, Subtensor

# How many a batch has.
Size = Variable | int


def with_axis(x: Variable, is_batched: bool) -> Variable:
    """An operand that broadcasts: with a leading axis of size 1 where it lacks the batch axis."""
    return x if is_batched else dimshuffle(x, ("x", *range(x.type.ndim)))


# Integer arrays ---------------------------------------------------------------------------------------------


def batch_take(axis: int, x: Variable, indices: Variable, x_batched: bool, indices_batched: bool) -> Variable:
    """``Take(axis)`` of a batch of arrays, of indices, or of both; the batch axis is the first."""
    if not indices_batched:
        return Take(axis + 1)(x, indices)
    if not x_batched:
        taken = Take(axis)(x, indices)
        others = [a for a in range(taken.type.ndim) if a != axis]
        return dimshuffle(taken, (axis, *others))
    taken = Take(0)(_joined(x, axis), _positions(x, axis, indices))
    # From (batch, indices, before, after) to (batch, before, indices, after).
    return dimshuffle(taken, _between(indices.type.ndim - 1, axis, taken.type.ndim))


def batch_put(op: Put, x: Variable, y: Variable, indices: Variable, indices_batched: bool) -> Variable:
    """The op on a batch of arrays, ``y`` and, perhaps, indices."""
    put = type(op)(op.axis + 1, op.set_instead_of_inc)
    if not indices_batched:
        return put(x, y, indices)
    rank = indices.type.ndim - 1
    order = _between(rank, op.axis, y.type.ndim)
    y = dimshuffle(y, [order.index(a) for a in range(y.type.ndim)])
    joined = _joined(x, op.axis)
    changed = type(op)(0, op.set_instead_of_inc)(joined, y, _positions(x, op.axis, indices))
    moved = [0, op.axis + 1, *(a for a in range(1, x.type.ndim) if a != op.axis + 1)]
    sizes = sizes_of(x)
    parted = reshape(changed, [sizes[a] for a in moved])
    return dimshuffle(parted, [moved.index(a) for a in range(x.type.ndim)])


def _joined(x: Variable, axis: int) -> Variable:
    """A batch of arrays with the batch axis and the indexed one as a single leading axis."""
    rest = [a for a in range(1, x.type.ndim) if a != axis + 1]
    sizes = sizes_of(x)
    moved = dimshuffle(x, (0, axis + 1, *rest))
    return reshape(moved, [product_of([sizes[0], sizes[axis + 1]]), *(sizes[a] for a in rest)])


def _positions(x: Variable, axis: int, indices: Variable) -> Variable:
    """Indices of each element of the batch, as positions along the joined axis."""
    count, length = size_of(x, 0), size_of(x, axis + 1)
    # Reading the positions from a list of all of them checks bounds and resolves negative ones.
    valid = Take(0)(Iota("int64")(0, 1, length), indices)
    first = Iota("int64")(0, 1, count) * length
    return valid + dimshuffle(first, (0, *("x",) * (indices.type.ndim - 1)))


def _between(rank: int, axis: int, ndim: int) -> list[int]:
    """The permutation that puts ``rank`` axes after the first one after ``axis`` others."""
    indices = range(1, 1 + rank)
    before = range(1 + rank, 1 + rank + axis)
    return [0, *before, *indices, *range(1 + rank + axis, ndim)]


# Slices -----------------------------------------------------------------------------------------------------


def _split_bounds(
    op: Subtensor | IncSubtensor, bounds: Sequence[Variable], batched: Sequence[bool]
) -> tuple[list[Entry], list[Variable], dict[int, Variable]]:
    """Entries and bounds that are the same for all, and the batched integers by axis.

    Raises:
        VectorizeError: the bounds of a slice are batched.
    """
    entries: list[Entry] = []
    same: list[Variable] = []
    single: dict[int, Variable] = {}
    given = iter(zip(bounds, batched, strict=True))
    for axis, entry in enumerate(op.idx_list):
        own = [next(given) for _ in range(entry.operands())]
        if not any(is_batched for _, is_batched in own):
            entries.append(entry)
            same += [bound for bound, _ in own]
        elif entry.single and entry.start == SYMBOLIC:
            entries.append(FULL)
            single[axis] = own[0][0]
        else:
            raise VectorizeError(f"{op} has no rule for a batch of bounds of slices")
    return entries, same, single


def batch_subtensor(op: Subtensor, inputs: Sequence[Variable], batched: Sequence[bool]) -> Variable:
    """Slices of a batch of arrays; single indices may be batched, too."""
    entries, bounds, single = _split_bounds(op, inputs[1:], batched[1:])
    x, is_batched = inputs[0], batched[0]
    if any(entry != FULL for entry in entries):
        x = Subtensor([FULL, *entries] if is_batched else entries)(x, *bounds)
    elif not single:
        return x
    for axis, index in single.items():
        # The result keeps the axis, with size 1.
        taken = batch_take(axis, x, dimshuffle(index, (0, "x")), is_batched, True)
        x, is_batched = taken, True
    return x


def batch_inc_subtensor(op: IncSubtensor, inputs: Variables, batched: Flags, size: Size) -> Variable:
    """Slices of a batch of arrays set or increased; a single index may be batched if it is the only one."""
    entries, bounds, single = _split_bounds(op, inputs[2:], batched[2:])
    x = inputs[0] if batched[0] else repeat(inputs[0], size)
    y = with_axis(inputs[1], batched[1])
    if not single:
        return IncSubtensor([FULL, *op.idx_list], op.set_instead_of_inc)(x, y, *bounds)
    if len(single) > 1 or any(entry != FULL for entry in entries):
        raise VectorizeError(f"{op} has no rule for a batch of indices of several axes")
    ((axis, index),) = single.items()
    put = Put(axis, op.set_instead_of_inc)
    return batch_put(put, x, y, dimshuffle(index, (0, "x")), True)


Rule = Callable[[Any, Apply, Sequence[Variable], Sequence[bool], Size], list[Variable]]


@singledispatch
def _rule(op: Op, node: Apply, inputs: Variables, batched: Flags, size: Size) -> list[Variable]:
    raise VectorizeError(f"{op} has no batching rule")


def rule_of(op: Op) -> Rule | None:
    """The rule for an op: its own ``batch`` method, one of this module, or None."""
    if op.batch is not None:
        return lambda op, *arguments: op.batch(*arguments)
    found = _rule.dispatch(type(op))
    return None if found is _rule.dispatch(Op) else found


@_rule.register
def _(op: MakeVector, node: Apply, inputs: Variables, batched: Flags, size: Size) -> list[Variable]:
    columns = [dimshuffle(x, (0, "x")) for x in all_batched(inputs, batched, size)]
    return [Join(1)(*columns)]


@_rule.register
def _(op: Subtensor, node: Apply, inputs: Variables, batched: Flags, size: Size) -> list[Variable]:
    return [batch_subtensor(op, inputs, batched)]


@_rule.register
def _(op: IncSubtensor, node: Apply, inputs: Variables, batched: Flags, size: Size) -> list[Variable]:
    return [batch_inc_subtensor(op, inputs, batched, size)]


@_rule.register
def _(op: Take, node: Apply, inputs: Variables, batched: Flags, size: Size) -> list[Variable]:
    return [batch_take(op.axis, inputs[0], inputs[1], batched[0], batched[1])]


@_rule.register
def _(op: Put, node: Apply, inputs: Variables, batched: Flags, size: Size) -> list[Variable]:
    x, y, indices = inputs
    x = x if batched[0] else repeat(x, size)
    return [batch_put(op, x, with_axis(y, batched[1]), indices, batched[2])]


# How many of the last rows of a variable are read; None where it may be any.
RowsRead = Callable[[Variable], int | None]


def batch_graph(outputs: Variables, replace: Mapping[Variable, Variable], size: Any) -> list[Variable]:
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
    outputs: Sequence[Variable], replace: Mapping[Variable, Variable], size: Size
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
    node: Apply, memo: Mapping[Variable, Variable], size: Size, rows_read: RowsRead
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
