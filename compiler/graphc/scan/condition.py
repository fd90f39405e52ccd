# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``until``: how the function of a loop ends the loop early."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.graph.location import describe
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.ops.math import ne

if TYPE_CHECKING:
    from graphc.graph.tensor.variable import TensorVariable


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
