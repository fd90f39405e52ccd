# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What functions of tensors take, as types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy.typing as npt

    from graphc.graph.basic import Variable

# What `as_tensor_variable` takes: variables, and whatever NumPy makes an array of.
TensorLike: TypeAlias = "Variable | npt.ArrayLike"
AxisLike: TypeAlias = int | Sequence[int] | None
DTypeLike: TypeAlias = "npt.DTypeLike"
