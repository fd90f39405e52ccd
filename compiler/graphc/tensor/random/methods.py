# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Methods of symbolic generators."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy.typing as npt

    from graphc.graph.tensor.variable import TensorVariable


class DrawMethods:
    """``next_rng, x = rng.normal(0, 1, size=3)``: each function of `graphc.tensor.random` that draws, as a
    method.

    They return the generator after the draws, and the draws. `add_methods` puts them here.
    """


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    def draw(self: Any, *args: npt.ArrayLike, **kwargs: Any) -> tuple[TensorVariable, TensorVariable]:
        return function(*args, rng=self, return_next_rng=True, **kwargs)

    draw.__name__ = function.__name__
    draw.__doc__ = f"``(next_rng, draws)`` of `graphc.tensor.random.{function.__name__}` with this generator."
    return draw


def add_methods(functions: dict[str, Callable[..., Any]]) -> None:
    """Makes functions methods of all generators."""
    for name, function in functions.items():
        setattr(DrawMethods, name, _method(function))
