# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Scan``: a loop as an op.

It runs in Python iteration by iteration as the reference, and in graphs with Python ops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from graphc.emit.conditionals import obstacle
from graphc.emit.emitter import why_not_native
from graphc.graph.basic import Apply, Constant, Flags, Maybe, Variable, Variables, describe
from graphc.graph.demand import is_conditional
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.op import Op
from graphc.graph.reference import ReferenceExecutor
from graphc.graph.replace import clone_with_inputs, rebuild, same_graph
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.tensor.type import TensorType
from graphc.graph.tensor.variable import TensorConstant
from graphc.graph.traversal import ancestors
from graphc.ops.shape import known_size
from graphc.ops.shaping import specify_shape
from graphc.scan.arguments import as_steps
from graphc.scan.emit import emit
from graphc.scan.mappings import connection_pattern
from graphc.scan.pytensor_names import ScanMethods
from graphc.scan.spec import Invariant, ScanSpec
from graphc.transforms.op_from_graph import expand
from graphc_runtime.progress import report
from graphc_runtime.record import record
from graphc_runtime.thunk import Spent

if TYPE_CHECKING:
    from graphc.graph.contract import Body
    from graphc.graph.tensor.variable import TensorVariable
    from graphc.scan.spec import Role, State
    from graphc_runtime.thunk import Register


def run(op: Scan, inputs: Sequence[np.ndarray], body: Body | None = None) -> list[Any]:
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
        self._only_last = kept is not None and kept[0] <= 1
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

    def release(self) -> None:
        """Forgets the row that the next one replaces, which the iteration that makes it has been given."""
        if self._held is not None and len(self._rows) >= self._held:
            self._rows[len(self._rows) - self._held] = None

    def result(self) -> np.ndarray:
        """The rows that are wanted; there is at least one row. It may refuse to be written."""
        if self._trace is not None:
            return self._trace
        rows, self._rows = self._rows, []
        if self._wanted is not None:
            rows = rows[max(len(rows) - self._wanted, 0) :]
        if self._only_last and rows and rows[-1] is not None and rows[-1].dtype == self._dtype:
            # The others may be any numbers: so the last row is all of them, and is not copied.
            return np.broadcast_to(rows[-1], (len(rows), *rows[-1].shape))
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

    def _inner_values(self, t: int, step: int) -> Spent:
        spec, values = self._spec, []
        for sequence in spec.sequences:
            values += [np.asarray(self._values[sequence.name][t + tap]) for tap in sequence.taps]
        for state in spec.states:
            rows = self._rows[state.name]
            values += [np.asarray(rows[state.window + step + tap]) for tap in state.taps]
            if len(state.writes) == 1:
                rows.release()
        values += [self._untraced[untraced.name] for untraced in spec.untraced]
        return Spent(values + [self._values[invariant.name] for invariant in spec.invariants])

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


def check_inputs(op: Any, inputs: Sequence[TensorVariable]) -> list[Variable]:
    """The outer inputs of a scan as variables of fitting types.

    Sizes of rows that the inner graph knows and the input does not are demanded of the input.

    Raises:
        TypeError: an input has another dtype, rank or static size than the inner graph expects; the message
            names the role, both types and the fix.
        ValueError: a number of steps that is known to be negative, or too large for a sequence; too few or
            too many initial rows.
    """
    spec = op.spec
    inner_in = dict(zip(spec.inner_input_names(), op.inner_inputs, strict=True))
    inner_out = dict(zip(spec.inner_output_names(), op.inner_outputs, strict=True))
    values = dict(zip(spec.outer_input_names(), inputs, strict=True))
    n_steps = as_steps(values["n_steps"], str(op))
    result: list[Variable] = [n_steps]
    for sequence in spec.sequences:
        row = inner_in[sequence.name, sequence.taps[0]].type
        result.append(_rows(op, sequence, values[sequence.name], row))
        _check_length(op, sequence, result[-1], n_steps)
    for state in spec.states:
        row = inner_in[state.name, state.taps[0]].type
        initial = _rows(op, state, values[state.name], row)
        _check_window(op, state, initial)
        for write in state.writes:
            _check_next(op, state, initial, inner_out[state.name, write])
        result.append(initial)
    others = (*spec.untraced, *spec.invariants)
    return result + [_value(op, role, values[role.name], inner_in[role.name, 0].type) for role in others]


def _rows(op: Any, role: Any, value: Variable, row: TensorType) -> Variable:
    """A stack of rows of a type."""
    v = as_tensor_variable(value)
    fits = v.type.dtype == row.dtype and v.type.ndim == row.ndim + 1
    fits = fits and all(
        a is None or b is None or a == b for a, b in zip(v.type.shape[1:], row.shape, strict=True)
    )
    if not fits:
        wanted = TensorType(row.dtype, (None, *row.shape))
        raise TypeError(
            f"the {role.role} '{role.name}' of {op} must be a stack of rows of type {row} ({wanted}), got "
            f"{v} of type {v.type}{describe(v.location)}"
        )
    return specify_shape(v, (None, *row.shape))


def _check_length(op: Op, sequence: Any, x: Variable, n_steps: Variable) -> None:
    steps, rows = known_size(n_steps), x.type.shape[0]
    if steps is None or rows is None or steps <= rows - sequence.taps[-1] or steps == 0:
        return
    raise ValueError(
        f"{op} runs {steps} steps, but the sequence '{sequence.name}' of type {x.type}{describe(x.location)} "
        f"has rows for {max(rows - sequence.taps[-1], 0)} only. Give fewer steps, or leave n_steps out"
    )


def _check_window(op: Scan, state: State, initial: Variable) -> None:
    rows = initial.type.shape[0]
    if rows is not None and rows != state.window:
        raise ValueError(
            f"the state '{state.name}' of {op} needs {state.window} initial rows, got {initial} of type "
            f"{initial.type}{describe(initial.location)}"
        )


def _check_next(op: Scan, state: State, initial: Variable, new: Variable) -> None:
    old, row = initial.type, new.type
    fits = isinstance(row, TensorType) and row.dtype == old.dtype and row.ndim == old.ndim - 1
    fits = fits and all(
        a is None or b is None or a == b for a, b in zip(old.shape[1:], row.shape, strict=True)
    )
    if not fits:
        expected = TensorType(old.dtype, old.shape[1:])
        raise TypeError(
            f"the state '{state.name}' of {op} starts as {expected}, but the function returns {row} for it"
            f"{describe(new.location)}. Give an initial value of the returned type, or cast what is returned "
            f"(for example .astype('{old.dtype}'))"
        )


def _value(op: Scan, role: Role, value: TensorVariable, type_: Any) -> Variable:
    try:
        return type_.filter_variable(value)
    except TypeError:
        given = value.type if isinstance(value, Variable) else type(value).__name__
        raise TypeError(
            f"the {role.role} '{role.name}' of {op} must be of type {type_}, got {value} of type {given}"
            f"{describe(getattr(value, 'location', None))}"
        ) from None


LITERAL_SIZE = 16

Terms = list[Variable | None]


@record(frozen=True)
class Rules:
    """Builders of other loops from a loop. Arguments are the loop and those of the method of `Op`."""

    pullback: Callable[[Any, Sequence[Variable], Sequence[Variable], Sequence[Variable | None]], Terms]
    pushforward: Callable[[Any, Sequence[Variable], Sequence[Variable], Sequence[Variable | None]], Terms]
    batch: Callable[[Any, Apply, Sequence[Variable], Sequence[bool], Any], list[Variable]]


class Scan(ScanMethods, Op):
    """Runs an inner graph for `t = 0 .. n_steps - 1`.

    Order of inner inputs, inner outputs, inputs and outputs: see docs/architecture/graph.md, or ask the spec.
    Use `graphc.scan` to build scans and `ScanArgs` to look at them; nothing else should count positions.

    Args:
        spec: the roles.
        inner_inputs: variables of the inner graph, in the order of ``spec.inner_input_names()``.
        inner_outputs: what an iteration computes, in the order of ``spec.inner_output_names()``.
        name: shown in messages.
        reverse: run ``t`` from ``n_steps - 1`` down to 0. Rows are stored by ``t`` all the same.
        truncate_gradient: number of iterations that a gradient goes back; -1 for all.
        checkpoint_every: keep only the states of every so many iterations for the gradient and compute the
            others again; None keeps all.
        unroll: how many iterations compiled code runs between two tests of the loop's end.
        progress: report on stderr how far the loop is.

    Raises:
        ValueError: the number of inner inputs or outputs does not fit the spec.
        MissingInputError: the inner graph reads a variable that is not among its inputs.

    Examples:
        >>> x = pt.vector("x")
        >>> rows = graphc.scan(lambda a, b: a + b, [x], outputs_info=[0.0], return_updates=False)
        >>> op = rows.owner.op
        >>> while not isinstance(op, graphc.scan.Scan):
        ...     rows = rows.owner.inputs[0]
        ...     op = rows.owner.op
        >>> len(op.inner_inputs), len(op.inner_outputs)
        (2, 1)
    """

    # Set by `graphc.scan.rules`, which is made of loops.
    rules: ClassVar[Rules]

    def __init__(
        self,
        spec: ScanSpec,
        inner_inputs: Sequence[Variable],
        inner_outputs: Sequence[Variable],
        *,
        name: str | None = None,
        reverse: bool = False,
        truncate_gradient: int = -1,
        checkpoint_every: int | None = None,
        unroll: int = 1,
        progress: bool = False,
    ) -> None:
        self.name = name
        self.reverse = reverse
        self.truncate_gradient = truncate_gradient
        self.checkpoint_every = checkpoint_every
        self.unroll = unroll
        self.progress = progress
        self.spec = spec
        self.inner_inputs = list(inner_inputs)
        self.inner_outputs = list(inner_outputs)
        for what, have, names in (
            ("inputs", self.inner_inputs, list(spec.inner_input_names())),
            ("outputs", self.inner_outputs, list(spec.inner_output_names())),
        ):
            if len(have) != len(names):
                raise ValueError(
                    f"the inner graph of a scan must have {len(names)} {what} ({names}), got {len(have)}"
                )
        self.hidden_constants: list[Constant] = []
        self._hide_large_constants()
        _ = self.fgraph

    def _hide_large_constants(self) -> None:
        """Large constants of the inner graph become invariants: code does not depend on data."""
        large = [
            v
            for v in ancestors(self.inner_outputs, self.inner_inputs)
            if isinstance(v, TensorConstant) and v.data.size > LITERAL_SIZE
        ]
        if not large:
            return
        memo: dict[Variable, Variable] = {}
        for constant in large:
            name = self.spec.with_unique("constant")
            memo[constant] = constant.type.make_variable(name)
            self.spec = self.spec.replace(invariants=(*self.spec.invariants, Invariant(name)))
            self.inner_inputs.append(memo[constant])
        self.hidden_constants = [v for v in large if isinstance(v, Constant)]
        self.inner_outputs = rebuild(self.inner_outputs, memo, copy_nodes=False, strict=True)

    @cached_property
    def fgraph(self) -> FunctionGraph:
        """The inner graph."""
        return FunctionGraph(self.inner_inputs, self.inner_outputs)

    @cached_property
    def compiled_graph(self) -> FunctionGraph:
        """The inner graph with ops such as `OpFromGraph` replaced by their graphs."""
        return FunctionGraph(self.inner_inputs, expand(self.inner_outputs))

    def __eq__(self, other: object) -> bool:
        """True if the other scan is the same loop; names do not count."""
        if self is other or type(self) is not type(other):
            return self is other
        assert isinstance(other, Scan)
        return (
            self._form() == other._form()
            and same_graph(self.inner_inputs, self.inner_outputs, other.inner_inputs, other.inner_outputs)
            and same_graph([], self.hidden_constants, [], other.hidden_constants)
        )

    def _form(self) -> tuple[object, ...]:
        options = (self.reverse, self.truncate_gradient, self.checkpoint_every, self.unroll, self.progress)
        return (*self.spec.form(), *options)

    def __hash__(self) -> int:
        return hash((Scan, self._form(), tuple(v.type for v in self.inner_inputs)))

    # -- building --------------------------------------------------------------------------------------------

    def make_node(self, *inputs: Any) -> Apply:
        """Checks the outer inputs; see `graphc.scan.op`. Values of hidden constants may be left out."""
        names = self.spec.outer_input_names()
        values = list(inputs)
        if self.hidden_constants and len(values) == len(names) - len(self.hidden_constants):
            values += self.hidden_constants
        if len(values) != len(names):
            raise ValueError(f"{self} takes {len(names)} inputs ({', '.join(names)}), got {len(values)}")
        checked = check_inputs(self, values)
        return Apply(self, checked, [t.make_variable(name) for name, t in self._output_types(checked)])

    def _output_types(self, inputs: Sequence[Variable]) -> list[tuple[str | None, TensorType]]:
        spec = self.spec
        steps: int | None = None
        if isinstance(inputs[0], Constant) and not spec.is_while:
            steps = int(inputs[0].data)
        inner = dict(zip(spec.inner_output_names(), self.inner_outputs, strict=True))
        outer = dict(zip(spec.outer_input_names(), inputs, strict=True))
        types: list[tuple[str | None, Any]] = []
        for state in spec.states:
            initial, row = outer[state.name].type, inner[state.name, 0].type
            shape = [
                known if known is not None else other
                for known, other in zip(initial.shape[1:], row.shape, strict=True)
            ]
            rows = None if steps is None else steps + state.window
            types.append((state.name, TensorType(row.dtype, (rows, *shape))))
        for output in spec.outputs:
            row = inner[output.name, 0].type
            types.append((output.name, TensorType(row.dtype, (steps, *row.shape))))
        types += [(untraced.name, inner[untraced.name, 0].type) for untraced in spec.untraced]
        if spec.is_while:
            types.append(("n_steps", TensorType("int64", ())))
        return types

    # -- running ---------------------------------------------------------------------------------------------

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        for cell, value in zip(output_storage, self.run(inputs), strict=True):
            cell[0] = value

    def run(self, inputs: Sequence[np.ndarray], body: Body | None = None) -> list[Any]:
        """Values of the outputs; ``body`` runs the inner graph, by default op by op in NumPy."""
        return run(self, inputs, body)

    @cached_property
    def body_obstacle(self) -> str | None:
        """Reason for which the body cannot be compiled, or None when it can."""
        for node in self.compiled_graph.nodes:
            reason = why_not_native(node)
            if reason is not None:
                return f"{node.op} in its body: {reason}"
        if any(map(is_conditional, self.compiled_graph.nodes)):
            return obstacle(self.compiled_graph)
        return None

    @property
    def emit(self) -> Any:  # type: ignore[override]
        """The dialect form, where every inner op has one; otherwise None: the op runs in Python."""
        return emit if self.body_obstacle is None else None

    # -- derivatives and queries -----------------------------------------------------------------------------

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        return self.rules.pullback(self, inputs, outputs, cotangents)

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        return self.rules.pushforward(self, inputs, outputs, tangents)

    def batch(self, node: Apply, inputs: Variables, batched: Flags, size: TensorVariable) -> list[Variable]:
        return self.rules.batch(self, node, inputs, batched, size)

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return connection_pattern(self)

    def inner_sources(self, node: Apply) -> list[Variable]:
        """For each inner input the outer input that it reads."""
        outer = dict(zip(self.spec.outer_input_names(), node.inputs, strict=True))
        return [outer[name] for name, _ in self.spec.inner_input_names()]

    # -- identity --------------------------------------------------------------------------------------------

    def identity(self) -> tuple[ScanSpec | int, ...]:
        """Properties besides the inner graph on which the op's code depends."""
        return (self.spec, self.reverse, self.unroll, *((self.name,) if self.progress else ()))

    def clone(self) -> Scan:
        """An equal op with an inner graph of its own."""
        other: Scan = super().clone()  # type: ignore[assignment]
        for name in ("fgraph", "compiled_graph", "body_obstacle"):
            other.__dict__.pop(name, None)
        other.inner_inputs, other.inner_outputs = clone_with_inputs(self.inner_inputs, self.inner_outputs)
        return other

    def __getstate__(self) -> dict[str, Any]:
        # The inner graph as a table: deep chains of nodes would exceed the recursion limit.
        hidden = ("inner_inputs", "inner_outputs", "compiled_graph", "body_obstacle")
        return {key: value for key, value in self.__dict__.items() if key not in hidden}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self.inner_inputs = self.fgraph.inputs
        self.inner_outputs = self.fgraph.outputs

    def __str__(self) -> str:
        kind = "while" if self.spec.is_while else "for"
        return f"Scan{{{self.name or 'scan'}, {kind}{', reverse' if self.reverse else ''}}}"
