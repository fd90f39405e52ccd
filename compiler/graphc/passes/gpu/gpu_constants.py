# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements that the program has, or the host computes: kernels of one thread write them."""

from __future__ import annotations

import numpy as np

from graphc.ir import build
from graphc.ir.constants import complex_literal, element_dtype
from graphc.ir.diagnostics import fail
from graphc.ir.lifetimes import VIEWS
from graphc.ir.walk import copied, functions, walk
from graphc.lowering.scans.buffers import allocate
from graphc.passes import Pass
from graphc.passes.gpu._kernel import Kernel
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

_ARITHMETIC = ("arith", "math", "complex")


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
        values = {
            ir.StringAttr(op.operation.attributes["sym_name"]).value: op.operation
            for op in module.body.operations
            if op.operation.name == "memref.global"
        }
        for function in functions(module):
            for op in [op for op in walk(function) if op.name == "memref.get_global"]:
                if _erase_unused(op):
                    continue  # what became a kernel before needs no array for it
                self._write(op, values[ir.FlatSymbolRefAttr(op.attributes["name"]).value])
                self.count("kernels")
        for op in values.values():
            op.erase()
        for function in functions(module):
            for op in [op for op in walk(function) if op.name == "memref.store"]:
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
            array = allocate(ir.RankedTensorType.get(kind.shape, kind.element_type), list(kind.shape))
        with kernel.body():
            for place in np.ndindex(*kind.shape):
                array[place] = _number(kind.element_type, elements.item(place))
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
    if dense.is_splat:
        return np.full(shape, dense.get_splat_value().value)
    return np.array(dense).reshape(shape)


def _number(kind: ir.Type, value: complex) -> ir.Value:
    """A constant of the kernel."""
    if isinstance(kind, ir.ComplexType):
        part = ir.ComplexType(kind).element_type
        parts = [ir.FloatAttr.get(part, x) for x in (float(value.real), float(value.imag))]
        return build.create("complex.constant", [kind], [], value=ir.ArrayAttr.get(parts)).result
    attribute = (
        ir.IntegerAttr.get(kind, int(value.real))
        if isinstance(kind, ir.IntegerType)
        else ir.FloatAttr.get(kind, float(value.real))
    )
    return build.create("arith.constant", [kind], [], value=attribute).result


def _erase_unused(op: ir.Operation) -> bool:
    """Erases an array, or a view of one, that nothing uses but views which nothing uses."""
    for use in list(op.results[0].uses):
        if use.owner.operation.name in VIEWS:
            _erase_unused(use.owner.operation)
    if next(iter(op.results[0].uses), None) is not None:
        return False
    op.erase()
    return True


def _is_copied(op: ir.Operation) -> bool:
    """True if an operation computes an element, from indices and from what loads have given."""
    is_index = any(isinstance(result.type, ir.IndexType) for result in op.results)
    return not is_index and op.name.partition(".")[0] in _ARITHMETIC and len(op.operands) > 0
