# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Basic indexing: ``Subtensor`` reads a slice, ``IncSubtensor`` sets or increases one. Both keep all
dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.errors import ValueRankError
from graphc.graph.basic import Apply, Constant, Maybe, Variable, Variables
from graphc.graph.location import describe
from graphc.graph.op import Op
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.tensor.type import TensorType
from graphc.ops.bounds import FULL, SYMBOLIC, Bound, Entry, describe_entries, emit_entry, static_size
from graphc.ops.broadcast import unbroadcast
from graphc.ops.create import zeros_like
from graphc.ops.dimshuffle import element_of
from graphc.ops.elementwise import cast_to, expand_left, is_discrete
from graphc.ops.sizes import as_size

if TYPE_CHECKING:
    from graphc.emit.emitter import Emitter
    from graphc.graph.tensor.like import TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc_runtime.thunk import Register


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
    return int(bound.data) if isinstance(bound, Constant) else SYMBOLIC


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
        (g,), (x, *bounds) = cotangents, inputs
        none: list[Variable | None] = [None] * len(bounds)
        if g is None or is_discrete(x):
            return [None, *none]
        return [IncSubtensor(self.idx_list)(zeros_like(x), g, *bounds), *none]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        return [None if tangents[0] is None else self(tangents[0], *inputs[1:])]

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
        (g,), (x, y, *bounds) = cotangents, inputs
        none: list[Variable | None] = [None] * len(bounds)
        if g is None or is_discrete(x):
            return [None, None, *none]
        g_y = unbroadcast(Subtensor(self.idx_list)(g, *bounds), y)
        if not self.set_instead_of_inc:
            return [g, g_y, *none]
        zero = np.zeros((1,) * x.type.ndim, x.type.dtype)
        return [self(g, zero, *bounds), g_y, *none]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        (t_x, t_y), (x, y, *bounds) = tangents[:2], inputs
        if t_x is None and t_y is None:
            return [None]
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
