# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Environment``: a namespace like ``graphc.tensor`` whose functions run at once.

The functions are those of ``graphc.tensor.random``, and a seed gives the same numbers. `Generator` takes the
place of a shared generator: ``rng = env.random.default_rng(1)``, then ``rng, x = rng.normal(size=3)``. Draws
without a generator come from a stream of the environment.
"""

from __future__ import annotations

import functools
import gc
import inspect
import itertools
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

import graphc.tensor
import graphc.tensor as pt
from graphc.errors import AsTensorError
from graphc.graph.basic import Variable
from graphc.graph.tensor.convert import constant
from graphc.graph.tensor.variable import TensorOperators
from graphc.immediate.aliasing import Event, EventLog, wrapper_of
from graphc.immediate.arguments import STATIC, Given, Operand, Split, Weak
from graphc.immediate.executable import POSITIONS, CacheInfo, Executable, ExecutableCache, Key, Kind, Owner
from graphc.immediate.indexing import Indexing
from graphc.immediate.lazy import Queue
from graphc.immediate.namespace import NAMESPACES, ArrayApi, Namespace, mirrored, names_of
from graphc.immediate.operation import Operation, OpFactory, OpWrapper, lift
from graphc.immediate.place import PLACES, Held
from graphc.immediate.record import RecordedGraph, Recorders, Recording, Tensors
from graphc.immediate.tape import Tape
from graphc.immediate.tensor import Tensor, as_held, entered, make_tensor, refuse_mixing, shared_by
from graphc.immediate.tensor import current as _current
from graphc.tensor.random import generator_of, state_of
from graphc.tensor.random.stream import RandomStream
from graphc_runtime.cuda.array import DeviceArray
from graphc_runtime.marshal import demand_numbers
from graphc_runtime.symbols import kind_letter

if TYPE_CHECKING:
    from graphc.graph.tensor import DTypeLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc.immediate.typed import Typed

    # What NumPy makes seed sequences of, and generators.
    Entropy = int | Sequence[int] | np.ndarray | None
    Seed = Entropy | np.random.SeedSequence | np.random.BitGenerator
else:
    Typed = object


class Generator:
    """A generator of random numbers: a state, which draws do not change.

    ``next_rng, draws = rng.normal(0, 1, size=3)``, and so on for each function of `graphc.tensor.random` that
    draws, gives the generator after the draws.

    Attributes:
        env: the environment.
        state: the words of the state, a uint64 vector.
    """

    def __init__(self, env: Owner, state: Tensor) -> None:
        self.env = env
        self.state = state

    @classmethod
    def of(cls, env: Owner, value: Seed | np.random.Generator) -> Generator:
        """A generator in the present state of a ``numpy.random.Generator``, or with a seed."""
        generator = value if isinstance(value, np.random.Generator) else np.random.default_rng(value)
        return cls(env, env.numpy_to_tensor(state_of(generator)))

    def get_value(self, borrow: bool = False, return_internal_type: bool = False) -> np.random.Generator:
        """A ``numpy.random.Generator`` in this state, whatever the options."""
        return generator_of(self.state.eval())

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

    def __init__(self, env: Owner, seed: Entropy = None, **kwargs: Any) -> None:
        super().__init__(seed, env.random, **kwargs)
        self._env = env

    def seed(self, seed: Entropy = None) -> None:
        """Start again from a seed; the one of the constructor by default."""
        self.gen_seedgen = np.random.SeedSequence(self.default_instance_seed if seed is None else seed)

    def gen(self, op: Callable[..., Tensor], *args: object, **kwargs: Any) -> Tensor:
        """Draw with a generator of its own; arguments as in `graphc.tensor.random.RandomStream.gen`."""
        return op(*args, rng=Generator.of(self._env, self._new_generator(kwargs)), **kwargs)


class Draw(OpWrapper):
    """A function that draws, in an environment."""

    def __init__(self, env: Owner, name: str, function: Callable[..., Any]) -> None:
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

    def __getattr__(self, name: str) -> Callable[..., Tensor]:
        if name.startswith("_") or name not in self._module.DRAWS:
            return super().__getattr__(name)
        value: Any = Draw(self._env, f"random.{name}", self._module.DRAWS[name])
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


_numbers = itertools.count(1)


def _is_native_number(dtype: np.dtype) -> bool:
    return dtype.isnative and kind_letter(dtype) in "biufc"


class Environment(Indexing, Typed):
    """Everything public in ``graphc.tensor`` and its submodules, as functions of values.

    ``gt = graphc.immediate.Environment()`` takes the place of ``import graphc.tensor as gt``. Functions
    compile themselves when they are first called with inputs of some dtypes and numbers of dimensions; sizes
    do not matter. Loops and choices (``scan``, ``map``, ``ifelse``, ...) are among the names, too.

    Args:
        target: where operations run and values are: ``"cpu"``, or ``"cuda"``, where values move when they
            are first used, and stay until they are read.
        lazy: queue operations, and run them fused when a value is needed.
        full_tracing: keep a list of what runs, with times; see `trace`.
        cache_size: the most executables that are kept.
        queue_size: the most operations that are queued.
        record: record everything that runs; see `graph`.
        mode: how functions are compiled; ``config.mode`` by default.
        seed: of the draws of ``env.random`` that are given no generator.
        name: a name for messages.

    ``lazy``, ``full_tracing``, ``cache_size``, ``queue_size``, ``mode`` and ``name`` can be set later
    and hold from then on. Other names cannot be set.

    Examples:
        >>> env = graphc.immediate.Environment()
        >>> float(env.exp(env.as_tensor([0.0, 0.0])).sum())
        2.0
        >>> env.lazy = True
        >>> float(env.exp(env.as_tensor([0.0, 0.0])).sum())
        2.0
    """

    random: RandomNamespace

    def __init__(
        self,
        target: str = "cpu",
        *,
        lazy: bool = False,
        full_tracing: bool = False,
        cache_size: int = 1024,
        queue_size: int = 256,
        record: bool = False,
        mode: str | None = None,
        seed: int | Sequence[int] | None = None,
        name: str | None = None,
    ) -> None:
        target = target or "cpu"  # as Theano's device ""
        if target not in PLACES:
            raise ValueError(f"there is no target {target!r}; the targets are {', '.join(PLACES)}")
        self._place = PLACES[target](mode)
        given = {"target": target, "lazy": lazy, "mode": self._place.mode}
        self.__dict__.update(given, name=name or f"env{next(_numbers)}")
        self._cache = ExecutableCache(cache_size)
        self._factory = OpFactory(self)
        self._kinds: dict[tuple[str, int], Kind] = {}
        self._methods: dict[str, OpWrapper] = {}
        self._seeds = np.random.SeedSequence(seed)
        self._queue = Queue(self, queue_size)
        self._log = EventLog() if full_tracing else None
        self._recorders = Recorders(self._cache)
        if record:
            self._recorders.start_for_all(Recording(self))

    # Options -----------------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: object) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
            return
        change = _CHANGES.get(name)
        if change is None:
            raise AttributeError(
                f"{name!r} of {self!r} cannot be set; the options that can be changed are "
                f"{', '.join(_CHANGES)}, the others are given when an environment is made"
            )
        with self._cache.lock:
            # What is queued was called under the options that hold now; calls that go straight to their
            # executables do not ask for any.
            self._queue.flush()
            self._cache.disconnect()
            change(self, value)

    @property
    def full_tracing(self) -> bool:
        """True if a list of what runs is kept; see `trace`."""
        return self._log is not None

    @property
    def cache_size(self) -> int:
        """The most executables that are kept."""
        return self._cache.maxsize

    @property
    def queue_size(self) -> int:
        """The most operations that are queued."""
        return self._queue.limit

    def _compile_in(self, mode: str | None) -> None:
        place = PLACES[self.target](mode)
        self._cache.clear()
        self._place = place
        self.__dict__["mode"] = place.mode

    # Names -------------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Callable[..., Tensor]:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        value = mirrored(self, graphc.tensor, name)
        self.__dict__[name] = value
        return value

    def random_uniform(
        self,
        shape: Sequence[int],
        minval: Given = 0.0,
        maxval: Given = 1.0,
        dtype: DTypeLike | None = None,
        seed: int | Sequence[int] | None = None,
        name: str | None = None,
    ) -> Tensor:
        """Draws from [minval, maxval): ``env.random.uniform`` by TensorFlow's name, and with a seed.

        Args:
            shape: of the result.
            minval, maxval: the interval.
            dtype: of the result; ``config.floatX`` by default.
            seed: of a generator for this call; by default the environment's draws go on.
            name: of the result.
        """
        return self._drawn("uniform", (minval, maxval), shape, dtype, seed, name)

    def random_normal(
        self,
        shape: Sequence[int],
        mean: Given = 0.0,
        stddev: Given = 1.0,
        dtype: DTypeLike | None = None,
        seed: int | Sequence[int] | None = None,
        name: str | None = None,
    ) -> Tensor:
        """Normal draws by TensorFlow's name; see `random_uniform`."""
        return self._drawn("normal", (mean, stddev), shape, dtype, seed, name)

    def _drawn(
        self,
        distribution: str,
        parameters: tuple[Given, Given],
        shape: Sequence[int],
        dtype: DTypeLike | None,
        seed: int | Sequence[int] | None,
        name: str | None,
    ) -> Tensor:
        rng = None if seed is None else self.random.default_rng(seed)
        options = {} if dtype is None else {"dtype": np.dtype(dtype).name}
        result: Tensor = getattr(self.random, distribution)(*parameters, size=shape, rng=rng, **options)
        result.name = name
        return result

    @functools.cached_property
    def array_api(self) -> ArrayApi:
        """The functions of the Python array API standard, version 2024.12, on tensors of this environment."""
        return ArrayApi(self)

    @property
    def op_factory(self) -> OpFactory:
        """The factory that finds or makes the executables of this environment; a call runs a
        function by its name.
        """
        return self._factory

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *names_of(graphc.tensor), "scan", "map", "ifelse", "nn"})

    def _find(self, name: str) -> OpWrapper | None:
        """The function of a name with dots; None where there is none."""
        found: Any = self
        try:
            for part in name.split("."):
                found = getattr(found, part)
        except AttributeError:
            return None
        return found if callable(found) else None

    def _method(self, name: str) -> OpWrapper:
        """A method of tensors as a function, the tensor first."""
        found = self._methods.get(name)
        if found is None:
            value = vars(TensorOperators)[name]
            function: Any = value.fget if isinstance(value, property) else value
            mirror = None if name.startswith("__") else self._find(name)
            same = getattr(function, "__code__", None) is _METHOD_CODE
            found = mirror if mirror is not None and same else wrapper_of(self, f"Tensor.{name}", function)
            self._methods[name] = found
        return found

    # Values ------------------------------------------------------------------------------------------------

    def numpy_to_tensor(self, array: Given | DeviceArray, copy: bool = True) -> Tensor:
        """A tensor of a NumPy array.

        Args:
            array: array-like of a supported dtype; a Python float becomes ``config.floatX``. An array of the
                device is taken as it is.
            copy: without it the tensor shares the array's memory, which then must not change.

        Raises:
            AsTensorError: no array of numbers.
        """
        if isinstance(array, DeviceArray):
            return make_tensor(array, self._kind(array.dtype.name, array.ndim))
        if not copy and type(array) is np.ndarray and _is_native_number(array.dtype):
            if array.dtype.itemsize <= (16 if array.dtype.kind == "c" else 8):
                return make_tensor(array, self._kind(array.dtype.name, array.ndim))
        data = constant(array).data
        return make_tensor(data, self._kind(data.dtype.name, data.ndim))

    def as_tensor(
        self, x: Given, name: str | None = None, ndim: int | None = None, dtype: DTypeLike | None = None
    ) -> Tensor:
        """``x`` as a tensor; arguments as in ``graphc.tensor.as_tensor``."""
        if type(x) is Tensor and ndim is None and dtype is None:
            self._check_owner(x)
            return x
        split = Split()
        split.visit(x, STATIC)
        if split.symbolic or any(type(each) is Tensor for each in split.inputs):
            result = self._as_tensor_wrapper(x, None, ndim, dtype)
        else:
            data = constant(x, None, ndim, dtype).data
            result = make_tensor(data, self._kind(data.dtype.name, data.ndim))
        if name is not None:
            result.name = name
        return result

    as_tensor_variable = as_tensor

    @property
    def _as_tensor_wrapper(self) -> OpWrapper:
        found = self._methods.get("as_tensor")
        if found is None:
            found = self._methods["as_tensor"] = OpWrapper(self, "as_tensor", graphc.tensor.as_tensor)
        return found

    def constant(
        self, x: Given, name: str | None = None, ndim: int | None = None, dtype: DTypeLike | None = None
    ) -> Tensor:
        """``x`` as a tensor; arguments as in ``graphc.tensor.constant``."""
        return self.as_tensor(x.eval() if isinstance(x, Tensor) else x, name, ndim, dtype)

    def shared(self, value: Given, name: str | None = None, borrow: bool = False, **kwargs: object) -> Tensor:
        """A tensor with ``get_value`` and ``set_value``, in the place of a shared variable."""
        result = self.numpy_to_tensor(value, copy=not borrow)
        result.name = name
        return result

    def from_dlpack(self, x: Any) -> Tensor:
        """A tensor that shares the memory of an array of another library, which must not change."""
        demand_numbers(x)
        return self.numpy_to_tensor(np.from_dlpack(x), copy=False)

    def get_underlying_scalar_constant_value(self, x: Given) -> np.ndarray:
        """The value of a scalar; every tensor has one."""
        if isinstance(x, Tensor) and x.size == 1:
            return x.__array__().reshape(())
        return graphc.tensor.get_underlying_scalar_constant_value(x)

    def _kind(self, dtype: str, ndim: int) -> Kind:
        found = self._kinds.get((dtype, ndim))
        if found is None:
            found = self._kinds.setdefault((dtype, ndim), Kind(self, dtype, ndim))
        return found

    def _as_operand(self, x: Given) -> Tensor:
        if type(x) is not Tensor:
            return self.numpy_to_tensor(x, copy=self.lazy)
        if x._kind.env is not self:
            self._check_owner(x)
        return x

    def _check_owner(self, x: Tensor) -> None:
        if x._kind.env is not self:
            refuse_mixing(self, x._kind.env, x)

    def _lift(self, x: Tensor) -> Variable:
        return lift(x)

    def _ones(self, operands: Sequence[Operand]) -> list[tuple[bool, ...] | None]:
        """For each operand, which dimensions are known to have size 1; None for Python numbers."""
        return [None if isinstance(x, Weak) else self._queue.ones(x) for x in operands]

    def _stream_generator(self) -> Generator:
        """The generator of a draw that is given none: each has another child of the seed."""
        with self._cache.lock:
            (child,) = self._seeds.spawn(1)
        return Generator.of(self, np.random.default_rng(child))

    # Running -----------------------------------------------------------------------------------------------

    def _run(self, executable: Executable, operands: Sequence[Operand]) -> Any:
        """Run an executable on tensors and Python numbers."""
        if self.lazy:
            tensors = self._queue.add(executable, operands)
        else:
            arrays = [
                self._place.number(np.asarray(x.value, dtype))
                if isinstance(x, Weak)
                else self._place.operand(x)
                for x, dtype in zip(operands, executable.weaks, strict=True)
            ]
            results = self._timed(executable, arrays)
            tensors = [make_tensor(as_held(r), k) for r, k in zip(results, executable.kinds, strict=True)]
        if self._recorders.count:
            self._recorders.add(executable, operands, tensors)
        return executable.form.build(tensors)

    def _timed(self, executable: Executable, arrays: list[Held], count: int = 1) -> list[Held]:
        """The results of an executable, noted in the log."""
        if self._log is None:
            return executable.results(arrays)
        executable.compile()
        start = time.perf_counter()
        results = executable.results(arrays)
        seconds = time.perf_counter() - start
        inputs = tuple(f"{a.dtype.name}{list(a.shape)}" for a in arrays)
        self._log.append(Event(executable.name, inputs, seconds, sum(r.nbytes for r in results), count))
        return results

    def _operate(self, name: str, x: Tensor, other: object, reflected: bool = False) -> Tensor:
        """An operator of a tensor; the executable is put in the table of its kind where that serves again."""
        wrapper = getattr(self, name)
        try:
            result, executable = self._factory.call(wrapper, (other, x) if reflected else (x, other), {})
        except AsTensorError:
            return NotImplemented
        if executable is None or not executable.is_single or reflected or len(executable.inputs) != 2:
            return result
        key = other._kind if type(other) is Tensor else type(other)
        if (executable.weak is None) == (type(other) is Tensor):
            self._connect(executable, x._kind.tables[POSITIONS[name]], key)
        return result

    def _connect(self, executable: Executable, table: dict[Key, Executable], key: Key) -> None:
        with self._cache.lock:
            if self._place.may_connect and not (self.lazy or self._recorders.count or self._log is not None):
                executable.connect(table, key)

    def operation(self, name: str, /, *inputs: Tensor, **attributes: object) -> Operation:
        """A function with its attributes, to be called with inputs by position.

        Args:
            name: name of the function, with that of its namespace: ``"sum"``, ``"linalg.det"``.
            inputs: none; they are given when the operation is called.
            attributes: Python values, by keyword.

        Raises:
            ValueError: there is no such function.
            TypeError: an attribute is data or cannot be hashed, or inputs are given.
        """
        function = self._find(name)
        if not isinstance(function, OpWrapper):
            raise ValueError(f"there is no operation {name!r}; the names are those of graphc.tensor")
        if inputs:
            raise TypeError(
                f"env.operation({name!r}, ...) takes attributes by keyword, got {len(inputs)} more "
                f"argument(s) by position; give inputs when calling it: env.operation({name!r})(x)"
            )
        return Operation(function, attributes)

    # Recording ---------------------------------------------------------------------------------------------

    def record(self) -> Recording:
        """Record what this thread runs: ``with env.record() as r: ...``, then ``r.graph([y])``."""
        return Recording(self)

    def graph(self, outputs: Tensors | Tensor | None = None, inputs: Tensors | None = None) -> RecordedGraph:
        """The recorded operations as a graph, which `graphc.function` compiles; arguments as in
        `Recording.graph`.

        It is that of the recording that is going on, or of the last one.

        Raises:
            ValueError: nothing was recorded.
        """
        recording = self._recorders.latest()
        if recording is None:
            raise ValueError(
                "nothing was recorded: run operations inside `with env.record():`, or make the environment "
                "with record=True"
            )
        return recording.graph(outputs, inputs)

    def tape(self, persistent: bool = False, watch_all: bool = True) -> Tape:
        """Record for gradients: ``with env.tape() as t: y = ...``, ``t.gradient(y, [x])``; see `Tape`."""
        return Tape(self, persistent, watch_all)

    def trace(self, *args: object, **kwargs: object) -> Any:
        """Log of what ran since the environment was made, or since ``env.trace().clear()``; needs
        ``full_tracing=True``.

        With arguments it is the function ``trace`` of ``graphc.tensor``, the sum of a diagonal.

        Raises:
            ValueError: the environment does not trace.
        """
        if args or kwargs:
            return mirrored(self, graphc.tensor, "trace")(*args, **kwargs)
        if self._log is None:
            raise ValueError("this environment does not trace; make it with Environment(full_tracing=True)")
        return self._log

    # Resources ---------------------------------------------------------------------------------------------

    @property
    def live_bytes(self) -> int:
        """Bytes of the data of all tensors of this environment that exist, and of what is queued.

        Memory that tensors share counts once. Nothing is counted while operations run: the tensors are looked
        up among all objects of the process, which takes a while.
        """
        found = {id(data): data.nbytes for data in self._queue.held()}
        for each in gc.get_objects():
            if type(each) is Tensor and each._kind.env is self:
                data = getattr(each, "_data", None)
                if data is not None:
                    found[id(data)] = data.nbytes
        return sum(found.values())

    def flush(self) -> None:
        """Run everything that is queued."""
        self._queue.flush()

    def cache_info(self) -> CacheInfo:
        """Statistics of the executables."""
        return self._cache.info()

    def cache_clear(self) -> None:
        """Throw all executables away."""
        self._cache.clear()

    # With --------------------------------------------------------------------------------------------------

    def __enter__(self) -> Environment:
        entered.set((self, entered.get()))
        return self

    def __exit__(self, *exception: object) -> None:
        found = entered.get()
        entered.set(found[1] if found is not None else None)

    def __repr__(self) -> str:
        return f"<graphc.immediate.Environment {self.name} ({self.target}{', lazy' if self.lazy else ''})>"


# What setting an option does.
_CHANGES: dict[str, Callable[[Environment, Any], object]] = {
    "lazy": lambda env, value: env.__dict__.update(lazy=bool(value)),
    "full_tracing": lambda env, value: setattr(env, "_log", (env._log or EventLog()) if value else None),
    "cache_size": lambda env, value: env._cache.resize(value),
    "queue_size": lambda env, value: env._queue.resize(value),
    "mode": lambda env, value: env._compile_in(value),
    "name": lambda env, value: env.__dict__.update(name=str(value)),
}
# The same function, as one that gives what it is.
current: Callable[[], Environment] = cast("Callable[[], Environment]", _current)
_METHOD_CODE = vars(TensorOperators)["exp"].__code__
shared_by(lambda: Environment(name="default"))
