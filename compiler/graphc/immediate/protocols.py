# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How tensors exchange arrays with other libraries: NumPy's protocols, DLPack and buffers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.graph.tensor.dispatch import Target, call_function, call_ufunc
from graphc_runtime.cuda.array import DeviceArray
from graphc_runtime.cuda.interface import Interface

if TYPE_CHECKING:
    from graphc.graph.tensor.like import DTypeLike
    from graphc.immediate.tensor import Tensor

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
    name = b"graphc.immediate.protocols.Buffers"
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
    """What `graphc.immediate.Tensor` offers to other libraries."""

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
        """Where the data are on a device.

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
