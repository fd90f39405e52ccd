# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of library kernels in host code, which passes for devices write kernels for.

What a call takes as pointers are `graphc.address` operations of buffers; kernels take the buffers as they
lie, with their strides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from graphc.ir import build
from graphc.ir.diagnostics import fail
from graphc.ir.helpers import callee_of, declared
from graphc.ir.value import as_index
from graphc.ir.walk import functions, walk
from graphc.library.helpers import KernelCall
from graphc.lowering.calls import ADDRESS
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

_KINDS = {"i": "int", "u": "uint", "f": "float", "c": "complex"}


@record(frozen=True)
class LibraryCall:
    """A call.

    Attributes:
        op: the `func.call`.
        kernel: what is called.
        buffers: operands, results, and memory to work with where the kernel asks for it.
        numbers: sizes and so on, as indices.
    """

    op: ir.Operation
    kernel: KernelCall
    buffers: Sequence[ir.Value]
    numbers: Sequence[ir.Value]

    @property
    def dtypes(self) -> list[np.dtype]:
        """Of operands and results."""
        return [dtype_named(name) for name in self.kernel.types]

    def attribute(self, name: str) -> int:
        """One of the kernel's attributes."""
        if name not in self.kernel.keywords:
            fail(self.op, f"'{self.kernel.name}' is declared without its attribute '{name}'")
        return self.kernel.values[self.kernel.keywords.index(name)]

    def erase(self) -> None:
        """Erases the call, whose results nobody may use, and the pointers that only it used."""
        pointers = [x.owner for x in self.op.operands if is_address(x)]
        self.op.erase()
        for pointer in dict.fromkeys(pointers):
            if next(iter(pointer.results[0].uses), None) is None:
                pointer.operation.erase()


def calls_of(module: ir.Module, names: Iterable[str]) -> list[LibraryCall]:
    """The calls of kernels with some names; indices for their numbers are made where they are."""
    wanted = frozenset(names)
    kernels = {
        symbol: helper
        for symbol, helper in declared(module).items()
        if isinstance(helper, KernelCall) and helper.name in wanted
    }
    if not kernels:
        return []
    found = []
    for op in [op for function in functions(module) for op in walk(function)]:
        kernel = kernels.get(callee_of(op)) if op.name == "func.call" else None
        if kernel is not None:
            _check_types(op, kernel)
            buffers = [x.owner.operands[0] for x in op.operands if is_address(x)]
            with ir.InsertionPoint(op), op.location:
                numbers = [_index(x) for x in op.operands if not is_address(x)]
            found.append(LibraryCall(op, kernel, buffers, numbers))
    return found


def dtype_named(name: str) -> np.dtype:
    """The dtype of a type of the kernel language."""
    return np.dtype("bool" if name == "bool" else f"{_KINDS[name[0]]}{name[1:]}")


def _check_types(op: ir.Operation, kernel: KernelCall) -> None:
    for name in kernel.types:
        try:
            dtype_named(name)
        except (TypeError, KeyError, IndexError):
            fail(op, f"'{kernel.name}' is declared with a type '{name}', which kernels do not have")


def is_address(value: ir.Value) -> bool:
    """True if a value is the address of a buffer, for a call."""
    return not isinstance(value.owner, ir.Block) and value.owner.name == ADDRESS


def _index(number: ir.Value) -> ir.Value:
    """The index that was cast to a number."""
    owner = number.owner
    if not isinstance(owner, ir.Block):
        if owner.name == "arith.index_cast" and isinstance(owner.operands[0].type, ir.IndexType):
            return owner.operands[0]
        if owner.name == "arith.constant":
            return build.const_index(ir.IntegerAttr(owner.attributes["value"]).value)
    return as_index(number)
