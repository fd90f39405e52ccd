# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tangents: by an op's own rule, or by the transpose of its pullback."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.errors import NullTypeGradError
from graphc.gradient.accumulate import Cotangents
from graphc.gradient.connectivity import Paths
from graphc.gradient.rules import call_pullback, checked_terms, overrides
from graphc.graph.basic import Apply, Maybe, Variable, Variables, describe
from graphc.graph.op import Op
from graphc.graph.replace import graph_replace
from graphc.graph.traversal import ancestors
from graphc.graph.undefined import is_disconnected, is_discrete, is_null
from graphc.ops.derivatives import match_dtype


def call_pushforward(node: Apply, tangents: Sequence[Variable | None]) -> list[Variable | None]:
    """``op.pushforward`` of a node, Theano's ``R_op``, or what follows from its pullback; otherwise as
    `call_pullback`: the rule is asked only where an input has a tangent, and an output can have one.
    """
    op: Any = node.op
    if all(t is None for t in tangents) or all(map(is_discrete, node.outputs)):
        return [None] * len(node.outputs)
    if overrides(op, "pushforward"):
        name, terms = "pushforward", op.pushforward(node.inputs, node.outputs, list(tangents))
        if terms is NotImplemented:
            name, terms = "pullback", pushforward_through_pullback(op, node.inputs, node.outputs, tangents)
    elif hasattr(op, "R_op"):
        name, terms = "R_op", op.R_op(node.inputs, list(tangents))
        _check_defined(node, terms, tangents)
    else:
        name, terms = "pullback", pushforward_through_pullback(op, node.inputs, node.outputs, tangents)
    return checked_terms(node, name, terms, node.outputs, "output")


def _check_defined(node: Apply, terms: Maybe, tangents: Maybe) -> None:
    """Refuse what Theano's ``R_op`` says by None: not "zero", as `Op.pushforward` does, but "undefined"."""
    pattern = node.op.connection_pattern(node)
    for k, (y, term) in enumerate(zip(node.outputs, terms, strict=False)):
        connected = any(t is not None and row[k] for t, row in zip(tangents, pattern, strict=True))
        if term is None and connected and not is_discrete(y):
            raise ValueError(
                f"{node.op}.R_op{describe(node.location)} returns None for output {k}: it has no derivative. "
                "If it is zero, return zeros"
            )


def pushforward_through_pullback(
    op: Op, inputs: Sequence[Variable], outputs: Sequence[Variable], tangents: Sequence[Variable | None]
) -> list[Variable | None]:
    """Tangents of an op's outputs from its `pullback` alone.

    The pullback is linear in its cotangents; the transpose of that linear map is the pushforward, and
    transposing is what a second pullback does.

    Args:
        op: the op.
        inputs: its inputs.
        outputs: outputs of a node of ``op`` on these inputs.
        tangents: one for each input, None for zero.

    Returns:
        One tangent for each output, None for zero.

    Raises:
        NullTypeGradError: the pullback is undefined for an input that has a tangent.

    Source: J. Townsend, "A new trick for calculating Jacobian vector products", 2017.

    Examples:
        >>> x = pt.scalar("x")
        >>> y = pt.sin(x)
        >>> op = y.owner.op
        >>> tangent = graphc.gradient.pushforward_through_pullback(op, [x], [y], [pt.constant(2.0)])[0]
        >>> float(tangent.eval({x: 0.0}))
        2.0
    """
    node = outputs[0].owner
    assert node is not None and node.op is op
    places = {y: y.type.make_variable() for y in outputs if not is_discrete(y)}
    if not places:
        return [None] * len(outputs)
    pulled = call_pullback(node, [places.get(y) for y in outputs])
    for i, (term, t) in enumerate(zip(pulled, tangents, strict=True)):
        if is_null(term) and t is not None:
            raise NullTypeGradError(f"{op} passes no tangent from input {i}: {term.type.why_null}")
    found = dict(
        zip(places, transpose_pullback(list(places.values()), pulled, tangents, list(places)), strict=True)
    )
    return [found.get(y) for y in outputs]


def transpose_pullback(
    places: Variables, pulled: Maybe, tangents: Maybe, outputs: Variables
) -> list[Variable | None]:
    """The transpose of the linear map from ``places`` to ``pulled``, applied to ``tangents``.

    Args:
        places: variables that stand for the cotangents of ``outputs``.
        pulled: what a pullback made of them.
        tangents: one for each ``pulled``, None for zero.
        outputs: variables with the shapes of ``places``.
    """
    seeds: dict[Variable, Variable] = {}
    for term, t in zip(pulled, tangents, strict=True):
        if t is None or term is None or is_disconnected(term):
            continue
        t = match_dtype(term, t)
        seeds[term] = seeds[term] + t if term in seeds else t
    cotangents = Cotangents(Paths(seeds, places), seeds)
    cotangents.run()
    result = [cotangents.of(place) if place in cotangents.reached else None for place in places]
    known = [g for g in result if g is not None]
    # What is left of the places can only be their shapes, which are those of the outputs.
    found = set(ancestors(known))
    left = {place: y for place, y in zip(places, outputs, strict=True) if place in found}
    if not left:
        return result
    replaced = iter(graph_replace(known, left))
    return [None if g is None else next(replaced) for g in result]
