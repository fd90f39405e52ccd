# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that make input variables: ``vector("x")``, ``scalars("a", "b")``, ``tensor(...)``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphc.config import config
from graphc.graph.location import capture
from graphc.tensor.type import TensorType
from graphc.tensor.variable import TensorVariable

_PREFIXES = {
    "": None,
    "b": "int8",
    "w": "int16",
    "i": "int32",
    "l": "int64",
    "f": "float32",
    "d": "float64",
    "c": "complex64",
    "z": "complex128",
}
_SHAPES: dict[str, tuple[int | None, ...]] = {
    "scalar": (),
    "vector": (None,),
    "matrix": (None, None),
    "row": (1, None),
    "col": (None, 1),
    **{f"tensor{n}": (None,) * n for n in range(3, 8)},
}
_PLURALS = {"matrix": "matrices"}


def _make(dtype: Any, shape: Sequence[int | None], name: str | None) -> TensorVariable:
    variable = TensorType(config.floatX if dtype is None else dtype, shape).make_variable(name)
    variable._location = capture()
    return variable  # type: ignore[return-value]


def tensor(
    name: str | None = None, *, dtype: Any = None, shape: Sequence[int | None], **kwargs: Any
) -> TensorVariable:
    """An input variable.

    Args:
        name: a name for people; it is also the keyword by which a compiled function takes the value.
        dtype: dtype of the elements; ``config.floatX`` by default.
        shape: one entry for each dimension, None where the size is unknown.
    """
    if name is not None and not isinstance(name, str):
        raise TypeError(
            f"the first argument of tensor() is the name, got {name!r}; give dtype= and shape= by keyword"
        )
    return _make(dtype, shape, name, **kwargs)


def _constructor(kind: str, prefix: str) -> Callable[..., TensorVariable]:
    fixed = _PREFIXES[prefix]
    default = _SHAPES[kind]

    def make(
        name: str | None = None, *, dtype: Any = None, shape: Sequence[int | None] | None = None
    ) -> TensorVariable:
        if fixed is not None and dtype is not None and dtype != fixed:
            raise TypeError(
                f"{prefix}{kind} makes {fixed} variables, got dtype={dtype!r}; use {kind}(dtype=...)"
            )
        if shape is not None:
            _check_shape(kind, default, tuple(shape))
        return _make(fixed or dtype, default if shape is None else shape, name)

    make.__name__ = make.__qualname__ = prefix + kind
    make.__doc__ = (
        f"An input variable of dtype {fixed or 'config.floatX (or ``dtype``)'} and shape "
        f"{str(default).replace('None', '?')}, which ``shape`` may narrow."
    )
    return make


def _check_shape(kind: str, default: tuple[int | None, ...], shape: tuple[int | None, ...]) -> None:
    fits = len(shape) == len(default) and all(
        d is None or d == s for d, s in zip(default, shape, strict=True)
    )
    if not fits:
        expected = str(default).replace("None", "?")
        raise ValueError(f"the shape of a {kind} must match {expected}, got {shape}")


def _plural(make: Callable[..., TensorVariable], name: str) -> Callable[..., list[TensorVariable]]:
    def make_all(*names: Any, **kwargs: Any) -> list[TensorVariable]:
        if len(names) == 1 and isinstance(names[0], int):
            return [make(**kwargs) for _ in range(names[0])]
        if len(names) == 1 and isinstance(names[0], list | tuple):
            names = tuple(names[0])
        return [make(each, **kwargs) for each in names]

    make_all.__name__ = make_all.__qualname__ = name
    make_all.__doc__ = (
        f"Several variables made by `{make.__name__}`, one for each name, or as many as a number says."
    )
    return make_all


def _all_constructors() -> dict[str, Callable[..., Any]]:
    table: dict[str, Callable[..., Any]] = {}
    for prefix in _PREFIXES:
        for kind in _SHAPES:
            name = prefix + kind
            table[name] = _constructor(kind, prefix)
            plural = prefix + _PLURALS.get(kind, kind + "s")
            table[plural] = _plural(table[name], plural)
    return table


CONSTRUCTORS = _all_constructors()
globals().update(CONSTRUCTORS)
__all__ = ["tensor", *CONSTRUCTORS]
