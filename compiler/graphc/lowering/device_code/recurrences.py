# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running sums and linear recurrences for devices: one call each, which `graphc-gpu-running` writes."""

from __future__ import annotations

from graphc.ir import build
from graphc.ir.kinds import static_shape
from graphc.ir.types import dtype_of
from graphc.library.helpers import KernelCall
from graphc.lowering import calls
from graphc.lowering.generic import GenericBuilder
from graphc.lowering.rules import ON_DEVICES, Conversion
from graphc.lowering.scans.buffers import read
from graphc.lowering.scans.recurrences import RECURRENCES
from graphc.native.types import type_of_dtype
from graphc_dialects._mlir import ir
from graphc_dialects.recurrence import KINDS

# The name of the calls, and the kind of a linear recurrence among those of running operations.
RECURRENCE, LINEAR = "recurrence", len(KINDS)


@ON_DEVICES(*RECURRENCES)
def recurrence(context: Conversion, op: ir.Operation) -> None:
    """A call with the operands, the initial row, the result and the number of steps."""
    *stacks, initial, steps = op.operands
    reverse, keep = (ir.BoolAttr(op.attributes[name]).value for name in ("reverse", "keep_initial"))
    kind = KINDS.index(ir.StringAttr(op.attributes["kind"]).value) if "kind" in op.attributes else LINEAR
    count = context.index_of(steps)
    rows = count + 1 if keep else count
    sizes = [rows, *context.sizes_of(initial)[1:]]
    context.define_sizes(op.results[0], sizes)
    operands = [context.tensor_of(x) for x in stacks]
    if isinstance(initial.type.element_type, ir.ComplexType):
        # Computed, as a complex constant would lie in memory of the host.
        operands.append(
            GenericBuilder(context, static_shape(initial), context.sizes_of(initial), []).copy(initial)
        )
    else:
        operands.append(context.tensor_of(initial))
    result = calls.place(context, op.results[0], sizes)
    types = tuple(
        type_of_dtype(dtype_of(x.type.element_type)).name for x in (*stacks, initial, op.results[0])
    )
    names = ("keep_initial", "kind", "reverse")
    callee = KernelCall(RECURRENCE, types, names, (int(keep), kind, int(reverse)))
    pointers = [*map(calls.read_from, operands), calls.write_to(result)]
    calls.call(op, callee, [*pointers, calls.number(count)])
    context.define(op.results[0], read(result, build.storage_type(op.results[0].type)))
