# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``RandomGeneratorType``: states of generators, which are tensors for everything but the user.

Variables of it have the functions that draw as methods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.graph.basic import Variable
from graphc.graph.tensor.type import TensorType
from graphc.graph.tensor.variable import TensorVariable
from graphc_runtime.generators import LENGTHS, bit_generator_name, generator_of, state_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from graphc.graph.tensor import DTypeLike, TensorLike


class DrawMethods:
    """``next_rng, x = rng.normal(0, 1, size=3)``: each function of `graphc.tensor.random` that draws, as a
    method.

    They return the generator after the draws, and the draws. `add_methods` puts them here.
    """


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    def draw(self: Any, *args: npt.ArrayLike, **kwargs: Any) -> tuple[TensorVariable, TensorVariable]:
        return function(*args, rng=self, return_next_rng=True, **kwargs)

    draw.__name__ = function.__name__
    draw.__doc__ = f"``(next_rng, draws)`` of `graphc.tensor.random.{function.__name__}` with this generator."
    return draw


def add_methods(functions: dict[str, Callable[..., Any]]) -> None:
    """Makes functions methods of all generators."""
    for name, function in functions.items():
        setattr(DrawMethods, name, _method(function))


class RandomGeneratorVariable(DrawMethods, TensorVariable):
    """A symbolic generator; its methods draw: ``next_rng, x = rng.normal(size=3)``.

    Examples:
        >>> type(pt.random.rng("r")).__name__
        'RandomGeneratorVariable'
    """


class RandomGeneratorType(TensorType):
    """Vectors of uint64 that are states of a bit generator; NumPy's generators are accepted for them.

    Args:
        bit_generator: ``"PCG64"`` or ``"Philox"``.

    Raises:
        ValueError: another bit generator.

    Examples:
        >>> pt.random.RandomGeneratorType()
        RandomGeneratorType(PCG64)
    """

    variable_type = RandomGeneratorVariable
    # Loops hand on the last state only, whatever they collect of other states.
    is_untraced = True

    def __init__(self, bit_generator: str = "PCG64", name: str | None = None) -> None:
        if bit_generator not in LENGTHS:
            raise ValueError(f"the bit generator must be one of {', '.join(LENGTHS)}, got {bit_generator!r}")
        super().__init__("uint64", (LENGTHS[bit_generator],), name)
        self.bit_generator = bit_generator

    def clone(self, dtype: DTypeLike | None = None, shape: Any = None, **kwargs: Any) -> TensorType:
        """The type itself; with another dtype or shape, a `TensorType`."""
        dtype = self.dtype if dtype is None else dtype
        shape = self.shape if shape is None else tuple(shape)
        if (dtype, shape) == (self.dtype, self.shape):
            return RandomGeneratorType(self.bit_generator, kwargs.get("name", self.name))
        return TensorType(dtype, shape, kwargs.get("name", self.name))

    def filter(self, value: object, strict: bool = False, allow_downcast: bool | None = None) -> np.ndarray:
        """``value`` as a state.

        Args:
            value: a ``numpy.random.Generator``, whose present state is taken, or a state vector.
            strict: accept state vectors only.
            allow_downcast: has no effect.

        Raises:
            TypeError: it is neither, or of another bit generator.
        """
        if not isinstance(value, np.ndarray | Variable) and not strict:
            name = bit_generator_name(value)
            if name != self.bit_generator:
                raise TypeError(f"expected a generator over {self.bit_generator}, got one over {name}")
            return state_of(value)
        return super().filter(value, strict=True)

    @staticmethod
    def values_eq(a: TensorLike, b: TensorLike, force_same_dtype: bool = True) -> bool:
        """True if two generators, or their states, will draw the same numbers."""
        first, second = (x if isinstance(x, np.ndarray) else state_of(x) for x in (a, b))
        return TensorType.values_eq(first, second, force_same_dtype)

    @staticmethod
    def may_share_memory(a: object, b: object) -> bool:
        """True if drawing from one generator may change the other, or if state vectors share memory."""
        if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
            return TensorType.may_share_memory(a, b)
        return getattr(a, "bit_generator", a) is getattr(b, "bit_generator", b)

    def generator(self, state: np.ndarray) -> np.random.Generator:
        """A generator that goes on from a state."""
        return generator_of(state)

    def __getstate__(self) -> tuple[str | None, ...]:
        return (self.bit_generator, self.name)

    def __str__(self) -> str:
        return f"{self.name or 'RandomGeneratorType'}({self.bit_generator})"

    __repr__ = __str__


def as_generator(rng: object) -> TensorVariable:
    """A variable that is a generator, as draws take it.

    Args:
        rng: a variable of a `RandomGeneratorType`, or a tensor with the words of a state.

    Raises:
        TypeError: it is something else.
    """
    if isinstance(rng, TensorVariable) and isinstance(rng.type, RandomGeneratorType):
        return rng
    if isinstance(rng, TensorVariable) and rng.type.dtype == "uint64":
        if rng.type.shape in [(length,) for length in LENGTHS.values()]:
            return rng
    hint = (
        "share it first: graphc.shared(generator)"
        if hasattr(rng, "bit_generator")
        else ("graphc.shared(np.random.default_rng(seed)) makes one")
    )
    shown = "one of NumPy" if hasattr(rng, "bit_generator") else f"{rng!r:.80}"
    given = rng.type if isinstance(rng, Variable) else type(rng).__name__
    raise TypeError(f"rng must be a symbolic or shared generator, got {shown} of type {given}; {hint}")


def generator_type(rng: Variable) -> RandomGeneratorType:
    """The type of generators that a variable stands for."""
    if isinstance(rng.type, RandomGeneratorType):
        return rng.type
    name = next(name for name, length in LENGTHS.items() if rng.type.shape == (length,))
    return RandomGeneratorType(name)


# The type of `numpy.random.default_rng`, under PyTensor's name.
random_generator_type = RandomGeneratorType()
