# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of the device, and the memory that they lie in.

What computes them is asked for in stream order and not waited for: an array is read when it is converted to
one of NumPy. Other libraries take and give arrays without copies, by `__cuda_array_interface__` and DLPack.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from graphc_runtime.cuda import dlpack
from graphc_runtime.cuda.driver import Driver
from graphc_runtime.cuda.interface import CUDA, MANAGED, HasDlpack, HasInterface, Interface
from graphc_runtime.cuda.operators import HostOperators
from graphc_runtime.symbols import DESCRIPTORS

# Names of dtypes are put together each time that they are asked for.
_DTYPES = frozenset(DESCRIPTORS.values())


class Memory:
    """Memory of a device, which is given back when nothing refers to it any more.

    Args:
        driver: of the device.
        nbytes: how many bytes.
        stream: the stream that orders its life.
        address: of memory that is there already.
        owner: what keeps that alive; by default this object does, and gives it back.
    """

    __slots__ = ("_free", "address", "driver", "nbytes", "owner", "stream")

    def __init__(
        self, driver: Driver, nbytes: int, stream: int, address: int | None = None, owner: object = None
    ) -> None:
        self.driver, self.nbytes, self.stream, self.owner = driver, nbytes, stream, owner
        self._free: Callable[[int, int], None] | None
        if address is None:
            self._free = None  # if there is no memory
            self.address, self._free = driver.allocate(nbytes, stream), driver.free
        else:
            self.address, self._free = address, None

    def free(self) -> None:
        """Gives it back, in stream order; nothing happens where it is not owned, or has been given back."""
        give_back, self._free = self._free, None
        if give_back is not None:
            give_back(self.address, self.stream)

    @property
    def is_free(self) -> bool:
        """True if it has been given back."""
        return self._free is None and self.owner is None

    def __del__(self) -> None:
        try:
            if self._free is not None:
                self._free(self.address, self.stream)
        except Exception:  # at the interpreter's end there may be no driver any more
            return


class Layout:
    """Form of an array, without its memory. Equal ones are mostly the same object, which `layout` gives: what
    is made for arrays of certain forms is found by them.

    Attributes:
        dtype: NumPy's.
        shape: its sizes.
        strides: in elements.
        offset: of its first element in the memory, in elements.
        is_contiguous: whether the elements lie in row-major order with nothing between.
        size: number of elements.
        nbytes: their bytes.
    """

    __slots__ = ("dtype", "is_contiguous", "nbytes", "offset", "shape", "size", "strides")

    def __init__(
        self, dtype: np.dtype, shape: tuple[int, ...], strides: tuple[int, ...] | None, offset: int
    ) -> None:
        wanted = row_major(shape)
        self.dtype, self.shape, self.offset = dtype, shape, offset
        self.strides = wanted if strides is None else strides
        self.size = math.prod(shape)
        self.nbytes = self.size * dtype.itemsize
        pairs = zip(shape, self.strides, wanted, strict=True)
        self.is_contiguous = self.size == 0 or all(n == 1 or stride == step for n, stride, step in pairs)


# Forms that arrays had last: more than programs have.
layout = lru_cache(maxsize=4096)(Layout)


class DeviceArray(HostOperators):
    """An array of the device.

    ``numpy.asarray(array)`` waits for what computes it, and copies; so do operators, functions of NumPy and
    indexing, which give arrays of the host.

    Attributes:
        memory: that it lies in.
        layout: dtype, sizes, strides, and where it begins.
        known: its value, where the host has it and nobody writes to the array: it is read without a wait.
    """

    __slots__ = ("__weakref__", "known", "layout", "memory")
    __array_priority__ = 100
    # For `graphc_runtime.marshal`, which does not know this class.
    is_device_array = True

    def __init__(
        self,
        memory: Memory,
        dtype: np.dtype | str,
        shape: Sequence[int],
        strides: Sequence[int] | None = None,
        offset: int = 0,
    ) -> None:
        steps = None if strides is None else tuple(strides)
        self.memory, self.layout = memory, layout(np.dtype(dtype), tuple(shape), steps, offset)
        self.known: np.ndarray | None = None

    @classmethod
    def of(cls, memory: Memory, layout: Layout) -> DeviceArray:
        """An array of a layout."""
        made = cls.__new__(cls)
        made.memory, made.layout, made.known = memory, layout, None
        return made

    @property
    def dtype(self) -> np.dtype:
        """NumPy's."""
        return self.layout.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""
        return self.layout.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """In elements."""
        return self.layout.strides

    @property
    def offset(self) -> int:
        """Of its first element in the memory, in elements."""
        return self.layout.offset

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.layout.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.layout.size

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self.layout.nbytes

    @property
    def address(self) -> int:
        """Of the first element."""
        return self.memory.address + self.layout.offset * self.layout.dtype.itemsize

    @property
    def is_contiguous(self) -> bool:
        """True if the elements lie in row-major order with nothing between."""
        return self.layout.is_contiguous

    @property
    def device(self) -> str:
        """Device of the array, such as "cuda:0"."""
        return f"cuda:{self.memory.driver.ordinal}"

    def at_start(self) -> DeviceArray:
        """The same contiguous elements, as an array that begins with its memory, as kernels take it."""
        if not self.offset:
            return self
        memory = self.memory
        part = Memory(memory.driver, self.nbytes, memory.stream, self.address, memory)
        return DeviceArray(part, self.dtype, self.shape)

    def synchronise(self) -> DeviceArray:
        """Waits until it is computed."""
        self.memory.driver.synchronise(self.memory.stream)
        return self

    def get(self) -> np.ndarray:
        """Its value, as a new array of the host.

        Raises:
            DriverError: what computes it has failed.
            TypeError: its elements do not lie in row-major order.
        """
        if not self.is_contiguous:
            raise TypeError(
                f"an array with strides {self.strides} of {self.shape} cannot be copied to the host"
            )
        found = np.empty(self.shape, self.dtype)
        self.memory.driver.download(found, self.address, self.memory.stream)
        return found

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("an array of the device is copied when NumPy reads it")
        return self.get().astype(self.dtype if dtype is None else dtype, copy=False)

    def __reduce__(self) -> tuple[Callable[..., np.ndarray], tuple[np.ndarray]]:
        """Pickles as an array of the host."""
        return np.asarray, (self.get(),)

    def item(self) -> int | float | complex:
        """The only element, as number of Python."""
        found: int | float | complex = self.get().item()
        return found

    def __float__(self) -> float:
        return float(self.get())

    def __int__(self) -> int:
        return int(self.get())

    def __bool__(self) -> bool:
        return bool(self.get())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<array of {self.device}, shape {self.shape}, {self.dtype}>"

    @property
    def __cuda_array_interface__(self) -> Interface:
        """Version 3; consumers wait for the stream."""
        strides = None
        if not self.is_contiguous:
            strides = tuple(stride * self.dtype.itemsize for stride in self.strides)
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address if self.size else 0, False),
            "strides": strides,
            "version": 3,
            "stream": self.memory.stream or 1,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.memory.driver.ordinal

    def __dlpack__(self, *, stream: int | None = None, **options: object) -> object:
        """A capsule of DLPack's version 0.

        Args:
            stream: of the consumer, which is made to wait; None for the default stream, -1 for no wait.
            options: `copy`, `dl_device` and `max_version` as the standard has them; only views are given.

        Raises:
            BufferError: a copy, or another device, is asked for.
        """
        here = options.get("dl_device") in (None, self.__dlpack_device__())
        if options.get("copy") or not here:
            raise BufferError("an array of the device is given as it is: without copies, on its device")
        driver = self.memory.driver
        if stream != -1:
            event = driver.new_event()
            driver.record(event, self.memory.stream)
            driver.wait(event, 1 if stream is None else stream)
            driver.drop_event(event)
        tensor = dlpack.Tensor(
            self.address if self.size else 0, driver.ordinal, self.dtype, self.shape, self.strides
        )
        return dlpack.to_capsule(tensor, self)


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides, in elements."""
    found, stride = [], 1
    for size in reversed(shape):
        found.append(stride)
        stride *= size
    return tuple(reversed(found))


def upload(driver: Driver, value: np.ndarray, stream: int) -> DeviceArray:
    """A copy of an array of the host, on the device."""
    array = np.ascontiguousarray(value)
    memory = Memory(driver, array.nbytes, stream)
    driver.upload(memory.address, array, stream)
    return DeviceArray(memory, value.dtype, value.shape)


def from_interface(driver: Driver, value: HasInterface, stream: int) -> DeviceArray:
    """An array that another library has on the device, without a copy.

    Args:
        driver: of the device.
        value: has `__cuda_array_interface__`.
        stream: waits for the stream that the other library names.

    Raises:
        TypeError: its dtype is not one that kernels have.
    """
    raw = value.__cuda_array_interface__
    dtype = np.dtype(raw["typestr"])
    if dtype not in _DTYPES and dtype.name != "bfloat16":
        raise TypeError(f"an array of the device with dtype {raw['typestr']}")
    shape = tuple(map(int, raw["shape"]))
    strides = raw.get("strides")
    theirs = raw.get("stream")
    if theirs is not None and theirs != stream:
        event = driver.new_event()
        driver.record(event, theirs)
        driver.wait(event, stream)
        driver.drop_event(event)
    nbytes = math.prod(shape) * dtype.itemsize
    memory = Memory(driver, nbytes, stream, int(raw["data"][0]), value)
    if strides is None:
        return DeviceArray(memory, dtype, shape)
    return DeviceArray(memory, dtype, shape, tuple(stride // dtype.itemsize for stride in strides))


def from_dlpack(driver: Driver, value: HasDlpack, stream: int) -> DeviceArray:
    """An array that another library has on the device, without a copy.

    Args:
        driver: of the device.
        value: has `__dlpack__` and `__dlpack_device__`.
        stream: in which it will be used; the other library makes it wait.

    Raises:
        TypeError: it is not on this device, or its dtype is not one that kernels have.
    """
    kind, ordinal = value.__dlpack_device__()
    if kind not in (CUDA, MANAGED) or ordinal != driver.ordinal:
        raise TypeError(f"an array of device {ordinal} of kind {kind}; expected one of cuda:{driver.ordinal}")
    tensor, owner = dlpack.read_capsule(value.__dlpack__(stream=stream or 1))
    if tensor.dtype not in _DTYPES and tensor.dtype.name != "bfloat16":
        raise TypeError(f"an array of the device with dtype {tensor.dtype}")
    nbytes = math.prod(tensor.shape) * tensor.dtype.itemsize
    memory = Memory(driver, nbytes, stream, tensor.address, owner)
    return DeviceArray(memory, tensor.dtype, tensor.shape, tensor.strides or row_major(tensor.shape))
