# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time that kernels will take on a device, from counts: no device is needed.

A call is recorded at its full sizes by a driver without memory (`launches`). Some blocks of each launch are
interpreted on memory without content, which counts sectors, bytes, operations and barriers (`counted`). PTX
says how many bytes a thread asks for before it needs one of them, ptxas how many blocks fit on a
multiprocessor. The time of a launch is the largest of what memory, its sectors, and arithmetic need, in full
waves of blocks (`predicted`). tests/unit/gpu/test_performance.py holds the model against measured times.

What it does not know: the second-level cache, where a kernel reads what another one has just written;
conflicts of banks; reads at places that values say, since memory has no content.
"""

from __future__ import annotations

import importlib.util
import math
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from graphc.passes.gpu._kernel import H200, Machine
from graphc_runtime.cuda.array import DeviceArray
from graphc_runtime.cuda.array import Memory as DeviceMemory
from graphc_runtime.cuda.driver import KernelLaunch
from graphc_tools.gpu.interpreter import Kernel
from graphc_tools.gpu.memory import WARP, Access, Memory, Region
from graphc_tools.gpu.simulated import SimulatedDriver

SECTOR = 32
# Sectors of a request below which it counts as narrow: half of 8 bytes a thread.
_NARROW = 6


@dataclass(frozen=True)
class Launch:
    """A kernel that a call asks for."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[int | float, ...]
    shared: int

    @property
    def count(self) -> int:
        """Number of blocks."""
        return math.prod(self.grid)


@dataclass
class Counts:
    """Work of the blocks that were interpreted.

    Attributes:
        requests, sectors: of loads of global memory, by warps; a sector has 32 bytes.
        stored_requests, stored_sectors: of stores.
        loaded, stored: bytes of sectors that a block touches, each counted once for the block.
        operations: of warps.
        barriers: of blocks.
        blocks: how many were interpreted.
    """

    requests: int = 0
    sectors: int = 0
    stored_requests: int = 0
    stored_sectors: int = 0
    loaded: int = 0
    stored: int = 0
    operations: int = 0
    barriers: int = 0
    blocks: int = 0
    _touched: tuple[list[np.ndarray], list[np.ndarray]] = field(default_factory=lambda: ([], []))

    def add(self, addresses: np.ndarray, width: int, access: Access, *, stored: bool) -> None:
        """An access of `width` bytes by each of some threads."""
        first, last = addresses // SECTOR, (addresses + width - 1) // SECTOR
        sectors = (first[:, None] + np.arange(int((last - first).max()) + 1)).clip(max=last[:, None])
        warps = access.threads // WARP
        several = len(np.unique(((warps[:, None] << 48) | (sectors & ((1 << 48) - 1))).ravel()))
        requests = len(np.unique(warps))
        if stored:
            self.stored_requests += requests
            self.stored_sectors += several
        else:
            self.requests += requests
            self.sectors += several
        self._touched[stored].append(np.unique(sectors))

    def end_block(self) -> None:
        """The block is done."""
        loaded, stored = (len(np.unique(np.concatenate(part))) if part else 0 for part in self._touched)
        self.loaded, self.stored = self.loaded + SECTOR * loaded, self.stored + SECTOR * stored
        self._touched = ([], [])
        self.blocks += 1


class _Content(Region):
    """Memory without content: all it has is ones."""

    def __init__(self, address: int, counts: Counts) -> None:
        self.address, self.name, self._counts = address, "global memory", counts

    def forget(self) -> None:
        """Nothing is remembered."""

    def load(self, start: np.ndarray, dtype: np.dtype, count: int, access: Access) -> np.ndarray:
        self._counts.add(self.address + start, dtype.itemsize * count, access, stored=False)
        return np.ones((len(start), count), dtype)

    def store(self, start: np.ndarray, values: np.ndarray, access: Access) -> None:
        width = values.dtype.itemsize * math.prod(values.shape[1:])
        self._counts.add(self.address + start, width, access, stored=True)


class _Everywhere(Memory):
    def __init__(self, counts: Counts) -> None:
        super().__init__()
        self._counts = counts

    def find(self, address: int) -> Region | None:
        return _Content(address, self._counts)


def counted(kernel: Kernel, launch: Launch, blocks: int = 2) -> Counts:
    """Work of some blocks of a launch, which lie apart.

    Raises:
        KernelError: what the kernel does is wrong or undefined on a device.
    """
    counts = Counts()
    memory = _Everywhere(counts)
    for number in sorted({launch.count * i // blocks for i in range(blocks)}):
        done = kernel.run_blocks(
            [number], launch.grid, launch.block, launch.arguments, memory, launch.shared, counting=True
        )
        counts.operations += done.operations
        counts.barriers += done.interval - 1
        counts.end_block()
    return counts


class _Recorder(SimulatedDriver):
    """A driver that has addresses, and no memory behind them: it writes down the launches."""

    def __init__(self, kernels: Mapping[str, Kernel]) -> None:
        self.asked: list[Launch] = []
        super().__init__(kernels, 1 << 50)

    def _ask(self, stream: int, work: Callable[[], None], what: str = "") -> None:
        pass

    def upload(self, address: int, array: np.ndarray, stream: int) -> None:
        pass

    def download(self, array: np.ndarray, address: int, stream: int) -> None:
        array[...] = 0

    def launch(self, asked: KernelLaunch, values: Sequence[int | float], stream: int) -> None:
        super().launch(asked, values, stream)
        self.asked.append(Launch(self.launches[-1], asked.grid, asked.block, tuple(values), asked.shared))


def launches(
    call: Callable[..., object],
    kernels: Mapping[str, Kernel],
    inputs: Sequence[tuple[str, tuple[int, ...]]],
    use: Callable[[SimulatedDriver], None],
) -> list[Launch]:
    """The launches of a call with arrays of these dtypes and sizes, which may be larger than any memory.

    Args:
        call: a function for a device.
        kernels: its kernels.
        inputs: dtype and shape of each.
        use: makes a driver that of the device.
    """
    driver = _Recorder(kernels)
    use(driver)
    arrays = []
    for dtype, shape in inputs:
        nbytes = np.dtype(dtype).itemsize * math.prod(shape)
        arrays.append(DeviceArray(DeviceMemory(driver, nbytes, driver.main_stream), dtype, shape))
    call(*arrays)
    return driver.asked


def bytes_in_flight(ptx: str) -> dict[str, int]:
    """Bytes that a thread of each entry asks global memory for before it needs one of them.

    The most in a basic block between barriers and stores: ptxas moves loads before what uses them, but for
    those whose address is loaded itself.
    """
    return {name: max(map(_loaded_together, _blocks(body)), default=0) for name, body in _bodies(ptx)}


def _blocks(body: Sequence[str]) -> Iterator[list[str]]:
    found: list[str] = []
    for line in body:
        text = line.strip()
        if text.endswith(":") or text.startswith(("bar", "st.global", "atom", "red", "bra", "@")):
            yield found
            found = []
        else:
            found.append(text)
    yield found


def _loaded_together(block: Sequence[str]) -> int:
    """Bytes of the loads of a basic block none of which needs another one's."""
    most = now = 0
    late = set[str]()
    for text in block:
        names = re.findall(r"%\w+", text)
        if text.startswith("ld.global"):
            if names[-1] in late:
                most, now, late = max(most, now), 0, set()
            size = int(re.findall(r"\.[busf](\d+)\s", text)[0]) // 8
            now += size * max(len(names) - 1, 1)
            late.update(names[:-1])
        elif names and names[0] not in late and any(name in late for name in names[1:]):
            late.add(names[0])
    return max(most, now)


def _bodies(ptx: str) -> Iterator[tuple[str, list[str]]]:
    parts = re.split(r"\.entry\s+(\w+)", ptx)[1:]
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        yield name, body.splitlines()


@dataclass(frozen=True)
class Resources:
    """Registers of a thread, and bytes of shared memory that the kernel declares."""

    registers: int
    shared: int


def ptxas() -> str | None:
    """NVIDIA's assembler, of the wheel nvidia-cuda-nvcc-cu12; None where it is not installed."""
    spec = importlib.util.find_spec("nvidia") and importlib.util.find_spec("nvidia.cuda_nvcc")
    folders = spec.submodule_search_locations or () if spec else ()
    return next((str(path) for folder in folders if (path := Path(folder, "bin", "ptxas")).is_file()), None)


def resources(ptx: str, arch: str = "sm_90") -> dict[str, Resources]:
    """Resources of each entry, by ptxas.

    Raises:
        FileNotFoundError: it is not installed.
        ValueError: it refuses the PTX.
    """
    program = ptxas()
    if program is None:
        raise FileNotFoundError("ptxas is not installed: pip install nvidia-cuda-nvcc-cu12")
    with TemporaryDirectory() as folder:
        Path(folder, "kernels.ptx").write_text(ptx, encoding="utf-8")
        command = [program, "-v", f"-arch={arch}", "kernels.ptx", "-o", "kernels.cubin"]
        made = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    if made.returncode:
        raise ValueError(made.stdout + made.stderr)
    found: dict[str, Resources] = {}
    name = ""
    for text in made.stderr.splitlines():
        if entry := re.search(r"Compiling entry function '(\w+)'", text):
            name = entry.group(1)
        elif used := re.search(r"Used (\d+) registers", text):
            shared = re.search(r"(\d+) bytes smem", text)
            found[name] = Resources(int(used.group(1)), int(shared.group(1)) if shared else 0)
    return found


@dataclass(frozen=True)
class Prediction:
    """A launch, and the microseconds that each part of a device needs for it.

    Attributes:
        launch: the kernel.
        counts: of the blocks that were interpreted.
        memory: with the bytes that threads have asked for at a time.
        sectors: between the second-level cache and multiprocessors.
        arithmetic: of all operations.
        waves: how often multiprocessors are filled with blocks, over how often that would be without a rest.
        total: microseconds of the launch.
    """

    launch: Launch
    counts: Counts
    memory: float
    sectors: float
    arithmetic: float
    waves: float
    total: float


def predicted(
    launch: Launch, counts: Counts, in_flight: int, needs: Resources, machine: Machine = H200
) -> Prediction:
    """The time of a launch.

    Args:
        launch: the kernel at its sizes.
        counts: of some of its blocks.
        in_flight: bytes that a thread asks for at a time.
        needs: of the kernel.
        machine: the device.
    """
    threads = math.prod(launch.block)
    room = [
        machine.threads // threads,
        machine.blocks,
        machine.registers // max(threads * needs.registers, 1),
    ]
    if shared := launch.shared + needs.shared:
        room.append(machine.shared // shared)
    resident = max(min(room), 1)
    active = min(resident, -(-launch.count // machine.processors)) * threads
    processors = min(launch.count, machine.processors)
    scale = launch.count / counts.blocks
    loaded = counts.loaded
    if loaded / counts.blocks * min(resident * machine.processors, launch.count) > machine.cache:
        loaded = counts.sectors * SECTOR  # what is read again comes from memory again
    # Little's law; stores wait for nothing.
    wanted = machine.bandwidth / machine.processors * machine.latency
    share = min(1.0, active * max(in_flight, 1) / wanted) * processors / machine.processors
    width = (counts.sectors + counts.stored_sectors) / max(counts.requests + counts.stored_requests, 1)
    reached = machine.bandwidth * (machine.narrow if width < _NARROW else 1.0)
    memory = max(loaded / share, loaded + counts.stored) * scale / reached
    sectors = (counts.sectors + counts.stored_sectors) * scale
    sectors /= machine.sectors * machine.clock * processors
    arithmetic = counts.operations * scale / (machine.operations * machine.clock * processors)
    full = launch.count / (machine.processors * resident)
    waves = math.ceil(full) / full if full > 1 else 1.0
    # Blocks that end early make room at once: the last wave costs what its longest block does.
    total = max(memory, sectors, arithmetic) * waves + machine.launch
    return Prediction(launch, counts, memory, sectors, arithmetic, waves, total)


def predictions(ptx: str, kernels: Mapping[str, Kernel], asked: Sequence[Launch]) -> list[Prediction]:
    """The time of each launch of a call.

    Args:
        ptx: code of all kernels.
        kernels: the same for the interpreter.
        asked: as `launches` gives them.
    """
    in_flight, needs = bytes_in_flight(ptx), resources(ptx)
    return [
        predicted(launch, counted(kernels[launch.name], launch), in_flight[launch.name], needs[launch.name])
        for launch in asked
    ]
