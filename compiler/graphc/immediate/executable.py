# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Executable``: one operation on inputs of given kinds, as a small graph and its machine code.

``ExecutableCache``: the executables of an environment, bounded in number.

``Kind``: what the choice of an executable depends on, as one object that is cheap to compare. ``Owner``: the
environment, as far as its tensors and operations know it.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np

from graphc.array_api.types import DType
from graphc.function.function import function
from graphc.function.io import OutputForm
from graphc.graph.tensor.type import TensorType
from graphc_runtime.worker import renew_in_children

if TYPE_CHECKING:
    from builtins import type as Type

    from graphc.graph.basic import Variable
    from graphc.graph.tensor import DTypeLike
    from graphc.immediate.place import Held, Host, Run
    from graphc.immediate.tensor import Tensor


# Operators of two operands, by the names of their functions. A kind has a table for each.
OPERATORS = (
    "add", "sub", "mul", "true_div", "int_div", "mod", "pow", "matmul", "lt", "le", "gt", "ge", "eq", "neq",
    "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift",
)  # fmt: skip
POSITIONS = {name: position for position, name in enumerate(OPERATORS)}


class Owner(Protocol):
    """The environment of tensors and operations, as far as these know it.

    `graphc.immediate.environment.Environment` is the one there is. It knows all modules of this package, and
    they know it by this interface. Other names are those of its namespace, found when they are used.
    """

    name: str
    lazy: bool
    _cache: ExecutableCache
    _place: Host

    def _kind(self, dtype: str, ndim: int) -> Kind: ...
    def _check_owner(self, x: Tensor) -> None: ...
    def numpy_to_tensor(self, array: Any, copy: bool = True) -> Tensor: ...
    def as_tensor(
        self, x: Any, name: str | None = None, ndim: int | None = None, dtype: DTypeLike | None = None
    ) -> Tensor: ...
    def __getattr__(self, name: str, /) -> Any: ...


class Kind:
    """Environment, dtype and number of dimensions of tensors. There is one object of each kind, so that kinds
    are equal only if they are the same.

    Attributes:
        env: the environment.
        dtype: name of the dtype. dtype_object: what tensors have as ``dtype``. numpy_dtype: NumPy's.
        ndim: number of dimensions.
        tables: for each of `OPERATORS`, the executables by the kind of the other operand, or by the type of a
            Python number in its place.
    """

    __slots__ = ("dtype", "dtype_object", "env", "ndim", "numpy_dtype", "tables")

    def __init__(self, env: Owner, dtype: str, ndim: int) -> None:
        self.env = env
        self.dtype = dtype
        self.dtype_object = DType(dtype)
        self.ndim = ndim
        self.numpy_dtype = np.dtype(dtype)
        self.tables: list[dict[Kind | Type, Executable]] = [{} for _ in OPERATORS]

    def type(self, ones: tuple[bool, ...] | None = None) -> TensorType:
        """The type of a symbolic variable in the place of a tensor.

        Args:
            ones: which dimensions have size 1; by default nothing is known about sizes.
        """
        if ones is None:
            return TensorType(self.dtype, (None,) * self.ndim)
        return TensorType(self.dtype, tuple(1 if one else None for one in ones))

    def __repr__(self) -> str:
        return f"Kind({self.env.name!r}, {self.dtype}, {self.ndim})"


_serials = itertools.count()
Key = TypeVar("Key")


class _Compiling:
    """A lock that lets one thread at a time compile operations, so that each is compiled once."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        renew_in_children(self)


_compiling = _Compiling()


class Executable:
    """An operation whose inputs have known kinds.

    Attributes:
        name: name of the operation.
        inputs, outputs: the graph.
        form: the form in which the operation returns its results.
        kinds: the kinds of the results. kind: that of the first, where there is one.
        weaks: for each input, the dtype of a Python number in its place; None for tensors. weak: that of the
            second input.
        place: where arrays are, and how functions for that are compiled.
        run: takes an array for each input; returns the array of a single result, or a list.
        serial: a number of its own, for keys.
        hits, seen: how often it was used, and the count when the cache last looked.
    """

    __slots__ = (
        "_places", "form", "hits", "inputs", "is_single", "kind", "kinds", "name", "outputs", "place", "run",
        "seen", "serial", "weak", "weaks",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        inputs: Sequence[Variable],
        form: OutputForm,
        kinds: Sequence[Kind],
        *,
        weaks: Sequence[np.dtype | None] = (),
        place: Host,
    ) -> None:
        self.name = name
        self.inputs = list(inputs)
        self.outputs = form.variables
        self.form = form
        self.is_single = form.is_single
        self.kinds = list(kinds)
        if self.kinds:
            self.kind = self.kinds[0]
        self.weaks = list(weaks) or [None] * len(self.inputs)
        self.weak = self.weaks[1] if len(self.weaks) > 1 else None
        self.place = place
        self.run: Callable[..., Any] = self._compile_and_run
        self.serial = next(_serials)
        self.hits = self.seen = 0
        self._places: list[tuple[dict[Any, Executable], object]] = []

    def compile(self) -> Run:
        """The implementation of `run` from then on."""
        # Methods are new objects at each access, but they compare by what they are bound to.
        if self.run == self._compile_and_run:
            with _compiling.lock:
                if self.run == self._compile_and_run:
                    outputs = self.outputs[0] if self.is_single else self.outputs
                    made = function(
                        self.inputs, outputs, mode=self.place.mode, name=self.name, on_unused_input="ignore"
                    )
                    self.run = self.place.finished(made)
        return self.run

    def _compile_and_run(self, *arrays: Held) -> Held | list[Held]:
        return self.compile()(*arrays)

    def results(self, arrays: Sequence[Held]) -> list[Held]:
        """The results as a list."""
        found = self.run(*arrays)
        return [found] if self.is_single else found

    def connect(self, table: dict[Key, Executable], key: Key) -> None:
        """Let calls find this executable in a table, without a look at the cache."""
        table[key] = self
        self._places.append((table, key))

    def forget(self) -> None:
        """Take the executable out of the tables."""
        for table, key in self._places:
            if table.get(key) is self:
                table.pop(key, None)
        self._places.clear()

    def __repr__(self) -> str:
        return f"<executable {self.name}({', '.join(str(v.type) for v in self.inputs)})>"


class CacheInfo(NamedTuple):
    """Statistics of a cache.

    Attributes:
        hits: calls that found their executable.
        misses: calls that did not, so that one was made.
        evictions: executables thrown away to make room.
        size: executables that are kept.
        maxsize: the most that are.
    """

    hits: int
    misses: int
    evictions: int
    size: int
    maxsize: int


class ExecutableCache:
    """Executables by key.

    Which one goes when there are too many: one that was not used for long. Calls that go from an operator
    straight to its executable do not come by here, they are counted only. So the oldest entry whose count is
    still the same as when it was last looked at goes, and others get a second chance (the clock algorithm).

    Args:
        maxsize: the most executables to keep, at least 1.
    """

    def __init__(self, maxsize: int) -> None:
        self.lock = threading.RLock()
        renew_in_children(self)
        self._entries: OrderedDict[object, Executable] = OrderedDict()
        self.resize(maxsize)
        self._past_hits = self._misses = self._evictions = 0

    def resize(self, maxsize: int) -> None:
        """Keep another number of executables from now on.

        Raises:
            ValueError: it is no integer of at least 1.
        """
        if not isinstance(maxsize, int) or maxsize < 1:
            raise ValueError(f"cache_size must be an integer of at least 1, got {maxsize!r}")
        with self.lock:
            self.maxsize = maxsize
            while len(self._entries) > maxsize:
                self._evict(next(reversed(self._entries)))

    def find(self, key: object) -> Executable | None:
        """The executable of a key, which counts as a use."""
        with self.lock:
            found = self._entries.get(key)
            if found is None:
                self._misses += 1
            else:
                found.hits += 1
                found.seen = found.hits
                self._entries.move_to_end(key)
            return found

    def add(self, key: object, executable: Executable) -> Executable:
        """Keep an executable; returns the one that is kept, if another thread was faster."""
        with self.lock:
            kept = self._entries.setdefault(key, executable)
            while len(self._entries) > self.maxsize:
                self._evict(key)
            return kept

    def _evict(self, newest: object) -> None:
        while True:
            key = next(iter(self._entries))
            entry = self._entries[key]
            if key == newest or (entry.hits != entry.seen and len(self._entries) > 1):
                entry.seen = entry.hits
                self._entries.move_to_end(key)
                continue
            del self._entries[key]
            entry.forget()
            self._past_hits += entry.hits
            self._evictions += 1
            return

    def clear(self) -> None:
        """Throw all executables away, and start the statistics anew."""
        with self.lock:
            for entry in self._entries.values():
                entry.forget()
            self._entries.clear()
            self._past_hits = self._misses = self._evictions = 0

    def disconnect(self) -> None:
        """Let every call come by the environment, instead of going straight to its executable."""
        with self.lock:
            for entry in self._entries.values():
                entry.forget()

    def info(self) -> CacheInfo:
        """The statistics."""
        with self.lock:
            hits = self._past_hits + sum(entry.hits for entry in self._entries.values())
            return CacheInfo(hits, self._misses, self._evictions, len(self._entries), self.maxsize)
