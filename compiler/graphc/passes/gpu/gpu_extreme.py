# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Positions of extremes of rows."""

from __future__ import annotations

from graphc.ir import build
from graphc.ir.value import converted, literal
from graphc.lowering.partial_reductions import Combiner, is_in_loop, position
from graphc.lowering.partial_reductions import nest as make_nest
from graphc.passes import Pass
from graphc.passes.gpu._host import LibraryCall, calls_of
from graphc.passes.gpu._kernel import Kernel, allocate
from graphc.passes.gpu._nest import Nest, exact
from graphc.passes.gpu._reduce import FIRST, first
from graphc.passes.gpu._rows import RowKernel, as_rows
from graphc_dialects._mlir import ir
from graphc_runtime.record import record


@record()
class GpuExtreme(Pass):
    """Makes nests of each call that finds the first largest, or smallest, element of rows.

    One reduces rows to the element and its position; NaN, which wins, comes last in order. It is marked with
    what decides between two elements, so that passes for reductions can have rows in parts, and fuse it with
    what is done to rows before and after. Another one writes the position. Complex numbers are left to
    others.
    """

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for call in calls_of(module, ("arg_extreme",)):
            kind = call.dtypes[0].kind
            if kind == "c":
                continue
            sign = "u" if kind in "ub" else ""
            name = f"{sign}{'lt' if call.attribute('smallest') else 'gt'}"
            with ir.InsertionPoint(call.op), call.op.location:
                _lower(call, name)
            call.erase()
            self.count("calls")


def _lower(call: LibraryCall, name: str) -> None:
    """The nests, and whether there is an element at all."""
    source, result = map(exact, call.buffers[:2])
    *sizes, n = build.dims(source)
    word, rows = ir.IntegerType.get_signless(64), len(sizes)
    how = first(name, source.type.element_type)
    found = [allocate(sizes, kind) for kind in (source.type.element_type, word)]
    targets = [(buffer, range(rows)) for buffer in found]
    mark = {FIRST: ir.StringAttr.get(name)}

    def take(given: list[ir.Value]) -> list[ir.Value]:
        value, *before = given
        place = converted(position(rows), word)
        wins = how[0].wins(value, before[0])
        return [build.select(wins, *pair) for pair in zip((value, place), before, strict=True)]

    def place(given: list[ir.Value]) -> list[ir.Value]:
        # Where nothing has won, all elements are equal.
        return [build.select(given[0].equals(-1), literal(0, word), given[0])]

    nests = [
        *(_fill(target, one) for target, one in zip(targets, how, strict=True)),
        make_nest([(source, range(rows + 1))], targets, [*[False] * rows, True], take, **mark),
        make_nest([targets[1]], [(result, range(rows))], [False] * rows, place),
    ]
    if is_in_loop(call.op):
        # Passes for rows are for what is in no loop, in whose steps nothing is allocated.
        known = [row for row in (as_rows(Nest(op), rows) for op in nests) if row is not None]
        RowKernel(Kernel(nests[-1], "rows"), rows, [result]).write(known)
        for op in nests:
            op.erase()
    status = converted(n.equals(0), word)
    call.op.results[0].replace_all_uses_with(status)


def _fill(target: tuple[ir.Value, range], how: Combiner) -> ir.Operation:
    """A nest that writes what changes nothing."""
    value = how.constant(target[0].type.element_type)
    return make_nest([], [target], [False] * len(target[1]), lambda _: [value])
