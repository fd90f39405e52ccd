# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``In`` and ``Out``: inputs and outputs with options, and the form in which outputs are returned."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from graphc.graph.basic import Constant, Variable


class In:
    """An input with options.

    Args:
        variable: the input; any variable that is neither a constant nor shared.
        name: keyword by which calls give it; the variable's name by default.
        value: value it has when a call gives none.
        update: expression whose value becomes the next ``value`` after each call; needs ``value``.
        mutable: the function may overwrite what it is given. A permission; it is not used at present.
        borrow: ``value`` need not be copied.
        strict: accept only values of exactly the right type.
        allow_downcast: as in ``Type.filter``; None takes the function's ``allow_input_downcast``.
        implicit: accepted for compatibility; it has no effect.
    """

    def __init__(
        self,
        variable: Variable,
        name: str | None = None,
        value: Any = None,
        update: Any = None,
        mutable: bool | None = None,
        borrow: bool | None = None,
        strict: bool = False,
        allow_downcast: bool | None = None,
        implicit: bool | None = None,
    ) -> None:
        if not isinstance(variable, Variable):
            raise TypeError(
                f"an input must be a variable, got {variable!r} of type {type(variable).__name__}"
            )
        if isinstance(variable, Constant):
            raise TypeError(f"the constant {variable} cannot be an input; replace it with givens=")
        if mutable and borrow is False:
            raise ValueError(f"the input {variable} cannot be mutable and not borrowed")
        if update is not None and value is None:
            raise ValueError(f"the input {variable} has an update but no value to start from; give value=")
        self.variable = variable
        self.name = variable.name if name is None else name
        self.update = None if update is None else variable.type.filter_variable(update)
        self.mutable = bool(mutable)
        self.borrow = self.mutable if borrow is None else borrow
        self.strict = strict
        self.allow_downcast = allow_downcast
        self.implicit = implicit
        self.value = value
        # A cell, like that of a shared variable, which an update replaces.
        self.default: list[Any] | None = None if value is None else [self._filtered_default()]

    def _filtered_default(self) -> Any:
        value = self.variable.type.filter(self.value, strict=self.strict, allow_downcast=self.allow_downcast)
        return value.copy() if value is self.value and not self.borrow and hasattr(value, "copy") else value

    def on(self, variable: Variable) -> In:
        """The same input over another variable of the same type."""
        other = copy.copy(self)
        other.variable = variable
        return other

    def __getstate__(self) -> dict[str, Any]:
        # The update is an output of the function's graph; as a graph of its own it could nest too deeply to
        # pickle.
        return {**self.__dict__, "update": None}

    def __repr__(self) -> str:
        return f"In({self.variable})" if self.name is None else f"In({self.variable}, name={self.name!r})"


class Out:
    """An output with options.

    Args:
        variable: what to return.
        borrow: accepted for compatibility. Results are new arrays in any case.
    """

    def __init__(self, variable: Variable, borrow: bool = False) -> None:
        self.variable = variable
        self.borrow = borrow

    def __repr__(self) -> str:
        return f"Out({self.variable})"


class OutputForm:
    """The nesting of lists, tuples and dicts in which the outputs were given, and in which results are
    returned.

    Attributes:
        variables: the outputs in order, flattened.
        count: how many there are.
        is_single: the form is one variable. is_list: the form is a list of variables.
    """

    def __init__(self, outputs: Any) -> None:
        self.variables: list[Variable] = []
        self._tree = None if outputs is None else self._flatten(outputs, "outputs")
        self.count = len(self.variables)
        self.is_single = isinstance(self._tree, int)
        # Most functions return one value or a plain list; those need no walk over the tree.
        self.is_list = isinstance(self._tree, list) and self._tree == list(range(self.count))

    def _flatten(self, item: Any, path: str) -> Any:
        if isinstance(item, Mapping):
            return {key: self._flatten(value, f"{path}[{key!r}]") for key, value in item.items()}
        if isinstance(item, list):
            return [self._flatten(value, f"{path}[{i}]") for i, value in enumerate(item)]
        if isinstance(item, tuple):
            parts = tuple(self._flatten(value, f"{path}[{i}]") for i, value in enumerate(item))
            return type(item)(*parts) if hasattr(item, "_fields") else parts
        self.variables.append(_as_output(item, path))
        return len(self.variables) - 1

    def build(self, values: Sequence[Any]) -> Any:
        """``values``, one for each variable, in the form of the outputs."""
        if self.is_single:
            return values[0]
        if self.is_list:
            return list(values)
        return self._build(self._tree, values)

    def _build(self, tree: Any, values: Sequence[Any]) -> Any:
        if isinstance(tree, int):
            return values[tree]
        if isinstance(tree, dict):
            return {key: self._build(part, values) for key, part in tree.items()}
        if isinstance(tree, list):
            return [self._build(part, values) for part in tree]
        if isinstance(tree, tuple):
            parts = [self._build(part, values) for part in tree]
            return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
        return None

    def without_variables(self) -> OutputForm:
        """The same form without the variables, which lets it be pickled apart from the graph."""
        form = copy.copy(self)
        form.variables = []
        return form


def _as_output(item: Any, path: str) -> Variable:
    if isinstance(item, Out):
        item = item.variable
    if isinstance(item, Variable):
        return item
    from graphc.tensor.basic import as_tensor_variable

    try:
        return as_tensor_variable(item)
    except TypeError as error:
        raise TypeError(f"{path} of the function must be a variable, got {item!r}: {error}") from None


def as_inputs(inputs: Sequence[Variable | In]) -> list[In]:
    """The inputs of a function as `In` objects.

    Raises:
        TypeError: an input is no variable, a constant or shared.
        ValueError: a variable is given twice.
    """
    from graphc.function.shared import SharedVariable

    if isinstance(inputs, Variable | In):
        raise TypeError(
            f"the inputs of a function must be a list, got the single {inputs!r}; write [{inputs}]"
        )
    result = [item if isinstance(item, In) else In(item) for item in inputs]
    seen: set[Variable] = set()
    for item in result:
        if isinstance(item.variable, SharedVariable):
            raise TypeError(
                f"the shared variable {item.variable} cannot be an input: its value is part of it; "
                "leave it out, or replace it by an input with givens="
            )
        if item.variable in seen:
            raise ValueError(f"the variable {item.variable} is given more than once among the inputs")
        seen.add(item.variable)
    return result
