# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A device of this machine, through the CUDA driver's library.

Small blocks of memory that were given back are kept for the next one who asks: the driver's pool would do the
same, for a call of the driver to get one and a call to give it back, which for small results take longer than
all else that a call does on the host. Any number of threads may use them: each step that matters is one of a
list or of a dict.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import numpy as np

from graphc_runtime.cuda.asks import Ask, AskLaunch, AskLibrary, Prepared
from graphc_runtime.cuda.calls import Bound, Calls, LibraryCalls
from graphc_runtime.cuda.driver import NOTHING, DeviceMemoryError, DriverError, KernelLaunch, NoDeviceError
from graphc_runtime.cuda.libraries import Asked, find_library
from graphc_runtime.cuda.prepared import Packer, PreparedCalls, Records, taken_apart
from graphc_runtime.cuda.started_libraries import Device, Find, Libraries

_OUT_OF_MEMORY = 2
# The graph is of other launches.
_NO_UPDATE = 910
# Numbers of the driver's interface (cuda.h).
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76
_MAX_DYNAMIC_SHARED, _RELEASE_THRESHOLD, _NO_TIMING, _THREAD_LOCAL = 8, 4, 2, 1
_LOG_BYTES = 8192
_ERROR_LOG, _ERROR_LOG_SIZE = 5, 6
_STATIC_SHARED = 48 << 10
# Blocks that are kept have 256 bytes, or twice as many and so on, up to 1 MiB; of each size there are at most
# so many, 64 MiB in all.
_LEAST_BITS, _KINDS, _KEPT = 8, 13, 32
_LARGEST = 1 << (_LEAST_BITS + _KINDS - 1)
# After these, the context of the process is of no use.
_STICKY = frozenset((700, 702, 704, 714, 715, 716, 717, 718, 719))


class _Packers(threading.local):
    def __init__(self) -> None:
        self.by_types: dict[tuple[str, ...], Packer] = {}


class CudaDriver:
    """A device of this machine; see `graphc_runtime.cuda.driver.Driver` for the methods.

    Args:
        ordinal: its number.
        calls: functions of the driver.
        find: gives a library by its name, for a version of the driver.

    Raises:
        NoDeviceError: there is no driver, or no such device.
    """

    def __init__(
        self,
        ordinal: int = 0,
        calls: Calls | None = None,
        find: Find = find_library,
    ) -> None:
        self._calls = LibraryCalls() if calls is None else calls
        try:
            self._call("cuInit", 0)
            (count,) = self._call("cuDeviceGetCount")
        except DriverError as error:
            raise NoDeviceError(f"the CUDA driver does not start: {error}") from None
        if not 0 <= ordinal < count:
            raise NoDeviceError(f"there is no CUDA device {ordinal}; the driver has found {count}")
        (self._device,) = self._call("cuDeviceGet", ordinal)
        self.ordinal = ordinal
        major, minor = (
            self._call("cuDeviceGetAttribute", attribute, self._device)[0]
            for attribute in (_CAPABILITY_MAJOR, _CAPABILITY_MINOR)
        )
        self.arch = f"sm_{major}{minor}"
        self.name = self._calls.device_name(self._device)
        (self._context,) = self._call("cuDevicePrimaryCtxRetain", self._device)
        self._threads = threading.local()
        self._packers = _Packers()
        # Blocks of the main stream (what others are asked for may be captured, and is in another order), and
        # where those that are in use go.
        self._blocks: list[list[int]] = [[] for _ in range(_KINDS)]
        self._home: dict[int, list[int]] = {}
        # Streams that are captured.
        self._captured: set[int] = set()
        # Launches of graphs, by graph and stream.
        self._replays: dict[tuple[int, int], Bound] = {}
        self._libraries = Libraries(find)
        self._keep_pool()
        self.main_stream = self.new_stream()

    def _keep_pool(self) -> None:
        """Memory that is given back stays in the pool instead of going to the system at each wait."""
        self._enter()
        (pool,) = self._call("cuDeviceGetDefaultMemPool", self._device)
        threshold = ctypes.c_uint64((1 << 64) - 1)
        self._calls.pool_attribute(pool, _RELEASE_THRESHOLD, threshold)

    def _enter(self) -> None:
        """Makes the context current in this thread."""
        if not hasattr(self._threads, "entered"):
            self._call("cuCtxSetCurrent", self._context)
            self._threads.entered = True

    def _ask(self, name: str, *arguments: int) -> tuple[int, ...]:
        """A function of the driver that needs the context."""
        self._enter()
        return self._call(name, *arguments)

    def _call(self, name: str, *arguments: int) -> tuple[int, ...]:
        status, *found = self._calls.call(name, *arguments)
        if status:
            raise self._error(name, status)
        return tuple(found)

    def _error(self, name: str, status: int, more: str = "") -> DriverError:
        if status == _OUT_OF_MEMORY:
            return DeviceMemoryError(f"the device is out of memory ({name}){more}", status, name)
        text = f"{self._calls.error_text(status)} ({name}, error {status}){more}"
        if status in _STICKY:
            text += (
                "\n  A kernel launched before has failed. The device cannot be used by this process any more."
            )
        return DriverError(text, status, name)

    def load(self, ptx: str, cubin: Mapping[str, bytes]) -> int:
        self._enter()
        image = ctypes.create_string_buffer(cubin.get(self.arch) or ptx.encode())
        log = ctypes.create_string_buffer(_LOG_BYTES)
        status, module = self._calls.load_module(image, {_ERROR_LOG: log, _ERROR_LOG_SIZE: _LOG_BYTES})
        if status:
            text = log.value.decode(errors="replace").strip()
            raise self._error("cuModuleLoadDataEx", status, f" for {self.arch}: {text:.2000}")
        return module

    def unload(self, module: int) -> None:
        self._ask("cuModuleUnload", module)

    def function(self, module: int, name: str, shared: int = 0) -> int:
        self._enter()
        status, function = self._calls.kernel(module, name)
        if status:
            raise self._error("cuModuleGetFunction", status, f" for the kernel {name!r}")
        if shared > _STATIC_SHARED:
            self._call("cuFuncSetAttribute", function, _MAX_DYNAMIC_SHARED, shared)
        return function

    def allocate(self, nbytes: int, stream: int) -> int:
        if nbytes > _LARGEST or stream != self.main_stream:
            return self._allocated(nbytes, stream)
        # Nothing needs some memory, too.
        kind = ((nbytes or 1) - 1 >> _LEAST_BITS).bit_length()
        kept = self._blocks[kind]
        try:
            address = kept.pop()
        except IndexError:
            address = self._allocated(1 << (_LEAST_BITS + kind), stream)
        self._home[address] = kept
        return address

    def _allocated(self, nbytes: int, stream: int) -> int:
        """Memory of the driver's pool."""
        self._enter()
        status, *found = self._calls.call("cuMemAllocAsync", max(nbytes, 1), stream)
        if status == _OUT_OF_MEMORY:
            self._give_back_blocks()
            status, *found = self._calls.call("cuMemAllocAsync", max(nbytes, 1), stream)
        if status == _OUT_OF_MEMORY:
            free, total = self.memory()
            more = f": {nbytes:,} bytes were asked for, {free:,} of {total:,} are free outside of the pool"
            raise self._error("cuMemAllocAsync", status, more)
        if status:
            raise self._error("cuMemAllocAsync", status)
        return found[0]

    def _give_back_blocks(self) -> None:
        for kept in self._blocks:
            with suppress(IndexError):  # one at a time: other threads take some meanwhile
                while True:
                    self._call("cuMemFreeAsync", kept.pop(), self.main_stream)

    def free(self, address: int, stream: int) -> None:
        kept = self._home.pop(address, None)
        if kept is not None and len(kept) < _KEPT:
            kept.append(address)
            return
        self._ask("cuMemFreeAsync", address, stream)

    def upload(self, address: int, array: np.ndarray, stream: int) -> None:
        if array.nbytes:
            self._enter()
            # Of memory that is not pinned, the driver has a copy when the call returns.
            self._call("cuMemcpyHtoDAsync", address, array.ctypes.data, array.nbytes, stream)

    def download(self, array: np.ndarray, address: int, stream: int) -> None:
        self._enter()
        if array.nbytes:
            self._call("cuMemcpyDtoHAsync", array.ctypes.data, address, array.nbytes, stream)
        self._call("cuStreamSynchronize", stream)

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        if nbytes:
            self._ask("cuMemcpyDtoDAsync", target, source, nbytes, stream)

    def launch(self, asked: KernelLaunch, values: Sequence[int | float], stream: int) -> None:
        self._enter()
        packer = self._packers.by_types.get(asked.types)
        if packer is None:
            packer = self._packers.by_types[asked.types] = Packer(asked.types)
        packer.pack_into(packer.slots, 0, *values)
        status = self._calls.launch(asked, stream, packer.address)
        if status:
            raise self._launch_error(status, asked)

    def _launch_error(self, status: int, asked: KernelLaunch) -> DriverError:
        more = f" with a grid of {asked.grid} blocks of {asked.block} threads"
        return self._error("cuLaunchKernel", status, more)

    def prepare(self, asks: Sequence[Ask], places: int, stream: int) -> Prepared:
        def failure(ask: Ask, status: int) -> DriverError:
            if isinstance(ask, AskLaunch):
                return self._launch_error(status, ask.launch)
            if isinstance(ask, AskLibrary):
                return self._libraries.of(ask.asked).failure(ask.asked, status)
            return self._error("cuMemcpyDtoDAsync", status)

        return PreparedCalls(
            self._calls, asks, places, stream, self._threads, self._enter, failure, self._libraries
        ).ask

    def start_libraries(self, names: Iterable[str]) -> frozenset[str]:
        (version,) = self._ask("cuDriverGetVersion")
        return self._libraries.start(names, version, Device(self._allocated, self.arch, self.main_stream))

    def library_memory(self, asked: Asked) -> int:
        self._enter()
        return self._libraries.of(asked).memory(asked)

    def ask(self, asked: Asked, addresses: Sequence[int], stream: int) -> None:
        self._enter()
        self._libraries.of(asked).ask(asked, addresses, stream, captured=stream in self._captured)

    def new_stream(self) -> int:
        return self._ask("cuStreamCreate", 0)[0]

    def synchronise(self, stream: int) -> None:
        self._ask("cuStreamSynchronize", stream)

    def new_event(self, *, timing: bool = False) -> int:
        return self._ask("cuEventCreate", 0 if timing else _NO_TIMING)[0]

    def record(self, event: int, stream: int) -> None:
        self._ask("cuEventRecord", event, stream)

    def wait(self, event: int, stream: int) -> None:
        self._ask("cuStreamWaitEvent", stream, event, 0)

    def elapsed(self, first: int, last: int) -> float:
        self._ask("cuEventSynchronize", last)
        status, milliseconds = self._calls.elapsed(first, last)
        if status:
            raise self._error("cuEventElapsedTime", status)
        return milliseconds

    def drop_event(self, event: int) -> None:
        self._ask("cuEventDestroy", event)

    def begin_capture(self, stream: int) -> None:
        self._ask("cuStreamBeginCapture", stream, _THREAD_LOCAL)
        self._captured.add(stream)

    def end_capture(self, stream: int, old: int = 0) -> int:
        self._enter()
        self._captured.discard(stream)
        (graph,) = self._call("cuStreamEndCapture", stream)
        try:
            status, count = self._calls.graph_nodes(graph)
            if status:
                raise self._error("cuGraphGetNodes", status)
            if old and not count:
                self.drop_graph(old)
            if not count:
                return NOTHING
            if old:
                status = self._calls.update_graph(old, graph)
                if not status:
                    return old
                self._call("cuGraphExecDestroy", old)
                if status != _NO_UPDATE:
                    raise self._error("cuGraphExecUpdate", status)
            return self._call("cuGraphInstantiate", graph, 0)[0]
        finally:
            self._call("cuGraphDestroy", graph)

    def replay(self, graph: int, stream: int) -> None:
        if graph == NOTHING:
            return
        self._enter()
        replay = self._replays.get((graph, stream))
        if replay is None:
            records = Records()
            records.add(self._calls.address("cuGraphLaunch"), graph, stream)
            replay = self._replays[graph, stream] = records.bound()
        found = replay()
        if found:
            raise self._error("cuGraphLaunch", taken_apart(found)[1])

    def drop_graph(self, graph: int) -> None:
        if graph == NOTHING:
            return
        self._enter()
        self._replays.clear()
        self._call("cuGraphExecDestroy", graph)

    def memory(self) -> tuple[int, int]:
        free, total = self._ask("cuMemGetInfo")
        return free, total


@functools.cache
def device(ordinal: int = 0) -> CudaDriver:
    """The driver of a device, of which a process has one.

    Raises:
        NoDeviceError: there is no driver, or no such device.
    """
    return CudaDriver(ordinal)
