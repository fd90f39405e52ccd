# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Type``: which values a variable may take, and how to convert to them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

from graphc.graph.basic import Constant, Variable, capture

if TYPE_CHECKING:
    import numpy as np


Transfer = Callable[[Variable, str], "Variable | None"]
_transfers: list[Transfer] = []
_BUILT_IN = ("cpu", "cuda")


class Type:
    """Base of all types. A subclass must define `filter`; everything else has a default built on it.

    A type compares by its class and attributes unless it defines ``__eq__`` and ``__hash__`` (or
    ``__props__``, a tuple of the names of the attributes that identify it).

    Examples:
        >>> pt.vector("x").type == pt.vector("y").type
        True
    """

    variable_type: type[Variable] = Variable
    constant_type: type[Constant] = Constant
    # Whether machine code cannot read the values, but what operations make of them, which have no effects: a
    # loop then has them done once, before it.
    is_taken_apart: bool = False
    __props__: tuple[str, ...] | None = None

    if TYPE_CHECKING:
        # What some types say besides: of tensors, sparse matrices, generators, undefined derivatives.
        dtype: str
        numpy_dtype: np.dtype
        kind: str
        ndim: int
        shape: Any
        format: str
        bit_generator: str
        why_null: str

        @property
        def broadcastable(self) -> tuple[bool, ...]: ...

    # Values ------------------------------------------------------------------------------------------------

    def filter(self, value: object, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """Return ``value``, or a conversion of it, as a value of this type.

        Args:
            value: any Python object that is not a Variable.
            strict: accept only values that need no conversion.
            allow_downcast: True allows conversions that lose information, False forbids them, None forbids
                them except for Python floats where the type says so.

        Raises:
            TypeError: the value is no value of this type and must not or cannot be converted.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define filter(value, strict=False, allow_downcast=None)"
        )

    def filter_output(self, value: object) -> Any:
        """``value``, which an op has computed, as this type promises it."""
        return self.filter(value)

    def exact(self) -> tuple[np.dtype | None, int]:
        """The dtype object and the rank that say all about arrays of this type; (None, -1) if they do not."""
        return None, -1

    def filter_inplace(
        self, value: object, storage: object, strict: bool = False, allow_downcast: bool | None = None
    ) -> Any:
        """As `filter`, reusing the object ``storage`` where the type knows how to."""
        return self.filter(value, strict=strict, allow_downcast=allow_downcast)

    def is_valid_value(self, value: np.ndarray, strict: bool = True) -> bool:
        """True if `filter` accepts ``value``."""
        try:
            self.filter(value, strict=strict)
        except (TypeError, ValueError):
            return False
        return True

    def values_eq(self, a: Any, b: Any) -> bool:
        """True if two values of this type are equal."""
        return bool(a == b)

    def values_eq_approx(self, a: Any, b: Any) -> bool:
        """True if two values of this type are equal up to rounding, where the type knows what that is."""
        return self.values_eq(a, b)

    @staticmethod
    def may_share_memory(a: object, b: object) -> bool:
        """True if writing to one value could change the other."""
        return a is b

    @staticmethod
    def read_only(value: np.ndarray) -> np.ndarray:
        """``value`` as what it shares its memory with, but cannot be written through; by default itself."""
        return value

    def get_shape_info(self, obj: object) -> Any:
        """Facts that `get_size` needs about a value, for memory profiles."""
        return None

    def get_size(self, shape_info: Any) -> int:
        """Number of bytes of a value described by `get_shape_info`; 0 when the type does not say."""
        return 0

    # Relations ---------------------------------------------------------------------------------------------

    def in_same_class(self, otype: Type) -> bool:
        """True if ``otype`` is of the same kind, so that one op implementation fits both."""
        return self == otype

    def is_super(self, otype: Type) -> bool | None:
        """True if every value of ``otype`` is a value of this type; None if the types do not say."""
        return self.in_same_class(otype) or None

    def clone(self, *args: Any, **kwargs: Any) -> Type:
        """A copy; with arguments, a type of the same class built from them."""
        return type(self)(*args, **kwargs) if args or kwargs else copy.copy(self)

    def _identity(self) -> tuple[Hashable, ...]:
        if self.__props__ is not None:
            return tuple(getattr(self, prop) for prop in self.__props__)
        return tuple(sorted((key, value) for key, value in self.__dict__.items() if not key.startswith("_")))

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and self._identity() == other._identity())

    def __hash__(self) -> int:
        return hash((type(self), self._identity()))

    # Variables ---------------------------------------------------------------------------------------------

    def filter_variable(self, other: object, allow_convert: bool = True) -> Variable:
        """Return a variable of this type, or of a narrower one, that stands for ``other``.

        Args:
            other: a variable, or a value that becomes a constant.
            allow_convert: also try `convert_variable`.

        Raises:
            TypeError: ``other`` cannot be seen as this type.
        """
        if not isinstance(other, Variable):
            return self.make_constant(other)
        if self == other.type or self.is_super(other.type):
            return other
        converted = self.convert_variable(other) if allow_convert else None
        if converted is None:
            raise TypeError(
                f"cannot use {other} of type {other.type} where {self} is expected; convert it first"
            )
        return converted

    def convert_variable(self, var: Variable) -> Variable | None:
        """``var`` as a variable of this type, or None when no conversion is known."""
        return var if self.is_super(var.type) else None

    def make_variable(self, name: str | None = None) -> Variable:
        """A new root variable of this type."""
        return self.variable_type(self, None, name=name)

    def make_constant(self, value: object, name: str | None = None) -> Constant:
        """A constant of this type; ``value`` passes through `filter`."""
        constant = self.constant_type(self, value, name=name)
        constant._location = capture()
        return constant

    def __call__(self, name: str | None = None) -> Variable:
        """A new root variable of this type that knows the user's line."""
        variable = self.make_variable(name)
        variable._location = capture()
        return variable

    def __str__(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        return str(self)


def register_transfer(fn: Transfer) -> None:
    """Register a way to move variables to another target.

    Args:
        fn: called with a variable and the target's name; returns the transferred variable, or None when it
            does not know the target. Functions registered later are asked first.

    Examples:
        >>> moved = lambda x, where: x + 0 if where == "nowhere" else None
        >>> pt.register_transfer(moved)
        >>> pt.transfer(pt.constant([1, 2]), "nowhere").eval()
        array([1, 2])
    """
    if not callable(fn):
        raise TypeError(
            f"register_transfer needs a callable (variable, target) -> variable or None, got {fn!r}"
        )
    _transfers.insert(0, fn)


def transfer(variable: Variable, target: str) -> Variable:
    """``variable`` on ``target``: ``"cpu"``, ``"cuda"``, or what `register_transfer` has added.

    Symbolic variables are on no device yet: the mode that compiles a graph decides what runs where, so that
    these two give the variable itself, and a graph of mode ``"cuda"`` has no more copies than it needs.
    Tensors of an immediate environment move.

    Raises:
        ValueError: no registered transfer knows the target.

    Examples:
        >>> pt.transfer(pt.constant([1, 2]), "cpu").eval()
        array([1, 2])
    """
    for fn in _transfers:
        result = fn(variable, target)
        if result is not None:
            return result
    if target in _BUILT_IN:
        return variable
    raise ValueError(f"no registered transfer knows the target {target!r}; add one with register_transfer")


def as_type(given: Type | Variable | Callable[[], Variable]) -> Type:
    """A type from itself, from a variable of it, or from a function that makes such variables.

    Raises:
        TypeError: ``given`` is none of these.
    """
    made = given() if callable(given) and not isinstance(given, Type | type) else given
    found = made.type if isinstance(made, Variable) else made
    if not isinstance(found, Type):
        raise TypeError(f"expected a type, such as graphc.tensor.dvector, got {given!r}")
    return found
