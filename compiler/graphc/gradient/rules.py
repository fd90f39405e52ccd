# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of one op's differentiation rules, with checks on what they return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.errors import NullTypeGradError
from graphc.gradient.arithmetic import match_dtype
from graphc.gradient.connectivity import Paths
from graphc.gradient.types import is_disconnected, is_discrete, is_null
from graphc.graph.basic import Apply, Variable
from graphc.graph.location import describe
from graphc.graph.op import Op
from graphc.graph.replace import graph_replace
from graphc.graph.traversal import ancestors


def _overrides(op: Op, name: str) -> bool:
    return getattr(type(op), name, None) is not getattr(Op, name, None) or name in op.__dict__


def call_pullback(node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
    """``op.pullback`` of a node; ops written for Theano may define ``L_op`` or ``grad`` instead.

    Args:
        node: the application.
        cotangents: one for each output, None for zero.

    Returns:
        One term for each input: a variable of the input's rank and of continuous dtype, None for zero, or a
            placeholder.

    Raises:
        TypeError, ValueError: the rule returned something else; the message names the op and the user's line.
    """
    op: Any = node.op
    if _overrides(op, "pullback") or not (hasattr(op, "L_op") or hasattr(op, "grad")):
        name, terms = "pullback", op.pullback(node.inputs, node.outputs, list(cotangents))
    elif hasattr(op, "L_op"):
        name, terms = "L_op", op.L_op(node.inputs, node.outputs, list(cotangents))
    else:
        name, terms = "grad", op.grad(node.inputs, list(cotangents))
    return _checked(node, name, terms, node.inputs, "input")


def call_pushforward(node: Apply, tangents: Sequence[Variable | None]) -> list[Variable | None]:
    """``op.pushforward`` of a node, Theano's ``R_op``, or what follows from its pullback; otherwise as
    `call_pullback`.
    """
    op: Any = node.op
    if _overrides(op, "pushforward"):
        name, terms = "pushforward", op.pushforward(node.inputs, node.outputs, list(tangents))
    elif hasattr(op, "R_op"):
        name, terms = "R_op", op.R_op(node.inputs, list(tangents))
        _check_defined(node, terms, tangents)
    else:
        name, terms = "pullback", pushforward_through_pullback(op, node.inputs, node.outputs, tangents)
    return _checked(node, name, terms, node.outputs, "output")


def _check_defined(node: Apply, terms: Any, tangents: Sequence[Variable | None]) -> None:
    """Refuse what Theano's ``R_op`` says by None: not "zero", as `Op.pushforward` does, but "undefined"."""
    pattern = node.op.connection_pattern(node)
    for k, (y, term) in enumerate(zip(node.outputs, terms, strict=False)):
        connected = any(t is not None and row[k] for t, row in zip(tangents, pattern, strict=True))
        if term is None and connected and not is_discrete(y):
            raise ValueError(
                f"{node.op}.R_op{describe(node.location)} returns None for output {k}: it has no derivative. "
                "If it is zero, return zeros"
            )


def _checked(
    node: Apply, name: str, terms: Any, variables: Sequence[Variable], side: str
) -> list[Variable | None]:
    where = f"{node.op}.{name}{describe(node.location)}"
    if not isinstance(terms, list | tuple):
        raise TypeError(f"{where} must return a list of {len(variables)} variables or None, got {terms!r}")
    if len(terms) != len(variables):
        raise ValueError(
            f"{where} must return one term for each {side}, {len(variables)} in all, got {len(terms)}"
        )
    for i, (x, term) in enumerate(zip(variables, terms, strict=True)):
        if term is None:
            continue
        if not isinstance(term, Variable):
            raise TypeError(
                f"{where}: term {i} must be a variable or None, got {term!r} of type {type(term).__name__}"
            )
        if is_disconnected(term) or is_null(term):
            continue
        if is_discrete(term):
            raise TypeError(
                f"{where}: term {i} has the discrete type {term.type}; derivatives must be floating point"
            )
        if hasattr(x.type, "shape") and hasattr(term.type, "shape"):
            _check_shape(where, i, x, term, side)
    return list(terms)


def _check_shape(where: str, i: int, x: Variable, term: Variable, side: str) -> None:
    want, got = x.type.shape, term.type.shape
    if len(want) != len(got) or any(
        a is not None and b is not None and a != b for a, b in zip(want, got, strict=True)
    ):
        raise ValueError(
            f"{where}: term {i} has shape {got}, but {side} {i} has shape {want} (type {x.type})"
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
    """
    node = outputs[0].owner
    assert node is not None and node.op is op
    places = {y: y.type() for y in outputs if not is_discrete(y)}
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
    places: Sequence[Variable],
    pulled: Sequence[Variable | None],
    tangents: Sequence[Variable | None],
    outputs: Sequence[Variable],
) -> list[Variable | None]:
    """The transpose of the linear map from ``places`` to ``pulled``, applied to ``tangents``.

    Args:
        places: variables that stand for the cotangents of ``outputs``.
        pulled: what a pullback made of them.
        tangents: one for each ``pulled``, None for zero.
        outputs: variables with the shapes of ``places``.
    """
    from graphc.gradient.accumulate import Cotangents

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
