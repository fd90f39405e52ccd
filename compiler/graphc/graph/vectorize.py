# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adds a batch axis in front of some variables of a graph, and so of all that is computed from them.

An op says how by ``batch(node, inputs, batched, size) -> list of outputs``; the rules of graphc's own ops are
in `graphc.ops.batching`. Where there is no rule and the batch size is static, the op is applied to each
element of the batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphc.errors import VectorizeError
from graphc.graph.basic import Apply, Variable
from graphc.graph.location import describe
from graphc.graph.replace import rebuild
from graphc.graph.traversal import toposort

_UNROLL_LIMIT = 256


def batch_graph(
    outputs: Sequence[Variable], replace: Mapping[Variable, Variable], size: Any
) -> list[Variable]:
    """The graph of ``outputs`` for a batch of values of some variables.

    Args:
        outputs: tensor variables.
        replace: variables of the graph, and what stands for each: a variable with one more axis in front.
        size: the size of this axis, an int or a 0-d integer variable.

    Returns:
        The outputs with the batch axis in front; those that do not depend on the batch are repeated along it.

    Raises:
        ValueError: a replacement has not exactly one dimension more than what it replaces.
        VectorizeError: an op has no batching rule, and the size is not static (or is too large to unroll).
    """
    memo: dict[Variable, Variable] = {}
    for old, new in replace.items():
        if new.type.ndim != old.type.ndim + 1:  # type: ignore[attr-defined]
            raise ValueError(
                f"the batch for {old} of type {old.type} must have one dimension more, "
                f"got {new} of type {new.type}"
            )
        memo[old] = new
    for node in toposort(outputs, blockers=set(replace)):
        if any(x in memo for x in node.inputs):
            memo.update(zip(node.outputs, _batch_node(node, memo, size), strict=True))
    return [memo[y] if _is_batched(y, memo) else repeat(memo.get(y, y), size) for y in outputs]


def vectorize_graph(
    outputs: Variable | Sequence[Variable], replace: Mapping[Variable, Variable]
) -> Variable | Sequence[Variable]:
    """As `batch_graph`, for replacements with any number of axes more, the same for all of them.

    Args:
        outputs: variable or list of variables.
        replace: variables of the graph, and what stands for each; replacements of the same rank are only
            replaced.

    Returns:
        The outputs with the additional axes in front, in the container that ``outputs`` came in.

    Source: PyTensor's ``vectorize_graph``.
    """
    listed = [outputs] if isinstance(outputs, Variable) else list(outputs)
    extra = {old: new.type.ndim - old.type.ndim for old, new in replace.items()}  # type: ignore[attr-defined]
    depth = max(extra.values(), default=0)
    if any(n not in (0, depth) for n in extra.values()):
        raise ValueError(
            "replacements must all have the same number of additional dimensions, "
            f"got {sorted(extra.values())}"
        )
    batched = {old: new for old, new in replace.items() if extra[old]}
    result = rebuild(
        listed, {old: new for old, new in replace.items() if not extra[old]}, copy_nodes=False, strict=False
    )
    current = {old: old for old in batched}
    # The innermost axis first: each round puts one more in front.
    for level in reversed(range(depth)):
        grown = {old: new.type.clone(shape=new.type.shape[level:])() for old, new in batched.items()}
        first = next(iter(batched.values()))
        static = first.type.shape[level]  # type: ignore[attr-defined]
        size = static if static is not None else first.shape[level]  # type: ignore[attr-defined]
        result = batch_graph(result, {current[old]: grown[old] for old in batched}, size)
        current = grown
    result = rebuild(
        result, {current[old]: new for old, new in batched.items()}, copy_nodes=False, strict=False
    )
    if isinstance(outputs, Variable):
        return result[0]
    return tuple(result) if isinstance(outputs, tuple) else result


def repeat(x: Variable, size: Any) -> Variable:
    """``x`` repeated along a new axis in front."""
    import graphc.tensor as pt
    from graphc.ops.sizes import sizes_of

    return pt.broadcast_to(x, (size, *sizes_of(x)))


def _is_batched(v: Variable, memo: Mapping[Variable, Variable]) -> bool:
    return v in memo and memo[v].type.ndim == v.type.ndim + 1  # type: ignore[attr-defined]


def _batch_node(node: Apply, memo: Mapping[Variable, Variable], size: Any) -> list[Variable]:
    """The outputs of a node for a batch of some of its inputs; an output of unchanged rank is the same for
    all.
    """
    from graphc.ops.batching import rule_of

    inputs = [memo.get(x, x) for x in node.inputs]
    batched = [_is_batched(x, memo) for x in node.inputs]
    if not any(batched):
        # Only sizes of batched variables reach here: the value is another expression of the same rank.
        return node.clone_with_new_inputs(inputs, strict=False).outputs
    rule = rule_of(node.op)
    if rule is not None:
        try:
            return rule(node.op, node, inputs, batched, size)
        except VectorizeError as error:
            reason = str(error)
    else:
        reason = f"{node.op} has no batching rule"
    return _unroll(node, inputs, batched, size, reason)


def _unroll(
    node: Apply, inputs: list[Variable], batched: list[bool], size: Any, reason: str
) -> list[Variable]:
    """Apply the op to each element of the batch."""
    import graphc.tensor as pt

    if not isinstance(size, int) or not 0 < size <= _UNROLL_LIMIT:
        raise VectorizeError(
            f"{reason}{describe(node.location)}, and a batch of size {size} cannot be unrolled"
        )
    columns: list[Sequence[Variable]] = []
    for i in range(size):
        element: list[Any] = [x[i] if b else x for x, b in zip(inputs, batched, strict=True)]  # type: ignore[index]
        columns.append(node.clone_with_new_inputs(element, strict=False).outputs)
    return [pt.stack(list(rows)) for rows in zip(*columns, strict=True)]
