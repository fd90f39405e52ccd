# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers, one at a time: those of the program, those that the host needs of the device, loops over elements,
and functions of numbers that are neither instructions nor have an expansion.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphc.ir import build
from graphc.ir.constants import complex_literal, element_dtype
from graphc.ir.diagnostics import fail
from graphc.ir.helpers import callee_of, declared
from graphc.ir.lifetimes import VIEWS
from graphc.ir.value import converted, larger, literal, parts_of
from graphc.ir.walk import copied, definition, functions, is_used, symbol_of, walk
from graphc.library.helpers import Helper
from graphc.passes import Pass
from graphc.passes.buffer.outline_loops import is_independent
from graphc.passes.gpu._host import host_operations, is_arithmetic, is_of_host, replace_loops
from graphc.passes.gpu._kernel import Kernel, allocate, blocks_for
from graphc.passes.gpu._nest import Effects
from graphc.passes.gpu._notation import global_position
from graphc.passes.llvm._code import call_of
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

_COMPUTES = ("arith", "math", "complex")
_ALLOWED = ("arith.", "math.", "complex.", "scf.for", "scf.if", "scf.while", "scf.yield", "scf.condition")
_ACCESSES = VIEWS | {"memref.load", "memref.store", "memref.dim"}
_BLOCKS = 1 << 16


# -- elements that the program has --------------------------------------------------------------------------


@record()
class GpuConstants(Pass):
    """Makes kernels of one thread of each `memref.get_global` and each `memref.store` in host code.

    Constants with more than 16 elements are arguments of a function, so that arrays in the program are short.
    Sizes that become elements, such as the number that a mean divides by, are stored. Their arithmetic is
    copied to the kernel: what launches or checks use of it stays. Index arithmetic stays on the host, and so
    do loads, whose values are arguments.

    Attributes:
        limit: number of elements up to which this is done.
    """

    limit: int = 1024

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        outer = [op.operation for op in module.body.operations]
        values = {symbol_of(op): op for op in outer if op.name == "memref.global"}
        for op in host_operations(module, "memref.get_global"):
            if not _erase_unused(op):  # what became a kernel before needs no array for it
                self._write(op, values[ir.FlatSymbolRefAttr(op.attributes["name"]).value])
                self.count("kernels")
        for op in values.values():
            op.erase()
        for op in host_operations(module, "memref.store"):
            kernel = Kernel(op, "scalar")
            with kernel.body():
                value = copied(op.operands[0], {}, _is_copied)
                op.clone().operands[0] = value
            kernel.launch([], [])
            op.erase()
            self.count("scalars")

    def _write(self, op: ir.Operation, source: ir.Operation) -> None:
        kind = ir.MemRefType(op.results[0].type)
        if int(np.prod(kind.shape)) > self.limit:
            fail(op, f"{kind} in the program has more than {self.limit} elements: pass it as an argument")
        elements = _elements(source, kind)
        kernel = Kernel(op, "literal")
        with kernel.host():
            array = allocate(list(kind.shape), kind.element_type)
        with kernel.body():
            for place in np.ndindex(*kind.shape):
                array[place] = literal(elements.item(place), kind.element_type)
        kernel.launch([], [])
        op.results[0].replace_all_uses_with(array)
        op.erase()


def _elements(source: ir.Operation, kind: ir.MemRefType) -> np.ndarray:
    shape = list(kind.shape)
    if isinstance(kind.element_type, ir.ComplexType):
        found = complex_literal(source, element_dtype(kind.element_type), shape)
        assert found is not None, "arrays in the program have elements"
        return found
    dense = ir.DenseElementsAttr(source.attributes["initial_value"])
    return np.full(shape, dense.get_splat_value().value) if dense.is_splat else np.array(dense).reshape(shape)


def _erase_unused(op: ir.Operation) -> bool:
    """Erases an array, or a view of one, that nothing uses but views which nothing uses."""
    for use in list(op.results[0].uses):
        if use.owner.operation.name in VIEWS:
            _erase_unused(use.owner.operation)
    if is_used(op.results[0]):
        return False
    op.erase()
    return True


def _is_copied(op: ir.Operation) -> bool:
    """True if an operation computes an element, from indices and from what loads have given."""
    is_index = any(isinstance(result.type, ir.IndexType) for result in op.results)
    return not is_index and op.name.partition(".")[0] in _COMPUTES and len(op.operands) > 0


# -- numbers that the host needs ----------------------------------------------------------------------------


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
            for op in [op for op in walk(function) if _is_foreign(op) and _is_read_by_host(op)]:
                taken, copies, kernel = _work(op), dict[ir.Value, ir.Value](), Kernel(op, "number")
                arrays = [_read_back(result, op, kernel) for result in op.results]
                with kernel.body():
                    for result, array in zip(op.results, arrays, strict=True):
                        _write(copied(result, copies, taken.__contains__), array)
                kernel.launch([], [])
                op.erase()
                self.count("kernels")


def _read_back(result: ir.Value, op: ir.Operation, kernel: Kernel) -> ir.Value:
    """An array of the device for a number of an operation; what used that reads the array on the host."""
    kind = result.type
    is_bool = isinstance(kind, ir.IntegerType) and ir.IntegerType(kind).width == 1
    width = 8 if is_bool else 64 if isinstance(kind, ir.IndexType) else 0
    with kernel.host():
        array = allocate([], ir.IntegerType.get_signless(width) if width else kind)
    with ir.InsertionPoint(op), op.location:
        found = array[()]
        result.replace_all_uses_with(found.differs(0) if is_bool else converted(found, kind))
    return array


def _write(value: ir.Value, array: ir.Value) -> None:
    """Stores a number in its array, in a kernel."""
    array[()] = converted(value, ir.MemRefType(array.type).element_type)


def _is_foreign(op: ir.Operation) -> bool:
    return is_arithmetic(op) and not is_of_host(op)


def _is_read_by_host(op: ir.Operation) -> bool:
    return any(not _is_foreign(use.owner.operation) for result in op.results for use in result.uses)


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


# -- loops over elements ------------------------------------------------------------------------------------


@record()
class GpuLoops(Pass):
    """Makes a kernel of a loop of the host that contains loads, arithmetic and stores, and no nests.

    Iterations of which none touches what another one writes are shared by the threads of the grid. Others,
    such as additions to elements whose indices may repeat, and recurrences of one number, are run in order by
    one thread: right, deterministic, and slow. So are loops that end when a condition says so, if their
    states are numbers: the condition is computed where they are. The host reads numbers that a loop gives.

    Attributes:
        threads: threads of a block.
    """

    threads: int = 128

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        helpers = declared(module)

        def found(op: ir.Operation) -> ir.Operation | None:
            return op if _is_plain(op) else None

        def replace(op: ir.Operation) -> None:
            self._lower(op, helpers)

        self.count("kernels", replace_loops(module, found, replace, ("scf.for", "scf.while")))

    def _lower(self, op: ir.Operation, helpers: dict[str, Helper]) -> None:
        parallel = op.name == "scf.for" and is_independent(op, helpers)
        kernel = Kernel(op, "loop")
        with kernel.host():
            grid = width = build.const_index(1)
            if parallel:
                lower, upper, step = list(op.operands)[:3]
                count = larger(parts_of(upper - lower, step), 0)
                width = build.const_index(self.threads)
                grid = blocks_for(count, width, _BLOCKS)
        used = [result for result in op.results if is_used(result)]
        arrays = [_read_back(result, op, kernel) for result in used]
        with kernel.body():
            if parallel:
                first, stride = global_position()
                op.operands[0], op.operands[2] = lower + first * step, stride * step
            kernel.take(op)
            for result, array in zip(used, arrays, strict=True):
                _write(result, array)
        kernel.launch([grid], [width])


def _is_plain(op: ir.Operation) -> bool:
    """True if a loop has only what one thread can do."""
    inside = walk(op)
    if any(isinstance(result.type, ir.MemRefType) for result in op.results):
        return False
    if not all(inner.name.startswith(_ALLOWED) or inner.name in _ACCESSES for inner in inside):
        return False
    if op.name == "scf.while" and all(is_of_host(inner) for inner in inside if is_arithmetic(inner)):
        return any(inner.name in ("memref.load", "memref.store") for inner in inside)
    return len(op.results) > 0 or any(inner.name == "memref.store" for inner in inside)


# -- functions of numbers -----------------------------------------------------------------------------------

# Operations, and the scalar kernels that compute them for float64.
_KERNELS = {
    **{f"math.{name}": name for name in "acosh asinh atan2 atanh cbrt cos erfc sin tan".split()},
    "math.powf": "pow",
    "math.fpowi": "pow",
    "arith.remf": "fmod",
}


@record()
class GpuFunctions(Pass):
    """Replaces functions in kernels by calls of scalar kernels, which need no library on the device.

    `sin cos tan pow cbrt erfc atan2 asinh acosh atanh` and remainders of floats are computed in float64 by
    `graphc_scalar.<name>` (`graphc.library.scalars`), and rounded once for smaller types. A reciprocal square
    root is a root and a division, a power with an integer exponent one with a float.
    """

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for outer in [op.operation for op in module.body.operations]:
            if outer.name == "gpu.module":
                for op in walk(outer):
                    self._replace(op, outer.regions[0].blocks[0])

    def _replace(self, op: ir.Operation, kernels: ir.Block) -> None:
        if op.name not in _KERNELS and op.name not in ("func.call", "math.rsqrt"):
            return
        with ir.InsertionPoint(op), op.location:
            if op.name == "func.call":
                value = _called(callee_of(op), list(op.operands), kernels)
            elif op.name == "math.rsqrt":
                value = 1.0 / build.math("sqrt", *op.operands)
            else:
                wide = [converted(x, ir.F64Type.get()) for x in op.operands]
                found = _called(f"graphc_scalar.{_KERNELS[op.name]}", wide, kernels)
                value = converted(found, op.operands[0].type)
        op.results[0].replace_all_uses_with(value)
        op.erase()
        self.count("functions")


def _called(symbol: str, operands: Sequence[ir.Value], kernels: ir.Block) -> ir.Value:
    """A call of a function of the llvm dialect, which is declared once and gives the type of its first
    operand.
    """
    known = [op.operation for op in kernels.operations if symbol_of(op.operation) == symbol]
    if not any(op.name == "llvm.func" for op in known):
        for op in known:
            op.erase()
        kinds = [x.type for x in operands]
        text = f'llvm.func @"{symbol}"({", ".join(map(str, kinds))}) -> {kinds[0]}'
        ir.InsertionPoint.at_block_begin(kernels).insert(ir.Operation.parse(text))
    return call_of(symbol, operands, [operands[0].type]).result
