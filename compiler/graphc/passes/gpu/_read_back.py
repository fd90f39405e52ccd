# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers that a kernel computes, and the host reads."""

from __future__ import annotations

from graphc.ir import build
from graphc.passes.gpu._host_arithmetic import PREDICATES
from graphc.passes.gpu._kernel import allocate
from graphc_dialects._mlir import ir


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
        cast = "arith.extui" if _is_bool(value.type) else "arith.index_cast"
        value = build.create(cast, [element], [value]).result
    build.create("memref.store", [], [value, array])


def read(array: ir.Value, kind: ir.Type) -> ir.Value:
    """The number, on the host."""
    element = ir.MemRefType(array.type).element_type
    found = build.create("memref.load", [element], [array]).result
    if element == kind:
        return found
    if not _is_bool(kind):
        return build.create("arith.index_cast", [kind], [found]).result
    zero = build.create("arith.constant", [element], [], value=ir.IntegerAttr.get(element, 0)).result
    unequal = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), PREDICATES.index("ne"))
    return build.create("arith.cmpi", [kind], [found, zero], predicate=unequal).result


def _is_bool(kind: ir.Type) -> bool:
    return isinstance(kind, ir.IntegerType) and ir.IntegerType(kind).width == 1
