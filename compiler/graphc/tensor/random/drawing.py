# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the functions of ``graphc.tensor.random`` have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from graphc.graph.tensor.convert import as_tensor_variable
from graphc.tensor.random.op import RandomVariable

if TYPE_CHECKING:
    from graphc.graph.tensor.like import SizeLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable

# A draw; with ``return_next_rng``, the generator after it and the draw.
Drawn: TypeAlias = "TensorVariable | tuple[TensorVariable, TensorVariable]"


def draw(
    distribution: str, parameters: tuple[TensorLike, ...], size: SizeLike, options: dict[str, Any]
) -> Any:
    dtype = options.pop("dtype", None)
    return RandomVariable(distribution, dtype)(*parameters, size=size, **options)


def scale_of(what: str, rate: TensorLike | None, scale: TensorLike | None) -> Any:
    if rate is not None and scale is not None:
        raise ValueError(f"{what} takes a rate or a scale, not both")
    if rate is None:
        return 1.0 if scale is None else scale
    return 1.0 / as_tensor_variable(rate)
