# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors as a type of graphs: the type, its variables, and the types of arguments that become one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from graphc.graph.basic import IndexLike as IndexLike
    from graphc.graph.basic import TensorLike as TensorLike
    from graphc.graph.basic import Variable

AxisLike: TypeAlias = int | Sequence[int] | None
DTypeLike: TypeAlias = "npt.DTypeLike"
# Sizes, known or symbolic: of one dimension, of all in a sequence, or as a vector; None leaves them open.
Size: TypeAlias = "int | np.integer | Variable | None"
SizeLike: TypeAlias = "Size | npt.NDArray | Sequence[Size]"
# Sizes of some axes, known or symbolic; None keeps those of the array.
Lengths: TypeAlias = "Sequence[int | Variable] | None"
# A function of a namespace, whatever it takes and returns.
AnyFunction: TypeAlias = "Callable[..., Any]"
