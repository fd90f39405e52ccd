# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What operations use from outside, when they move to a function of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.passes._independence import is_view
from graphc.passes._walk import inputs_of, walk
from graphc_dialects._mlir import ir


class Captured:
    """The values that operations of one block need as arguments.

    Memory is captured as a whole; views of it and constants are made again.

    Args:
        ops: the operations.
        without: values that they get in another way.

    Attributes:
        values: roots of memory and scalars, each once.
    """

    def __init__(self, ops: Sequence[Any], without: Sequence[Any] = ()) -> None:
        self._ops = ops
        self.values: list[Any] = []
        self._again: list[Any] = []
        own = {result for op in ops for result in op.results}
        seen: set[Any] = set()
        for op in ops:
            for value in inputs_of(op):
                if value not in own and value not in without:
                    self._need(value, seen)

    def _need(self, value: Any, seen: set[Any]) -> None:
        """Captures a value, or notes the operation that makes it, behind those that make its operands."""
        op = value.owner
        again = not isinstance(op, ir.Block) and (op.name == "arith.constant" or is_view(op))
        what = op.operation if again else value
        if what in seen:
            return
        seen.add(what)
        if again:
            for operand in op.operands:
                self._need(operand, seen)
            self._again.append(what)
        else:
            self.values.append(value)

    def replace(self, arguments: Sequence[Any]) -> None:
        """Makes the operations use arguments, and copies at the insertion point of what makes the rest."""
        new = dict(zip(self.values, arguments, strict=True))
        for op in self._again:
            copy = op.clone()
            _rename(copy, new)
            new.update(zip(op.results, copy.results, strict=True))
        for root in self._ops:
            for op in [root, *walk(root)]:
                _rename(op, new)


def _rename(op: Any, new: dict[Any, Any]) -> None:
    for i, operand in enumerate(op.operands):
        if operand in new:
            op.operands[i] = new[operand]
