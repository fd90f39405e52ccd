# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops that carry values; complex ones are carried as two floats, or LLVM would not vectorise them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphc.ir import build
from graphc_dialects._mlir import ir

# (position, carried values) -> their new values
Body = Callable[[Any, list[Any]], list[Any]]


def carry(
    stop: ir.Value,
    values: Sequence[ir.Value],
    body: Body,
    *,
    start: ir.Value | None = None,
    step: ir.Value | None = None,
) -> list[Any]:
    """An `scf.for` around a body; returns the values after it."""
    kinds = [value.type for value in values]
    nest, block = loop(stop, _apart(values), start=start, step=step)
    with ir.InsertionPoint(block):
        position, *parts = block.arguments
        build.create("scf.yield", [], _apart(body(position, _together(parts, kinds))))
    return _together(list(nest.results), kinds)


def _apart(values: Sequence[ir.Value]) -> list[ir.Value]:
    parts: list[Any] = []
    for value in values:
        if isinstance(value.type, ir.ComplexType):
            element = value.type.element_type
            parts += [build.create(f"complex.{name}", [element], [value]).result for name in ("re", "im")]
        else:
            parts.append(value)
    return parts


def _together(parts: list[Any], kinds: Sequence[Any]) -> list[Any]:
    values, rest = [], iter(parts)
    for kind in kinds:
        if isinstance(kind, ir.ComplexType):
            values.append(build.create("complex.create", [kind], [next(rest), next(rest)]).result)
        else:
            values.append(next(rest))
    return values


def loop(
    stop: ir.Value, values: list[ir.Value], *, start: ir.Value | None = None, step: ir.Value | None = None
) -> tuple[Any, Any]:
    """An empty `scf.for` with iter_args; returns the operation and its block."""
    start = build.const_index(0) if start is None else start
    step = build.const_index(1) if step is None else step
    types = [value.type for value in values]
    loop = ir.Operation.create("scf.for", results=types, operands=[start, stop, step, *values], regions=1)
    return loop, ir.Block.create_at_start(loop.regions[0], [build.index_type(), *types])
