# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``OpFromGraph``: a graph used as an op, with derivatives that may be overridden."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from graphc.errors import MissingInputError
from graphc.gradient.connectivity import io_connection_pattern
from graphc.graph.basic import Apply, Constant, Maybe, Variable, Variables
from graphc.graph.equality import same_graph
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.location import describe
from graphc.graph.op import Op
from graphc.graph.replace import clone_replace, clone_with_inputs, rebuild
from graphc.graph.shared import SharedVariable
from graphc.graph.traversal import graph_inputs, toposort
from graphc.ops.batch import batch_graph
from graphc.public import function
from graphc.transforms.op_from_graph_derivatives import pullback, pushforward, same_overrides

if TYPE_CHECKING:
    import numpy as np

    from graphc_runtime.thunk import Register

Override = Callable[..., Any] | Sequence[Callable[..., Any] | None] | None


class OpFromGraph(Op):
    """A graph as a single op.

    The compiler replaces the op by its graph, so it costs nothing in compiled code. What stays are its
    derivatives: they are
    ops of this kind too, or what an override says.

    Args:
        inputs: variables of the graph that become the op's inputs. Shared variables that the graph reads need
            not be listed: they become further inputs of every node.
        outputs: variables to compute.
        inline: kept as an attribute of the op; shown by `dprint`, which prints the graph of inline ops in
            place.
        pullback: instead of the derived rule: a callable ``(inputs, outputs, cotangents) -> list``, an
            ``OpFromGraph`` that takes inputs, outputs and cotangents in this order, or a list with one of
            these (returning a single variable) or None for each input.
        pushforward: the same for ``(inputs, tangents)``, with one list element for each output.
        lop_overrides, rop_overrides: Theano's names for these two.
        connection_pattern: ``[input][output]`` booleans; by default derived from the graph.
        strict: refuse graphs that read shared variables that are not listed.
        name: shown when graphs are printed.
        kwargs: arguments of `graphc.function` for running the op on its own; ``on_unused_input="ignore"``
            also allows repeated inputs.

    Raises:
        TypeError: inputs or outputs are no lists of variables.
        ValueError: an input is given twice.
        MissingInputError: a needed variable is not given.
        NotImplementedError: updates or givens.

    Examples:
        >>> x = pt.vector("x")
        >>> squared = graphc.OpFromGraph([x], [(x**2).sum()])
        >>> squared(pt.constant([1.0, 2.0])).eval()
        array(5.)
    """

    def __init__(
        self,
        inputs: list[Variable],
        outputs: list[Variable],
        *,
        inline: bool = False,
        pullback: Override = None,
        pushforward: Override = None,
        lop_overrides: Override = None,
        rop_overrides: Override = None,
        connection_pattern: list[list[bool]] | None = None,
        strict: bool = False,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        _check(inputs, outputs, kwargs)
        captured = _captured(inputs, outputs)
        if strict and captured:
            raise ValueError(
                "with strict=True every variable the graph needs must be among the inputs, "
                "but it also reads the shared "
                f"variables {', '.join(map(str, captured))}"
            )
        self.is_inline = inline
        self.name = name
        self.kwargs = kwargs
        self.shared_inputs = captured
        self.inner_inputs, self.inner_outputs = _copy(inputs, captured, outputs)
        self.pullback_overrides = _only_one(pullback, lop_overrides, "pullback", "lop_overrides")
        self.pushforward_overrides = _only_one(pushforward, rop_overrides, "pushforward", "rop_overrides")
        self._given_pattern = self._connection_pattern = connection_pattern
        self._derived: dict[Any, Any] = {}

    input_types = property(
        lambda self: [x.type for x in self.inner_inputs[: self.n_explicit]], doc="Types of the inputs."
    )
    output_types = property(lambda self: [y.type for y in self.inner_outputs], doc="Types of the outputs.")

    @property
    def n_explicit(self) -> int:
        """Number of inputs that a call gives; captured shared variables follow them in a node."""
        return len(self.inner_inputs) - len(self.shared_inputs)

    @property
    def fgraph(self) -> FunctionGraph:
        """The inner graph as a `FunctionGraph`."""
        return FunctionGraph(self.inner_inputs, self.inner_outputs)

    def make_node(self, *inputs: Any) -> Apply:
        n = self.n_explicit
        if len(inputs) not in (n, len(self.inner_inputs)):
            raise ValueError(f"{self} takes {n} inputs, got {len(inputs)}")
        given = [inner.type.filter_variable(x) for inner, x in zip(self.inner_inputs, inputs, strict=False)]
        op: OpFromGraph = self
        if len(given) == n:
            given += self.shared_inputs
        elif any(x is not old for x, old in zip(given[n:], self.shared_inputs, strict=True)):
            op = self.clone()
            op.shared_inputs = [x for x in given[n:] if isinstance(x, SharedVariable)]
        if any(x.type != inner.type for x, inner in zip(given, self.inner_inputs, strict=True)):
            op = op._narrowed(tuple(x.type for x in given))
        return Apply(op, given, [y.type.make_variable(y.name) for y in op.inner_outputs])

    def clone(self) -> OpFromGraph:
        """An equal op with a graph of its own."""
        other: OpFromGraph = super().clone()  # type: ignore[assignment]
        other.inner_inputs, other.inner_outputs = clone_with_inputs(self.inner_inputs, self.inner_outputs)
        other._derived = {}
        return other

    @staticmethod
    def of_graph(*arguments: Any, **options: Any) -> OpFromGraph:
        """Another op of this kind, which has no overrides; arguments as for the class."""
        return OpFromGraph(*arguments, **options)

    def _narrowed(self, types: tuple[Any, ...]) -> OpFromGraph:
        """This op on inputs of narrower types, which may narrow the outputs."""
        key = ("types", types)
        if key not in self._derived:
            op: Any = self.clone()
            op.inner_inputs = [t.make_variable(x.name) for t, x in zip(types, self.inner_inputs, strict=True)]
            replace = dict(zip(self.inner_inputs, op.inner_inputs, strict=True))
            op.inner_outputs = rebuild(self.inner_outputs, replace, copy_nodes=True, strict=False)
            self._derived[key] = op
        return self._derived[key]

    def inline_on(self, inputs: Sequence[Variable]) -> list[Variable]:
        """The outputs as expressions of ``inputs``, which include the captured shared variables."""
        replace = dict(zip(self.inner_inputs, inputs, strict=True))
        return clone_replace(self.inner_outputs, replace, rebuild_strict=False)

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        if "function" not in self._derived:
            options = {"mode": "reference", "on_unused_input": "ignore", **self.kwargs}
            inner, outputs = clone_with_inputs(self.inner_inputs, self.inner_outputs)
            self._derived["function"] = function(inner, outputs, **options)
        values = self._derived["function"](*inputs)
        for cell, value in zip(output_storage, values, strict=True):
            cell[0] = value

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        if self._connection_pattern is None:
            self._connection_pattern = io_connection_pattern(self.inner_inputs, self.inner_outputs)
        rows = self._connection_pattern
        # A pattern that the user gave says nothing about captured shared variables.
        return rows + [[True] * len(self.inner_outputs)] * (len(self.inner_inputs) - len(rows))

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        return pullback(self, inputs, outputs, cotangents)

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        return pushforward(self, inputs, outputs, tangents)

    def batch(
        self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool], size: Any
    ) -> list[Variable]:
        inner = self.inline_on(node.inputs)
        replace = {x: b for x, b, is_batched in zip(node.inputs, inputs, batched, strict=True) if is_batched}
        return batch_graph(inner, replace, size)

    def __eq__(self, other: object) -> bool:
        """Whether the other op has the same graph, on the same shared variables, and the same options and
        overrides. Overrides are the same if they make the same graph of the same arguments.
        """
        if self is other or type(self) is not type(other):
            return self is other
        assert isinstance(other, OpFromGraph)
        if self._options() != other._options():
            return False
        if self.__props__ is not None and self._props() != other._props():
            return False
        if not same_graph(self.inner_inputs, self.inner_outputs, other.inner_inputs, other.inner_outputs):
            return False
        return same_overrides(self, other)

    def _options(self) -> tuple[object, ...]:
        shared = [id(v) for v in self.shared_inputs]
        return self.is_inline, self.kwargs, self._given_pattern, shared

    def __hash__(self) -> int:
        types = (tuple(self.input_types), tuple(self.output_types))
        return hash((type(self), self.is_inline, len(self.inner_inputs), types))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_derived": {}}

    def __str__(self) -> str:
        return f"{self.name or 'OpFromGraph'}{{inline={self.is_inline}}}"


def expand(outputs: Sequence[Variable], memo: dict[Variable, Variable] | None = None) -> list[Variable]:
    """Replace every `OpFromGraph` below ``outputs``, nested ones too, by its graph.

    Other ops that only have rules for derivatives of their own say by `inline_on` what they stand for.

    Args:
        outputs: variables of a graph.
        memo: gains an entry for each variable that was replaced.

    Returns:
        The outputs, unchanged where nothing had to be replaced.
    """
    memo = {} if memo is None else memo
    for node in toposort(outputs):
        inputs = [memo.get(x, x) for x in node.inputs]
        if isinstance(node.op, OpFromGraph):
            op = node.op
            if any(x.type != inner.type for x, inner in zip(inputs, op.inner_inputs, strict=True)):
                op = op.make_node(*inputs).op  # type: ignore[assignment]
            replaced = expand(op.inline_on(inputs))
        elif node.op.inline_on is not None:
            replaced = node.op.inline_on(inputs)
        elif any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
            replaced = node.clone_with_new_inputs(inputs, strict=False).outputs
        else:
            continue
        memo.update(zip(node.outputs, replaced, strict=True))
    return [memo.get(y, y) for y in outputs]


def _check(inputs: Sequence[Variable], outputs: Sequence[Variable], kwargs: dict[str, object]) -> None:
    for what, variables in (("inputs", inputs), ("outputs", outputs)):
        if not isinstance(variables, list):
            raise TypeError(
                f"{what} of an OpFromGraph must be a list of variables, got {type(variables).__name__}"
            )
        for v in variables:
            if not isinstance(v, Variable):
                raise TypeError(
                    f"{what} of an OpFromGraph must be variables, got {v!r} of type {type(v).__name__}"
                )
    for name in ("updates", "givens"):
        if name in kwargs:
            raise NotImplementedError(f"an OpFromGraph takes no {name}; it has no state of its own")
    repeated = [v for i, v in enumerate(inputs) if v in inputs[:i]]
    if repeated and kwargs.get("on_unused_input") != "ignore":
        raise ValueError(
            f"the input {repeated[0]} is given more than once to OpFromGraph; use {repeated[0]}.copy()"
        )


def _captured(inputs: list[Variable], outputs: list[Variable]) -> list[Variable]:
    """Shared variables that the graph reads besides its inputs."""
    given = set(inputs)
    captured: list[Variable] = []
    for v in graph_inputs(outputs, blockers=given):
        if v in given or isinstance(v, Constant):
            continue
        if not isinstance(v, SharedVariable):
            raise MissingInputError(
                f"the graph needs {v} of type {v.type}{describe(v.location)}; add it to the inputs"
            )
        captured.append(v)
    return captured


def _copy(
    inputs: list[Variable], captured: list[Variable], outputs: list[Variable]
) -> tuple[list[Variable], list[Variable]]:
    """A private copy of the graph; repeated inputs and captured shared variables get roots of their own."""
    roots = [*inputs, *captured]
    inner = [v.type.make_variable(v.name) for v in roots]
    memo: dict[Variable, Variable] = {}
    for v, copy in zip(roots, inner, strict=True):
        memo.setdefault(v, copy)
    return inner, rebuild(outputs, memo, copy_nodes=True, strict=True)


def _only_one(new: Override, old: Override, new_name: str, old_name: str) -> Override:
    if new is not None and old is not None:
        raise ValueError(f"{old_name} is another name for {new_name}; give one of them")
    return new if new is not None else old
