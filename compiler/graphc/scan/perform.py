# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running a scan in Python, iteration by iteration: the reference, and the way of graphs with Python ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.graph.reference import ReferenceExecutor
from graphc_runtime.progress import report

if TYPE_CHECKING:
    from graphc.function.schedule import Schedule
    from graphc.scan.op import Scan


def run(op: Scan, inputs: Sequence[np.ndarray], body: Schedule | None = None) -> list[Any]:
    """The outer outputs for values of the outer inputs.

    Args:
        op: a `Scan`.
        inputs: values in the order of ``op.spec.outer_input_names()``.
        body: runs the inner graph; by default op by op in NumPy.

    Raises:
        ValueError: a negative number of steps, a sequence that is too short, a state whose rows change shape.
    """
    return _Run(op, inputs, body or ReferenceExecutor(op.fgraph)).results()


class _Rows:
    """The rows of a state or an output, as long as somebody may read them.

    Args:
        initial: the first ones.
        window: how many of the last rows the next iteration may read.
        total: how many there will be; None if nobody knows.
        kept: how many of the last rows are wanted, and of those before how many may be zeros; None for all.
        dtype: of the result.
        is_flipped: the result begins with the last row.
    """

    def __init__(
        self,
        initial: Sequence[np.ndarray],
        window: int,
        total: int | None,
        kept: tuple[int, int] | None,
        dtype: np.dtype,
        is_flipped: bool,
    ) -> None:
        self._total, self._dtype, self._is_flipped = total, dtype, is_flipped
        self._wanted = None if kept is None else sum(kept)
        self._is_whole = total is not None and (self._wanted is None or total <= self._wanted)
        # Rows of a whole trace are put there at once.
        self._held: int | None = window
        if not self._is_whole:
            self._held = None if kept is None else max(window, kept[0] if total is not None else sum(kept))
        self._trace: np.ndarray | None = None
        self._rows: list[np.ndarray | None] = []
        self.shape: tuple[int, ...] | None = None
        for row in initial:
            self[len(self._rows)] = row

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, position: int) -> np.ndarray | None:
        return self._rows[position]

    def __setitem__(self, position: int, row: np.ndarray) -> None:
        rows = self._rows
        if position < len(rows):
            rows[position] = row
        else:
            rows.append(row)
            if self._held is not None and position >= self._held:
                rows[position - self._held] = None
        if self.shape is None:
            self.shape = np.shape(row)
        if self._is_whole:
            assert self._total is not None
            if self._trace is None:
                self._trace = np.empty((self._total, *self.shape), self._dtype)
            self._trace[self._total - 1 - position if self._is_flipped else position] = row

    def result(self) -> np.ndarray:
        """The rows that are wanted; there is at least one row."""
        if self._trace is not None:
            return self._trace
        rows, self._rows = self._rows, []
        if self._wanted is not None:
            rows = rows[max(len(rows) - self._wanted, 0) :]
        found = np.empty((len(rows), *(self.shape or ())), self._dtype)
        for i, row in enumerate(rows):
            found[i] = 0 if row is None else row
            rows[i] = row = None
        return found[::-1] if self._is_flipped else found


class _Run:
    """One execution."""

    def __init__(self, op: Any, inputs: Sequence[Any], body: Any) -> None:
        self._op, self._spec = op, op.spec
        self._executor = body
        self._values = dict(zip(self._spec.outer_input_names(), inputs, strict=True))
        self._steps = int(self._values["n_steps"])
        self._check()
        self._rows: dict[str, _Rows] = {}
        kept, n = getattr(op, "kept", {}), None if self._spec.is_while else self._steps
        dtypes = {
            name: v.type
            for (name, _), v in zip(self._spec.inner_output_names(), op.inner_outputs, strict=True)
        }
        for role in (*self._spec.states, *self._spec.outputs):
            window = getattr(role, "window", 0)
            self._rows[role.name] = _Rows(
                self._values[role.name] if window else (),
                window,
                None if n is None else n + window,
                kept.get(role.name),
                dtypes[role.name].numpy_dtype,
                op.reverse,
            )
        self._untraced = {u.name: self._values[u.name] for u in self._spec.untraced}
        self._taken = self._iterate()

    def _check(self) -> None:
        name, n = self._op.name or "scan", self._steps
        if n < 0:
            raise ValueError(f"the number of steps of scan '{name}' must be at least 0, but is {n}")
        for sequence in self._spec.sequences:
            available = max(len(self._values[sequence.name]) - sequence.taps[-1], 0)
            if n > available:
                raise ValueError(
                    f"scan '{name}' runs {n} steps, but sequence '{sequence.name}' has rows for "
                    f"{available} only"
                )
        for state in self._spec.states:
            given = len(self._values[state.name])
            if given != state.window:
                raise ValueError(
                    f"state '{state.name}' of scan '{name}' needs {state.window} initial rows, "
                    f"but is given {given}"
                )

    def _iterate(self) -> int:
        name = self._op.name or "scan"
        for step in range(self._steps):
            if self._op.progress:
                report(name, step, self._steps)
            t = self._steps - 1 - step if self._op.reverse else step
            if self._store(step, self._executor.run(self._inner_values(t, step))):
                taken = step + 1
                break
        else:
            taken = self._steps
        if self._op.progress:
            report(name, self._steps, self._steps)
        return taken

    def _inner_values(self, t: int, step: int) -> list[np.ndarray]:
        spec, values = self._spec, []
        for sequence in spec.sequences:
            values += [np.asarray(self._values[sequence.name][t + tap]) for tap in sequence.taps]
        for state in spec.states:
            rows = self._rows[state.name]
            values += [np.asarray(rows[state.window + step + tap]) for tap in state.taps]
        values += [self._untraced[untraced.name] for untraced in spec.untraced]
        return values + [self._values[invariant.name] for invariant in spec.invariants]

    def _store(self, step: int, results: list[np.ndarray]) -> bool:
        """Puts the results of an iteration in place; returns whether it was the last one."""
        found = iter(results)
        for state in self._spec.states:
            rows = self._rows[state.name]
            shape = self._values[state.name].shape[1:]
            for write in state.writes:
                row = next(found)
                if row.shape != shape:
                    raise ValueError(
                        f"the rows of state '{state.name}' of scan '{self._op.name or 'scan'}' have shape "
                        f"{shape} at the start, but {row.shape} after iteration {step}"
                    )
                rows[state.window + step + write] = row
        for output in self._spec.outputs:
            rows, row = self._rows[output.name], next(found)
            if step and rows.shape != row.shape:
                raise ValueError(
                    f"the output '{output.name}' of scan '{self._op.name or 'scan'}' has shape "
                    f"{rows.shape} in iteration 0, but {row.shape} in iteration {step}"
                )
            rows[step] = row
        for untraced in self._spec.untraced:
            self._untraced[untraced.name] = next(found)
        return self._spec.is_while and bool(next(found))

    def results(self) -> list[Any]:
        """Values of the outer outputs."""
        inner = dict(zip(self._spec.inner_output_names(), self._op.inner_outputs, strict=True))
        values: list[np.ndarray] = []
        for name, rows in self._rows.items():
            dtype = inner[name, 0].type.numpy_dtype
            values.append(rows.result() if len(rows) else np.empty(self._empty(name), dtype))
        values += list(self._untraced.values())
        if self._spec.is_while:
            values.append(np.asarray(self._taken, "int64"))
        return values

    def _empty(self, name: str) -> tuple[int, ...]:
        """The shape of an output without rows: that of a row computed from zeros, where it is not static."""
        position = list(self._spec.inner_output_names()).index((name, 0))
        static = self._op.inner_outputs[position].type.shape
        if None not in static:
            return (0, *static)
        spec, zeros = self._spec, []
        for role in (*spec.sequences, *spec.states):
            source = self._values[role.name]
            zeros += [np.zeros(source.shape[1:], source.dtype) for _ in role.taps]
        zeros += list(self._untraced.values()) + [self._values[i.name] for i in spec.invariants]
        try:
            return (0, *self._executor.run(zeros)[position].shape)
        except (ValueError, IndexError, ArithmeticError, np.linalg.LinAlgError):
            return (0, *(size or 0 for size in static))
