# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values of the forward loop that the body of a reverse loop reads."""

from __future__ import annotations

from collections.abc import Iterator

from graphc.graph.basic import Constant, Variable
from graphc.graph.tensor.type import TensorType
from graphc.graph.traversal import ancestors, toposort
from graphc.scan.gradient.builder import ScanBuilder
from graphc.scan.gradient.run import Run
from graphc.scan.gradient.undone import undo_updates


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
