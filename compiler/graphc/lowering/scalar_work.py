# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One-element work in the body of a loop: straight scalar code, without buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphc.ir import build
from graphc.ir.kinds import static_shape
from graphc.lowering.generic import ZERO, Coordinates, GenericBuilder
from graphc.lowering.scalar import Scalar
from graphc_dialects._mlir import ir

if TYPE_CHECKING:
    from graphc.lowering.converter import FunctionConverter


def is_one_element(value: ir.Value) -> bool:
    """Whether a tensor value statically has exactly one element."""
    return all(size == 1 for size in static_shape(value))


class ScalarWork(GenericBuilder):
    """Reads and computes single elements at the current insertion point.

    Args:
        context: the function conversion.
        members: operations of a body whose results have one element each.
    """

    def __init__(self, context: FunctionConverter, members: list[ir.Operation]) -> None:
        super().__init__(context, (), [], members)

    def define(self) -> None:
        """Computes the members' results as SSA scalars."""
        for op in self._members:
            with op.location:
                for result in op.results:
                    coordinates = (ZERO,) * len(static_shape(result))
                    self._context.define_scalar(result, self.read(result, coordinates))

    def element(self, value: ir.Value, coordinates: Coordinates = ()) -> Scalar:
        """One element of any graph-stage value; missing coordinates are 0."""
        missing = len(static_shape(value)) - len(coordinates)
        return self.read(value, (*coordinates, *[ZERO] * missing))

    def as_tensor(self, scalar: Scalar, tensor_type: ir.Type) -> ir.Value:
        """A one-element tensor of a scalar."""
        storage = build.storage_type(tensor_type)
        return build.create("tensor.from_elements", [storage], [self.stored(scalar)]).result

    def stored(self, scalar: Scalar) -> ir.Value:
        """The scalar as it is kept in memory."""
        return self._stored(scalar).value

    def loaded(self, value: ir.Value, dtype: np.dtype) -> Scalar:
        """A scalar from what is kept in memory."""
        return self._loaded(value, dtype)

    def _load(self, tensor: ir.Value, dtype: np.dtype, coordinates: Coordinates) -> Scalar:
        element = ir.RankedTensorType(tensor.type).element_type
        indices = [self._index(c) for c in coordinates]
        return self._loaded(build.create("tensor.extract", [element], [tensor, *indices]).result, dtype)

    def _is_donor(self, value: ir.Value, coordinates: Coordinates) -> bool:
        return False
