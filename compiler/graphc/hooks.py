# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of upper layers that methods of lower ones end in: ``x.eval()`` compiles, ``x.dprint()`` prints.
And modules: those under PyTensor's names, and the public names of one.

The root package, which knows all layers, fills these hooks in when it is imported; this module imports
nothing. So the root package must be what was imported, and no folder of its name. What can be imported, or
asked of an object, needs no hook: `tests/unit/test_layering.py` has the number of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Generic, TypeVar


def _demand_root() -> None:
    """Refuses to work below a folder that was imported in the place of the root package.

    Python takes a folder without ``__init__.py`` on its path, as beside a script, for a package, before it
    asks the finder of an editable installation, which finds submodules of the real package nevertheless.

    Raises:
        ImportError: that has happened; names the folder and the package.
    """
    root = sys.modules.get("graphc")
    if root is not None and getattr(root, "__file__", None) is None:
        found, here = next(iter(root.__path__), ""), __file__.rpartition("/")[0]
        raise ImportError(
            f"`import graphc` has found the folder {found}, which hides the package {here}: it is on the "
            "path, and the installation, an editable one, is asked after it. Rename the folder, or run from "
            "elsewhere"
        )


_demand_root()


_Function = TypeVar("_Function")
_Made = TypeVar("_Made", bound=Callable[..., object])


class Hook(Generic[_Function]):
    """A function of an upper layer, which loads when it is first called.

    Attributes:
        load: imports it; the root package says how.
    """

    load: Callable[[], _Function]

    def __call__(self) -> _Function:
        return self.load()


class NamedModule(ModuleType):
    """A module with a class of its own, named by pickles: cloudpickle names plain modules alone.

    It writes modules that a function does not mention: `graphc.tensor.type`, where `graphc` and ``type`` are.
    """

    def __reduce__(self) -> tuple[Callable[[str], ModuleType], tuple[str]]:
        return import_module, (self.__name__,)


class RenamedModule(NamedModule):
    """A module under PyTensor's name, which loads when something of it is used; a stub says its types.

    Args:
        name: under which it is imported.
        target: the module that has the names.
    """

    def __init__(self, name: str, target: str) -> None:
        super().__init__(name, f"PyTensor's name of `{target}`.")
        self.__spec__ = ModuleSpec(name, None)
        self._target = target
        sys.modules[name] = self

    def __getattr__(self, name: str) -> Any:
        if name in ("__path__", "__file__"):
            raise AttributeError(f"module {self.__name__!r} is another name of {self._target!r}")
        return getattr(import_module(self._target), name)

    def __dir__(self) -> list[str]:
        return dir(import_module(self._target))


class RenamedFunction(RenamedModule):
    """One that is a function, too, the one of its name: ``graphc.ifelse(c, a, b)``."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return getattr(self, self.__name__.rpartition(".")[2])(*args, **kwargs)


def named(function: _Made, name: str, doc: str) -> _Made:
    """A function that another one has made, with a name and a docstring of its own."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


# Names that modules have from Python, and mean to give to nobody.
_OF_PYTHON = ("TYPE_CHECKING", "annotations")


def publish(namespace: dict[str, Any], *, imported: bool = False) -> None:
    """Lists what ``from module import *`` gives: names without an underscore before them.

    Type checkers find the same where there is no ``__all__``, which would say each name once more.

    Args:
        namespace: the module's ``globals()``, when all is defined.
        imported: all that the module has but other modules, not only what it defines: it is a
            namespace, and says ``from module import name as name``.
    """
    here = namespace["__name__"]
    namespace["__all__"] = [
        name
        for name, value in namespace.items()
        if not name.startswith("_") and name not in _OF_PYTHON and not isinstance(value, ModuleType)
        if imported or getattr(value, "__module__", None) == here
    ]


# `graphc.function`, and the value of a variable: see `Variable.eval`.
function: Hook[Callable[..., Any]] = Hook()
evaluate: Hook[Callable[..., Any]] = Hook()
# `graphc.scan`, and the loop over a batch that an op without a rule for batches becomes.
scan: Hook[Callable[..., Any]] = Hook()
loop_over_batch: Hook[Callable[..., Any]] = Hook()
# Text and pictures of graphs, and what is shown of compiled functions: the package `graphc.inspect`.
debugprint: Hook[Callable[..., str]] = Hook()
picture: Hook[Callable[[Any], str | None]] = Hook()
inspection: Hook[ModuleType] = Hook()
# The namespace of the array API standard, of a version.
namespace: Hook[Callable[[str | None], ModuleType]] = Hook()
