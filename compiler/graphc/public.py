# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Public packages, as the modules that they are made of see them.

``x + y`` calls a function of ``graphc.tensor``, and ``graphc.tensor`` is made of what defines ``x``. What
lies below a public package finds the package's functions here, when it calls them. This module imports
nothing: the root package, which knows all others, says how a package is found. So it must be the root
package that was imported, and no folder of its name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


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


def _not_told(name: str) -> ModuleType:
    raise ImportError(f"graphc.{name} is found by the package graphc, which was not imported")


_find: Callable[[str], ModuleType] = _not_told


def found_by(find: Callable[[str], ModuleType]) -> None:
    """Says how public packages are found: ``find("tensor")`` is the package ``graphc.tensor``."""
    global _find
    _find = find


class Package:
    """The names of one public package, which is loaded when one of them is first used."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._found: Any = None

    @property
    def _module(self) -> Any:
        if self._found is None:
            self._found = _find(self._name)
        return self._found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Calls the package, as ``graphc.function`` and ``graphc.scan`` can be."""
        return self._module(*arguments, **options)

    def __dir__(self) -> list[str]:
        return dir(self._module)


pt = Package("tensor")
array_api = Package("array_api")
function = Package("function")
gradient = Package("gradient")
scan = Package("scan")
raise_op = Package("raise_op")
printing = Package("printing")
# Parts that build on what calls them.
loops = Package("scan.batch_loop")
pickling = Package("graph.pickling")
pictures = Package("graph.svg")
shapes = Package("ops.shape")
sparse = Package("sparse")
# Parts that few programs need, or none that finds its functions in the disk cache.
budgets = Package("function.budget")
conditionals = Package("emit.conditionals")
constants = Package("function.constants")
debugging = Package("function.debug")
nan_guards = Package("function.nan_guard")
notebook = Package("function.notebook")
op_graphs = Package("transforms.op_from_graph")
origins = Package("compile.origins")
profiles = Package("function.profile")
rebuilding = Package("function.rebuild")
schedules = Package("function.schedule")
subsets = Package("function.subset")
tiers = Package("function.tiered")
