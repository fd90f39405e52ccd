# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`graphc.join`, and what it becomes: parts that are written to one buffer.

`graphc.check`, and upstream's operations that the graph stage uses, have their traits here, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.ir.checks import CHECKS, SizeChecks
from graphc.ir.constants import CONSTANTS
from graphc.ir.parts import LiftRule, Parts, again, part_type
from graphc.ir.rewrite import Rewriter, tensor_type
from graphc.ir.totality import TOTAL, Totality, never_fails
from graphc.ir.traits import (
    BATCH,
    PARTS,
    POSITIONAL,
    REFERENCE,
    SIZES,
    Batch,
    Batching,
    Sizes,
    given_sizes,
    sizes_of,
)
from graphc.ir.views import JOINS, RENAMES, SAME_ARRAY, SAME_ELEMENTS, axis_of, joined
from graphc_dialects._base import constant_value
from graphc_dialects._mlir import ir
from graphc_dialects.write import buffer_sizes

TOTAL(*CONSTANTS, "tensor.from_elements", "tensor.empty", "scf.yield")(never_fails)
POSITIONAL("tensor.extract")
SAME_ELEMENTS("tensor.cast")
RENAMES("tensor.cast")
SAME_ARRAY("tensor.cast")


@SIZES("tensor.empty")
def _empty(op: ir.Operation) -> Sizes:
    sizes = iter(op.operands)
    return [() if size >= 0 else ((next(sizes), -1),) for size in op.results[0].type.shape]


@SIZES("tensor.cast")
def _same(op: ir.Operation) -> Sizes:
    return sizes_of(op.operands[0])


@TOTAL("tensor.extract")
def _element_exists(totality: Totality, op: ir.Operation) -> bool:
    """Elements of scalars, and literal positions within static sizes."""
    x, *positions = op.operands
    numbers = [constant_value(position) for position in positions]
    return all(n is not None and 0 <= n < size for n, size in zip(numbers, x.type.shape, strict=True))


@TOTAL("tensor.dim")
def _axis_is_known(totality: Totality, op: ir.Operation) -> bool:
    """A literal axis."""
    return constant_value(op.operands[1]) is not None


@TOTAL("tensor.cast")
def _claims_nothing(totality: Totality, op: ir.Operation) -> bool:
    """Types claim nothing that is not known."""
    return totality.fits(op.operands[0], op.results[0].type)


@BATCH("tensor.cast")
def _cast_rows(b: Batching, op: ir.Operation, xs: list[Batch]) -> ir.Value:
    return b.cast(xs[0].value, b.stack_type(op.results[0].type))


# -- in part -------------------------------------------------------------------------------------------------


def _of_cast(rw: Rewriter, op: ir.Operation, parts: Parts) -> list[Parts] | None:
    return [parts] if isinstance(op.operands[0].type, ir.RankedTensorType) else None


def _cast(rw: Rewriter, op: ir.Operation, parts: Parts, operands: list[Any]) -> Any:
    return rw.cast_static(operands[0], part_type(op.results[0].type, parts))


PARTS("tensor.cast")(LiftRule(_of_cast, _cast))


@CHECKS("graphc.check")
def _passed(checks: SizeChecks, rw: Rewriter, op: ir.Operation) -> None:
    """Facts about sizes that a check which is there already establishes."""
    equal = checks.read(rw, op)
    if equal is not None:
        rw.dims.assume_equal(*map(rw.dims.size, equal))


JOINS("graphc.join")


@SIZES("graphc.join")
def _sizes(op: ir.Operation) -> Sizes:
    joined, operands = axis_of(op), list(op.operands)
    rank = len(op.results[0].type.shape)
    return [tuple((x, axis) for x in operands if axis != joined) for axis in range(rank)]


@REFERENCE("graphc.join")
def _join(op: ir.Operation, *xs: np.ndarray) -> np.ndarray:
    return np.concatenate(xs, axis=axis_of(op))


@TOTAL("graphc.join")
def _is_total(totality: Totality, op: ir.Operation) -> bool:
    """Sizes agree but for the joined axis."""
    first, *others = op.operands
    joined = axis_of(op)
    axes = [axis for axis in range(len(first.type.shape)) if axis != joined]
    return all(totality.same((other, axis), (first, axis)) for other in others for axis in axes)


@CHECKS("graphc.join")
def _checks(checks: SizeChecks, rw: Rewriter, op: ir.Operation) -> None:
    first, *others = op.operands
    axis = axis_of(op)
    checks.sum_of_sizes(rw, op.operands, axis)
    for position, other in enumerate(others, 1):
        for dim in range(len(first.type.shape)):
            if dim != axis:
                message = (
                    f"join: operand {position} has size {{given}} in dimension {dim}, "
                    "but operand 0 has {expected}"
                )
                checks.equal(rw, (other, dim), (first, dim), message)


@BATCH("graphc.join")
def _rows(b: Batching, op: ir.Operation, xs: list[Batch]) -> ir.Value:
    axis = axis_of(op)
    rank = len(op.results[0].type.shape)
    stacks = [Batch(b.repeated(x), True) for x in xs]
    values = b.agreeing(stacks, [i + 1 for i in range(rank) if i != axis])
    common = values[0].type
    for value in values[1:]:
        shape = [x if x == y else -1 for x, y in zip(common.shape, value.type.shape, strict=True)]
        common = tensor_type(shape, common.element_type)
    values = [b.cast(value, common) for value in values]
    return joined(values, axis + 1, b.stack_type(op.results[0].type), b.create)


def _of_join(rw: Rewriter, op: ir.Operation, parts: Parts) -> list[Parts] | None:
    return None if axis_of(op) in parts else [parts] * len(op.operands)


PARTS("graphc.join")(LiftRule(_of_join, again, relies=True))


# -- buffers -------------------------------------------------------------------------------------------------


@SIZES("graphc.write_join")
def _written_sizes(op: ir.Operation) -> Sizes:
    return given_sizes(buffer_sizes(op.operands[0]))


@CHECKS("graphc.write")
def _write_checks(checks: SizeChecks, rw: Rewriter, op: ir.Operation) -> None:
    """Equates the sizes of what is written with those of its place."""
    value, buffer = op.operands
    with ir.InsertionPoint(op), op.location:
        sizes = [rw.adopt(size) for size in buffer_sizes(buffer)]
    for axis, size in enumerate(sizes):
        message = f"write: the value has size {{given}} in dimension {axis}, its place has {{expected}}"
        checks.equal_size(rw, (value, axis), size, message)
