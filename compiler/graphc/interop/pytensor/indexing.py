# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading and writing parts of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.tensor.subtensor import indices_from_subtensor

import graphc.tensor as pt
from graphc.interop.pytensor.convert import Converter, NoConversion, Values, converts, static_int

if TYPE_CHECKING:
    from pytensor.graph.op import Op

    from graphc.interop.pytensor.convert import Result


def _index(op: Op, node: Apply, skipped: int, c: Converter) -> tuple[object, ...]:
    """The index of an op: integers, slices, masks and arrays of positions.

    Args:
        op: its ``idx_list`` says how the inputs make an index, in a form that differs between versions;
            without one they are the index.
        node: of the op.
        skipped: how many inputs come before those of the index.
        c: knows what stands for them.
    """
    variables = node.inputs[skipped:]
    form = getattr(op, "idx_list", None)
    entries = variables if form is None else indices_from_subtensor(variables, form)
    return tuple(_entry(entry, c) for entry in entries) or (Ellipsis,)


def _entry(entry: object, c: Converter) -> Any:
    if isinstance(entry, slice):
        return slice(_entry(entry.start, c), _entry(entry.stop, c), _entry(entry.step, c))
    if not isinstance(entry, Variable):
        return entry
    if isinstance(entry, Constant) and getattr(entry.type, "ndim", None) == 0:
        value = np.asarray(entry.data)
        return bool(value) if value.dtype == bool else int(value)
    return c[entry]


@converts("Subtensor", "AdvancedSubtensor", "AdvancedSubtensor1")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    index = _index(op, node, 1, c)
    # An element of a vector of single values is that value; as a tuple, the index would be one of the vector.
    return inputs[0][index[0] if len(index) == 1 else index]


@converts("IncSubtensor", "AdvancedIncSubtensor", "AdvancedIncSubtensor1")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    x, y = inputs[:2]
    part = x[_index(op, node, 2, c)]
    y = pt.cast(y, x.type.dtype)
    if op.set_instead_of_inc:
        return pt.second(x, y) if part is x else pt.set_subtensor(part, y)
    if part is x:
        return x + y
    return pt.inc_subtensor(part, y, ignore_duplicates=getattr(op, "ignore_duplicates", False))


@converts("MakeSlice")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    return slice(*inputs)


@converts("Nonzero")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    return list(pt.nonzero(inputs[0]))


@converts("PermuteRowElements")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    inverse = getattr(op, "inverse", None)
    if inverse is None:
        inverse = static_int(node.inputs[2]) if len(node.inputs) > 2 else 0
    if inverse is None:
        raise NoConversion("whether to invert the permutation is computed")
    return pt.permute_row_elements(inputs[0], inputs[1], inverse=bool(inverse))


@converts("Choose")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    return pt.choose(inputs[0], inputs[1], mode=op.mode)
