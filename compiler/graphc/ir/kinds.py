# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Treatment of each graph-stage operation by the lowering.

* a *view* computes no new value: each reader inlines it as an index computation;
* an *elementwise* operation computes one value per element of its result;
* a *reduction* combines the elements of its operand along some axes;
* everything else is lowered by a rule of its own (graphc.lowering.structural).
"""

from __future__ import annotations

from collections.abc import Sequence

from graphc.ir.traits import Marker
from graphc.ir.views import Create, create_here
from graphc.ops.elementwise import ROWS
from graphc_dialects._mlir import ir

# They combine the elements along the attribute `axes`, or find one along the attribute `axis`.
REDUCTIONS = Marker()
# Those that combine by a function of two numbers.
FOLDS = Marker()
# Those that add.
SUMS = Marker()
# Sums of products of two operands along their last axes but for `transpose_a` and `transpose_b`.
PRODUCTS = Marker()
# They compute one number for each element of their result.
PER_ELEMENT = Marker()
PER_ELEMENT("graphc.cast", *(f"graphc.{name}" for name in ROWS))
# Elementwise operations that take no longer than reading their result from memory.
CHEAP = frozenset(f"graphc.{row.name}" for row in ROWS.values() if row.cheap) | {"graphc.cast"}


def reduced_axes(op: ir.Operation) -> tuple[int, ...]:
    """The axes a reduction removes."""
    attributes = op.attributes
    return tuple(attributes["axes"]) if "axes" in attributes else (attributes["axis"].value,)


def fold_of(op: ir.Operation | None) -> str | None:
    """Combining operation of a reduction: sum, prod, max, min, and, or; None if it is no fold."""
    return op.name.rpartition("_")[2] if op is not None and op.name in FOLDS else None


def flags_of(op: ir.Operation) -> tuple[bool, bool]:
    """`transpose_a` and `transpose_b` of a product."""
    attributes = op.attributes
    return bool(attributes["transpose_a"].value), bool(attributes["transpose_b"].value)


def reduce(
    fold: str,
    x: ir.Value,
    axes: Sequence[int],
    type_: ir.Type | None = None,
    create: Create = create_here,
    **attributes: ir.Attribute,
) -> ir.Value:
    """A reduction.

    Args:
        fold: see `fold_of`. x, axes: what is reduced.
        type_: of the result, if it is more than what follows from that of x.
        create: makes operations, such as `Rewriter.create`; by default at the current insertion point.
        attributes: further ones, such as `allow_empty`.
    """
    if type_ is None:
        kept = [size for axis, size in enumerate(x.type.shape) if axis not in axes]
        type_ = ir.RankedTensorType.get(kept, x.type.element_type)
    array = ir.DenseI64ArrayAttr.get(list(axes))
    return create(f"graphc.reduce_{fold}", [x], type_, axes=array, **attributes)


def matrix_product(
    a: ir.Value, b: ir.Value, flags: tuple[bool, bool], type_: ir.Type, create: Create = create_here
) -> ir.Value:
    """A product of matrices, or of batches of them; see `reduce` for `create`."""
    attributes = {f"transpose_{side}": ir.BoolAttr.get(flag) for side, flag in zip("ab", flags, strict=True)}
    return create("graphc.matmul", [a, b], type_, **attributes)


def static_shape(value: ir.Value) -> tuple[int | None, ...]:
    """The shape of a ranked tensor value, None where it is dynamic."""
    return tuple([None if size < 0 else size for size in value.type.shape])
