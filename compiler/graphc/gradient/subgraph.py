# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`subgraph_grad`: differentiate a graph piece by piece."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphc.gradient.reverse import grad
from graphc.graph.basic import Variable
from graphc.ops.derivatives import total


def subgraph_grad(
    wrt: Sequence[Variable],
    end: Sequence[Variable],
    start: Mapping[Variable, Variable] | None = None,
    cost: Variable | None = None,
    details: bool = False,
) -> Any:
    """Gradients of a part of a graph, from a cost or known gradients back to the variables ``end``.

    Args:
        wrt: variables whose gradients are wanted now.
        end: variables where this part stops; with their gradients they are the next call's ``start``.
        start: variables and their gradients, as the previous part ended:
            ``dict(zip(end, gradients))``.
        cost: scalar to differentiate in addition.
        details: also return what came from ``start`` and from ``cost`` alone.

    Returns:
        Lists of the gradients with respect to ``wrt`` and to ``end``; with ``details`` followed by those
        with respect to ``wrt`` from ``start`` and from ``cost`` alone (None for the one that is not given).
        Disconnected ones are zero.

    Raises:
        ValueError: neither ``start`` nor ``cost`` is given.
        TypeError: ``wrt`` or ``end`` is no list, or ``start`` no mapping.

    Source: PyTensor's ``subgraph_grad``.

    Examples:
        >>> x, w = pt.scalar("x"), pt.scalar("w")
        >>> h = x * w
        >>> next_grad, last = graphc.gradient.subgraph_grad([w], [h], cost=h**2)
        >>> float(next_grad[0].eval({x: 2.0, w: 3.0}))
        24.0
    """
    if start is None and cost is None:
        raise ValueError("subgraph_grad needs start, cost, or both")
    for name, value in (("wrt", wrt), ("end", end)):
        if not isinstance(value, list | tuple):
            raise TypeError(f"subgraph_grad: {name} must be a list of variables, got {value!r:.80}")
    if start is not None and not isinstance(start, Mapping):
        raise TypeError(f"subgraph_grad: start must map variables to gradients, got {start!r:.80}")
    wrt, end = list(wrt), list(end)
    targets = wrt + end
    options: dict[str, Any] = {"consider_constant": end, "disconnected_inputs": "ignore"}
    from_start = grad(None, targets, known_grads=start, **options) if start is not None else None
    from_cost = grad(cost, targets, **options) if cost is not None else None
    parts = [part for part in (from_start, from_cost) if part is not None]
    sums = [total(terms) for terms in zip(*parts, strict=True)]
    count = len(wrt)
    result = (sums[:count], sums[count:])
    if not details:
        return result
    return (*result, *(None if part is None else part[:count] for part in (from_start, from_cost)))
