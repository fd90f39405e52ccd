# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reverse loop.

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

Values of the forward loop that the body of a reverse loop reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from graphc.gradient.accumulate import Cotangents, accumulated
from graphc.gradient.connectivity import Paths
from graphc.graph.basic import Constant, Variable
from graphc.graph.tensor.type import TensorType
from graphc.graph.traversal import ancestors, toposort
from graphc.graph.undefined import is_disconnected, is_discrete, is_null, kind_of, null_type
from graphc.ops.create import zeros, zeros_like
from graphc.ops.derivatives import gradient_dtype
from graphc.ops.sizes import sizes_of
from graphc.scan.gradient.builder import ScanBuilder
from graphc.scan.gradient.run import Key, Run
from graphc.scan.gradient.sparse import Pieces
from graphc.scan.gradient.undone import undo_updates
from graphc.scan.mappings import inner_sources
from graphc.scan.spec import State
from graphc_runtime.record import record

if TYPE_CHECKING:
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
            (sequence.name, tap): self.builder.output(f"d_{sequence.name}", self._terms[sequence.name, tap])
            for sequence in self.spec.sequences
            for tap in sequence.taps
            if (sequence.name, tap) in self._terms
        }

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
