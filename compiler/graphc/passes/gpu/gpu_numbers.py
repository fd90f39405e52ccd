# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers that the host needs, but has no arithmetic for: a kernel computes them, and the host reads."""

from __future__ import annotations

from graphc.ir.value import converted
from graphc.ir.walk import copied, definition, functions, walk
from graphc.passes import Pass
from graphc.passes.gpu._host import is_arithmetic, is_of_host
from graphc.passes.gpu._kernel import Kernel, allocate
from graphc.passes.gpu._nest import Effects
from graphc_dialects._mlir import ir
from graphc_runtime.record import record


def place_for(kind: ir.Type) -> ir.Value:
    """An array of the device for a number: bools are bytes there, and indices have 64 bits."""
    if _is_bool(kind):
        kind = ir.IntegerType.get_signless(8)
    elif isinstance(kind, ir.IndexType):
        kind = ir.IntegerType.get_signless(64)
    return allocate([], kind)


def write(value: ir.Value, array: ir.Value) -> None:
    """Stores a number in its array, in a kernel."""
    element = ir.MemRefType(array.type).element_type
    if element != value.type:
        value = converted(value, element)
    array[()] = value


def read(array: ir.Value, kind: ir.Type) -> ir.Value:
    """The number, on the host."""
    element = ir.MemRefType(array.type).element_type
    found = array[()]
    if element == kind:
        return found
    if not _is_bool(kind):
        return converted(found, kind)
    return found.differs(0)


def _is_bool(kind: ir.Type) -> bool:
    return isinstance(kind, ir.IntegerType) and ir.IntegerType(kind).width == 1


@record()
class GpuNumbers(Pass):
    """Makes a kernel of one thread of numbers that the host needs, but has no arithmetic for.

    The host computes with integers of 64 bits and with conditions. A comparison of two floating-point
    numbers, which decides about a branch or about another step of a loop, is computed where the numbers are,
    with all the arithmetic before it: the host reads one result. Elements that this arithmetic starts from
    are read by the kernel, if nothing writes their array between their load and their use.
    """

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            wanted = [op for op in walk(function) if _is_foreign(op) and _is_read_by_host(op)]
            for op in wanted:
                _lower(op)
                self.count("kernels")


def _is_foreign(op: ir.Operation) -> bool:
    return is_arithmetic(op) and not is_of_host(op)


def _is_read_by_host(op: ir.Operation) -> bool:
    return any(not _is_foreign(use.owner.operation) for result in op.results for use in result.uses)


def _lower(op: ir.Operation) -> None:
    taken = _work(op)
    kernel = Kernel(op, "number")
    copies: dict[ir.Value, ir.Value] = {}
    arrays: list[ir.Value] = []
    for result in op.results:
        with kernel.host():
            arrays.append(place_for(result.type))
        with kernel.body():
            write(copied(result, copies, taken.__contains__), arrays[-1])
    kernel.launch([], [])
    for result, array in zip(op.results, arrays, strict=True):
        with ir.InsertionPoint(op), op.location:
            result.replace_all_uses_with(read(array, result.type))
    op.erase()


def _work(root: ir.Operation) -> set[ir.Operation]:
    """Operations of the kernel: all arithmetic that the host lacks, and loads that may wait for it."""
    found: set[ir.Operation] = set()
    open_ = [root]
    while open_:
        op = open_.pop()
        if op in found:
            continue
        found.add(op)
        for value in op.operands:
            made, load = definition(value), definition(value, "memref.load")
            if made is not None and (_is_foreign(made) or (load is not None and _may_wait(load, root))):
                open_.append(made)
    return found


def _may_wait(load: ir.Operation, root: ir.Operation) -> bool:
    """True if an element is still the same where the root stands."""
    if load.block != root.block:
        return False
    operations = [op.operation for op in load.block.operations]
    own = Effects.of(load)
    between = [Effects.of(op) for op in operations[operations.index(load) : operations.index(root)]]
    # What a loop carries may be any of the arrays that it was given, under another name.
    known = not any(map(_is_carried, own.read.union(*(found.written for found in between))))
    return all(own.commutes(found) and (known or not found.written) for found in between)


def _is_carried(array: ir.Value) -> bool:
    return isinstance(array.owner, ir.Block) and array.owner.owner.name != "func.func"
