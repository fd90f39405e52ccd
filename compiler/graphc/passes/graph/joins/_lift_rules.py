# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which parts of its operands an operation needs for a part of its result; for lift-slices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from graphc.ir.checks import SizeChecks
from graphc.ir.rewrite import Rewriter, tensor_type
from graphc.ir.traits.interfaces import CHECKS
from graphc.ir.views import MOVES_AXES, TAKES_PART, bounds_of, part_of
from graphc.passes.graph.shapes._check_rules import elementwise
from graphc_dialects._mlir import ir
from graphc_dialects.elementwise import ELEMENTWISE


class Part(NamedTuple):
    """What is taken along one axis: index values, and the size if it is static (else negative)."""

    offset: Any
    size: Any
    stride: Any
    static: int


Parts = dict[int, Part]
Operands = Callable[[Rewriter, Any, Parts], "list[Parts] | None"]
Build = Callable[[Rewriter, Any, Parts, list[Any]], Any]


class LiftRule(NamedTuple):
    """How an operation is computed in part.

    Attributes:
        operands: the parts of its tensor operands for parts of its result; None where that is not possible.
        build: the parts of its result from its operands, of which the tensors are these parts.
        relies: whether sizes have to be checked, because fewer would be for a part.
    """

    operands: Operands
    build: Build
    relies: bool = False


def rule_of(op: ir.Operation) -> LiftRule | None:
    """The rule of an operation, None if it has none."""
    name = op.name
    if name.startswith("graphc.") and name[7:] in ELEMENTWISE and len(op.results) == 1:
        return _ELEMENTWISE_RULE
    return _RULES.get(name)


def slice_of(rw: Rewriter, x: ir.Value, parts: Parts) -> ir.Value:
    """`graphc.slice` of parts of a tensor."""
    if not parts:
        return x
    zero, one, shape = rw.index(0), rw.index(1), list(x.type.shape)
    bounds = [
        parts[axis] if axis in parts else Part(zero, rw.dim(x, axis), one, size)
        for axis, size in enumerate(shape)
    ]
    type_ = tensor_type([bound.static for bound in bounds], x.type.element_type)
    return part_of(x, [bound[:3] for bound in bounds], type_, rw.create)


def part_type(type_: ir.Type, parts: Parts) -> ir.Type:
    """The type of parts of a tensor."""
    shape = [parts[axis].static if axis in parts else size for axis, size in enumerate(type_.shape)]
    return tensor_type(shape, type_.element_type)


def check_of(rw: Rewriter, op: ir.Operation) -> None:
    """Checks the sizes that an operation relies on: for a part of it, fewer would be checked."""
    rule = rule_of(op)
    check = elementwise if rule is _ELEMENTWISE_RULE else CHECKS.get(op.name)
    if rule is not None and rule.relies and check is not None:
        check(SizeChecks(op.location), rw, op)


def _again(rw: Rewriter, op: ir.Operation, parts: Parts, operands: list[ir.Value]) -> ir.Value:
    """The operation on other operands."""
    attributes = {name: op.attributes[name] for name in op.attributes}
    return rw.create(op.name, operands, part_type(op.results[0].type, parts), **attributes)


# -- rules: the parts of the operands ------------------------------------------------------------------------


def _of_elementwise(rw: Rewriter, op: ir.Operation, parts: Parts) -> list[Parts] | None:
    shapes = [list(x.type.shape) for x in op.operands]
    if any(all(shape[axis] == 1 for shape in shapes) for axis in parts):
        return None
    return [{axis: part for axis, part in parts.items() if shape[axis] != 1} for shape in shapes]


def _same(rw: Rewriter, op: ir.Operation, parts: Parts) -> list[Parts] | None:
    return [parts]


def _of_cast(rw: Rewriter, op: ir.Operation, parts: Parts) -> list[Parts] | None:
    return [parts] if isinstance(op.operands[0].type, ir.RankedTensorType) else None


def _of_softmax(rw: Rewriter, op: ir.Operation, parts: Parts) -> list[Parts] | None:
    return None if set(parts) & set(op.attributes["axes"]) else [parts]


def _of_reduction(rw: Rewriter, op: ir.Operation, parts: Parts) -> list[Parts] | None:
    attributes = op.attributes
    removed = list(attributes["axes"]) if "axes" in attributes else [attributes["axis"].value]
    kept = [axis for axis in range(len(op.operands[0].type.shape)) if axis not in removed]
    return [{kept[axis]: part for axis, part in parts.items()}]


def _of_moved_axes(rw: Rewriter, op: ir.Operation, parts: Parts) -> list[Parts] | None:
    order = list(op.attributes["order"])
    if any(order[axis] < 0 for axis in parts):
        return None
    return [{order[axis]: part for axis, part in parts.items()}]


def _of_join(rw: Rewriter, op: ir.Operation, parts: Parts) -> list[Parts] | None:
    return None if op.attributes["axis"].value in parts else [parts] * len(op.operands)


def _of_matmul(rw: Rewriter, op: ir.Operation, parts: Parts) -> list[Parts] | None:
    batch = len(op.results[0].type.shape) - 2
    flags = [op.attributes[f"transpose_{side}"].value for side in "ab"]
    left: Parts = {axis: part for axis, part in parts.items() if axis < batch}
    right = dict(left)
    if batch in parts:
        left[batch + int(flags[0])] = parts[batch]
    if batch + 1 in parts:
        right[batch + 1 - int(flags[1])] = parts[batch + 1]
    return [left, right]


def _of_broadcast(rw: Rewriter, op: ir.Operation, parts: Parts) -> list[Parts] | None:
    shape = list(op.operands[0].type.shape)
    lead = len(op.results[0].type.shape) - len(shape)
    return [{a - lead: part for a, part in parts.items() if a >= lead and shape[a - lead] != 1}]


def _of_slice(rw: Rewriter, op: ir.Operation, parts: Parts) -> list[Parts] | None:
    """Parts of parts; along other axes nothing changes."""
    bounds = bounds_of(op)
    found = {}
    for axis, part in parts.items():
        offset, _, stride = bounds[axis]
        if rw.constant(stride) != 1:
            part = part._replace(
                offset=rw.index_op("muli", part.offset, stride),
                stride=rw.index_op("muli", part.stride, stride),
            )
        if rw.constant(offset) != 0:
            part = part._replace(offset=rw.index_op("addi", offset, part.offset))
        found[axis] = part
    return [found]


def _of_reshape(rw: Rewriter, op: Any, parts: Parts) -> list[Parts] | None:
    """Whole rows; or, where the first two axes are joined, or the first one is divided, whole blocks."""
    x, *sizes = op.operands
    have, want = rw.dims.shape(x), [rw.dims.size(size) for size in sizes]
    if list(parts) != [0] or rw.dims.count(have) != rw.dims.count(want):
        return None
    part = parts[0]
    if have and rw.dims.same(have[0], want[0]):
        return [parts]
    if rw.constant(part.stride) != 1:
        return None
    if len(want) == len(have) + 1 and want[2:] == have[1:]:
        unit, known = sizes[1], op.results[0].type.shape[1]
        static = part.static * known if part.static >= 0 and known >= 0 else -1
        offset, size = (rw.index_op("muli", rows, unit) for rows in part[:2])
        return [{0: Part(offset, size, part.stride, static)}]
    if len(have) == len(want) + 1 and have[2:] == want[1:]:
        offset, size = (_quotient(rw, rows, have[1]) for rows in part[:2])
        if offset is None or size is None:
            return None
        known = rw.constant(size)
        return [{0: Part(offset, size, part.stride, -1 if known is None else int(known))}]
    return None


def _quotient(rw: Rewriter, value: ir.Value, unit: int) -> Any:
    """An index value divided by a size that is a factor of it, None if it is not known to be one."""
    known = rw.constant(value)
    if known is not None:
        divides = isinstance(unit, int) and unit > 0 and known % unit == 0
        return rw.index(known // unit) if divides else value if known == 0 else None
    if rw.dims.same(rw.dims.size(value), unit):
        return rw.index(1)
    product = rw.defining(value, "arith.muli")
    for x, y in () if product is None else (tuple(product.operands), tuple(product.operands)[::-1]):
        if rw.dims.same(rw.dims.size(y), unit):
            return x
    return None


# -- rules: building -----------------------------------------------------------------------------------------


def _cast(rw: Rewriter, op: ir.Operation, parts: Parts, operands: list[Any]) -> Any:
    return rw.cast_static(operands[0], part_type(op.results[0].type, parts))


def _sized(rw: Rewriter, op: ir.Operation, parts: Parts, operands: list[ir.Value]) -> ir.Value:
    """Operations that are told the sizes of their result."""
    sizes = [parts[axis].size if axis in parts else size for axis, size in enumerate(operands[1:])]
    return _again(rw, op, parts, [operands[0], *sizes])


def _slice(rw: Rewriter, op: ir.Operation, parts: Parts, operands: list[ir.Value]) -> ir.Value:
    """What it takes along other axes."""
    type_ = op.results[0].type
    others = {
        axis: Part(*bound, type_.shape[axis]) for axis, bound in enumerate(bounds_of(op)) if axis not in parts
    }
    return rw.cast_static(slice_of(rw, operands[0], others), part_type(type_, parts))


def _reshape(rw: Rewriter, op: ir.Operation, parts: Parts, operands: list[ir.Value]) -> ir.Value:
    """Its checks hold for the part, as the number of elements is known to be right."""
    sizes = [parts[0].size, *operands[2:]]
    return rw.create("graphc.reshape", [operands[0], *sizes], part_type(op.results[0].type, parts))


_ELEMENTWISE_RULE = LiftRule(_of_elementwise, _again, relies=True)
_RULES = {
    "tensor.cast": LiftRule(_of_cast, _cast),
    **{name: LiftRule(_of_moved_axes, _again) for name in MOVES_AXES},
    "graphc.join": LiftRule(_of_join, _again, relies=True),
    "graphc.matmul": LiftRule(_of_matmul, _again, relies=True),
    "graphc.broadcast_to": LiftRule(_of_broadcast, _sized, relies=True),
    "graphc.specify_shape": LiftRule(_same, _sized, relies=True),
    **{name: LiftRule(_of_slice, _slice) for name in TAKES_PART},
    "graphc.reshape": LiftRule(_of_reshape, _reshape),
    **{f"graphc.{name}": LiftRule(_of_softmax, _again) for name in ("softmax", "log_softmax")},
    **{
        f"graphc.{name}": LiftRule(_of_reduction, _again)
        for name in (
            *("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_and", "reduce_or"),
            *("argmax", "argmin"),
        )
    },
}
