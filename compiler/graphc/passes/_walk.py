# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small helpers for passes that move, replace and erase operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from graphc_dialects._mlir import ir


def functions(module: Any) -> Iterator[Any]:
    """The `func.func` operations of a module that have a body."""
    for op in module.body.operations:
        if op.operation.name == "func.func" and len(op.regions[0].blocks):
            yield op


def walk(region_or_op: Any) -> Iterator[Any]:
    """Operations inside an op or a region, in program order, an op before what it contains.

    Each block is listed before it is entered, so visited operations may be erased, and operations inserted
    before the current one are not visited.
    """
    regions = [region_or_op] if isinstance(region_or_op, ir.Region) else list(region_or_op.regions)
    for region in regions:
        for block in region.blocks:
            for op in list(block.operations):
                yield op
                if len(op.operation.regions):
                    yield from walk(op.operation)


def operations(module: Any, *names: str) -> list[Any]:
    """Operations in the module's functions with one of the names (all if none is given), in program order."""
    return [
        op
        for function in functions(module)
        for op in walk(function)
        if not names or op.operation.name in names
    ]


def definition(value: Any) -> Any | None:
    """The operation that defines a value; None for a block argument."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner


def shape_of(value: Any) -> tuple[int | None, ...]:
    """Sizes of a ranked tensor value, None where dynamic."""
    return tuple(None if size < 0 else size for size in value.type.shape)


def has_uses(op: Any) -> bool:
    """Whether any result of the op is used."""
    return any(next(iter(result.uses), None) is not None for result in op.results)


def single_use(value: Any) -> bool:
    """Whether the value is used exactly once."""
    uses = iter(value.uses)
    return next(uses, None) is not None and next(uses, None) is None


def replace(op: Any, *values: Any) -> None:
    """Replaces the results of an op by values of the same types and erases it."""
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    op.operation.erase()


def before(op: Any) -> Any:
    """An insertion point in front of an op; use as `with before(op), op.location:`."""
    return ir.InsertionPoint(op)


def create(
    name: str,
    operands: Sequence[Any],
    result_types: Sequence[Any] = (),
    location: Any = None,
    **attributes: Any,
) -> Any:
    """An operation by name at the current insertion point.

    Returns:
        Its result if it has exactly one, else the operation.
    """
    op = ir.Operation.create(
        name, results=list(result_types), operands=list(operands), attributes=attributes, loc=location
    )
    return op.results[0] if len(op.results) == 1 else op


def is_pure(op: Any) -> bool:
    """Whether the op may be erased when unused: graphc's operations but checks, upstream's on values."""
    name = op.operation.name
    dialect = name.partition(".")[0]
    return (dialect == "graphc" and name != "graphc.check") or dialect in (
        "arith",
        "math",
        "complex",
        "tensor",
    )


def erase_dead(module: Any) -> int:
    """Erases unused pure operations, consumers first; returns how many."""
    erased = 0
    for op in reversed(operations(module)):
        if is_pure(op) and not has_uses(op):
            op.operation.erase()
            erased += 1
    return erased


def constant(value: Any) -> Any | None:
    """The attribute of the `arith.constant` or `graphc.constant` that defines a value, or None."""
    op = definition(value)
    if op is None or op.name not in ("arith.constant", "graphc.constant"):
        return None
    return op.attributes["value"]


def constant_int(value: Any) -> int | None:
    """The number behind an index or integer scalar that is a constant, or None."""
    attribute = constant(value)
    return int(attribute.value) if isinstance(attribute, ir.IntegerAttr) else None


def const_index(value: int) -> Any:
    """`arith.constant` of index type."""
    index = ir.IndexType.get()
    return create("arith.constant", [], [index], value=ir.IntegerAttr.get(index, value))


def dim(value: Any, axis: int) -> Any:
    """A tensor's size as an index value: a constant, what its defining graphc op says, or `tensor.dim`."""
    size = value.type.shape[axis]
    if size >= 0:
        return const_index(size)
    op = definition(value)
    if op is not None and op.name.startswith("graphc."):
        return op.opview.reify(axis)
    return create("tensor.dim", [value, const_index(axis)], [ir.IndexType.get()])


def tensor_type(shape: Sequence[int | None], element: Any) -> Any:
    """A ranked tensor type; None is a dynamic size."""
    dynamic = ir.ShapedType.get_dynamic_size()
    return ir.RankedTensorType.get([dynamic if size is None else size for size in shape], element)


def i64_array(values: Sequence[int]) -> Any:
    """`array<i64: ...>`."""
    return ir.DenseI64ArrayAttr.get(list(values))


def split_after(op: Any) -> Any:
    """Moves everything behind an op into a new block after its own, which is left without terminator."""
    block = op.operation.block
    rest = block.create_after()
    found = False
    for other in [other.operation for other in block.operations]:
        if found:
            rest.append(other)
        found = found or other == op.operation
    return rest
