# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random draws in an environment: ``env.random``.

The functions are those of ``graphc.tensor.random``, and a seed gives the same numbers. `Generator` takes the
place of a shared generator: ``rng = env.random.default_rng(1)``, then ``rng, x = rng.normal(size=3)``. Draws
without a generator come from a stream of the environment.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

import graphc.tensor as pt
from graphc.immediate.namespace import NAMESPACES, Namespace
from graphc.immediate.operation import OpWrapper
from graphc.immediate.tensor import Tensor
from graphc.tensor.random import generator_of, state_of
from graphc.tensor.random.stream import RandomStream

if TYPE_CHECKING:
    from graphc.graph.basic import Variable
    from graphc.graph.tensor.variable import TensorVariable
    from graphc.immediate.environment import Environment

    # What NumPy makes seed sequences of, and generators.
    Entropy = int | Sequence[int] | np.ndarray | None
    Seed = Entropy | np.random.SeedSequence | np.random.BitGenerator


class Generator:
    """A generator of random numbers: a state, which draws do not change.

    ``next_rng, draws = rng.normal(0, 1, size=3)``, and so on for each function of `graphc.tensor.random` that
    draws, gives the generator after the draws.

    Attributes:
        env: the environment.
        state: the words of the state, a uint64 vector.
    """

    def __init__(self, env: Environment, state: Tensor) -> None:
        self.env = env
        self.state = state

    @classmethod
    def of(cls, env: Environment, value: Seed | np.random.Generator) -> Generator:
        """A generator in the present state of a ``numpy.random.Generator``, or with a seed."""
        generator = value if isinstance(value, np.random.Generator) else np.random.default_rng(value)
        return cls(env, env.numpy_to_tensor(state_of(generator)))

    def get_value(
        self, borrow: bool = False, return_internal_type: bool = False
    ) -> np.random.Generator | np.ndarray:
        """A ``numpy.random.Generator`` in this state, or the words of the state."""
        words = self.state.eval()
        return words if return_internal_type else generator_of(words)

    def set_value(self, new_value: Seed | np.random.Generator, borrow: bool = False) -> None:
        """Go on from the state of another generator."""
        self.state = Generator.of(self.env, new_value).state

    def __getattr__(self, name: str) -> Callable[..., tuple[Generator, Tensor]]:
        if name.startswith("_") or name not in pt.random.DRAWS:
            raise AttributeError(f"there is no distribution {name!r}")
        draw = getattr(self.env.random, name)
        return lambda *args, **kwargs: draw(*args, rng=self, return_next_rng=True, **kwargs)

    def __repr__(self) -> str:
        return f"<generator of {self.env!r}>"


class Stream(RandomStream):
    """A `graphc.tensor.random.RandomStream` that draws at once: the k-th draw has the k-th child of the
    seed.
    """

    def __init__(self, env: Environment, seed: Entropy = None, **kwargs: Any) -> None:
        super().__init__(seed, env.random, **kwargs)
        self._env = env

    def seed(self, seed: Entropy = None) -> None:
        """Start again from a seed; the one of the constructor by default."""
        self.gen_seedgen = np.random.SeedSequence(self.default_instance_seed if seed is None else seed)

    def gen(self, op: Callable[..., Tensor], *args: object, **kwargs: Any) -> Tensor:
        """Draw with a generator of its own; arguments as in `graphc.tensor.random.RandomStream.gen`."""
        if "rng" in kwargs:
            raise ValueError("a RandomStream makes its generators itself: leave rng out")
        (child,) = self.gen_seedgen.spawn(1)
        return op(*args, rng=Generator.of(self._env, self.rng_ctor(child)), **kwargs)


class Draw(OpWrapper):
    """A function that draws, in an environment."""

    def __init__(self, env: Environment, name: str, function: Callable[..., Any]) -> None:
        super().__init__(env, name, function)
        self._signature = inspect.signature(function)
        self._draws: dict[int, OpWrapper] = {}

    def _of_length(self, length: int) -> OpWrapper:
        """The function for generators whose states have so many words."""
        found = self._draws.get(length)
        if found is None:
            function = self.function

            def draw(state: TensorVariable, *args: object, **kwargs: object) -> list[Variable]:
                # The words of a state stand for a generator if their number is known.
                rng = pt.specify_shape(state, (length,))
                return function(*args, rng=rng, return_next_rng=True, **kwargs)

            found = self._draws[length] = OpWrapper(self.env, f"{self.name}[{length}]", draw)
        return found

    def __call__(
        self, *args: Any, rng: Any = None, return_next_rng: bool = False, **kwargs: Any
    ) -> Tensor | tuple[Generator, Tensor]:
        """The draws; with ``return_next_rng`` the generator after them, too."""
        if rng is None:
            rng = self.env._stream_generator()
        if not isinstance(rng, Generator):
            if isinstance(rng, np.random.Generator):
                raise TypeError(
                    "a NumPy generator would change with each draw; make a generator of the environment of "
                    "it: rng = env.random.default_rng(generator)"
                )
            return self.function(*args, rng=rng, return_next_rng=return_next_rng, **kwargs)
        self.env._check_owner(rng.state)
        bound = self._signature.bind(*args, **kwargs).arguments
        options = bound.pop("options", {})
        arguments = {
            # Floats are data, so that other parameters do not need other code.
            name: np.asarray(x) if type(x) is float and name != "size" else x
            for name, x in {**bound, **options}.items()
        }
        wrapper = self._of_length(int(rng.state.shape[0]))
        following, draws = wrapper(rng.state, **arguments)
        return (Generator(self.env, following), draws) if return_next_rng else draws


class RandomNamespace(Namespace):
    """``graphc.tensor.random`` in an environment."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._module.DRAWS:
            return super().__getattr__(name)
        value = Draw(self._env, f"random.{name}", self._module.DRAWS[name])
        setattr(self, name, value)
        return value

    def shared_rng(
        self, value: Seed | np.random.Generator = None, *, seed: Seed = None, name: str | None = None
    ) -> Generator:
        """A generator, from a ``numpy.random.Generator`` or a seed."""
        if value is not None and seed is not None:
            raise ValueError("give a generator or a seed, not both")
        return Generator.of(self._env, seed if value is None else value)

    default_rng = shared_rng

    def RandomStream(self, seed: Entropy = None, **kwargs: Any) -> Stream:
        """A stream of draws from one seed."""
        return Stream(self._env, seed, **kwargs)

    def rng(self, name: str | None = None, bit_generator: str = "PCG64") -> NoReturn:
        """Symbolic generators do not exist in immediate mode."""
        raise TypeError(
            "rng() makes a symbolic generator, but in an immediate environment everything has a value: make "
            "one with random.default_rng(seed)"
        )


NAMESPACES[pt.random.__name__] = RandomNamespace
