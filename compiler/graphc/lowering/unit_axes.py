# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Insertion and removal of axes of size 1, without a copy.

Bufferisation turns `tensor.expand_shape` and `tensor.collapse_shape` into views. Each group of axes holds
just one that is kept, so that this works on rows of larger arrays too, which are not contiguous.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.ir import build
from graphc.ir.views import axes_order
from graphc_dialects._mlir import ir


def unit_dimshuffle(context: Any, op: ir.Operation) -> ir.Value | None:
    """The tensor of a `graphc.dimshuffle` that leaves the elements where they are in memory.

    Args:
        context: the function conversion.
        op: the dimshuffle.

    Returns:
        A view of the source's tensor; None if the operation permutes axes.
    """
    order = axes_order(op)
    kept = [axis for axis in order if axis >= 0]
    if kept != sorted(kept):
        return None
    tensor = drop_axes(context.tensor_of(op.operands[0]), kept)
    if len(kept) < len(order):
        tensor = insert_axes(tensor, [axis >= 0 for axis in order])
    return build.cast(tensor, build.storage_type(op.results[0].type))


def drop_axes(tensor: ir.Value, kept: Sequence[int]) -> ir.Value:
    """A view with the kept axes, which are given in order; the others have size 1."""
    source = ir.RankedTensorType(tensor.type)
    if len(kept) == source.rank:
        return tensor
    shape = [size if axis in kept else 1 for axis, size in enumerate(source.shape)]
    tensor = build.cast(tensor, ir.RankedTensorType.get(shape, source.element_type))
    target = ir.RankedTensorType.get([shape[axis] for axis in kept], source.element_type)
    groups = _groups([axis in kept for axis in range(source.rank)])
    return build.create("tensor.collapse_shape", [target], [tensor], reassociation=groups).result


def insert_axes(tensor: ir.Value, kept: Sequence[bool]) -> ir.Value:
    """A view with an axis for each element of `kept`: the next axis of the tensor if true, else a new one."""
    source = ir.RankedTensorType(tensor.type)
    sizes = {axis: build.dim(tensor, axis) for axis, n in enumerate(source.shape) if n < 0}
    constants = {axis: build.constant_value(size) for axis, size in sizes.items()}
    known = {axis: n for axis, n in constants.items() if n is not None}
    if known:
        # Upstream makes operands that are constants part of an expansion, but not of the type of its memory.
        refined = [known.get(axis, n) for axis, n in enumerate(source.shape)]
        tensor = build.cast(tensor, ir.RankedTensorType.get(refined, source.element_type))
        source = ir.RankedTensorType(tensor.type)
    axes = iter(range(source.rank))
    old = [next(axes) if keep else None for keep in kept]
    shape = [1 if axis is None else source.shape[axis] for axis in old]
    dynamic = [sizes[axis] for axis in old if axis is not None and source.shape[axis] < 0]
    return build.create(
        "tensor.expand_shape",
        [ir.RankedTensorType.get(shape, source.element_type)],
        [tensor, *dynamic],
        reassociation=_groups(kept),
        static_output_shape=build.index_array(shape),
    ).result


def _groups(kept: Sequence[bool]) -> ir.Attribute:
    """Groups of axes with one that is kept in each; leading ones belong to the first. None is no group."""
    groups: list[list[int]] = []
    leading: list[int] = []
    for axis, keep in enumerate(kept):
        if keep:
            groups.append([*leading, axis])
            leading = []
        elif groups:
            groups[-1].append(axis)
        else:
            leading.append(axis)
    i64 = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get(
        [ir.ArrayAttr.get([ir.IntegerAttr.get(i64, a) for a in group]) for group in groups]
    )
