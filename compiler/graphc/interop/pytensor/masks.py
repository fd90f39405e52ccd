# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of data that count for equal data only, and are computed once.

Densities of censored data compare these with their bounds: ``switch(eq(y, 2.5), log(gammaincc(a, b * y)),
...)``. The mask is known when the graph is built, and wherever it chooses the first side all y are 2.5, so
that the incomplete gamma function is needed of one number instead of one for each observation. The same holds
for derivatives, where the mask is a factor: ``switch(eq(y, 2.5), g, 0) * f(y)``, of which conversion lets the
zeros stay zeros (`graphc.interop.pytensor.elementwise`).

Two walks: backwards, which elements of each result anybody reads; and, at each operand of which not all
elements are read, whether those that are read can be computed from equal numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.traversal import toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import Alloc
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Sum
from pytensor.tensor.variable import TensorConstant

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values: TypeAlias = NDArray[np.generic]
    # Which elements of an array.
    Mask: TypeAlias = NDArray[np.bool_]

# Conditions are looked into as deep as this.
_DEPTH = 8


def computed_once(outputs: Sequence[Variable]) -> list[Variable]:
    """The outputs, with what constant masks leave equal elements of computed from one element."""
    order = list(toposort(list(outputs)))
    masks = {node: mask for node in order if (mask := _mask(node)) is not None}
    if not masks:
        return list(outputs)
    found = _Reading(order, outputs, masks)
    made = found.made
    for node in order:
        inputs = []
        for variable, read in zip(node.inputs, found.of_operands(node), strict=True):
            small = found.small(variable, read)
            inputs.append(made.get(variable, variable) if small is None else small)
        if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
            made.update(zip(node.outputs, _applied_to(node, inputs), strict=True))
    results = [made.get(variable, variable) for variable in outputs]
    same = all(new.type == old.type for new, old in zip(results, outputs, strict=True))
    return results if same else list(outputs)


class _Reading:
    """Elements of variables that are read.

    Args:
        order: the nodes of the graph, sorted.
        outputs: of the graph, read as a whole.
        masks: of the nodes that are a `switch` by a constant condition.

    Attributes:
        made: what replaces variables, as far as the graph has been walked.
    """

    def __init__(self, order: list[Apply], outputs: Sequence[Variable], masks: dict[Apply, Mask]) -> None:
        self.made: dict[Variable, Variable] = {}
        self._masks = masks
        self._zero: dict[Variable, Mask] = {}
        for node in order:
            self._find_zeros(node)
        # Elements of a variable that are read; None if these are all.
        self._read: dict[Variable, Mask | None] = dict.fromkeys(outputs)
        for node in reversed(order):
            for variable, read in zip(node.inputs, self.of_operands(node), strict=True):
                before = self._read.get(variable, read)
                self._read[variable] = None if read is None or before is None else before | read
        self._small: dict[tuple[Variable, bytes], Variable | None] = {}

    def of_operands(self, node: Apply) -> list[Mask | None]:
        """The elements that a node reads of each operand, None if these are all."""
        shape = _shape(node) or self._shape_read(node)
        if shape is None:
            return [None] * len(node.inputs)
        reads = [self._read.get(output, np.zeros(shape, bool)) for output in node.outputs]
        whole = any(read is None for read in reads)
        read = np.ones(shape, bool) if whole else np.logical_or.reduce([r for r in reads if r is not None])
        mask, name = self._masks.get(node), _name(node)
        found: list[Mask | None] = [read] * len(node.inputs)
        if _passes_on(node):
            found[1:] = [None] * len(found[1:])
        elif mask is not None:
            found = [np.ones(shape, bool), read & mask, read & ~mask]
        elif name == "Second":  # of the first operand the shape is read, which is known
            found[0] = np.zeros(shape, bool)
        elif name in ("Mul", "TrueDiv"):
            # One factor only: where two are 0, one must stay.
            factors = node.inputs if name == "Mul" else node.inputs[:1]
            guard = next((i for i, factor in enumerate(factors) if factor in self._zero), None)
            if guard is not None:
                rest = ~self._zero[factors[guard]]
                found = [read if i == guard else read & rest for i in range(len(found))]
        return [
            None if r is None or not _fits(variable, shape) or bool(r.all()) else r
            for variable, r in zip(node.inputs, found, strict=True)
        ]

    def _shape_read(self, node: Apply) -> tuple[int, ...] | None:
        """The shape in which the results of a node are read, where its own is not known: PyTensor repeats
        elements along axes of size 1 alone, and these are known.
        """
        reads = [read for output in node.outputs if (read := self._read.get(output)) is not None]
        return reads[0].shape if reads and _is_by_element(node) else None

    def _find_zeros(self, node: Apply) -> None:
        """Elements that are 0 in such a way that conversion leaves them 0 in products."""
        shape = _shape(node)
        if shape is None:
            return
        name = _name(node)
        zero = [self._zero.get(v) if _fits(v, shape) else None for v in node.inputs]
        if node in self._masks:
            mask = self._masks[node]
            if _is_zero(node.inputs[2]):
                self._zero[node.outputs[0]] = ~mask
            elif _is_zero(node.inputs[1]):
                self._zero[node.outputs[0]] = mask
        elif name in ("Neg", "TrueDiv", "Mul") or _passes_on(node):
            kept = [z for z in (zero if name == "Mul" else zero[:1]) if z is not None]
            if kept:
                self._zero[node.outputs[0]] = np.logical_or.reduce(kept)

    def small(self, variable: Variable, read: Mask | None) -> Variable | None:
        """A variable of one element that equals all elements that are read; None if there is none, or if all
        are read.
        """
        if read is None or not read.any():
            return None
        key = variable, np.packbits(read).tobytes()
        if key not in self._small:
            self._small[key] = self._made_small(variable, read)
        return self._small[key]

    def _made_small(self, variable: Variable, read: Mask) -> Variable | None:
        if isinstance(variable, TensorConstant):
            values = np.asarray(variable.data)[read]
            first = values[:1].reshape([1] * read.ndim)
            return pt.constant(first) if (values == first.ravel()).all() else None
        node = variable.owner
        if node is None or not _is_by_element(node) or not _fits(variable, read.shape):
            return None
        inputs = []
        for i, operand in enumerate(node.inputs):
            found: Variable | None = self.made.get(operand, operand)
            if _name(node) == "Second" and i == 0:
                found = pt.zeros([1] * read.ndim, dtype=operand.type.dtype)
            elif not (i and _passes_on(node)) and any(size != 1 for size in operand.type.shape):
                found = self.small(operand, read) if _fits(operand, read.shape) else None
            if found is None or (_passes_on(node) and i == 0 and found.type.ndim < read.ndim):
                return None
            inputs.append(found)
        outputs = [inputs[0]] if isinstance(node.op, (Alloc, Sum)) else _applied_to(node, inputs)
        key = np.packbits(read).tobytes()
        self._small.update(((old, key), new) for old, new in zip(node.outputs, outputs, strict=True))
        return outputs[node.outputs.index(variable)]


def _applied_to(node: Apply, inputs: list[Variable]) -> list[Variable]:
    """The outputs of a node's op for operands of other shapes; they have its place in the user's code."""
    made = node.op.make_node(*inputs).outputs
    for new, old in zip(made, node.outputs, strict=True):
        new.tag.trace = getattr(old.tag, "trace", None)
    return made


def _passes_on(node: Apply) -> bool:
    """True if the result is the first operand, repeated, checked or summed over no axis, as derivatives of
    what is repeated are.
    """
    return isinstance(node.op, (Alloc, CheckAndRaise)) or (isinstance(node.op, Sum) and node.op.axis == ())


def _is_by_element(node: Apply) -> bool:
    return isinstance(node.op, Elemwise) or _passes_on(node)


def _name(node: Apply) -> str:
    """The name of an elementwise node's function; empty for others."""
    return type(node.op.scalar_op).__name__ if isinstance(node.op, Elemwise) else ""


def _fits(variable: Variable, shape: tuple[int, ...]) -> bool:
    """True if each element of an array of this shape has one of the variable's."""
    sizes = getattr(variable.type, "shape", ())
    return len(sizes) == len(shape) and all(
        known in (None, size) for known, size in zip(sizes, shape, strict=True)
    )


def _shape(node: Apply) -> tuple[int, ...] | None:
    """The known shape of a node of more than one element that works by elements, else None."""
    if not _is_by_element(node):
        return None
    shape = node.outputs[0].type.shape
    return None if None in shape or math.prod(shape) < 2 else shape


def _mask(node: Apply) -> Mask | None:
    """The condition of a `switch`, if it is known and has the shape of the result."""
    shape = _shape(node)
    if shape is None or _name(node) != "Switch" or node.inputs[0].type.shape != shape:
        return None
    found = _value(node.inputs[0], _DEPTH)
    return None if found is None or found.shape != shape else found.astype(bool)


def _value(variable: Variable, depth: int) -> Values | None:
    """The value of what is computed of constants by functions of NumPy."""
    if isinstance(variable, TensorConstant):
        return np.asarray(variable.data)
    node = variable.owner
    if node is None or depth == 0:
        return None
    if isinstance(node.op, DimShuffle):
        x = _value(node.inputs[0], depth - 1)
        order = node.op.new_order
        kept = [axis for axis in order if axis != "x"]
        if x is None or len(kept) < x.ndim:
            return None
        return np.expand_dims(np.transpose(x, kept), [i for i, axis in enumerate(order) if axis == "x"])
    name = getattr(getattr(node.op, "scalar_op", None), "nfunc_spec", None)
    function = getattr(np, name[0], None) if isinstance(node.op, Elemwise) and name else None
    if function is None or len(node.outputs) > 1:
        return None
    values = [_value(operand, depth - 1) for operand in node.inputs]
    if any(value is None for value in values):
        return None
    return np.asarray(function(*values))


def _is_zero(variable: Variable) -> bool:
    while variable.owner is not None and isinstance(variable.owner.op, DimShuffle):
        variable = variable.owner.inputs[0]
    return isinstance(variable, TensorConstant) and not np.asarray(variable.data).any()
