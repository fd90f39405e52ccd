# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small builders for the upstream operations the lowering creates most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from graphc.ir.constants import compute_name as compute_name
from graphc.ir.constants import dtype_of as dtype_of
from graphc.ir.constants import storage_name as storage_name
from graphc.ir.constants import storage_type as storage_type
from graphc.ir.value import literal
from graphc_dialects._base import const_index as const_index
from graphc_dialects._base import constant_value as constant_value
from graphc_dialects._base import wrapped
from graphc_dialects._mlir import ir

DYNAMIC = ir.ShapedType.get_dynamic_size()


def create(name: str, results: Sequence[Any], operands: Sequence[Any], **attributes: Any) -> Any:
    """An operation by name at the current insertion point."""
    return ir.Operation.create(name, results, operands, attributes)


def index_type() -> ir.Type:
    return ir.IndexType.get()


def const_i64(value: int) -> ir.Value:
    """`arith.constant` of 64 bits; numbers wrap."""
    kind = ir.IntegerType.get_signless(64)
    return create("arith.constant", [kind], [], value=ir.IntegerAttr.get(kind, wrapped(value))).result


def const_f64(value: float) -> ir.Value:
    """`arith.constant` of a floating-point number of 64 bits."""
    return literal(value, ir.F64Type.get())


def as_f64(number: ir.Value) -> ir.Value:
    """A signed integer as a floating-point number."""
    return create("arith.sitofp", [ir.F64Type.get()], [number]).result


def math(name: str, *operands: ir.Value) -> ir.Value:
    """An operation of the math dialect, whose result has the type of its first operand."""
    return create(f"math.{name}", [operands[0].type], list(operands)).result


def index_op(name: str, *operands: Any) -> Any:
    """`arith.<name>` on index operands."""
    return create(f"arith.{name}", [index_type()], operands).result


def predicate_of(comparison: ir.Operation) -> int:
    """The predicate of an `arith.cmpi`, by its number."""
    return int(comparison.attributes["predicate"].value)


def compare_index(predicate: int, a: ir.Value, b: ir.Value) -> ir.Value:
    """`arith.cmpi` of indices or other integers.

    Args:
        predicate: 0 eq, 1 ne, 2 slt, 3 sle, 4 sgt, 5 sge, 6 ult, 7 ule.
        a, b: the operands.
    """
    attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)
    return create("arith.cmpi", [ir.IntegerType.get_signless(1)], [a, b], predicate=attribute).result


def check(
    condition: ir.Value,
    given: ir.Value,
    expected: ir.Value,
    message: str,
    error: str = "ValueError",
) -> ir.Operation:
    """`graphc.check` at the current insertion point: an error of a class unless the condition holds.

    `{given}` and `{expected}` in the message stand for these numbers.
    """
    attributes = {"message": ir.StringAttr.get(message), "error": ir.StringAttr.get(error)}
    return ir.Operation.create("graphc.check", [], [condition, given, expected], attributes)


def check_again(made: ir.Operation, operands: Sequence[ir.Value]) -> None:
    """The check that an operation makes, of other operands, at the current insertion point."""
    ir.Operation.create(
        made.name, [], list(operands), {name: made.attributes[name] for name in made.attributes}
    )


def select(condition: ir.Value, a: ir.Value | float, b: ir.Value | float) -> ir.Value:
    """`arith.select`; a number has the type of the other operand, two have 64 bits."""
    kind = next((x.type for x in (a, b) if isinstance(x, ir.Value)), None) or ir.F64Type.get()
    if (known := constant_value(condition)) is not None:
        chosen = a if known else b
        return chosen if isinstance(chosen, ir.Value) else literal(chosen, kind)
    values = [x if isinstance(x, ir.Value) else literal(x, kind) for x in (a, b)]
    return create("arith.select", [kind], [condition, *values]).result


def dim(tensor: ir.Value, axis: int) -> ir.Value:
    """`tensor.dim` or `memref.dim`, folded to a constant where the size is static, also before casts."""
    source = tensor
    while source.type.shape[axis] < 0:
        owner = source.owner
        if isinstance(owner, ir.Block) or owner.name not in ("tensor.cast", "memref.cast"):
            break
        source = owner.operands[0]
    size = source.type.shape[axis]
    if size >= 0:
        return const_index(size)
    dialect = "tensor" if isinstance(tensor.type, ir.RankedTensorType) else "memref"
    return create(f"{dialect}.dim", [index_type()], [source, const_index(axis)]).result


def dims(tensor: ir.Value) -> list[ir.Value]:
    return [dim(tensor, axis) for axis in range(len(tensor.type.shape))]


def empty(tensor_type: ir.Type, sizes: Sequence[ir.Value]) -> ir.Value:
    """`tensor.empty`; `sizes` has one index value per dimension, used for the dynamic ones."""
    dynamic = [size for size, known in zip(sizes, tensor_type.shape, strict=True) if known < 0]
    return create("tensor.empty", [tensor_type], dynamic).result


def cast(tensor: Any, tensor_type: Any) -> Any:
    """`tensor.cast` where the types differ."""
    return tensor if tensor.type == tensor_type else create("tensor.cast", [tensor_type], [tensor]).result


def call(symbol: str, results: Sequence[ir.Type], operands: Sequence[ir.Value]) -> ir.Operation:
    """`func.call` of a function by its name."""
    return create("func.call", results, operands, callee=ir.FlatSymbolRefAttr.get(symbol))


def stack_memory(kind: ir.Type, inside: ir.Operation | None = None, **attributes: Any) -> ir.Value:
    """Memory on the stack for a memref: of the function that contains an operation, or at the insertion
    point.
    """
    if inside is not None:
        while inside.parent.name != "func.func":
            inside = inside.parent.operation
        with ir.InsertionPoint.at_block_begin(inside.block):
            return stack_memory(kind, **attributes)
    sizes = ir.DenseI32ArrayAttr.get([0, 0])
    return create("memref.alloca", [kind], [], operandSegmentSizes=sizes, **attributes).result


def groups_of(groups: Iterable[Iterable[int]]) -> ir.Attribute:
    """Groups of axes, for reshapes."""
    i64 = ir.IntegerType.get_signless(64)
    arrays = [[ir.IntegerAttr.get(i64, axis) for axis in group] for group in groups]
    return ir.ArrayAttr.get([ir.ArrayAttr.get(group) for group in arrays])


def declare(
    op: ir.Module | ir.Operation,
    symbol: str,
    types: Sequence[ir.Type | str],
    results: Sequence[ir.Type],
    attributes: str = "",
) -> ir.Operation | None:
    """Declares a function in the module around an operation, once; returns it if it was there.

    Args:
        op: an operation of the module, or the module itself.
        symbol: the function's name.
        types: of its arguments, or their texts.
        results: the same of its results.
        attributes: the text of further ones, such as ``llvm.readnone``.
    """
    module = op.operation
    while module.name != "builtin.module":
        module = module.parent.operation
    block = module.regions[0].blocks[0]
    for other in block.operations:
        given = other.operation.attributes
        if "sym_name" in given and ir.StringAttr(given["sym_name"]).value == symbol:
            return other.operation
    operands, back = (", ".join(map(str, kinds)) for kinds in (types, results))
    text = f'func.func private @"{symbol}"({operands}) -> ({back})'
    if attributes:
        text += f" attributes {{{attributes}}}"
    ir.InsertionPoint.at_block_begin(block).insert(ir.Operation.parse(text))
    return None


def index_array(values: Sequence[int]) -> ir.Attribute:
    return ir.DenseI64ArrayAttr.get(list(values))


def fill(value: ir.Value, tensor: ir.Value) -> ir.Value:
    """`linalg.fill` of a tensor."""
    return _fill(value, tensor, [tensor.type]).results[0]


def fill_buffer(value: ir.Value, buffer: ir.Value) -> None:
    """`linalg.fill` of a buffer."""
    _fill(value, buffer, [])


def _fill(value: ir.Value, tensor: ir.Value, results: list[ir.Type]) -> ir.Operation:
    operation = ir.Operation.create(
        "linalg.fill",
        results=results,
        operands=[value, tensor],
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1])},
        regions=1,
    )
    block = ir.Block.create_at_start(operation.regions[0], [value.type, value.type])
    with ir.InsertionPoint(block):
        create("linalg.yield", [], [block.arguments[0]])
    return operation
