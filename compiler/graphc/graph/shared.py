# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared variables: variables with a value of their own, which all functions that use them see."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from graphc.graph.basic import Variable
from graphc.graph.type import Type
from graphc_runtime.commit import commit

if TYPE_CHECKING:
    from graphc_runtime.thunk import Register


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

    Examples:
        >>> w = graphc.shared(np.zeros(2), name="w")
        >>> w.set_value([1.0, 2.0])
        >>> w.get_value()
        array([1., 2.])
    """

    def __init__(
        self,
        type: Type,
        value: object = None,
        strict: bool = False,
        allow_downcast: bool | None = None,
        name: str | None = None,
        container: Register | None = None,
    ) -> None:
        super().__init__(type, None, None, name)
        self._strict = strict
        self._allow_downcast = allow_downcast
        self._default_update: Variable | None = None
        self.container: Register = [None] if container is None else container
        if container is None:
            self.container[0] = self._canonical(value, borrow=False)

    def _canonical(self, value: object, borrow: bool) -> object:
        filtered = self.type.filter(value, strict=self._strict, allow_downcast=self._allow_downcast)
        return filtered if borrow or filtered is not value else copy.deepcopy(filtered)

    def _replacement(self, value: object, borrow: bool) -> object:
        """The value as the type takes it, in the object of the old one where the type knows how to."""
        if type(self.type).filter_inplace is Type.filter_inplace:
            return self._canonical(value, borrow)
        own = value if borrow else copy.deepcopy(value)
        return self.type.filter_inplace(own, self.container[0], self._strict, self._allow_downcast)

    def get_value(self, borrow: bool = False, return_internal_type: bool = False) -> Any:
        """The value: a copy, or with ``borrow`` the object itself, not to be changed while functions run."""
        value = self.container[0]
        return value if borrow else copy.deepcopy(value)

    def get_test_value(self) -> Any:
        return self.container[0]

    def set_value(self, new_value: object, borrow: bool = False) -> None:
        """Replace the value.

        Args:
            new_value: anything that the type accepts.
            borrow: keep the object itself where possible instead of a copy.

        Raises:
            TypeError: the type does not accept it. The old value stays.
        """
        try:
            new = self._replacement(new_value, borrow)
        except TypeError as error:
            raise TypeError(f"cannot set the shared variable {self}: {error}") from None
        commit([self.container], [new], (), ())

    @property
    def default_update(self) -> Variable | None:
        return self._default_update

    @default_update.setter
    def default_update(self, value: Variable | None) -> None:
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
