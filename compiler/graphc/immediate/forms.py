# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names of an environment that are not called like functions of tensors.

Grids are indexed, interpolation returns a function, and some functions give as many results as a tensor has
rows or columns, which a graph of unknown sizes cannot tell.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from graphc.immediate.operation import OpWrapper
from graphc.immediate.tensor import Tensor
from graphc.ops.axes import normalize_axis

if TYPE_CHECKING:
    from graphc.graph.tensor.variable import TensorVariable
    from graphc.immediate.environment import Environment

    Interpolator = Callable[[TensorVariable], TensorVariable]


class Grid:
    """``env.mgrid`` and ``env.ogrid``: indexed with slices ``start:stop:step``.

    Args:
        env: the environment.
        name: "mgrid" or "ogrid".
        grid: the one of ``graphc.tensor``.
    """

    def __init__(self, env: Environment, name: str, grid: Any) -> None:
        def make(*parts: object) -> Any:
            slices = tuple(slice(*parts[i : i + 3]) for i in range(1, len(parts), 3))
            return grid[slices if parts[0] else slices[0]]

        self._wrapper = OpWrapper(env, name, make)

    def __getitem__(self, key: slice | tuple[slice, ...]) -> Any:
        slices = key if isinstance(key, tuple) else (key,)
        for s in slices:
            if not isinstance(s, slice):
                raise TypeError(f"grids are made from slices such as 0:5 or 0:1:11j, got {s!r}")
        return self._wrapper(
            isinstance(key, tuple), *(part for s in slices for part in (s.start, s.stop, s.step))
        )


def _interpolate1d(env: Environment, function: Callable[..., Interpolator]) -> Callable[..., object]:
    def apply(x_hat: TensorVariable, *args: object, **options: object) -> TensorVariable:
        return function(*args, **options)(x_hat)

    wrapper = OpWrapper(env, "interpolate1d", apply)

    @functools.wraps(function)
    def interpolate1d(*args: object, **options: object) -> Callable[[object], Tensor]:
        return lambda x_hat: wrapper(x_hat, *args, **options)

    return interpolate1d


def _histogramdd(env: Environment, function: Callable[..., object]) -> Callable[..., object]:
    wrapper = OpWrapper(env, "histogramdd", function)

    @functools.wraps(function)
    def histogramdd(sample: object, *args: object, **options: object) -> object:
        if isinstance(sample, Tensor) and sample.ndim == 2:
            sample = [sample[:, i] for i in range(sample.shape[1])]
        return wrapper(sample, *args, **options)

    return histogramdd


def _unstack(env: Environment, function: Callable[..., object]) -> Callable[..., object]:
    wrapper = OpWrapper(env, "unstack", function)

    @functools.wraps(function)
    def unstack(x: object, axis: int = 0) -> tuple[Tensor, ...]:
        if not isinstance(x, Tensor):
            return wrapper(x, axis)
        at = normalize_axis(axis, x.ndim, "unstack")
        return tuple(x[(*(slice(None),) * at, i)] for i in range(x.shape[at]))

    return unstack


FORMS: dict[str, Callable[[Environment, Any], Any]] = {
    "mgrid": lambda env, grid: Grid(env, "mgrid", grid),
    "ogrid": lambda env, grid: Grid(env, "ogrid", grid),
    "interpolate1d": _interpolate1d,
    "histogramdd": _histogramdd,
    "unstack": _unstack,
}
