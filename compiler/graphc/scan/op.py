# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Scan``: a loop as an op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from graphc.emit.conditionals import obstacle
from graphc.emit.native import why_not_native
from graphc.graph.basic import Apply, Constant, Maybe, Variable, Variables
from graphc.graph.demand import is_conditional
from graphc.graph.equality import same_graph
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.op import Op
from graphc.graph.replace import clone_with_inputs, rebuild
from graphc.graph.tensor.type import TensorType
from graphc.graph.tensor.variable import TensorConstant
from graphc.graph.traversal import ancestors
from graphc.scan.checks import check_inputs
from graphc.scan.emit import emit
from graphc.scan.mappings import connection_pattern
from graphc.scan.perform import run
from graphc.scan.pytensor_names import ScanMethods
from graphc.scan.spec import Invariant, ScanSpec
from graphc.transforms.op_from_graph import expand
from graphc_runtime.record import record

if TYPE_CHECKING:
    import numpy as np

    from graphc.function.schedule import Schedule
    from graphc.graph.tensor.variable import TensorVariable
    from graphc_runtime.thunk import Register

LITERAL_SIZE = 16

Terms = list[Variable | None]


@record(frozen=True)
class Rules:
    """What is built of a loop: other loops. Arguments are the loop and those of the method of `Op`."""

    pullback: Callable[[Any, Sequence[Variable], Sequence[Variable], Sequence[Variable | None]], Terms]
    pushforward: Callable[[Any, Sequence[Variable], Sequence[Variable], Sequence[Variable | None]], Terms]
    batch: Callable[[Any, Apply, Sequence[Variable], Sequence[bool], Any], list[Variable]]


class Scan(ScanMethods, Op):
    """Runs an inner graph for `t = 0 .. n_steps - 1`.

    Order of inner inputs, inner outputs, inputs and outputs: see docs/architecture/loops.md, or ask the spec.
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
        """Whether the other scan is the same loop; names do not count."""
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
        """Checks the outer inputs; see `graphc.scan.checks`. Values of hidden constants may be left out."""
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

    def run(self, inputs: Sequence[np.ndarray], body: Schedule | None = None) -> list[Any]:
        """Values of the outputs; ``body`` runs the inner graph, by default op by op in NumPy."""
        return run(self, inputs, body)

    @cached_property
    def body_obstacle(self) -> str | None:
        """Why the body cannot be compiled, or None when it can."""
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

    def batch(
        self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool], size: TensorVariable
    ) -> list[Variable]:
        return self.rules.batch(self, node, inputs, batched, size)

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return connection_pattern(self)

    def inner_sources(self, node: Apply) -> list[Variable]:
        """For each inner input the outer input that it reads."""
        outer = dict(zip(self.spec.outer_input_names(), node.inputs, strict=True))
        return [outer[name] for name, _ in self.spec.inner_input_names()]

    # -- identity --------------------------------------------------------------------------------------------

    def identity(self) -> tuple[ScanSpec | int, ...]:
        """What the op's code depends on besides the inner graph."""
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
