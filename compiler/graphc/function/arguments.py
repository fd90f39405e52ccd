# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From the arguments of a call to one checked value for each input."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.errors import IntegerRangeError
from graphc.function.io import In
from graphc.graph.location import describe
from graphc.graph.tensor.type import exact_type
from graphc_runtime.marshal import is_on_device


class ArgumentReader:
    """Reads the arguments of a function's calls.

    Args:
        inputs: the function's inputs.
        function_name: for messages.
        allow_downcast: what values are filtered with where an input does not say so itself.
        keeps_device: arrays of a device are taken as they are; else their values are copied to the host.
    """

    def __init__(
        self,
        inputs: list[In],
        function_name: str,
        allow_downcast: bool | None,
        *,
        keeps_device: bool = False,
    ) -> None:
        self.inputs = inputs
        self.function_name = function_name
        self._keeps_device = keeps_device
        self.positions = {item.name: i for i, item in enumerate(inputs) if item.name is not None}
        names = [item.name for item in inputs]
        self._ambiguous = {name for name in self.positions if names.count(name) > 1}
        self._allow_downcast = [
            allow_downcast if item.allow_downcast is None else item.allow_downcast for item in inputs
        ]
        self._exact = [exact_type(item.variable.type) for item in inputs]

    def are_exact(self, args: tuple[object, ...]) -> bool:
        """Whether arguments by position are one array of the input's type for each input, and so need no
        check.
        """
        if len(args) != len(self._exact):
            return False
        for value, (dtype, ndim) in zip(args, self._exact):  # noqa: B905
            if type(value) is not np.ndarray or value.dtype is not dtype or value.ndim != ndim:
                return False
        return True

    def read(self, args: tuple[Any, ...], kwargs: dict[str, Any], trust: bool) -> list[Any]:
        """One value for each input.

        Args:
            args: values by position.
            kwargs: values by name.
            trust: take values as they are, but for NumPy's generators, of which the states are taken.

        Raises:
            TypeError: an input is missing, unknown, given twice, or of the wrong type, dtype, rank or static
                size.
        """
        if len(args) > len(self.inputs):
            inputs = "input" if len(self.inputs) == 1 else "inputs"
            raise TypeError(
                f"{self._signature()} takes {len(self.inputs)} {inputs}, got {len(args)} by position"
            )
        given: dict[int, Any] = dict(enumerate(args))
        for name, value in kwargs.items():
            position = self.positions.get(name)
            if name in self._ambiguous:
                raise TypeError(
                    f"{self._signature()} has several inputs named {name!r}; give them by position"
                )
            if position is None:
                known = ", ".join(sorted(self.positions)) or "none, as no input has a name of its own"
                raise TypeError(f"{self._signature()} has no input named {name!r}; the names are {known}")
            if position in given:
                raise TypeError(f"{self._signature()} got the input {name!r} both by position and by name")
            given[position] = value
        values, missing = [], []
        for i, item in enumerate(self.inputs):
            if i in given:
                as_is = trust and not isinstance(given[i], np.random.Generator)
                as_is = as_is or (self._keeps_device and is_on_device(given[i]))
                values.append(given[i] if as_is else self._filter(i, given[i]))
            elif item.default is not None:
                values.append(item.default[0])
            else:
                missing.append(i)
        if missing:
            raise TypeError(f"{self._signature()} is missing {', '.join(self.describe(i) for i in missing)}")
        return values

    def _filter(self, i: int, value: object) -> Any:
        item = self.inputs[i]
        try:
            found = item.variable.type.filter(
                value, strict=item.strict, allow_downcast=self._allow_downcast[i]
            )
            # Of a matrix NumPy's functions would make something else.
            return np.asarray(found) if isinstance(found, np.ndarray) else found
        except (TypeError, ValueError, NotImplementedError) as error:
            message = f"{self._signature()} cannot take this value for {self.describe(i)}: {error}"
            kinds = (IntegerRangeError, TypeError, ValueError, NotImplementedError)
            raise next(kind for kind in kinds if isinstance(error, kind))(message) from None

    def describe(self, i: int) -> str:
        """An input in words: position, name, and where it was made."""
        item = self.inputs[i]
        name = f" {item.name!r}" if item.name is not None else ""
        return f"input {i}{name} of type {item.variable.type}{describe(item.variable.location)}"

    def _signature(self) -> str:
        names = (item.name if item.name is not None else f"input {i}" for i, item in enumerate(self.inputs))
        return f"{self.function_name}({', '.join(names)})"
