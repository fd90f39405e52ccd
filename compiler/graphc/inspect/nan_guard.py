# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The NaN guard: which op, in which iteration, first made a NaN or an infinity.

A tool for debugging: the graph runs op by op in Python, as it was written. Compiled code may avoid an
infinity that the guard reports, where stabilisation replaces a formula by a better one.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from graphc.errors import NanGuardError
from graphc.function import iterations
from graphc.function.report import CompileReport
from graphc.function.schedule import Schedule
from graphc.function.steps import NodeStep, Observer, Segment
from graphc.graph.basic import Apply, describe
from graphc.graph.contract import Executor
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.thunks import Cells
from graphc_runtime.symbols import kind_letter
from graphc_runtime.thunk import Thunk

# Whether the running call has warned: what follows from the first NaN would only repeat it.
_WARNED: ContextVar[list[bool] | None] = ContextVar("graphc_nan_guard", default=None)


class GuardedExecutor(Executor):
    """Runs a graph op by op in Python and checks what each op computes.

    Args:
        fgraph: the graph.
        action: "warn" or "raise".
        report: gains a line that says so.
    """

    def __init__(self, fgraph: FunctionGraph, action: str, report: CompileReport) -> None:
        self._plain = Schedule(fgraph, _refuse, report, grain="python")
        self._guard = _Guard(action)
        self._schedule = self._plain.observed(self._guard)

    def run(self, values: Sequence[Any]) -> list[Any]:
        """One value for each input to one for each output.

        Raises:
            NanGuardError: an op has made a NaN or an infinity.
        """
        token = _WARNED.set([False])
        try:
            return self._schedule.run(values)
        finally:
            _WARNED.reset(token)

    def observed(self, observer: Observer) -> GuardedExecutor:
        """The same with another observer, which sees guarded thunks."""
        other = copy.copy(self)
        other._schedule = self._plain.observed(_Both(self._guard, observer))
        return other


def _refuse(fgraph: FunctionGraph) -> Any:
    raise AssertionError("a guarded graph has no native segments")


class _Both:
    """Two observers as one."""

    def __init__(self, first: Observer, second: Observer) -> None:
        self._first, self._second = first, second

    def observe(self, step: Segment | NodeStep, thunk: Thunk, cells: Cells) -> Thunk:
        return self._second.observe(step, self._first.observe(step, thunk, cells), cells)


class _Guard:
    """Puts checks around thunks. Loops are checked in their bodies."""

    def __init__(self, action: str) -> None:
        self._action = action

    def observe(self, step: Segment | NodeStep, thunk: Thunk, cells: Cells) -> Thunk:
        if isinstance(step, Segment) or step.body is not None:
            return thunk
        return _GuardedThunk(step.node, thunk, cells, self._action)


class _GuardedThunk(Thunk):
    """Runs a thunk and checks its outputs."""

    __slots__ = ("_action", "_cells", "_inner", "_node")

    def __init__(self, node: Apply, inner: Thunk, cells: Cells, action: str) -> None:
        self._node, self._inner, self._cells, self._action = node, inner, cells, action

    @property
    def lazy(self) -> bool:
        return self._inner.lazy

    def __call__(self) -> Any:
        given = [register[0] for register in self._cells.input_registers]
        overwritten = self._node.op.overwritten
        given = [copy.deepcopy(value) if i in overwritten else value for i, value in enumerate(given)]
        asked = self._inner()
        warned = _WARNED.get()
        if not asked and not (warned and warned[0]):
            self._check(given, warned)
        return asked

    def _check(self, given: Sequence[object], warned: list[bool] | None) -> None:
        for position, register in enumerate(self._cells.output_registers):
            found = _first_bad(register[0], given)
            if found is None:
                continue
            message = self._message(position, register[0], given, found)
            if self._action == "raise":
                raise NanGuardError(message)
            if warned is not None:
                warned[0] = True
            warnings.warn(message, RuntimeWarning, stacklevel=2)
            return

    def _message(self, position: int, value: Any, given: Sequence[Any], found: tuple[Any, ...]) -> str:
        index, count = found
        place = f" at index {index}" if value.ndim else ""
        more = f" (and {count - 1} more of {value.size} elements)" if count > 1 else ""
        which = f" in output {position}" if len(self._node.outputs) > 1 else ""
        where = "".join(f", in {each}" for each in reversed(iterations.current()))
        inputs = ", ".join(_shown(x, value.shape, index) for x in given if x is not None)
        what = f"{_named(value[index])}{which}{place}{more}{where}"
        return (
            f"{self._node.op}{describe(self._node.location)} has made {what}; its "
            f"inputs{' there' if place else ''} are {inputs or 'none'}"
        )


def _first_bad(value: Any, given: Sequence[Any]) -> tuple[tuple[int, ...], int] | None:
    """Index of the first NaN or infinity that the inputs do not explain, and how many there are.

    A NaN is explained by a NaN, an infinity by a NaN or an infinity among the inputs.
    """
    if not _is_inexact(value) or np.isfinite(value).all():
        return None
    arrays = [x for x in given if _is_inexact(x)]
    bad = np.isnan(value)
    if not bad.any() or any(np.isnan(x).any() for x in arrays):
        bad = ~np.isfinite(value)
        if any(not np.isfinite(x).all() for x in arrays):
            return None
    index = np.unravel_index(int(np.argmax(bad)), value.shape)
    return tuple(map(int, index)), int(bad.sum())


def _is_inexact(value: object) -> bool:
    return isinstance(value, np.ndarray) and kind_letter(value.dtype) in "fc"


def _named(number: Any) -> str:
    if np.isnan(number):
        return "NaN"
    if np.iscomplexobj(number):
        return f"the infinity {number}"
    return "Inf" if number > 0 else "-Inf"


def _shown(value: object, shape: tuple[int, ...], index: tuple[int, ...]) -> str:
    """An input of an op: its element where the output is bad, if it has one there, or its dtype and shape."""
    if not isinstance(value, np.ndarray):
        return type(value).__name__
    if value.ndim == len(shape) and all(
        have in (1, want) for have, want in zip(value.shape, shape, strict=True)
    ):
        own = tuple(0 if size == 1 else i for size, i in zip(value.shape, index, strict=True))
        return str(value[own])
    return f"{value.dtype} of shape {value.shape}"
