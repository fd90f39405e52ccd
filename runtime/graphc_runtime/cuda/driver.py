# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Services of a device to the runtime: modules, memory, copies, launches, libraries, streams, events, graphs.

`Driver` is the interface; `graphc_runtime.cuda.cuda_driver` does it with the CUDA driver. Handles and
addresses are ints. Work is in stream order and asynchronous, unless a method says that it waits.

What is nothing never reaches a device, whose driver refuses some of it: arrays without elements have memory,
copies of no bytes and launches of no blocks are left out, and a graph in which nothing is asked for is
`NOTHING`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from graphc_runtime.cuda.schedule import Launch, Step
from graphc_runtime.errors import LoadError, Origin
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc_runtime.cuda.asks import Ask, Prepared
    from graphc_runtime.cuda.libraries import Asked


# The graph of what asks for nothing.
NOTHING = 0


Sizes: TypeAlias = tuple[int, int, int]


@record(frozen=True)
class KernelLaunch:
    """A launch, without its arguments and the stream.

    Attributes:
        function: from `Driver.function`.
        grid, block: blocks, and threads of a block.
        types: "pointer" or the dtype of each argument.
        shared: bytes of dynamic shared memory.
        cooperative: all blocks have to run at the same time.
    """

    function: int
    grid: Sizes
    block: Sizes
    types: tuple[str, ...]
    shared: int = 0
    cooperative: bool = False


class NoDeviceError(LoadError):
    """There is no CUDA device or driver here."""


class DriverError(RuntimeError):
    """The driver reports an error.

    Attributes:
        code: the driver's number; 2 is out of memory.
        call: the function of the driver.
        step: what was being done, if it was a step of a schedule.
    """

    def __init__(self, message: str, code: int = 0, call: str = "", step: Step | None = None) -> None:
        super().__init__(message)
        self.code, self.call, self.step = code, call, step
        self._message = message

    def at(self, step: Step, where: Callable[[str], Origin] | None = None) -> DriverError:
        """The same error, with what was being done.

        Args:
            step: which step.
            where: gives what is known of a node of the graph, whose positions are `op` of compiled steps.
        """
        found = type(self)(f"{self._message}{place(step, where)}", self.code, self.call, step)
        found._message = self._message
        return found

    def because(self, what: str) -> DriverError:
        """The same error, with what the device was asked for."""
        return type(self)(f"{self._message}\n  {what}", self.code, self.call)


class DeviceMemoryError(DriverError, MemoryError):
    """The device has not enough memory; what else there is can still be used."""


def place(step: Step, where: Callable[[str], Origin] | None = None) -> str:
    """Purpose of a step and the user's line, as the end of a message."""
    is_node = step.op[:1] == "n" and step.op[1:].isdigit()
    origin = where(step.op) if where is not None and is_node else Origin(step.line)
    op, line = origin.op or ("" if is_node else step.op), origin.line
    kernel = f" of {step.kernel}" if isinstance(step, Launch) else ""
    found = f"\n  in: {step.kind}{kernel}" + (f" for {op}" if op else "")
    return found + (f"\n  made at {line}" if line else "")


class Driver(Protocol):
    """A device.

    Attributes:
        name: of the device.
        arch: its architecture, such as "sm_90".
        ordinal: its number.
        main_stream: the stream that arrays are ordered by; all functions share it.
    """

    name: str
    arch: str
    ordinal: int
    main_stream: int

    def load(self, ptx: str, cubin: Mapping[str, bytes]) -> int:
        """A module of the machine code for `arch` if there is some, else of the PTX.

        Raises:
            DriverError: the driver cannot compile or load it; the message has its log.
        """

    def unload(self, module: int) -> None:
        """Removes a module, whose kernels no longer run."""

    def function(self, module: int, name: str, shared: int = 0) -> int:
        """A kernel, which may be launched with `shared` bytes of dynamic shared memory."""

    def allocate(self, nbytes: int, stream: int) -> int:
        """Address of memory, a multiple of 256.

        Raises:
            DeviceMemoryError: there is not enough.
        """

    def free(self, address: int, stream: int) -> None:
        """Gives memory back."""

    def upload(self, address: int, array: np.ndarray, stream: int) -> None:
        """Copies a contiguous array to the device; it may be changed at once."""

    def download(self, array: np.ndarray, address: int, stream: int) -> None:
        """Copies from the device to a contiguous array, and waits."""

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copies within the device."""

    def launch(self, asked: KernelLaunch, values: Sequence[int | float], stream: int) -> None:
        """Runs a kernel with some arguments."""

    def start_libraries(self, names: Iterable[str]) -> frozenset[str]:
        """Readies libraries; returns which of these there are, and may be used.

        Args:
            names: of `graphc_runtime.cuda.libraries.LIBRARIES`.

        Raises:
            DriverError: one does not start.
        """

    def library_memory(self, asked: Asked) -> int:
        """Bytes that a library needs for intermediate results of a request."""

    def ask(self, asked: Asked, addresses: Sequence[int], stream: int) -> None:
        """Asks a library, which has been readied.

        Args:
            asked: for what.
            addresses: of its arrays, and of memory for intermediate results if it needs some.
            stream: in which; a product that is captured has to have been asked for before.
        """

    def prepare(self, asks: Sequence[Ask], places: int, stream: int) -> Prepared:
        """Prepares a call that is made again and again, with other addresses; any number of threads may call
        it.

        Args:
            asks: what, in this order; errors say which step it was.
            places: how many addresses there are.
            stream: in which.
        """

    def new_stream(self) -> int:
        """A stream, ordered with the streams that other libraries use by default."""

    def synchronise(self, stream: int) -> None:
        """Waits for a stream."""

    def new_event(self, *, timing: bool = False) -> int:
        """An event; with `timing`, `elapsed` can be asked."""

    def record(self, event: int, stream: int) -> None:
        """Makes an event of all that a stream has been asked for."""

    def wait(self, event: int, stream: int) -> None:
        """Makes later work of a stream wait for an event."""

    def elapsed(self, first: int, last: int) -> float:
        """Milliseconds between two events, for which it waits."""

    def drop_event(self, event: int) -> None:
        """Forgets an event."""

    def begin_capture(self, stream: int) -> None:
        """From now on, what this thread asks of a stream is written down instead of done."""

    def end_capture(self, stream: int, old: int = 0) -> int:
        """A graph of what has been written down, ready to be replayed; `NOTHING` if that is nothing.

        Args:
            stream: that capture began in.
            old: a graph that is not needed any more. If it is of the same launches, it is given the new
                arguments, which takes less than a graph of its own.
        """

    def replay(self, graph: int, stream: int) -> None:
        """Does what a graph holds."""

    def drop_graph(self, graph: int) -> None:
        """Forgets a graph."""

    def memory(self) -> tuple[int, int]:
        """Bytes of the device that are free, and all."""
