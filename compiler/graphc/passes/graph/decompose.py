# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Expands composite operations into elementwise operations and reductions."""

from __future__ import annotations

from graphc.ir.kinds import reduce, reduced_axes
from graphc.ir.patterns import unary
from graphc.ir.rewrite import Rewriter, RuleTable, apply_rules, tensor_type
from graphc.ir.views import axis_of, dimshuffle, restored_order
from graphc.passes import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# Rows of so many elements are not worth a call.
_SHORT_ROW = 16


class _Normaliser:
    """The pieces both expansions share."""

    def __init__(self, rewriter: Rewriter, op: ir.Operation) -> None:
        self._rw = rewriter
        x = op.operands[0]
        self._axes = reduced_axes(op)
        self._half = str(x.type.element_type) == "f16"
        self.result_type = op.results[0].type
        if self._half:
            x = rewriter.create("graphc.cast", [x], tensor_type(x.type.shape, ir.F32Type.get()))
        self.x = x
        top = self._reduce("max", x, allow_empty=ir.BoolAttr.get(True))
        if "guarded" in op.attributes:
            finite = tensor_type(top.type.shape, ir.IntegerType.get_signless(1))
            flag = rewriter.create("graphc.isfinite", [top], finite)
            top = rewriter.create("graphc.switch", [flag, top, rewriter.scalar_like(0, top)], top.type)
        self.centred = self.binary("sub", x, self._keep_dims(top))
        self.exp = rewriter.create("graphc.exp", [self.centred], x.type)
        narrow = ir.UnitAttr.get()
        self.total = self._keep_dims(self._reduce("sum", self.exp, narrow=narrow))

    def binary(self, name: str, a: ir.Value, b: ir.Value) -> ir.Value:
        return self._rw.create(f"graphc.{name}", [a, b], a.type)

    def unary(self, name: str, value: ir.Value) -> ir.Value:
        return self._rw.create(f"graphc.{name}", [value], value.type)

    def finish(self, value: ir.Value) -> ir.Value:
        return self._rw.create("graphc.cast", [value], self.result_type) if self._half else value

    def _reduce(self, name: str, value: ir.Value, **attributes: ir.Attribute) -> ir.Value:
        return reduce(name, value, self._axes, None, self._rw.create, **attributes)

    def _keep_dims(self, value: ir.Value) -> ir.Value:
        order = restored_order(len(self.x.type.shape), list(self._axes))
        return dimshuffle(value, order, create=self._rw.create)


def _softmax(rewriter: Rewriter, op: ir.Operation) -> ir.Value:
    parts = _Normaliser(rewriter, op)
    return parts.finish(parts.binary("mul", parts.exp, parts.unary("reciprocal", parts.total)))


def _log_softmax(rewriter: Rewriter, op: ir.Operation) -> ir.Value:
    parts = _Normaliser(rewriter, op)
    return parts.finish(parts.binary("sub", parts.centred, parts.unary("log", parts.total)))


def _positions_of_extremes(rewriter: Rewriter, op: ir.Operation) -> ir.Value | None:
    x = op.operands[0]
    shape = x.type.shape
    short = 0 <= shape[-1] <= _SHORT_ROW
    if axis_of(op) != len(shape) - 1 or short or str(x.type.element_type).startswith("complex"):
        return None
    smallest = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), int(op.name == "graphc.argmin"))
    return rewriter.create("graphc.arg_extreme", [x], op.results[0].type, smallest=smallest)


class _Differences(dict[tuple[ir.Block, ir.Value, ir.Value], ir.Value]):
    """The differences of which there are functions, by their blocks and operands."""


def _function_of_opposite(rewriter: Rewriter, op: ir.Operation) -> ir.Value | None:
    difference = rewriter.defining(op.operands[0], "graphc.sub")
    if difference is None:
        return None
    known = rewriter.notes.setdefault(_Differences, _Differences())
    assert isinstance(known, _Differences)
    x, y = difference.operands
    opposite = known.get((op.block, y, x))
    if opposite is None or opposite.type != difference.results[0].type:
        known.setdefault((op.block, x, y), difference.results[0])
        return None
    return unary(rewriter, op.name.removeprefix("graphc."), unary(rewriter, "neg", opposite))


_RULES: RuleTable = {
    "graphc.sigmoid": [_function_of_opposite],
    "graphc.softplus": [_function_of_opposite],
    "graphc.softmax": [_softmax],
    "graphc.log_softmax": [_log_softmax],
}
_WITH_CALLS: RuleTable = {
    **_RULES,
    "graphc.argmax": [_positions_of_extremes],
    "graphc.argmin": [_positions_of_extremes],
}


@record()
class Decompose(Pass):
    """Writes `softmax` and `log_softmax` out in terms of what the lowering has loops for.

    With `m = max(x)` over the axes and `e = exp(x - m)`, softmax is `e * (1 / sum(e))`, one division a row
    instead of one an element, and log_softmax is `(x - m) - log(sum(e))`. No exponential exceeds 1, so
    nothing overflows; the sum is at least 1, so the logarithm is finite. A NaN or +inf in a row, and a row
    of nothing but -inf, gives NaN. With the attribute `guarded`, m is 0 where the maximum is not finite.
    float16 is computed in float32, because a sum of more than 2048 terms near 1 does not fit its precision.

    Of `sigmoid` and `softplus` of `x - y` and of `y - x`, the later is that of `-(x - y)`: what they share,
    the exponential of `-|x - y|` and its logarithm, is computed once.

    It runs late, after the rewrites that recognise `log(softmax(x))`, and those that turn negations of
    differences.

    Options:
        device: positions of extremes along rows stay reductions, and are no calls of a kernel of the library.

    Source: PyTensor's `Softmax` and `LogSoftmax` ops (`tensor/special.py`).
    """

    stage = "graph"
    acts_on = _WITH_CALLS
    device: bool = False

    def run(self, module: ir.Module) -> None:
        apply_rules(module, _RULES if self.device else _WITH_CALLS, self.count)
