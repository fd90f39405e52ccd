# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Computes values of a scan's body for many iterations at once, outside of the loop.

A value of the body becomes a *stack*: a tensor with one row for each iteration, stored by `t`. Values that
are the same in all iterations stay as they are. `graphc.passes.loops.scan_to_map` says how each operation
is done on stacks.

Nothing that is built here can fail where the loop would not have run. With rows, an operation on stacks
fails where the operation on rows would have failed in some iteration; without rows, sizes that would not fit
are replaced by sizes that do (`Batcher.fit`), which costs nothing since there are no elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphc.ir.affine import key_of
from graphc.ir.build import compare_index, select
from graphc.ir.constants import CONSTANTS
from graphc.ir.dims import DimKeys, broadcasts
from graphc.ir.kinds import PRODUCTS
from graphc.ir.rewrite import tensor_type
from graphc.ir.scan_view import ScanView, is_trace
from graphc.ir.size import Size, combined
from graphc.ir.totality import is_always_total, reports_no_errors
from graphc.ir.traits import BATCH, Batch, CannotBatch
from graphc.ir.value import larger
from graphc.ir.views import TAKES_PART, Bound, bounds_of, dimshuffle, order_of, part_of, repeated, reshaped
from graphc.ir.walk import definition, named_attributes
from graphc_dialects._base import const_index, constant_value, dim_of
from graphc_dialects._mlir import ir
from graphc_dialects.check import raises
from graphc_dialects.elementwise import ELEMENTWISE
from graphc_dialects.scan_shapes import UnknownSize, outside_size
from graphc_dialects.signatures import SIGNATURES

_COPIED = ("arith.", "tensor.extract", "tensor.from_elements", *CONSTANTS)
_DEPTH = 64
_LEAVES = frozenset((*CONSTANTS, "tensor.dim"))
INDEX = "index"


def in_iteration(view: ScanView, value: ir.Value, depth: int = _DEPTH) -> Size | None:
    """An index value of the body as a sum of a multiple of the iteration's index, which is named `INDEX`, and
    of what does not depend on it; None if it is none.
    """
    if value == view.index:
        return Size.of(INDEX)
    known = key_of(value)
    if isinstance(known, int):
        return Size(known)
    op = value.owner
    if not view.is_inside(value) or (not isinstance(op, ir.Block) and op.name in _LEAVES):
        return Size.of(value)
    if isinstance(op, ir.Block) or not depth or not op.name.startswith("arith."):
        return None
    forms = [in_iteration(view, operand, depth - 1) for operand in op.operands]
    sums = [form for form in forms if form is not None]
    if len(sums) == len(forms) and not any(form.count(INDEX) for form in sums):
        return Size.of(value)
    if len(sums) < len(forms) or len(forms) != 2:
        return None
    return combined(op.name.removeprefix("arith."), sums[0], sums[1], lambda _: False)


def coefficient(view: ScanView, value: ir.Value) -> int | None:
    """The factor of the iteration's index in an index value of the body; None if it is not affine."""
    found = in_iteration(view, value)
    return None if found is None else found.count(INDEX)


def copy_index(view: ScanView, value: ir.Value, t: ir.Value | None = None) -> ir.Value:
    """An index value of the body, computed again at the current insertion point.

    Args:
        view: the scan.
        value: an index value (or an integer or literal that one is made of).
        t: what stands for the iteration's index; without it, the value must not depend on the iteration.

    Raises:
        CannotBatch: it depends on more than sizes, literals, what is outside and `t`.
    """
    if value == view.index:
        if t is None:
            raise CannotBatch("an index depends on the iteration")
        return t
    if not view.is_inside(value):
        return value
    op = value.owner
    if isinstance(op, ir.Block):
        raise CannotBatch("an index depends on an inner loop")
    if op.name == "tensor.dim":
        return copy_size(view, op.operands[0], constant_value(op.operands[1]))
    if not op.name.startswith(_COPIED) or len(op.results) != 1:
        raise CannotBatch(f"an index is computed by {op.name}")
    operands = [copy_index(view, operand, t) for operand in op.operands]
    attributes = named_attributes(op)
    return ir.Operation.create(op.name, [op.results[0].type], operands, attributes, loc=op.location).result


def copy_size(view: ScanView, tensor: ir.Value, axis: int | None) -> ir.Value:
    """The size of a tensor of the body along an axis, computed outside."""
    if axis is None:
        raise CannotBatch("the axis of a size is not known")
    if not view.is_inside(tensor):
        return dim_of(tensor, axis)
    try:
        return outside_size(view.op, tensor, axis)
    except UnknownSize as error:
        raise CannotBatch(str(error)) from None


def is_total(op: ir.Operation) -> bool:
    """True if an operation cannot fail, whatever its operands hold."""
    if op.name in CONSTANTS or op.name == "tensor.cast":
        return True
    if op.name in BATCH:
        return is_always_total(op.name)
    if op.name.startswith("graphc.") and op.name[7:] in SIGNATURES:
        return reports_no_errors(op) and _fits(op)
    if not op.name.startswith("graphc.") or op.name[7:] not in ELEMENTWISE:
        return False
    shapes = zip(*(operand.type.shape for operand in op.operands), strict=True)
    return all(_agree([size for size in sizes if size != 1]) for sizes in shapes)


def _agree(sizes: list[int]) -> bool:
    return len(sizes) < 2 or (sizes[0] >= 0 and len(set(sizes)) == 1)


def _fits(op: ir.Operation) -> bool:
    """True if the operands of a kernel operation have sizes that are known to be right."""
    signature = SIGNATURES[op.name[7:]]
    sizes: dict[ir.Value, list[int]] = {}
    for operand, core in zip(op.operands, signature.operands, strict=False):
        shape = operand.type.shape
        for axis, dim in enumerate([*range(len(shape) - len(core)), *core]):
            sizes.setdefault(dim, []).append(shape[axis])
    return not signature.given and all(_agree(found) for found in sizes.values())


Rule = Callable[["Batcher", Any, list[Batch]], Any]
Source = Callable[["Batcher", Any], Any]


class _Definitions:
    """The operation that defines a value, in the form `DimKeys` asks for it."""

    get = staticmethod(definition)


class Batcher:
    """Builds stacks at the current insertion point, which must stay the same while it is used.

    Args:
        view: the scan.
        rows: index value: how many rows the stacks have.
        source: gives the stack of a value that needs no computation (a row of a sequence, of a trace), or
            None.
        rule_of: the rule for an operation of a name, or None (`graphc.passes.loops.scan_to_map`).
    """

    def __init__(
        self, view: ScanView, rows: ir.Value, source: Source, rule_of: Callable[[str], Rule | None]
    ) -> None:
        self.view = view
        self.rows = rows
        self.dims = DimKeys(_Definitions())  # type: ignore[arg-type]
        key = self.dims.size(rows)
        self.static_rows = key if isinstance(key, int) and key >= 0 else -1
        self._source, self._rule_of = source, rule_of
        self._known: dict[ir.Value, Batch | None] = {}
        self._fitted: dict[tuple[ir.Value, int, object], ir.Value] = {}
        self._no_rows: ir.Value | None = None
        self._has_checks = any(map(raises, view.operations()))

    # -- values ----------------------------------------------------------------------------------------------

    def get(self, value: ir.Value) -> Batch:
        """Substitute for a value of the body whose operands (if there is no stack of it yet) are built.

        Raises:
            CannotBatch: there is none.
        """
        if value not in self._known:
            self._known[value] = self._get(value)
        batch = self._known[value]
        if batch is None:
            raise CannotBatch("no rule")
        return batch

    def _get(self, value: ir.Value) -> Batch | None:
        if not self.view.is_inside(value):
            return Batch(value, False)
        stack = self._source(self, value)
        if stack is not None:
            return Batch(self.cast(stack, self.stack_type(value.type)), True)
        op = definition(value)
        if op is None:
            return None
        try:
            with op.location:
                return self._build(op)
        except CannotBatch:
            return None

    def _build(self, op: ir.Operation) -> Batch | None:
        rule = self._rule_of(op.name)
        if op.name in CONSTANTS:
            return Batch(self._clone(op, []), False)
        if rule is None:
            return None
        tensors = [self.get(x) for x in op.operands if isinstance(x.type, ir.RankedTensorType)]
        if any(batch.stacked for batch in tensors):
            return Batch(rule(self, op, tensors), True)
        return Batch(self._invariant(op, tensors), False)

    def _invariant(self, op: ir.Operation, tensors: list[Batch]) -> ir.Value:
        """An operation that is the same in all iterations, provided it cannot fail without any."""
        if not is_total(op):
            raise CannotBatch(f"{op.name} of values that do not change might fail")
        values = iter(tensors)
        operands = [
            next(values).value if isinstance(x.type, ir.RankedTensorType) else self.index(x)
            for x in op.operands
        ]
        return self._clone(op, operands)

    def _clone(self, op: ir.Operation, operands: list[ir.Value]) -> ir.Value:
        return self.create(op.name, operands, op.results[0].type, **named_attributes(op))

    # -- building blocks of rules ----------------------------------------------------------------------------

    def create(self, name: str, operands: Sequence[ir.Value], type_: ir.Type, **attributes: Any) -> ir.Value:
        """The result of a new operation."""
        return ir.Operation.create(name, [type_], list(operands), attributes).result

    def stack_type(self, row: ir.Type) -> ir.RankedTensorType:
        """The type of a stack of rows of a type."""
        return tensor_type([self.static_rows, *row.shape], row.element_type)

    def cast(self, value: ir.Value, type_: ir.Type) -> ir.Value:
        """`tensor.cast` where types differ in what is static."""
        return value if value.type == type_ else self.create("tensor.cast", [value], type_)

    def index(self, value: ir.Value) -> ir.Value:
        """An index value of the body that does not depend on the iteration."""
        return copy_index(self.view, value)

    def size(self, value: ir.Value) -> ir.Value:
        """Such an index value that is asked for as a size: 0 instead of a negative one without rows."""
        size = self.index(value)
        if self.static_rows > 0 or self.dims.is_size(size):
            return size
        return select(self.no_rows, larger(size, 0), size)

    @property
    def no_rows(self) -> ir.Value:
        """An i1: there are no rows."""
        if self._no_rows is None:
            self._no_rows = compare_index(0, self.rows, const_index(0))
        return self._no_rows

    @property
    def checked_in_body(self) -> bool:
        """True if bounds may rely on a check that is made in the body."""
        return self._has_checks

    def dimshuffle(self, value: ir.Value, order: Sequence[int]) -> ir.Value:
        """`graphc.dimshuffle`, composed with one before it; nothing if nothing changes."""
        op = definition(value)
        inner = None if op is None else order_of(op)
        if op is not None and inner is not None:
            order = [inner[axis] if axis >= 0 else -1 for axis in order]
            value = op.operands[0]
        shape = value.type.shape
        if list(order) == list(range(len(shape))):
            return value
        return dimshuffle(value, order, create=self.create)

    def reshape(self, value: ir.Value, sizes: Sequence[ir.Value], shape: Sequence[int]) -> ir.Value:
        """`graphc.reshape` to index values whose static values, where known, are `shape`."""
        result = tensor_type(shape, value.type.element_type)
        return reshaped(value, sizes, result, self.create)

    def aligned(self, batch: Batch) -> ir.Value:
        """A stack, or an invariant with a first axis of 1."""
        if batch.stacked:
            return batch.value
        return self.dimshuffle(batch.value, [-1, *range(len(batch.value.type.shape))])

    def repeated(self, batch: Batch) -> ir.Value:
        """A stack; that of an invariant has equal rows."""
        if batch.stacked:
            return batch.value
        shape = batch.value.type.shape
        sizes = [dim_of(batch.value, axis) for axis in range(len(shape))]
        return repeated(batch.value, [self.rows, *sizes], self.stack_type(batch.value.type), self.create)

    # -- sizes that have to agree ----------------------------------------------------------------------------

    def fit(self, stack: ir.Value, axis: int, size: ir.Value) -> ir.Value:
        """The stack, with `size` along an axis if there are no rows, and as it is if there are."""
        key = self.dims.size(size)
        if self.static_rows > 0 or self.dims.same(self.dims.shape(stack)[axis], key):
            return stack
        memo = (stack, axis, key)
        if memo not in self._fitted:
            self._fitted[memo] = self._resized(stack, axis, size)
        return self._fitted[memo]

    def _resized(self, stack: ir.Value, axis: int, size: ir.Value) -> ir.Value:
        owner = stack.owner
        name = "" if isinstance(owner, ir.Block) else owner.name
        rank = len(stack.type.shape)
        order = None if isinstance(owner, ir.Block) else order_of(owner)
        if order is not None:
            return self.dimshuffle(self.fit(owner.operands[0], order[axis], size), order)
        shape = list(stack.type.shape)
        shape[axis] = -1
        type_ = tensor_type(shape, stack.type.element_type)
        if name in TAKES_PART:
            bounds = bounds_of(owner)
            taken = select(self.no_rows, size, bounds[axis].size)
            bounds[axis] = bounds[axis]._replace(size=taken)
            return part_of(owner.operands[0], bounds, type_, self.create)
        sizes = [dim_of(stack, i) for i in range(rank)]
        sizes[axis] = select(self.no_rows, size, sizes[axis])
        # A view keeps fusion going; anything else is in memory already, where a reshape is free.
        if not name or name in PRODUCTS or is_trace(owner):
            return self.reshape(stack, sizes, shape)
        bounds = [Bound(const_index(0), n, const_index(1)) for n in sizes]
        return part_of(stack, bounds, type_, self.create)

    def agreeing(self, batches: Sequence[Batch], axes: Sequence[int] | None = None) -> list[ir.Value]:
        """Operands of an elementwise operation on stacks (or of one that needs equal sizes along `axes`).

        Raises:
            CannotBatch: invariants might disagree, which the loop finds out in its first iteration only.
        """
        values = [self.aligned(batch) for batch in batches]
        rank = len(values[0].type.shape)
        for axis in range(1, rank) if axes is None else axes:
            wide = [i for i, x in enumerate(values) if not broadcasts(x, axis)]
            if len(wide) < 2:
                continue
            fixed = [i for i in wide if not batches[i].stacked]
            leader = (fixed or wide)[0]
            if len({self.dims.shape(values[i])[axis] for i in fixed}) > 1:
                raise CannotBatch("two sizes that do not change may disagree")
            for i in wide:
                if not self.dims.same(
                    self.dims.shape(values[i])[axis], self.dims.shape(values[leader])[axis]
                ):
                    values[i] = self.fit(values[i], axis, dim_of(values[leader], axis))
        return values
