# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise functions of the array API standard."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import graphc.tensor as pt
from graphc.array_api.types import as_array
from graphc.hooks import named, publish

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable


_BINARY = (
    "add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide "
    "equal floor_divide greater greater_equal hypot less less_equal logaddexp logical_and logical_or "
    "logical_xor maximum minimum multiply nextafter not_equal pow remainder subtract"
).split()
_UNARY = (
    "abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite "
    "isinf isnan log log1p log2 log10 logical_not negative positive real reciprocal round sign signbit sin "
    "sinh square sqrt tan tanh trunc"
).split()
# Names that differ, or whose function takes more than operands.
_NAMES = {"positive": "tensor_copy"}
# Real results of integers have the default dtype.
_INTEGERS_STAY = frozenset({"ceil", "floor", "trunc", "round"})


def _make(name: str, parameters: tuple[str, ...]) -> Any:
    function = getattr(pt, _NAMES.get(name, name))

    def apply(*operands: TensorVariable) -> TensorVariable:
        if len(operands) != len(parameters):
            raise TypeError(f"{name} takes {len(parameters)} arrays, got {len(operands)}")
        if name in _INTEGERS_STAY and np.dtype(as_array(operands[0]).dtype).kind not in "fc":
            return as_array(operands[0])
        return function(*operands)

    # Immediate environments call it with the operands' numbers as data.
    apply.operation = None if name in _INTEGERS_STAY else function  # type: ignore[attr-defined]
    only = inspect.Parameter.POSITIONAL_ONLY
    apply.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(parameter, only) for parameter in parameters]
    )
    return named(apply, name, f"``graphc.tensor.{_NAMES.get(name, name)}``, elementwise.")


def _unary(name: str) -> Callable[[TensorLike], TensorVariable]:
    return _make(name, ("x",))


def _binary(name: str) -> Callable[[TensorLike, TensorLike], TensorVariable]:
    return _make(name, ("x1", "x2"))


# fmt: off
(abs, acos, acosh, asin, asinh, atan, atanh, bitwise_invert, ceil, conj, cos, cosh, exp, expm1,
    floor, imag, isfinite, isinf, isnan, log, log1p, log2, log10, logical_not, negative, positive, real,
    reciprocal, round, sign, signbit, sin, sinh, square, sqrt, tan, tanh, trunc) = map(_unary, _UNARY)
(add, atan2, bitwise_and, bitwise_left_shift, bitwise_or, bitwise_right_shift, bitwise_xor, copysign,
    divide, equal, floor_divide, greater, greater_equal, hypot, less, less_equal, logaddexp,
    logical_and, logical_or, logical_xor, maximum, minimum, multiply, nextafter, not_equal, pow,
    remainder, subtract) = map(_binary, _BINARY)
# fmt: on


def clip(x: TensorLike, /, min: TensorLike | None = None, max: TensorLike | None = None) -> TensorVariable:
    """Elements within limits; None is no limit. The dtype is that of x."""
    x = as_array(x)
    low, high = (None if limit is None else pt.cast(limit, x.dtype) for limit in (min, max))
    return pt.clip(x, low, high)


publish(globals())
