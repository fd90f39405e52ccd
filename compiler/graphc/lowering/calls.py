# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of functions that code generation defines: pointers to buffers, numbers.

Nobody knows yet where a tensor is going to lie: pointers are asked for with `graphc.address`, and made by
`graphc-kernel-pointers` where everything has its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from graphc.ir import build
from graphc.ir.helpers import declare_helper
from graphc.library.helpers import Helper
from graphc.lowering.scans.buffers import allocate, any_layout
from graphc_dialects._mlir import ir

if TYPE_CHECKING:
    from graphc.lowering.rules import Conversion

# The operation that asks for a pointer.
ADDRESS = "graphc.address"


def place(context: Conversion, value: ir.Value, sizes: list[ir.Value]) -> ir.Value:
    """The contiguous memory where a value is wanted, or new memory."""
    return context.destinations.buffer(value) or allocate(build.storage_type(value.type), sizes)


def read_from(tensor: ir.Value) -> ir.Value:
    """A pointer to the elements of a tensor, side by side; the call that reads them must follow at once."""
    return _address(any_layout(tensor), "read")


def write_to(buffer: ir.Value) -> ir.Value:
    """A pointer to a contiguous buffer, whose elements a call writes."""
    return _address(buffer, "write")


def _address(buffer: ir.Value, access: str) -> ir.Value:
    pointer = ir.Type.parse("!llvm.ptr")
    return build.create(ADDRESS, [pointer], [buffer], access=ir.StringAttr.get(access)).result


def number(index: ir.Value) -> ir.Value:
    """An index as an i64."""
    return build.create("arith.index_cast", [ir.IntegerType.get_signless(64)], [index]).result


def product(sizes: Sequence[ir.Value]) -> ir.Value:
    """The number of elements, an index."""
    return prod(sizes, start=build.const_index(1))


def call(
    op: ir.Operation, helper: Helper, arguments: list[ir.Value], results: list[ir.Type] | None = None
) -> ir.Operation:
    """Calls a function of the module of an operation, which is declared there if it is not yet."""
    declare_helper(op, helper, [x.type for x in arguments], results or [])
    return build.call(helper.symbol, results or [], arguments)
