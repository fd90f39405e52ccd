# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Forward mode: the tangents of a loop's outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphc.gradient.forward import tangents_of
from graphc.graph.basic import Variable
from graphc.graph.undefined import is_discrete, kind_of
from graphc.ops.create import zeros_like
from graphc.ops.derivatives import gradient_dtype
from graphc.scan.gradient.builder import ScanBuilder
from graphc.scan.mappings import inner_sources

Key = tuple[str, int]


def pushforward(
    op: Any,
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    tangents: Sequence[Variable | None],
) -> list[Variable | None]:
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
