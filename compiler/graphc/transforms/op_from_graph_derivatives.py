# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Derivatives of `OpFromGraph`: overrides where given, otherwise ops of the same kind made from the inner
graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphc.gradient.accumulate import Cotangents
from graphc.gradient.connectivity import Paths
from graphc.gradient.forward import tangents_of
from graphc.gradient.transposed import pushforward_through_pullback
from graphc.graph.basic import Variable
from graphc.graph.equality import equal_computations
from graphc.graph.op import Op
from graphc.graph.undefined import is_disconnected, is_null
from graphc.ops.derivatives import gradient_dtype, zeros_like

if TYPE_CHECKING:
    from graphc.transforms.op_from_graph import OpFromGraph

Terms = list[Variable | None]


def pullback(
    op: OpFromGraph,
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    cotangents: Sequence[Variable | None],
) -> Terms:
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


def pushforward(
    op: OpFromGraph,
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    tangents: Sequence[Variable | None],
) -> Terms:
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
    result = rule(*flat) if isinstance(rule, Op) else rule(*arguments)
    return list(result) if isinstance(result, list | tuple) else [result]


def same_overrides(op: OpFromGraph, other: OpFromGraph) -> bool:
    """Whether the overrides of two ops with equal graphs make equal graphs of the same arguments."""
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


def _derived_pullback(
    op: OpFromGraph, inputs: Sequence[Variable], cotangents: Sequence[Variable | None]
) -> Terms:
    """The pullback of the inner graph as an op, one for each set of outputs that have a cotangent."""
    live = tuple(g is not None for g in cotangents)
    given = [g for g in cotangents if g is not None]
    key = ("pullback", live)
    if key not in op._derived:
        op._derived[key] = _build(op, "pullback", live)
    return _apply(op._derived[key], inputs, given)


def _derived_pushforward(
    op: OpFromGraph, inputs: Sequence[Variable], tangents: Sequence[Variable | None]
) -> Terms:
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


def _apply(
    built: tuple[OpFromGraph | None, list[Any]], inputs: Sequence[Variable], given: Sequence[Variable]
) -> Terms:
    op, layout = built
    outputs = op(*inputs, *given, return_list=True) if op is not None else []
    return [outputs[term] if isinstance(term, int) else term for term in layout]
