# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What operations use from outside, when they move to a function of their own."""

from __future__ import annotations

from collections.abc import Sequence

from graphc.ir.copies import copy_with
from graphc.passes.buffer.parallel._independence import is_view
from graphc_dialects._mlir import ir


class Captured:
    """The values that operations of one block need as arguments.

    Memory is captured as a whole; views of it and constants are made again.

    Args:
        ops: the operations, each followed by those in its regions.
        without: values that they get in another way.

    Attributes:
        values: roots of memory and scalars, each once.
    """

    def __init__(self, ops: Sequence[ir.Operation], without: Sequence[ir.Value] = ()) -> None:
        self.values: list[ir.Value] = []
        self._again: list[ir.Operation] = []
        self._uses: list[tuple[ir.Operation, int, ir.Value]] = []
        seen: set[ir.Value] = set()
        own: set[ir.Value] = set()
        for op in ops:
            for i, value in enumerate(op.operands):
                if value not in own:
                    self._uses.append((op, i, value))
                    if value not in seen and value not in without:
                        self._need(value, seen)
            own.update(op.results)
            for region in op.regions:
                for block in region.blocks:
                    own.update(block.arguments)

    def _need(self, value: ir.Value, seen: set[ir.Value]) -> None:
        """Captures a value, or notes the operation that makes it, after those that make its operands."""
        owner = value.owner
        if isinstance(owner, ir.Block) or not (owner.name == "arith.constant" or is_view(owner)):
            seen.add(value)
            self.values.append(value)
            return
        seen.update(owner.results)
        for operand in owner.operands:
            if operand not in seen:
                self._need(operand, seen)
        self._again.append(owner.operation)

    def replace(self, arguments: Sequence[ir.Value]) -> None:
        """Makes the operations use arguments, and copies at the insertion point of what makes the rest."""
        new = dict(zip(self.values, arguments, strict=True))
        for op in self._again:
            copy_with(op, new)
        for op, i, value in self._uses:
            if value in new:
                op.operands[i] = new[value]
