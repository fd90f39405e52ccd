# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A driver without a device: memory of the host under addresses of its own, kernels by the interpreter.

What is asked for is put into the queue of its stream and done as late as the order of streams and events
allows, so that a schedule that forgets to wait reads what is not there yet. Freed memory is gone; what is
left at the end can be asked for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from graphc_runtime.cuda.asks import Ask, Prepared, ask_all
from graphc_runtime.cuda.driver import NOTHING, DeviceMemoryError, DriverError, KernelLaunch
from graphc_runtime.cuda.gemm import Gemm
from graphc_runtime.cuda.libraries import LIBRARIES, Asked, Request, can_be_captured, library_of
from graphc_tools.gpu import simulated_libraries
from graphc_tools.gpu.interpreter import Kernel
from graphc_tools.gpu.memory import LaunchError, Memory, Region
from graphc_tools.gpu.ptx_entries import entries

# Far from addresses of the host, so that one that is taken for the other is noticed.
_FIRST = 0x7_0000_0000_0000
_ALIGN = 256
_CAPTURED = -1
# What other libraries use.
_DEFAULT_STREAM = 1
Work = Callable[[], None]


@dataclass
class _Stream:
    """The work that a stream has been given, and how much of it has been done."""

    queue: deque[Work] = field(default_factory=deque)
    done: int = 0

    @property
    def asked(self) -> int:
        """Amount of work that it has been given."""
        return self.done + len(self.queue)


@dataclass(frozen=True)
class _Node:
    """A part of a graph: the kernel's name, or what else it is, and how it is done."""

    what: str
    work: Work


@dataclass(frozen=True)
class Transfer:
    """A copy: "upload", "download" or "copy", and its bytes."""

    kind: str
    nbytes: int


class SimulatedDriver:
    """A device as `graphc_runtime.cuda.driver.Driver` has it.

    Args:
        kernels: what PTX entries do, by name.
        total: bytes of memory.
        poison: whether new memory counts as unwritten, so that reading it is an error.
        library: whether the vendor's libraries are there, or which.

    Attributes:
        transfers: all copies, in the order they were asked for.
        launches: names of the kernels that were launched.
        products, requests: what libraries were asked for.
        prepared: how often something was prepared that is asked for again and again.
        captured, updated, replayed: how many graphs were made, given other arguments, launched.
    """

    name, arch, ordinal = "simulated", "sm_90", 0

    def __init__(
        self,
        kernels: Mapping[str, Kernel] | None = None,
        total: int = 1 << 30,
        *,
        poison: bool = True,
        library: bool | Iterable[str] = False,
    ) -> None:
        self._kernels = {} if kernels is None else kernels
        self._total, self._poison = total, poison
        self._memory = Memory()
        self._live: dict[int, int] = {}
        self._next = _FIRST
        self._streams: dict[int, _Stream] = {}
        self._events: dict[int, tuple[int, int] | None] = {}
        self._functions: dict[int, str] = {}
        self._graphs: dict[int, list[_Node]] = {}
        self._modules: set[int] = set()
        # Streams that are captured, the one it began in first; empty while nothing is.
        self._capturing: list[int] = []
        self._captured_work: list[_Node] = []
        self._handles = 16
        self.transfers: list[Transfer] = []
        self.launches: list[str] = []
        there = (LIBRARIES if library else ()) if isinstance(library, bool) else library
        self._libraries: frozenset[str] = frozenset(there)
        self._started: frozenset[str] = frozenset()
        self.products: list[Gemm] = []
        self.requests: list[Request] = []
        # What the libraries have loaded.
        self._known: set[Asked] = set()
        self.prepared = self.captured = self.updated = self.replayed = 0
        self._streams[_DEFAULT_STREAM] = _Stream()
        self.main_stream = self.new_stream()

    def use(self, kernels: Mapping[str, Kernel]) -> None:
        """From now on the names of kernels stand for these, in what is asked for later."""
        self._kernels = kernels

    @property
    def live(self) -> dict[int, int]:
        """Bytes of what has been allocated and not given back, by address."""
        return dict(self._live)

    def _handle(self) -> int:
        self._handles += 1
        return self._handles

    def load(self, ptx: str, cubin: Mapping[str, bytes]) -> int:
        if not (ptx or cubin):
            raise DriverError("the code is empty", 200, "cuModuleLoadDataEx")
        for name, widths in entries(ptx).items():
            if name in self._kernels:
                types = self._kernels[name].parameter_types()
                wanted = [8 if kind == "pointer" else np.dtype(kind).itemsize for kind in types]
                if widths != wanted:
                    raise LaunchError(
                        f"the entry {name} of the PTX takes {widths} bytes, the kernel {wanted}"
                    )
        module = self._handle()
        self._modules.add(module)
        return module

    def unload(self, module: int) -> None:
        self._modules.remove(module)

    def function(self, module: int, name: str, shared: int = 0) -> int:
        if module not in self._modules or name not in self._kernels:
            raise DriverError(f"named symbol not found: {name!r}", 500, "cuModuleGetFunction")
        function = self._handle()
        self._functions[function] = name
        return function

    def allocate(self, nbytes: int, stream: int) -> int:
        used = sum(self._live.values())
        if used + nbytes > self._total:
            raise DeviceMemoryError(
                f"out of memory: {nbytes:,} bytes were asked for, {self._total - used:,} are free",
                2,
                "cuMemAllocAsync",
            )
        address = self._next
        # Something lies between any two, which nobody may touch.
        self._next += -(-max(nbytes, 1) // _ALIGN) * _ALIGN + _ALIGN
        self._live[address] = nbytes

        def begin() -> None:
            data = np.full(nbytes, 0xFF, np.uint8)
            name = f"the {nbytes} bytes at {address:#x}"
            self._memory.regions[address] = Region(address, data, name, initialised=not self._poison)

        self._ask(stream, begin, "allocate")
        return address

    def free(self, address: int, stream: int) -> None:
        if address not in self._live:
            raise DriverError(
                f"{address:#x} is given back, but is no memory, or was before", 1, "cuMemFreeAsync"
            )
        del self._live[address]
        self._ask(stream, lambda: self._end(address), "free")

    def _end(self, address: int) -> None:
        del self._memory.regions[address]

    def upload(self, address: int, array: np.ndarray, stream: int) -> None:
        self._refuse_capture(stream, "cuMemcpyHtoDAsync")
        raw = _bytes(array).copy()
        self._require(address, raw.size, "cuMemcpyHtoDAsync")
        self.transfers.append(Transfer("upload", raw.size))
        self._ask(stream, lambda: self._write(address, raw))

    def download(self, array: np.ndarray, address: int, stream: int) -> None:
        self._refuse_capture(stream, "cuMemcpyDtoHAsync")
        raw = _bytes(array)
        self._require(address, raw.size, "cuMemcpyDtoHAsync")
        self.transfers.append(Transfer("download", raw.size))
        self.synchronise(stream)
        raw[...] = self._read(address, raw.size)

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        self._require(target, nbytes, "cuMemcpyDtoDAsync")
        self._require(source, nbytes, "cuMemcpyDtoDAsync")
        self.transfers.append(Transfer("copy", nbytes))
        self._ask(stream, lambda: self._write(target, self._read(source, nbytes)), "copy")

    def launch(self, asked: KernelLaunch, values: Sequence[int | float], stream: int) -> None:
        name = self._functions.get(asked.function)
        if name is None:
            raise DriverError(f"invalid handle {asked.function}", 400, "cuLaunchKernel")
        kernel = self._kernels[name]
        wanted = kernel.parameter_types()
        if list(asked.types) != wanted:
            raise LaunchError(f"kernel {name} takes {wanted}, given {list(asked.types)}")
        for kind, value in zip(wanted, values, strict=True):
            if kind == "pointer" and int(value) not in self._live and not self._is_inside(int(value)):
                raise LaunchError(f"kernel {name} is given the address {int(value):#x}, where nothing lives")
        grid, block, arguments, shared = asked.grid, asked.block, list(values), asked.shared
        kernel.check(grid, block, arguments, shared)
        self.launches.append(name)
        self._ask(stream, lambda: kernel.run(grid, block, arguments, self._memory, shared), name)

    def start_libraries(self, names: Iterable[str]) -> frozenset[str]:
        if self._capturing:
            raise DriverError("operation not permitted when stream is capturing", 900, "cublasCreate")
        self._started = self._libraries & frozenset(names)
        return self._started

    def library_memory(self, asked: Asked) -> int:
        if isinstance(asked, Gemm):
            return 0
        return simulated_libraries.elements_of_memory(asked) * np.dtype(asked.dtype).itemsize

    def ask(self, asked: Asked, addresses: Sequence[int], stream: int) -> None:
        if library_of(asked) not in self._started:
            raise DriverError(f"the library for {asked} has not been started", 1, library_of(asked))
        if isinstance(asked, Gemm):
            simulated_libraries.check(asked)
        for address in addresses:
            if not self._is_inside(address):
                raise LaunchError(f"{asked} is given the address {address:#x}, where nothing lives")
        if not self._captures(stream):
            self._known.add(asked)
        elif asked not in self._known or not can_be_captured(asked):
            raise DriverError("it is captured before it was asked for", 900, library_of(asked))
        given = tuple(addresses)
        if isinstance(asked, Gemm):
            self.products.append(asked)
            self._ask(stream, lambda: simulated_libraries.multiply(self._memory, asked, given), f"{asked}")
        else:
            self.requests.append(asked)
            self._ask(stream, lambda: simulated_libraries.compute(self._memory, asked, given), f"{asked}")

    def prepare(self, asks: Sequence[Ask], places: int, stream: int) -> Prepared:
        self.prepared += 1

        def ask(addresses: Sequence[int]) -> None:
            if len(addresses) != places:
                raise LaunchError(f"{len(addresses)} addresses are given for {places} places")
            ask_all(self, asks, addresses, stream)

        return ask

    def _is_inside(self, address: int) -> bool:
        return any(start <= address < start + max(size, 1) for start, size in self._live.items())

    def new_stream(self) -> int:
        stream = self._handle()
        self._streams[stream] = _Stream()
        return stream

    def synchronise(self, stream: int) -> None:
        self._refuse_capture(stream, "cuStreamSynchronize")
        self._advance(stream, self._stream(stream).asked)

    def new_event(self, *, timing: bool = False) -> int:
        event = self._handle()
        self._events[event] = None
        return event

    def record(self, event: int, stream: int) -> None:
        if self._captures(stream):
            # In a graph the order of steps is that in which they were asked for.
            self._events[event] = (_CAPTURED, 0)
        else:
            self._events[event] = (stream, self._stream(stream).asked)

    def wait(self, event: int, stream: int) -> None:
        recorded = self._events[event]
        if recorded is None:
            return
        if recorded[0] == _CAPTURED:
            self._capturing += [stream] if self._capturing else []
        elif self._captures(stream):
            raise DriverError("a captured stream waits for one that is not", 905, "cuStreamWaitEvent")
        else:
            self._ask(stream, lambda: self._advance(*recorded))

    def elapsed(self, first: int, last: int) -> float:
        return 0.0

    def drop_event(self, event: int) -> None:
        del self._events[event]

    def begin_capture(self, stream: int) -> None:
        if self._capturing:
            raise DriverError("another stream is captured", 900, "cuStreamBeginCapture")
        self._capturing, self._captured_work = [stream], []

    def end_capture(self, stream: int, old: int = 0) -> int:
        if self._capturing[:1] != [stream]:
            raise DriverError("the stream does not capture", 901, "cuStreamEndCapture")
        nodes, self._capturing = self._captured_work, []
        if old and not nodes:
            self.drop_graph(old)
        if not nodes:
            return NOTHING
        if old:
            # Of the same kernels and copies, in the same order.
            is_same = [node.what for node in self._graphs[old]] == [node.what for node in nodes]
            if is_same:
                self._graphs[old] = nodes
                self.updated += 1
                return old
            self.drop_graph(old)
        graph = self._handle()
        self._graphs[graph] = nodes
        self.captured += 1
        return graph

    def replay(self, graph: int, stream: int) -> None:
        if graph == NOTHING:
            return
        if graph not in self._graphs:
            raise DriverError(f"invalid handle {graph} of a graph", 400, "cuGraphLaunch")
        self._refuse_capture(stream, "cuGraphLaunch")
        self.replayed += 1
        for node in self._graphs[graph]:
            self._ask(stream, node.work)

    def drop_graph(self, graph: int) -> None:
        if graph == NOTHING:
            return
        del self._graphs[graph]

    def memory(self) -> tuple[int, int]:
        return self._total - sum(self._live.values()), self._total

    def _ask(self, stream: int, work: Work, what: str = "") -> None:
        if self._captures(stream):
            self._captured_work.append(_Node(what, work))
        else:
            self._stream(stream).queue.append(work)

    def _stream(self, stream: int) -> _Stream:
        if stream not in self._streams:
            raise DriverError(f"invalid handle {stream} of a stream", 400, "cuStream")
        return self._streams[stream]

    def _advance(self, stream: int, count: int) -> None:
        """Does what a stream has been asked for, up to a place in its queue."""
        state = self._stream(stream)
        while state.done < count:
            state.done += 1
            state.queue.popleft()()

    def _captures(self, stream: int) -> bool:
        return stream in self._capturing

    def _refuse_capture(self, stream: int, call: str) -> None:
        if self._captures(stream):
            raise DriverError("operation not permitted when stream is capturing", 900, call)

    def _require(self, address: int, nbytes: int, call: str) -> None:
        for start, size in self._live.items():
            if start <= address and address + nbytes <= start + size:
                return
        if nbytes:
            raise DriverError(f"{nbytes} bytes at {address:#x} are not of the device", 1, call)

    def _write(self, address: int, raw: np.ndarray) -> None:
        if raw.size:
            region = self._region(address)
            first = address - region.address
            region.data[first : first + raw.size] = raw
            region.initialised[first : first + raw.size] = True

    def _read(self, address: int, nbytes: int) -> np.ndarray:
        if not nbytes:
            return np.empty(0, np.uint8)
        region = self._region(address)
        first = address - region.address
        if not region.initialised[first : first + nbytes].all():
            raise DriverError(
                f"{region.name} are copied, but not all of them have been written", 1, "cuMemcpy"
            )
        return region.data[first : first + nbytes].copy()

    def _region(self, address: int) -> Region:
        region = self._memory.find(address)
        if region is None:
            raise DriverError(f"{address:#x} is not of the device, or not yet, or no longer", 1, "cuMemcpy")
        return region


def _bytes(array: np.ndarray) -> np.ndarray:
    if not array.flags.c_contiguous:
        raise DriverError("an array of the host that is copied is not contiguous", 1, "cuMemcpy")
    return array.reshape(-1).view(np.uint8) if array.size else np.empty(0, np.uint8)
