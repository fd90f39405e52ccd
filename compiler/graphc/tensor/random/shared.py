# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared generators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.graph.basic import capture
from graphc.graph.tensor.variable import TensorSharedVariable
from graphc.tensor.random.type import DrawMethods, RandomGeneratorType, RandomGeneratorVariable
from graphc_runtime.generators import bit_generator_name, generator_of, set_state, state_of
from graphc_runtime.marshal import on_host

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphc.graph.op import Op

_NOT_GIVEN: Any = object()


class RandomGeneratorSharedVariable(DrawMethods, TensorSharedVariable):
    """A shared generator: users give and take ``numpy.random.Generator``, functions keep its state vector.

    Examples:
        >>> type(pt.random.shared_rng(seed=3)).__name__
        'RandomGeneratorSharedVariable'
    """

    _borrowed: np.random.Generator | None = None

    def get_value(self, borrow: bool = False, return_internal_type: bool = False) -> Any:
        """A generator in the present state, which `graphc.tensor.random.state_of` makes a vector of.

        Args:
            borrow: the same object each time: the one that was given with ``borrow``, if any, which goes on
                from the present state. What it draws then does not change the variable.
            return_internal_type: accepted for compatibility.
        """
        state = on_host(self.container[0])
        if not borrow:
            return generator_of(state)
        if self._borrowed is None:
            self._borrowed = generator_of(state)
        else:
            set_state(self._borrowed, state)
        return self._borrowed

    def set_value(self, new_value: object = None, borrow: bool = False, *, seed: object = _NOT_GIVEN) -> None:
        """Goes on from another state.

        Args:
            new_value: a ``numpy.random.Generator`` of the same kind, which is not changed by draws from here,
                or a state vector.
            borrow: have ``get_value(borrow=True)`` return this object.
            seed: in place of ``new_value``, of a new generator; None asks the system for one.

        Raises:
            TypeError: it is something else. The old value stays.
            ValueError: none or both of ``new_value`` and ``seed`` are given.
        """
        if (new_value is None) == (seed is _NOT_GIVEN):
            raise ValueError("set_value of a shared generator takes a new_value or a seed, and not both")
        if new_value is None:
            kind: Any = getattr(np.random, self.type.bit_generator)
            new_value = np.random.Generator(kind(seed))
        super().set_value(new_value, borrow)
        self._borrowed = new_value if borrow and isinstance(new_value, np.random.Generator) else None

    def zero(self, borrow: bool = False) -> None:
        """A state of zeros is no state.

        Raises:
            TypeError: always.
        """
        raise TypeError(f"the shared generator {self} cannot be zero; set_value takes another generator")


def share_generator(
    value: np.random.Generator,
    name: str | None = None,
    strict: bool = False,
    allow_downcast: bool | None = None,
    borrow: bool = False,
    **kwargs: Any,
) -> RandomGeneratorSharedVariable:
    """The value that ``graphc.shared`` makes of a generator.

    Args:
        value: a ``numpy.random.Generator`` over PCG64 or Philox; its state is copied.
        name: a name for people.
        strict, allow_downcast: accepted for compatibility.
        borrow: have ``get_value(borrow=True)`` return this object.

    Raises:
        TypeError: another bit generator, or an unknown argument.
    """
    if kwargs:
        raise TypeError(f"shared() got unknown arguments {', '.join(kwargs)}")
    type_ = RandomGeneratorType(bit_generator_name(value))
    variable = RandomGeneratorSharedVariable(type_, None, name=name, container=[state_of(value)])
    variable._borrowed = value if borrow else None
    return variable


def shared_rng(
    value: Any = None,
    *,
    seed: int | Sequence[int] | np.random.SeedSequence | None = None,
    name: str | None = None,
    borrow: bool = False,
) -> RandomGeneratorSharedVariable:
    """A shared generator.

    Args:
        value: a ``numpy.random.Generator``; otherwise a new one is made. A number is taken as the seed.
        seed: its seed, as ``numpy.random.default_rng`` takes it.
        name: a name for people.
        borrow: have ``get_value(borrow=True)`` return ``value`` itself.

    Raises:
        TypeError: ``value`` is no generator.
        ValueError: both are given.

    Examples:
        >>> rng = pt.random.shared_rng(seed=3)
        >>> next_rng, draws = rng.normal(size=2)
        >>> draw = graphc.function([], draws, updates={rng: next_rng})
        >>> bool((draw() == np.random.default_rng(3).normal(size=2)).all())
        True
    """
    if value is not None and seed is not None:
        raise ValueError("give a generator or a seed, not both")
    if isinstance(value, int | np.integer | np.random.SeedSequence):
        value, seed = None, value
    variable = share_generator(np.random.default_rng(seed) if value is None else value, name, borrow=borrow)
    variable._location = capture()
    return variable


def drawn(op: Op, rng: Any, inputs: Sequence[Any], name: str | None, return_next_rng: bool) -> Any:
    """A draw of an op, from a new shared generator if none is given; with the generator after it if asked."""
    own = shared_rng() if rng is None else None
    following, draws = op.make_node(rng if own is None else own, *inputs).outputs
    if own is not None:
        own.default_update = following
    draws.name = name
    return (following, draws) if return_next_rng else draws


def rng(name: str | None = None, bit_generator: str = "PCG64") -> RandomGeneratorVariable:
    """A symbolic generator, for an input of a function; calls give it a ``numpy.random.Generator``.

    Args:
        name: a name for people.
        bit_generator: ``"PCG64"`` or ``"Philox"``.

    Examples:
        >>> pt.random.rng("r").type
        RandomGeneratorType(PCG64)
    """
    variable: Any = RandomGeneratorType(bit_generator)(name)
    return variable
