# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dataclasses that load quickly: the one method that is written and compiled is so with the eighth object.

`dataclasses.dataclass` compiles three to seven methods a class, half a millisecond to one, when a module is
loaded; a process that finds its function in the disk cache makes objects of few of these classes, and of most
of them a few. Fields are those of `dataclasses` here, too. Comparing, hashing and showing read them by name,
and need nothing compiled. The first objects are filled field by field, which takes a twentieth of the time in
which `__init__` is compiled.
"""

from __future__ import annotations

import dataclasses
import inspect
import reprlib
from collections.abc import Callable
from operator import attrgetter
from typing import TypeVar, cast, dataclass_transform

T = TypeVar("T")
# So many objects of a class are made before its `__init__` is compiled.
_FEW = 7


@dataclass_transform(field_specifiers=(dataclasses.field,))
def record(
    *, frozen: bool = False, eq: bool = True, repr: bool = True, kw_only: bool = False
) -> Callable[[type[T]], type[T]]:
    """As ``dataclasses.dataclass``, with less to do where a class is defined.

    Args:
        frozen: whether fields cannot be assigned.
        eq: whether objects are compared by their fields.
        repr: whether they are shown with their fields.
        kw_only: whether objects are made with the names of fields only.

    Returns:
        A decorator, which returns the same class. It must not define ``__init__``, and its bases are no
        dataclasses of another kind that are frozen.

    Example:
        >>> @record(frozen=True)
        ... class Point:
        ...     x: float
        ...     y: float = 0.0
        >>> Point(1.0), dataclasses.is_dataclass(Point)
        (Point(x=1.0, y=0.0), True)
    """

    def complete(cls: type[T]) -> type[T]:
        if "__init__" in cls.__dict__:
            raise TypeError(f"{cls.__qualname__} defines __init__, which a record cannot")
        fields = _find_fields(cls, kw_only)
        methods: dict[str, object] = {}
        if repr:
            methods["__repr__"] = _shown(tuple(field.name for field in fields if field.repr))
        if eq:
            methods |= _compared(fields, frozen)
        if frozen:
            methods |= _fixed(cls, frozenset(field.name for field in fields))
        for name, method in methods.items():
            if cls.__dict__.get(name) is None:
                setattr(cls, name, method)
        _initialised(cls, frozen)
        return cls

    return complete


def _find_fields(cls: type, kw_only: bool) -> tuple[dataclasses.Field[object], ...]:
    """Finds fields as `dataclasses` does, without methods. A class without documentation would be given its
    signature as such, which takes a millisecond.
    """
    documented = bool(cls.__doc__)
    if not documented:
        cls.__doc__ = cls.__name__
    dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)
    if not documented:
        cls.__doc__ = None
    return dataclasses.fields(cls)


def _values(names: tuple[str, ...]) -> Callable[[object], tuple[object, ...]]:
    """A function that reads fields of an object."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _shown(names: tuple[str, ...]) -> Callable[[object], str]:
    @reprlib.recursive_repr()
    def __repr__(self: object) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({values})"

    return __repr__


def _compared(fields: tuple[dataclasses.Field[object], ...], frozen: bool) -> dict[str, object]:
    values = _values(tuple(field.name for field in fields if field.compare))

    def __eq__(self: object, other: object) -> bool:
        if other.__class__ is self.__class__:
            return values(self) == values(other)
        return NotImplemented

    if not frozen:
        return {"__eq__": __eq__, "__hash__": None}
    hashed = (field.name for field in fields if (field.compare if field.hash is None else field.hash))
    hashed_values = _values(tuple(hashed))

    def __hash__(self: object) -> int:
        return hash(hashed_values(self))

    return {"__eq__": __eq__, "__hash__": __hash__}


def _fixed(owner: type, names: frozenset[str]) -> dict[str, object]:
    assign: Callable[[object, str, object], None] = attrgetter("__setattr__")(owner)
    delete: Callable[[object, str], None] = attrgetter("__delattr__")(owner)

    def __setattr__(self: object, name: str, value: object) -> None:
        if type(self) is owner or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        assign(self, name, value)

    def __delattr__(self: object, name: str) -> None:
        if type(self) is owner or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        delete(self, name)

    return {"__setattr__": __setattr__, "__delattr__": __delattr__}


class _Signature:
    """The signature of a class, found when somebody asks."""

    def __init__(self, cls: type, frozen: bool) -> None:
        self.cls, self.frozen = cls, frozen

    def __get__(self, made: object, owner: type) -> inspect.Signature:
        if owner is not self.cls or made is not None:
            raise AttributeError("__signature__")
        found = inspect.signature(_initialiser(owner, self.frozen))
        return found.replace(parameters=list(found.parameters.values())[1:])


def _initialised(cls: type, frozen: bool) -> None:
    made = 0

    def __init__(self: object, *arguments: object, **named: object) -> None:
        nonlocal made
        if made < _FEW:
            made += 1
            if _filled(self, cls, object.__setattr__ if frozen else setattr, arguments, named):
                return
        # Other threads may do the same: any of these functions will do.
        initialise = _initialiser(cls, frozen)
        type.__setattr__(cls, "__init__", initialise)
        initialise(self, *arguments, **named)

    for name, value in {"__init__": __init__, "__signature__": _Signature(cls, frozen)}.items():
        type.__setattr__(cls, name, value)


def _filled(
    self: object,
    cls: type,
    put: Callable[[object, str, object], None],
    arguments: tuple[object, ...],
    named: dict[str, object],
) -> bool:
    """Gives an object its fields, unless the arguments are wrong: what is compiled raises then."""
    fields = dataclasses.fields(cls)
    order = [field.name for field in fields if field.init and not field.kw_only]
    given = dict(zip(order, arguments, strict=False))
    if len(given) < len(arguments) or not given.keys().isdisjoint(named):
        return False
    given |= named
    values = {}
    for field in fields:
        if field.init and field.name in given:
            values[field.name] = given.pop(field.name)
        elif field.default_factory is not dataclasses.MISSING:
            values[field.name] = field.default_factory()
        elif field.init and field.default is dataclasses.MISSING:
            return False
        elif field.init:
            values[field.name] = field.default
    if given:
        return False
    for name, value in values.items():
        put(self, name, value)
    if (complete := getattr(self, "__post_init__", None)) is not None:
        complete()
    return True


def _initialiser(cls: type, frozen: bool) -> Callable[..., None]:
    """The ``__init__`` that `dataclasses` would write."""
    positional, named, body = ["self"], list[str](), list[str]()
    names: dict[str, object] = {"_given": object(), "_put": object.__setattr__}
    for i, field in enumerate(dataclasses.fields(cls)):
        value, default = field.name, ""
        if field.default_factory is not dataclasses.MISSING:
            names[f"_make{i}"] = field.default_factory
            default = "=_given"
            value = f"_make{i}() if {field.name} is _given else {field.name}" if field.init else f"_make{i}()"
        elif not field.init:
            continue
        elif field.default is not dataclasses.MISSING:
            names[f"_default{i}"] = field.default
            default = f"=_default{i}"
        if field.init:
            (named if field.kw_only else positional).append(field.name + default)
        body.append(f"_put(self, {field.name!r}, {value})" if frozen else f"self.{field.name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    head = ", ".join([*positional, *(["*", *named] if named else [])])
    exec(f"def __init__({head}):\n " + "\n ".join(body or ["pass"]), names)
    made = cast("Callable[..., None]", names["__init__"])
    made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    return made
