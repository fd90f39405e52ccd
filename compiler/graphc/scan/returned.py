# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results of a scan's function: outputs, updates of shared variables, a condition.

``until``: how the function of a loop ends the loop early.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.graph.basic import Variable, describe
from graphc.graph.shared import SharedVariable
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.ops.math import ne
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc.graph.tensor.variable import TensorVariable
    from graphc.scan.builder import Callee


class until:
    """Ends a scan after the iteration in which a condition holds; that iteration still counts.

    Args:
        condition: a scalar; zero goes on, anything else ends the loop.

    Raises:
        TypeError: the condition is no scalar.

    Examples:
        >>> doubled = lambda v: (v * 2, graphc.until(v * 2 > 20))
        >>> values = graphc.scan(doubled, outputs_info=[pt.constant(3)], n_steps=99, return_updates=False)
        >>> values.eval()
        array([ 6, 12, 24])
    """

    def __init__(self, condition: TensorVariable) -> None:
        self.condition = as_condition(condition, "until")

    def __repr__(self) -> str:
        return f"until({self.condition})"


def as_condition(value: TensorVariable, what: str) -> TensorVariable:
    """A condition as a 0-d bool.

    Raises:
        TypeError: it is no scalar.
    """
    condition = as_tensor_variable(value)
    if condition.type.ndim:
        raise TypeError(
            f"the condition of {what} must be a scalar, got {condition} of type {condition.type}"
            f"{describe(condition.location)}; reduce it with all() or any()"
        )
    if condition.type.dtype == "bool":
        return condition
    return ne(condition, 0)


@record()
class Returned:
    """The parts of a returned value."""

    outputs: list[Variable] = field(default_factory=list)
    updates: dict[Any, Any] = field(default_factory=dict)
    condition: Variable | None = None


def parse(value: object, callee: Callee) -> Returned:
    """Tells outputs, updates and condition apart.

    Accepted are an output or a list of outputs, a dict of updates (or a list of pairs that begin with shared
    variables) and an `until`, each at most once, in any order; outputs may also stand one by one.

    Raises:
        TypeError: something else was returned, or two of a kind.
    """
    parser = _Parser(value, callee)
    if _is_updates(value) or not isinstance(value, list | tuple):
        parser.part(value)
    else:
        for part in value:
            parser.part(part)
    return parser.result


class _Parser:
    def __init__(self, value: object, callee: Callee) -> None:
        self.result = Returned()
        self._value, self._callee = value, callee
        self._seen: set[str] = set()

    def part(self, part: Any) -> None:
        if isinstance(part, until):
            self._only("a condition")
            self.result.condition = part.condition
        elif _is_updates(part):
            self._only("updates")
            self._updates(dict(part))
        elif isinstance(part, list | tuple):
            self._only("outputs", clashes="single outputs")
            self.result.outputs += [self._output(each) for each in part]
        else:
            if "outputs" in self._seen:
                raise self._error("has an output beside a list of outputs")
            self._seen.add("single outputs")
            self.result.outputs.append(self._output(part))

    def _only(self, kind: str, clashes: str = "") -> None:
        if clashes in self._seen:
            raise self._error("has a list of outputs beside an output")
        if kind in self._seen:
            raise self._error(f"has {kind} twice")
        self._seen.add(kind)

    def _updates(self, updates: dict[object, object]) -> None:
        for target in updates:
            if not isinstance(target, SharedVariable):
                raise self._error(f"updates {target!r}, which is no shared variable")
        self.result.updates = updates

    def _output(self, value: TensorVariable) -> Variable:
        if isinstance(value, Variable):
            return value
        if isinstance(value, Number | np.ndarray | np.generic):
            return as_tensor_variable(value)
        what = "None" if value is None else f"{value!r:.80} of type {type(value).__name__}"
        raise self._error(f"has {what} where an output is expected")

    def _error(self, problem: str) -> TypeError:
        return TypeError(
            f"{self._callee} must return variables, a dict of updates of shared variables, until(condition), "
            f"or a tuple of these; what it returns {problem}: {self._value!r:.200}"
        )


def _is_updates(value: Any) -> bool:
    if isinstance(value, Mapping):
        return True
    pairs = isinstance(value, list | tuple) and len(value) > 0
    return pairs and all(
        isinstance(p, list | tuple) and len(p) == 2 and isinstance(p[0], SharedVariable) for p in value
    )
