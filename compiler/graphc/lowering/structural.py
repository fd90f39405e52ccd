# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering rules of the operations that are not loops over elements.

Each rule takes the function conversion and the graph-stage operation, creates the replacement at the current
insertion point and defines the result with `context.define`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphc.ir import build
from graphc.ir.build import fill
from graphc.ir.constants import CONSTANTS, read_constant
from graphc.ir.kinds import flags_of, static_shape
from graphc.ir.types import dtype_of
from graphc.lowering.conditionals import lower_conditional, lower_select
from graphc.lowering.contractions import contraction
from graphc.lowering.kernels import lower_kernel
from graphc.lowering.rules import lowers
from graphc.lowering.scalar import Scalar, ScalarBuilder
from graphc.lowering.scan import lower_scan
from graphc.lowering.vector_products import vector_product
from graphc_dialects._mlir import ir
from graphc_dialects.signatures import SIGNATURES

if TYPE_CHECKING:
    from graphc.lowering.converter import FunctionConverter


@lowers(*CONSTANTS)
def _constant(context: FunctionConverter, op: ir.Operation) -> None:
    result = op.results[0]
    if not isinstance(result.type.maybe_downcast(), ir.RankedTensorType):
        context.define(
            result, build.create("arith.constant", [result.type], [], value=op.attributes["value"]).result
        )
        return
    tensor_type = build.storage_type(result.type)
    dtype = dtype_of(result.type.element_type)
    if dtype.kind == "c":
        # The bindings cannot read dense attributes of complex elements; their type does not change.
        context.define(result, op.operation.clone().results[0])
        return
    value = op.attributes["value"]
    if dtype.kind in "bu":
        array = np.ascontiguousarray(read_constant(op), dtype).reshape(tensor_type.shape)
        array = array.view(f"int{dtype.itemsize * 8}")
        value = ir.DenseElementsAttr.get(array, type=tensor_type)
    context.define(result, build.create("arith.constant", [tensor_type], [], value=value).result)


@lowers("graphc.check")
def _check(context: FunctionConverter, op: ir.Operation) -> None:
    build.check_again(op, [context.index_of(x) for x in op.operands])


@lowers("tensor.extract")
def _extract(context: FunctionConverter, op: ir.Operation) -> None:
    tensor, *indices = op.operands
    scalar = context.scalar_of(tensor)
    if scalar is not None:
        context.define(op.results[0], scalar.value)
        return
    new = context.tensor_of(tensor)
    element = ir.RankedTensorType(new.type).element_type
    value = build.create("tensor.extract", [element], [new, *map(context.index_of, indices)]).result
    if str(ir.RankedTensorType(tensor.type).element_type) == "i1":
        b = ScalarBuilder(ir)
        value = b.truth(Scalar(value, np.dtype("uint8"))).value
    context.define(op.results[0], value)


@lowers("tensor.from_elements")
def _from_elements(context: FunctionConverter, op: ir.Operation) -> None:
    operands = [context.index_of(x) for x in op.operands]
    tensor_type = build.storage_type(op.results[0].type)
    dtype = dtype_of(tensor_type.element_type)
    if context.in_loop() and len(operands) == 1 and dtype.kind == "i":
        context.define_scalar(op.results[0], Scalar(operands[0], dtype))
        return
    context.define(op.results[0], build.create("tensor.from_elements", [tensor_type], operands).result)


@lowers("tensor.dim")
def _dim(context: FunctionConverter, op: ir.Operation) -> None:
    axis = build.constant_value(op.operands[1])
    if axis is None or not 0 <= axis < len(op.operands[0].type.shape):
        tensor, position = context.tensor_of(op.operands[0]), context.index_of(op.operands[1])
        context.define(
            op.results[0], build.create("tensor.dim", [build.index_type()], [tensor, position]).result
        )
    else:
        context.define(op.results[0], context.sizes_of(op.operands[0])[axis])


@lowers("graphc.specify_shape")
def _specify_shape(context: FunctionConverter, op: ir.Operation) -> None:
    result = op.results[0]
    context.define(result, build.cast(context.tensor_of(op.operands[0]), build.storage_type(result.type)))


@lowers("graphc.reshape")
def _reshape(context: FunctionConverter, op: ir.Operation) -> None:
    result = op.results[0]
    sizes = [
        build.const_index(known) if known is not None else context.index_of(size)
        for known, size in zip(static_shape(result), list(op.operands)[1:], strict=True)
    ]
    context.define(result, reshape(context.tensor_of(op.operands[0]), build.storage_type(result.type), sizes))


def _flat(tensor: ir.Value) -> ir.Value:
    """The tensor as a vector, without a copy."""
    source = ir.RankedTensorType(tensor.type)
    if source.rank == 1:
        return tensor
    if source.rank == 0:
        one = ir.RankedTensorType.get([1], source.element_type)
        return _expand(tensor, one, [build.const_index(1)], [])
    total = int(np.prod(source.shape)) if all(s >= 0 for s in source.shape) else build.DYNAMIC
    target = ir.RankedTensorType.get([total], source.element_type)
    return build.create(
        "tensor.collapse_shape", [target], [tensor], reassociation=_groups([list(range(source.rank))])
    ).result


def _groups(groups: list[list[int]]) -> ir.Attribute:
    i64 = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get([ir.ArrayAttr.get([ir.IntegerAttr.get(i64, axis) for axis in g]) for g in groups])


def _expand(tensor: ir.Value, target: ir.Type, sizes: list[ir.Value], groups: list[list[int]]) -> ir.Value:
    dynamic = [size for size, known in zip(sizes, target.shape, strict=True) if known < 0]
    return build.create(
        "tensor.expand_shape",
        [target],
        [tensor, *dynamic],
        reassociation=_groups(groups),
        static_output_shape=build.index_array(list(target.shape)),
    ).result


def reshape(tensor: ir.Value, target: ir.Type, sizes: list[ir.Value]) -> ir.Value:
    """A row-major reshape: collapse to a vector, then expand. Never copies a contiguous tensor."""
    known = [build.constant_value(size) if n < 0 else n for n, size in zip(target.shape, sizes, strict=True)]
    refined = ir.RankedTensorType.get([build.DYNAMIC if n is None else n for n in known], target.element_type)
    if refined != target:
        # Upstream makes operands that are constants part of an expansion, but not of the type of its memory.
        return build.cast(reshape(tensor, refined, sizes), target)
    if 0 in target.shape or 0 in ir.RankedTensorType(tensor.type).shape:
        # Upstream refuses to collapse a known size of 0 together with unknown ones.
        return build.empty(target, sizes)
    flat = _flat(tensor)
    if target.rank == 1:
        return build.cast(flat, target)
    flat_type = ir.RankedTensorType(flat.type)
    total = int(np.prod(target.shape)) if all(s >= 0 for s in target.shape) else build.DYNAMIC
    flat = build.cast(flat, ir.RankedTensorType.get([total], flat_type.element_type))
    if target.rank == 0:
        return build.create("tensor.collapse_shape", [target], [flat], reassociation=_groups([])).result
    return _expand(flat, target, sizes, [list(range(target.rank))])


@lowers("graphc.matmul", starts_anywhere=True)
def _matmul(context: FunctionConverter, op: ir.Operation) -> None:
    """A contraction as a generic; later passes find it by its attribute `graphc.matmul`."""
    result = op.results[0]
    dtype = dtype_of(result.type.element_type)
    scalars = ScalarBuilder(ir)
    zero = scalars.const(0, np.dtype("uint8") if dtype == np.bool_ else dtype).value
    if vector_product(context, op, zero):
        return
    a, b = (context.tensor_of(x) for x in op.operands)
    flags = list(flags_of(op))
    target_type = build.storage_type(result.type)
    rank = target_type.rank
    batch = list(range(rank - 2))
    row, column, inner = rank - 2, rank - 1, rank
    a_axes = [*batch, inner, row] if flags[0] else [*batch, row, inner]
    b_axes = [*batch, column, inner] if flags[1] else [*batch, inner, column]
    a_dims, b_dims = build.dims(a), build.dims(b)
    sizes = [*a_dims[: rank - 2], a_dims[a_axes.index(row)], b_dims[b_axes.index(column)]]
    start = fill(zero, context.destinations.start(result, target_type, sizes))
    context.define(result, contraction(a, b, start, (a_axes, b_axes), dtype, flags))


lowers("graphc.scan")(lower_scan)
lowers("arith.select")(lower_select)
lowers("scf.if")(lower_conditional)
lowers(*(f"graphc.{name}" for name in SIGNATURES))(lower_kernel)


@lowers(
    "scf.yield", *(f"graphc.scan_{name}" for name in ("prev", "carry", "collect", "end", "trace", "steps"))
)
def _nothing(context: FunctionConverter, op: ir.Operation) -> None:
    """What is lowered with the operation around it."""
