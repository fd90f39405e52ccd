# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Broadcasting: only dimensions whose size is statically 1 broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphc.graph.basic import Apply, Variable
from graphc.graph.location import describe

if TYPE_CHECKING:
    import numpy as np


Shape = tuple[int | None, ...]


def broadcast_static(shapes: Sequence[Shape], what: str, operands: Sequence[Variable] = ()) -> Shape:
    """The static shape of the result of operands of equal rank.

    Args:
        shapes: static shapes, None for an unknown size.
        what: name of the operation, for the message.
        operands: the variables, for the message.

    Raises:
        ValueError: two known sizes differ and neither is 1.
    """
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    result: list[int | None] = []
    for axis, sizes in enumerate(zip(*shapes, strict=True)):
        known = {size for size in sizes if size is not None and size != 1}
        if len(known) > 1:
            names = ", ".join(f"{x} of shape {x.type.shape}" for x in operands)
            raise ValueError(
                f"the operands of {what} have sizes {' and '.join(map(str, sorted(known)))} in dimension "
                f"{axis}, "
                f"which do not broadcast: {names or list(shapes)}"
            )
        result.append(known.pop() if known else (None if None in sizes else 1))
    return tuple(result)


def check_broadcast(node: Apply, values: Sequence[np.ndarray]) -> None:
    """Check at run time that sizes which are not statically 1 agree.

    Raises:
        ValueError: they differ; also when one is 1 only at run time, which does not broadcast.
    """
    if len(values) == 1:
        return
    types = [x.type for x in node.inputs]
    for axis in range(types[0].ndim):
        sizes = {value.shape[axis] for value, t in zip(values, types, strict=True) if t.shape[axis] != 1}
        if len(sizes) > 1:
            given = ", ".join(f"{x} {value.shape}" for x, value in zip(node.inputs, values, strict=True))
            note = "; a size that is 1 only at run time does not broadcast" if 1 in sizes else ""
            raise ValueError(
                f"the operands of {node.op}{describe(node.location)} have different sizes in dimension "
                f"{axis}: "
                f"{given}{note}"
            )


def unbroadcast(g: Variable, x: Variable) -> Variable:
    """Sum a cotangent over the dimensions in which ``x`` was broadcast."""
    if not hasattr(g.type, "shape"):
        return g
    axes = tuple(
        axis
        for axis, (mine, theirs) in enumerate(zip(x.type.shape, g.type.shape, strict=True))
        if mine == 1 and theirs != 1
    )
    return g.sum(axis=axes, keepdims=True) if axes else g
