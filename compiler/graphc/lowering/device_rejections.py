# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conditions and choices in draws for devices that take several words."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from graphc.ir import build
from graphc.lowering.carried import either
from graphc.lowering.device_streams import Drawn
from graphc_dialects._mlir import ir

DrawnLater: TypeAlias = "Callable[[], Drawn]"


def _kinds() -> list[ir.Type]:
    return [ir.F64Type.get(), build.index_type()]


def choose(condition: ir.Value, then: DrawnLater, otherwise: DrawnLater) -> Drawn:
    """One of two draws."""

    def parts(draw: DrawnLater) -> list[ir.Value]:
        x, place = draw()
        return [x, place]

    x, place = either(condition, _kinds(), lambda: parts(then), lambda: parts(otherwise))
    return x, place


def both(a: ir.Value, b: ir.Value) -> ir.Value:
    """Whether two conditions hold."""
    return build.create("arith.andi", [a.type], [a, b]).result


def opposite(a: ir.Value) -> ir.Value:
    """Whether a condition does not hold."""
    true = build.create("arith.constant", [a.type], [], value=ir.IntegerAttr.get(a.type, 1)).result
    return build.create("arith.xori", [a.type], [a, true]).result
