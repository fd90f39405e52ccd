# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Forward mode: the tangents of a loop's outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphc.gradient.forward import tangents_of
from graphc.graph.basic import Maybe, Variable, Variables
from graphc.graph.replace import rebuild
from graphc.graph.undefined import is_discrete, kind_of
from graphc.names import unique_name
from graphc.ops.create import zeros_like
from graphc.ops.derivatives import gradient_dtype
from graphc.scan import spec as roles
from graphc.scan.mappings import inner_sources
from graphc.scan.op import Scan


class ScanBuilder:
    """Collects the roles of a loop, then builds and applies it.

    Each role is given with the variables that stand for it in expressions of the body. These may be any
    variables, results of other graphs too: what computes them is not copied. The loop gets a private copy of
    its body.
    """

    def __init__(self) -> None:
        self._taken = {"n_steps", "until"}
        self._sequences: list[tuple[roles.Sequence, list[Variable], Variable]] = []
        self._states: list[tuple[roles.State, list[Variable], Variable, list[Variable]]] = []
        self._outputs: list[tuple[roles.Output, Variable]] = []
        self._untraced: list[tuple[roles.Untraced, Variable, Variable, Variable]] = []
        self._invariants: list[tuple[roles.Invariant, Variable, Variable]] = []
        self._until: list[Variable] = []

    def unique(self, name: str) -> str:
        """``name``, or ``name`` with a number, that no role has; it is taken from now on."""
        free = unique_name(name, self._taken)
        self._taken.add(free)
        return free

    def sequence(self, name: str, value: Variable, taps: Mapping[int, Variable]) -> str:
        """An array, and the variables that stand for row ``t + tap`` of it."""
        name, ordered = self.unique(name), sorted(taps)
        self._sequences.append((roles.Sequence(name, tuple(ordered)), [taps[tap] for tap in ordered], value))
        return name

    def state(
        self, name: str, initial: Variable, taps: Mapping[int, Variable], writes: Mapping[int, Variable]
    ) -> str:
        """A state: its initial rows, the variables that stand for its taps, and what is written."""
        name, ordered, written = self.unique(name), sorted(taps), sorted(writes)
        role = roles.State(name, tuple(ordered), tuple(written))
        entry = (role, [taps[tap] for tap in ordered], initial, [writes[write] for write in written])
        self._states.append(entry)
        return name

    def output(self, name: str, row: Variable) -> str:
        """A result of each iteration."""
        name = self.unique(name)
        self._outputs.append((roles.Output(name), row))
        return name

    def untraced(self, name: str, initial: Variable, old: Variable, new: Variable) -> str:
        """A value that is handed on: its first value, the variable that stands for it, and its next value."""
        name = self.unique(name)
        self._untraced.append((roles.Untraced(name), old, initial, new))
        return name

    def invariant(self, name: str, value: Variable, inner: Variable) -> str:
        """A value that is the same in all iterations, and the variable that stands for it."""
        name = self.unique(name)
        self._invariants.append((roles.Invariant(name), inner, value))
        return name

    def until(self, condition: Variable) -> None:
        """Stop after an iteration in which ``condition`` is true."""
        self._until = [condition]

    def substitute(self, replaced: Mapping[Variable, Variable]) -> None:
        """Uses other variables, or expressions, in what an iteration computes so far."""
        found = iter(rebuild(self.results, dict(replaced), copy_nodes=False, strict=False))
        self._states = [
            (role, taps, initial, [next(found) for _ in written])
            for role, taps, initial, written in self._states
        ]
        self._outputs = [(role, next(found)) for role, _ in self._outputs]
        self._untraced = [(role, old, initial, next(found)) for role, old, initial, _ in self._untraced]
        self._until = list(found)

    @property
    def results(self) -> list[Variable]:
        """Results of an iteration, so far."""
        written = [v for _, _, _, values in self._states for v in values]
        rows = [row for _, row in self._outputs]
        return [*written, *rows, *[new for _, _, _, new in self._untraced], *self._until]

    @property
    def empty(self) -> bool:
        """True if the loop computes nothing."""
        return not (self._states or self._outputs or self._untraced)

    def build(self, n_steps: Variable, **options: Any) -> dict[str, Variable]:
        """Apply the loop.

        Args:
            n_steps: number of iterations.
            options: keyword arguments of `Scan`.

        Returns:
            The outer outputs by name.
        """
        read = [v for _, taps, _ in self._sequences for v in taps]
        read += [v for _, taps, _, _ in self._states for v in taps]
        read += [old for _, old, _, _ in self._untraced] + [inner for _, inner, _ in self._invariants]
        spec = roles.ScanSpec(
            tuple(entry[0] for entry in self._sequences),
            tuple(entry[0] for entry in self._states),
            tuple(entry[0] for entry in self._outputs),
            tuple(entry[0] for entry in self._untraced),
            tuple(entry[0] for entry in self._invariants),
            bool(self._until),
        )
        inner, results = _private(read, self.results)
        op = Scan(spec, inner, results, **options)
        outer = [value for _, _, value in self._sequences] + [entry[2] for entry in self._states]
        outer += [entry[2] for entry in self._untraced] + [value for _, _, value in self._invariants]
        outputs = op(n_steps, *outer, return_list=True)
        return dict(zip(spec.outer_output_names(), outputs, strict=True))


def _private(read: Sequence[Variable], results: Sequence[Variable]) -> tuple[list[Variable], list[Variable]]:
    """Fresh roots for what is read, and copies of the results that are computed from these roots."""
    fresh: list[Variable] = []
    memo: dict[Variable, Variable] = {}
    for v in read:
        root = v.type.make_variable(v.name)
        fresh.append(root)
        memo.setdefault(v, root)
    return fresh, rebuild(results, dict(memo), copy_nodes=True, strict=False)


Key = tuple[str, int]


def pushforward(op: Any, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
    """Tangents of the outer outputs of a `Scan` from those of its outer inputs; None is zero.

    One loop computes the states and their tangents together; it runs in the same direction and stops where
    the original one stops. The compiler merges the two. A gradient through the tangents obeys
    ``truncate_gradient`` and ``checkpoint_every`` as the original loop's gradient does; the tangents
    themselves are those of all iterations.
    """
    given = {
        name: t
        for name, t in zip(op.spec.outer_input_names(), tangents, strict=True)
        if t is not None and name != "n_steps"
    }
    return _Tangents(op, inputs, given).build() if given else [None] * len(outputs)


class _Tangents:
    """Builds the loop."""

    def __init__(self, op: Any, inputs: Sequence[Variable], given: Mapping[str, Variable]) -> None:
        self.op, self.spec, self.given = op, op.spec, given
        self.inputs = dict(zip(self.spec.outer_input_names(), inputs, strict=True))
        self.inner = dict(zip(self.spec.inner_input_names(), op.inner_inputs, strict=True))
        self.rows = dict(zip(self.spec.inner_output_names(), op.inner_outputs, strict=True))
        self.builder = ScanBuilder()
        self.names: dict[str, str] = {}

    def build(self) -> list[Variable | None]:
        """The tangents of the outer outputs."""
        active = self._active()
        self.points = {key: _place(x) for key, x in self.inner.items() if key[0] in active}
        wrt = [self.inner[key] for key in self.points]
        found, _ = tangents_of(self.op.inner_outputs, wrt, list(self.points.values()))
        self._copy_body()
        self._add_inputs(active)
        for state in self.spec.states:
            if state.name in active:
                self._add_state(state, found)
        for role in self.spec.untraced:
            if role.name in active:
                old, new = self.inner[role.name, 0], found.get(self.rows[role.name, 0])
                start = self.given.get(role.name)
                start = zeros_like(self.inputs[role.name]) if start is None else start
                place = self.points[role.name, 0]
                new = zeros_like(old) if new is None else new
                self.names[role.name] = self.builder.untraced(f"t_{role.name}", start, place, new)
        for role in self.spec.outputs:
            t = found.get(self.rows[role.name, 0])
            if t is not None:
                self.names[role.name] = self.builder.output(f"t_{role.name}", t)
        return self._results()

    def _active(self) -> set[str]:
        """Names of inputs that have tangents in some iteration."""
        direct = inner_sources(self.op)
        carried = (*self.spec.states, *self.spec.untraced)
        continuous = [role.name for role in carried if self._is_continuous(role)]
        blocked = {role.name for role in carried} - set(continuous)
        active = {name for name in self.given if name not in blocked}
        while True:
            more = {name for name in continuous if name not in active and direct[name] & active}
            if not more:
                return active
            active |= more

    def _is_continuous(self, role: Any) -> bool:
        x = self.inner[role.name, getattr(role, "taps", (0,))[0]]
        return kind_of(x) != "" and not is_discrete(x)

    def _copy_body(self) -> None:
        """The states and whatever they are computed from, as in the original loop."""
        spec, inner, rows = self.spec, self.inner, self.rows
        for sequence in spec.sequences:
            taps = {tap: inner[sequence.name, tap] for tap in sequence.taps}
            self.builder.sequence(sequence.name, self.inputs[sequence.name], taps)
        for state in spec.states:
            taps = {tap: inner[state.name, tap] for tap in state.taps}
            writes = {write: rows[state.name, write] for write in state.writes}
            self.builder.state(state.name, self.inputs[state.name], taps, writes)
        for role in spec.untraced:
            self.builder.untraced(role.name, self.inputs[role.name], inner[role.name, 0], rows[role.name, 0])
        for role in spec.invariants:
            self.builder.invariant(role.name, self.inputs[role.name], inner[role.name, 0])
        if spec.is_while:
            self.builder.until(rows["until", 0])

    def _add_inputs(self, active: set[str]) -> None:
        """Tangents of sequences and invariants."""
        for sequence in self.spec.sequences:
            if sequence.name in active:
                taps = {tap: self.points[sequence.name, tap] for tap in sequence.taps}
                self.builder.sequence(f"t_{sequence.name}", self.given[sequence.name], taps)
        for role in self.spec.invariants:
            if role.name in active:
                self.builder.invariant(f"t_{role.name}", self.given[role.name], self.points[role.name, 0])

    def _add_state(self, state: Any, found: Mapping[Variable, Variable | None]) -> None:
        start = self.given.get(state.name)
        start = zeros_like(self.inputs[state.name]) if start is None else start
        taps = {tap: self.points[state.name, tap] for tap in state.taps}
        writes: dict[int, Variable] = {}
        for write in state.writes:
            t = found.get(self.rows[state.name, write])
            writes[write] = zeros_like(taps[state.taps[0]]) if t is None else t
        self.names[state.name] = self.builder.state(f"t_{state.name}", start, taps, writes)

    def _results(self) -> list[Variable | None]:
        if not self.names:
            return [None] * len(self.spec.outer_output_names())
        op = self.op
        found = self.builder.build(
            self.inputs["n_steps"],
            name=f"tangent of {op.name or 'scan'}",
            reverse=op.reverse,
            unroll=op.unroll,
            truncate_gradient=op.truncate_gradient,
            checkpoint_every=op.checkpoint_every,
        )
        names = (self.names.get(name) for name in self.spec.outer_output_names())
        return [None if name is None else found[name] for name in names]


def _place(x: Variable) -> Variable:
    """A root for the tangent of an inner input."""
    name = None if x.name is None else f"t_{x.name}"
    return x.type.clone(dtype=gradient_dtype(x)).make_variable(name)
