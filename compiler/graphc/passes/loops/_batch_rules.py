# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How each operation of a body is done on stacks of rows.

A rule gets the batcher, the operation of the body and what stands for its tensor operands, of which at least
one is a stack; it returns the stack of its result, of type `batcher.stack_type(<type of a row>)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphc.ir.traits.interfaces import BATCH, Batch, CannotBatch
from graphc.passes.loops._batch import Batcher, Rule, attributes_of
from graphc_dialects._base import dim_of
from graphc_dialects.elementwise import ELEMENTWISE
from graphc_dialects.signatures import SIGNATURES

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir


def rule_of(name: str) -> Rule | None:
    """The rule of an operation, None if it has none."""
    known = BATCH.get(name)
    if known is None and name.startswith("graphc."):
        if name[7:] in ELEMENTWISE:
            return elementwise
        if name[7:] in SIGNATURES:
            return kernel
    return known


def kernel(b: Batcher, op: ir.Operation, xs: list[Batch]) -> Any:
    """One more leading dimension is one more batch dimension."""
    if len(op.results) != 1:
        raise CannotBatch("an operation with several results")
    signature = SIGNATURES[op.name[7:]]
    stacks = [b.repeated(x) for x in xs]
    sizes: dict[Any, Any] = {}
    for i, core in enumerate(signature.operands):
        rank = len(stacks[i].type.shape)
        for axis, dim in enumerate([*range(1, rank - len(core)), *core], 1):
            if dim in sizes:
                stacks[i] = b.fit(stacks[i], axis, sizes[dim])
            else:
                sizes[dim] = dim_of(stacks[i], axis)
    given = [b.size(x) for x in list(op.operands)[len(signature.operands) :]]
    return b.create(op.name, [*stacks, *given], b.stack_type(op.results[0].type), **attributes_of(op))


def elementwise(b: Batcher, op: ir.Operation, xs: list[Batch]) -> ir.Value:
    return b.create(op.name, b.agreeing(xs), b.stack_type(op.results[0].type), **attributes_of(op))
