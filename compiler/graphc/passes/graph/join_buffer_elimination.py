# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Joined values are computed in their slices of the result."""

from __future__ import annotations

from dataclasses import field
from operator import add
from typing import Any

from graphc.ir.checks import size_of
from graphc.ir.ownership import computes
from graphc.ir.rewrite import Rewriter, tensor_type
from graphc.ir.views import (
    JOINS,
    RENAMES,
    RESHAPES,
    SAME_ARRAY,
    UPDATES,
    UPDATES_PART,
    axis_of,
    inverse_order,
    keeps_order,
    order_of,
)
from graphc.ir.walk import definition, functions, location_of, seen_through
from graphc.passes import Pass
from graphc.passes.graph._joins import JoinRules
from graphc_dialects._mlir import ir
from graphc_dialects.write import new_buffer, read_buffer, write_to
from graphc_runtime.record import record


@record()
class _Stream:
    """The producer of one part.

    Attributes:
        operand: of the join, without casts of its static shape.
        value: what is written: the operand, or what it is a view of.
        views: the absorbed operations, the last one first.
        eligible: whether the value can be computed in its part.
    """

    operand: ir.Value
    value: ir.Value
    views: list[ir.Operation] = field(default_factory=list)
    eligible: bool = False


class JoinWriter:
    """The rule, and what it has to remember.

    Args:
        min_eligible: smallest number of eligible operands for which a join is rewritten.

    Attributes:
        counts: what has been done.
    """

    def __init__(self, min_eligible: int) -> None:
        self._min_eligible = min_eligible
        self._placed: set[ir.Value] = set()
        self.counts: dict[str, int] = {}

    def write(self, rw: Rewriter, op: ir.Operation) -> ir.Value | None:
        """The tensor of a `write_join` that replaces a join, or None."""
        axis = axis_of(op)
        streams = [self._stream(op, x, axis) for x in op.operands]
        placed: set[ir.Value] = set()
        for stream in streams:
            stream.eligible = stream.eligible and stream.value not in self._placed | placed
            if stream.eligible:
                placed.add(stream.value)
            else:
                stream.value, stream.views = stream.operand, []
        # Bufferization places one value, but nothing that is seen in another form, and no chain of updates:
        # these store in memory that is chosen before the first one.
        is_left = any(stream.eligible and (stream.views or _is_updated(stream.value)) for stream in streams)
        enough = 1 if is_left else self._min_eligible
        if len(placed) < enough or not self._agree(op, axis, streams):
            return None
        self._placed |= placed
        self._count("joins", 1)
        self._count("values computed in place", len(placed))
        self._count("absorbed views", sum(len(stream.views) for stream in streams))
        self._count("copied operands", len(streams) - len(placed))
        return self._emit(rw, op, axis, streams)

    def _count(self, name: str, number: int) -> None:
        if number:
            self.counts[name] = self.counts.get(name, 0) + number

    def _stream(self, join: ir.Operation, operand: ir.Value, axis: int) -> _Stream:
        """Walks up from an operand to what computes it."""
        operand = seen_through(operand, ("tensor.cast",))
        # A slice lies in one piece only if nothing comes before the joined axis.
        contiguous = all(size == 1 for size in list(join.results[0].type.shape)[:axis])
        stream = _Stream(operand, operand)
        value = operand
        views: list[ir.Operation] = []
        while (view := definition(value, *RENAMES)) is not None and view.block == join.block:
            if view.name in RESHAPES and not contiguous:
                break
            if not keeps_order(view):
                contiguous = False
            views.append(view)
            value = view.operands[0]
        if _is_computed(value, join.block):
            stream.value, stream.views, stream.eligible = value, views, True
        return stream

    def _emit(self, rw: Rewriter, op: ir.Operation, axis: int, streams: list[_Stream]) -> ir.Value:
        kind = self._kind(op, axis, streams)
        sizes = [size_of(rw, streams[0].operand, dim) for dim in range(len(kind.shape))]
        parts = [size_of(rw, stream.operand, axis) for stream in streams]
        total = parts[0]
        for part in parts[1:]:
            total = rw.build(add, total, part)
        sizes[axis] = total
        sizes = [
            rw.index(known) if known >= 0 else size for size, known in zip(sizes, kind.shape, strict=True)
        ]
        with ir.InsertionPoint(rw.anchor), op.location:
            buffer = new_buffer(kind, sizes)
            split = _create(
                "graphc.write_split", ["buffer"] * len(parts), [buffer, *parts], axis=op.attributes["axis"]
            )
        tokens = [self._write(rw, stream, part) for stream, part in zip(streams, split.results, strict=True)]
        return read_buffer(buffer, tokens, op.results[0].type, rw.create)

    def _agree(self, op: ir.Operation, axis: int, streams: list[_Stream]) -> bool:
        """True if no operand is known not to fit: a check before the join will say so."""
        shape = self._kind(op, axis, streams).shape
        return all(
            dim == axis or size == want or size < 0
            for stream in streams
            for dim, (size, want) in enumerate(zip(stream.operand.type.shape, shape, strict=True))
        )

    def _kind(self, op: ir.Operation, axis: int, streams: list[_Stream]) -> ir.Type:
        """The type of the result, with all sizes that are known of some operand."""
        kind = op.results[0].type
        shape = list(kind.shape)
        for dim in range(len(shape)):
            known = [stream.operand.type.shape[dim] for stream in streams if dim != axis]
            shape[dim] = next((size for size in (shape[dim], *known) if size >= 0), -1)
        return tensor_type(shape, kind.element_type)

    def _write(self, rw: Rewriter, stream: _Stream, buffer: ir.Value) -> ir.Value:
        for view in stream.views:
            buffer = self._inverse(rw, view, buffer)
        with ir.InsertionPoint(rw.anchor), location_of(stream.value, rw.anchor):
            return write_to(stream.value, buffer)

    def _inverse(self, rw: Rewriter, view: ir.Operation, buffer: ir.Value) -> ir.Value:
        """The buffer for the operand of a view, in that of its result."""
        if view.name in SAME_ARRAY:
            return buffer
        source = view.operands[0]
        attributes: dict[str, ir.Attribute] = {"type": ir.TypeAttr.get(_known_type(source))}
        sizes = []
        order, rank = order_of(view), len(source.type.shape)
        if order is not None:
            attributes["order"] = ir.DenseI64ArrayAttr.get(inverse_order(order, rank))
        else:
            sizes = [size_of(rw, source, axis) for axis in range(rank)]
        with ir.InsertionPoint(rw.anchor), view.location:
            return _create("graphc.write_view", ["buffer"], [buffer, *sizes], **attributes).result


def _create(name: str, results: list[str], operands: list[ir.Value], **attributes: Any) -> Any:
    types = [ir.Type.parse(f"!graphc.{kind}") for kind in results]
    return ir.Operation.create(name, types, operands, attributes)


def _known_type(value: ir.Value) -> ir.Type:
    """The type of a value, with sizes that are known before casts: views drop axes of static size 1."""
    shape, element_type = list(value.type.shape), value.type.element_type
    while (view := definition(value, *SAME_ARRAY)) is not None:
        value = view.operands[0]
        sizes = zip(shape, value.type.shape, strict=True)
        shape = [size if size >= 0 else known for size, known in sizes]
    return tensor_type(shape, element_type)


def _is_updated(value: ir.Value) -> bool:
    """True if a value is the result of an update of an updated array."""
    update = definition(value, *UPDATES)
    return update is not None and definition(update.operands[0], *UPDATES) is not None


def _is_computed(value: ir.Value, block: ir.Block) -> bool:
    """True if an operation of the block computes a value in memory that is chosen for it."""
    op = definition(value)
    # Each region of a conditional computes its value there.
    return op is not None and bool(op.block == block) and (op.name == "scf.if" or computes(op))


@record()
class JoinBufferElimination(Pass):
    """Allocates the result of a `join` once and lets every operand be computed in its slice of it.

    A join becomes `write_buffer` (the memory of the result), `write_split` (its disjoint slices along the
    axis), a `write` of each operand, and `write_join` (the tensor, when all has been written). The lowering
    computes a value that is written to a buffer right there; nothing is tested at run time.

    * Views between what computes an operand and the join (`dimshuffle`, `reshape`, so also ravel and
      expand_dims, `specify_shape`, `tensor.cast`) are absorbed: the slice is seen the other way round with
      `write_view`. A slice that is reshaped must be contiguous: no axis before the joined one is longer
      than 1.
    * *Eligible* is what is computed in the same block: by elementwise operations, reductions, products,
      gathers, updates, recurrences, scans (what is kept of a state or output), conditionals, and other joins.
      Arguments, literals and views are copied into their slice. A value that has a destination already (it
      occurs twice in a join, or in two joins) is copied the second time; what else reads a value reads the
      slice.
    * The lowering computes apart, and copies, what would be slow in a slice that is not made of rows (a
      transposed one, a column): matrix products, and reductions along other axes than the last.
    * Nothing is rewritten with fewer eligible operands than the option asks for.

    Before that, joins are found and removed:

    * a chain of `update_slice` that sets every element, in blocks that can be separated by straight cuts,
      is a join of the blocks, whatever it started from; slices of sizes that are known at run time only are
      compared as sums of sizes. One that adds to every element once is the sum of what it started from and
      the join: of zeros, as in the gradient of a vector that was taken apart, the join;
    * a `slice` of a join that lies within one operand is a slice of the operand, or the operand itself, so
      that the parts of a split of a join are the operands;
    * a join of neighbouring slices of one array is a slice;
    * a sum along the joined axis is the sum of the operands' sums, and along other axes the join of their
      sums.

    Options:
        min-eligible: smallest number of eligible operands for which a join is rewritten; one is enough if
            views of it are absorbed, or it has been updated more than once.

    Source: PyTensor's pull request 2014 (WriteSplit and WriteJoin), and its rewrites `local_reduce_join` and
    `local_subtensor_of_join`.
    """

    stage = "graph"
    acts_on = frozenset({*JOINS, *UPDATES_PART})
    min_eligible: int = 2

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            simplifier = Rewriter(function, JoinRules().table())
            simplifier.run()
            writer = JoinWriter(self.min_eligible)
            Rewriter(function, {name: [writer.write] for name in JOINS}).run()
            self.count_all({**simplifier.counts, **writer.counts})
