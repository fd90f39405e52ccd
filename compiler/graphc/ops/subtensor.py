# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Basic indexing: ``Subtensor`` reads a slice, ``IncSubtensor`` sets or increases one. Both keep all
dimensions.

Basic indexing bounds: how one dimension is indexed, its static result size, and the code that normalises
it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from graphc.errors import ValueRankError
from graphc.graph.basic import Apply, Maybe, Variable, Variables, describe, only
from graphc.graph.op import Op, multilinear
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.tensor.type import TensorType
from graphc.ops.create import zeros_like
from graphc.ops.dimshuffle import element_of
from graphc.ops.elementwise import cast_to, expand_left, unbroadcast
from graphc.ops.shape import as_size, checked_size

if TYPE_CHECKING:
    from graphc.emit.emitter import Emitter
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc_runtime.thunk import Register


# Stands for a bound that is a symbolic operand.
SYMBOLIC = "i"
Bound = int | str | None

# No dimension is longer: a longer step selects the same one element, and sums of a size and a step do not
# overflow.
_LONGEST = 1 << 62


class Entry(NamedTuple):
    """The index of one dimension.

    Attributes:
        start: first bound of a slice, or the index itself; a number, None, or `SYMBOLIC`.
        stop: second bound.
        step: step of a slice.
        single: whether it is an integer index; the dimension stays, with size 1.
    """

    start: Bound = None
    stop: Bound = None
    step: Bound = None
    single: bool = False

    @property
    def full(self) -> bool:
        """True if the whole dimension is taken as it is."""
        return self == FULL

    def operands(self) -> int:
        """Number of symbolic bounds."""
        return sum(bound == SYMBOLIC for bound in (self.start, self.stop, self.step))

    def __str__(self) -> str:
        start, stop, step = (
            "" if bound is None else str(bound) for bound in (self.start, self.stop, self.step)
        )
        return start if self.single else f"{start}:{stop}{':' + step if step else ''}"

    def fill(self, values: Iterator[np.ndarray | int]) -> slice | int:
        """The index with the symbolic bounds replaced by values."""
        start, stop, step = (
            int(next(values)) if bound == SYMBOLIC else bound for bound in (self.start, self.stop, self.step)
        )
        return start if self.single else slice(start, stop, step)  # type: ignore[return-value]


FULL = Entry()


def static_size(entry: Entry, size: int | None) -> int | None:
    """Static size of an indexed dimension, where it follows from known bounds."""
    if entry.single:
        return 1
    if entry.full:
        return size
    bounds = (entry.start, entry.stop, entry.step)
    if SYMBOLIC in bounds:
        return None
    if size is not None:
        return len(range(*slice(*bounds).indices(size)))
    if entry.start is None and entry.stop is None and entry.step == -1:
        return None
    return 0 if _always_empty(entry) else None


def _always_empty(entry: Entry) -> bool:
    """True if a slice with a positive step and bounds of one sign ends before it starts."""
    start, stop, step = entry.start or 0, entry.stop, entry.step or 1
    if not (isinstance(start, int) and isinstance(stop, int) and isinstance(step, int)) or step < 0:
        return False
    return stop == 0 or (stop <= start and (start < 0) == (stop < 0))


class Normalized(NamedTuple):
    """Offset, size and stride of one dimension, as index operands."""

    offset: str
    size: str
    stride: str


def emit_entry(entry: Entry, size: str, operands: Iterator[str], e: Emitter, what: str) -> Normalized:
    """Code that normalises one entry by the rules of Python's slices.

    Args:
        entry: the entry.
        size: size of the dimension, an index.
        operands: the symbolic bounds, as indices.
        e: the emitter.
        what: text for the message about an index out of bounds.
    """
    zero, one = e.const_index(0), e.const_index(1)
    if entry.full:
        return Normalized(zero, size, one)
    start, stop, step = (
        None if b is None else e.const_index(b) if isinstance(b, int) else next(operands)
        for b in (entry.start, entry.stop, entry.step)
    )
    if entry.single:
        assert start is not None
        offset = _wrap(start, size, e)
        inside = e.both(e.compare("sge", offset, zero), e.compare("slt", offset, size))
        message = f"index {{given}} is out of bounds for {what} of size {{expected}}"
        e.check(inside, start, size, message, "IndexError")
        return Normalized(offset, one, one)
    stride = one if step is None else _limited(step, entry.step, e)
    known = e.known(stride)
    if known is not None:
        return _bounded(start, stop, stride, size, known > 0, e)
    e.check(e.compare("ne", stride, zero), stride, zero, "the step of a slice must not be {given}")
    up, down = (_bounded(start, stop, stride, size, forward, e) for forward in (True, False))
    forward = e.compare("sgt", stride, zero)
    return Normalized(
        e.select(forward, up.offset, down.offset), e.select(forward, up.size, down.size), stride
    )


def _limited(step: str, number: Bound, e: Emitter) -> str:
    """The step within the longest dimension."""
    if isinstance(number, int):
        return e.const_index(max(-_LONGEST, min(number, _LONGEST)))
    return e.arith("minsi", e.arith("maxsi", step, e.const_index(-_LONGEST)), e.const_index(_LONGEST))


def _wrap(bound: str, size: str, e: Emitter) -> str:
    """A negative bound counts from the end."""
    known = e.known(bound)
    if known is not None:
        return bound if known >= 0 else e.add(size, bound)
    return e.select(e.compare("slt", bound, e.const_index(0)), e.add(bound, size), bound)


def _clamp(bound: str, size: str, low: str, high: str, e: Emitter) -> str:
    wrapped = _wrap(bound, size, e)
    known = e.known(bound)
    if known is None or known < 0:
        wrapped = e.arith("maxsi", wrapped, low)
    return e.arith("minsi", wrapped, high)


def _bounded(
    start: str | None, stop: str | None, stride: str, size: str, forward: bool, e: Emitter
) -> Normalized:
    zero, one = e.const_index(0), e.const_index(1)
    if forward:
        first = zero if start is None else _clamp(start, size, zero, size, e)
        last = size if stop is None else _clamp(stop, size, zero, size, e)
        span, width = e.subtract(last, first), stride
    else:
        end, before = e.subtract(size, one), e.const_index(-1)
        first = end if start is None else _clamp(start, size, before, end, e)
        last = before if stop is None else _clamp(stop, size, before, end, e)
        span, width = e.subtract(first, last), e.subtract(zero, stride)
    length = span if e.known(width) == 1 else e.arith("divsi", e.add(span, e.subtract(width, one)), width)
    if forward and start is None:
        return Normalized(first, length, stride)
    # An empty slice must not start outside of the operand.
    count = e.arith("maxsi", length, zero)
    return Normalized(e.select(e.compare("eq", count, zero), zero, first), count, stride)


def describe_entries(entries: Sequence[Entry]) -> str:
    """The entries as they are written between brackets."""
    return ", ".join(map(str, entries))


class _Basic(Op):
    """Base: entries for all dimensions, and the symbolic bounds among the operands."""

    idx_list: tuple[Entry, ...]
    _tensors = 1

    def _check_entries(self, x: TensorVariable, bounds: Sequence[TensorVariable]) -> list[TensorVariable]:
        if len(self.idx_list) != x.type.ndim:
            raise IndexError(f"{len(self.idx_list)} indices for {x} of {x.type.ndim} dimensions")
        expected = sum(entry.operands() for entry in self.idx_list)
        if len(bounds) != expected:
            raise ValueError(f"{self} takes {expected} symbolic bounds, got {len(bounds)}")
        bounds = [as_size(bound, "an index") for bound in bounds]
        for axis, (entry, size) in enumerate(zip(self._known(bounds), x.type.shape, strict=True)):
            if entry.step == 0:
                raise ValueError("the step of a slice must not be 0")
            if (
                entry.single
                and isinstance(entry.start, int)
                and size is not None
                and not -size <= entry.start < size
            ):
                raise IndexError(
                    f"index {entry.start} is out of bounds for axis {axis} of {x}, of size {size}"
                )
        return bounds

    def _known(self, bounds: Sequence[Variable]) -> list[Entry]:
        """The entries with numbers for symbolic bounds that are constants."""
        values = iter(bounds)
        found = []
        for entry in self.idx_list:
            start, stop, step = (_number(next(values)) if b == SYMBOLIC else b for b in entry[:3])
            found.append(Entry(start, stop, step, entry.single))
        return found

    def _static(self, x: Variable, bounds: Sequence[Variable]) -> list[int | None]:
        return [
            static_size(entry, size) for entry, size in zip(self._known(bounds), x.type.shape, strict=True)
        ]

    def _index(self, node: Apply, shape: Sequence[int], bounds: Sequence[np.ndarray]) -> tuple[slice, ...]:
        """The index with values for symbolic bounds; integers become slices of one element."""
        values: Iterator[np.ndarray] = iter(bounds)
        index = []
        for axis, (entry, size) in enumerate(zip(self.idx_list, shape, strict=True)):
            item = entry.fill(values)
            if not isinstance(item, slice):
                if not -size <= item < size:
                    raise IndexError(
                        f"index {item} is out of bounds for axis {axis} of size "
                        f"{size}{describe(node.location)}"
                    )
                item = slice(item % size, item % size + 1)
            elif item.step == 0:
                raise ValueError(f"the step of a slice must not be 0{describe(node.location)}")
            index.append(item)
        return tuple(index)

    def _emit_bounds(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        x = node.inputs[0]
        symbolic = zip(node.inputs[self._tensors :], operands[self._tensors :], strict=True)
        indices = iter([e.index(v, operand) for v, operand in symbolic])
        parts = [
            emit_entry(entry, e.dim_of(x, operands[0], axis), indices, e, f"axis {axis}")
            for axis, entry in enumerate(self.idx_list)
        ]
        return (
            [part.offset for part in parts] + [part.size for part in parts] + [part.stride for part in parts]
        )

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[i < self._tensors] for i in range(len(node.inputs))]


def _number(bound: Variable) -> Bound:
    number = checked_size(bound)
    return SYMBOLIC if number is None else number


class Subtensor(_Basic):
    """A slice of x with as many dimensions as x.

    Args:
        idx_list: one `Entry` for each dimension; its symbolic bounds are operands after x, 0-d int64.
    """

    __props__ = ("idx_list",)
    selects = 1
    view_map = {0: [0]}

    def __init__(self, idx_list: Sequence[Entry]) -> None:
        self.idx_list = tuple(idx_list)

    def __str__(self) -> str:
        return f"Subtensor{{{describe_entries(self.idx_list)}}}"

    def make_node(self, x: TensorLike, *bounds: Any) -> Apply:
        x = as_tensor_variable(x)
        checked = self._check_entries(x, bounds)
        return Apply(
            self, [x, *checked], [TensorType(x.type.dtype, self._static(x, checked)).make_variable()]
        )

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        x = inputs[0]
        output_storage[0][0] = x[self._index(node, x.shape, inputs[1:])]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        x, *bounds = inputs
        changed = IncSubtensor(self.idx_list)(zeros_like(x), only(cotangents), *bounds)
        return [changed, *[None] * len(bounds)]

    pushforward = multilinear

    def element(self, node: Apply, position: int) -> Variable | None:
        x, ((start, stop, step, single),) = node.inputs[0], self._known(node.inputs[1:])
        length = x.type.shape[0]
        if length is None or SYMBOLIC in (start, stop, step):
            return None
        if single:
            return element_of(x, start % length)
        return element_of(x, range(*slice(start, stop, step).indices(length))[position])

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        if all(entry == FULL for entry in self.idx_list):
            return [operands[0]]
        bounds = self._emit_bounds(node, operands, e)
        return [emit_slice(e, operands[0], e.type_of(node.inputs[0]), bounds, e.type_of(node.outputs[0]))]


def emit_slice(e: Emitter, x: str, type_: str, bounds: Sequence[str], result: str) -> str:
    """A part of a value.

    Args:
        e: the emitter. x: the value. type_: its type. bounds: offsets, sizes and strides. result: its type.
    """
    return e.op("graphc.slice", [x, *bounds], [type_, *["index"] * len(bounds)], result)


class IncSubtensor(_Basic):
    """x with a slice increased by y, or set to it; y has the rank of x and its dimensions of static size 1
    broadcast.

    Args:
        idx_list: as for `Subtensor`.
        set_instead_of_inc: set instead of increase.
    """

    __props__ = ("idx_list", "set_instead_of_inc")
    _tensors = 2
    is_update = True

    def __init__(self, idx_list: Sequence[Entry], set_instead_of_inc: bool = False) -> None:
        self.idx_list = tuple(idx_list)
        self.set_instead_of_inc = set_instead_of_inc
        self.selects = 2 if set_instead_of_inc else 0
        self.takes_as_stored = set_instead_of_inc

    def __str__(self) -> str:
        return f"{'Set' if self.set_instead_of_inc else 'Inc'}Subtensor{{{describe_entries(self.idx_list)}}}"

    def make_node(self, x: TensorLike, y: TensorLike, *bounds: Any) -> Apply:
        x, y = as_tensor_variable(x), as_tensor_variable(y)
        checked = self._check_entries(x, bounds)
        y = fitting(y, x.type, str(self))
        y = expand_left(y, x.type.ndim) if y.type.ndim < x.type.ndim else y
        region = self._static(x, checked)
        for axis, (have, want) in enumerate(zip(y.type.shape, region, strict=True)):
            if have not in (None, 1) and want is not None and have != want:
                raise ValueError(
                    f"cannot put {y} of shape {y.type.shape} into a slice of shape {tuple(region)} of {x}: "
                    f"sizes differ in dimension {axis}"
                )
        return Apply(self, [x, y, *checked], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        x, y = inputs[:2]
        out = np.array(x, copy=True)
        region = out[self._index(node, x.shape, inputs[2:])]
        static = node.inputs[1].type.shape
        if any(s != 1 and have != want for s, have, want in zip(static, y.shape, region.shape, strict=True)):
            raise ValueError(
                f"cannot put an array of shape {y.shape} into a slice of shape "
                f"{region.shape}{describe(node.location)}"
            )
        if self.set_instead_of_inc:
            region[...] = y
        else:
            np.add(region, y, out=region)
        output_storage[0][0] = out

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        g, (x, y, *bounds) = only(cotangents), inputs
        none: list[Variable | None] = [None] * len(bounds)
        g_y = unbroadcast(Subtensor(self.idx_list)(g, *bounds), y)
        if not self.set_instead_of_inc:
            return [g, g_y, *none]
        zero = np.zeros((1,) * x.type.ndim, x.type.dtype)
        return [self(g, zero, *bounds), g_y, *none]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        (t_x, t_y), (x, y, *bounds) = tangents[:2], inputs
        t_x = zeros_like(x) if t_x is None else t_x
        return [self(t_x, zeros_like(y) if t_y is None else t_y, *bounds)]

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        x, y, out = node.inputs[0], node.inputs[1], node.outputs[0]
        bounds = self._emit_bounds(node, operands, e)
        ndim = x.type.ndim
        region = e.tensor_type(out.type.dtype, self._static(x, node.inputs[2:]))
        update = e.broadcast(operands[1], e.type_of(y), bounds[ndim : 2 * ndim], region)
        types = [e.type_of(x), region] + ["index"] * len(bounds)
        attrs = f"accumulate = {'false' if self.set_instead_of_inc else 'true'}"
        return [e.op("graphc.update_slice", [operands[0], update, *bounds], types, e.type_of(out), attrs)]


def fitting(y: Variable, type_: TensorType, what: str) -> TensorVariable:
    """``y`` in the dtype of the array it goes into.

    Raises:
        TypeError: that would lose information.
        ValueRankError: y has more dimensions.
    """
    given = y.type.dtype
    weak = y.owner is None and hasattr(y, "data")
    if given != type_.dtype and not np.can_cast(given, type_.dtype, "same_kind") and not weak:
        raise TypeError(
            f"{what} cannot put values of dtype {given} into an array of {type_.dtype}; cast them first"
        )
    if y.type.ndim > type_.ndim:
        raise ValueRankError(f"{what} cannot put {y} of {y.type} into {type_.ndim} dimensions")
    return cast_to(y, type_.dtype)
