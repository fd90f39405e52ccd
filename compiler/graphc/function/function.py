# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``graphc.function``: from symbolic inputs and outputs to a `Function`.

``Variable.eval``: compile and run in one step.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphc.config import config
from graphc.emit.emitter import is_hidden_argument
from graphc.errors import MissingInputError, UnusedInputError, checks_keywords
from graphc.function import settings
from graphc.function.base import Pending
from graphc.function.call_form import Signature
from graphc.function.io import In, Inputs, OutputForm, as_inputs, input_form, with_donated
from graphc.function.modes import build_program, first_program, get_mode, stored_program
from graphc.function.report import CompileReport
from graphc.function.types import Function
from graphc.graph.basic import Variable, describe, frames_inside
from graphc.graph.function_graph import FunctionGraph, require_mutable
from graphc.graph.replace import fresh_root, graph_replace, of_type, rebuild
from graphc.graph.shared import SharedVariable
from graphc.graph.traversal import ancestors, get_var_by_name, read_by, toposort
from graphc_runtime.collecting import new_objects_only

if TYPE_CHECKING:
    from graphc.function.typed import Outputs
    from graphc.graph.tensor.variable import TensorSharedVariable, TensorVariable


Pairs = Mapping[Any, Any] | Iterable[tuple[Any, Any]] | None


@checks_keywords
def function(
    inputs: Inputs,
    outputs: Outputs | None = None,
    mode: str | None = None,
    updates: Pairs = None,
    givens: Pairs = None,
    no_default_updates: bool | Sequence[SharedVariable] | None = None,
    accept_inplace: bool = False,
    name: str | None = None,
    rebuild_strict: bool = True,
    allow_input_downcast: bool | None = None,
    profile: bool | None = None,
    on_unused_input: str | None = None,
    trust_input: bool = False,
    donate: Sequence[Variable | str | int] | None = None,
    nan_guard: str | None = None,
    fastmath: str | None = None,
    flush_denormals: bool | None = None,
    memory_budget: int | str | None = None,
) -> Function[Outputs]:
    """Compile a graph into a callable.

    Args:
        inputs: variables, or `In` objects, in the order in which calls give their values. One may also be a
            dict, list, tuple or dataclass of variables, nested as you like, and calls give values in that
            form. Of a dict in the place of the list, the keys are the names of the arguments.
        outputs: a variable, or lists, tuples, dicts and dataclasses of variables, nested as you like; calls
            return values in the same form. None returns None.
        mode: ``"fast_run"``, ``"fast_compile"``, ``"cuda"`` (kernels for a CUDA device, which the first call
            needs), ``"interpret"`` (the optimised graph, operation by operation in NumPy), ``"reference"``
            (the graph as written, op by op in NumPy), ``"debug"`` (the first and the reference, compared) or
            ``"tiered"`` (the reference until the first is compiled in the background).
        updates: shared variables and the expressions that replace their values. All expressions see the old
            values, and all values are replaced together once everything has succeeded.
        givens: variables and what to put in their places in this function.
        no_default_updates: True ignores the ``default_update`` of shared variables, a list those of its
            members.
        accept_inplace: accepted for compatibility; it has no effect.
        name: a name for reports and messages.
        rebuild_strict: demand that givens have the types of what they replace.
        allow_input_downcast: True lets inputs be cast with loss of information, False forbids any, None
            forbids all but Python floats to ``config.floatX``.
        profile: measure the time of each operation in calls; ``print(f.profile)`` shows it by op and line,
            see `Profile`. A few nanoseconds for each loop nest and call, see docs/guide/profile.md.
        on_unused_input: ``"raise"``, ``"warn"`` or ``"ignore"``; ``config.on_unused_input`` by default.
        trust_input: skip the conversion and checking of inputs where calls run in Python.
        donate: inputs (variables, names or positions) that calls may overwrite and return as results, as with
            `In(x, mutable=True)`.
        nan_guard: ``"raise"`` or ``"warn"`` runs the graph op by op in Python, whatever the mode, and names
            the first op that makes a NaN or an infinity, with line, index and iterations of loops. For
            debugging: it is slow, and it sees the graph as written, without the compiler's stabilisation.
            ``"off"`` by default, see ``config.nan_guard``.
        fastmath: what compiled arithmetic may change: ``"off"`` nothing, ``"contract"`` products and sums may
            become fused multiply-adds, ``"reassoc"`` also the order of sums and products, ``"fast"`` also
            quotients into products with the reciprocal; ``config.fastmath`` by default. See docs/math.md.
        flush_denormals: whether compiled code takes denormal numbers, operands and results, as zeros: many
            processors are slow with them. ``config.flush_denormals`` by default. See docs/math.md.
        memory_budget: bytes that intermediate values may take in a call, as a number or as text such as
            ``"64 MiB"``. Where they would take more, some are computed again instead of being kept; a
            `MemoryBudgetWarning` says if that is not enough. See docs/guide/memory.md.

    Returns:
        A `Function`.

    Raises:
        MissingInputError: an output needs a variable that is not among the inputs.
        UnusedInputError: an input is not needed.
        TypeError: an update or a given has another type than what it replaces.
        InconsistencyError: an op overwrites an input that is not mutable, or what is still needed.

    Examples:
        >>> x = pt.vector("x")
        >>> f = graphc.function([x], [x.sum(), x.max()])
        >>> [float(v) for v in f([1.0, 4.0])]
        [5.0, 4.0]
    """
    mode_name = get_mode(mode)
    report = CompileReport(
        name=name or "function",
        mode=mode_name,
        options=settings.compile_options(
            mode_name,
            fastmath=fastmath,
            flush_denormals=flush_denormals,
            profile=bool(profile),
            memory_budget=memory_budget,
        ),
        nan_guard=settings.nan_guard(nan_guard),
    )
    with report.phase("graph"):
        arguments = input_form(inputs)
        input_list = with_donated(as_inputs(inputs if arguments is None else arguments.inputs), donate)
        form = OutputForm(outputs)
        replaced = _given_pairs(givens, rebuild_strict)
        _refuse_undefined(form.variables)
        new_values = _updates(updates, input_list)
        given = {item.variable for item in input_list}
        new_values = _with_defaults(new_values, form.variables, given, no_default_updates, replaced)
        results = _replace_givens([*form.variables, *new_values.values()], replaced)
        named, unread = [item.variable for item in input_list], _unread_updates(input_list)
        written = [*results, *unread]
        input_list, results = _cut_at_inputs(input_list, results)
        cells = _cells([item.variable for item in input_list], results)
        unused = on_unused_input or config.on_unused_input
        fgraph = _graph([*(item.variable for item in input_list), *cells], results, named, written, unused)
        require_mutable(fgraph, [item.variable for item in input_list if item.mutable])
        _check_unused(fgraph, named, written, unused)
        if mode_name != "reference" or report.nan_guard != "off":
            fgraph = _inlined(fgraph, [item.variable for item in input_list])
        written_graph = fgraph
        if mode_name in ("fast_run", "tiered") and report.nan_guard == "off":
            fgraph = _folded(fgraph, [item.variable for item in input_list])
    targets = [item.default if isinstance(item, In) else item for item in new_values]
    signature = Signature(
        input_list,
        form.without_variables(),
        targets,
        name,
        trust_input,
        allow_input_downcast,
        None if arguments is None else arguments.without_variables(),
    )
    with new_objects_only():
        if mode_name == "tiered" and report.nan_guard == "off":
            return _tiered(fgraph, written_graph, signature, report)
        made: Function[Outputs] = Function(signature, build_program(fgraph, signature, report))
        return made


def _tiered(
    fgraph: FunctionGraph, written: FunctionGraph, signature: Signature, report: CompileReport
) -> Function[Any]:
    """A function that runs in NumPy until its code is there.

    Args:
        fgraph: the graph to compile.
        written: the graph to run in NumPy.
        signature: how calls look.
        report: gains times.
    """
    stored = stored_program(fgraph, signature, report)
    if stored is not None:
        return Function(signature, stored)
    pending = Pending(
        lambda: build_program(fgraph, signature, report, isolated=True),
        any(hasattr(node.op, "inner_outputs") for node in fgraph.nodes),
    )
    return Function(signature, first_program(written, report), pending)


def _refuse_undefined(outputs: list[Variable]) -> None:
    """Refuse outputs that stand for derivatives which do not exist: they have no value."""
    for k, v in enumerate(outputs):
        why = getattr(v.type, "why_null", None)
        if why is not None:
            raise TypeError(f"output {k} is an undefined gradient and has no value: {why}")


def _inlined(fgraph: FunctionGraph, inputs: list[Variable]) -> FunctionGraph:
    """The graph with ops such as `OpFromGraph` replaced by their graphs, whose constants become cells too."""
    if not any(node.op.inline_on is not None for node in fgraph.nodes):
        return fgraph
    from graphc.transforms.op_from_graph import expand

    results = expand(fgraph.outputs)
    return FunctionGraph([*inputs, *_cells(inputs, results)], results)


def _folded(fgraph: FunctionGraph, inputs: list[Variable]) -> FunctionGraph:
    """The graph without work on large constants alone."""
    if not any(map(is_hidden_argument, fgraph.inputs[len(inputs) :])):
        return fgraph
    from graphc.function.constants import with_known_values

    results = with_known_values(fgraph, len(inputs))
    return fgraph if results is None else FunctionGraph([*inputs, *_cells(inputs, results)], results)


def _pairs(pairs: Pairs, what: str) -> list[tuple[Any, Any]]:
    if pairs is None:
        return []
    try:
        given = list(pairs.items() if isinstance(pairs, Mapping) else pairs)
        if isinstance(pairs, set | frozenset) or any(isinstance(pair, set | frozenset) for pair in given):
            raise TypeError("a set has no order")
        result = [(old, new) for old, new in given]
    except (TypeError, ValueError):
        raise TypeError(
            f"{what} must be a dict or a list of pairs (variable, expression), got {pairs!r}"
        ) from None
    return result


def _updates(updates: Pairs, inputs: list[In]) -> dict[TensorSharedVariable, Variable]:
    """The new value of each shared variable, and of each input that has an update."""
    result: dict[Any, Variable] = {}
    for target, value in _pairs(updates, "updates"):
        if not isinstance(target, SharedVariable):
            raise TypeError(
                f"only shared variables can be updated, got {target!r} of type {type(target).__name__}; "
                "make it one with graphc.shared(value), or return its new value as an output"
            )
        if target in result:
            raise ValueError(f"the shared variable {target} is updated twice; give it one expression")
        try:
            result[target] = target.type.filter_variable(value)
        except TypeError:
            given = value.type if isinstance(value, Variable) else type(value).__name__
            hint = ""
            if getattr(getattr(value, "type", None), "ndim", None) == getattr(target.type, "ndim", -1):
                hint = f"; cast it with astype({getattr(target.type, 'dtype', None)!r})"
            raise TypeError(
                f"the update of the shared variable {target}{describe(target.location)} must be of its type "
                f"{target.type}, got {value} of type {given}{hint}"
            ) from None
    for item in inputs:
        if item.update is not None and item.default is not None:
            result[item] = item.update
    return result


def _unread_updates(inputs: list[In]) -> list[Variable]:
    """Updates of inputs that calls give each time: nobody reads them, but they must be computable.

    Raises:
        MissingInputError: one needs what is not among the inputs.
    """
    found = [item.update for item in inputs if item.update is not None and item.default is None]
    if found:
        given = [item.variable for item in inputs]
        FunctionGraph([*given, *_cells(given, found)], found)
    return found


def _with_defaults(
    updates: dict[Any, Variable],
    outputs: list[Variable],
    inputs: set[Variable],
    skip: bool | Sequence[SharedVariable] | None,
    replaced: dict[Variable, Variable],
) -> dict[TensorSharedVariable, Variable]:
    """Add the default updates of shared variables in the graph, and of those that these bring in. One that a
    given takes the place of, or that only inputs are computed from, is not in the graph.
    """
    if not isinstance(skip, bool | list | tuple | set | None):
        raise TypeError(
            f"no_default_updates must be a bool or a list of shared variables, got {skip!r} of type "
            f"{type(skip).__name__}"
        )
    if skip is True:
        return updates
    skipped = set(skip or ())
    found = True
    while found:
        found = False
        for v in list(ancestors(_replace_givens([*outputs, *updates.values()], replaced), inputs)):
            if (
                isinstance(v, SharedVariable)
                and v not in updates
                and v not in skipped
                and v.default_update is not None
            ):
                updates[v] = v.default_update
                found = True
    return updates


def _given_pairs(givens: Pairs, strict: bool) -> dict[Variable, Variable]:
    pairs = {}
    for old, new in _pairs(givens, "givens"):
        if not isinstance(old, Variable):
            raise TypeError(f"givens replace variables, got {old!r} of type {type(old).__name__}")
        if strict or not isinstance(new, Variable):
            try:
                new = of_type(old, new)
            except TypeError as error:
                raise TypeError(
                    f"the given for {old}{describe(old.location)} must be of type {old.type}: {error}"
                ) from None
        pairs[old] = new
    return pairs


def _replace_givens(results: list[Variable], pairs: dict[Variable, Variable]) -> list[Variable]:
    return graph_replace(results, pairs, strict=False) if pairs else results


def _cut_at_inputs(inputs: list[In], results: list[Variable]) -> tuple[list[In], list[Variable]]:
    """Give fresh root variables to inputs that are computed from others, so that the graph ends at them."""
    memo = {item.variable: fresh_root(item.variable) for item in inputs if item.variable.owner is not None}
    if not memo:
        return inputs, results
    results = rebuild(results, dict(memo), copy_nodes=False, strict=True)
    return [item.on(memo.get(item.variable, item.variable)) for item in inputs], results


def _cells(inputs: list[Variable], results: list[Variable]) -> list[Variable]:
    """Shared variables and large constants, in the order in which the graph uses them."""
    blockers = set(inputs)
    uses = [v for node in toposort(results, blockers) for v in node.inputs]
    return [
        v
        for v in dict.fromkeys([*uses, *results])
        if v not in blockers and (isinstance(v, SharedVariable) or is_hidden_argument(v))
    ]


def _graph(
    inputs: list[Variable],
    results: list[Variable],
    named: list[Variable],
    written: list[Variable],
    unused: str,
) -> FunctionGraph:
    """The graph; where it needs what is not given, an input that nothing reads is the likelier mistake."""
    try:
        return FunctionGraph(inputs, results)
    except MissingInputError:
        read = set(read_by(written, named))
        _refuse_unused([v for v in named if v not in read], unused)
        raise


def _check_unused(fgraph: FunctionGraph, named: list[Variable], written: list[Variable], action: str) -> None:
    """Refuse inputs that nothing reads, neither the graph nor the expressions as they were written.

    Args:
        fgraph: the graph.
        named: the variables that the user gave as inputs, in the order of the graph's.
        written: the results as expressions of these.
        action: what is done about inputs that are not used.
    """
    if action not in ("raise", "warn", "ignore"):
        raise ValueError(f"on_unused_input must be 'raise', 'warn' or 'ignore', got {action!r}")
    unused = [v for v, own in zip(named, fgraph.inputs, strict=False) if not fgraph.clients[own]]
    if not unused or action == "ignore":
        return
    read = set(read_by(written, named))
    _refuse_unused([v for v in unused if v not in read], action)


def _refuse_unused(unused: list[Variable], action: str) -> None:
    if not unused or action == "ignore":
        return
    listed = ", ".join(f"{v} of type {v.type}{describe(v.location)}" for v in unused)
    message = (
        f"no output or update uses the input{'s' if len(unused) > 1 else ''} {listed}; "
        "remove it, or pass on_unused_input='ignore'"
    )
    if action == "raise":
        raise UnusedInputError(message)
    warnings.warn(message, stacklevel=frames_inside() + 1)


def evaluate(variable: Variable, given: Mapping[Any, Any], options: dict[str, Any]) -> Any:
    """The value of ``variable``, see `Variable.eval`.

    Raises:
        ValueError: a name in ``given`` fits no variable of the graph, or several.
        TypeError: ``given`` is no mapping from variables or names.
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"eval() takes a dict from variables to values, got {given!r}")
    if options.get("on_unused_input") == "ignore":
        given = {k: value for k, value in given.items() if isinstance(k, Variable) or _named(variable, k)}
    inputs = [_resolve(variable, key) for key in given]
    compiled = variable.__dict__.setdefault("_compiled", {})
    key = (tuple(inputs), tuple(sorted(options.items())))
    try:
        known = compiled.get(key)
    except TypeError:
        # What the options hold may change, and its text need not tell one value from another.
        warnings.warn(
            f"eval() compiles each time, since its options cannot be hashed: {', '.join(options)}; "
            "give givens= as a tuple of pairs, or compile once with graphc.function",
            UserWarning,
            stacklevel=3,
        )
        return function(inputs, variable, **options)(*given.values())
    if known is None:
        known = compiled[key] = function(inputs, variable, **options)
    return known(*given.values())


def _named(variable: Variable, name: str) -> Sequence[Variable]:
    return get_var_by_name([variable], name) if isinstance(name, str) else ()


def _resolve(variable: Variable, key: TensorVariable) -> Variable:
    if isinstance(key, Variable):
        return key
    if not isinstance(key, str):
        raise TypeError(f"the keys of eval()'s argument must be variables or names, got {key!r}")
    found = _named(variable, key)
    if len(found) != 1:
        count = "no variable" if not found else f"{len(found)} variables"
        raise ValueError(
            f"{count} named {key!r} in the graph of {variable}; pass the variable itself as the key"
        )
    return found[0]
