# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of tensors, and how operations are computed in part (`graphc.ir.traits`, `PARTS`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from graphc.ir.rewrite import Rewriter, tensor_type
from graphc.ir.views import part_of
from graphc.ir.walk import named_attributes
from graphc_dialects._mlir import ir


class Part(NamedTuple):
    """A part along one axis: index values, and the size if it is static (else negative)."""

    offset: ir.Value
    size: ir.Value
    stride: ir.Value
    static: int


Parts = dict[int, Part]
Operands = Callable[[Rewriter, Any, Parts], "list[Parts] | None"]
Build = Callable[[Rewriter, Any, Parts, list[Any]], Any]


class LiftRule(NamedTuple):
    """A rule that computes an operation in part.

    Attributes:
        operands: the parts of its tensor operands for parts of its result; None where that is not possible.
        build: the parts of its result from its operands, of which the tensors are these parts.
        relies: whether sizes have to be checked, because fewer would be for a part.
    """

    operands: Operands
    build: Build
    relies: bool = False


def slice_of(rw: Rewriter, x: ir.Value, parts: Parts) -> ir.Value:
    """`graphc.slice` of parts of a tensor."""
    if not parts:
        return x
    zero, one, shape = rw.index(0), rw.index(1), list(x.type.shape)
    bounds = [
        parts[axis] if axis in parts else Part(zero, rw.dim(x, axis), one, size)
        for axis, size in enumerate(shape)
    ]
    type_ = tensor_type([bound.static for bound in bounds], x.type.element_type)
    return part_of(x, [bound[:3] for bound in bounds], type_, rw.create)


def part_type(type_: ir.Type, parts: Parts) -> ir.Type:
    """The type of parts of a tensor."""
    shape = [parts[axis].static if axis in parts else size for axis, size in enumerate(type_.shape)]
    return tensor_type(shape, type_.element_type)


def again(rw: Rewriter, op: ir.Operation, parts: Parts, operands: list[ir.Value]) -> ir.Value:
    """The operation on other operands."""
    attributes = named_attributes(op)
    return rw.create(op.name, operands, part_type(op.results[0].type, parts), **attributes)


def sized(rw: Rewriter, op: ir.Operation, parts: Parts, operands: list[ir.Value]) -> ir.Value:
    """Operations that are told the sizes of their result."""
    sizes = [parts[axis].size if axis in parts else size for axis, size in enumerate(operands[1:])]
    return again(rw, op, parts, [operands[0], *sizes])


def same(rw: Rewriter, op: ir.Operation, parts: Parts) -> list[Parts] | None:
    """The same parts of the one operand."""
    return [parts]
