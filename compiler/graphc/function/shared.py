# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared variables: variables with a value of their own, which all functions that use them see."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np

from graphc.config import config
from graphc.graph.basic import Variable
from graphc.graph.location import capture
from graphc.graph.type import Type
from graphc.tensor.type import TensorType
from graphc.tensor.variable import TensorVariable
from graphc_runtime.commit import commit


class SharedVariable(Variable):
    """A variable with a value.

    Args:
        type: its type.
        value: its first value; None with ``container``.
        strict, allow_downcast: how values are converted, as in ``Type.filter``.
        name: a name for people.
        container: a one-element list that holds the value; functions read and write it there.

    Attributes:
        default_update: expression that every function using the variable stores into it, unless told
            otherwise.
    """

    def __init__(
        self,
        type: Type,
        value: Any = None,
        strict: bool = False,
        allow_downcast: bool | None = None,
        name: str | None = None,
        container: list[Any] | None = None,
    ) -> None:
        super().__init__(type, None, None, name)
        self._strict = strict
        self._allow_downcast = allow_downcast
        self._default_update: Variable | None = None
        self.container: list[Any] = [None] if container is None else container
        if container is None:
            self.container[0] = self._canonical(value, borrow=False)

    def _canonical(self, value: Any, borrow: bool) -> Any:
        filtered = self.type.filter(value, strict=self._strict, allow_downcast=self._allow_downcast)
        return filtered if borrow or filtered is not value else copy.deepcopy(filtered)

    def get_value(self, borrow: bool = False, return_internal_type: bool = False) -> Any:
        """The value: a copy, or with ``borrow`` the object itself, not to be changed while functions run."""
        value = self.container[0]
        return value if borrow else copy.deepcopy(value)

    def set_value(self, new_value: Any, borrow: bool = False) -> None:
        """Replace the value.

        Args:
            new_value: anything that the type accepts.
            borrow: keep the object itself where possible instead of a copy.

        Raises:
            TypeError: the type does not accept it. The old value stays.
        """
        try:
            new = self._canonical(new_value, borrow)
        except TypeError as error:
            raise TypeError(f"cannot set the shared variable {self}: {error}") from None
        commit([self.container], [new], (), ())

    @property
    def default_update(self) -> Variable | None:
        return self._default_update

    @default_update.setter
    def default_update(self, value: Any) -> None:
        self._default_update = None if value is None else self.type.filter_variable(value)

    def clone(self, name: str | None = None, **kwargs: Any) -> SharedVariable:
        """Another variable of the same value: both see changes by either."""
        other = type(self)(
            kwargs.pop("type", self.type),
            strict=self._strict,
            allow_downcast=self._allow_downcast,
            name=self.name if name is None else name,
            container=kwargs.pop("container", self.container),
        )
        other._location = self._location
        other._default_update = self._default_update
        return other


class TensorSharedVariable(TensorVariable, SharedVariable):
    """A shared tensor; its value is always a C-contiguous, aligned array, which compiled code can read."""

    def _canonical(self, value: Any, borrow: bool) -> np.ndarray:
        array = self.type.filter(value, strict=self._strict, allow_downcast=self._allow_downcast)
        if borrow and type(array) is np.ndarray and array.flags.carray:
            return array
        return np.array(array, order="C", copy=True, subok=False)

    def get_value(self, borrow: bool = False, return_internal_type: bool = False) -> np.ndarray:
        array = self.container[0]
        return array if borrow else array.copy()

    def zero(self, borrow: bool = False) -> None:
        """Set all elements to 0; with ``borrow`` in place, also in a caller's array that was borrowed."""
        if borrow and self.container[0].flags.writeable:
            self.container[0].fill(0)
        else:
            self.container[0] = np.zeros_like(self.container[0])


@singledispatch
def shared_constructor(
    value: Any,
    name: str | None = None,
    strict: bool = False,
    allow_downcast: bool | None = None,
    borrow: bool = False,
    shape: Sequence[int | None] | None = None,
    **kwargs: Any,
) -> SharedVariable:
    """Make a shared variable; ``shared_constructor.register(cls)`` adds other kinds of values."""
    if isinstance(value, Variable):
        raise TypeError(f"a shared variable needs a value, got the symbolic variable {value}")
    if hasattr(value, "bit_generator"):
        from graphc.tensor.random.shared import share_generator

        return share_generator(value, name, strict, allow_downcast, borrow, **kwargs)
    if hasattr(value, "tocsr"):
        from graphc.sparse.shared import share_matrix

        return share_matrix(value, name, strict, allow_downcast)
    if kwargs:
        raise TypeError(f"shared() got unknown arguments {', '.join(kwargs)}")
    array = np.asarray(value, dtype=config.floatX if type(value) is float else None)
    if array.dtype.kind not in "biufc":
        raise TypeError(
            f"cannot share {value!r:.80} of type {type(value).__name__}: it is not an array of numbers. "
            "For a type of your own, register it with graphc.function.shared.shared_constructor"
        )
    tensor_type = TensorType(
        array.dtype.newbyteorder("=").name, (None,) * array.ndim if shape is None else shape
    )
    variable = TensorSharedVariable(tensor_type, None, strict, allow_downcast, name, container=[None])
    variable.container[0] = variable._canonical(array, borrow)
    return variable


def shared(
    value: Any,
    name: str | None = None,
    strict: bool = False,
    allow_downcast: bool | None = None,
    borrow: bool = False,
    shape: Sequence[int | None] | None = None,
    **kwargs: Any,
) -> Any:
    """A variable with a value that functions keep between calls, and may update.

    Args:
        value: the first value: array-like, or of a class registered with `shared_constructor`. A Python float
            becomes ``config.floatX``.
        name: a name for people.
        strict, allow_downcast: how later values are converted, as in ``Type.filter``.
        borrow: keep the array itself where possible instead of a copy.
        shape: static shape; by default no size is fixed.

    Raises:
        TypeError: the value is not supported, or does not have the static shape.
    """
    if shape is not None:
        kwargs["shape"] = shape
    if borrow:
        kwargs["borrow"] = True
    variable = shared_constructor(value, name=name, strict=strict, allow_downcast=allow_downcast, **kwargs)
    variable._location = capture()
    return variable
