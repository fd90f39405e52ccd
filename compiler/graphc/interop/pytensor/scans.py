# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Scan``: PyTensor's positional groups as graphc's named roles.

PyTensor's buffers hold initial rows and have room for the results; graphc takes the initial rows alone and
returns all rows. Where a buffer's length is not shown to be that of all rows, the rows that it would hold are
selected when the graph runs.

Sizes of PyTensor's graph are sums of terms here, which tell a number of steps plus a constant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pytensor.graph.basic import Apply, Variable

import graphc.tensor as pt
from graphc.interop.pytensor.convert import Converter, Values, converts, static_int
from graphc.scan.op import Scan
from graphc.scan.spec import Invariant, Output, ScanSpec, State, Untraced
from graphc.scan.spec import Sequence as Rows

if TYPE_CHECKING:
    from pytensor.graph.op import Op

    from graphc.graph.tensor import TensorLike
    from graphc.interop.pytensor.convert import Result


# A constant, and how often each variable is added.
Sum = tuple[int, "Counter[Variable]"]
_HAND_THROUGH = ("TensorFromScalar", "ScalarFromTensor")


def length_of(buffer: Variable) -> Variable | int | None:
    """The number of rows of a buffer, if known, or if the buffer is an allocation of which rows were set."""
    if buffer.type.shape[0] is not None:
        return int(buffer.type.shape[0])
    node = buffer.owner
    name = type(node.op).__name__ if node is not None else ""
    if name == "IncSubtensor":
        return length_of(node.inputs[0])
    if name == "AllocEmpty":
        return node.inputs[0]
    if name == "Alloc" and len(node.inputs) == buffer.type.ndim + 1:
        return node.inputs[1]
    return None


def is_length(length: Variable | int | None, steps: Variable, more: int) -> bool:
    """True if the length is shown to be the number of steps and `more`; False means that it is not known."""
    if length is None:
        return False
    constant, terms = _sum(steps)
    return (_sum(length) if isinstance(length, Variable) else (length, Counter())) == (constant + more, terms)


def _sum(size: Variable) -> Sum:
    """A size as a constant and variables, which are compared by identity."""
    known = static_int(size)
    if known is not None:
        return known, Counter()
    node = size.owner
    if node is None:
        return 0, Counter([size])
    scalar = getattr(node.op, "scalar_op", node.op)
    name = type(scalar).__name__
    if name == "Cast" or name in _HAND_THROUGH:
        return _sum(node.inputs[0])
    if name in ("Add", "Sub"):
        constant, terms = _sum(node.inputs[0])
        sign = 1 if name == "Add" else -1
        for term in node.inputs[1:]:
            other, its = _sum(term)
            constant += sign * other
            for variable, count in its.items():
                terms[variable] += sign * count
        return constant, Counter({variable: count for variable, count in terms.items() if count})
    static = _static_size(size)
    return (0, Counter([size])) if static is None else (static, Counter())


def _static_size(size: Variable) -> int | None:
    """The number that a `Shape_i`, or an element of a `Shape`, is."""
    node = size.owner
    name = type(node.op).__name__
    if name == "Shape_i":
        return node.inputs[0].type.shape[node.op.i]
    if name == "Subtensor" and len(node.inputs) == 2:
        shape, axis = node.inputs[0].owner, static_int(node.inputs[1])
        if shape is not None and type(shape.op).__name__ == "Shape" and axis is not None:
            return shape.inputs[0].type.shape[axis]
    return None


# From the rows of a role to what stands for PyTensor's result.
Finish = Callable[[Any], Any]


class _Loop:
    """A scan in the making: roles, and what belongs to each in the order of the spec."""

    def __init__(self, op: Op, node: Apply, inputs: Values, c: Converter) -> None:
        self.op, self.info, self.node = op, op.info, node
        self.inputs, self.pytensor_inputs = inputs, node.inputs
        self.steps = pt.cast(inputs[0], "int64")
        self.inner_inputs, outputs = op.fgraph.inputs, list(op.fgraph.outputs)
        self.condition = outputs.pop() if self.info.as_while else None
        self.inner_outputs = outputs
        self.c = Converter(c)
        self.sequences: list[Rows] = []
        self.states: list[State] = []
        self.outputs: list[Output] = []
        self.untraced: list[Untraced] = []
        self.invariants: list[Invariant] = []
        # Inner inputs, inner outputs and outer inputs of each kind of role.
        self.reads: dict[str, Values] = {kind: [] for kind in ("sequence", "state", "untraced", "invariant")}
        self.outer: dict[str, Values] = {kind: [] for kind in self.reads}
        self.writes: dict[str, list[Variable]] = {kind: [] for kind in ("state", "output", "untraced")}
        self.finish: list[tuple[str, Finish]] = []

    def sequence(self, name: str, row: Variable, rows: object) -> None:
        self.sequences.append(Rows(name))
        self.reads["sequence"].append(self.c.new_input(row))
        self.outer["sequence"].append(rows)

    def state(
        self, name: str, taps: dict[int, Variable | None], writes: dict[int, Variable], initial: Any
    ) -> None:
        """A state; a tap without a variable is there to make the window as long as the initial rows."""
        self.states.append(State(name, tuple(sorted(taps)), tuple(sorted(writes))))
        self.outer["state"].append(initial)
        for tap in sorted(taps):
            variable = taps[tap]
            row = pt.TensorType(initial.type.dtype, initial.type.shape[1:]).make_variable()
            self.reads["state"].append(row if variable is None else self.c.new_input(variable))
        self.writes["state"] += [writes[offset] for offset in sorted(writes)]

    def built(self) -> Values:
        """Counterparts of the outputs of PyTensor's node."""
        outputs = [*self.writes["state"], *self.writes["output"], *self.writes["untraced"]]
        if self.condition is not None:
            outputs.append(self.condition)
        results = self.c.convert(outputs)
        if self.condition is not None:
            results[-1] = pt.cast(results[-1], "bool")
        spec = ScanSpec(
            tuple(self.sequences),
            tuple(self.states),
            tuple(self.outputs),
            tuple(self.untraced),
            tuple(self.invariants),
            self.condition is not None,
        )
        kinds = ("sequence", "state", "untraced", "invariant")
        inner = [variable for kind in kinds for variable in self.reads[kind]]
        scan = Scan(spec, inner, results, name=self.op.name)
        made = scan.make_node(self.steps, *(value for kind in kinds for value in self.outer[kind]))
        by_name = dict(zip(spec.outer_output_names(), made.outputs, strict=True))
        return [finish(by_name[name]) for name, finish in self.finish]


@converts("Scan", module="pytensor.scan")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    loop = _Loop(op, node, inputs, c)
    for i, (row, rows) in enumerate(
        zip(op.inner_seqs(loop.inner_inputs), op.outer_seqs(inputs), strict=True)
    ):
        loop.sequence(f"sequence{i}", row, rows)
    _add_mitmots(loop)
    inner_inputs, inner_outputs = loop.inner_inputs, loop.inner_outputs
    taps = _groups(op.inner_mitsot(inner_inputs), op.info.mit_sot_in_slices)
    _add_states(loop, "mitsot", taps, op.inner_mitsot_outs(inner_outputs), op.outer_mitsot)
    taps = [{-1: read} for read in op.inner_sitsot(inner_inputs)]
    _add_states(loop, "sitsot", taps, op.inner_sitsot_outs(inner_outputs), op.outer_sitsot)
    _add_outputs(loop)
    _add_untraced(loop)
    for i, (value, variable) in enumerate(
        zip(op.outer_non_seqs(inputs), op.inner_non_seqs(loop.inner_inputs), strict=True)
    ):
        loop.invariants.append(Invariant(f"invariant{i}"))
        loop.reads["invariant"].append(loop.c.new_input(variable))
        loop.outer["invariant"].append(value)
    return loop.built()


def _groups(flat: Sequence[Variable], sizes: Sequence[Sequence[int]]) -> list[dict[int, Variable]]:
    """Variables by their offsets, for each of several states."""
    variables = iter(flat)
    return [{offset: next(variables) for offset in offsets} for offsets in sizes]


def _add_mitmots(loop: _Loop) -> None:
    """States that write rows which they read: gradients by PyTensor.

    Iteration `t` reads rows `t + a` of the buffer and writes rows `t + b`. Rows at or after the last that is
    written have never been written when they are read: they are a sequence. The others are a state.
    """
    op, info = loop.op, loop.info
    reads = _groups(op.inner_mitmot(loop.inner_inputs), info.normalized_mit_mot_in_slices)
    writes = _groups(op.inner_mitmot_outs(loop.inner_outputs), info.normalized_mit_mot_out_slices)
    for i, (read, written, buffer) in enumerate(
        zip(reads, writes, op.outer_mitmot(loop.inputs), strict=True)
    ):
        last = max(written)
        for offset, row in read.items():
            if offset >= last:
                loop.sequence(f"mitmot{i}_{offset}", row, buffer[offset:])
        if last == 0:
            _add_written_once(loop, f"mitmot{i}", written[0], buffer)
            continue
        taps: dict[int, Variable | None] = {
            offset - last: row for offset, row in read.items() if offset < last
        }
        # A state of graphc never writes its oldest row, so it gets one more where PyTensor's does.
        extra = int(0 in written)
        taps.setdefault(-last - extra, None)
        initial = buffer[:last]
        if extra:
            initial = pt.join(0, pt.zeros_like(buffer[:1]), initial)
        loop.state(f"mitmot{i}", taps, {offset - last: row for offset, row in written.items()}, initial)
        loop.finish.append((f"mitmot{i}", _with_rest(buffer, extra)))


def _add_written_once(loop: _Loop, name: str, row: Variable, buffer: object) -> None:
    loop.outputs.append(Output(name))
    loop.writes["output"].append(row)
    loop.finish.append((name, _with_rest(buffer, 0)))


def _with_rest(buffer: Any, extra: int) -> Finish:
    """Rows that the loop has not written come from the buffer."""
    return lambda rows: pt.join(0, rows[extra:], buffer[rows.shape[0] - extra :])


def _add_states(
    loop: _Loop,
    name: str,
    reads: Sequence[dict[int, Variable]],
    rows: Sequence[Variable],
    outer: Callable[[Sequence[object]], Sequence[object]],
) -> None:
    """States of one kind.

    Args:
        loop: gains them.
        name: what their names begin with.
        reads: of each, its rows by their offsets.
        rows: of each, the row that an iteration computes.
        outer: gives the buffers among the outer inputs.
    """
    buffers = zip(outer(loop.inputs), outer(loop.pytensor_inputs), strict=True)
    for i, (read, row, (buffer, known)) in enumerate(zip(reads, rows, buffers, strict=True)):
        _add_state(loop, f"{name}{i}", dict(read), row, buffer, known)


def _add_state(
    loop: _Loop, name: str, taps: dict[int, Variable | None], row: Variable, buffer: Any, known: Variable
) -> None:
    """A state whose buffer begins with its initial rows."""
    window = -min(taps)
    loop.state(name, taps, {0: row}, buffer[:window])
    whole = is_length(length_of(known), loop.pytensor_inputs[0], window)
    loop.finish.append((name, _unchanged if whole else _as_long_as(buffer.shape[0], loop, window)))


def _add_outputs(loop: _Loop) -> None:
    op = loop.op
    for i, (size, row, known) in enumerate(
        zip(
            op.outer_nitsot(loop.inputs),
            op.inner_nitsot_outs(loop.inner_outputs),
            op.outer_nitsot(loop.pytensor_inputs),
            strict=True,
        )
    ):
        loop.outputs.append(Output(f"output{i}"))
        loop.writes["output"].append(row)
        whole = is_length(known, loop.pytensor_inputs[0], 0)
        loop.finish.append((f"output{i}", _unchanged if whole else _as_long_as(size, loop, 0)))


def _add_untraced(loop: _Loop) -> None:
    op = loop.op
    for i, (value, variable, result) in enumerate(
        zip(
            op.outer_untraced_sit_sot(loop.inputs),
            op.inner_untraced_sit_sot(loop.inner_inputs),
            op.inner_untraced_sit_sot_outs(loop.inner_outputs),
            strict=True,
        )
    ):
        loop.untraced.append(Untraced(f"untraced{i}"))
        loop.reads["untraced"].append(loop.c.new_input(variable))
        loop.outer["untraced"].append(value)
        loop.writes["untraced"].append(result)
        loop.finish.append((f"untraced{i}", _unchanged))


def _unchanged(rows: object) -> Any:
    return rows


def _as_long_as(length: TensorLike, loop: _Loop, window: int) -> Finish:
    """Final contents of a buffer of some length: the last rows, or all of them and then zeros.

    A buffer of a while loop ends with the last iteration, wherever it would have had room for all of them.
    """

    def finish(rows: Any) -> Any:
        size = pt.cast(length, "int64")
        if loop.condition is not None:
            not_taken = loop.steps + window - rows.shape[0]
            size = pt.switch(size > rows.shape[0], pt.maximum(size - not_taken, 0), size)
        kept = rows[pt.maximum(rows.shape[0] - size, 0) :]
        missing = pt.maximum(size - rows.shape[0], 0)
        rest = [rows.shape[axis] for axis in range(1, rows.type.ndim)]
        return pt.join(0, kept, pt.zeros([missing, *rest], dtype=rows.type.dtype))

    return finish
