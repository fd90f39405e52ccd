# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions on their way to workers: pickled once, loaded once by each process that calls them."""

from __future__ import annotations

import hashlib
import pickle
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from graphc_runtime.generators import generator_of
from graphc_runtime.loaded import LoadedFunction

# Functions that a process keeps for further tasks.
_KEPT = 16
_LOADED: OrderedDict[bytes, object] = OrderedDict()
_LOCK = threading.Lock()


class Shared(Protocol):
    """A shared variable of a compiled function, as much of it as is used here."""

    name: str | None

    def get_value(self) -> Any:
        """A copy of its value."""

    def set_value(self, value: object) -> None:
        """Takes a copy of a value."""


class Shipped:
    """A function, as machine code and the values that it keeps.

    Args:
        function: compiled, or of an artifact; or any other callable that pickles.

    Attributes:
        updates: whether calls change values that it keeps.
        donates: whether calls overwrite arguments.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        self._data = pickle.dumps(function, protocol=pickle.HIGHEST_PROTOCOL)
        self._digest = hashlib.sha256(self._data).digest()
        self.name = str(getattr(function, "__name__", None) or getattr(function, "name", None) or "function")
        if isinstance(function, LoadedFunction):
            self.updates, self.donates = bool(function.updates), bool(function.donated)
        else:
            signature = getattr(function, "signature", None)
            self.updates = bool(getattr(signature, "targets", ()))
            self.donates = bool(getattr(signature, "donated", ()))

    def __len__(self) -> int:
        return len(self._data)

    def instance(self) -> Any:
        """A new one, with values of its own; code that the process has is not loaded again."""
        self._shared()
        return pickle.loads(self._data)

    def __call__(self, *args: Any) -> Any:
        function = self._shared()
        return function(*map(_copied, args)) if self.donates else function(*args)

    def require_fixed(self, user: str) -> None:
        """Refuses functions whose results would depend on which calls a worker has made before.

        Raises:
            TypeError: it has updates.
        """
        if self.updates:
            raise TypeError(
                f"{user} takes functions without updates, and {self.name} updates shared variables, of which "
                "workers have copies that would go apart. Make them inputs and outputs, or use sample_chains"
            )

    def _shared(self) -> Any:
        """The one that all tasks of this process call."""
        with _LOCK:
            function = _LOADED.get(self._digest)
            if function is None:
                function = _LOADED[self._digest] = pickle.loads(self._data)
            _LOADED.move_to_end(self._digest)
            while len(_LOADED) > _KEPT:
                _LOADED.popitem(last=False)
            return function


def _copied(value: object) -> Any:
    """Copies of what a function may overwrite; arrays that an engine hands out are those of other tasks,
    too.
    """
    return value.copy() if isinstance(value, np.ndarray) else value


def set_values(function: object, values: Mapping[str, object]) -> None:
    """Sets shared variables, or states of an artifact, by name.

    Raises:
        KeyError: there is none of a name.
    """
    if isinstance(function, LoadedFunction):
        function.state.update(values)
        return
    known = {variable.name: variable for variable in _shared_of(function)}
    for name, value in values.items():
        if name not in known:
            raise KeyError(f"{name!r}; the function has the shared variables {', '.join(map(str, known))}")
        known[name].set_value(value)


def reseed(function: object, seed: np.random.SeedSequence) -> int:
    """Gives each generator that a function keeps a stream of its own.

    Args:
        function: compiled, or of an artifact: both get the same streams.
        seed: what the streams are made from.

    Returns:
        How many generators it has.
    """
    if isinstance(function, LoadedFunction):
        names = function.generators
        for name, child in zip(names, _children(seed, len(names)), strict=True):
            function.state[name] = _restarted(generator_of(function.state[name]), child)
        return len(names)
    found = [(v, v.get_value()) for v in _shared_of(function)]
    found = [(variable, value) for variable, value in found if isinstance(value, np.random.Generator)]
    for (variable, value), child in zip(found, _children(seed, len(found)), strict=True):
        variable.set_value(_restarted(value, child))
    return len(found)


def _shared_of(function: object) -> Sequence[Shared]:
    shared: Sequence[Shared] = function.get_shared() if hasattr(function, "get_shared") else ()
    return shared


def _children(seed: np.random.SeedSequence, count: int) -> list[np.random.SeedSequence]:
    """As `spawn`, without counting: a task that runs again gets the same ones."""
    return [np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, i)) for i in range(count)]


def _restarted(generator: np.random.Generator, seed: np.random.SeedSequence) -> np.random.Generator:
    return np.random.Generator(type(generator.bit_generator)(seed))
