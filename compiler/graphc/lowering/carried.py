# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops that carry values. Complex ones are carried as two floats and bools, which are bytes in memory, as
bits: LLVM would not vectorise them otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from graphc.ir import build
from graphc.ir.value import as_indices
from graphc_dialects._mlir import ir

_NOT_UNROLLED = "#llvm.loop_annotation<unroll = <disable = true>>"
# (position, carried values) -> their new values
Body = Callable[[Any, list[Any]], list[Any]]


def carry(
    stop: ir.Value | int,
    values: Sequence[ir.Value],
    body: Body,
    *,
    start: ir.Value | int | None = None,
    step: ir.Value | int | None = None,
) -> list[ir.Value]:
    """An `scf.for` around a body; returns the values after it."""
    kinds = [value.type for value in values]
    nest, block = loop(stop, _apart(values), start=start, step=step)
    with ir.InsertionPoint(block):
        position, *parts = block.arguments
        ir.Operation.create("scf.yield", [], _apart(body(position, _together(parts, kinds))))
    return _together(list(nest.results), kinds)


def carry_in_groups(
    start: ir.Value,
    stop: ir.Value,
    each: int,
    values: Sequence[ir.Value],
    body: Callable[[list[ir.Value], list[ir.Value]], list[ir.Value]],
) -> list[ir.Value]:
    """Carries values through the positions of a range, so many at a time, then one by one what is left."""
    rest = start + (stop - start) // each * each
    values = carry(
        rest, values, lambda at, inner: body([at + i for i in range(each)], inner), start=start, step=each
    )
    return carry(stop, values, lambda at, inner: body([at], inner), start=rest)


def carry_over(
    sizes: Sequence[ir.Value],
    values: list[ir.Value],
    body: Callable[[list[ir.Value], list[ir.Value]], list[ir.Value]],
    indices: tuple[ir.Value, ...] = (),
) -> list[ir.Value]:
    """A nest of `scf.for`, one for each size, around a body of (indices, values); returns the values."""
    if len(indices) == len(sizes):
        return body([*indices], values)
    size = sizes[len(indices)]
    return carry(size, values, lambda index, inner: carry_over(sizes, inner, body, (*indices, index)))


def carry_while(
    values: list[ir.Value],
    condition: Callable[[list[ir.Value]], ir.Value],
    body: Callable[[list[ir.Value]], list[ir.Value]],
) -> list[ir.Value]:
    """An `scf.while` that carries values."""
    types = [value.type for value in values]
    made = ir.Operation.create("scf.while", results=types, operands=values, regions=2)
    before, after = (ir.Block.create_at_start(region, types) for region in made.regions)
    with ir.InsertionPoint(before):
        build.create("scf.condition", [], [condition(list(before.arguments)), *before.arguments])
    with ir.InsertionPoint(after):
        ir.Operation.create("scf.yield", [], body(list(after.arguments)))
    return list(made.results)


def bisected(low: ir.Value, high: ir.Value, comes_before: Callable[[ir.Value], ir.Value]) -> ir.Value:
    """The first number from `low` on that does not come before what is looked for; `high` if all do.

    Args:
        low, high: indices.
        comes_before: of a number, a flag; it holds up to some number, and not from there on.
    """

    def halve(ends: list[ir.Value]) -> list[ir.Value]:
        middle = (ends[0] + ends[1]) // 2
        before = comes_before(middle)
        return [build.select(before, middle + 1, ends[0]), build.select(before, ends[1], middle)]

    return carry_while([low, high], lambda ends: ends[0] < ends[1], halve)[0]


def either(
    condition: ir.Value,
    kinds: Sequence[ir.Type],
    then: Callable[[], Sequence[ir.Value] | None],
    otherwise: Callable[[], Sequence[ir.Value] | None],
) -> list[ir.Value]:
    """The result of one of two computations, values of some types or none; only that one is made."""
    if (known := build.constant_value(condition)) is not None:
        return list((then if known else otherwise)() or ())
    made = ir.Operation.create("scf.if", results=list(kinds), operands=[condition], regions=2)
    for region, body in zip(made.regions, (then, otherwise), strict=True):
        with ir.InsertionPoint(ir.Block.create_at_start(region, [])):
            ir.Operation.create("scf.yield", [], list(body() or ()))
    return list(made.results)


def bit_of_byte(value: ir.Value) -> ir.Value:
    """A bool from how it is stored."""
    zero = build.create("arith.constant", [value.type], [], value=ir.IntegerAttr.get(value.type, 0)).result
    not_equal = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 1)
    bit = ir.IntegerType.get_signless(1)
    return build.create("arith.cmpi", [bit], [value, zero], predicate=not_equal).result


def bit_in(value: ir.Value) -> ir.Value | None:
    """The bool that a byte is made of, None if it is not."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.extui":
        return None
    bit = owner.operands[0]
    return bit if bit.type == ir.IntegerType.get_signless(1) else None


def byte_of_bit(value: ir.Value) -> ir.Value:
    """The stored form of a bool."""
    return build.create("arith.extui", [ir.IntegerType.get_signless(8)], [value]).result


def _apart(values: Sequence[ir.Value]) -> list[ir.Value]:
    parts: list[Any] = []
    for value in values:
        if isinstance(value.type, ir.ComplexType):
            element = value.type.element_type
            parts += [build.create(f"complex.{name}", [element], [value]).result for name in ("re", "im")]
        else:
            parts.append(value)
    return parts


def _together(parts: list[ir.Value], kinds: list[ir.Type]) -> list[ir.Value]:
    values, rest = [], iter(parts)
    for kind in kinds:
        if isinstance(kind, ir.ComplexType):
            values.append(build.create("complex.create", [kind], [next(rest), next(rest)]).result)
        else:
            values.append(next(rest))
    return values


def loop(
    stop: ir.Value | int,
    values: list[ir.Value],
    *,
    start: ir.Value | int | None = None,
    step: ir.Value | int | None = None,
) -> tuple[Any, Any]:
    """An empty `scf.for` with iter_args; returns the operation and its block."""
    bounds = as_indices([0 if start is None else start, stop, 1 if step is None else step])
    types = [value.type for value in values]
    loop = ir.Operation.create("scf.for", results=types, operands=[*bounds, *values], regions=1)
    return loop, ir.Block.create_at_start(loop.regions[0], [ir.IndexType.get(), *types])


@contextmanager
def span(
    stop: ir.Value | int,
    start: ir.Value | int = 0,
    step: ir.Value | int = 1,
    *,
    unrolled: bool = True,
) -> Iterator[ir.Value]:
    """An `scf.for` that carries nothing, around what is made inside; gives the number at hand.

    Args:
        stop, start, step: of the numbers.
        unrolled: whether LLVM may unroll the loop.
    """
    made, block = loop(stop, [], start=start, step=step)
    if not unrolled:
        made.attributes["loop_annotation"] = ir.Attribute.parse(_NOT_UNROLLED)
    with ir.InsertionPoint(block):
        yield block.arguments[0]
        ir.Operation.create("scf.yield", [], [])


@contextmanager
def spans(sizes: Sequence[ir.Value | int]) -> Iterator[list[ir.Value]]:
    """A nest of such loops, one for each size, around what is made inside; gives the indices at hand."""
    with ExitStack() as nest:
        yield [nest.enter_context(span(size)) for size in sizes]


@contextmanager
def when(condition: ir.Value) -> Iterator[None]:
    """An `scf.if` without results around what is made inside."""
    made = ir.Operation.create("scf.if", operands=[condition], regions=2)
    with ir.InsertionPoint(ir.Block.create_at_start(made.regions[0], [])):
        yield
        ir.Operation.create("scf.yield", [], [])
