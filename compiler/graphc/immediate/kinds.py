# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Kind``: what the choice of an executable depends on, as one object that is cheap to compare."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphc.array_api.types import DType
from graphc.graph.tensor.type import TensorType

if TYPE_CHECKING:
    from builtins import type as Type

    from graphc.immediate.environment import Environment
    from graphc.immediate.executable import Executable

# Operators of two operands, by the names of their functions. A kind has a table for each.
OPERATORS = (
    "add",
    "sub",
    "mul",
    "true_div",
    "int_div",
    "mod",
    "pow",
    "matmul",
    "lt",
    "le",
    "gt",
    "ge",
    "eq",
    "neq",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "left_shift",
    "right_shift",
)
POSITIONS = {name: position for position, name in enumerate(OPERATORS)}


class Kind:
    """Environment, dtype and number of dimensions of tensors. There is one object of each kind, so that kinds
    are equal only if they are the same.

    Attributes:
        env: the environment.
        dtype: name of the dtype. dtype_object: what tensors have as ``dtype``. numpy_dtype: NumPy's.
        ndim: number of dimensions.
        tables: for each of `OPERATORS`, the executables by the kind of the other operand, or by the type of a
            Python number in its place.
    """

    __slots__ = ("dtype", "dtype_object", "env", "ndim", "numpy_dtype", "tables")

    def __init__(self, env: Environment, dtype: str, ndim: int) -> None:
        self.env = env
        self.dtype = dtype
        self.dtype_object = DType(dtype)
        self.ndim = ndim
        self.numpy_dtype = np.dtype(dtype)
        self.tables: list[dict[Kind | Type, Executable]] = [{} for _ in OPERATORS]

    def type(self, ones: tuple[bool, ...] | None = None) -> TensorType:
        """The type of a symbolic variable in the place of a tensor.

        Args:
            ones: which dimensions have size 1; by default nothing is known about sizes.
        """
        if ones is None:
            return TensorType(self.dtype, (None,) * self.ndim)
        return TensorType(self.dtype, tuple(1 if one else None for one in ones))

    def __repr__(self) -> str:
        return f"Kind({self.env.name!r}, {self.dtype}, {self.ndim})"
