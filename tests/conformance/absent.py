# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stand-ins for names that graphc does not have: tests may import and name them; they raise when used."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Iterator
from typing import Any


class AbsentNameError(BaseException):
    """A test uses a name that graphc does not have. Not an `Exception`, so that no handler of a test or of
    the library takes it for an error of the call.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"graphc has no counterpart of {name}")
        self.name = name


class AbsentInFixtureError(Exception):
    """The same while a fixture is made: pytest cleans up after an `Exception` only."""

    def __init__(self, name: str) -> None:
        super().__init__(f"graphc has no counterpart of {name}")
        self.name = name


class Phase:
    """When stand-ins raise: not while modules are imported and tests collected."""

    strict = False
    fixture = False


def use(name: str) -> None:
    if Phase.strict:
        raise (AbsentInFixtureError if Phase.fixture else AbsentNameError)(name)


def _named(cls: type) -> str:
    """The absent name that a stand-in is for, or that a class of a test inherits from."""
    return next(base.__qualname__ for base in cls.__mro__ if base.__module__ == "pytensor")


class Absent(ABCMeta):
    """Metaclass of stand-ins: they can be named, subclassed and, before tests run, called."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        use(_named(cls))
        if args and callable(args[0]) and len(args) == 1 and not kwargs and not isinstance(args[0], type):
            return args[0]  # a decorator
        return absent(f"{cls.__qualname__}()")

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        use(_named(cls))
        return absent(f"{cls.__qualname__}.{name}")

    def __getitem__(cls, key: Any) -> Any:
        use(_named(cls))
        return absent(f"{cls.__qualname__}[]")

    def __iter__(cls) -> Iterator[Any]:
        use(_named(cls))
        return iter(())

    def __instancecheck__(cls, instance: Any) -> bool:
        use(_named(cls))
        return False

    def __subclasscheck__(cls, subclass: type) -> bool:
        return cls in subclass.__mro__

    def __repr__(cls) -> str:
        return f"<absent {cls.__qualname__}>"


def absent(name: str) -> type:
    """The stand-in of a name; a class of exceptions or warnings where the name is one."""
    last = name.rpartition(".")[2]
    kinds = {"Error": Exception, "Exception": Exception, "Warning": Warning}
    base = tuple(kind for ending, kind in kinds.items() if last.endswith(ending))
    return Absent(last, base, {"__qualname__": name, "__module__": "pytensor"})
