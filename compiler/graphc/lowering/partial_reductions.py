# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions to one element in parts, and column sums in blocks of columns, which several cores can share.

A long reduction is computed in at most 64 parts, whose results are combined in order. The parts depend on the
size alone, so that results do not depend on the number of threads. A part is a whole number of the blocks
that sums are accumulated in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from graphc.ir import build
from graphc.ir.value import larger, literal, smaller
from graphc_dialects._mlir import ir

Axes = Sequence[int | None]


def nest(
    inputs: Sequence[tuple[ir.Value, Axes]],
    outputs: Sequence[tuple[ir.Value, Axes]],
    reduced: Sequence[bool],
    body: Callable[[list[ir.Value]], Sequence[ir.Value]],
    **attributes: ir.Attribute,
) -> ir.Operation:
    """A `linalg.generic` at the insertion point.

    Args:
        inputs, outputs: tensors or buffers, each with its dimensions as those of the nest (None: index 0).
        reduced: for each dimension of the nest, whether it is reduced.
        body: gives the new elements of the outputs, of those of all operands.
        attributes: more of them.
    """
    operands, rank = [*inputs, *outputs], len(reduced)
    maps = [
        ir.AffineMap.get(
            rank,
            0,
            [ir.AffineExpr.get_constant(0) if a is None else ir.AffineExpr.get_dim(a) for a in axes],
        )
        for _, axes in operands
    ]
    made = generic([x for x, _ in inputs], [x for x, _ in outputs], maps, reduced, **attributes)
    block = ir.Block.create_at_start(made.regions[0], [x.type.element_type for x, _ in operands])
    with ir.InsertionPoint(block):
        build.create("linalg.yield", [], list(body(list(block.arguments))))
    return made


def generic(
    inputs: Sequence[ir.Value],
    outputs: Sequence[ir.Value],
    maps: Sequence[ir.AffineMap],
    reduced: Sequence[bool],
    **attributes: ir.Attribute,
) -> ir.Operation:
    """A `linalg.generic` whose body is still to come; see `nest`."""
    kinds = [f"#linalg.iterator_type<{'reduction' if each else 'parallel'}>" for each in reduced]
    attributes |= {
        "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(each) for each in maps]),
        "iterator_types": ir.ArrayAttr.get([ir.Attribute.parse(kind) for kind in kinds]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(inputs), len(outputs)]),
    }
    results = [x.type for x in outputs if isinstance(x.type, ir.RankedTensorType)]
    return ir.Operation.create("linalg.generic", results, [*inputs, *outputs], attributes, regions=1)


def elementwise(
    inputs: Sequence[ir.Value], target: ir.Value, body: Callable[[Sequence[ir.Value]], ir.Value]
) -> ir.Value:
    """A `linalg.generic` that computes each element of a tensor for itself.

    Args:
        inputs: tensors of the same rank; they are repeated along dimensions in which their type has 1.
        target: the tensor to start from, without contents.
        body: gives the new element, of those of the inputs; `position` says where it is.

    Returns:
        The tensor with its elements.
    """
    rank = ir.RankedTensorType(target.type).rank
    operands = [
        (x, [None if size == 1 else axis for axis, size in enumerate(ir.RankedTensorType(x.type).shape)])
        for x in inputs
    ]
    made = nest(operands, [(target, range(rank))], [False] * rank, lambda given: [body(given[:-1])])
    return made.results[0]


def position(axis: int) -> ir.Value:
    """Index of an element along an axis, in the body of a nest."""
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), axis)
    return build.create("linalg.index", [build.index_type()], [], dim=number).result


PARTS = 64
# The shortest part: several microseconds of work.
LEAST = 16384
# Columns of a block: two pages of doubles, which stay in the first-level cache while rows are added.
COLUMNS = 512

_FLOATS = {
    "arith.addf": 0.0,
    "arith.mulf": 1.0,
    "arith.maximumf": float("-inf"),
    "arith.minimumf": float("inf"),
    "complex.add": 0.0,
}
_INTEGERS = tuple(f"arith.{name}" for name in "addi muli maxsi minsi maxui minui andi ori xori".split())


# A mark of nests for devices.
FIRST = "graphc.first"


def first_of(predicates: Sequence[str]) -> dict[str, ir.Attribute]:
    """The mark of a nest that finds extremes: by which predicate elements win, of each output that is the
    first extreme and has its position after it, "gt" or "lt", or "ugt" or "ult" of what has no sign; of
    other outputs it is empty.
    """
    said = ir.ArrayAttr.get([ir.StringAttr.get(name) for name in predicates])
    return {FIRST: said} if any(predicates) else {}


class Combiner(NamedTuple):
    """Combination of an accumulator and a value: an operation that is associative, up to rounding."""

    name: str
    neutral: Any

    def combine(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return build.create(self.name, [a.type], [a, b]).result

    def constant(self, value_type: ir.Type) -> Any:
        """The value that changes nothing."""
        return literal(self.neutral, value_type)


def combiner(value: ir.Value, accumulator: ir.Value) -> Combiner | None:
    """The combiner that makes `value`, which a body yields, from the accumulator; None if it cannot be
    done in parts.
    """
    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    uses = list(accumulator.uses)
    if len(uses) != 1 or uses[0].owner.operation != owner.operation:
        return None
    if owner.name in _FLOATS:
        return Combiner(owner.name, _FLOATS[owner.name])
    if owner.name in _INTEGERS:
        return Combiner(owner.name, _neutral(owner.name, ir.IntegerType(value.type).width))
    return None


def _neutral(name: str, width: int) -> int:
    """As the signed number with these bits."""
    if name in ("arith.addi", "arith.ori", "arith.xori", "arith.maxui"):
        return 0
    if name == "arith.muli":
        return 1
    if name in ("arith.andi", "arith.minui"):
        return -1
    return -(1 << width - 1) if name == "arith.maxsi" else (1 << width - 1) - 1


def is_in_loop(op: ir.Operation) -> bool:
    """True if an operation stands inside of another one of its function, such as the loop of a scan."""
    return op.parent.operation.name != "func.func"


def part_length(extent: ir.Value, block: int) -> ir.Value:
    """Iterations of a part: a multiple of `block` if there is more than one part, else all; at least 1.

    Args:
        extent: iterations in all.
        block: what a part is a multiple of; 1 where an iteration is a loop of its own.
    """
    fair = (extent + (PARTS - 1)) >> 6
    if block > 1:
        fair = larger((fair + (block - 1)) & -block, LEAST)
    return larger(smaller(fair, extent), 1)


def part_count(extent: ir.Value, length: ir.Value) -> ir.Value:
    past = extent + (length - 1)
    return past // length


def part_buffer(value_type: ir.Type, inside: ir.Operation) -> ir.Value:
    """Memory for the results of the parts, on the stack of the function that contains an operation."""
    return build.stack_memory(ir.MemRefType.get([PARTS], value_type), inside)
