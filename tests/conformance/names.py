# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An import hook under which ``import pytensor`` finds graphc's names.

A name is looked for in the module of graphc with the same path, then in graphc's public namespaces. What
graphc does not have becomes an `Absent` stand-in, which tests may import and name, and which raises when it
is used.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import stand_ins
from absent import absent

# Where users of graphc find what PyTensor keeps in many modules.
NAMESPACES = (
    "graphc.tensor",
    "graphc",
    "graphc.errors",
    "graphc.gradient",
    "graphc.graph",
    "graphc.graph.basic",
    "graphc.graph.function_graph",
    "graphc.graph.op",
    "graphc.transforms.op_from_graph",
    "graphc.graph.printing",
    "graphc.graph.replace",
    "graphc.graph.traversal",
    "graphc.graph.type",
    "graphc.transforms.vectorize",
    "graphc.function.function",
    "graphc.function.io",
    "graphc.function.shared",
    "graphc.graph.shared",
    "graphc.graph.tensor.variable",
    "graphc.compile",
    "graphc.compile.ops",
    "graphc.printing",
    "graphc.raise_op",
    "graphc.scan",
    "graphc.scan.op",
    "graphc.scan.frontend",
    "graphc.sparse",
    "graphc.graph.tensor.type",
    "graphc.graph.tensor.variable",
    "graphc.tensor.linalg",
    "graphc.tensor.nlinalg",
    "graphc.tensor.slinalg",
    "graphc.tensor.special",
    "graphc.tensor.signal",
    "graphc.tensor.fft",
    "graphc.tensor.random",
    "graphc.tensor.random.op",
    "graphc.tensor.random.type",
)


def _module(path: str) -> ModuleType | None:
    """A module of graphc that exists; errors inside it are not hidden."""
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name is not None and (path == error.name or path.startswith(error.name + ".")):
            return None
        raise


_MISSING = object()


class NamesModule(ModuleType):
    """One ``pytensor...`` module."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = self._find(name)
        self.__dict__[name] = value
        return value

    def _find(self, name: str) -> Any:
        path = f"{self.__name__}.{name}"
        special = stand_ins.NAMES.get(path, stand_ins.NAMES.get(name, _MISSING))
        if special is not _MISSING:
            return special
        if path in sys.modules:
            return sys.modules[path]
        value = self._look_up(name)
        if path in Finder.known or _module("graphc" + path.removeprefix("pytensor")) is value:
            return importlib.import_module(path)
        return absent(path) if value is _MISSING else value

    def _look_up(self, name: str) -> Any:
        if not self.__name__.startswith("pytensor"):
            return _MISSING
        for namespace in self._packages() + [_module(path) for path in NAMESPACES]:
            value = getattr(namespace, name, _MISSING)
            # Not a name of types, which may be a string.
            if value is not _MISSING and not isinstance(value, str):
                if getattr(value, "__module__", "") != "typing":
                    return value
        return _MISSING

    def _packages(self) -> list[ModuleType | None]:
        """The module of graphc with the same path, and the packages above it."""
        path, found = "graphc" + self.__name__.removeprefix("pytensor"), []
        while path not in ("graphc", "graphc.tensor"):
            found.append(_module(path))
            path = path.rpartition(".")[0]
        return [*found, _module(path)]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """``pytensor.function`` and ``pytensor.scan`` are functions that have the names of packages."""
        target = _module("graphc" + self.__name__.removeprefix("pytensor"))
        if target is None:
            package, _, name = self.__name__.rpartition(".")
            target = importlib.import_module(package)._look_up(name)
        return target(*args, **kwargs)  # type: ignore[operator]


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every module below ``pytensor``, and below numba, of which some tests import error classes."""

    known: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in ("pytensor", "numba"):
            return None
        return importlib.util.spec_from_loader(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return NamesModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        extra: Callable[[ModuleType], None] | None = stand_ins.MODULES.get(module.__name__)
        if extra is not None:
            extra(module)


def install(modules: set[str]) -> None:
    """Put the hook first. ``modules``: paths that the tests import as modules."""
    Finder.known = modules
    sys.meta_path.insert(0, Finder())
