# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replaces accumulated products by one product after the loop."""

from __future__ import annotations

from typing import Any

from graphc.ir.kinds import PRODUCTS, flags_of, matrix_product, reduce
from graphc.ir.known_rows import is_splat
from graphc.ir.rewrite import erase_unused, tensor_type
from graphc.ir.scan_view import ScanView, is_read, name_of, scans
from graphc.ir.traits import Batch, CannotBatch
from graphc.ir.views import MOVES_AXES, axes_order, with_sizes
from graphc.passes import Pass
from graphc.passes.loops._after import After
from graphc.passes.loops._batch import Batcher
from graphc.passes.loops._consumers import LastRowUses
from graphc.passes.loops._cost import row_elements
from graphc.passes.loops.scan_to_map import state_dependences
from graphc.passes.loops.scan_to_reduce import Dependences, fold_of, is_simple_state, is_used_elsewhere
from graphc_dialects._base import const_index, dim_of
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

_VIEWS = frozenset({*MOVES_AXES, "graphc.neg", "tensor.cast"})


class Accumulator:
    """A state `s = s + term + ...` of which only the last row is used.

    Args:
        view: the scan. name, carry: the state. dependences: see `state_dependences`.

    Attributes:
        terms: what is added, None if the state is of another kind.
    """

    def __init__(self, view: ScanView, name: str, carry: ir.Operation, dependences: Dependences) -> None:
        self.view, self.name, self.carry = view, name, carry
        fold = fold_of(view, name, carry, dependences)
        self._path = set[ir.Operation]() if fold is None else fold.path
        is_sum = fold is not None and fold.kind == "add" and not self._widens()
        is_sum = is_sum and not is_used_elsewhere(view, name, carry, self._path)
        self.terms = fold.terms if fold is not None and is_sum else None

    def _widens(self) -> bool:
        """True if a term has sizes other than 1 where the row has not."""
        (read,) = (op for op in self._path if is_read(op))
        row = list(read.results[0].type.shape)
        shapes = [list(op.results[0].type.shape) for op in self._path]
        return any(a == 1 and b != 1 for shape in shapes for a, b in zip(row, shape, strict=True))

    def is_movable(self) -> bool:
        """True if nothing but its last row is used, and every iteration only adds to it."""
        return self.terms is not None and LastRowUses(self.view, self.name).only

    def move(self, after: After) -> bool:
        """Computes the last row after the loop; whether that was possible."""
        try:
            row = self._last_row(after)
        except CannotBatch:
            return False
        LastRowUses(self.view, self.name).replace(row)
        self.carry.erase()
        erase_unused([op for op in self.view.work() if op in self._path])
        return True

    def _last_row(self, after: After) -> ir.Value:
        b, initial = after.batcher, self.carry.operands[0]
        shape = list(initial.type.shape)[1:]
        sizes = [dim_of(initial, axis) for axis in range(1, len(shape) + 1)]
        stack = b.cast(initial, tensor_type([1, *shape], initial.type.element_type))
        row = b.dimshuffle(stack, range(1, len(shape) + 1))
        summation = Summation(after)
        is_zero = is_splat(initial, 0)
        for term in self.terms or ():
            total = summation.of(term.value, sizes)
            fits = all(a == 1 or c != 1 for a, c in zip(shape, total.type.shape, strict=True))
            if is_zero and fits:
                # Nothing is added, but that the sizes agree is still checked.
                row = with_sizes(total, sizes, row.type, b.create)
                row = b.create("graphc.neg", [row], row.type) if term.negative else row
            else:
                row = b.create("graphc.sub" if term.negative else "graphc.add", [row, total], row.type)
            is_zero = False
        return row


def accumulators(view: ScanView) -> list[Accumulator]:
    """The states of a scan that can be moved after it."""
    traced = {name_of(trace) for trace in view.traces()}
    found = [(name, op) for name, op in view.carries().items() if name in traced and is_simple_state(op)]
    dependences = state_dependences(view) if found else {}
    sums = [Accumulator(view, name, op, dependences) for name, op in found]
    return [each for each in sums if each.is_movable()]


@record(frozen=True)
class Product:
    """A summand that is a matrix product of rows, or an outer product, seen through views.

    Attributes:
        op: the `matmul` or `mul`.
        operands: left and right factor.
        work: multiplications and additions of an iteration.
    """

    op: Any
    operands: tuple[Any, Any]
    work: int


def products(after: After, value: ir.Value, depth: int = 16) -> list[Product]:
    """The products a summand is made of by sums and views."""
    op = value.owner
    if isinstance(op, ir.Block) or not depth or op.operation in after.needed or after.is_kept(value):
        return []
    if op.name in _VIEWS:
        return products(after, op.operands[0], depth - 1)
    if _is_sum(op):
        return [found for x in op.operands for found in products(after, x, depth - 1)]
    if _is_product(op) and not any(after.is_fixed(x) for x in op.operands if op.name == "graphc.mul"):
        a, b = op.operands
        inner = a.type.shape[-2 if flags_of(op)[0] else -1] if op.name in PRODUCTS else 1
        size = row_elements(op.results[0].type) * (inner if inner >= 0 else 64)
        return [Product(op.operation, (a, b), size)]
    return []


def _is_sum(op: ir.Operation) -> bool:
    """An addition or subtraction in which nothing is broadcast."""
    if op.name not in ("graphc.add", "graphc.sub"):
        return False
    ones = [[size == 1 for size in x.type.shape] for x in op.operands]
    return bool(ones[0] == ones[1])


def _is_product(op: ir.Operation) -> bool:
    if op.name in PRODUCTS:
        return str(op.results[0].type.element_type) != "i1"
    if op.name != "graphc.mul" or len(op.results[0].type.shape) != 2:
        return False
    left, right = (list(x.type.shape) for x in op.operands)
    return (left[1] == 1 and right[0] == 1) or (left[0] == 1 and right[1] == 1)


class Summation:
    """Sums of a body's values over all iterations.

    Args:
        after: where they are built.
    """

    def __init__(self, after: After) -> None:
        self._after = after
        self._b: Batcher = after.batcher

    def of(self, value: ir.Value, sizes: list[Any]) -> Any:
        """The sum.

        Args:
            value: a tensor of the body.
            sizes: index values: the sizes that the result has to have, at least if there are no rows.

        Raises:
            CannotBatch: there is no way to build it.
        """
        op = value.owner
        found = products(self._after, value)
        if not found:
            return self._plain(value, sizes)
        with op.location:
            if op.name in MOVES_AXES:
                return self._moved_axes(op, sizes)
            if op.name in _VIEWS:
                return self._b.create(op.name, [self.of(op.operands[0], sizes)], op.results[0].type)
            if op.name in PRODUCTS:
                return self._matmul(op, sizes)
            if _is_product(op):
                return self._outer(op, sizes)
            operands = [self.of(x, sizes) for x in op.operands]
            return self._b.create(op.name, operands, op.results[0].type)

    def _plain(self, value: ir.Value, sizes: list[Any]) -> ir.Value:
        stack = self._fit(self._after.stack(value), sizes, 1)
        return reduce("sum", stack, [0], create=self._b.create)

    def _fit(self, stack: ir.Value, sizes: list[ir.Value], first: int) -> ir.Value:
        for axis, size in enumerate(sizes, first):
            if stack.type.shape[axis] != 1:
                stack = self._b.fit(stack, axis, size)
        return stack

    def _moved_axes(self, op: ir.Operation, sizes: list[ir.Value]) -> Any:
        order = axes_order(op)
        source = op.operands[0]
        axes = range(len(source.type.shape))
        inner = [sizes[order.index(axis)] if axis in order else const_index(1) for axis in axes]
        return self._b.dimshuffle(self.of(source, inner), order)

    def _outer(self, op: ir.Operation, sizes: list[ir.Value]) -> ir.Value:
        """`column * row`: the sum of outer products is a product of matrices."""
        left, right = op.operands
        if left.type.shape[1] != 1 or right.type.shape[0] != 1:
            left, right = right, left
        x = self._b.dimshuffle(self._after.stack(left), [0, 1])
        y = self._b.dimshuffle(self._after.stack(right), [0, 2])
        x, y = self._fit(x, sizes[:1], 1), self._fit(y, sizes[1:], 1)
        return self._product(x, y, (True, False))

    def _matmul(self, op: ir.Operation, sizes: list[ir.Value]) -> Any:
        """Time and the summed axis become one axis: the sum of products is one product."""
        left, right = (self._b.get(x) for x in op.operands)
        flags = flags_of(op)
        rank = len(op.results[0].type.shape)
        if not (left.stacked and right.stacked):
            return self._with_fixed(op, (left, right), flags, sizes)
        x, y = left.value, right.value
        batch = list(range(1, rank - 1))
        k_of_x, m = (rank - 1, rank) if flags[0] else (rank, rank - 1)
        k_of_y, n = (rank, rank - 1) if flags[1] else (rank - 1, rank)
        x = self._b.dimshuffle(x, [*batch, 0, k_of_x, m])
        y = self._b.dimshuffle(y, [*batch, 0, k_of_y, n])
        return self._folded(x, y, sizes)

    def _folded(self, x: Any, y: Any, sizes: list[Any]) -> Any:
        """Factors with axes (batch..., time, k, m or n)."""
        b, rank = self._b, len(x.type.shape)
        for axis in range(rank - 3):
            x, y = b.fit(x, axis, sizes[axis]), b.fit(y, axis, sizes[axis])
        x = b.fit(x, rank - 1, sizes[-2]) if x.type.shape[-1] != 1 else x
        y = b.fit(y, rank - 1, sizes[-1]) if y.type.shape[-1] != 1 else y
        y = b.fit(y, rank - 2, dim_of(x, rank - 2)) if y.type.shape[-2] != 1 else y
        return self._product(self._merged(x), self._merged(y), (True, False))

    def _merged(self, x: ir.Value) -> Any:
        """Axes (..., time, k, m) as (..., time * k, m)."""
        shape, rank = list(x.type.shape), len(x.type.shape)
        if shape[-2] == 1:
            return self._b.dimshuffle(x, [*range(rank - 2), rank - 1])
        sizes = [dim_of(x, axis) for axis in range(rank)]
        sizes[rank - 3 : rank - 1] = [sizes[rank - 3] * sizes[rank - 2]]
        known = shape[-3] * shape[-2] if shape[-3] >= 0 and shape[-2] >= 0 else -1
        return self._b.reshape(x, sizes, [*shape[:-3], known, shape[-1]])

    def _with_fixed(
        self, op: ir.Operation, factors: tuple[Batch, Batch], flags: tuple[bool, bool], sizes: Any
    ) -> Any:
        """A factor that is the same in all iterations is multiplied once, with the sum of the other."""
        if not (factors[0].stacked or factors[1].stacked):
            raise CannotBatch("both factors are the same in all iterations")
        side = 0 if factors[0].stacked else 1  # of the factor that moves
        fixed, rank = factors[1 - side].value, len(sizes)
        # Axes of the left factor are (m, k), of the right one (k, n); a flag swaps them.
        summed_first = (1 - side == 1) != flags[1 - side]
        summed, own = (rank - 2, rank - 1) if summed_first else (rank - 1, rank - 2)
        expected = [*sizes[:-2], None, None]
        expected[own] = sizes[-1] if side == 0 else sizes[-2]
        self._require_sizes(fixed, expected)
        pair = [sizes[-2], dim_of(fixed, summed)] if side == 0 else [dim_of(fixed, summed), sizes[-1]]
        total = self._plain(op.operands[side], [*sizes[:-2], *(pair[::-1] if flags[side] else pair)])
        left, right = (total, fixed) if side == 0 else (fixed, total)
        return matrix_product(left, right, flags, op.results[0].type, self._b.create)

    def _require_sizes(self, fixed: Any, sizes: list[Any]) -> None:
        """Without rows, a factor that is the same in all iterations must fit as it is."""
        dims = self._b.dims
        if self._b.static_rows > 0:
            return
        for key, size in zip(dims.shape(fixed), sizes, strict=True):
            if size is not None and not dims.same(key, dims.size(size)):
                raise CannotBatch("a size that does not change may disagree")

    def _product(self, x: ir.Value, y: ir.Value, flags: tuple[bool, bool]) -> ir.Value:
        rank = len(x.type.shape)
        m = x.type.shape[rank - 1 if flags[0] else rank - 2]
        shape = [*list(x.type.shape)[:-2], m, y.type.shape[rank - 1]]
        return matrix_product(x, y, flags, tensor_type(shape, x.type.element_type), self._b.create)


@record()
class ScanPushOutDot1(Pass):
    """Turns the sums of products that gradients accumulate into one matrix product.

    A state `W = W + outer(h_t, d_t)` of which only the last row is used (the gradient of a recurrent network
    has one for each weight matrix) becomes `W_0 + H.T @ D` of stacks: one large product instead of a matrix
    that every iteration reads and writes. The same is done with matrix products (time and the summed
    dimension become one), also transposed and batched ones, outer products written as `mul` of a column and
    a row, and with sums, differences and views of them. Any slice that selects the last row counts as use of
    it; with `reverse` that row is stored first.

    Factors have to be in memory: rows of sequences, of states and outputs. A factor that is not is kept as an
    additional output, seen through views and through cheap arithmetic on what is there. This pays if an
    iteration's multiplications and additions in the products of a state are at least `collect-cost` times the
    elements of the rows that it then has to keep. Memory grows by these rows.

    Sums of other values (the gradient of a bias, the sum of `d_t`) move too where they need no additional
    rows, which is often so after a product has made them be kept.

    Options:
        collect-cost: how many multiplications and additions it must save to keep one element more.
        max-row-growth: rows of intermediate results have at most so many times the elements of all rows that
            an iteration reads from sequences and computes for states and outputs (unknown sizes count as 64).

    Source: PyTensor's `scan_push_out_dot1`.
    """

    stage = "graph"
    collect_cost: int = 4
    max_row_growth: int = 4

    def run(self, module: ir.Module) -> None:
        for scan in scans(module.operation):
            view = ScanView(scan)
            while view.traces() and self._move(view):
                pass

    def _move(self, view: ScanView) -> int:
        pending = accumulators(view)
        if not pending:
            return 0
        total = len(pending)
        with After(view, self.max_row_growth, [sum_.carry for sum_ in pending]) as after:
            # Rows that are kept for one state are there for the next.
            moved = True
            while moved:
                moved = False
                for sum_ in list(pending):
                    if self._try_move(after, sum_):
                        pending.remove(sum_)
                        after.replan()
                        moved = True
        return total - len(pending)

    def _try_move(self, after: After, sum_: Any) -> bool:
        new_rows: set[Any] = set()
        work = 0
        for term in sum_.terms:
            found = products(after, term.value)
            if not found and after.new_rows(term.value):
                return False
            for product in found:
                work += product.work
                for factor in product.operands:
                    new_rows |= after.new_rows(factor)
        too_many = new_rows and self.collect_cost * after.elements(new_rows) > work
        if too_many or not after.can_keep(new_rows):
            return False
        added = after.keep_rows(new_rows)
        if not sum_.move(after):
            after.drop_rows(added)
            return False
        self.count("rows kept in addition", len(added))
        self.count("sums of products moved" if work else "other sums moved")
        return True
