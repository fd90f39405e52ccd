# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values of other threads of a warp, of any element type."""

from __future__ import annotations

from graphc.ir import build
from graphc_dialects._mlir import ir

WARP = 32


def shuffled(value: ir.Value, lane: int | ir.Value, mode: str = "xor") -> ir.Value:
    """The value of another lane; whole warps have to get here.

    Args:
        value: of any element type.
        lane: what `mode` takes, a number or an i32.
        mode: "xor", "up", "down" or "idx". Lanes that do not exist give the thread's own value.
    """
    kind = value.type
    if isinstance(lane, int):
        lane = word(lane)
    if isinstance(kind, ir.ComplexType):
        parts = [
            shuffled(build.create(f"complex.{part}", [kind.element_type], [value]).result, lane, mode)
            for part in ("re", "im")
        ]
        return build.create("complex.create", [kind], parts).result
    if not isinstance(kind, ir.IntegerType):
        bits = _integer(int(kind.width))
        moved = shuffled(build.create("arith.bitcast", [bits], [value]).result, lane, mode)
        return build.create("arith.bitcast", [kind], [moved]).result
    if kind.width < WARP:
        moved = shuffled(build.create("arith.extui", [_integer(32)], [value]).result, lane, mode)
        return build.create("arith.trunci", [kind], [moved]).result
    return _word(value, lane, mode) if kind.width == 32 else _words(value, lane, mode)


def word(number: int) -> ir.Value:
    """A constant of 32 bits."""
    kind = _integer(32)
    return build.create("arith.constant", [kind], [], value=ir.IntegerAttr.get(kind, number)).result


def _words(value: ir.Value, lane: ir.Value, mode: str) -> ir.Value:
    """64 bits as two halves."""
    kind, half_kind = value.type, _integer(32)
    half = build.create("arith.constant", [kind], [], value=ir.IntegerAttr.get(kind, 32)).result
    low = build.create("arith.trunci", [half_kind], [value]).result
    high = build.create("arith.shrui", [kind], [value, half]).result
    high = build.create("arith.trunci", [half_kind], [high]).result
    wide = [build.create("arith.extui", [kind], [_word(part, lane, mode)]).result for part in (low, high)]
    top = build.create("arith.shli", [kind], [wide[1], half]).result
    return build.create("arith.ori", [kind], [wide[0], top]).result


def _word(value: ir.Value, lane: ir.Value, mode: str) -> ir.Value:
    attribute = ir.Attribute.parse(f"#gpu<shuffle_mode {mode}>")
    results = [_integer(32), _integer(1)]
    return build.create("gpu.shuffle", results, [value, lane, word(WARP)], mode=attribute).results[0]


def _integer(width: int) -> ir.Type:
    return ir.IntegerType.get_signless(width)
