# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the first row of an output say what size its rows have, where nothing else does."""

from __future__ import annotations

from typing import Any

from graphc.ir import build
from graphc.ir.kinds import reduce
from graphc.ir.rewrite import tensor_type
from graphc.ir.scan_view import ScanView, collect, name_of, scan_name, scans, take_trace, tap_of, window_of
from graphc.ir.value import smaller
from graphc.ir.views import row_at, with_sizes
from graphc.passes import Pass
from graphc_dialects._base import dim_of
from graphc_dialects._mlir import ir
from graphc_dialects.scan_shapes import UnknownSize, outside_size


def specify_rows(view: ScanView) -> int:
    """Demands of the rows of each output the sizes of its first row; returns how many sizes these are.

    Sizes that follow from what is outside of the body stay as they are.
    """
    collects = view.collects()
    wanted = [(name, axis) for name, op in collects.items() for axis in _unknown_axes(view, op)]
    if not wanted:
        return 0
    sizes = _first_sizes(view, wanted)
    for name in dict.fromkeys(name for name, _ in wanted):
        _demand(view, collects[name], {axis: size for (of, axis), size in sizes.items() if of == name})
    return len(wanted)


def _unknown_axes(view: ScanView, collect: ir.Operation) -> list[int]:
    row = collect.operands[0]
    unknown = []
    for axis, size in enumerate(row.type.shape):
        try:
            if size < 0:
                with ir.InsertionPoint(view.op), view.op.location:
                    outside_size(view.op, row, axis)
        except UnknownSize:
            unknown.append(axis)
    return unknown


def _first_sizes(view: ScanView, wanted: list[tuple[str, int]]) -> dict[tuple[str, int], ir.Value]:
    """Sizes of rows of outputs along axes, by a scan of at most one iteration: index values before it."""
    with ir.InsertionPoint(view.op), view.op.location:
        count, last = smaller(view.steps, 1), view.steps - 1
    probe = ScanView(view.op.clone(ip=ir.InsertionPoint(view.op)))
    probe.op.operands[0] = count
    _read_initial_rows(probe, last if view.reverse else None)
    labels = _collect_sizes(probe, wanted)
    with ir.InsertionPoint(view.op), view.op.location:
        return {key: _only_value(probe, label) for key, label in labels.items()}


def _read_initial_rows(probe: ScanView, last: Any) -> None:
    """Makes a copy of a scan into its first iteration, at index `last` if that is not None."""
    reads, carries = probe.reads(), probe.carries()
    users = [(use.owner, use.operand_number) for use in probe.index.uses]
    if last is not None:
        with ir.InsertionPoint.at_block_begin(probe.block), probe.op.location:
            t = probe.index + last
        for user, position in users:
            user.operands[position] = t
        probe.op.attributes["reverse"] = ir.BoolAttr.get(False)
    for read in reads:
        carry = carries[name_of(read)]
        row = tap_of(read) + window_of(carry)
        with ir.InsertionPoint(read), read.location:
            # Not by a constant: what does not depend on the index may be moved to where no iteration runs.
            index = probe.index + row
            value = row_at(carry.operands[0], index, read.results[0].type)
        read.results[0].replace_all_uses_with(value)
        read.erase()


def _collect_sizes(probe: ScanView, wanted: list[tuple[str, int]]) -> dict[tuple[str, int], str]:
    """Collects sizes of rows instead of the rows, and carries no states; returns the names of the sizes."""
    collects, i64 = probe.collects(), ir.IntegerType.get_signless(64)
    declared, end = list(probe.declarations().values()), probe.end
    labels = {}
    with ir.InsertionPoint(end), probe.op.location:
        for name, axis in wanted:
            size = dim_of(collects[name].operands[0], axis)
            number = build.create("arith.index_cast", [i64], [size]).result
            scalar = build.create("tensor.from_elements", [ir.RankedTensorType.get([], i64)], [number]).result
            labels[name, axis] = f"size of {name} along {axis}"
            collect(scalar, labels[name, axis])
        ir.Operation.create(end.name, [], [])
    for op in (*declared, end):
        op.erase()
    return labels


def _only_value(probe: ScanView, label: str) -> ir.Value:
    """The row of the one iteration; 0 without an iteration."""
    trace = take_trace(probe, label, tensor_type([-1], ir.IntegerType.get_signless(64)))
    return build.create("arith.index_cast", [build.index_type()], [reduce("sum", trace, [0])[()]]).result


def _demand(view: ScanView, collect: ir.Operation, sizes: dict[int, ir.Value]) -> None:
    """Checks that rows have the sizes, and collects rows that are known to have them."""
    row, scan = collect.operands[0], scan_name(view.op)
    with ir.InsertionPoint(collect), collect.location:
        given = [dim_of(row, axis) for axis in range(len(row.type.shape))]
        for axis, size in sizes.items():
            same = build.compare_index(0, given[axis], size)
            message = (
                f"the rows of the output '{name_of(collect)}' of scan '{scan}' have size {{expected}} in "
                f"dimension {axis} in the first iteration, but {{given}} in a later one"
            )
            build.check(same, given[axis], size, message)
        wanted = [sizes.get(axis, size) for axis, size in enumerate(given)]
        collect.operands[0] = with_sizes(row, wanted, row.type)


class ScanRowSizes(Pass):
    """Finds the sizes of rows that depend on the iteration, such as those of `x[i : i + k]` for an index i.

    The result of a scan is allocated before its iterations run, so the size of a row has to be known outside.
    Where it depends on a row of a sequence, a state, or a loop in the body, the first iteration decides:

    * A scan of at most one iteration, before it, computes the sizes in a copy of the body (of which only what
      the sizes need stays). Without any iteration the sizes are 0.
    * A check in the body sees to it that every row has these sizes (ValueError), and `specify_shape` says so
      to all later passes.

    Inner scans come first, so that sizes of their traces are known in the bodies around them.

    Source: the first iteration of PyTensor's `Scan.perform`, which allocates its outputs.
    """

    stage = "graph"

    def run(self, module: ir.Module) -> None:
        for op in scans(module.operation):
            self.count("sizes of rows", specify_rows(ScanView(op)))
