# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Shape``: the shape of a tensor, which is a tuple of sizes and can be computed with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from graphc.immediate.environment import Environment
    from graphc.immediate.tensor import Tensor


class Size(int):
    """A number of elements: a Python integer, with the promotion of the symbolic sizes of a graph.

    Beside a tensor it counts as int64 and not as a number whose dtype gives way, so that ``x / x.shape[0]``
    has the dtype that it has in a graph. What is computed from sizes and integers is a size, too.
    """

    __slots__ = ()

    def __truediv__(self, other: Any) -> Any:
        return np.int64(self) / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / np.int64(self)

    def astype(self, dtype: str) -> np.generic:
        """The size as a number of another dtype, as sizes of a graph have this method."""
        return np.int64(self).astype(dtype)


def _with_integers(name: str) -> Callable[..., object]:
    compute = getattr(int, name)

    def method(self: Size, *others: object) -> object:
        result = compute(self, *others)
        return Size(result) if type(result) is int else result

    method.__name__ = name
    return method


for _name in ("add", "sub", "mul", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"):
    for _prefix in ("__", "__r"):
        setattr(Size, f"{_prefix}{_name}__", _with_integers(f"{_prefix}{_name}__"))
for _name in ("neg", "pos", "abs", "invert"):
    setattr(Size, f"__{_name}__", _with_integers(f"__{_name}__"))


class Shape(tuple):
    """The sizes of a tensor.

    A tuple of `Size`, Python integers that promote as the symbolic sizes of a graph do. Everything that a
    tuple cannot do (``shape.prod()``, ``shape - 1``, ``shape * 2``) is done with the shape as a tensor.
    Adding a tuple joins, as with any tuple.
    """

    _env: Environment

    def __new__(cls, sizes: Iterable[int], env: Environment) -> Shape:
        """Sizes as Python numbers, and the environment of the tensor."""
        self = super().__new__(cls, map(Size, sizes))
        self._env = env
        return self

    def as_tensor(self) -> Tensor:
        """The sizes as a tensor, an int64 vector."""
        return self._env.numpy_to_tensor(np.array(self, np.int64), copy=False)

    def __repr__(self) -> str:
        return repr(tuple(map(int, self)))

    __str__ = __repr__

    def __reduce__(self) -> tuple[object, ...]:
        return tuple, (tuple(map(int, self)),)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"a shape has no attribute {name!r}")
        return getattr(self.as_tensor(), name)

    def __add__(self, other: Any) -> Any:
        return tuple(self) + other if isinstance(other, tuple) else self.as_tensor() + other

    def __radd__(self, other: Any) -> Any:
        return other + tuple(self) if isinstance(other, tuple) else other + self.as_tensor()


def _delegated(name: str) -> Callable[..., Tensor]:
    def method(self: Shape, *args: object) -> Tensor:
        return getattr(self.as_tensor(), name)(*args)

    return method


for _name in ("sub", "mul", "truediv", "floordiv", "mod", "pow"):
    for _prefix in ("__", "__r"):
        setattr(Shape, f"{_prefix}{_name}__", _delegated(f"{_prefix}{_name}__"))
del _name, _prefix
