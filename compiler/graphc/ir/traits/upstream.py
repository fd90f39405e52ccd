# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Upstream's operations that the graph stage uses."""

from __future__ import annotations

from typing import Any

from graphc.ir.constants import CONSTANTS
from graphc.ir.parts import LiftRule, Parts, part_type
from graphc.ir.rewrite import Rewriter
from graphc.ir.totality import TOTAL, Totality, never_fails
from graphc.ir.traits.interfaces import BATCH, PARTS, POSITIONAL, SIZES, Batch, Batching, Sizes, sizes_of
from graphc.ir.views import RENAMES, SAME_ARRAY, SAME_ELEMENTS
from graphc_dialects._base import constant_value
from graphc_dialects._mlir import ir

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
