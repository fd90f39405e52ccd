# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``RandomStream``: draws that differ in each call of a function, from one seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from graphc.tensor.random.shared import shared_rng

if TYPE_CHECKING:
    from graphc.graph.tensor import AnyFunction, TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc.tensor.random.shared import RandomGeneratorSharedVariable
    from graphc.tensor.random.type import RandomGeneratorVariable


class RandomStream:
    """Makes draws with a shared generator each, which every call of a function that uses the draws updates.

    ``stream.normal(0, 1, size=3)`` and so on are the functions of `graphc.tensor.random`. The k-th draw is
    made from the k-th child of the seed, so that the numbers of one do not depend on how many the others
    draw.

    Args:
        seed: as ``numpy.random.SeedSequence`` takes it; None asks the system.
        namespace: where the functions are; `graphc.tensor.random` by default.
        rng_ctor: makes a generator of a seed; ``lambda seed: np.random.Generator(np.random.Philox(seed))``,
        for
            example.

    Attributes:
        state_updates: pairs of a shared generator and its state after the draws, which is its default
        update.

    Source: PyTensor's ``RandomStream``, whose numbers these are.

    Examples:
        >>> pt.random.RandomStream(3).uniform(size=2).round(3).eval()
        array([0.541, 0.379])
    """

    # Those of the package, which says so when it loads.
    functions: ClassVar[Mapping[str, AnyFunction]] = {}

    def __init__(
        self,
        seed: Any = None,
        namespace: ModuleType | None = None,
        rng_ctor: Callable[[Any], np.random.Generator] = np.random.default_rng,
    ) -> None:
        self.default_instance_seed = seed
        self.rng_ctor = rng_ctor
        self.state_updates: list[tuple[RandomGeneratorSharedVariable, RandomGeneratorVariable]] = []
        self.gen_seedgen = np.random.SeedSequence(seed)
        self._namespace = namespace

    def updates(self) -> list[tuple[Any, Any]]:
        """A copy of ``state_updates``."""
        return list(self.state_updates)

    def seed(self, seed: Any = None) -> None:
        """Starts all generators again from a seed; the one of the constructor by default."""
        self.gen_seedgen = np.random.SeedSequence(self.default_instance_seed if seed is None else seed)
        children = self.gen_seedgen.spawn(len(self.state_updates))
        for (shared, _), child in zip(self.state_updates, children, strict=True):
            shared.set_value(self.rng_ctor(child))

    def gen(self, op: AnyFunction, *args: TensorLike, **kwargs: Any) -> Any:
        """Draws with a generator of its own.

        Args:
            op: a function of `graphc.tensor.random`, or a `RandomVariable`.
            args, kwargs: its arguments but for ``rng``.

        Raises:
            ValueError: ``rng`` is among them.
        """
        shared = shared_rng(self._new_generator(kwargs))
        wants_both = kwargs.pop("return_next_rng", False)
        following, draws = op(*args, **kwargs, rng=shared, return_next_rng=True)
        self.state_updates.append((shared, following))
        shared.default_update = following
        return (following, draws) if wants_both else draws

    def _new_generator(self, options: Mapping[str, object]) -> np.random.Generator:
        """The generator of the next draw, which has these options."""
        if "rng" in options:
            raise ValueError("a RandomStream makes its generators itself: leave rng out")
        (child,) = self.gen_seedgen.spawn(1)
        return self.rng_ctor(child)

    def __getattr__(self, name: str) -> Callable[..., TensorVariable]:
        namespace = self.__dict__.get("_namespace")
        found = self.functions.get(name) if namespace is None else getattr(namespace, name, None)
        function = None if name.startswith("_") else found
        if not callable(function):
            raise AttributeError(f"there is no distribution {name!r}")

        def draw(*args: Any, **kwargs: Any) -> TensorVariable:
            return self.gen(function, *args, **kwargs)

        draw.__name__, draw.__doc__ = name, function.__doc__
        return draw
