# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Split``: the arguments of a call, taken apart into inputs, which are data, and attributes, which are part
of the key of the executable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from graphc.config import config
from graphc.graph.basic import Variable
from graphc.immediate.tensor import Size, Tensor
from graphc_runtime.marshal import demand_numbers

if TYPE_CHECKING:
    from types import UnionType

    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable

# How Python numbers and sizes are taken.
STATIC = "static"  # numbers are attributes
WEAK = "weak"  # operands of an elementwise operation: data, whose dtype gives way to that of an array
DATA = "data"  # data of the dtype that a constant would have
SIZE = "size"  # integers are data, but for 1, which broadcasts, and for negative ones such as -1
INDEX = "index"  # what stands between brackets

_INPUT = "input"
_NUMBERS = (bool, int, float, complex)


class Weak:
    """A Python number among the inputs, whose dtype follows from the other operands."""

    __slots__ = ("value",)

    def __init__(self, value: float) -> None:
        self.value = value


# What an operation is run on.
Operand: TypeAlias = Tensor | Weak
# What stands where a tensor does.
Given: TypeAlias = "Tensor | TensorLike"


class Split:
    """One call's arguments.

    Attributes:
        inputs: tensors, NumPy arrays and `Weak` numbers, in the order in which they are met.
        key: the structure of the arguments and all attributes, hashable.
        symbolic: there are symbolic variables among the arguments.
        functions: there are functions among them.
    """

    __slots__ = ("_fill", "_given", "functions", "inputs", "key", "symbolic")

    def __init__(self) -> None:
        self.inputs: list[Operand | np.ndarray] = []
        self.key: list[object] = []
        self.symbolic = False
        self.functions = False
        self._fill: Iterator[object] | None = None

    def visit_call(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], policies: Mapping[Any, str], default: str
    ) -> tuple[list[Any], dict[str, Any]]:
        """Go through the arguments of a call.

        Args:
            args, kwargs: the arguments.
            policies: how arguments are taken, by position or name.
            default: how the others are.

        Returns:
            The arguments, with other inputs where this is a split of `refilled`.
        """
        self._given = args, kwargs, policies, default
        new_args = [self.visit(x, policies.get(i, default)) for i, x in enumerate(args)]
        if not kwargs:
            return new_args, {}
        new_kwargs = {}
        for name, x in kwargs.items():
            self.key.append(name)
            new_kwargs[name] = self.visit(x, policies.get(name, default))
        return new_args, new_kwargs

    def refilled(self, values: Sequence[object]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of the call with the inputs replaced by ``values``, in order."""
        other = Split()
        other._fill = iter(values)
        return other.visit_call(*self._given)

    def _take(self, x: Any, mark: Any = _INPUT) -> Any:
        self.key.append(mark)
        if self._fill is not None:
            return next(self._fill)
        self.inputs.append(x)
        return x

    def visit(self, x: Any, policy: str) -> Any:
        """Add one argument; returns it with its inputs replaced."""
        cls = type(x)
        if cls is Tensor:
            return self._take(x)
        if x is None or cls is str or cls is type(Ellipsis):
            self.key.append(x)
            return x
        if cls in _NUMBERS:
            return self._number(x, cls, policy)
        if cls is np.ndarray:
            return self._take(x)
        if isinstance(x, np.generic):
            return self._numpy_number(x, policy)
        if cls is Size:
            return self._numpy_number(np.int64(x), policy)
        if cls in (tuple, list) or isinstance(x, tuple | list):
            return self._sequence(x, cls, policy)
        return self._other(x, cls, policy)

    def _attribute(self, x: TensorLike, identity: object) -> Any:
        self.key.append(identity)
        return x

    def _number(self, x: float, cls: type, policy: str) -> Any:
        if policy == WEAK:
            return self._take(Weak(x), cls)
        if (
            policy == DATA
            or (policy == INDEX and cls is int)
            or (policy == SIZE and cls is int and (x == 0 or x > 1))
        ):
            return self._take(np.asarray(x, config.floatX if cls is float else None))
        # 0.0 and -0.0 are equal, and so are 1 and True.
        return self._attribute(x, (cls, repr(x)))

    def _numpy_number(self, x: Any, policy: str) -> TensorVariable | np.ndarray:
        is_integer = x.dtype.kind in "biu"
        if policy == SIZE and is_integer and (x < 0 or x == 1):
            return self._attribute(int(x), (int, repr(int(x))))
        if policy != STATIC or not is_integer:
            return self._take(np.asarray(x))
        return self._attribute(x, (type(x), repr(x)))

    def _sequence(
        self, x: Any, cls: type, policy: str
    ) -> (
        list[float]
        | list[int]
        | tuple[TensorVariable | int, ...]
        | tuple[TensorVariable, ...]
        | tuple[int | np.ndarray, ...]
        | tuple[int, ...]
        | tuple[np.ndarray, ...]
    ):
        if policy == WEAK:
            if not _holds(x, Tensor | Variable):
                demand_numbers(x)
                return self._take(np.asarray(x))
            policy = STATIC
        elif policy == INDEX and cls is list:
            return self._take(np.asarray(x if x else np.zeros(0, np.int64)))
        # Axes and sizes are the same in a list and in a tuple.
        same = policy == STATIC and all(type(item) is int for item in x)
        self.key.append((tuple if same else cls, len(x)))
        items = [self.visit(item, policy) for item in x]
        if cls is list:
            return items
        return cls(*items) if hasattr(x, "_fields") else tuple(items)

    def _other(self, x: Any, cls: type, policy: str) -> Any:
        if isinstance(x, Tensor):
            return self._take(x)
        if isinstance(x, Variable):
            self.symbolic = True
            return self._attribute(x, x)
        if cls is slice:
            self.key.append(slice)
            step = self.visit(x.step, STATIC)
            return slice(self.visit(x.start, policy), self.visit(x.stop, policy), step)
        if isinstance(x, Mapping):
            self.key.append((cls, tuple(x)))
            return {key: self.visit(value, policy) for key, value in x.items()}
        if isinstance(x, np.ndarray):
            demand_numbers(x)
            return self._take(np.asarray(x))
        if callable(x) and not isinstance(x, type) and not isinstance(x, np.ufunc):
            self.functions = True
            return self._attribute(x, x)
        return self._attribute(x, hashable(x))


def _holds(x: object, cls: type | UnionType) -> bool:
    if isinstance(x, list | tuple):
        return any(_holds(item, cls) for item in x)
    return isinstance(x, cls)


def hashable(x: object) -> tuple[object, ...]:
    """An attribute as part of a key: equal exactly for values that mean the same.

    Raises:
        TypeError: the attribute cannot be hashed.
    """
    if isinstance(x, list | tuple):
        return (type(x), *map(hashable, x))
    if isinstance(x, Mapping):
        return (type(x), *((key, hashable(value)) for key, value in x.items()))
    if isinstance(x, np.ndarray):
        return (np.ndarray, x.dtype.str, x.shape, x.tobytes())
    if isinstance(x, (*_NUMBERS, np.generic)):
        return (type(x), repr(x))
    if isinstance(x, slice):
        return (slice, hashable(x.start), hashable(x.stop), hashable(x.step))
    if isinstance(x, set | frozenset):
        return (type(x), frozenset(map(hashable, x)))
    try:
        hash(x)
    except TypeError:
        raise TypeError(
            f"the attribute {x!r:.80} of type {type(x).__name__} cannot be part of a key: give numbers, "
            "strings, tuples of them, or arrays and tensors as inputs"
        ) from None
    return (type(x), x)
