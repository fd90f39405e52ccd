# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The names of ``graphc.tensor`` and its submodules, as an environment offers them.

Grids are indexed, interpolation returns a function, and some functions give as many results as a tensor has
rows or columns, which a graph of unknown sizes cannot tell.

``env.array_api`` has the functions of `graphc.array_api`, which build graphs, but for what needs values or
makes them.

Source: https://data-apis.org/array-api/2024.12.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

import graphc.array_api
from graphc.array_api.types import result_type
from graphc.graph.tensor.convert import is_weak_scalar
from graphc.graph.tensor.type import parse_dtype
from graphc.graph.tensor.variable import check_device
from graphc.immediate.aliasing import wrapper_of
from graphc.immediate.arguments import STATIC, Split
from graphc.immediate.operation import OpWrapper
from graphc.immediate.tensor import Tensor
from graphc.ops.dimshuffle import normalize_axis
from graphc.tensor.constructors import CONSTRUCTORS

if TYPE_CHECKING:
    from graphc.graph.tensor import DTypeLike, TensorLike
    from graphc.immediate.executable import Owner


if TYPE_CHECKING:
    from graphc.graph.tensor.variable import TensorVariable

    Interpolator = Callable[[TensorVariable], TensorVariable]


class Grid:
    """``env.mgrid`` and ``env.ogrid``: indexed with slices ``start:stop:step``.

    Args:
        env: the environment.
        name: "mgrid" or "ogrid".
        grid: the one of ``graphc.tensor``.
    """

    def __init__(self, env: Owner, name: str, grid: Any) -> None:
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


def _interpolate1d(env: Owner, function: Callable[..., Interpolator]) -> Callable[..., object]:
    def apply(x_hat: TensorVariable, *args: object, **options: object) -> TensorVariable:
        return function(*args, **options)(x_hat)

    wrapper = OpWrapper(env, "interpolate1d", apply)

    @functools.wraps(function)
    def interpolate1d(*args: object, **options: object) -> Callable[[object], Tensor]:
        return lambda x_hat: wrapper(x_hat, *args, **options)

    return interpolate1d


def _histogramdd(env: Owner, function: Callable[..., object]) -> Callable[..., object]:
    wrapper = OpWrapper(env, "histogramdd", function)

    @functools.wraps(function)
    def histogramdd(sample: object, *args: object, **options: object) -> object:
        if isinstance(sample, Tensor) and sample.ndim == 2:
            sample = [sample[:, i] for i in range(sample.shape[1])]
        return wrapper(sample, *args, **options)

    return histogramdd


def _unstack(env: Owner, function: Callable[..., object]) -> Callable[..., object]:
    wrapper = OpWrapper(env, "unstack", function)

    @functools.wraps(function)
    def unstack(x: object, axis: int = 0) -> tuple[Tensor, ...]:
        if not isinstance(x, Tensor):
            return wrapper(x, axis)
        at = normalize_axis(axis, x.ndim, "unstack")
        return tuple(x[(*(slice(None),) * at, i)] for i in range(x.shape[at]))

    return unstack


FORMS: dict[str, Callable[[Owner, Any], Any]] = {
    "mgrid": lambda env, grid: Grid(env, "mgrid", grid),
    "ogrid": lambda env, grid: Grid(env, "ogrid", grid),
    "interpolate1d": _interpolate1d,
    "histogramdd": _histogramdd,
    "unstack": _unstack,
}


_ROOT = "graphc.tensor"
# Names of submodules that have another one too.
_ALIASES = {"nnet": "nn"}
# TensorFlow's names of reductions.
_REDUCTIONS = {f"reduce_{name}": name for name in "sum prod mean max min all any var std logsumexp".split()}
_CONSTRUCTORS = frozenset({"tensor", *CONSTRUCTORS})
# Loops, which live in graphc itself.
LOOPS = frozenset(
    "associative_scan cumulative foldl foldr fori_loop loop map reduce scan until while_loop".split()
)
_AS_THEY_ARE = frozenset({"register_transfer", "transfer", "until", "is_weak_scalar"})
_DERIVATIVES = frozenset(
    {"grad", "jacobian", "hessian", "pullback", "pushforward", "Lop", "Rop", "verify_grad"}
)


# These take a function and return another one.
_OF_FUNCTIONS = frozenset({"vectorize", "vmap"})


class Namespace:
    """A submodule of ``graphc.tensor`` in an environment, such as ``env.linalg``."""

    def __init__(self, env: Owner, module: ModuleType) -> None:
        self._env = env
        self._module = module

    def __getattr__(self, name: str) -> Callable[..., Tensor]:
        if name.startswith("_"):
            raise AttributeError(f"{self!r} has no attribute {name!r}")
        value = mirrored(self._env, self._module, name)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return names_of(self._module)

    def __repr__(self) -> str:
        return f"<{self._module.__name__.removeprefix(_ROOT + '.')} of {self._env!r}>"


def names_of(module: ModuleType) -> list[str]:
    """The public names of a module."""
    return sorted(
        name for name in {*dir(module), *getattr(module, "__all__", ())} if not name.startswith("_")
    )


# Modules with a namespace class of their own, by name; `graphc.immediate.environment` adds the one for draws.
NAMESPACES: dict[str, type[Namespace]] = {}


def mirrored(env: Owner, module: ModuleType, name: str) -> Any:
    """The environment's counterpart of a name of a module.

    Raises:
        AttributeError: there is no such name.
    """
    if module.__name__ == _ROOT:
        name = _REDUCTIONS.get(name, name)
    value = _find(module, name)
    if name in FORMS and module.__name__ == _ROOT:
        return FORMS[name](env, value)
    if isinstance(value, ModuleType):
        return NAMESPACES.get(value.__name__, Namespace)(env, value)
    if isinstance(value, type) or not callable(value) or name in _AS_THEY_ARE:
        return value
    prefix = module.__name__.removeprefix(_ROOT).removeprefix(".")
    qualified = f"{prefix}.{name}" if prefix else name
    if name in _CONSTRUCTORS and not prefix:
        return _refusal(env, name)
    if name in _DERIVATIVES:
        return _derivative(env, name, value)
    if name in _OF_FUNCTIONS:
        return _batched(env, name, value)
    return wrapper_of(env, qualified, value)


def _find(module: ModuleType, name: str) -> Any:
    try:
        value = getattr(module, name)
    except AttributeError:
        value = None
    if module.__name__ != _ROOT:
        if value is None and not hasattr(module, name):
            raise AttributeError(f"{module.__name__} has no attribute {name!r}")
        return value
    if isinstance(value, ModuleType) and not value.__name__.startswith(_ROOT):
        value = None
    if value is not None or hasattr(module, name):
        return value
    if name in LOOPS:
        return getattr(importlib.import_module("graphc.scan"), name)
    for submodule in (name, _ALIASES.get(name)):
        if submodule is not None:
            try:
                return importlib.import_module(f"{_ROOT}.{submodule}")
            except ModuleNotFoundError:
                continue
    raise AttributeError(f"graphc.tensor has no attribute {name!r}, and so an immediate environment has none")


def _refusal(env: Owner, name: str) -> Any:
    def refuse(*args: object, **kwargs: object) -> Any:
        """Symbolic inputs do not exist in immediate mode."""
        raise TypeError(
            f"{name}() makes a symbolic input, but in an immediate environment every tensor has a value: "
            f"make one with as_tensor([...]), numpy_to_tensor(array) or zeros(shape), or build a graph with "
            f"graphc.tensor.{name}() and graphc.function"
        )

    return refuse


def _derivative(env: Owner, name: str, function: Any) -> Any:
    def differentiate(*args: Any, **kwargs: Any) -> Any:
        """Derivatives of symbolic graphs; see `Environment.tape` for those of tensors."""
        split = Split()
        split.visit_call(args, kwargs, {}, STATIC)
        if split.symbolic:
            return function(*args, **kwargs)
        raise TypeError(
            f"{name}() differentiates graphs, but these tensors are values that do not know how they were "
            f"computed: record the computation with `with env.tape() as t: ...` and call t.gradient(y, [x])"
        )

    return differentiate


def _batched(env: Owner, name: str, transform: Any) -> Any:
    def make(func: Any = None, *given: Any, **options: Any) -> Any:
        if func is None:
            return functools.partial(make, *given, **options)

        def call(function: Any, *args: Any) -> Any:
            return transform(function, *given, **options)(*args)

        wrapper = OpWrapper(env, name, call)

        @functools.wraps(func)
        def batched(*args: object) -> Any:
            return wrapper(func, *args)

        return batched

    make.__name__, make.__doc__ = name, transform.__doc__
    return make


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

    def __init__(self, env: Owner) -> None:
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
