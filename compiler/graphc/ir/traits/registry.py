# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of what is known of operations, filled by files that are imported when a table is first asked."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Generic, TypeVar

from graphc.ir.diagnostics import modules_below

R = TypeVar("R")


@cache
def load_families(package: str) -> None:
    """Imports every file of a package, which registers what it says of its operations."""
    for name in modules_below(package):
        importlib.import_module(name)


class Trait(Generic[R]):
    """Rules by operation name.

    Args:
        package: whose files register rules.
    """

    def __init__(self, package: str = "graphc.ir.traits") -> None:
        self._package = package
        self._rules: dict[str, R] = {}

    def __call__(self, *names: str) -> Callable[[R], R]:
        """A decorator that registers a rule for operations, such as `"graphc.take"`.

        Raises:
            ValueError: one of them has a rule already.
        """

        def register(rule: R) -> R:
            for name in names:
                if self._rules.setdefault(name, rule) is not rule:
                    raise ValueError(f"{name} has two rules: {self._rules[name]} and {rule}")
            return rule

        return register

    def get(self, name: str) -> R | None:
        """The rule of an operation, None if it has none."""
        load_families(self._package)
        return self._rules.get(name)

    def __contains__(self, name: str) -> bool:
        load_families(self._package)
        return name in self._rules

    def __iter__(self) -> Iterator[str]:
        load_families(self._package)
        return iter(self._rules)


class Marker:
    """A set of operation names. To ask costs little more than to compare a name.

    Args:
        package: whose files add names.
    """

    def __init__(self, package: str = "graphc.ir.traits") -> None:
        self._package = package
        self._names: set[str] = set()

    def __call__(self, *names: str) -> None:
        """Marks operations."""
        self._names.update(names)

    def __contains__(self, name: str) -> bool:
        self._load()
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(self._names)

    def _load(self) -> None:
        load_families(self._package)
        if type(self) is Marker:
            # Passes ask a hundred thousand times: from here on without a function of Python.
            self.__class__ = type("Marker", (Marker,), {"__contains__": self._names.__contains__})
