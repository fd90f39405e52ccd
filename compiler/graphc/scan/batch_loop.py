# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Batches of ops that have no batching rule: a loop over the elements of the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from graphc.errors import VectorizeError
from graphc.graph.basic import Apply, Constant, Variable, describe
from graphc.graph.tensor.type import TensorType
from graphc.ops.shape import as_size
from graphc.scan.gradient.forward import ScanBuilder
from graphc.scan.op import Scan

if TYPE_CHECKING:
    from graphc.graph.tensor.variable import TensorVariable

# How many of the last rows of a variable are read; None where it may be any.
RowsRead = Callable[[Variable], int | None]


def loop_over_batch(
    node: Apply,
    inputs: Sequence[TensorVariable],
    batched: Sequence[bool],
    size: TensorVariable,
    reason: str,
    rows_read: RowsRead,
) -> list[Variable]:
    """Apply an op to one element of a batch after the other, in a loop.

    The results of all elements must have one shape; otherwise the call fails. Of a loop that runs for
    different numbers of steps only the last rows are kept, where no others are read. A generator of random
    numbers that is not batched is handed from one element to the next.

    Args:
        node: the application without the batch.
        inputs: its inputs; those that are batched have one more leading axis.
        batched: which of them.
        size: size of the batch, an int or a 0-d integer variable.
        reason: why there is no rule, for the message.
        rows_read: how many of the last rows of an output are read.

    Returns:
        The outputs with the batch axis first; generators without one.

    Raises:
        VectorizeError: an input or output is no tensor.
    """
    _check(node, inputs, batched, reason)
    builder = ScanBuilder()
    carried = _carried(node, batched)
    places: list[Variable] = []
    for i, (x, is_batched) in enumerate(zip(inputs, batched, strict=True)):
        if is_batched:
            places.append(_row(x))
            builder.sequence(f"x{i}", x, {0: places[i]})
        elif isinstance(x, Constant) and i not in carried:
            places.append(x)
        else:
            places.append(x.type.make_variable(x.name))
            if i not in carried:
                builder.invariant(f"x{i}", x, places[i])
    results = node.clone_with_new_inputs(places, strict=False).outputs
    names = {}
    for i, j in carried.items():
        names[j] = builder.untraced(f"x{i}", inputs[i], places[i], results[j])
    for j, y in enumerate(results):
        if j not in names:
            names[j] = builder.output(f"y{j}", _last(y, node, rows_read(node.outputs[j])))
    label = getattr(node.op, "name", None) or type(node.op).__name__
    found = builder.build(as_size(size, "the size of a batch"), name=f"batch of {label}")
    return [found[names[j]] for j in range(len(results))]


def _last(y: Variable, node: Apply, rows: int | None) -> Variable:
    """The last rows of the trace of a loop; all of any other variable."""
    return y[-rows:] if rows is not None and isinstance(node.op, Scan) and not node.op.reverse else y


def _check(node: Apply, inputs: Sequence[Variable], batched: Sequence[bool], reason: str) -> None:
    """Refuse what a loop cannot stack."""
    stacked = [x for x, is_batched in zip(inputs, batched, strict=True) if is_batched]
    for v in (*stacked, *node.outputs):
        if not isinstance(v.type, TensorType):
            raise VectorizeError(
                f"{reason}{describe(node.location)}, and a loop over the batch cannot stack {v} of type "
                f"{v.type}"
            )


def _row(x: TensorVariable) -> Variable:
    """A variable for one element of a batch."""
    return TensorType(x.type.dtype, x.type.shape[1:]).make_variable(x.name)


def _carried(node: Apply, batched: Sequence[bool]) -> dict[int, int]:
    """Inputs that are generators, and the outputs that are their next states."""

    def generators(variables: Sequence[Variable]) -> list[int]:
        return [i for i, v in enumerate(variables) if getattr(v.type, "is_untraced", False)]

    before, after = generators(node.inputs), generators(node.outputs)
    return {i: j for i, j in zip(before, after, strict=False) if not batched[i]}
