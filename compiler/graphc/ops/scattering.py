# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that read or change elements at positions along the last axis, other positions in each row.

Ops that order the elements along the last axis, and that search in ordered ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphc.graph.basic import Apply, Maybe, Variable, Variables
from graphc.ops.create import arange, ones_like, zeros_like
from graphc.ops.create import zeros as zeros_
from graphc.ops.elementwise import is_discrete
from graphc.ops.kernel import DiscreteOp, KernelOp
from graphc.ops.math import cast, eq, switch
from graphc.ops.shaping import broadcast_to
from graphc.ops.table.arithmetic import promote

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable


KINDS = ("set", "add", "mul", "max", "min")


class Gather(KernelOp):
    """Elements at positions along the last axis: ``out[..., i] = x[..., indices[..., i]]``.

    Negative positions count from the end; those out of bounds raise IndexError.
    """

    kernel = "gather"
    selects = 1

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return [given[0], "int64"], [given[0]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False]]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (g,), (x, indices) = cotangents, inputs
        if g is None or is_discrete(x):
            return [None, None]
        return [Scatter("add")(zeros_like(x), g, indices), None]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        if tangents[0] is None or is_discrete(inputs[0]):
            return [None]
        return [self(tangents[0], inputs[1])]


class Scatter(KernelOp):
    """x changed at positions along the last axis, one after the other, by the elements of y.

    Operands: x, y, indices (of y's shape).

    Args:
        kind: what happens to an element: set, add, mul, max or min.
    """

    kernel = "scatter"
    __props__ = ("kind",)

    def __init__(self, kind: str | int = "set") -> None:
        self.kind = KINDS.index(kind) if isinstance(kind, str) else kind

    def __str__(self) -> str:
        return f"Scatter{{{KINDS[self.kind]}}}"

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return [given[0], given[0], "int64"], [given[0]]

    def make_node(self, *inputs: TensorLike) -> Apply:
        node = super().make_node(*inputs)
        if self.kind in (3, 4) and node.outputs[0].type.kind == "c":
            raise TypeError(f"{self} needs numbers that can be compared, got complex ones")
        return node

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [True], [False]]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (g,), (out,), (x, y, indices) = cotangents, outputs, inputs
        if g is None or is_discrete(x):
            return [None, None, None]
        g_y = Gather()(g, indices)
        if KINDS[self.kind] == "add":
            return [g, g_y, None]
        if KINDS[self.kind] == "set":
            return [
                Scatter("set")(g, zeros_like(y), indices),
                switch(self._is_last(x, indices), g_y, 0),
                None,
            ]
        if KINDS[self.kind] == "mul":
            factor = Scatter("mul")(ones_like(x), y, indices)
            return [g * factor, g_y * self._others(x, y, indices), None]
        return [switch(eq(x, out), g, 0), switch(eq(y, Gather()(out, indices)), g_y, 0), None]

    def _is_last(self, x: Variable, indices: Variable) -> TensorVariable:
        """Flags of the last write to each position."""
        order = broadcast_to(arange(indices.shape[-1]), indices.shape)
        start = zeros_(x.shape, dtype="int64")
        return eq(Gather()(Scatter("set")(start, order, indices), indices), order)

    def _others(self, x: Variable, y: Variable, indices: Variable) -> TensorVariable:
        """For each element of y the product of everything else that its position is multiplied by."""
        zero = eq(y, 0)
        rest = Gather()(Scatter("mul")(x, switch(zero, 1, y), indices), indices)
        start = zeros_(x.shape, dtype="int64")
        zeros = Gather()(Scatter("add")(start, cast(zero, "int64"), indices), indices)
        divided = rest / switch(zero, 1, y)
        return switch(zero, switch(eq(zeros, 1), rest, 0), switch(eq(zeros, 0), divided, 0))

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        (t_x, t_y), (x, y, indices) = tangents[:2], inputs
        if (t_x is None and t_y is None) or is_discrete(x):
            return [None]
        if self.kind > 1:
            return NotImplemented
        t_x = zeros_like(x) if t_x is None else t_x
        return [self(t_x, zeros_like(y) if t_y is None else t_y, indices)]


class _Permutation(KernelOp):
    """Base of ops that put the elements of the first operand in another order."""

    selects = 1

    def ordered(self, outputs: Variables) -> Variable | None:
        """The positions that sort the result; None where it is sorted."""
        return None

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return [given[0], *["int64"] * (len(given) - 1)], [given[0]]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (g,), (x, *others) = cotangents, inputs
        rest: list[Variable | None] = [None] * len(others)
        if g is None or is_discrete(x):
            return [None, *rest]
        order = self.ordered(outputs)
        g = g if order is None else Gather()(g, order)
        return [Scatter("set")(x.zeros_like(), g, ArgSort()(x)), *rest]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        if tangents[0] is None or is_discrete(inputs[0]):
            return [None]
        order, tangent = self.ordered(outputs), Gather()(tangents[0], ArgSort()(inputs[0]))
        return [tangent if order is None else Scatter("set")(tangent.zeros_like(), tangent, order)]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[i == 0] for i in range(len(node.inputs))]


class Sort(_Permutation):
    """The elements along the last axis in ascending order; NaN last, complex numbers by their real part
    first.
    """

    kernel = "sort"


class ArgSort(DiscreteOp):
    """Positions (int64) that sort the last axis; equal elements stay in their order."""

    kernel = "argsort"

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return given, ["int64"]


class Partition(_Permutation):
    """The last axis with the elements of some ranks where sorting would put them; smaller ones before
    each, larger ones after. Operands: array, vector of ranks.

    Derivatives are those of a stable sort: of equal elements, earlier ones are at earlier places. The order
    between ranks is taken from the result, because no other operation need have the same.
    """

    kernel = "partition"

    def ordered(self, outputs: Variables) -> Variable:
        found: Variable = ArgSort()(outputs[0])
        return found


class ArgPartition(DiscreteOp):
    """Positions (int64) of elements in an order such as that of `Partition`."""

    kernel = "argpartition"

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return [given[0], "int64"], ["int64"]


class SearchSorted(DiscreteOp):
    """Insertion positions in a sorted last axis (int64).

    Args:
        right: after equal elements instead of before them.
    """

    kernel = "searchsorted"
    __props__ = ("right",)

    def __init__(self, right: bool = False) -> None:
        self.right = right

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        common = promote(*(np.dtype(x) for x in given)).name
        return [common, common], ["int64"]
