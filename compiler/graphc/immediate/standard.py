# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``env.array_api``: the functions of the array API standard, run at once.

They are those of `graphc.array_api`, which build graphs, but for what needs values or makes them.

Source: https://data-apis.org/array-api/2024.12.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

import graphc.array_api
from graphc.array_api.types import result_type
from graphc.graph.tensor.convert import is_weak_scalar
from graphc.graph.tensor.type import parse_dtype
from graphc.graph.tensor.variable import check_device
from graphc.immediate.aliasing import wrapper_of
from graphc.immediate.namespace import Namespace, names_of
from graphc.immediate.tensor import Tensor

if TYPE_CHECKING:
    from graphc.graph.tensor.like import DTypeLike, TensorLike
    from graphc.immediate.environment import Environment

# These answer in Python, whatever arrays they are asked about.
_ABOUT_TYPES = frozenset({"can_cast", "finfo", "iinfo", "isdtype", "result_type"})


class Standard(Namespace):
    """A module of `graphc.array_api` in an environment: ``env.array_api.linalg``."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in dir(self._module):
            raise AttributeError(f"the array API standard, and so {self!r}, has no {name!r}")
        value = getattr(self._module, name)
        if isinstance(value, ModuleType):
            value = Standard(self._env, value)
        elif callable(value) and not isinstance(value, type) and name not in _ABOUT_TYPES:
            operation = getattr(value, "operation", None)
            value = wrapper_of(self._env, f"{self._prefix}.{name}", operation or value, signature=value)
        setattr(self, name, value)
        return value

    @property
    def _prefix(self) -> str:
        return self._module.__name__.removeprefix("graphc.")

    def __repr__(self) -> str:
        return f"<{self._prefix} of {self._env!r}>"


class ArrayApi(Standard):
    """The standard's functions and constants: ``env.array_api``, and ``x.__array_namespace__()`` of a tensor.

    Args:
        env: the environment whose tensors these functions take and give.
    """

    __array_api_version__ = graphc.array_api.__array_api_version__
    __array_namespace_info__ = staticmethod(graphc.array_api.__array_namespace_info__)

    def __init__(self, env: Environment) -> None:
        super().__init__(env, graphc.array_api)
        self.__name__ = f"{env.name}.array_api"

    def __dir__(self) -> list[str]:
        return ["__array_api_version__", "__array_namespace_info__", *names_of(self._module)]

    def asarray(
        self,
        obj: TensorLike | Tensor,
        /,
        *,
        dtype: DTypeLike | None = None,
        device: str | None = None,
        copy: bool | None = None,
    ) -> Tensor:
        """A tensor of another one, of an array of another library, or of nested lists of numbers.

        Args:
            obj: what to make a tensor of.
            dtype: dtype of the result; by default that of ``obj``.
            device: ``"cpu"``.
            copy: whether memory is copied; None where it has to be.

        Raises:
            ValueError: another device, or ``copy=False`` where memory must be copied.
        """
        check_device(device)
        name = None if dtype is None else parse_dtype(dtype)
        if isinstance(obj, Tensor):
            return self.astype(obj, name or obj.dtype, copy=copy)
        if copy is False:
            if not isinstance(obj, np.ndarray) or obj.dtype != (name or obj.dtype):
                raise ValueError(f"asarray(copy=False): {obj!r:.60} cannot become a tensor without a copy")
            return self._env.numpy_to_tensor(obj, copy=False)
        return self._env.as_tensor(obj, dtype=name)

    def from_dlpack(self, x: Any, /, *, device: str | None = None, copy: bool | None = None) -> Tensor:
        """A tensor of another library's array, which must not change where its memory is shared."""
        check_device(device)
        return self._env.numpy_to_tensor(np.from_dlpack(x, copy=copy), copy=False)

    def astype(
        self,
        x: Tensor | TensorLike,
        dtype: DTypeLike,
        /,
        *,
        copy: bool | None = True,
        device: str | None = None,
    ) -> Tensor:
        """The elements converted to a dtype.

        Args:
            x: a tensor.
            dtype: dtype of the result.
            copy: whether a tensor that has the dtype is copied, and not returned itself.
            device: ``"cpu"``.

        Raises:
            ValueError: another device.
        """
        check_device(device)
        name = parse_dtype(dtype)
        if not isinstance(x, Tensor) or x.dtype != name:
            return self._env.cast(x, name)
        return self._env.numpy_to_tensor(x._array()) if copy else x

    def unstack(self, x: TensorLike | Tensor, /, *, axis: int = 0) -> tuple[object, ...]:
        """The slices along an axis."""
        return tuple(self._env.unstack(self._env.as_tensor(x), axis))

    def where(
        self, condition: object, x1: object = None, x2: object = None, /
    ) -> Tensor | tuple[Tensor, ...]:
        """Elements of ``x1`` where the condition holds, of ``x2`` elsewhere; either may be a number. Without
        these, the positions where it holds.
        """
        if x1 is None or x2 is None:
            return self.nonzero(condition)
        x1, x2 = _like(x1, x2), _like(x2, x1)
        return self._env.where(condition, x1, x2)


def _like(x: object, other: object) -> Any:
    """A Python number as an array of the dtype that it gets beside another operand."""
    if not is_weak_scalar(x) or is_weak_scalar(other):
        return x
    return np.asarray(x, result_type(other, x))
