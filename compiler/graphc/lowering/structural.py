# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering rules of the operations that are not loops over elements.

Each rule takes the function conversion and the graph-stage operation, creates the replacement at the current
insertion point and defines the result with `context.define`.

A kernel operation is one call for a whole batch, into the places where results are wanted.
"""

from __future__ import annotations

import numpy as np

from graphc.ir import build
from graphc.ir.build import dtype_of, fill
from graphc.ir.constants import CONSTANTS, read_constant
from graphc.ir.kinds import flags_of, static_shape
from graphc.ir.references import attributes_of
from graphc.ir.value import as_index, smaller
from graphc.ir.views import order_of
from graphc.library import Kernel, find
from graphc.library.define import kernel_call
from graphc.library.helpers import KernelCall
from graphc.lowering import calls
from graphc.lowering.conditionals import lower_conditional, lower_select
from graphc.lowering.matmul import contraction
from graphc.lowering.rules import Conversion, lowers
from graphc.lowering.scalar_builder import Scalar, ScalarBuilder
from graphc.lowering.scans.buffers import allocate, drop_axes, insert_axes, read, writable, write
from graphc.lowering.scans.scan import lower_scan
from graphc.native import type_of_dtype
from graphc_dialects._mlir import ir
from graphc_dialects.signatures import SIGNATURES, Signature


def is_vector_product(op: ir.Operation) -> bool:
    """True if a `graphc.matmul` is lowered as the product with a vector."""
    shape = list(op.results[0].type.shape)
    return len(shape) == 2 and (shape[0] == 1) != (shape[1] == 1)


def vector_product(context: Conversion, op: ir.Operation, zero: ir.Value) -> bool:
    """Lowers a `graphc.matmul` whose result has one row, or one column, to a product with a vector.

    The result is a vector then, which can be computed in its destination; a view of a matrix could not. A
    dimshuffle that only drops the axis is this vector.

    Args:
        context: the function conversion.
        op: the product.
        zero: what the sums start from.

    Returns:
        Whether it has been lowered: not if it is batched, or if the result has one element.
    """
    result = op.results[0]
    shape = list(result.type.shape)
    if not is_vector_product(op):
        return False
    ta, tb = flags = list(flags_of(op))
    operands = [context.tensor_of(x) for x in op.operands]
    # Of the vector, the axis that is summed over; of the matrix, the one that the result has.
    if shape[0] == 1:
        vector, matrix, summed, free = 0, 1, int(not ta), int(not tb)
    else:
        vector, matrix, summed, free = 1, 0, int(tb), int(ta)
    operands[vector] = drop_axes(operands[vector], [summed])
    axes = [[1], [1]]
    axes[matrix] = [1, 0] if free else [0, 1]
    kept = 1 if shape[0] == 1 else 0
    target = build.storage_type(result.type)
    kind = ir.RankedTensorType.get([shape[kept]], target.element_type)
    place = context.destinations.take(result)
    if place is None and result in context.claimed:
        place = context.destinations.claim(result)
    if place is None:
        start = build.empty(kind, [build.dim(operands[matrix], free)])
    else:
        memref = place.permuted([kept]).memref([shape[kept] if shape[kept] >= 0 else None])
        start = build.cast(writable(memref), kind)
    dtype = dtype_of(result.type.element_type)
    product = contraction(operands[0], operands[1], fill(zero, start), (axes[0], axes[1]), dtype, flags)
    if place is not None and context.destinations.is_final(result):
        write(product, memref)
        product = read(memref, kind)
    for use in result.uses:
        reader = use.owner.operation
        if order_of(reader) == [kept]:
            view = reader.results[0]
            context.define(view, build.cast(product, build.storage_type(view.type)))
    context.define(result, build.cast(insert_axes(product, [axis == kept for axis in (0, 1)]), target))
    return True


# Picoseconds of a call, of a multiplication of a matrix algorithm, and of an element of a vector.
_FIXED, _MULTIPLY, _COMPARE = 10_000, 100, 2_000


def lower_kernel(context: Conversion, op: ir.Operation) -> None:
    """Lowers one kernel operation; defines its results."""
    name = op.name.removeprefix("graphc.")
    signature, kernel = SIGNATURES[name], find(name)
    tensors = list(op.operands)[: len(signature.operands)]
    given = list(op.operands)[len(signature.operands) :]
    rank = len(op.results[0].type.shape) - len(signature.results[0])
    batch = context.sizes_of(tensors[0])[:rank]
    sizes = _sizes(context, signature, tensors, given)
    operands = [context.tensor_of(x) for x in tensors]
    results = []
    for result, core in zip(op.results, signature.results, strict=True):
        wanted = [*batch, *(sizes[dim] for dim in core)]
        context.define_sizes(result, wanted)
        results.append(calls.place(context, result, wanted))
    pointers = [*map(calls.read_from, operands), *map(calls.write_to, results)]
    scratch = build.const_index(0)
    if kernel.scratch is not None:
        scratch = as_index(kernel.scratch(sizes))
        pointers.append(calls.write_to(_memory(scratch)))
    types = [type_of_dtype(dtype_of(x.type.element_type)) for x in (*tensors, *op.results)]
    callee = kernel_call(name, types, attributes_of(op))
    cost = _cost(kernel, signature, sizes)
    _call(
        op,
        kernel,
        callee,
        pointers,
        [calls.product(batch), cost, scratch, *(sizes[dim] for dim in signature.dims)],
    )
    for result, buffer in zip(op.results, results, strict=True):
        context.define(result, read(buffer, build.storage_type(result.type)))


def _sizes(
    context: Conversion, signature: Signature, tensors: list[ir.Value], given: list[ir.Value]
) -> dict[str, ir.Value]:
    """Index values of the core dimensions."""
    sizes = {dim: context.index_of(size) for dim, size in zip(signature.given, given, strict=True)}
    for dim in signature.dims:
        place = signature.place(dim)
        if place is not None:
            sizes[dim] = context.sizes_of(tensors[place[0]])[place[1]]
    return sizes


def _memory(count: ir.Value) -> ir.Value:
    """A buffer of so many bytes."""
    known = build.constant_value(count)
    shape = [build.DYNAMIC if known is None else known]
    return allocate(ir.RankedTensorType.get(shape, ir.IntegerType.get_signless(8)), [count])


def _cost(kernel: Kernel, signature: Signature, sizes: dict[str, ir.Value]) -> ir.Value:
    """Picoseconds of one element of the batch.

    The guess: each element of a matrix takes part in as many multiplications as the smaller of its sizes, and
    each element of a vector in some comparisons.
    """
    if kernel.cost is not None:
        return as_index(kernel.cost(sizes))
    total = build.const_index(_FIXED)
    for core in signature.operands:
        work = build.const_index(_MULTIPLY if len(core) > 1 else _COMPARE)
        for dim in core:
            work *= sizes[dim]
        if len(core) > 1:
            work *= smaller(sizes[core[-2]], sizes[core[-1]])
        total += work
    return total


def _call(
    op: ir.Operation, kernel: Kernel, callee: KernelCall, pointers: list[ir.Value], sizes: list[ir.Value]
) -> None:
    i64 = ir.IntegerType.get_signless(64)
    status = calls.call(op, callee, [*pointers, *map(calls.number, sizes)], [i64]).result
    index = build.create("arith.index_cast", [build.index_type()], [status]).result
    for number, (error, message) in enumerate(kernel.errors, 1):
        fine = build.compare_index(1, index, build.const_index(number))
        zero = build.const_index(0)
        build.check(fine, zero, zero, f"{kernel.name}: {message}", error)


@lowers(*CONSTANTS)
def _constant(context: Conversion, op: ir.Operation) -> None:
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
def _check(context: Conversion, op: ir.Operation) -> None:
    build.check_again(op, [context.index_of(x) for x in op.operands])


@lowers("tensor.extract")
def _extract(context: Conversion, op: ir.Operation) -> None:
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
def _from_elements(context: Conversion, op: ir.Operation) -> None:
    operands = [context.index_of(x) for x in op.operands]
    tensor_type = build.storage_type(op.results[0].type)
    dtype = dtype_of(tensor_type.element_type)
    if context.in_loop() and len(operands) == 1 and dtype.kind == "i":
        context.define_scalar(op.results[0], Scalar(operands[0], dtype))
        return
    context.define(op.results[0], build.create("tensor.from_elements", [tensor_type], operands).result)


@lowers("tensor.dim")
def _dim(context: Conversion, op: ir.Operation) -> None:
    axis = build.constant_value(op.operands[1])
    if axis is None or not 0 <= axis < len(op.operands[0].type.shape):
        tensor, position = context.tensor_of(op.operands[0]), context.index_of(op.operands[1])
        context.define(
            op.results[0], build.create("tensor.dim", [build.index_type()], [tensor, position]).result
        )
    else:
        context.define(op.results[0], context.sizes_of(op.operands[0])[axis])


@lowers("graphc.specify_shape")
def _specify_shape(context: Conversion, op: ir.Operation) -> None:
    result = op.results[0]
    context.define(result, build.cast(context.tensor_of(op.operands[0]), build.storage_type(result.type)))


@lowers("graphc.reshape")
def _reshape(context: Conversion, op: ir.Operation) -> None:
    result = op.results[0]
    sizes = [
        build.const_index(known) if known is not None else context.index_of(size)
        for known, size in zip(static_shape(result), list(op.operands)[1:], strict=True)
    ]
    # Asked of the result, a size would be another value than those of what was computed beside it: loops over
    # both would have other bounds, and not be fused.
    context.define_sizes(result, sizes)
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
        "tensor.collapse_shape", [target], [tensor], reassociation=build.groups_of([list(range(source.rank))])
    ).result


def _expand(tensor: ir.Value, target: ir.Type, sizes: list[ir.Value], groups: list[list[int]]) -> ir.Value:
    dynamic = [size for size, known in zip(sizes, target.shape, strict=True) if known < 0]
    return build.create(
        "tensor.expand_shape",
        [target],
        [tensor, *dynamic],
        reassociation=build.groups_of(groups),
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
        return build.create(
            "tensor.collapse_shape", [target], [flat], reassociation=build.groups_of([])
        ).result
    return _expand(flat, target, sizes, [list(range(target.rank))])


@lowers("graphc.matmul", starts_anywhere=True)
def _matmul(context: Conversion, op: ir.Operation) -> None:
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
def _nothing(context: Conversion, op: ir.Operation) -> None:
    """Lowers an operation that is lowered with the one around it."""
