# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Tensor``: the values of immediate mode.

They exchange arrays with other libraries by NumPy's protocols, DLPack and buffers.

The shape of one is a `Shape`: a tuple of sizes that can be computed with.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from graphc.array_api.types import DType, check_version
from graphc.graph.tensor.type import TensorType
from graphc.graph.tensor.variable import TensorOperators
from graphc.immediate.executable import POSITIONS, Kind, Owner
from graphc.tensor.numpy_calls import Target, call_function, call_ufunc
from graphc_runtime.cuda.array import DeviceArray
from graphc_runtime.cuda.interface import Interface

if TYPE_CHECKING:
    from graphc.graph.basic import Variable
    from graphc.graph.tensor import DTypeLike, IndexLike
    from graphc.immediate.operators import Operators
else:
    Operators = object


class Size(int):
    """A number of elements: a Python integer, with the promotion of the symbolic sizes of a graph.

    Beside a tensor it counts as int64 and not as a number whose dtype gives way, so that ``x / x.shape[0]``
    has the dtype that it has in a graph. What is computed from sizes and integers is a size, too.
    """

    __slots__ = ()

    def __truediv__(self, other: Any) -> Any:
        return np.int64(self) / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / np.int64(self)

    def astype(self, dtype: str) -> np.generic:
        """The size as a number of another dtype, as sizes of a graph have this method."""
        return np.int64(self).astype(dtype)


def _with_integers(name: str) -> Callable[..., object]:
    compute = getattr(int, name)

    def method(self: Size, *others: object) -> object:
        result = compute(self, *others)
        return Size(result) if type(result) is int else result

    method.__name__ = name
    return method


for _name in ("add", "sub", "mul", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"):
    for _prefix in ("__", "__r"):
        setattr(Size, f"{_prefix}{_name}__", _with_integers(f"{_prefix}{_name}__"))
for _name in ("neg", "pos", "abs", "invert"):
    setattr(Size, f"__{_name}__", _with_integers(f"__{_name}__"))


class Shape(tuple):
    """The sizes of a tensor.

    A tuple of `Size`, Python integers that promote as the symbolic sizes of a graph do. Everything that a
    tuple cannot do (``shape.prod()``, ``shape - 1``, ``shape * 2``) is done with the shape as a tensor.
    Adding a tuple joins, as with any tuple.
    """

    _env: Owner

    def __new__(cls, sizes: Iterable[int], env: Owner) -> Shape:
        """Sizes as Python numbers, and the environment of the tensor."""
        self = super().__new__(cls, map(Size, sizes))
        self._env = env
        return self

    def as_tensor(self) -> Tensor:
        """The sizes as a tensor, an int64 vector."""
        return self._env.numpy_to_tensor(np.array(self, np.int64), copy=False)

    def __repr__(self) -> str:
        return repr(tuple(map(int, self)))

    __str__ = __repr__

    def __reduce__(self) -> tuple[object, ...]:
        return tuple, (tuple(map(int, self)),)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"a shape has no attribute {name!r}")
        return getattr(self.as_tensor(), name)

    def __add__(self, other: Any) -> Any:
        return tuple(self) + other if isinstance(other, tuple) else self.as_tensor() + other

    def __radd__(self, other: Any) -> Any:
        return other + tuple(self) if isinstance(other, tuple) else other + self.as_tensor()


def _delegated(name: str) -> Callable[..., Tensor]:
    def method(self: Shape, *args: object) -> Tensor:
        return getattr(self.as_tensor(), name)(*args)

    return method


for _name in ("sub", "mul", "truediv", "floordiv", "mod", "pow"):
    for _prefix in ("__", "__r"):
        setattr(Shape, f"{_prefix}{_name}__", _delegated(f"{_prefix}{_name}__"))
del _name, _prefix


# The innermost one, and what was so before it.
Entered = tuple["Owner", "Entered | None"]
entered: ContextVar[Entered | None] = ContextVar("graphc_immediate_environment", default=None)
_shared: list[Owner] = []
_make: list[Callable[[], Owner]] = []


def shared_by(make: Callable[[], Owner]) -> None:
    """Says how the environment is made that all share who have none of their own."""
    _make[:] = [make]


def current() -> Owner:
    """The environment of the innermost ``with env:`` of this thread or task, else one that all share.

    Examples:
        >>> graphc.immediate.current()
        <graphc.immediate.Environment default (cpu)>
    """
    found = entered.get()
    if found is not None:
        return found[0]
    if not _shared:
        _shared.append(_make[0]())
    return _shared[0]


# NumPy functions that answer in Python or print: these see the arrays.
_ABOUT_ARRAYS = frozenset(
    "allclose array_equal array_equiv array_repr array_str array2string ndim shape size may_share_memory "
    "shares_memory result_type can_cast common_type iscomplexobj isrealobj min_scalar_type save savez "
    "savetxt savez_compressed isscalar".split()
)

_ADVICE = "use the functions of the environment, or NumPy on np.asarray(t)"


def _with_buffers() -> type:
    """A base class whose objects offer the buffer that their ``__buffer__`` gives, for Python 3.11.

    Later versions call that method themselves (PEP 688). It is a slot of C, of which the stable interface
    makes a class; a callback of ctypes cannot hand an exception on, so a refused buffer is a `SystemError`.
    """
    import ctypes

    give = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)
    forward = give(("PyObject_GetBuffer", ctypes.pythonapi))

    writable, place_of_readonly, read_only = 1, 32, (1).to_bytes(4, sys.byteorder)

    def get_buffer(tensor: Protocols, view: int, flags: int) -> int:
        if flags & writable:
            return -1
        try:
            found = forward(tensor._array(), view, flags)
        except Exception:
            return -1
        ctypes.memmove(view + place_of_readonly, read_only, 4)
        return found

    class Slot(ctypes.Structure):
        _fields_ = [("slot", ctypes.c_int), ("function", ctypes.c_void_p)]

    class Spec(ctypes.Structure):
        _fields_ = [
            ("name", ctypes.c_char_p),
            ("sizes", ctypes.c_int * 2),
            ("flags", ctypes.c_uint),
            ("slots", ctypes.POINTER(Slot)),
        ]

    callback = give(get_buffer)
    is_base, slot_of_buffers = 1 << 10, 1
    slots = (Slot * 2)(Slot(slot_of_buffers, ctypes.cast(callback, ctypes.c_void_p).value))
    name = b"graphc.immediate.tensor.Buffers"
    spec = Spec(name, (ctypes.c_int * 2)(object.__basicsize__, 0), is_base, slots)
    make = ctypes.pythonapi.PyType_FromSpec
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p]
    _ALIVE.extend((callback, slots, spec))
    made: type = make(ctypes.addressof(spec))
    return made


# What the class is made of, which must not die before it.
_ALIVE: list[object] = []
if TYPE_CHECKING or sys.version_info >= (3, 12) or sys.implementation.name != "cpython":
    _Base = object
else:
    _Base = _with_buffers()


class Protocols(_Base):
    """Protocols that `graphc.immediate.Tensor` offers to other libraries."""

    __slots__ = ()
    __array_priority__ = 2000

    def _array(self) -> np.ndarray:
        raise NotImplementedError

    def _held(self) -> np.ndarray | DeviceArray:
        raise NotImplementedError

    # NumPy -------------------------------------------------------------------------------------------------

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        """A read-only view of the data, or a copy where one is asked for or another dtype needs it."""
        data = self._array()
        if copy or (dtype is not None and np.dtype(dtype) != data.dtype):
            if copy is False:
                raise ValueError(f"a tensor of {data.dtype} cannot become an array of {dtype} without a copy")
            return np.array(data, dtype=dtype, copy=True)
        view = data.view()
        view.flags.writeable = False
        return view

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Tensor:
        """Let ``np.exp(t)`` and ``array + t`` run in the environment."""
        return call_ufunc(self._target(), ufunc, method, inputs, kwargs)

    def __array_function__(
        self, func: Any, types: object, args: Sequence[object], kwargs: dict[str, int]
    ) -> Tensor | list[Tensor]:
        """Let ``np.concatenate([t, u])`` and the like run in the environment."""
        if func.__name__ in _ABOUT_ARRAYS:
            return func(*map(_as_array, args), **{key: _as_array(value) for key, value in kwargs.items()})
        return call_function(self._target(), func, args, kwargs)

    def _target(self) -> Target:
        env = self._kind.env  # type: ignore[attr-defined]
        return Target(env, env._find, "tensors of an immediate environment", _ADVICE, env._store)

    # DLPack ------------------------------------------------------------------------------------------------

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """A capsule of the data. Consumers that know DLPack 1.0 get a read-only view, older ones a copy.

        Older ones that ask for no copy get the data themselves: they have no way to hear that these must not
        be written to.
        """
        held = self._held()
        if isinstance(held, DeviceArray):
            return held.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)
        view = self.__array__()
        if max_version is None or max_version < (1, 0):
            copy = copy is None or copy
            view = view if copy else self._array()
        if copy:
            return view.copy().__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device)
        return view.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The device of the data."""
        return self._held().__dlpack_device__()

    @property
    def __cuda_array_interface__(self) -> Interface:
        """Description of the data on a device.

        Raises:
            AttributeError: they are on the host.
        """
        held = self._held()
        if isinstance(held, DeviceArray):
            return held.__cuda_array_interface__
        raise AttributeError("the data of this tensor are on the host")

    # Buffers -----------------------------------------------------------------------------------------------

    def __buffer__(self, flags: int) -> memoryview:
        """The buffer of the data, read-only (PEP 688).

        ``memoryview(t)`` calls this: Python 3.12 and later by themselves, 3.11 by a base class.
        """
        if flags & 1:
            raise BufferError("the data of a tensor are read-only")
        array: Any = self.__array__()
        return memoryview(array)


def _as_array(x: object) -> Any:
    if isinstance(x, list | tuple):
        return type(x)(map(_as_array, x))
    return np.asarray(x) if isinstance(x, Protocols) else x


_new = object.__new__


class Tensor(Protocols, Operators):
    """A handle of an array that an environment owns; it is made by the environment's functions.

    Operators and methods are those of symbolic variables, and run at once in the tensor's environment.
    ``x[i] = y`` and ``x += y`` change a tensor and those that are views of it, as in NumPy: `aliasing` says
    which these are. Arrays that share a tensor's memory are read-only, and keep their values.

    Examples:
        >>> env = graphc.immediate.Environment()
        >>> x = env.as_tensor([1.0, 2.0])
        >>> type(x).__name__, np.asarray(x + 1).tolist()
        ('Tensor', [2.0, 3.0])
    """

    # `_data` is unset while a lazy environment has not computed it, and when something that the tensor is a
    # view of was written to; `_token` identifies the value in recordings and in the queue; `_view` is what
    # `set` and `inc` need: what was indexed, and by what. `_family` are the tensors that share memory in
    # NumPy, `_chain` is the view of their whole that this one is. `_host` is the value of an array of the
    # device, once somebody has read it.
    __slots__ = ("__weakref__", "_chain", "_data", "_family", "_host", "_kind", "_name", "_token", "_view")

    _data: np.ndarray | DeviceArray
    _host: np.ndarray
    _kind: Kind
    _token: Any
    _view: tuple[Tensor, object]
    # What it is a view of, and the views on the way: see `graphc.immediate.aliasing`.
    _family: Any
    _chain: tuple[Any, ...]
    _name: str | None

    def __init__(self) -> None:
        raise TypeError(
            "tensors are made by an environment: env.as_tensor([1.0, 2.0]), env.numpy_to_tensor(array), "
            "env.zeros((2, 3))"
        )

    def _held(self) -> np.ndarray | DeviceArray:
        """The data, where they are; computes them first where they are queued."""
        try:
            return self._data
        except AttributeError:
            return self._kind.env._settle(self)

    def _array(self) -> np.ndarray:
        """The data, on the host."""
        data = self._held()
        if isinstance(data, np.ndarray):
            return data
        if not hasattr(self, "_host"):
            self._host = data.get()
        return self._host

    # Attributes --------------------------------------------------------------------------------------------

    @property
    def env(self) -> Owner:
        """The environment that owns the tensor."""
        return self._kind.env

    @property
    def dtype(self) -> DType:
        """The dtype of the elements, which equals its name."""
        return self._kind.dtype_object

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self._kind.ndim

    @property
    def shape(self) -> Shape:
        """The sizes: Python integers that promote as int64."""
        return Shape(self._held().shape, self._kind.env)

    @property
    def size(self) -> Size:
        """Number of elements."""
        return Size(self._held().size)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self._held().nbytes

    @property
    def device(self) -> str:
        """Device of the elements."""
        return self._kind.env.target

    def to_device(self, device: str, /, *, stream: object = None) -> Tensor:
        """As `transfer`."""
        return self.transfer(device)

    def transfer(self, target: str) -> Tensor:
        """The tensor with its value on a target: the environment's, or ``"cpu"``; raises ValueError else."""
        return self._kind.env._place.moved(self, target)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The functions of the array API standard, which run in the tensor's environment.

        Raises:
            ValueError: the version is none that they follow.
        """
        check_version(api_version)
        return self._kind.env.array_api

    @property
    def type(self) -> TensorType:
        """The type of a symbolic variable with this dtype and shape."""
        return TensorType(self._kind.dtype, self._held().shape)

    @property
    def broadcastable(self) -> tuple[bool, ...]:
        """For each dimension, whether its size is 1."""
        return tuple(size == 1 for size in self._held().shape)

    @property
    def name(self) -> str | None:
        """A name for people."""
        return getattr(self, "_name", None)

    @name.setter
    def name(self, name: str | None) -> None:
        self._name = name

    def eval(self, inputs_to_values: object = None, **kwargs: object) -> np.ndarray:
        """The value as a new NumPy array, as `graphc.Variable.eval` gives it."""
        return self._array().copy()

    numpy = eval

    def get_value(self, borrow: bool = False, return_internal_type: bool = False) -> np.ndarray:
        """The value as a NumPy array, as shared variables give it; with ``borrow`` a read-only view."""
        return self.__array__() if borrow else self._array().copy()

    def set_value(self, new_value: object, borrow: bool = False) -> None:
        """Let this handle stand for another value of the same dtype and number of dimensions.

        Raises:
            TypeError: the value does not fit.
        """
        kind = self._kind
        value = new_value._held() if isinstance(new_value, Tensor) else new_value
        if isinstance(value, DeviceArray) and (value.dtype.name, value.ndim) == (kind.dtype, kind.ndim):
            array: np.ndarray | DeviceArray = value
        else:
            array = kind.type().filter(np.asarray(value) if isinstance(value, DeviceArray) else value)
            array = array if borrow and array.flags.carray else np.array(array, order="C", copy=True)
        env = kind.env
        with env._cache.lock:
            for name in ("_family", "_chain", "_view"):
                if hasattr(self, name):
                    delattr(self, name)
            env._adopt(self, make_tensor(array, kind))

    # Python ------------------------------------------------------------------------------------------------

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        return bool(self._array())

    def __int__(self) -> int:
        return int(self._array())

    def __float__(self) -> float:
        return float(self._array())

    def __complex__(self) -> complex:
        return complex(self._array())

    def __index__(self) -> int:
        return self._array().__index__()

    def item(self) -> Any:
        """The only element as a Python number."""
        return self._array().item()

    def tolist(self) -> list[float | list[float]]:
        """The elements as nested lists of Python numbers."""
        return self._array().tolist()

    def __len__(self) -> int:
        return len(self._held())

    def __iter__(self) -> Iterator[Tensor]:
        if not self._kind.ndim:
            raise TypeError(f"cannot iterate over a tensor of 0 dimensions: {self!r}")
        return (self[i] for i in range(len(self)))

    def __contains__(self, value: float) -> bool:
        return bool((self._array() == np.asarray(value)).any())

    def __repr__(self) -> str:
        array = self._array()
        text = np.array2string(array, separator=", ", prefix="Tensor(")
        return f"Tensor({text}, dtype={self._kind.dtype})"

    def __str__(self) -> str:
        return str(self._array())

    def __format__(self, spec: str) -> str:
        return format(self._array() if self._kind.ndim else self._array()[()], spec)

    def __copy__(self) -> Tensor:
        return _bare(self)

    def __deepcopy__(self, memo: dict[int, object]) -> Tensor:
        return _bare(self)

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (self._array(),)

    # Graphs ------------------------------------------------------------------------------------------------

    def __as_tensor_variable__(self) -> Variable:
        """The tensor in a graph: an input of the function that is being traced, or a constant."""
        return self._kind.env._lift(self)

    # Indexing ----------------------------------------------------------------------------------------------

    def __getitem__(self, index: IndexLike) -> Tensor:
        return self._kind.env._getitem(self, index)

    def __setitem__(self, index: IndexLike, value: object) -> None:
        self._kind.env._assign(self, index, value)

    def set(self, y: object, **kwargs: object) -> Tensor:
        """``x[index].set(y)``: x with the indexed part replaced."""
        return self._kind.env.set_subtensor(self, y, **kwargs)

    def inc(self, y: object, **kwargs: object) -> Tensor:
        """``x[index].inc(y)``: x with the indexed part increased."""
        return self._kind.env.inc_subtensor(self, y, **kwargs)


def _bare(x: Tensor) -> Tensor:
    """Another handle of the same value, which stays when x is assigned to."""
    other = _new(Tensor)
    other._kind = x._kind
    env = x._kind.env
    with env._cache.lock:
        env._refresh(x)
        env._adopt(other, x)
    return other


def as_held(x: np.ndarray | np.generic | DeviceArray) -> np.ndarray | DeviceArray:
    """A result as tensors hold it: numbers become arrays."""
    return x if isinstance(x, DeviceArray) else np.asarray(x)


def make_tensor(data: np.ndarray | DeviceArray, kind: Kind) -> Tensor:
    """A tensor of an array that nobody else writes to."""
    tensor = _new(Tensor)
    tensor._data = data
    tensor._kind = kind
    return tensor


def _restored(array: np.ndarray) -> Tensor:
    """A pickled tensor, in the current environment."""
    return current().numpy_to_tensor(array, copy=False)


def refuse_mixing(env: Owner, other: Owner, x: Tensor) -> NoReturn:
    """Raises for a tensor of another environment."""
    raise TypeError(
        f"tensors of two environments meet: {x!r:.60} belongs to {other!r}, and the operation runs in "
        f"{env!r}; take it over with env.numpy_to_tensor(np.asarray(t))"
    )


def _operator(name: str) -> Callable[[Tensor, object], Tensor]:
    """The method of an operator: from the table of the operand's kind, or by the environment's function."""
    position = POSITIONS[name]

    def method(self: Tensor, other: object) -> Tensor:
        found = self._kind.tables[position].get(other._kind if type(other) is Tensor else type(other))
        if found is not None:
            try:
                given = other._data if type(other) is Tensor else np.asarray(other, found.weak)
                data = found.run(self._data, given)
            except Exception:
                return self._kind.env._operate(name, self, other)
            found.hits += 1
            result = _new(Tensor)
            result._data = data
            result._kind = found.kind
            return result
        return self._kind.env._operate(name, self, other)

    method.__doc__ = f"``{name}`` of the tensor's environment."
    return method


def _reflected(name: str) -> Callable[[Tensor, object], Tensor]:
    def method(self: Tensor, other: object) -> Tensor:
        return self._kind.env._operate(name, self, other, reflected=True)

    method.__doc__ = f"``{name}`` of the tensor's environment, with the operands exchanged."
    return method


def _augmented(special: str, name: str) -> Callable[[Tensor, object], object]:
    """The method of ``x += y``: the operator's result is x's new value. With a symbolic y it is a graph."""
    compute = getattr(Tensor, special)

    def method(self: Tensor, other: object) -> object:
        result = compute(self, other)
        return self._kind.env._put(self, result, name) if type(result) is Tensor else result

    method.__doc__ = f"``{name}``, stored in the tensor itself."
    return method


def _method(name: str) -> Callable[..., object]:
    def method(self: Tensor, *args: object, **kwargs: object) -> object:
        return self._kind.env._method(name)(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = getattr(TensorOperators, name).__doc__
    return method


_SPECIAL = {
    "__add__": "add", "__sub__": "sub", "__mul__": "mul", "__truediv__": "true_div", "__mod__": "mod",
    "__floordiv__": "int_div", "__pow__": "pow", "__matmul__": "matmul", "__and__": "bitwise_and",
    "__or__": "bitwise_or", "__xor__": "bitwise_xor", "__lshift__": "left_shift", "__rshift__": "right_shift",
}  # fmt: skip
_COMPARISONS = {
    "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge", "__eq__": "eq", "__ne__": "neq",
}  # fmt: skip


_NOT_METHODS = frozenset({"__dict__", "__weakref__", "__module__", "__doc__"})


def _complete(cls: type) -> None:
    """Give a class the operators, and the methods and properties of symbolic tensors that it lacks."""
    for special, name in {**_SPECIAL, **_COMPARISONS}.items():
        setattr(cls, special, _operator(name))
    for special, name in _SPECIAL.items():
        setattr(cls, special.replace("__", "__r", 1), _reflected(name))
        setattr(cls, special.replace("__", "__i", 1), _augmented(special, name))
    for name, value in vars(TensorOperators).items():
        if name in _NOT_METHODS or any(name in vars(base) for base in cls.__mro__[:-1]):
            continue
        if isinstance(value, property):
            setattr(cls, name, property(_method_of_property(name), doc=value.__doc__))
        elif callable(value):
            setattr(cls, name, _method(name))


def _method_of_property(name: str) -> Callable[[Tensor], object]:
    def get(self: Tensor) -> object:
        return self._kind.env._method(name)(self)

    return get


_complete(Tensor)
