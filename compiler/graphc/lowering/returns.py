# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of `func.return`: results go to the memory that callers give for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.ir import build
from graphc.ir.kinds import static_shape
from graphc.ir.views import INLINED
from graphc.lowering.generic import GenericBuilder, ScalarWork
from graphc.lowering.scans.buffers import write, write_apart
from graphc_dialects._mlir import ir

if TYPE_CHECKING:
    from graphc.lowering.memory.donation import Donations
    from graphc.lowering.rules import Conversion

# Attribute of functions: the position of the first argument that is the memory of a result.
FIRST_RESULT = "graphc.first_result"


def emit_return(context: Conversion, donations: Donations, op: ir.Operation) -> None:
    """Puts results into their buffers, where they are not there already; those of `@shapes` are returned.

    Args:
        context: the function conversion.
        donations: the arguments in whose memory results are computed.
        op: the `func.return`.
    """
    results = list(op.operands)
    if not context.outputs:
        build.create("func.return", [], [context.tensor_of(x) for x in results])
        return
    # A result must be in its buffer before one made from it, as both may share memory until then.
    order: dict[ir.Value, int] = {
        value: i for i, other in enumerate(op.block.operations) for value in other.operation.results
    }
    lent = donations.pairs.values()
    pairs = [
        pair
        for i, pair in enumerate(zip(results, context.outputs, strict=True))
        if not context.is_filled(i) and i not in lent
    ]
    for value, buffer in sorted(pairs, key=lambda pair: order.get(pair[0], -1)):
        scalar = context.scalar_of(value)
        if scalar is None:
            write(context.tensor_of(value), buffer)
            continue
        zeros = [build.const_index(0)] * ir.MemRefType(buffer.type).rank
        build.create("memref.store", [], [ScalarWork(context, []).stored(scalar), buffer, *zeros])
    _return_lent(context, donations, results)
    build.create("func.return", [], [])


def _return_lent(context: Conversion, donations: Donations, results: list[ir.Value]) -> None:
    """Puts results into donated arguments, after their last reader; nothing is left to do as a rule.

    A copy instead of `materialize_in_destination`: that one would hand out the argument's memory for
    everything that becomes the result, without a look at who reads it.
    """
    context.is_ending = True
    for value in donations.lent:
        if value.owner.name in INLINED and not context.is_materialised(value):
            # As a loop: a part of another array would have to be copied twice.
            builder = GenericBuilder(context, static_shape(value), context.sizes_of(value), [])
            context.define(value, builder.copy(value))
    for argument, position in donations.pairs.items():
        is_there = argument in donations.waiting and context.is_filled(position)
        if is_there or donations.is_itself(argument, results[position]):
            continue
        buffer, tensor = context.outputs[position], context.tensor_of(results[position])
        write_apart(tensor, buffer)
