# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Storage of an environment's values, and access of compiled operations to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from graphc.function.compiled import Compiled
from graphc.graph.basic import Variable
from graphc.graph.tensor.variable import check_device
from graphc.graph.type import register_transfer
from graphc.immediate.tensor import Tensor
from graphc_runtime.cuda.array import DeviceArray, upload
from graphc_runtime.cuda.cuda_driver import device
from graphc_runtime.cuda.executable import DeviceExecutable

if TYPE_CHECKING:
    from graphc.function.types import Function

Held: TypeAlias = "np.ndarray | DeviceArray"
Run: TypeAlias = "Callable[..., Held | list[Held]]"

# Numbers are small, and few programs use many: more than these are sent again.
_MOST_NUMBERS = 1024


class Host:
    """Values are arrays of NumPy.

    Args:
        mode: how operations are compiled; None for ``config.mode``.
    """

    # Whether calls may go from an operator straight to its executable.
    may_connect = True

    def __init__(self, mode: str | None) -> None:
        self.mode = mode

    def operand(self, x: Tensor) -> Held:
        """A tensor as an operation takes it."""
        return x._held()

    def number(self, array: np.ndarray) -> Held:
        """A number as an operation takes it."""
        return array

    def finished(self, function: Function) -> Run:
        """A compiled operation, of what `operand` and `number` give."""
        return function

    def moved(self, x: Tensor, target: str) -> Tensor:
        """A tensor with its value somewhere else.

        Raises:
            ValueError: it cannot be there.
        """
        check_device(target)
        return x


class Device(Host):
    """Values are arrays of the device from the first operation on that takes them, and stay there."""

    may_connect = False

    def __init__(self, mode: str | None) -> None:
        if mode not in (None, "cuda"):
            raise ValueError(f"operations on a device are compiled in mode 'cuda', got mode={mode!r}")
        super().__init__("cuda")
        self._numbers: dict[tuple[str, bytes], DeviceArray] = {}

    def operand(self, x: Tensor) -> Held:
        """A tensor as an operation takes it; an array of the host moves to the device once.

        Raises:
            NoDeviceError: there is none.
        """
        data = x._held()
        if isinstance(data, np.ndarray):
            data = x._data = self.number(data) if not data.ndim else self._sent(data)
        return data

    def number(self, array: np.ndarray) -> Held:
        """A number on the device; equal ones are sent once."""
        key = (array.dtype.str, array.tobytes())
        found = self._numbers.get(key)
        if found is None:
            if len(self._numbers) >= _MOST_NUMBERS:
                self._numbers.clear()
            found = self._sent(array)
            found.known = np.array(array)
            self._numbers[key] = found
        return found

    def _sent(self, array: np.ndarray) -> DeviceArray:
        driver = device()
        return upload(driver, array, driver.main_stream)

    def finished(self, function: Function) -> Run:
        """A compiled operation on arrays of the device; one with parts in Python takes those of the host."""
        executor = function.executor
        executable = executor.executable if isinstance(executor, Compiled) else None
        if isinstance(executable, DeviceExecutable):
            return cast("Run", executable.bind(function.calls.cells, where=executor.where))

        def run(*given: Held) -> Held | list[Held]:
            found: Held | list[Held] = function(*map(np.asarray, given))
            return found

        return run

    def moved(self, x: Tensor, target: str) -> Tensor:
        """The tensor itself with its value on the device, or another one of the environment, whose value is
        on the host until an operation takes it.

        Raises:
            ValueError: a target that is neither "cuda" nor "cpu".
            NoDeviceError: there is no device.
        """
        if target == "cuda":
            self.operand(x)
            return x
        if target != "cpu":
            raise ValueError(f"tensors of this environment can be on 'cuda' and 'cpu', got {target!r}")
        return x._kind.env.numpy_to_tensor(x._array(), copy=False)


# How an environment of a target keeps values.
PLACES: dict[str, type[Host]] = {"cpu": Host, "cuda": Device}


def _tensors(variable: Variable | Tensor, target: str) -> Variable | None:
    # Functions of `graphc.tensor` give tensors where they are given tensors.
    return cast("Variable", variable.transfer(target)) if isinstance(variable, Tensor) else None


register_transfer(_tensors)
