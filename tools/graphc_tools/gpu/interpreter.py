# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs kernels of the gpu dialect, one block after the other, all threads of a block at once.

The threads that an operation is for are a mask: branches and loops narrow it. What a device leaves undefined
is an error: races between barriers, barriers that not all threads reach, shuffles of parts of warps,
indices outside of arrays, memory that nobody has written.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np

from graphc.ir.constants import element_dtype
from graphc_dialects._mlir import ir
from graphc_runtime.cuda.schedule import MAX_THREADS
from graphc_tools.gpu.memory import WARP, Access, KernelError, LaunchError, Memory, Region
from graphc_tools.gpu.values import Memref, Value, one

SHARED_LIMIT = 48 << 10
UNLIMITED = 512
DYNAMIC_LIMIT = 163 << 10  # of sm_80, the least of all
# A place that no region of global memory reaches.
SHARED_BASE, LOCAL_BASE = 1 << 56, 1 << 57


@dataclass(frozen=True)
class AsyncCopy:
    """Elements that threads wait for.

    Attributes:
        region, starts: where they will be.
        values: a row for each thread.
        threads: which have started the copy.
        where: the operation.
    """

    region: Region
    starts: np.ndarray
    values: np.ndarray
    threads: np.ndarray
    where: str

    def of(self, chosen: np.ndarray) -> AsyncCopy:
        """The part of some of the threads."""
        return AsyncCopy(
            self.region, self.starts[chosen], self.values[chosen], self.threads[chosen], self.where
        )


class Frame:
    """One block of a grid while it runs.

    Attributes:
        values: by the number of the SSA value.
        threads: how many there are.
        block: number of the block.
        shared: the dynamic shared memory.
        copies: those that threads have not waited for.
        phases: how many barriers of its own each warp has seen.
    """

    def __init__(self, launch: Launch, position: tuple[int, int, int], number: int, slots: int) -> None:
        self.launch, self.position, self.block = launch, position, number
        self.values: list[Value | None] = [None] * slots
        self.threads = launch.threads
        self.all = np.arange(self.threads)
        self.local = itertools.count(LOCAL_BASE, 1 << 32)
        dynamic = np.zeros(launch.dynamic, np.uint8)
        self.copies: list[AsyncCopy] = []
        self.phases = np.zeros(-(-self.threads // WARP), np.int32)
        self.shared = Region(SHARED_BASE + (1 << 40), dynamic, "dynamic shared memory", initialised=False)

    def array(self, slot: int) -> np.ndarray:
        """A value that is no memref."""
        value = self.values[slot]
        assert isinstance(value, np.ndarray)
        return value

    def memref(self, slot: int) -> Memref:
        """A value that is one."""
        value = self.values[slot]
        assert isinstance(value, Memref)
        return value

    def access(self, where: str, lanes: np.ndarray) -> Access:
        """Identity of these threads."""
        return Access(where, self.block, self.launch.interval, lanes, self.phases[lanes // WARP])

    def next_interval(self) -> None:
        """A barrier has been reached by all."""
        self.launch.interval += 1


Run: TypeAlias = Callable[[Frame, np.ndarray], None]


def describe(op: ir.Operation) -> str:
    """An operation and its place, for messages."""
    return f"{op.name} at {op.location}"


def require_aligned(region: Region, starts: np.ndarray, alignment: int, where: str) -> None:
    """Refuses addresses, given from the beginning of a region on, that are no multiples of so many bytes."""
    if ((starts + region.address) % alignment).any():
        raise KernelError(f"{where}: an address is no multiple of {alignment}")


@dataclass
class Launch:
    """A grid that runs.

    Attributes:
        grid, shape: blocks, and threads of a block, along x, y, z.
        dynamic: bytes of shared memory beyond attributions.
        interval: number of the current time between two barriers.
        counting: whether operations are counted, which takes time.
        operations: those that warps have done, an operation of a warp counted once.
    """

    grid: tuple[int, int, int]
    shape: tuple[int, int, int]
    dynamic: int = 0
    interval: int = 0
    counting: bool = False
    operations: int = 0
    ids: list[np.ndarray] = field(init=False)

    def __post_init__(self) -> None:
        x, y, z = self.shape
        self.threads = x * y * z
        linear = np.arange(self.threads)
        self.ids = [linear % x, linear // x % y, linear // (x * y)]


class Decoder:
    """Makes functions of operations, once for all blocks and launches.

    Args:
        decoders: by the name of an operation: takes the decoder and the operation, gives what runs it.
        call: finds a function of the module by its name.
    """

    def __init__(
        self, decoders: Callable[[Decoder, ir.Operation], Run], call: Callable[[str], ir.Operation]
    ) -> None:
        self._decode, self.call = decoders, call
        self._slots: dict[ir.Value, int] = {}

    @property
    def slots(self) -> int:
        """Number of values so far."""
        return len(self._slots)

    def slot(self, value: ir.Value) -> int:
        """The number of a value."""
        return self._slots.setdefault(value, len(self._slots))

    def slots_of(self, values: Sequence[ir.Value]) -> list[int]:
        """The numbers of values."""
        return [self.slot(value) for value in values]

    def block(self, block: ir.Block) -> tuple[Run, list[int]]:
        """A function that runs a block up to its terminator, and the operands of that."""
        runs, last, cost = [], None, 0
        for op in block.operations:
            last = op.operation
            if last.name not in _TERMINATORS:
                runs.append(self._decode(self, last))
                cost += _FUNCTION if last.name.startswith("math.") else 1
        yields = self.slots_of(list(last.operands)) if last is not None else []

        def run(frame: Frame, lanes: np.ndarray) -> None:
            if frame.launch.counting:
                frame.launch.operations += cost * _warps(lanes)
            for step in runs:
                step(frame, lanes)

        return run, yields


def _warps(lanes: np.ndarray) -> int:
    """Number of warps that threads, in order, are of."""
    return len(lanes) and 1 + int(np.count_nonzero(np.diff(lanes // WARP)))


# Instructions that a function of the math dialect becomes, about.
_FUNCTION = 12
_TERMINATORS = frozenset(("gpu.return", "scf.yield", "scf.condition", "func.return"))


class Kernel:
    """A `gpu.func`.

    Args:
        op: the operation.
        decoder: for this kernel alone.
    """

    def __init__(self, op: ir.Operation, decoder: Decoder) -> None:
        self.name: str = op.attributes["sym_name"].value
        self._op, self._decoder = op, decoder
        self._arguments = list(op.regions[0].blocks[0].arguments)
        function_type = op.attributes["function_type"].value
        self.types: list[ir.Type] = list(function_type.inputs)
        self._attributions = self._arguments[len(self.types) :]
        shared = (
            op.attributes["workgroup_attributions"].value if "workgroup_attributions" in op.attributes else 0
        )
        self._shared = self._attributions[:shared]

    @cached_property
    def _body(self) -> tuple[Run, list[int]]:
        self._decoder.slots_of(self._arguments)
        return self._decoder.block(self._op.regions[0].blocks[0])

    @property
    def shared_bytes(self) -> int:
        """Shared memory that the kernel declares, in bytes."""
        return sum(_static_bytes(value.type) for value in self._shared)

    def parameter_types(self) -> list[str]:
        """Types of the PTX entry's parameters: "pointer", or the name of a dtype."""
        found: list[str] = []
        for type_ in self.types:
            if isinstance(type_, ir.MemRefType):
                found += ["pointer", "pointer", *["int64"] * (1 + 2 * len(type_.shape))]
            else:
                found.append(str(element_dtype(type_)))
        return found

    def run(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        arguments: Sequence[int | float],
        memory: Memory,
        shared: int = 0,
    ) -> None:
        """Runs a grid.

        Args:
            grid, block: sizes along x, y, z.
            arguments: as `parameter_types` says.
            memory: what pointers point at.
            shared: bytes of dynamic shared memory.

        Raises:
            KernelError: what the kernel does is wrong or undefined on a device.
        """
        for region in memory.regions.values():
            region.forget()
        self.run_blocks(range(grid[0] * grid[1] * grid[2]), grid, block, arguments, memory, shared)

    def run_blocks(
        self,
        numbers: Sequence[int],
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        arguments: Sequence[int | float],
        memory: Memory,
        shared: int = 0,
        *,
        counting: bool = False,
    ) -> Launch:
        """Runs some blocks of a grid, as `run`; gives what they have done, with `counting` the operations."""
        self.check(grid, block, arguments, shared)
        values = self._values(arguments, memory)
        launch = Launch(grid, block, shared, counting=counting)
        run, _ = self._body
        with np.errstate(all="ignore"):
            for number in numbers:
                rest, x = divmod(number, grid[0])
                frame = Frame(launch, (x, rest % grid[1], rest // grid[1]), number, self._decoder.slots)
                launch.interval += 1
                for argument, value in zip(self._arguments, [*values, *self._memory(frame)], strict=True):
                    frame.values[self._decoder.slot(argument)] = value
                run(frame, frame.all)
        return launch

    def check(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        arguments: Sequence[int | float],
        shared: int,
    ) -> None:
        """Checks a launch as a driver does.

        Raises:
            LaunchError: a device refuses it.
        """
        threads = block[0] * block[1] * block[2]
        if min(grid) < 1 or not 1 <= threads <= MAX_THREADS or min(block) < 1 or block[2] > 64:
            raise LaunchError(f"kernel {self.name}: a grid of {grid} blocks of {block} threads")
        if max(grid[1:]) > 65535:
            raise LaunchError(f"kernel {self.name}: a grid of {grid}; along y and z there are at most 65535")
        if self.shared_bytes > SHARED_LIMIT or shared > DYNAMIC_LIMIT - self.shared_bytes:
            raise LaunchError(
                f"kernel {self.name}: {self.shared_bytes} bytes of shared memory, {shared} more at launch"
            )
        attributes = self._op.attributes
        known = tuple(attributes["known_block_size"]) if "known_block_size" in attributes else block
        if known != block:
            raise LaunchError(f"kernel {self.name} is for blocks of {known}, launched with {block}")
        # Of kernels that do not say how many threads a block has, a thread may need as many registers.
        most = list(attributes["nvvm.maxntid"]) if "nvvm.maxntid" in attributes else [UNLIMITED]
        if threads > int(np.prod(most)):
            raise LaunchError(f"kernel {self.name} is for at most {most} threads, launched with {block}")
        wanted = self.parameter_types()
        if len(arguments) != len(wanted):
            raise LaunchError(f"kernel {self.name} takes {len(wanted)} arguments, given {len(arguments)}")

    def _values(self, arguments: Sequence[int | float], memory: Memory) -> list[Value]:
        """The arguments of the `gpu.func` from those of the PTX entry."""
        rest = iter(arguments)
        found: list[Value] = []
        for type_ in self.types:
            dtype = element_dtype(type_.element_type if isinstance(type_, ir.MemRefType) else type_)
            if not isinstance(type_, ir.MemRefType):
                found.append(np.array([next(rest)]).astype(dtype))
                continue
            rank = len(type_.shape)
            _, pointer, offset, *parts = (int(next(rest)) for _ in range(3 + 2 * rank))
            self._check_static(type_, offset, parts[:rank], parts[rank:])
            region = memory.find(pointer)
            base = one(pointer - region.address if region is not None else pointer)
            sizes, strides = tuple(map(one, parts[:rank])), tuple(map(one, parts[rank:]))
            found.append(Memref(region, base, one(offset), sizes, strides, dtype))
        return found

    def _check_static(self, type_: ir.Type, offset: int, sizes: list[int], strides: list[int]) -> None:
        """Numbers of the type are those of the descriptor."""
        dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
        known_strides, known_offset = type_.get_strides_and_offset()
        known = [*type_.shape, *known_strides, known_offset]
        given = [*sizes, *strides, offset]
        if any(want not in (have, dynamic) for want, have in zip(known, given, strict=True)):
            # Strides along axes of one element, or of arrays without elements, do not count.
            matters = [size != 1 and 0 not in sizes for size in sizes]
            facts = [True] * len(sizes) + matters + [0 not in sizes]
            for want, have, counts in zip(known, given, facts, strict=True):
                if counts and want not in (have, dynamic):
                    raise LaunchError(f"kernel {self.name}: an array of {type_} has sizes {sizes}, strides "
                                      f"{strides}, offset {offset}")  # fmt: skip

    def _alignments(self) -> dict[ir.Value, int]:
        """Of buffers in shared memory that say so, in bytes."""
        if "workgroup_attrib_attrs" not in self._op.attributes:
            return {}
        given = zip(self._shared, self._op.attributes["workgroup_attrib_attrs"], strict=True)
        return {value: said["llvm.align"].value for value, said in given if "llvm.align" in said}

    def _memory(self, frame: Frame) -> list[Value]:
        """Attributions: shared memory once, private memory for each thread."""
        found: list[Value] = []
        place = SHARED_BASE
        alignments = self._alignments()
        for value in self._attributions:
            size = _static_bytes(value.type)
            if value in self._shared:
                alignment = alignments.get(value, element_dtype(value.type.element_type).itemsize)
                # A multiple of what is asked for, and of nothing more.
                place += (alignment - place) % (2 * alignment)
                region = Region(place, np.zeros(size, np.uint8), "shared memory", initialised=False)
                place += size
                found.append(row_major(region, one(0), value.type))
            else:
                found.append(local(frame, value.type))
        return found


def local(frame: Frame, type_: ir.Type) -> Memref:
    """Memory of each thread for itself."""
    size = _static_bytes(type_)
    data = np.zeros(size * frame.threads, np.uint8)
    region = Region(next(frame.local), data, "private memory", initialised=False)
    return row_major(region, frame.all * size, type_)


def row_major(region: Region, base: np.ndarray, type_: ir.Type) -> Memref:
    """An array of static shape."""
    shape = list(type_.shape)
    strides = [int(np.prod(shape[i + 1 :], dtype=np.int64)) for i in range(len(shape))]
    dtype = element_dtype(type_.element_type)
    return Memref(region, base, one(0), tuple(map(one, shape)), tuple(map(one, strides)), dtype)


def _static_bytes(type_: ir.Type) -> int:
    return int(np.prod(type_.shape, dtype=np.int64)) * element_dtype(type_.element_type).itemsize
