# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`subgraph_grad`: differentiate a graph piece by piece."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphc.gradient.arithmetic import total
from graphc.gradient.reverse import grad
from graphc.graph.basic import Variable


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
        end: variables where this part stops; their gradients go into the next call's ``start``.
        start: gradients that the previous part ended with.
        cost: scalar to differentiate in addition.
        details: also return what came from ``start`` and from ``cost`` alone.

    Returns:
        The gradients with respect to ``wrt`` and a dictionary of those with respect to ``end``; with
        ``details`` followed by the gradients from ``start`` and those from ``cost``, each for ``wrt`` and
        then ``end``. Disconnected ones are zero.

    Raises:
        ValueError: neither ``start`` nor ``cost`` is given.
    """
    if start is None and cost is None:
        raise ValueError("subgraph_grad needs start, cost, or both")
    wrt, end = list(wrt), list(end)
    targets = wrt + end
    options: dict[str, Any] = {"consider_constant": end, "disconnected_inputs": "ignore"}
    from_start = grad(None, targets, known_grads=start, **options) if start is not None else None
    from_cost = grad(cost, targets, **options) if cost is not None else None
    parts = [part for part in (from_start, from_cost) if part is not None]
    sums = [total(terms) for terms in zip(*parts, strict=True)]
    result = (sums[: len(wrt)], dict(zip(end, sums[len(wrt) :], strict=True)))
    return (*result, from_start, from_cost) if details else result
