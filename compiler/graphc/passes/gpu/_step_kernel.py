# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that know the step of the loop that launches them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphc.ir import build
from graphc.ir.value import as_index
from graphc.ir.walk import symbol_of, walk
from graphc.passes.gpu._kernel import MODULE, Kernel, allocate
from graphc.passes.gpu._library import unmark
from graphc.passes.gpu._step_values import StepValues, leaves
from graphc_dialects._mlir import ir

# Grids and blocks have three sizes each.
_SIZES = 6


def are_own(module: ir.Module, values: StepValues, times: int = 1) -> bool:
    """True if nothing else launches the kernels of a loop, which is there as often as `times` says."""
    inside = {_name_of(op) for op in values.inside if op.name == "gpu.launch_func"}
    found = [_name_of(op) for op in walk(module.operation) if op.name == "gpu.launch_func"]
    return all(found.count(name) == times for name in inside)


def counter(loop: ir.Operation, end: ir.Operation) -> ir.Value:
    """An array with the number of the step: 0 before the loop, one more at the end of each step."""
    (array,) = numbers(loop, [0])
    following = Kernel(end, "next")
    with following.body():
        increase(array)
    following.launch([], [])
    return array


def numbers(before: ir.Operation, values: Sequence[int]) -> list[ir.Value]:
    """Arrays with a number each, which a kernel writes before an operation."""
    start = Kernel(before, "start")
    with start.host():
        arrays = [allocate([], ir.IntegerType.get_signless(64)) for _ in values]
    with start.body():
        for array, value in zip(arrays, values, strict=True):
            build.create("memref.store", [], [build.const_i64(value), array])
    start.launch([], [])
    return arrays


def increase(array: ir.Value) -> None:
    """Adds 1 to a number, in a kernel."""
    build.create("memref.store", [], [number_in(array) + 1, array])


def number_in(array: ir.Value) -> ir.Value:
    """The number, with 64 bits."""
    return array[()]


def rewrite(
    module: ir.Module,
    launch: ir.Operation,
    values: StepValues,
    array: ir.Value,
    active: ir.Value | None = None,
) -> None:
    """Makes a kernel compute arguments that vary from the number of the step, which it reads.

    Args:
        module: with the kernels.
        launch: in the loop.
        values: of the loop.
        array: with the number of the step.
        active: an array with a number; where that is 0 the kernel does nothing.
    """
    given = list(launch.operands)
    sizes, old = given[:_SIZES], given[_SIZES:]
    kept = [value for value in old if not values.varies(value)]
    more = [array] if active is None else [array, active]
    added = [*leaves(values, [value for value in old if values.varies(value)]), *more]
    function = _function_of(module, launch)
    block = function.regions[0].blocks[0]
    shared = list(block.arguments)[len(old) :]
    types = [value.type for value in (*kept, *added)]
    attributes = {name: function.attributes[name] for name in function.attributes}
    attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, []))
    with ir.InsertionPoint(function), function.location:
        made = ir.Operation.create("gpu.func", attributes=attributes, regions=1)
    new = ir.Block.create_at_start(made.regions[0], [*types, *(value.type for value in shared)])
    arguments: list[ir.Value] = list(new.arguments)
    for attribution, argument in zip(shared, arguments[len(types) :], strict=True):
        attribution.replace_all_uses_with(argument)
    with ir.InsertionPoint(new), launch.location:
        given_for = _known(dict(zip(added, arguments[len(kept) :], strict=False)))
        number: ir.Value = as_index(number_in(given_for(array)))
        copies: dict[ir.Value, ir.Value] = {}
        rest = iter(arguments)
        for value, before in zip(old, list(block.arguments), strict=False):
            if values.varies(value):
                before.replace_all_uses_with(values.copy(value, number, given_for, copies))
            else:
                before.replace_all_uses_with(next(rest))
    inside = new
    if active is not None:
        with ir.InsertionPoint(new), launch.location:
            inside = where(given_for(active))
    *body, end = [inner.operation for inner in block.operations]
    for inner in body:
        inside.append(inner)
    if active is not None:
        with ir.InsertionPoint(inside), launch.location:
            build.create("scf.yield", [], [])
    new.append(end)
    function.erase()
    _launch(launch, sizes, [*kept, *added])


def where(array: ir.Value) -> ir.Block:
    """Runs the code inside where a number is not 0, the same for all threads."""
    holds = number_in(array).differs(build.const_i64(0))
    branch = ir.Operation.create("scf.if", operands=[holds], regions=2)
    return ir.Block.create_at_start(branch.regions[0], [])


def _known(arguments: dict[ir.Value, ir.Value]) -> Callable[[ir.Value], ir.Value]:
    def known(value: ir.Value) -> ir.Value:
        if value in arguments:
            return arguments[value]
        # Constants are made again.
        return value.owner.clone().results[0]

    return known


def _launch(old: ir.Operation, sizes: Sequence[ir.Value], arguments: Sequence[ir.Value]) -> None:
    segments = list(ir.DenseI32ArrayAttr(old.attributes["operandSegmentSizes"]))
    segments[11] = len(arguments)
    attributes = {name: old.attributes[name] for name in old.attributes}
    unmark(attributes)
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(segments)
    with ir.InsertionPoint(old), old.location:
        ir.Operation.create("gpu.launch_func", operands=[*sizes, *arguments], attributes=attributes)
    old.erase()


def _name_of(launch: ir.Operation) -> str:
    return str(ir.SymbolRefAttr(launch.attributes["kernel"]).value[-1])


def _function_of(module: ir.Module, launch: ir.Operation) -> ir.Operation:
    name = _name_of(launch)
    for op in [op.operation for op in module.body.operations]:
        if op.name == "gpu.module" and symbol_of(op) == MODULE:
            for inner in [inner.operation for inner in op.regions[0].blocks[0].operations]:
                if symbol_of(inner) == name:
                    return inner
    raise KeyError(name)
