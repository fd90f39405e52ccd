# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``OpFromGraph``: a graph used as an op, with derivatives that may be overridden.

Derivatives of `OpFromGraph`: overrides where given, otherwise ops of the same kind made from the inner
graph.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from graphc import hooks
from graphc.errors import MissingInputError
from graphc.gradient.accumulate import Cotangents
from graphc.gradient.connectivity import Paths, io_connection_pattern
from graphc.gradient.forward import tangents_of
from graphc.gradient.transposed import pushforward_through_pullback
from graphc.graph.basic import Apply, Constant, Flags, Maybe, Variable, Variables, describe
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.op import Op
from graphc.graph.replace import clone_replace, clone_with_inputs, equal_computations, rebuild, same_graph
from graphc.graph.shared import SharedVariable
from graphc.graph.traversal import graph_inputs, toposort
from graphc.graph.undefined import is_disconnected, is_null
from graphc.ops.batching import batch_graph
from graphc.ops.derivatives import gradient_dtype, zeros_like

if TYPE_CHECKING:
    import numpy as np

    from graphc_runtime.thunk import Register


Terms = list[Variable | None]


def pullback(op: OpFromGraph, inputs: Variables, outputs: Variables, cotangents: Maybe) -> Terms:
    """Cotangents of ``inputs``; see `Op.pullback`."""
    n = op.n_explicit
    explicit = list(inputs[:n])
    override = op.pullback_overrides
    default: list[Terms] = []

    def derived() -> Terms:
        if not default:
            default.append(_derived_pullback(op, inputs, cotangents))
        return default[0]

    if override is None:
        return derived()
    filled = [_zero_like(y) if g is None else g for y, g in zip(outputs, cotangents, strict=True)]
    arguments = (explicit, list(outputs), filled)
    terms = _overridden(op, override, arguments, lambda: derived()[:n], n, "pullback")
    return terms + (derived()[n:] if len(inputs) > n else [])


def pushforward(op: OpFromGraph, inputs: Variables, outputs: Variables, tangents: Maybe) -> Terms:
    """Tangents of ``outputs``; see `Op.pushforward`.

    An op with an overridden pullback and no overridden pushforward uses the transpose of the override, so
    that both modes agree.
    """
    override = op.pushforward_overrides
    if override is None:
        if op.pullback_overrides is not None:
            return pushforward_through_pullback(op, inputs, outputs, tangents)
        return _derived_pushforward(op, inputs, tangents)
    n = op.n_explicit
    filled = [_zero_like(x) if t is None else t for x, t in zip(inputs[:n], tangents, strict=False)]
    arguments = (list(inputs[:n]), filled)
    return _overridden(
        op,
        override,
        arguments,
        lambda: _derived_pushforward(op, inputs, tangents),
        len(outputs),
        "pushforward",
    )


def _overridden(
    op: object, override: Any, arguments: tuple[list, ...], derived: Any, count: int, what: str
) -> Terms:
    """The terms that an override gives."""
    if isinstance(override, list | tuple):
        if len(override) != count:
            raise ValueError(f"the {what} override of {op} must have {count} elements, got {len(override)}")
        return [derived()[i] if one is None else _call(one, arguments)[0] for i, one in enumerate(override)]
    terms = _call(override, arguments)
    if len(terms) != count:
        raise ValueError(f"the {what} override of {op} must return {count} variables, got {len(terms)}")
    return terms


def _call(rule: Any, arguments: tuple[list, ...]) -> Terms:
    flat = [v for group in arguments for v in group]
    if isinstance(rule, Variable):
        return [rule]
    result = rule(*flat) if isinstance(rule, Op) else rule(*arguments)
    return list(result) if isinstance(result, list | tuple) else [result]


def _of_inputs_alone(rule: Any, inputs: list, outputs: list, cotangents: list) -> Terms:
    """A rule of inputs and cotangents, as ``grad_overrides`` has them, in the form of a pullback."""
    return _call(rule, (inputs, cotangents))


def same_overrides(op: OpFromGraph, other: OpFromGraph) -> bool:
    """True if the overrides of two ops with equal graphs make equal graphs of the same arguments."""
    n = op.n_explicit
    inputs, outputs = list(op.inner_inputs[:n]), list(op.inner_outputs)
    pairs = [
        (op.pullback_overrides, other.pullback_overrides, (inputs, outputs, [_place(y) for y in outputs])),
        (op.pushforward_overrides, other.pushforward_overrides, (inputs, [_place(x) for x in inputs])),
    ]
    return all(_same_override(a, b, arguments) for a, b, arguments in pairs)


def _same_override(a: Any, b: Any, arguments: tuple[list, ...]) -> bool:
    if a is b:
        return True
    if a is None or b is None:
        return False
    if isinstance(a, list | tuple) or isinstance(b, list | tuple):
        lists = isinstance(a, list | tuple) and isinstance(b, list | tuple)
        return (
            lists
            and len(a) == len(b)
            and all(_same_override(x, y, arguments) for x, y in zip(a, b, strict=True))
        )
    try:
        terms = [_call(rule, arguments) for rule in (a, b)]
    except Exception:  # rules of users may refuse the arguments in any way; a comparison never raises
        return False
    absent = [[g is None or _is_placeholder(g) for g in each] for each in terms]
    present = [[g for g in each if not (g is None or _is_placeholder(g))] for each in terms]
    return absent[0] == absent[1] and equal_computations(present[0], present[1])


def _zero_like(x: Variable) -> Variable:
    return zeros_like(x)


def _place(v: Variable) -> Variable:
    """A root for a derivative with respect to ``v``: its type, or ``floatX`` where ``v`` is discrete."""
    if hasattr(v.type, "dtype"):
        return v.type.clone(dtype=gradient_dtype(v)).make_variable()
    return v.type.make_variable()


def _derived_pullback(op: OpFromGraph, inputs: Variables, cotangents: Maybe) -> Terms:
    """The pullback of the inner graph as an op, one for each set of outputs that have a cotangent."""
    live = tuple(g is not None for g in cotangents)
    given = [g for g in cotangents if g is not None]
    key = ("pullback", live)
    if key not in op._derived:
        op._derived[key] = _build(op, "pullback", live)
    return _apply(op._derived[key], inputs, given)


def _derived_pushforward(op: OpFromGraph, inputs: Variables, tangents: Maybe) -> Terms:
    """The pushforward of the inner graph as an op, one for each set of inputs that have a tangent."""
    live = tuple(t is not None for t in tangents)
    key = ("pushforward", live)
    if key not in op._derived:
        op._derived[key] = _build(op, "pushforward", live)
    return _apply(op._derived[key], inputs, [t for t in tangents if t is not None])


def _build(
    op: OpFromGraph, what: str, live: tuple[bool, ...]
) -> tuple[OpFromGraph | None, list[Variable | None]]:
    """The derived op and, for each term, its place among the op's outputs, or None, or a placeholder
    variable.
    """
    xs, ys = op.inner_inputs, op.inner_outputs
    if what == "pullback":
        places = [_place(y) for y, ok in zip(ys, live, strict=True) if ok]
        # One output variable may be listed twice: its cotangents add up.
        seeds: dict[Variable, Variable] = {}
        for y, place in zip([y for y, ok in zip(ys, live, strict=True) if ok], places, strict=True):
            seeds[y] = seeds[y] + place if y in seeds else place
        cotangents = Cotangents(Paths(seeds, xs), seeds)
        cotangents.run()
        terms = [cotangents.of(x) if x in cotangents.reached else None for x in xs]
    else:
        wrt = [x for x, ok in zip(xs, live, strict=True) if ok]
        places = [_place(x) for x in wrt]
        found, _ = tangents_of(ys, wrt, places)
        terms = [found.get(y) for y in ys]
    kept = [g for g in terms if g is not None and not _is_placeholder(g)]
    layout: list[Any] = []
    for g in terms:
        layout.append(
            g if g is None or _is_placeholder(g) else len([v for v in layout if isinstance(v, int)])
        )
    if not kept:
        return None, layout
    name = f"{op.name or 'OpFromGraph'}.{what}"
    derived = op.of_graph([*xs, *places], kept, inline=op.is_inline, name=name, on_unused_input="ignore")
    return derived, layout


def _is_placeholder(g: Variable) -> bool:
    return is_disconnected(g) or is_null(g)


def _apply(built: tuple[OpFromGraph | None, list[Any]], inputs: Variables, given: Variables) -> Terms:
    op, layout = built
    outputs = op(*inputs, *given, return_list=True) if op is not None else []
    return [outputs[term] if isinstance(term, int) else term for term in layout]


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
        grad_overrides: a pullback of ``(inputs, cotangents)`` alone, as up to PyTensor 2.
        connection_pattern: ``[input][output]`` booleans; by default derived from the graph.
        destroy_map: inputs that may be overwritten, as in PyTensor; what is, the compiler decides.
        strict: refuse graphs that read shared variables that are not listed.
        name: shown when graphs are printed.
        kwargs: arguments of `graphc.function` for running the op on its own; ``on_unused_input="ignore"``
            also allows repeated inputs.

    Raises:
        TypeError: inputs or outputs are no lists of variables, an override is a variable, or a keyword is
            unknown.
        ValueError: an input is given twice, or two overrides of the same derivative.
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
        grad_overrides: Override = None,
        connection_pattern: list[list[bool]] | None = None,
        destroy_map: Mapping[int, Sequence[int]] | None = None,
        strict: bool = False,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        _check(inputs, outputs, kwargs)
        captured = _captured(inputs, outputs)
        if strict and captured:
            raise ValueError(
                "with strict=True every variable the graph needs must be among the inputs, but it also reads "
                f"the shared variables {', '.join(map(str, captured))}"
            )
        self.is_inline = inline
        self.name = name
        self.kwargs = kwargs
        self.shared_inputs = captured
        self.inner_inputs, self.inner_outputs = _copy(inputs, captured, outputs)
        earlier = _without_outputs(_checked("grad_overrides", grad_overrides))
        given = {"pullback": pullback, "lop_overrides": lop_overrides, "grad_overrides": earlier}
        self.pullback_overrides = _only_one(given)
        self.pushforward_overrides = _only_one({"pushforward": pushforward, "rop_overrides": rop_overrides})
        self._given_pattern = self._connection_pattern = connection_pattern
        self._may_overwrite = {k: list(v) for k, v in (destroy_map or {}).items()}
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
            self._derived["function"] = hooks.function()(inner, outputs, **options)
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

    def batch(self, node: Apply, inputs: Variables, batched: Flags, size: Any) -> list[Variable]:
        inner = self.inline_on(node.inputs)
        replace = {x: b for x, b, is_batched in zip(node.inputs, inputs, batched, strict=True) if is_batched}
        return batch_graph(inner, replace, size)

    def __eq__(self, other: object) -> bool:
        """True if the other op has the same graph, on the same shared variables, and the same options and
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
        return self.is_inline, self.kwargs, self._given_pattern, self._may_overwrite, shared

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
    unknown = kwargs.keys() - inspect.signature(hooks.function()).parameters.keys()
    if unknown:
        raise TypeError(
            f"OpFromGraph() has no keyword {', '.join(map(repr, sorted(unknown)))}; derivatives are given as "
            "pullback(inputs, outputs, cotangents) and pushforward(inputs, tangents), other keywords are "
            "those of graphc.function"
        )
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


def _checked(name: str, override: Override) -> Override:
    if isinstance(override, str):
        raise ValueError(
            f"{name} is a function, an op, or a list of these, got {override!r}; None is the default"
        )
    if isinstance(override, Variable):
        raise TypeError(f"{name} is a function, an op, or a list of these, got the variable {override}")
    return override


def _without_outputs(override: Override) -> Override:
    if override is None:
        return None
    if isinstance(override, list | tuple):
        return [None if rule is None else partial(_of_inputs_alone, rule) for rule in override]
    return partial(_of_inputs_alone, override)


def _only_one(given: dict[str, Override]) -> Override:
    """The override among several names of one keyword."""
    found = {name: _checked(name, rule) for name, rule in given.items() if rule is not None}
    if len(found) > 1:
        raise ValueError(f"{' and '.join(found)} are names of the same override; give one of them")
    return next(iter(found.values()), None)
