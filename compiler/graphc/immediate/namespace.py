# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The names of ``graphc.tensor`` and its submodules, as an environment offers them."""

from __future__ import annotations

import functools
import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

from graphc import _NAMES
from graphc.immediate.aliasing import wrapper_of
from graphc.immediate.arguments import STATIC, Split
from graphc.immediate.forms import FORMS
from graphc.immediate.operation import OpWrapper
from graphc.tensor.constructors import CONSTRUCTORS

if TYPE_CHECKING:
    from graphc.immediate.environment import Environment

_ROOT = "graphc.tensor"
# Names of submodules that have another one too.
_ALIASES = {"nnet": "nn"}
# TensorFlow's names of reductions.
_REDUCTIONS = {f"reduce_{name}": name for name in "sum prod mean max min all any var std logsumexp".split()}
_CONSTRUCTORS = frozenset({"tensor", *CONSTRUCTORS})
# Loops and choices, which live in graphc itself.
_FROM_GRAPHC = {name: module for name, module in _NAMES.items() if module == "graphc.scan"} | {
    "scan": "graphc.scan.frontend"
}
_AS_THEY_ARE = frozenset({"register_transfer", "transfer", "until", "is_weak_scalar"})
_DERIVATIVES = frozenset(
    {"grad", "jacobian", "hessian", "pullback", "pushforward", "Lop", "Rop", "verify_grad"}
)


# These take a function and return another one.
_OF_FUNCTIONS = frozenset({"vectorize", "vmap"})


class Namespace:
    """A submodule of ``graphc.tensor`` in an environment, such as ``env.linalg``."""

    def __init__(self, env: Environment, module: ModuleType) -> None:
        self._env = env
        self._module = module

    def __getattr__(self, name: str) -> OpWrapper:
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


# Modules with a namespace class of their own, by name; `graphc.immediate.random` adds the one for draws.
NAMESPACES: dict[str, type[Namespace]] = {}


def mirrored(env: Environment, module: ModuleType, name: str) -> Any:
    """What an environment offers by a name of a module.

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
    if name in _FROM_GRAPHC:
        return getattr(importlib.import_module(_FROM_GRAPHC[name]), name)
    for submodule in (name, _ALIASES.get(name)):
        if submodule is not None:
            try:
                return importlib.import_module(f"{_ROOT}.{submodule}")
            except ModuleNotFoundError:
                continue
    raise AttributeError(f"graphc.tensor has no attribute {name!r}, and so an immediate environment has none")


def _refusal(env: Environment, name: str) -> Any:
    def refuse(*args: object, **kwargs: object) -> Any:
        """Symbolic inputs do not exist in immediate mode."""
        raise TypeError(
            f"{name}() makes a symbolic input, but in an immediate environment every tensor has a value: "
            f"make one with as_tensor([...]), numpy_to_tensor(array) or zeros(shape), or build a graph with "
            f"graphc.tensor.{name}() and graphc.function"
        )

    return refuse


def _derivative(env: Environment, name: str, function: Any) -> Any:
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


def _batched(env: Environment, name: str, transform: Any) -> Any:
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
