# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Variables between ``wrt`` and the outputs, by each op's `connection_pattern`."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from graphc.errors import DisconnectedInputError
from graphc.graph.basic import Apply, Variable, describe, frames_inside
from graphc.graph.traversal import toposort

Pattern = list[list[bool]]


def pattern_of(node: Apply) -> Pattern:
    """The node's connection pattern, checked.

    Raises:
        ValueError: the op returned a pattern of the wrong size.
    """
    pattern = node.op.connection_pattern(node)
    if len(pattern) != len(node.inputs) or any(len(row) != len(node.outputs) for row in pattern):
        raise ValueError(
            f"{node.op}.connection_pattern must return {len(node.inputs)} rows (inputs) of "
            f"{len(node.outputs)} booleans (outputs), got {pattern!r}"
        )
    return pattern


class Paths:
    """The part of a graph through which ``wrt`` can influence the outputs.

    Args:
        outputs: where to start.
        wrt: variables whose influence is followed.
        constants: variables that depend on nothing.
        blockers: variables beyond which nothing is looked at.

    Attributes:
        nodes: nodes below the outputs, in an order in which they can run.
        patterns: connection pattern of each of them.
        depends: the variables that are a function of the elements of some ``wrt``.
        ends: ``wrt`` and ``constants``.
    """

    def __init__(
        self,
        outputs: Iterable[Variable],
        wrt: Sequence[Variable],
        constants: Collection[Variable] = (),
        blockers: Collection[Variable] = (),
    ) -> None:
        self.nodes = list(toposort(outputs, blockers=blockers))
        self.patterns = {node: pattern_of(node) for node in self.nodes}
        self.depends: set[Variable] = set(wrt)
        constants = set(constants)
        self.ends: set[Variable] = self.depends | constants
        for node in self.nodes:
            pattern = self.patterns[node]
            active = [i for i, x in enumerate(node.inputs) if x in self.depends]
            if active:
                self.depends.update(
                    y
                    for j, y in enumerate(node.outputs)
                    if y not in constants and any(pattern[i][j] for i in active)
                )


def io_connection_pattern(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> Pattern:
    """``pattern[i][j]``: whether output j of a graph depends on the elements of input i.

    Examples:
        >>> x, y = pt.scalar("x"), pt.scalar("y")
        >>> graphc.gradient.io_connection_pattern([x, y], [x * 2])
        [[True], [False]]
    """
    columns = []
    for x in inputs:
        depends = Paths(outputs, [x]).depends
        columns.append([output in depends for output in outputs])
    return columns


def check_choice(name: str, value: str, choices: Sequence[str]) -> str:
    """``value`` in lower case.

    Raises:
        ValueError: it is none of ``choices``.
    """
    lowered = value.lower() if isinstance(value, str) else value
    if lowered not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return lowered


def report_disconnected(what: str, policy: str, fix: str) -> None:
    """Raise, warn or do nothing about a missing connection.

    Args:
        what: the sentence that says what is not connected.
        policy: ``"raise"``, ``"warn"`` or ``"ignore"``.
        fix: what the user can do about it.

    Raises:
        DisconnectedInputError: with policy ``"raise"``.
    """
    if policy == "raise":
        raise DisconnectedInputError(f"{what}; {fix}")
    if policy == "warn":
        warnings.warn(what, stacklevel=frames_inside() + 1)


def as_given(found: Sequence[Variable | None], given: object) -> Any:
    """Results in the form of what was given: a tuple, a list, or a single variable."""
    if isinstance(given, tuple):
        return tuple(found)
    return found if isinstance(given, Sequence) else found[0]


def input_message(x: Variable) -> str:
    """The sentence about a ``wrt`` that has no influence."""
    return (
        f"the gradient was asked with respect to {x} of type {x.type}{describe(x.location)}, "
        "which the cost does not depend on, or only through what passes no gradient (shapes, draws of "
        "discrete distributions, disconnected_grad)"
    )
