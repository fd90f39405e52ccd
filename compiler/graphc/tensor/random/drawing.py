# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts that the functions of ``graphc.tensor.random`` share."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, TypeAlias, TypedDict

from graphc.errors import keyword_hint
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.tensor.random.op import RandomVariable

if TYPE_CHECKING:
    from graphc.graph.basic import Variable
    from graphc.graph.tensor import DTypeLike, SizeLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable

# A draw; with ``return_next_rng``, a pair: the generator after it and the draw. Tensors can be unpacked, too.
Drawn: TypeAlias = "TensorVariable"


class DrawOptions(TypedDict, total=False):
    """Options of all draws besides their parameters and ``size``; see `RandomVariable.__call__`."""

    rng: Variable | None
    dtype: DTypeLike
    name: str | None
    return_next_rng: bool


def draw(
    distribution: str, parameters: tuple[TensorLike, ...], size: SizeLike, options: DrawOptions
) -> Drawn:
    for name in options.keys() - DrawOptions.__annotations__.keys():
        function = getattr(
            importlib.import_module("graphc.tensor.random"), distribution, RandomVariable.__call__
        )
        raise TypeError(f"{distribution}() has no keyword {name!r}{keyword_hint(function, name)}")
    dtype = options.pop("dtype", None)
    return RandomVariable(distribution, dtype)(*parameters, size=size, **options)


def scale_of(what: str, rate: TensorLike | None, scale: TensorLike | None) -> TensorLike:
    if rate is not None and scale is not None:
        raise ValueError(f"{what} takes a rate or a scale, not both")
    if rate is None:
        return 1.0 if scale is None else scale
    return 1.0 / as_tensor_variable(rate)
