# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of `graphc.random`: a call of code of `graphc.library.random` fills their place.

Functions that the host runs for a device, on whole arrays, are such calls, too.
"""

from __future__ import annotations

from graphc.ir import build
from graphc.ir.diagnostics import fail
from graphc.ir.helpers import callee_of
from graphc.library.helpers import Draws
from graphc.lowering import calls
from graphc.lowering.partial_reductions import elementwise
from graphc.lowering.rules import Conversion, lowers
from graphc.lowering.scans.buffers import allocate, any_layout, read
from graphc_dialects._mlir import ir
from graphc_dialects.random import GENERATORS

# The function that is called with buffers has a name of its own.
BUFFERS = ".buffers"
# Of a call, and its name: the operation that it stands for, with its attributes, which a library may compute.
LIBRARY, OPERATION = "graphc.library", "op"


@lowers("func.call")
def host_call(context: Conversion, op: ir.Operation) -> None:
    """Lowers one call; its results are new arrays, whose sizes show when they are there."""
    for result in op.results:
        if not isinstance(result.type, ir.RankedTensorType):
            fail(op, f"calls of functions of the host give tensors, not {result.type}")
    arguments = []
    for operand in op.operands:
        value = context.tensor_of(operand)
        arguments.append(any_layout(value) if isinstance(value.type, ir.RankedTensorType) else value)
    kinds = [build.storage_type(result.type) for result in op.results]
    buffers = [ir.MemRefType.get(kind.shape, kind.element_type) for kind in kinds]
    symbol = callee_of(op) + BUFFERS
    build.declare(op, symbol, [x.type for x in arguments], buffers)
    made = build.call(symbol, buffers, arguments)
    if LIBRARY in op.attributes:
        made.operation.attributes[LIBRARY] = op.attributes[LIBRARY]
    for result, kind, buffer in zip(op.results, kinds, made.results, strict=True):
        context.define_sizes(result, [build.dim(buffer, axis) for axis in range(len(kind.shape))])
        context.define(result, read(buffer, kind))


@lowers("graphc.random")
def random(context: Conversion, op: ir.Operation) -> None:
    """Lowers one operation; defines the draws and the state after them."""
    state, parameters, sizes = taken(context, op)
    cores = list(op.attributes["cores"])
    draws, following = op.results
    batch = sizes[: len(sizes) - op.attributes["support"].value]
    given = [_parameter(context, x, batch, core) for x, core in zip(parameters, cores, strict=True)]
    out = calls.place(context, draws, sizes)
    after = calls.place(context, following, [build.const_index(state.type.shape[0])])
    arguments = [
        calls.read_from(context.tensor_of(state)),
        calls.write_to(after),
        calls.number(calls.product(batch)),
    ]
    length = _vector_length(context, parameters, cores, sizes, len(sizes) > len(batch))
    if length is not None:
        f64 = ir.Type.parse("f64")
        room = allocate(ir.RankedTensorType.get([build.DYNAMIC], f64), [length])
        arguments += [calls.number(length), calls.write_to(room)]
    arguments.append(calls.write_to(out))
    for parameter, step in given:
        arguments += [calls.read_from(parameter), calls.number(step)]
    generator = GENERATORS[state.type.shape[0]]
    distribution = ir.StringAttr(op.attributes["distribution"]).value
    calls.call(op, Draws(generator, distribution), arguments)
    for result, buffer in ((draws, out), (following, after)):
        context.define(result, read(buffer, build.storage_type(result.type)))


def taken(context: Conversion, op: ir.Operation) -> tuple[ir.Value, list[ir.Value], list[ir.Value]]:
    """The state, the parameters and the sizes of draws; defines these sizes."""
    state, *rest = op.operands
    count, draws = len(list(op.attributes["cores"])), op.results[0]
    sizes = [
        build.const_index(known) if known >= 0 else context.index_of(size)
        for known, size in zip(draws.type.shape, rest[count:], strict=True)
    ]
    context.define_sizes(draws, sizes)
    return state, rest[:count], sizes


def _vector_length(
    context: Conversion,
    parameters: list[ir.Value],
    cores: list[int],
    sizes: list[ir.Value],
    has_support: bool,
) -> ir.Value | None:
    """The length of the vectors of draws over vectors; None for other draws."""
    for x, core in zip(parameters, cores, strict=True):
        if core:
            return context.sizes_of(x)[-1]
    return sizes[-1] if has_support else None


def _parameter(
    context: Conversion, x: ir.Value, batch: list[ir.Value], core: int
) -> tuple[ir.Value, ir.Value]:
    """The tensor of a parameter, and how many elements further each draw finds its own.

    One that is not the same for all draws is repeated along the dimensions in which it is 1.
    """
    shape = list(x.type.shape)
    row = context.sizes_of(x)[-1] if core else build.const_index(1)
    lead = shape[: len(batch)]
    if all(size == 1 for size in lead):
        return context.tensor_of(x), build.const_index(0)
    if any(have == 1 and build.constant_value(size) != 1 for have, size in zip(lead, batch, strict=True)):
        sizes = [*batch, *([row] if core else [])]
        wide = [build.DYNAMIC if size == 1 else size for size in lead] + shape[len(batch) :]
        kind = ir.RankedTensorType.get(wide, x.type.element_type)
        return _repeated(context, x, kind, sizes), row
    return context.tensor_of(x), row


def _repeated(context: Conversion, x: ir.Value, kind: ir.Type, sizes: list[ir.Value]) -> ir.Value:
    """The tensor of a value broadcast to sizes of equal number."""
    start = build.empty(build.storage_type(kind), sizes)
    return elementwise([context.tensor_of(x)], start, lambda elements: elements[0])
