# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of one op's differentiation rules, with checks on what they return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.graph.basic import Apply, Maybe, Variable, describe, of_node
from graphc.graph.op import Op
from graphc.graph.undefined import is_disconnected, is_discrete, is_null


def overrides(op: Op, name: str) -> bool:
    """True if an op has a rule of its own."""
    return getattr(type(op), name, None) is not getattr(Op, name, None) or name in op.__dict__


def call_pullback(node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
    """``op.pullback`` of a node; ops written for Theano may define ``L_op`` or ``grad`` instead.

    Rules are asked only where an output of floating-point numbers has a cotangent: they need not look.

    Args:
        node: the application.
        cotangents: one for each output, None for zero, as those of integers are.

    Returns:
        One term for each input: a variable of the input's rank and of continuous dtype, None for zero, or a
            placeholder.

    Raises:
        TypeError, ValueError: the rule returned something else; the message names the op and the user's line.
    """
    op: Any = node.op
    if all(g is None or is_discrete(y) for y, g in zip(node.outputs, cotangents, strict=True)):
        return [None] * len(node.inputs)
    with of_node(node.location if type(op).__module__.startswith("graphc.") else None):
        name, terms = _pulled(op, node, cotangents)
    return checked_terms(node, name, terms, node.inputs, "input")


def _pulled(op: Any, node: Apply, cotangents: Maybe) -> tuple[str, Sequence[Variable | None]]:
    """The name of the rule that an op has, and its terms."""
    if overrides(op, "pullback") or not (hasattr(op, "L_op") or hasattr(op, "grad")):
        return "pullback", op.pullback(node.inputs, node.outputs, list(cotangents))
    if hasattr(op, "L_op"):
        return "L_op", op.L_op(node.inputs, node.outputs, list(cotangents))
    return "grad", op.grad(node.inputs, list(cotangents))


def checked_terms(
    node: Apply, name: str, terms: Sequence[Variable | None], variables: Sequence[Variable], side: str
) -> list[Variable | None]:
    """The terms that a rule returned, which must fit the variables they belong to."""
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
