# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of kernel operations: one call for a whole batch, into the places where results are wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.ir import build
from graphc.ir.kernels import attributes_of
from graphc.ir.types import dtype_of
from graphc.ir.value import as_index, smaller
from graphc.library.define import kernel_call
from graphc.library.helpers import KernelCall
from graphc.library.registry import Kernel, find
from graphc.lowering import calls
from graphc.lowering.scan_buffers import allocate, read
from graphc.native.types import type_of_dtype
from graphc_dialects._mlir import ir
from graphc_dialects.signatures import SIGNATURES, Signature

if TYPE_CHECKING:
    from graphc.lowering.converter import FunctionConverter

# Picoseconds of a call, of a multiplication of a matrix algorithm, and of an element of a vector.
_FIXED, _MULTIPLY, _COMPARE = 10_000, 100, 2_000


def lower_kernel(context: FunctionConverter, op: ir.Operation) -> None:
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
    context: FunctionConverter, signature: Signature, tensors: list[ir.Value], given: list[ir.Value]
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
