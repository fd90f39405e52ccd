# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls in lowered scans of what notices Ctrl-C and shows progress (see graphc.library.interrupts)."""

from __future__ import annotations

from typing import Any

from graphc.ir import build
from graphc.ir.helpers import declare_helper
from graphc.ir.scan_view import scan_name
from graphc.library.helpers import Poll, Progress
from graphc_dialects._mlir import ir


class Polls:
    """The calls of one scan; `graphc-poll-interrupts` later decides which of them stay.

    Args:
        scan: the `graphc.scan` operation; with the attribute `progress` its loop reports how far it is.
        bound: the number of iterations, or the most there can be.
    """

    def __init__(self, scan: ir.Operation, bound: ir.Value) -> None:
        self._bound = bound
        self._progress = "progress" in scan.attributes
        helper = Progress(scan_name(scan)) if self._progress else Poll()
        self._callee = helper.symbol
        # arena-allocation gives the function the context.
        types = [build.index_type()] * 2 if self._progress else []
        declare_helper(scan, helper, types, [_status()])

    def in_iteration(self, step: ir.Value) -> None:
        """At the insertion point, the end of an iteration."""
        self._call([step, self._bound] if self._progress else [])

    def after(self) -> None:
        """At the insertion point, after the loop."""
        if self._progress:
            self._call([self._bound, self._bound])

    def _call(self, operands: list[Any]) -> None:
        build.create("func.call", [_status()], operands, callee=ir.FlatSymbolRefAttr.get(self._callee))


# Loops of no more iterations do not look whether they are to end.
FEW = 16


def _status() -> ir.Type:
    return ir.IntegerType.get_signless(64)
