# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reverse mode: the cotangents of a loop's inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphc.graph.basic import Constant, Variable
from graphc.graph.undefined import is_discrete, kind_of
from graphc.ops.bounds import FULL, SYMBOLIC
from graphc.ops.create import zeros_like
from graphc.ops.derivatives import match_dtype, total
from graphc.ops.shape import Shape_i
from graphc.ops.sizes import known_size
from graphc.ops.subtensor import Subtensor
from graphc.scan.gradient.adjoint import Adjoint, Adjoints, untraced_gradient
from graphc.scan.gradient.checkpoint import segment_adjoints
from graphc.scan.gradient.run import Run
from graphc.scan.gradient.sparse import Pieces, output_pieces, state_pieces
from graphc.scan.gradient.traced import pullback_with_traces
from graphc.scan.gradient.truncate import initial_rows
from graphc.scan.mappings import sources

if TYPE_CHECKING:
    from graphc.graph.basic import Apply

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
    value. With ``op.checkpoint_every`` the traces are not read; see `graphc.scan.gradient.checkpoint`.

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
    """Whether an array is known to have ``n`` rows."""
    if isinstance(x, Constant) or x.type.shape[0] is not None:
        return known_size(n) == x.type.shape[0]
    node = n.owner
    if node is not None and isinstance(node.op, Shape_i) and node.op.i == 0 and node.inputs[0] is x:
        return True
    return x.owner is not None and isinstance(x.owner.op, Subtensor) and _is_first(x.owner, n)


def _is_first(node: Apply, n: Variable) -> bool:
    """Whether a node takes the first ``n`` rows of an array; the loop checks that there are as many."""
    op: Any = node.op
    first, *others = op.idx_list
    rows = (
        first.start in (None, 0) and first.stop == SYMBOLIC and first.step in (None, 1) and not first.single
    )
    return rows and all(entry == FULL for entry in others) and node.inputs[1:] == [n]
