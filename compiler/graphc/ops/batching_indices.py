# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Batches of indexed arrays, and of indices (see `graphc.ops.batching`).

Where each element of a batch has indices of its own, the batch axis and the indexed one are joined, and the
indices count in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphc.errors import VectorizeError
from graphc.graph.basic import Variable
from graphc.ops.advanced import Put, Take
from graphc.ops.bounds import FULL, SYMBOLIC, Entry
from graphc.ops.create import Iota
from graphc.ops.shaping import dimshuffle, repeat, reshape
from graphc.ops.sizes import product_of, size_of, sizes_of
from graphc.ops.subtensor import IncSubtensor, Subtensor

if TYPE_CHECKING:
    pass


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


def batch_inc_subtensor(
    op: IncSubtensor, inputs: Sequence[Variable], batched: Sequence[bool], size: Variable | int
) -> Variable:
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
