# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which variables the function of a loop takes from around it."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from graphc.graph.basic import Constant, Variable
from graphc.graph.tensor.type import TensorType

_PREFIX = "auto_"


def _age(v: Variable) -> int:
    """Variables are numbered in the order in which they are made."""
    return int(v.auto_name.removeprefix(_PREFIX))


def mark() -> int:
    """A point in time: whatever is made from now on `is_new`."""
    return _age(Variable(TensorType("bool", ())))


def is_new(v: Variable, since: int) -> bool:
    """Whether a variable was made after a `mark`."""
    return _age(v) > since


def captured(outputs: Iterable[Variable], inner: Collection[Variable], since: int) -> list[Variable]:
    """What a loop's function reads besides its arguments, in order of first use.

    A variable that was there before the function was called is captured as it is. What the function computes
    itself belongs to the loop, even where no argument takes part; passes move that out later. Only tensors
    that are parts of what machine code cannot read (sparse matrices) are captured then: with them in its body
    the loop would run in Python. Constants are part of the loop.

    Args:
        outputs: what the function returned.
        inner: the variables that stand for rows.
        since: a `mark` set before the function was called.
    """
    arguments = set(inner)
    found: dict[Variable, None] = {}
    seen: set[Variable] = set()
    stack = list(outputs)[::-1]
    while stack:
        v = stack.pop()
        if v in seen or v in arguments or isinstance(v, Constant):
            continue
        seen.add(v)
        # Nothing old depends on the arguments, which are younger, so there is no need to look beyond it.
        if v.owner is None or not is_new(v, since) or _is_fixed_part(v, arguments, since):
            found[v] = None
        else:
            stack.extend(reversed(v.owner.inputs))
    return list(found)


def _is_fixed_part(v: Variable, arguments: Collection[Variable], since: int) -> bool:
    """Whether a tensor is taken from a value that has to be taken apart and is the same in all iterations."""
    assert v.owner is not None
    if v.type.is_taken_apart or not any(x.type.is_taken_apart for x in v.owner.inputs):
        return False
    seen: set[Variable] = set()
    stack = [v]
    while stack:
        x = stack.pop()
        if x in arguments:
            return False
        if x not in seen:
            seen.add(x)
            if x.owner is not None and is_new(x, since):
                stack.extend(x.owner.inputs)
    return True
