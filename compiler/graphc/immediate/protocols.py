# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How tensors exchange arrays with other libraries: NumPy's protocols, DLPack and buffers."""

from __future__ import annotations

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


class Protocols:
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
        return Target(env, env._find, "tensors of an immediate environment", _ADVICE)

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

        Python 3.12 and later call this for ``memoryview(t)``; on 3.11 classes written in Python have no way
        to offer a buffer, so there ``memoryview(np.asarray(t))`` is what to use.
        """
        if flags & 1:
            raise BufferError("the data of a tensor are read-only")
        array: Any = self.__array__()
        return memoryview(array)


def _as_array(x: object) -> Any:
    if isinstance(x, list | tuple):
        return type(x)(map(_as_array, x))
    return np.asarray(x) if isinstance(x, Protocols) else x
