# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of `graphc.cumulative` and `graphc.linear_recurrence`: loops over steps that carry the result.

Which loop depends on the rows; in cycles of a current x86-64 core (4 cycles latency of a float addition or
fused multiply-add, two of them and one store a cycle):

* Rows of one element are carried in a register. A running float sum is a chain of additions, 4 cycles a
  step. In blocks of 8 steps the running sums of the block alone are made first, in a tree of 12 additions;
  adding the carried value to each takes 8 more, of which one is in the chain. That is 20 additions for 8
  steps, 1.25 cycles a step, without a single shuffle. Float maxima and minima (NaN wins: 3 or more
  instructions, about 8 cycles latency) go in blocks of 4 the same way. Integers need no blocks: their chain
  has a latency of 1, what a store takes.
* Rows of up to 8 elements, of static size, are carried in registers too: a chain of arithmetic only, where
  rows in memory would add a store and a load (5 cycles) to each link. The elements are independent chains
  side by side.
* Other rows are made from the row before in the result itself: steps outside, elements inside, vectorised.

Accuracy of blocked sums: a partial sum is the result of at most n/8 + 4 additions instead of n, so the
error bound is an eighth of that of the sequential sum. Only overflow can differ: 8 neighbours may overflow
whose sum with the carried value does not. Blocks of products and of linear recurrences are made only with
`reassociate`. Maxima and minima are the same in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any

import numpy as np

from graphc.ir import build
from graphc.ir.build import dtype_of
from graphc.ir.kinds import CHEAP, PER_ELEMENT, static_shape
from graphc.ir.value import smaller
from graphc.ir.views import INLINED
from graphc.library.helpers import KernelCall
from graphc.lowering import calls, partial_reductions
from graphc.lowering.carried import carry, loop
from graphc.lowering.generic import ZERO, GenericBuilder, ScalarWork
from graphc.lowering.rules import ON_DEVICES, Conversion, lowers
from graphc.lowering.scalar_builder import Scalar, ScalarBuilder
from graphc.lowering.scans.buffers import read
from graphc.native import type_of_dtype
from graphc_dialects._mlir import ir
from graphc_dialects.recurrence import KINDS

Step = Callable[[Any, list[Scalar]], Scalar]
RECURRENCES = ("graphc.cumulative", "graphc.linear_recurrence")
# Elements of a row that live in registers.
REGISTERS = 8
# Operations that are computed again where their result is read.
_MAX_INLINE = 6
_METHODS = {"add": "add", "mul": "mul", "max": "maximum", "min": "minimum", "and": "and_", "or": "or_"}
_SUM_BLOCK, _EXTREMUM_BLOCK, _LINEAR_BLOCK = 8, 4, 8


class _Stack:
    """An operand whose rows are read element by element.

    What a few cheap operations make of arrays in memory is computed where it is read instead of being stored
    and loaded again; the loop that would have stored it is dead then.
    """

    def __init__(self, context: Conversion, value: ir.Value) -> None:
        self._context = context
        self._value = value
        self._shape = static_shape(value)
        self._chain = cheap_chain(value)
        self.invariant = self._shape[0] == 1

    def read(self, row: ir.Value, where: list[ir.Value]) -> Scalar:
        """One element; dimensions of static size 1 are read at 0."""
        coordinates = (
            ZERO if size == 1 else index for size, index in zip(self._shape, [row, *where], strict=True)
        )
        return ScalarWork(self._context, self._chain).read(self._value, tuple(coordinates))


def cheap_chain(value: ir.Value) -> list[ir.Operation]:
    """The operations that compute a value from arrays in memory if they are few and cheap, else none."""
    chain: list[ir.Operation] = []
    pending = [value]
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, ir.Block) or owner.operation in chain:
            continue
        if owner.name in INLINED:
            pending.append(owner.operands[0])
        elif owner.name in CHEAP:
            chain.append(owner.operation)
            pending.extend(owner.operands)
        elif owner.name in PER_ELEMENT:
            return []
    return chain if len(chain) <= _MAX_INLINE else []


def insert(b: ScalarBuilder, x: Scalar, tensor: ir.Value, indices: list[ir.Value]) -> ir.Value:
    """The tensor with an element replaced."""
    return build.create("tensor.insert", [tensor.type], [b.stored(x), tensor, *indices]).result


class _Recurrence:
    """One operation being lowered.

    Args:
        context: the function conversion.
        op: the graph-stage operation.
        step: (row before, rows of the operands) -> row, for one element.
    """

    def __init__(self, context: Conversion, op: ir.Operation, step: Step) -> None:
        *stacks, initial, steps = op.operands
        self._step = step
        self.b = ScalarBuilder(ir)
        self.dtype = dtype_of(initial.type.element_type)
        self.stacks = [_Stack(context, x) for x in stacks]
        self._initial = _Stack(context, initial)
        self.steps = context.index_of(steps)
        self._reverse = ir.BoolAttr(op.attributes["reverse"]).value
        self._kept = int(ir.BoolAttr(op.attributes["keep_initial"]).value)
        self._row = list(static_shape(initial))[1:]
        self._sizes = context.sizes_of(initial)[1:]
        self._columns: tuple[ir.Value, ir.Value] | None = None
        self._zero, self._one = build.const_index(0), build.const_index(1)
        rows = self.steps + self._one if self._kept else self.steps
        self.type = build.storage_type(op.results[0].type)
        self.result = context.destinations.start(op.results[0], self.type, [rows, *self._sizes])

    @property
    def elements(self) -> int | None:
        """Number of elements of a row, None if it is not static."""
        return None if None in self._row else prod(size or 0 for size in self._row)

    # -- positions -------------------------------------------------------------------------------------------

    def source(self, s: ir.Value) -> Any:
        """The row of the operands that step `s` uses."""
        if not self._reverse:
            return s
        return self.steps - self._one - s

    def target(self, s: ir.Value) -> ir.Value:
        """The row of the result that step `s` makes."""
        row = self.source(s)
        return row + self._one if self._kept and not self._reverse else row

    def before(self, s: ir.Value) -> ir.Value:
        """The row of the result that the step before `s` made; with a kept initial row also for step 0."""
        row = self.target(s)
        return row + self._one if self._reverse else row - self._one

    # -- rows in registers -----------------------------------------------------------------------------------

    def in_registers(self, block: int, blocked: object) -> ir.Value:
        """Carries the row before as scalars.

        Args:
            block: how many steps `blocked` makes at once; 1 if it is not used.
            blocked: see `_block`.

        Returns:
            The result tensor.
        """
        cells = [[build.const_index(i) for i in cell] for cell in product(*map(range, self._row))]  # type: ignore[arg-type]
        rows = [self._initial.read(self._zero, cell) for cell in cells]
        tensor = self.result
        if self._kept:
            place = self.steps if self._reverse else self._zero
            for x, cell in zip(rows, cells, strict=True):
                tensor = insert(self.b, x, tensor, [place, *cell])
        start = self._zero
        if block > 1:
            width = build.const_index(block)
            start = self.steps // width * width
            tensor, rows = self._loop(tensor, rows, (self._zero, start, width), blocked)
        tensor, _ = self._loop(tensor, rows, (start, self.steps, self._one), self._one_step(cells))
        return tensor

    def _one_step(self, cells: list[list[ir.Value]]) -> Any:
        def body(tensor: ir.Value, rows: list[Scalar], s: ir.Value) -> tuple[Any, list[Scalar]]:
            source, target = self.source(s), self.target(s)
            inputs = [[stack.read(source, cell) for stack in self.stacks] for cell in cells]
            new = [self._step(self.b, [h, *xs]) for h, xs in zip(rows, inputs, strict=True)]
            for x, cell in zip(new, cells, strict=True):
                tensor = insert(self.b, x, tensor, [target, *cell])
            return tensor, new

        return body

    def _loop(
        self, tensor: ir.Value, rows: list[Scalar], bounds: tuple[ir.Value, ir.Value, ir.Value], body: Any
    ) -> tuple[ir.Value, list[Scalar]]:
        """`body(tensor, rows, s) -> (tensor, rows)` for every s."""
        start, stop, step = bounds
        nest, block = loop(stop, [tensor, *(x.value for x in rows)], start=start, step=step)
        with ir.InsertionPoint(block):
            s, carried, *values = block.arguments
            carried, new = body(carried, [Scalar(value, self.dtype) for value in values], s)
            build.create("scf.yield", [], [carried, *(x.value for x in new)])
        return nest.results[0], [Scalar(value, self.dtype) for value in list(nest.results)[1:]]

    def block(self, width: int, combined: Callable[[Any, list[list[Scalar]], Scalar], list[Scalar]]) -> Any:
        """A body for `_loop` that makes `width` steps on rows of one element.

        Args:
            width: number of steps.
            combined: (s, the inputs of each step, value before) -> the value of each step.
        """
        cell = [self._zero] * len(self._row)

        def body(tensor: ir.Value, rows: list[Scalar], s: ir.Value) -> tuple[Any, list[Scalar]]:
            numbers = [s + j if j else s for j in range(width)]
            inputs = [[stack.read(self.source(n), cell) for stack in self.stacks] for n in numbers]
            values = combined(self.b, inputs, rows[0])
            for x, number in zip(values, numbers, strict=True):
                tensor = insert(self.b, x, tensor, [self.target(number), *cell])
            return tensor, [values[-1]]

        return body

    # -- rows in memory --------------------------------------------------------------------------------------

    def in_memory(self) -> ir.Value:
        """Reads the row before from the result; long rows in blocks of columns, which cores can share."""
        if not self._has_long_rows():
            return self._all_steps(self.result)
        stop, width = self._sizes[-1], build.const_index(partial_reductions.COLUMNS)

        def block(start: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            self._columns = start, smaller(start + width, stop)
            return [self._all_steps(carried[0])]

        return carry(stop, [self.result], block, step=width)[0]

    def _has_long_rows(self) -> bool:
        in_function = ir.InsertionPoint.current.block.owner.operation.name == "func.func"
        columns = self._row[-1] if self._row else 1
        return in_function and (columns is None or columns > partial_reductions.COLUMNS)

    def _all_steps(self, tensor: ir.Value) -> ir.Value:
        if self._kept:
            place = self.steps if self._reverse else self._zero
            tensor = self._rows(tensor, place, lambda _, cell: self._initial.read(self._zero, cell))
            return self._steps(tensor, self._zero, self.steps, self._from_result)
        first = build.index_op("minui", self.steps, self._one)
        tensor = self._steps(tensor, self._zero, first, self._from_initial)
        return self._steps(tensor, self._one, self.steps, self._from_result)

    def _from_initial(self, tensor: ir.Value, s: ir.Value, cell: list[ir.Value]) -> Scalar:
        return self._initial.read(self._zero, cell)

    def _from_result(self, tensor: ir.Value, s: ir.Value, cell: list[ir.Value]) -> Scalar:
        return self.b.loaded(tensor[[self.before(s), *cell]], self.dtype)

    def _steps(self, tensor: ir.Value, start: ir.Value, stop: ir.Value, previous: Any) -> ir.Value:
        def one(s: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            source = self.source(s)

            def element(inner: ir.Value, cell: list[ir.Value]) -> Scalar:
                inputs = [stack.read(source, cell) for stack in self.stacks]
                return self._step(self.b, [previous(inner, s, cell), *inputs])

            return [self._rows(carried[0], self.target(s), element)]

        return carry(stop, [tensor], one, start=start)[0]

    def _rows(
        self, tensor: ir.Value, row: ir.Value, element: Any, cell: tuple[ir.Value, ...] = ()
    ) -> ir.Value:
        """Sets each element of a row to `element(tensor, position)`."""
        if len(cell) == len(self._row):
            where = list(cell)
            return insert(self.b, element(tensor, where), tensor, [row, *where])
        start, stop = None, self._sizes[len(cell)]
        if self._columns is not None and len(cell) + 1 == len(self._row):
            start, stop = self._columns
        return carry(
            stop, [tensor], lambda i, carried: [self._rows(carried[0], row, element, (*cell, i))], start=start
        )[0]


@lowers("graphc.cumulative", starts_anywhere=True)
def cumulative(context: Conversion, op: ir.Operation) -> None:
    """Running sums, products, extrema and so on."""
    method = _METHODS[ir.StringAttr(op.attributes["kind"]).value]

    def step(b: ScalarBuilder, operands: list[Scalar]) -> Scalar:
        result: Scalar = getattr(b, method)(*operands)
        return result

    def prefixes(b: ScalarBuilder, inputs: list[list[Scalar]], before: Scalar) -> list[Scalar]:
        local = _prefix_tree([x for (x,) in inputs], lambda x, y: step(b, [x, y]))
        return [step(b, [before, x]) for x in local]

    recurrence = _Recurrence(context, op, step)
    width = 1
    if recurrence.elements == 1:
        width = _block_width(method, recurrence.dtype, ir.BoolAttr(op.attributes["reassociate"]).value)
    _finish(context, op, recurrence, width, prefixes)


def _block_width(method: str, dtype: np.dtype, reassociate: bool) -> int:
    """Number of steps of a block; 1: no blocks."""
    if dtype.kind not in "fc":
        return 1
    if method in ("maximum", "minimum"):
        return _EXTREMUM_BLOCK
    return _SUM_BLOCK if method == "add" or reassociate else 1


def _prefix_tree(values: list[Scalar], combine: Callable[[Scalar, Scalar], Scalar]) -> list[Scalar]:
    """Prefixes of a power of two of values in log2 rounds (J. Sklansky, 1960)."""
    if len(values) == 1:
        return values
    half = len(values) // 2
    left, right = _prefix_tree(values[:half], combine), _prefix_tree(values[half:], combine)
    return [*left, *(combine(left[-1], x) for x in right)]


@lowers("graphc.linear_recurrence", starts_anywhere=True)
def linear_recurrence(context: Conversion, op: ir.Operation) -> None:
    """`h = a * h + b`.

    Rows of one element are a chain of dependent multiply-adds. With `reassociate`, 8 steps start from 0 on
    their own (`q_j = a_j q_{j-1} + b_j`, off the chain), and `h_j = (a_0...a_j) h + q_j` puts one
    multiply-add in 8 into the chain: 1 cycle a step (1.5 where `a` varies) instead of 4. Products of `a`
    that overflow, and infinities times a product that underflows, then differ from the sequential result.
    """

    def step(b: ScalarBuilder, operands: list[Scalar]) -> Scalar:
        h, a, x = operands
        result: Scalar = b.add(b.mul(a, h), x)
        return result

    recurrence = _Recurrence(context, op, step)
    invariant = recurrence.stacks[0].invariant
    powers: list[Scalar] = []

    def steps(b: Any, inputs: list[list[Scalar]], before: Scalar) -> list[Scalar]:
        local = [inputs[0][1]]
        for a, x in inputs[1:]:
            local.append(step(b, [local[-1], a, x]))
        factors = powers or _products(b, [a for a, _ in inputs])
        return [step(b, [before, factor, x]) for factor, x in zip(factors, local, strict=True)]

    width = 1
    if recurrence.elements == 1 and ir.BoolAttr(op.attributes["reassociate"]).value:
        width = _LINEAR_BLOCK if recurrence.dtype.kind in "fc" else 1
        if invariant and width > 1:
            zero = build.const_index(0)
            a = recurrence.stacks[0].read(zero, [zero] * (len(static_shape(op.operands[0])) - 1))
            powers += _products(recurrence.b, [a] * width)
    _finish(context, op, recurrence, width, steps)


def _products(b: Any, factors: list[Scalar]) -> list[Scalar]:
    products = factors[:1]
    for factor in factors[1:]:
        products.append(b.mul(products[-1], factor))
    return products


def _finish(
    context: Conversion, op: ir.Operation, recurrence: _Recurrence, width: int, combined: Any
) -> None:
    if recurrence.elements is not None and 1 <= recurrence.elements <= REGISTERS:
        blocked = recurrence.block(width, combined) if width > 1 else None
        tensor = recurrence.in_registers(width, blocked)
    else:
        tensor = recurrence.in_memory()
    context.define(op.results[0], build.cast(tensor, build.storage_type(op.results[0].type)))


# -- on devices: one call each, which `graphc-gpu-running` writes --------------------------------------------

# The name of the calls, and the kind of a linear recurrence among those of running operations.
RECURRENCE, LINEAR = "recurrence", len(KINDS)


@ON_DEVICES(*RECURRENCES)
def recurrence(context: Conversion, op: ir.Operation) -> None:
    """A call with the operands, the initial row, the result and the number of steps."""
    *stacks, initial, steps = op.operands
    reverse, keep = (ir.BoolAttr(op.attributes[name]).value for name in ("reverse", "keep_initial"))
    kind = KINDS.index(ir.StringAttr(op.attributes["kind"]).value) if "kind" in op.attributes else LINEAR
    count = context.index_of(steps)
    rows = count + 1 if keep else count
    sizes = [rows, *context.sizes_of(initial)[1:]]
    context.define_sizes(op.results[0], sizes)
    operands = [context.tensor_of(x) for x in stacks]
    if isinstance(initial.type.element_type, ir.ComplexType):
        # Computed, as a complex constant would lie in memory of the host.
        operands.append(
            GenericBuilder(context, static_shape(initial), context.sizes_of(initial), []).copy(initial)
        )
    else:
        operands.append(context.tensor_of(initial))
    result = calls.place(context, op.results[0], sizes)
    types = tuple(
        type_of_dtype(dtype_of(x.type.element_type)).name for x in (*stacks, initial, op.results[0])
    )
    names = ("keep_initial", "kind", "reverse")
    callee = KernelCall(RECURRENCE, types, names, (int(keep), kind, int(reverse)))
    pointers = [*map(calls.read_from, operands), calls.write_to(result)]
    calls.call(op, callee, [*pointers, calls.number(count)])
    context.define(op.results[0], read(result, build.storage_type(op.results[0].type)))
