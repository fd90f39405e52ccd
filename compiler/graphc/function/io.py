# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``In`` and ``Out``: inputs and outputs with options, and the form in which outputs are returned."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from graphc.errors import UnusedInputError
from graphc.graph.basic import Constant, Variable
from graphc.graph.pytree import LEAF, Structure, flatten, is_tree
from graphc.graph.shared import SharedVariable
from graphc.graph.tensor.convert import as_tensor_variable

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


# What `graphc.function` takes as inputs.
Inputs: TypeAlias = "Sequence[Variable | In | Container] | Mapping[str, Variable | In | Container]"
# A dict, list, tuple or dataclass of inputs, nested as you like.
Container: TypeAlias = "Mapping[str, object] | Sequence[object] | DataclassInstance"


class In:
    """An input with options.

    Args:
        variable: the input; any variable that is neither a constant nor shared.
        name: keyword by which calls give it; the variable's name by default.
        value: value it has when a call gives none; an input of another function, ``f.container[s]``, shares
            its own, so that both see changes by either.
        update: expression whose value becomes the next ``value`` after each call. Without ``value`` calls
            give the input each time, as in PyTensor: the update is never read, and not computed.
        mutable: the function may overwrite what it is given, and return it as a result: after a call the
            array's contents are undefined, unless it is a result. A permission, which is used where it saves
            memory; ``f.report`` says where it is not.
        borrow: ``value`` need not be copied.
        strict: accept only values of exactly the right type.
        allow_downcast: as in ``Type.filter``; None takes the function's ``allow_input_downcast``.
        implicit: accepted for compatibility; it has no effect.
        donate: another name of ``mutable``.

    Examples:
        >>> x, w = pt.scalar("x"), pt.scalar("w")
        >>> f = graphc.function([x, graphc.In(w, value=2.0)], x * w)
        >>> float(f(3.0)), float(f(3.0, 5.0))
        (6.0, 15.0)
    """

    def __init__(
        self,
        variable: Variable,
        name: str | None = None,
        value: object = None,
        update: object = None,
        mutable: bool | None = None,
        borrow: bool | None = None,
        strict: bool = False,
        allow_downcast: bool | None = None,
        implicit: bool | None = None,
        donate: bool | None = None,
    ) -> None:
        if not isinstance(variable, Variable):
            raise TypeError(
                f"an input must be a variable, got {variable!r} of type {type(variable).__name__}; make a "
                'variable, such as graphc.tensor.vector("x"), and give the value when the function is called'
            )
        if isinstance(variable, Constant):
            raise TypeError(f"the constant {variable} cannot be an input; replace it with givens=")
        if None not in (mutable, donate) and bool(mutable) != bool(donate):
            raise ValueError(
                f"the input {variable} has mutable={mutable} and donate={donate}; they are one option"
            )
        mutable = donate if mutable is None else mutable
        if mutable and borrow is False:
            raise ValueError(f"the input {variable} cannot be mutable and not borrowed")
        if not isinstance(name, str | None):
            raise TypeError(f"the name of the input {variable} must be a str, got {name!r}")
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
        self.default: list[Any] | None = None
        if isinstance(value, In):
            if variable.type != value.variable.type:
                raise TypeError(
                    f"{self} of type {variable.type} cannot share {value} of type {value.variable.type}"
                )
            self.default = value.storage
        elif value is not None:
            self.default = [None]
            self.store(value, borrow=bool(self.borrow))

    @property
    def storage(self) -> list[Any]:
        """A list whose only element is the value between calls.

        Raises:
            TypeError: calls give the value each time.
        """
        if self.default is None:
            raise TypeError(f"{self} has no value between calls: give it one, In(..., value=...)")
        return self.default

    def store(self, value: object, borrow: bool = False) -> None:
        """Replaces the value between calls, by a copy unless it is borrowed."""
        new = self.variable.type.filter(value, strict=self.strict, allow_downcast=self.allow_downcast)
        self.storage[0] = new.copy() if new is value and not borrow and hasattr(new, "copy") else new

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
        borrow: the result may share memory with an input, with the value of a shared variable, or with
            another result, where that saves a copy. Without it, results are always new arrays, or donated
            ones. Machine code makes new arrays in any case; a result of an op that runs in Python may be what
            the op returned.

    Examples:
        >>> x = pt.vector("x")
        >>> graphc.function([x], graphc.Out(x * 2, borrow=True))([1.0, 2.0])
        array([2., 4.])
    """

    def __init__(self, variable: Variable, borrow: bool = False) -> None:
        self.variable = variable
        self.borrow = borrow

    def __repr__(self) -> str:
        return f"Out({self.variable})"


class OutputForm:
    """The nesting of lists, tuples, dicts and dataclasses in which the outputs were given, and in which
    results are returned.

    Attributes:
        variables: the outputs in order, flattened.
        count: how many there are.
        borrowed: for each output, whether its result may share memory.
        is_single: the form is one variable. is_list: the form is a list of variables.
    """

    def __init__(self, outputs: object) -> None:
        leaves, self.structure, paths = [outputs], LEAF, iter(("outputs",))
        if not isinstance(outputs, Variable | Out):  # most functions return one variable
            leaves, self.structure = flatten(outputs, as_written=True)
            paths = self.structure.paths("outputs")
            _refuse_none(self.structure, "outputs")
        self.variables = [_as_output(item, path) for item, path in zip(leaves, paths, strict=True)]
        self.borrowed = [isinstance(item, Out) and item.borrow for item in leaves]
        self._count()

    def _count(self) -> None:
        self.count = len(self.borrowed)
        self.is_single = self.structure.kind is None
        # Most functions return one value or a plain list; those need no walk over the tree.
        parts = self.structure.children
        self.is_list = self.structure.kind is list and all(part.kind is None for part in parts)

    @classmethod
    def plain(cls, count: int) -> OutputForm:
        """The form of a list of variables."""
        form = cls([])
        form.structure = Structure(list, tuple(range(count)), (LEAF,) * count)
        form.borrowed = [False] * count
        form._count()
        return form

    def build(self, values: Sequence[Any]) -> Any:
        """``values``, one for each variable, in the form of the outputs."""
        if self.is_single:
            return values[0]
        if self.is_list:
            return list(values)
        return self.structure.take(iter(values))

    def to_data(self) -> Any:
        """The form as `graphc_runtime.forms` has it: numbers and lists.

        Raises:
            TypeError: a dict in it has keys that are neither texts nor whole numbers.
        """
        return _to_data(self.structure, itertools.count())

    def flatten(self, given: Any, name: str) -> list[Any]:
        """The reverse of `build`: one item for each variable. Lists and tuples stand for each other, None for
        a part that is not given.

        Args:
            given: of the form.
            name: what is given, for messages.

        Raises:
            TypeError: ``given`` has another form.
        """
        if not (self.is_single or (self.is_list and isinstance(given, list | tuple))):
            return self.structure.leaves_of(given, name, blank=True)
        items = list(given) if isinstance(given, list | tuple) else [given]
        if len(items) != self.count:
            raise TypeError(
                f"{name} needs an array or None for each of {self.count} results, got {len(items)}"
            )
        return items

    def leaves(self, item: Any) -> list[int] | None:
        """Positions among the flattened outputs of what a key or a position of the outermost container names;
        None if there is no such item.
        """
        parts = (self.structure,) if self.is_single else self.structure.children
        places = {key: i for i, key in enumerate(self.structure.keys)}
        place = None if isinstance(item, bool | float) else places.get(item)
        if place is None and type(item) is int and -len(parts) <= item < len(parts):
            place = item % len(parts)
        if place is None:
            return None
        start = sum(part.n_leaves for part in parts[:place])
        return list(range(start, start + parts[place].n_leaves))

    def items(self) -> list[Any]:
        """The keys of the outermost container, or the positions in it."""
        return [0] if self.is_single else list(self.structure.keys)

    def with_variables(self, variables: list[Variable]) -> OutputForm:
        """The same form of other variables."""
        form = copy.copy(self)
        form.variables = variables
        return form

    def without_variables(self) -> OutputForm:
        """The same form without the variables, which lets it be pickled apart from the graph."""
        return self.with_variables([])


def _refuse_none(form: Structure, path: str) -> None:
    for key, part in zip(form.keys, form.children, strict=True):
        if part.kind is type(None) and form.example is None:
            raise TypeError(f"{path}[{key}] of the function must be a variable, got None")
        _refuse_none(part, f"{path}[{key!r}]")


def _to_data(form: Structure, numbers: Iterator[int]) -> Any:
    if form.kind is None:
        return next(numbers)
    if form.kind is type(None):
        return None
    parts = [_to_data(part, numbers) for part in form.children]
    if form.example is None:
        return ["tuple" if issubclass(form.kind, tuple) else "list", *parts]
    # Where the class of a dataclass may not be known, it is a dict.
    bad = [key for key in form.keys if type(key) not in (str, int)]
    if bad:
        raise TypeError(f"results in a dict must have texts or numbers as keys, got {bad[0]!r}")
    return ["dict", *map(list, zip(form.keys, parts, strict=True))]


def _as_output(item: object, path: str) -> Variable:
    if isinstance(item, Out):
        item = item.variable
    if isinstance(item, Variable):
        return item
    try:
        return as_tensor_variable(item)
    except TypeError as error:
        raise TypeError(f"{path} of the function must be a variable, got {item!r}: {error}") from None


class InputForm:
    """Arguments of a function of which one at least is a dict, list, tuple or dataclass of inputs.

    Args:
        arguments: what calls give, by name; those without a name of their own have their position.
    """

    def __init__(self, arguments: Mapping[str | int, object]) -> None:
        self.inputs: list[Variable | In] = []
        self._forms: dict[str | int, Structure] = {}
        for name, value in arguments.items():
            leaves, form = flatten(value)
            where = name if isinstance(name, str) else f"inputs[{name}]"
            for leaf, path in zip(leaves, form.paths(where), strict=True):
                self.inputs.append(_tree_input(leaf, path, form.kind is not None))
            self._forms[name] = form

    def flatten(self, args: tuple[object, ...], kwargs: dict[str, object], function: str) -> list[object]:
        """One value for each input. What is taken leaves ``kwargs``.

        Raises:
            TypeError: an argument is missing, given twice, or has another form than its input.
        """
        names = list(self._forms)
        call = f"{function}({', '.join(map(_argument, names))})"
        if len(args) > len(names):
            raise TypeError(f"{call} takes {len(names)} arguments, got {len(args)} by position")
        found: list[object] = []
        for i, name in enumerate(names):
            where = name if isinstance(name, str) else f"inputs[{name}]"
            if isinstance(name, str) and name in kwargs:
                if i < len(args):
                    raise TypeError(f"{call} got {name!r} both by position and by name")
                value = kwargs.pop(name)
            elif i < len(args):
                value = args[i]
            else:
                raise TypeError(f"{call} is missing the argument {where}, {self._forms[name]}")
            try:
                found += self._forms[name].leaves_of(value, where)
            except TypeError as error:
                raise TypeError(f"{call}: {error}") from None
        return found

    def without_variables(self) -> InputForm:
        """The same form without the variables, which lets it be pickled apart from the graph."""
        form = copy.copy(self)
        form.inputs = []
        return form


def _is_container(value: object) -> bool:
    return not isinstance(value, Variable | In | None) and is_tree(value)


def _argument(name: str | int) -> str:
    return name if isinstance(name, str) else f"argument {name}"


def _tree_input(leaf: object, path: str, is_part: bool) -> Variable | In:
    if isinstance(leaf, In):
        if is_part and leaf.default is not None:
            raise TypeError(f"the input {path} is part of a container and cannot have a default value")
        if not is_part:
            return leaf
    variable = leaf.variable if isinstance(leaf, In) else leaf
    if not isinstance(variable, Variable):
        raise TypeError(
            f"the input {path} must be a variable, got {variable!r:.60} of type {type(variable).__name__}"
        )
    found = leaf if isinstance(leaf, In) else In(variable)
    if is_part or found.name is None:
        found = copy.copy(found)
        found.name = path
    return found


def input_form(inputs: object) -> InputForm | None:
    """The form of inputs of which some are containers; None of a plain list of variables.

    Of a dict the keys are the names of the arguments, which calls may give by position, too.
    """
    if isinstance(inputs, dict):
        bad = [key for key in inputs if not isinstance(key, str)]
        if bad:
            raise TypeError(
                "a dict of inputs has the names of arguments as keys and variables as values, as in "
                f"function({{'x': x}}, y), got the key {bad[0]!r}; values are given when the function is "
                "called, function([x], y)(value), or by givens="
            )
        return InputForm(inputs)
    if not isinstance(inputs, list | tuple) or not any(map(_is_container, inputs)):
        return None
    names = [None if _is_container(each) else getattr(each, "name", None) for each in inputs]
    taken = [i if name is None or names.count(name) > 1 else name for i, name in enumerate(names)]
    return InputForm(dict(zip(taken, inputs, strict=True)))


def as_inputs(inputs: Inputs) -> list[In]:
    """The inputs of a function as `In` objects.

    Raises:
        TypeError: an input is no variable, a constant or shared.
        ValueError: a variable is given twice.
    """
    if isinstance(inputs, Variable | In):
        raise TypeError(
            f"the inputs of a function must be a list, got the single {inputs!r}; write [{inputs}]"
        )
    if isinstance(inputs, set | frozenset):
        raise TypeError("the inputs of a function must be a list, got a set, which has no order")
    result = [item if isinstance(item, In) else In(cast("Variable", item)) for item in inputs]
    seen: set[Variable] = set()
    for item in result:
        if isinstance(item.variable, SharedVariable):
            raise TypeError(
                f"the shared variable {item.variable} cannot be an input: its value is part of it; "
                "leave it out, or replace it by an input with givens="
            )
        if item.variable in seen:
            raise UnusedInputError(f"the variable {item.variable} is given more than once among the inputs")
        seen.add(item.variable)
    return result


def with_donated(inputs: list[In], donate: Sequence[Variable | str | int] | None) -> list[In]:
    """The inputs, those in ``donate`` (variables, names or positions) with ``mutable``.

    Raises:
        TypeError: ``donate`` is no list, or something in it is no variable, name or position.
        ValueError: an item names no input.
    """
    if donate is None:
        return inputs
    if isinstance(donate, str | Variable | int):
        raise TypeError(f"donate must be a list of inputs, got the single {donate!r}; write [{donate!r}]")
    result = list(inputs)
    for item in donate:
        position = _find_input(inputs, item)
        result[position] = copy.copy(inputs[position])
        result[position].mutable = result[position].borrow = True
    return result


def _find_input(inputs: list[In], wanted: Variable | str | int) -> int:
    if isinstance(wanted, bool) or not isinstance(wanted, Variable | str | int):
        raise TypeError(
            f"donate takes variables, names or positions of inputs, got {wanted!r} of type "
            f"{type(wanted).__name__}"
        )
    for i, item in enumerate(inputs):
        found = item.variable is wanted if isinstance(wanted, Variable) else wanted in (item.name, i)
        if found:
            return i
    names = ", ".join(str(item.name or item.variable) for item in inputs) or "none"
    raise ValueError(f"donate names {wanted!r}, which is not among the inputs: {names}")
