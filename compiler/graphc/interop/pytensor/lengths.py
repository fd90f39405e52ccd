# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether a size of PyTensor's graph is a number of steps plus a constant: sizes as sums of terms."""

from __future__ import annotations

from collections import Counter

from pytensor.graph.basic import Variable

from graphc.interop.pytensor.convert import static_int

# A constant, and how often each variable is added.
Sum = tuple[int, "Counter[Variable]"]
_HAND_THROUGH = ("TensorFromScalar", "ScalarFromTensor")


def length_of(buffer: Variable) -> Variable | int | None:
    """The number of rows of a buffer, if known, or if the buffer is an allocation of which rows were set."""
    if buffer.type.shape[0] is not None:
        return int(buffer.type.shape[0])
    node = buffer.owner
    name = type(node.op).__name__ if node is not None else ""
    if name == "IncSubtensor":
        return length_of(node.inputs[0])
    if name == "AllocEmpty":
        return node.inputs[0]
    if name == "Alloc" and len(node.inputs) == buffer.type.ndim + 1:
        return node.inputs[1]
    return None


def is_length(length: Variable | int | None, steps: Variable, more: int) -> bool:
    """Whether the length is shown to be the number of steps and `more`; False means that it is not known."""
    if length is None:
        return False
    constant, terms = _sum(steps)
    return (_sum(length) if isinstance(length, Variable) else (length, Counter())) == (constant + more, terms)


def _sum(size: Variable) -> Sum:
    """A size as a constant and variables, which are compared by identity."""
    known = static_int(size)
    if known is not None:
        return known, Counter()
    node = size.owner
    if node is None:
        return 0, Counter([size])
    scalar = getattr(node.op, "scalar_op", node.op)
    name = type(scalar).__name__
    if name == "Cast" or name in _HAND_THROUGH:
        return _sum(node.inputs[0])
    if name in ("Add", "Sub"):
        constant, terms = _sum(node.inputs[0])
        sign = 1 if name == "Add" else -1
        for term in node.inputs[1:]:
            other, its = _sum(term)
            constant += sign * other
            for variable, count in its.items():
                terms[variable] += sign * count
        return constant, Counter({variable: count for variable, count in terms.items() if count})
    static = _static_size(size)
    return (0, Counter([size])) if static is None else (static, Counter())


def _static_size(size: Variable) -> int | None:
    """The number that a `Shape_i`, or an element of a `Shape`, is."""
    node = size.owner
    name = type(node.op).__name__
    if name == "Shape_i":
        return node.inputs[0].type.shape[node.op.i]
    if name == "Subtensor" and len(node.inputs) == 2:
        shape, axis = node.inputs[0].owner, static_int(node.inputs[1])
        if shape is not None and type(shape.op).__name__ == "Shape" and axis is not None:
            return shape.inputs[0].type.shape[axis]
    return None
