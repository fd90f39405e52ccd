# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays that callers give for results: of the host, of the device, or of other libraries on the device."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphc_runtime.cuda.array import DeviceArray, from_dlpack, from_interface
from graphc_runtime.cuda.driver import Driver
from graphc_runtime.cuda.interface import CUDA, MANAGED, has_dlpack, has_interface
from graphc_runtime.kernel import Shape
from graphc_runtime.manifest import ArraySpec
from graphc_runtime.marshal import fits
from graphc_runtime.record import record

# Streams of other libraries that wait for ours by themselves: the default ones.
_ORDERED = (None, 0, 1, 2)


@record(frozen=True)
class Target:
    """An array for a result.

    Attributes:
        name: how errors call it.
        given: the caller's object, which the call returns.
        array: the same memory.
    """

    name: str
    given: object
    array: DeviceArray | np.ndarray

    def check(self, shape: Shape) -> None:
        """Raises ValueError unless the result has the array's shape."""
        if self.array.shape != shape:
            raise ValueError(f"{self.name} must have shape {shape}, got {self.array.shape}")

    def place(self, others: Sequence[DeviceArray]) -> DeviceArray | None:
        """The array, if the result can be computed in it: it is on the device, apart from what is read."""
        if not isinstance(self.array, DeviceArray) or any(overlap(self.array, x) for x in others):
            return None
        return self.array

    def store(self, result: DeviceArray) -> object:
        """Copies a result that lies somewhere else; what the call returns."""
        driver, array = result.memory.driver, self.array
        if isinstance(array, np.ndarray):
            array[...] = result.get()
        elif array is not result:
            driver.copy(array.address, result.address, result.nbytes, driver.main_stream)
        if array is self.given:
            return self.given
        theirs = None
        if has_interface(self.given):
            theirs = self.given.__cuda_array_interface__.get("stream")
        if theirs not in _ORDERED and theirs != driver.main_stream:
            assert theirs is not None
            event = driver.new_event()
            driver.record(event, driver.main_stream)
            driver.wait(event, theirs)
            driver.drop_event(event)
        return self.given


def targets(
    driver: Driver, given: Sequence[object], specs: Sequence[ArraySpec], function: str
) -> list[Target | None]:
    """Destinations that a call is given for its results.

    Args:
        driver: of the device.
        given: arrays; None stands for a new one.
        specs: of the results.
        function: its name, for errors.

    Raises:
        TypeError: something is no array, is on another device, or has another dtype.
        ValueError: an array has other axes or static sizes, is not contiguous or read-only, or shares memory
            with another one.
    """
    found: list[Target | None] = []
    for i, (value, spec) in enumerate(zip(given, specs, strict=True)):
        name = f"out= of {function} for result {i}" + (f" {spec.name!r}" if spec.name else "")
        found.append(None if value is None else Target(name, value, _array(driver, value, spec, name)))
    _check_apart([target for target in found if target is not None])
    return found


def _array(driver: Driver, value: object, spec: ArraySpec, name: str) -> DeviceArray | np.ndarray:
    array = _memory_of(driver, value, name)
    if array.dtype != spec.dtype:
        raise TypeError(f"{name} must have dtype {spec.dtype}, got dtype {array.dtype}")
    if not fits(array.shape, spec):
        shape = ", ".join("?" if size is None else str(size) for size in spec.shape)
        raise ValueError(f"{name} must have shape ({shape}{',' * (spec.rank == 1)}), got {array.shape}")
    if isinstance(array, np.ndarray):
        if not array.flags.writeable:
            raise ValueError(f"{name} must be writeable, and is read-only")
    elif not array.is_contiguous:
        steps = tuple(stride * array.dtype.itemsize for stride in array.strides)
        raise ValueError(f"{name} must be C-contiguous, got strides {steps} for shape {array.shape}")
    else:
        return array.at_start()
    return array


def _memory_of(driver: Driver, value: object, name: str) -> DeviceArray | np.ndarray:
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, DeviceArray):
        if value.memory.driver is not driver:
            raise TypeError(f"{name} is an array of {value.device}, expected one of cuda:{driver.ordinal}")
        if value.known is not None:
            raise ValueError(f"{name} must be writeable, and is the array of a number that the host knows")
        return value
    if has_interface(value):
        if value.__cuda_array_interface__["data"][1]:
            raise ValueError(f"{name} must be writeable, and is read-only")
        return from_interface(driver, value, driver.main_stream)
    if has_dlpack(value) and value.__dlpack_device__()[0] in (CUDA, MANAGED):
        return from_dlpack(driver, value, driver.main_stream)
    raise TypeError(f"{name} must be an array of the host or the device, got {type(value).__name__}")


def _check_apart(found: Sequence[Target]) -> None:
    for position, target in enumerate(found):
        for other in found[:position]:
            one, two = target.array, other.array
            if isinstance(one, np.ndarray) and isinstance(two, np.ndarray):
                shared = np.may_share_memory(one, two)
            elif isinstance(one, np.ndarray) or isinstance(two, np.ndarray):
                continue
            else:
                shared = overlap(one, two)
            if shared:
                raise ValueError(f"{target.name} shares memory with {other.name}; give arrays apart")


def overlap(one: DeviceArray, two: DeviceArray) -> bool:
    """True if two contiguous arrays of the device share memory."""
    return one.address < two.address + two.nbytes and two.address < one.address + one.nbytes
