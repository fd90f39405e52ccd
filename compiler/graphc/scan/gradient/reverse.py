# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reverse mode: the cotangents of a loop's inputs.

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

Let a state have window K; iteration `s` reads rows ``K + s - k`` and writes rows ``K + s - w``. The reverse
loop goes from the last iteration to the first. It has a state for the cotangents of the rows, which are its
own rows in opposite order: at the time of iteration `s` its window holds the cotangents of rows ``K + s - k``
for ``k = 0 .. K - 1``, k = 0 at the oldest tap. From these it takes the cotangents of what was written, pulls
them back through the body, and

- adds what belongs to row ``K + s - k`` to the window, by a write at offset ``k - K``;
- starts row `s`, the new row (k = K), with what belongs to it;
- drops what belongs to a row that iteration `s` overwrote: the old value had no part in it.

With K = 1 this is a state with one tap and one write; with more taps it is a mit-mot. Both loops store rows
at the same places, as the reverse loop has the opposite ``reverse`` flag. Values of the forward loop that are
needed are read from its traces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from graphc.gradient.accumulate import Cotangents, accumulated
from graphc.gradient.connectivity import Paths
from graphc.graph.basic import Constant, Maybe, Variable, Variables
from graphc.graph.replace import rebuild
from graphc.graph.tensor.convert import constant
from graphc.graph.tensor.type import TensorType
from graphc.graph.traversal import ancestors, toposort
from graphc.graph.undefined import is_disconnected, is_discrete, is_null, kind_of, null_type
from graphc.ops.create import zeros, zeros_like
from graphc.ops.derivatives import gradient_dtype, match_dtype, total
from graphc.ops.ifelse import IfElse
from graphc.ops.math import maximum
from graphc.ops.shape import Shape_i, known_size, made_as, sizes_of
from graphc.ops.shaping import reshape, shape_padleft, specify_shape
from graphc.ops.subtensor import FULL, SYMBOLIC, Subtensor
from graphc.scan.gradient.forward import ScanBuilder
from graphc.scan.gradient.sparse import Pieces, output_pieces, state_pieces
from graphc.scan.gradient.traced import pullback_with_traces
from graphc.scan.gradient.undone import Key, Run, initial_rows, undo_updates
from graphc.scan.mappings import inner_sources, sources
from graphc.scan.spec import State
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc.graph.basic import Apply
    from graphc.graph.type import Type


def add_values(builder: ScanBuilder, run: Run) -> None:
    """Declare what the expressions in ``builder`` use of the forward loop.

    Results of the forward iteration are read from its traces, where these hold them; other expressions are
    computed again from the sequences, from the rows that the iteration read, and from the invariants. Rows
    that are changed in part are made from the last one (see `graphc.scan.gradient.undone`). What cannot be
    computed again is returned by a second forward loop: values that depend on untraced states, rows that were
    overwritten later, and what is put back into rows.
    """
    inner = set(run.op.inner_inputs)
    stored = _stored(run, inner)
    put_back = undo_updates(builder, run, set(ancestors(builder.results, inner | set(stored))))
    known = inner | set(stored) | set(put_back)
    needed = set(ancestors(builder.results, known))
    _add_traces(builder, run, needed, stored)
    _add_inputs(builder, run, needed)
    lost = list(dict.fromkeys([*put_back, *_lost(builder, run, needed, known)]))
    for v, trace in zip(lost, run.recorded(lost) if lost else [], strict=True):
        builder.sequence(v.name or "value", trace, {0: v})


def _stored(run: Run, inner: set[Variable]) -> dict[Variable, tuple[str, int]]:
    """Results of an iteration that traces hold, with the name and tap of the trace."""
    result: dict[Variable, tuple[str, int]] = {}
    names = {role.name for role in (*run.op.spec.states, *run.op.spec.outputs)}
    for (name, write), y in run.inner_outputs.items():
        if name in names and y not in inner and not isinstance(y, Constant):
            tap = run.row_of(name, write)
            if tap is not None:
                result.setdefault(y, (name, tap))
    return result


def _add_traces(
    builder: ScanBuilder, run: Run, needed: set[Variable], stored: dict[Variable, tuple[str, int]]
) -> None:
    """Rows of states and outputs."""
    taps: dict[str, dict[int, Variable]] = {}
    for y, (name, tap) in stored.items():
        if y in needed:
            taps.setdefault(name, {})[tap] = y
    for state in run.op.spec.states:
        for offset in state.taps:
            x, place = run.inner_inputs[state.name, offset], run.row_read(state.name, offset)
            if x in needed and place is not None:
                taps.setdefault(state.name, {})[place] = x
    for name, found in taps.items():
        builder.sequence(name, run.trace(name), found)


def _add_inputs(builder: ScanBuilder, run: Run, needed: set[Variable]) -> None:
    """Rows of sequences, and invariants."""
    inner = run.inner_inputs
    for sequence in run.op.spec.sequences:
        taps = {
            tap: inner[sequence.name, tap] for tap in sequence.taps if inner[sequence.name, tap] in needed
        }
        if taps:
            builder.sequence(sequence.name, run.sequence(sequence.name), taps)
    for role in run.op.spec.invariants:
        if inner[role.name, 0] in needed:
            builder.invariant(role.name, run.inputs[role.name], inner[role.name, 0])


def _lost(
    builder: ScanBuilder, run: Run, needed: set[Variable], blockers: set[Variable]
) -> Iterator[Variable]:
    """Variables to record: the first tensors that depend on what no trace holds."""
    spec, inner = run.op.spec, run.inner_inputs
    roots = [inner[role.name, 0] for role in spec.untraced]
    roots += [inner[s.name, tap] for s in spec.states for tap in s.taps if run.row_read(s.name, tap) is None]
    roots = [v for v in roots if v in needed]
    yield from (v for v in roots if isinstance(v.type, TensorType))
    others = {v for v in roots if not isinstance(v.type, TensorType)}
    if not others:
        return
    for node in toposort(builder.results, blockers=blockers):
        if any(x in others for x in node.inputs):
            yield from (y for y in node.outputs if isinstance(y.type, TensorType))
            others.update(y for y in node.outputs if not isinstance(y.type, TensorType))


@record()
class Adjoints:
    """Cotangents of a run's inputs.

    Attributes:
        sequences: by name and tap, one row an iteration, stored as the run stores rows.
        windows: by state, the rows before the first iteration, oldest first.
        invariants: by name.
        undefined: by state, why no cotangent passes through it: a variable of `NullType`.
        undefined_inputs: the same for sequences and invariants.
    """

    sequences: dict[Key, Variable] = field(default_factory=dict)
    windows: dict[str, Variable] = field(default_factory=dict)
    invariants: dict[str, Variable] = field(default_factory=dict)
    undefined: dict[str, Variable] = field(default_factory=dict)
    undefined_inputs: dict[str, Variable] = field(default_factory=dict)


@record()
class _Carried:
    """The rows of a state in the reverse loop: variables for its taps, and the first value of its window."""

    state: State
    rows: dict[int, Variable]
    start: Variable


class Adjoint:
    """Builds the reverse loop of a run.

    Args:
        run: the iterations.
        pieces: cotangents of the states' traces, by name.
        steps: cotangents of outputs, by name: one row an iteration.
        last: cotangents of outputs in the last iteration, by name: a row with a leading axis of size 1.
    """

    def __init__(
        self,
        run: Run,
        pieces: Mapping[str, Pieces],
        steps: Mapping[str, Variable],
        last: Mapping[str, Variable],
    ) -> None:
        self.run, self.spec = run, run.op.spec
        self.pieces, self.steps, self.last = pieces, steps, last
        self.inner, self.rows = run.inner_inputs, run.inner_outputs
        self.builder = ScanBuilder()
        self.carried: dict[str, _Carried] = {}
        self.result = Adjoints()

    def build(self) -> Adjoints:
        """The cotangents."""
        live = self._live()
        seeds = self._seeds(live)
        self._terms = self._pulled(live, seeds)
        states = {name: self._add_state(carried) for name, carried in self.carried.items()}
        sequences, invariants = self._add_sequences(), self._add_invariants()
        if self.builder.empty:
            return self.result
        add_values(self.builder, self.run)
        op = self.run.op
        options = {"name": f"gradient of {op.name or 'scan'}", "reverse": not op.reverse, "unroll": op.unroll}
        found: Any = self.builder.build(self.run.n_steps, **options)
        self.result.sequences = {key: found[name] for key, name in sequences.items()}
        # The newest rows of the reverse loop: it runs the other way, and so do its stored rows.
        self.result.invariants = {
            key: found[name][-1 if op.reverse else 0] for key, name in invariants.items()
        }
        for key, name in states.items():
            rows = self.carried[key].state.window
            trace = found[name]
            self.result.windows[key] = trace[-rows:][::-1] if op.reverse else trace[:rows]
        return self.result

    # -- which states matter -------------------------------------------------------------------------------

    def _live(self) -> set[str]:
        """States and outputs that have cotangents, and the states that they depend on."""
        direct = inner_sources(self.run.op)
        live = {*self.steps, *self.last}
        live |= {name for name, p in self.pieces.items() if p.steps is not None or p.window is not None}
        # What no cotangent is passed through here is found by the same walk.
        blocked = {role.name for role in self.spec.untraced}
        todo = list(live)
        while todo:
            for name in direct[todo.pop()]:
                state = next((s for s in self.spec.states if s.name == name), None)
                if state is not None and name not in live and self._is_continuous(state):
                    live.add(name)
                    todo.append(name)
                if name in blocked and name not in self.result.undefined and self._is_float(name):
                    self.result.undefined[name] = untraced_gradient(self.run.op, name)
        return live

    def _is_continuous(self, state: State) -> bool:
        return not is_discrete(self.inner[state.name, state.taps[0]])

    def _is_float(self, name: str) -> bool:
        return kind_of(self.inner[name, 0]) in ("f", "c")

    # -- what comes in -------------------------------------------------------------------------------------

    def _seeds(self, live: set[str]) -> dict[Variable, Variable]:
        """Cotangents of the inner outputs, in terms of the reverse loop's variables."""
        seeds: dict[Variable, Variable] = {}

        def add(y: Variable, g: Variable | None) -> None:
            if g is not None:
                seeds[y] = seeds[y] + g if y in seeds else g

        direct = inner_sources(self.run.op)
        read = {name for result in live for name in direct[result]}
        for state in self.spec.states:
            if state.name in live:
                self._seed_state(state, state.name in read, add)
        for output in self.spec.outputs:
            if output.name in live:
                add(self.rows[output.name, 0], self._seed_output(output.name))
        return seeds

    def _seed_state(self, state: State, is_read: bool, add: Any) -> None:
        pieces = self.pieces.get(state.name, Pieces())
        given = self._sequence(f"d_{state.name}", self._row_type(state), pieces.steps)
        rows: dict[int, Variable] = {}
        if is_read or pieces.window is not None or len(state.writes) > 1:
            type_ = self._row_type(state)
            rows = {k: type_.make_variable(f"d_{state.name}") for k in range(state.window)}
            start = self._zeros(state) if pieces.window is None else pieces.window
            self.carried[state.name] = _Carried(state, rows, start)
        for write in state.writes:
            g = rows.get(-write)
            if write == state.writes[0] and given is not None:
                g = given if g is None else g + given
            add(self.rows[state.name, write], g)

    def _seed_output(self, name: str) -> Variable | None:
        y = self.rows[name, 0]
        g: Any = self._sequence(f"d_{name}", y.type, self.steps.get(name))
        if name in self.last:
            # The first iteration of the reverse loop reads this, all others read zeros.
            once = y.type.make_variable(f"d_{name}")
            self.builder.state(f"last_{name}", self.last[name], {-1: once}, {0: zeros_like(once)})
            g = once if g is None else g + once
        return g

    def _sequence(self, name: str, row: Type, value: Variable | None) -> Variable | None:
        if value is None:
            return None
        inner = row.make_variable(name)
        self.builder.sequence(name, value, {0: inner})
        return inner

    def _row_type(self, state: State) -> TensorType:
        """The type of a row with all static sizes that are known."""
        types = [self.inner[state.name, tap].type for tap in state.taps]
        types += [self.rows[state.name, write].type for write in state.writes]
        sizes = [[t.shape[axis] for t in types] for axis in range(types[0].ndim)]
        shape = [next((size for size in known if size is not None), None) for known in sizes]
        return TensorType(types[0].dtype, shape)

    def _zeros(self, state: State) -> Variable:
        """A window of zeros."""
        return zeros_like(self.run.inputs[state.name])

    # -- the body ------------------------------------------------------------------------------------------

    def _pulled(self, live: set[str], seeds: dict[Variable, Variable]) -> dict[Key, Variable]:
        """Cotangents of the inner inputs; those of states that are undefined go to `Adjoints.undefined`."""
        if not seeds:
            return {}
        wanted = dict(self._wanted(live))
        cotangents = Cotangents(Paths(seeds, list(wanted.values())), seeds)
        cotangents.run()
        result: dict[Key, Variable] = {}
        for key, x in wanted.items():
            g = cotangents.of(x) if x in cotangents.reached else None
            if is_null(g):
                undefined = self.result.undefined if key[0] in self.carried else self.result.undefined_inputs
                undefined[key[0]] = g
            elif g is not None and not is_disconnected(g):
                result[key] = g
        return result

    def _wanted(self, live: set[str]) -> Iterable[tuple[Key, Variable]]:
        """The inner inputs that may have cotangents."""
        constant = {name for name, value in self.run.inputs.items() if isinstance(value, Constant)}
        for sequence in self.spec.sequences:
            if sequence.name not in constant:
                yield from (((sequence.name, tap), self.inner[sequence.name, tap]) for tap in sequence.taps)
        for state in self.spec.states:
            if state.name in live:
                yield from (((state.name, tap), self.inner[state.name, tap]) for tap in state.taps)
        for role in self.spec.invariants:
            if role.name not in constant and kind_of(self.inner[role.name, 0]):
                yield (role.name, 0), self.inner[role.name, 0]

    # -- what goes out -------------------------------------------------------------------------------------

    def _add_state(self, carried: _Carried) -> str:
        """Declare the rows of a state in the reverse loop; returns the state's name there."""
        state, rows = carried.state, carried.rows
        window = state.window
        writes: dict[int, Variable] = {}
        read = {0, *(-write for write in state.writes)}
        for k in range(1, window + 1):
            term = self._terms.get((state.name, -k))
            if k < window and -k not in state.writes:
                if term is None:
                    continue
                read.add(k)
                term = rows[k] + term
            writes[k - window] = zeros_like(rows[0]) if term is None else term
        taps = {k - window: rows[k] for k in sorted(read)}
        return self.builder.state(f"d_{state.name}", carried.start, taps, writes)

    def _add_sequences(self) -> dict[Key, str]:
        """Declare the cotangents of the sequences' rows; returns their names in the reverse loop."""
        return {
            (sequence.name, tap): self.builder.output(f"d_{sequence.name}", self._row(sequence.name, tap))
            for sequence in self.spec.sequences
            for tap in sequence.taps
            if (sequence.name, tap) in self._terms
        }

    def _row(self, name: str, tap: int) -> Any:
        """The cotangent of a row. It is known to be as large where a condition or a loop of each iteration
        decides about it: so are the rows of which there are none.
        """
        term, x = self._terms[name, tap], self.inner[name, tap]
        if not isinstance(term.type, TensorType) or None not in x.type.shape:
            return term
        inside = any(isinstance(node.op, IfElse | type(self.run.op)) for node in self.run.op.fgraph.nodes)
        return specify_shape(term, sizes_of(x)) if inside else term

    def _add_invariants(self) -> dict[str, str]:
        """Declare the sums of the invariants' cotangents; returns their names in the reverse loop."""
        result = {}
        for role in self.spec.invariants:
            term: Any = self._terms.get((role.name, 0))
            if term is None:
                continue
            x = self.inner[role.name, 0]
            dtype = term.type.dtype if is_discrete(x) else gradient_dtype(x)
            old = x.type.clone(dtype=dtype).make_variable(f"d_{role.name}")
            start = zeros((1, *sizes_of(self.run.inputs[role.name])), dtype=dtype)
            new = accumulated([old, term])
            assert new is not None
            result[role.name] = self.builder.state(f"d_{role.name}", start, {-1: old}, {0: new})
        return result


def untraced_gradient(op: object, name: str) -> Variable:
    """The placeholder for derivatives that would pass through an untraced state."""
    return null_type(
        f"the untraced state '{name}' of {op} keeps only its last value, so no gradient passes through "
        "it; bound the number of iterations (max_steps=) so that all can be kept, or cut its gradient with "
        "disconnected_grad"
    )


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


def pullback(op: Any, inputs: Variables, outputs: Variables, cotangents: Maybe) -> Terms:
    """Cotangents of the outer inputs of a `Scan` from those of its outer outputs; None is zero.

    The reverse loop goes over the iterations that were made, or over the last ``op.truncate_gradient`` of
    them, and reads the traces of the forward loop (see `graphc.scan.gradient.reverse`). A cotangent that is
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
