# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dataclasses whose methods are made with their first object.

`dataclasses.dataclass` compiles three to seven methods a class, half a millisecond, when a module is loaded;
a process that finds its function in the disk cache makes objects of few of these classes.
"""

from __future__ import annotations

import dataclasses
import threading
import types
from collections.abc import Callable
from typing import TypeVar, dataclass_transform

T = TypeVar("T")
_LOCK = threading.RLock()
# A class without documentation would be given its signature, which takes a millisecond.
_TWIN = "Lends its methods."


def _document(namespace: dict[str, object]) -> None:
    namespace["__doc__"] = _TWIN


def _as_it_was(cls: type, attributes: dict[str, object]) -> None:
    for name in vars(cls).keys() - attributes.keys():
        type.__delattr__(cls, name)
    for name, value in attributes.items():
        if vars(cls).get(name) is not value:
            type.__setattr__(cls, name, value)


@dataclass_transform(field_specifiers=(dataclasses.field,))
def record(*, frozen: bool = False, eq: bool = True, repr: bool = True) -> Callable[[type[T]], type[T]]:
    """As ``dataclasses.dataclass``, later: with the first object, unpickled object or subclass.

    Until then `dataclasses.fields` and `inspect.signature` do not know the class, so what is asked for its
    fields is a dataclass from the start.

    Args:
        frozen: whether fields cannot be assigned.
        eq: whether objects are compared by their fields.
        repr: whether they are shown with their fields.

    Returns:
        A decorator, which returns the same class. It must not define ``__init__``, ``__setstate__`` or
        ``__init_subclass__``.

    Example:
        >>> @record(frozen=True)
        ... class Point:
        ...     x: float
        ...     y: float = 0.0
        >>> dataclasses.is_dataclass(Point)
        False
        >>> Point(1.0), dataclasses.is_dataclass(Point)
        (Point(x=1.0, y=0.0), True)
    """

    def defer(cls: type[T]) -> type[T]:
        attributes: dict[str, object] = {}

        def make() -> None:
            with _LOCK:
                if vars(cls).get("__init__") is not initialise:
                    return
                # An interrupt may end this anywhere, and the next object begins anew.
                if attributes:
                    _as_it_was(cls, attributes)
                else:
                    attributes.update(vars(cls))
                dataclasses.dataclass(init=False, frozen=frozen, eq=eq, repr=repr)(cls)
                # Another thread may make an object meanwhile: the stub stays until its successor is there.
                twin = types.new_class(cls.__name__, (cls,), exec_body=_document)
                dataclasses.dataclass(frozen=frozen, eq=False, repr=False)(twin)
                type.__setattr__(cls, "__init__", vars(twin)["__init__"])
                type.__delattr__(cls, "__init_subclass__")
                type.__delattr__(cls, "__setstate__")

        def initialise(self: object, *arguments: object, **named: object) -> None:
            make()
            type(self).__init__(self, *arguments, **named)

        def restore(self: T, state: dict[str, object]) -> None:
            make()
            vars(self).update(state)

        def inherit(subclass: type[T], /) -> None:
            if subclass.__doc__ is not _TWIN:
                make()

        stubs: dict[str, object] = {
            "__init__": initialise,
            "__setstate__": restore,
            "__init_subclass__": classmethod(inherit),
        }
        for name, stub in stubs.items():
            if name in cls.__dict__:
                raise TypeError(f"{cls.__qualname__} defines {name}, which a record cannot")
            type.__setattr__(cls, name, stub)
        return cls

    return defer
