# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States of a loop that is being built: their rows must keep one type from iteration to iteration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.graph.basic import Constant, Variable, describe
from graphc.graph.replace import rebuild
from graphc.graph.tensor.convert import constant
from graphc.graph.tensor.type import TensorType
from graphc.ops.shaping import specify_shape
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc.graph.tensor.variable import TensorVariable
    from graphc.scan.builder import Callee

# Converting a constant may change what is computed from it, which may ask for another dtype again.
_MAX_CONVERSIONS = 4


@record(eq=False)
class StatePart:
    """A state.

    Attributes:
        name: its name.
        label: what the user calls it, for messages.
        taps: offsets that are read, ascending.
        initial: the leading rows.
        inner: a variable for the row at each tap.
        next: what the function computes; set once it was called.
    """

    name: str
    label: str
    taps: tuple[int, ...]
    initial: Any
    inner: dict[int, Variable]
    next: Any = None

    @property
    def row(self) -> TensorType:
        """Type of a row."""
        return self.initial.type.clone(shape=self.initial.type.shape[1:])

    def retype(self, row: TensorType) -> dict[Variable, Variable]:
        """Give the rows another type; returns what replaces the inner variables."""
        if row.dtype != self.row.dtype:
            self.initial = constant(self.initial.data.astype(row.dtype), self.initial.name)
        self.initial = specify_shape(self.initial, (None, *row.shape))
        old = self.inner
        self.inner = {tap: row.make_variable(v.name) for tap, v in old.items()}
        return {old[tap]: new for tap, new in self.inner.items()}


@record(eq=False)
class UntracedPart:
    """A state of which only the last value is kept.

    Attributes:
        name: its name.
        label: what the user calls it, for messages; None where the type is fixed, as that of shared
            variables.
        initial: the value before the first iteration.
        inner: what an iteration reads.
        next: what the function computes; set once it was called.
    """

    name: str
    label: str | None
    initial: Any
    inner: Variable
    next: Any = None

    @property
    def row(self) -> TensorType:
        """Type of the value, for a tensor."""
        return self.initial.type

    def retype(self, row: TensorType) -> dict[Variable, Variable]:
        """Give the value another type; returns what replaces the inner variable."""
        if row.dtype != self.row.dtype:
            self.initial = constant(self.initial.data.astype(row.dtype), self.initial.name)
        self.initial = specify_shape(self.initial, row.shape)
        old, self.inner = self.inner, row.make_variable(self.inner.name)
        return {old: self.inner}


def state_part(
    name: str, label: str, initial: TensorVariable, taps: Sequence[int], is_row: bool
) -> StatePart:
    """A state that starts from ``initial``.

    Args:
        name: its name.
        label: what the user calls it.
        initial: one row with ``is_row``, or at least as many as the oldest tap reaches back.
        taps: offsets that are read, in the user's order.
        is_row: ``initial`` has no axis of rows.

    Raises:
        ValueError: too few rows.
        TypeError: no axis of rows.
    """
    window = -min(taps)
    rows = _rows(initial, window, label) if not is_row else _one_row(initial)
    row = TensorType(rows.type.dtype, rows.type.shape[1:])
    base = initial.name or name
    inner = {tap: row.make_variable(f"{base}[t{tap}]") for tap in sorted(taps)}
    for tap, v in inner.items():
        v._location = initial.location
        v.take_test_value(rows, window + tap)
    return StatePart(name, label, tuple(sorted(taps)), rows, inner)


def _one_row(initial: TensorVariable) -> TensorVariable:
    if isinstance(initial, Constant):
        return constant(initial.data[np.newaxis], initial.name)
    return initial.dimshuffle("x", *range(initial.type.ndim))


def _rows(initial: Variable, window: int, label: str) -> Variable:
    given = initial.type
    if given.ndim == 0:
        raise TypeError(
            f"{label} needs {window} initial rows for its oldest tap {-window}, but its initial value "
            f"{initial} is a scalar of type {given}{describe(initial.location)}; give a tensor whose first "
            "axis counts the rows"
        )
    have = given.shape[0]
    if have is not None and have < window:
        raise ValueError(
            f"{label} needs {window} initial rows for its oldest tap {-window}, oldest first, but {initial} "
            f"of type {given}{describe(initial.location)} has {have}"
        )
    if have == window:
        return initial
    if isinstance(initial, Constant):
        return constant(initial.data[:window], initial.name)
    return initial[:window]


def fit(states: Sequence[StatePart | UntracedPart], others: list[Variable], callee: Callee) -> list[Variable]:
    """Find types of rows that the function keeps.

    Sizes that only one of initial value and result knows are demanded of the other. A constant initial value
    is converted to the dtype of the result if that keeps its value.

    Args:
        states: states whose ``next`` is set; they are changed in place.
        others: what else the function returned.
        callee: the function, for messages.

    Returns:
        ``others``, on rows of the final types.

    Raises:
        TypeError: dtype or shape change from one iteration to the next.
    """
    conversions = 0
    while True:
        memo: dict[Variable, Variable] = {}
        for state in states:
            row = _agreed(state, callee, conversions < _MAX_CONVERSIONS)
            if row != state.row:
                conversions += row.dtype != state.row.dtype
                memo.update(state.retype(row))
        if not memo:
            break
        results = rebuild([*(s.next for s in states), *others], memo, copy_nodes=False, strict=False)
        for state, new in zip(states, results, strict=False):
            state.next = new
        others = results[len(states) :]
    for state in states:
        state.next = specify_shape(state.next, state.row.shape)
    return others


def _agreed(state: StatePart | UntracedPart, callee: Callee, may_convert: bool) -> TensorType:
    """The type of rows that fits both the initial value and the result."""
    old, new = state.row, state.next.type
    if not isinstance(new, TensorType) or new.ndim != old.ndim:
        raise _error(state, callee, f"The number of dimensions must stay the same: {_rank_hint(old, new)}")
    dtype = old.dtype
    if new.dtype != old.dtype:
        if not (may_convert and _keeps_values(state.initial, new)):
            raise _error(
                state, callee, f"Give an initial value of dtype {new.dtype}, or return .astype('{old.dtype}')"
            )
        dtype = new.dtype
    shape = []
    for axis, (a, b) in enumerate(zip(old.shape, new.shape, strict=True)):
        if a is not None and b is not None and a != b:
            raise _error(state, callee, f"Size {a} of axis {axis} must stay the same, but becomes {b}")
        if a == 1 and b is None:
            raise _error(
                state,
                callee,
                f"Axis {axis} starts with size 1, which broadcasts, and may grow. Start from the full size, "
                "or return specify_shape(...) of the result if its size is 1",
            )
        shape.append(b if a is None else a)
    return TensorType(dtype, shape)


def _rank_hint(old: TensorType, new: TensorType) -> str:
    if not isinstance(new, TensorType):
        return "return a tensor"
    if new.ndim > old.ndim:
        return "start from a value of the full shape, for example zeros of that shape"
    return "return a value of the initial shape, or start from one of fewer dimensions"


def _keeps_values(initial: Variable, row: TensorType) -> bool:
    if not isinstance(initial, Constant):
        return False
    data = initial.data
    if data.dtype.kind == "c" and row.numpy_dtype.kind != "c":
        return False
    with np.errstate(all="ignore"):
        converted = data.astype(row.dtype)
        back = converted if data.dtype.kind == "c" else converted.real
        return bool(np.array_equal(back.astype(data.dtype), data, equal_nan=data.dtype.kind in "fc"))


def _error(state: StatePart | UntracedPart, callee: object, fix: str) -> TypeError:
    return TypeError(
        f"{state.label} starts as {state.row}, but {callee} returns {state.next.type} for it"
        f"{describe(state.next.location)}. {fix}"
    )
