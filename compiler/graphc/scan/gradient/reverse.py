# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reverse mode: the cotangents of a loop's inputs.

Gradients that keep few rows and compute the others again.

Let a loop make N iterations with ``checkpoint_every=C``, and let r be the size of the rows of its states. The
gradient needs all rows, in opposite order. Ordinarily they are read from the traces: memory N r, time one
forward and one reverse pass. With checkpoints, a loop over segments of C iterations keeps the windows (K
rows for a state with oldest tap -K) between the segments; the reverse loop runs each segment again from its
window and then backwards. Memory is about ``(K N / C + C) r``, least for ``C = sqrt(K N)``; time is that of
two more forward passes (one for the windows, one for the segments) where the loop's own traces are not used
otherwise.

Rows that the program itself asks for are kept all the same, and sequences, which are inputs, are not copied.
The last 1 to C iterations form a shorter loop, so N need not be a multiple of C. Loops that rewrite older
rows (mit-mot), and truncated gradients of loops with untraced states, have no checkpoints: their gradients
read the traces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphc.gradient.accumulate import Cotangents
from graphc.gradient.connectivity import Paths
from graphc.graph.basic import Constant, Variable
from graphc.graph.replace import rebuild
from graphc.graph.tensor.convert import constant
from graphc.graph.tensor.type import TensorType
from graphc.graph.undefined import is_disconnected, is_discrete, is_null, kind_of
from graphc.ops.bounds import FULL, SYMBOLIC
from graphc.ops.create import zeros_like
from graphc.ops.derivatives import match_dtype, total
from graphc.ops.math import maximum
from graphc.ops.shape import Shape_i
from graphc.ops.shaping import reshape, shape_padleft
from graphc.ops.sizes import known_size, made_as, sizes_of
from graphc.ops.subtensor import Subtensor
from graphc.scan.gradient.adjoint import Adjoint, Adjoints, untraced_gradient
from graphc.scan.gradient.builder import ScanBuilder
from graphc.scan.gradient.run import Key, Run, initial_rows
from graphc.scan.gradient.sparse import Pieces, output_pieces, state_pieces
from graphc.scan.gradient.traced import pullback_with_traces
from graphc.scan.mappings import sources

if TYPE_CHECKING:
    from graphc.graph.basic import Apply
    from graphc.scan.spec import State


def segment_adjoints(
    run: Run, pieces: Mapping[str, Pieces], steps: Mapping[str, Variable], last: Mapping[str, Variable]
) -> Adjoints:
    """As ``Adjoint(run, pieces, steps, last).build()``, from segments.

    Raises:
        ValueError: the number of iterations of a segment is below 1.
    """
    spec, size = run.op.spec, run.op.checkpoint_every
    if size < 1:
        raise ValueError(f"checkpoint_every of {run.op} must be at least 1, got {size}")
    rewrites = any(len(state.writes) > 1 for state in spec.states)
    if rewrites or (spec.untraced and run.is_truncated):
        return Adjoint(run, pieces, steps, last).build()
    return _Segments(run, size).adjoints(pieces, steps, last)


class _Segments:
    """The loop as a loop over segments and a rest, on roots in the place of its inputs."""

    def __init__(self, run: Run, size: int) -> None:
        self.run, self.spec, self.size = run, run.op.spec, size
        self.inner = run.inner_inputs
        self.values: dict[Variable, Variable] = {}
        self.n_steps: Any = self._place(run.n_steps)
        self.sequences = {
            (sequence.name, tap): self._place(self._rows(sequence.name, tap))
            for sequence in self.spec.sequences
            for tap in sequence.taps
        }
        self.windows = {state.name: self._place(self._window(state)) for state in self.spec.states}
        others = (*self.spec.untraced, *self.spec.invariants)
        self.others = {role.name: self._place(run.inputs[role.name]) for role in others}
        count = maximum(self.n_steps - 1, 0) // size
        self.count: Any = count.astype("int64")
        self.rest: Any = self.n_steps - self.count * size

    def _place(self, value: Variable) -> Variable:
        place = value.type.make_variable(value.name)
        self.values[place] = value
        return place

    def _rows(self, name: str, tap: int) -> Variable:
        """The rows of a sequence that are read at a tap, one for each iteration of the run."""
        x: Any = self.run.sequence(name)
        n: Any = self.run.n_steps
        return x[tap : tap + n]

    def _window(self, state: State) -> Variable:
        """The rows before the run."""
        if not self.run.is_truncated:
            return self.run.inputs[state.name]
        trace: Any = self.run.trace(state.name)
        rows = trace[self.run.n_steps :] if self.run.op.reverse else trace
        return rows[: state.window][::-1] if self.run.op.reverse else rows[: state.window]

    # -- the loops -----------------------------------------------------------------------------------------

    def _body(
        self,
        n_steps: Variable,
        sequences: Mapping[Key, Variable],
        windows: Mapping[str, Variable],
        others: Mapping[str, Variable],
    ) -> dict[str, Variable]:
        """The original body over some iterations; the outputs by name."""
        rows, builder = self.run.inner_outputs, ScanBuilder()
        for (name, tap), value in sequences.items():
            builder.sequence(f"{name}_{tap}" if tap else name, value, {0: self.inner[name, tap]})
        for state in self.spec.states:
            taps = {tap: self.inner[state.name, tap] for tap in state.taps}
            builder.state(state.name, windows[state.name], taps, {0: rows[state.name, 0]})
        names = {role.name: builder.output(role.name, rows[role.name, 0]) for role in self.spec.outputs}
        for role in self.spec.untraced:
            builder.untraced(role.name, others[role.name], self.inner[role.name, 0], rows[role.name, 0])
        for role in self.spec.invariants:
            builder.invariant(role.name, others[role.name], self.inner[role.name, 0])
        op = self.run.op
        options = {"name": op.name, "reverse": op.reverse, "unroll": op.unroll}
        found: Any = builder.build(n_steps, **options)
        result = {name: found[own] for name, own in names.items()}
        for state in self.spec.states:
            trace, window = found[state.name], state.window
            result[state.name] = trace[:-window] if op.reverse else trace[window:]
            result[f"window {state.name}"] = trace[:window][::-1] if op.reverse else trace[-window:]
        return result | {role.name: found[role.name] for role in self.spec.untraced}

    def _segments(self) -> dict[str, Variable]:
        """All segments: rows of states and outputs, the last windows, untraced states."""
        builder, op = ScanBuilder(), self.run.op
        inner: dict[Any, Variable] = {}
        for key, value in self.sequences.items():
            x: Any = value
            rows = x[self.rest :] if op.reverse else x[: self.count * self.size]
            stacked = reshape(rows, (self.count, self.size, *sizes_of(x)[1:]))
            inner[key] = TensorType(x.type.dtype, stacked.type.shape[1:]).make_variable(x.name)
            builder.sequence(f"{key[0]}_{key[1]}" if key[1] else key[0], stacked, {0: inner[key]})
        for name, value in {**self.windows, **self.others}.items():
            inner[name] = value.type.make_variable(name)
        sequences = {key: inner[key] for key in self.sequences}
        body = self._body(constant(self.size, dtype="int64"), sequences, inner, inner)
        for state in self.spec.states:
            start, new = shape_padleft(self.windows[state.name]), body[f"window {state.name}"]
            builder.state(state.name, start, {-1: inner[state.name]}, {0: new})
        stacks = {
            role.name: builder.output(f"rows_{role.name}", body[role.name])
            for role in (*self.spec.states, *self.spec.outputs)
        }
        for role in self.spec.untraced:
            builder.untraced(role.name, self.others[role.name], inner[role.name], body[role.name])
        for role in self.spec.invariants:
            builder.invariant(role.name, self.others[role.name], inner[role.name])
        found: Any = builder.build(self.count, name=f"segments of {op.name or 'scan'}", reverse=op.reverse)
        result: dict[str, Any] = {role.name: found[role.name] for role in self.spec.untraced}
        for name, own in stacks.items():
            result[name] = reshape(found[own], (self.count * self.size, *sizes_of(found[own])[2:]))
        for state in self.spec.states:
            result[f"window {state.name}"] = found[state.name][0 if op.reverse else -1]
        return result

    def _rest(self, before: Mapping[str, Variable]) -> dict[str, Variable]:
        """The last iterations, after the segments."""
        sequences: dict[Key, Variable] = {}
        for key, value in self.sequences.items():
            x: Any = value
            sequences[key] = x[: self.rest] if self.run.op.reverse else x[self.count * self.size :]
        windows = {state.name: before[f"window {state.name}"] for state in self.spec.states}
        others = {**self.others, **{role.name: before[role.name] for role in self.spec.untraced}}
        return self._body(self.rest, sequences, windows, others)

    # -- their gradient ------------------------------------------------------------------------------------

    def adjoints(
        self, pieces: Mapping[str, Pieces], steps: Mapping[str, Variable], last: Mapping[str, Variable]
    ) -> Adjoints:
        """The cotangents, in terms of the run's inputs."""
        front = self._segments()
        rest = self._rest(front)
        seeds: dict[Variable, Variable] = {}
        stacked = {**{name: p.steps for name, p in pieces.items() if p.steps is not None}, **steps}
        for name, value in stacked.items():
            g: Any = value
            in_rest = g[: self.rest] if self.run.op.reverse else g[self.count * self.size :]
            in_front = g[self.rest :] if self.run.op.reverse else g[: self.count * self.size]
            seeds |= {rest[name]: in_rest, front[name]: in_front}
        for name, piece in pieces.items():
            window: Any = piece.window
            if window is not None:
                seeds[rest[f"window {name}"]] = window[::-1]
        for name, row in last.items():
            zeros = zeros_like(rest[name], dtype=row.type.dtype)
            index = slice(0, 1) if self.run.op.reverse else slice(-1, None)
            g = zeros[index].inc(row)
            seeds[rest[name]] = seeds[rest[name]] + g if rest[name] in seeds else g
        return self._collect(seeds, [*stacked.values(), *last.values(), *_windows(pieces)])

    def _collect(self, seeds: Mapping[Variable, Variable], given: list[Variable]) -> Adjoints:
        """Pull the seeds back to the roots and put the run's inputs in their place."""
        wanted: dict[Key, Variable] = dict(self.sequences)
        wanted |= {(name, 0): place for name, place in {**self.windows, **self.others}.items()}
        wanted = {key: v for key, v in wanted.items() if not isinstance(self.values[v], Constant)}
        cotangents = Cotangents(Paths(seeds, list(wanted.values())), seeds)
        cotangents.run()
        found = {key: cotangents.of(x) for key, x in wanted.items() if x in cotangents.reached}
        result = Adjoints()
        kept = {k: g for k, g in found.items() if g is not None and not is_disconnected(g) and not is_null(g)}
        memo = {**self.values, **{g: g for g in given}}
        rebuilt = rebuild(list(kept.values()), memo, copy_nodes=False, strict=False)
        for (name, tap), value in zip(kept, rebuilt, strict=True):
            if name in self.windows:
                result.windows[name] = value
            elif name in self.others:
                result.invariants[name] = value
            else:
                result.sequences[name, tap] = value
        for (name, _), g in found.items():
            if is_null(g):
                (result.undefined if name in self.windows else result.undefined_inputs)[name] = g
        return result


def _windows(pieces: Mapping[str, Pieces]) -> list[Variable]:
    return [piece.window for piece in pieces.values() if piece.window is not None]


Terms = list[Variable | None]


def pullback(
    op: Any,
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    cotangents: Sequence[Variable | None],
) -> Terms:
    """Cotangents of the outer inputs of a `Scan` from those of its outer outputs; None is zero.

    The reverse loop goes over the iterations that were made, or over the last ``op.truncate_gradient`` of
    them, and reads the traces of the forward loop (see `graphc.scan.gradient.adjoint`). A cotangent that is
    zero but for the last rows, such as that of ``hs[-1]``, is no sequence of the reverse loop but its initial
    value. With ``op.checkpoint_every`` the traces are not read; see `graphc.scan.gradient.reverse`.

    Integer and boolean states pass no cotangents, and the number of steps is not connected. Untraced states
    of floating point get traces (see `graphc.scan.gradient.traced`); where that cannot be, they make
    cotangents that would pass through them undefined.
    """
    by_traces = pullback_with_traces(op, inputs, outputs, cotangents)
    if by_traces is not None:
        return by_traces
    given = {
        name: match_dtype(y, g)
        for name, y, g in zip(op.spec.outer_output_names(), outputs, cotangents, strict=True)
        if g is not None and not is_discrete(y) and kind_of(y)
    }
    run = Run.of(op, inputs, outputs)
    pieces = {
        state.name: state_pieces(
            given[state.name], state.window, -state.writes[0], run.inputs[state.name], op.reverse
        )
        for state in op.spec.states
        if state.name in given
    }
    steps, last = _outputs(run, given)
    _keep_own(run, pieces, steps)
    if op.checkpoint_every is None:
        found = Adjoint(run, pieces, steps, last).build()
    else:
        found = segment_adjoints(run, pieces, steps, last)
    for role in op.spec.untraced:
        if role.name in given:
            found.undefined[role.name] = untraced_gradient(op, role.name)
    return [None, *_terms(run, pieces, found)]


def _outputs(run: Run, given: Mapping[str, Variable]) -> tuple[dict[str, Variable], dict[str, Variable]]:
    """Cotangents of outputs: of all iterations, and of the last one."""
    steps, last = {}, {}
    for output in run.op.spec.outputs:
        if output.name in given:
            dense, row = output_pieces(given[output.name], run.op.reverse)
            if dense is not None:
                steps[output.name] = dense
            if row is not None:
                last[output.name] = row
    return steps, last


def _keep_own(run: Run, pieces: Mapping[str, Pieces], steps: dict[str, Variable]) -> None:
    """Leave out what belongs to iterations before the run."""
    for piece in pieces.values():
        if piece.steps is not None:
            piece.steps = run.own(piece.steps)
    for name, value in steps.items():
        steps[name] = run.own(value)


def _terms(run: Run, pieces: Mapping[str, Pieces], found: Adjoints) -> Terms:
    """Cotangents of the outer inputs but the number of steps."""
    spec = run.op.spec
    reached = sources(run.op)
    result: Terms = []
    for name in spec.outer_input_names()[1:]:
        blocked = [why for state, why in found.undefined.items() if name in reached[state]]
        result.append(found.undefined_inputs.get(name) or (blocked[0] if blocked else None))
    for i, sequence in enumerate(spec.sequences):
        if result[i] is None:
            taps = {tap: found.sequences.get((sequence.name, tap)) for tap in sequence.taps}
            result[i] = _sequence(run, sequence.name, taps)
    n = len(spec.sequences)
    for i, state in enumerate(spec.states, n):
        if result[i] is None:
            result[i] = _initial(run, found.windows.get(state.name), pieces.get(state.name))
    n += len(spec.states) + len(spec.untraced)
    for i, role in enumerate(spec.invariants, n):
        if result[i] is None:
            result[i] = found.invariants.get(role.name)
    return result


def _initial(run: Run, window: Variable | None, pieces: Pieces | None) -> Variable | None:
    """The cotangent of a state's initial rows."""
    if window is not None and run.is_truncated:
        window = initial_rows(window, run.taken - run.n_steps)
    given = None if pieces is None else pieces.initial
    return total([g for g in (window, given) if g is not None])


def _sequence(run: Run, name: str, taps: Mapping[int, Variable | None]) -> Variable | None:
    """The cotangent of a sequence from those of the rows that were read, by tap."""
    x: Any = run.inputs[name]
    rows: dict[int, Any] = {tap: g for tap, g in taps.items() if g is not None}
    if not rows:
        return None
    if list(rows) == [0] and run.reads_before is None and _has_rows(x, run.n_steps):
        return rows[0]
    dtype = next(iter(rows.values())).type.dtype
    result: Any = zeros_like(x, dtype=dtype)
    first: Any = 0 if run.reads_before is None else run.reads_before
    for tap, g in rows.items():
        start = first + tap
        result = result[start : start + run.n_steps].inc(g)
    return result


def _has_rows(x: Variable, n: Variable) -> bool:
    """True if an array is known to have ``n`` rows."""
    if isinstance(x, Constant) or x.type.shape[0] is not None:
        return known_size(n) == x.type.shape[0]
    node = made_as(n).owner
    if node is not None and isinstance(node.op, Shape_i) and node.op.i == 0 and node.inputs[0] is x:
        return True
    return x.owner is not None and isinstance(x.owner.op, Subtensor) and _is_first(x.owner, n)


def _is_first(node: Apply, n: Variable) -> bool:
    """True if a node takes the first ``n`` rows of an array; the loop checks that there are as many."""
    op: Any = node.op
    first, *others = op.idx_list
    rows = (
        first.start in (None, 0) and first.stop == SYMBOLIC and first.step in (None, 1) and not first.single
    )
    return rows and all(entry == FULL for entry in others) and node.inputs[1:] == [n]
