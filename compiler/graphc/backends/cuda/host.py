# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of the host in a module for a device, as modules of their own."""

from __future__ import annotations

from graphc.ir import build
from graphc.ir.build import dtype_of
from graphc.ir.walk import functions
from graphc.passes.gpu.gpu_placement import WORK
from graphc_dialects._mlir import ir
from graphc_runtime.manifest import ArraySpec, Signature
from graphc_runtime.record import record


@record(frozen=True)
class HostFunction:
    """A function of the host that a schedule calls.

    Attributes:
        name: in the module for the device.
        text: a module in the graph stage, whose `@main` takes numbers as arrays without axes.
        signature: of `@main`.
        work: operations without a kernel: name, reason, node of the graph.
    """

    name: str
    text: str
    signature: Signature
    work: tuple[tuple[str, str, str], ...]


def take_host_functions(module: ir.Module) -> list[HostFunction]:
    """Removes the functions of the host from a module, which keeps declarations of them."""
    found = []
    for function in functions(module):
        if WORK not in function.attributes:
            continue
        work = [
            tuple(str(ir.StringAttr(text).value) for text in entry)
            for entry in ir.ArrayAttr(function.attributes[WORK])
        ]
        found.append(_taken(function, tuple((op, why, node) for op, why, node in work)))
        _declare(function)
    return found


def _taken(function: ir.Operation, work: tuple[tuple[str, str, str], ...]) -> HostFunction:
    name = ir.StringAttr(function.attributes["sym_name"]).value
    kind = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    inputs = [_passed_type(each) for each in kind.inputs]
    alone = ir.Module.create(function.location)
    attributes = {
        "sym_name": ir.StringAttr.get("main"),
        "function_type": ir.TypeAttr.get(ir.FunctionType.get(inputs, kind.results)),
    }
    with ir.InsertionPoint(alone.body), function.location:
        main = ir.Operation.create("func.func", attributes=attributes, regions=1)
    block = ir.Block.create_at_start(main.regions[0], inputs)
    old = function.regions[0].blocks[0]
    with ir.InsertionPoint(block), function.location:
        for argument, given in zip(old.arguments, block.arguments, strict=True):
            argument.replace_all_uses_with(_unpacked(given, argument.type))
    for op in [op.operation for op in old.operations]:
        block.append(op)
    outputs = tuple(map(_spec, kind.results))
    signature = Signature(tuple(map(_spec, inputs)), outputs=outputs, returns="list", name=name)
    return HostFunction(name, alone.operation.get_asm(enable_debug_info=True), signature, work)


def _declare(function: ir.Operation) -> None:
    name, kind = function.attributes["sym_name"], function.attributes["function_type"]
    private = ir.StringAttr.get("private")
    attributes = {"sym_name": name, "function_type": kind, "sym_visibility": private}
    with ir.InsertionPoint(function), function.location:
        ir.Operation.create("func.func", attributes=attributes, regions=1)
    function.erase()


def _passed_type(kind: ir.Type) -> ir.Type:
    """Numbers are passed as arrays without axes."""
    if isinstance(kind, ir.RankedTensorType):
        return kind
    element = ir.IntegerType.get_signless(64) if isinstance(kind, ir.IndexType) else kind
    return ir.RankedTensorType.get([], element)


def _unpacked(given: ir.Value, kind: ir.Type) -> ir.Value:
    if isinstance(kind, ir.RankedTensorType):
        return given
    element = ir.RankedTensorType(given.type).element_type
    number = build.create("tensor.extract", [element], [given]).result
    return build.create("arith.index_cast", [kind], [number]).result if element != kind else number


def _spec(kind: ir.Type) -> ArraySpec:
    tensor = ir.RankedTensorType(kind)
    shape = tuple(None if size < 0 else size for size in tensor.shape)
    return ArraySpec(dtype_of(tensor.element_type).name, shape)
