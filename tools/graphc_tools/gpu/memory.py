# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory that kernels see, with who has read and written each byte since when.

Threads of a block are ordered by barriers only, those of a warp by barriers of the warp, too, and threads of
different blocks not at all. Each byte knows its last writer and its readers since then; an access that
conflicts with one of these is a race, whatever order the interpreter happens to run threads in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

WARP = 32
# Instead of the number of a thread; numbers below stand for several threads of one warp.
_NOBODY, _SEVERAL = -1, -2
_WIDEST = 8  # bytes that are looked at as one


class KernelError(Exception):
    """A kernel does something wrong or undefined; the message has the operation and its location."""


class RaceError(KernelError):
    """Two threads access the same byte, one of them writes it, and no barrier is between."""


class BoundsError(KernelError):
    """An index is outside of the array, or an address outside of its memory."""


class UninitialisedError(KernelError):
    """Memory is read that nothing was written to."""


class DivergenceError(KernelError):
    """Not all threads that have to reach an operation reach it."""


class LaunchError(KernelError):
    """A launch asks for what a device refuses, or passes other arguments than the kernel has."""


@dataclass(frozen=True)
class Access:
    """Threads that access memory.

    Attributes:
        where: the operation, for messages.
        block: number of the block in the grid.
        interval: number of the time between two barriers; every block has intervals of its own.
        threads: numbers of the threads in their block, in the order of the addresses.
        phases: how many barriers of its warp each has seen.
    """

    where: str
    block: int
    interval: int
    threads: np.ndarray
    phases: np.ndarray


class _Accesses:
    """Identity of who accessed each unit last: thread, block, time between barriers, operation, and whether
    atomically.
    """

    def __init__(self, size: int) -> None:
        self.thread, self.block = (np.full(size, _NOBODY, np.int32) for _ in range(2))
        self.interval, self.phase, self.where = (np.zeros(size, np.int32) for _ in range(3))
        self.atomic = np.zeros(size, bool)

    def divide(self, parts: int) -> None:
        """Makes units smaller: the bytes of one have been accessed together so far."""
        for name, found in vars(self).items():
            setattr(self, name, np.repeat(found, parts))

    def clash(self, at: np.ndarray, access: Access) -> np.ndarray:
        """True for units that others accessed, with no barrier between."""
        block = self.block[at]
        others = block != access.block
        found: np.ndarray = (block != _NOBODY) & (others | (self.interval[at] == access.interval))
        if found.any():
            threads, phases = access.threads[:, None], access.phases[:, None]
            found &= others | _apart(self.thread[at], self.phase[at], threads, phases)
        return found

    def note(self, at: np.ndarray, access: Access, place: int) -> None:
        """Time and operation of an access."""
        self.interval[at], self.phase[at] = access.interval, access.phases[:, None]
        self.where[at] = place


class Region:
    """Bytes at consecutive addresses.

    Bytes that all accesses of a kernel have treated alike are one unit.

    Args:
        address: of the first byte.
        data: the bytes, which are written in place.
        name: how messages call it.
        initialised: whether the content counts as written.
    """

    def __init__(self, address: int, data: np.ndarray, name: str, *, initialised: bool = True) -> None:
        self.address, self.data, self.name = address, data, name
        self.initialised = np.full(data.size, initialised)
        self.forget()

    def forget(self) -> None:
        """Another kernel begins: all accesses so far are ordered before it."""
        self._divide(_WIDEST)
        self._writes, self._reads = (_Accesses(-(-self.data.size // _WIDEST)) for _ in range(2))
        self._places: dict[str, int] = {"": 0}

    def load(self, start: np.ndarray, dtype: np.dtype, count: int, access: Access) -> np.ndarray:
        """Elements that begin at byte `start` of the region, `count` in a row for each thread."""
        width = dtype.itemsize * count
        at = self._units(start, width, access)
        if self._missing(at).any():
            bytes_at = start[:, None] + np.arange(width)
            missing = ~self.initialised[bytes_at]
            thread = int(access.threads[np.nonzero(missing)[0][0]])
            raise UninitialisedError(
                f"{access.where}: thread {thread} of block {access.block} reads {self.name} at byte "
                f"{int(bytes_at[missing][0])}, which nothing was written to"
            )
        self._check_read(at, access)
        return np.ascontiguousarray(self._contents[at]).view(dtype)

    def store(self, start: np.ndarray, values: np.ndarray, access: Access) -> None:
        """Writes a row of elements for each thread."""
        at = self._units(start, values.itemsize * values.shape[1], access)
        if not (start[1:] > start[:-1]).all():
            self._require_different(start, access)
        self._check_write(at, access, atomic=False)
        self._contents[at] = self._in_units(values)
        self._written[at] = self._all_written

    def reserve(self, start: np.ndarray, width: int, access: Access) -> None:
        """Bytes that each thread is going to write, which have no value until it has."""
        at = self._units(start, width, access)
        self._check_write(at, access, atomic=False)
        self._written[at] = 0

    def update(self, start: np.ndarray, dtype: np.dtype, access: Access) -> np.ndarray:
        """Different elements, one for each thread, that are about to be changed atomically."""
        at = self._units(start, dtype.itemsize, access)
        missing = self._missing(at).any(axis=1)
        if missing.any():
            raise UninitialisedError(
                f"{access.where}: {self.name} at byte {int(start[missing][0])} has not been written"
            )
        self._check_write(at, access, atomic=True)
        found: np.ndarray = np.ascontiguousarray(self._contents[at]).view(dtype)[:, 0]
        return found

    def put(self, start: np.ndarray, values: np.ndarray) -> None:
        """Stores elements that are changed atomically: those of the update before."""
        self._contents[self._at(start, values.itemsize)] = self._in_units(values[:, None])

    def _units(self, start: np.ndarray, width: int, access: Access) -> np.ndarray:
        """Those that threads access, which get as small as the accesses are."""
        wrong = (start < 0) | (start + width > self.data.size)
        if wrong.any():
            thread, first = int(access.threads[wrong][0]), int(start[wrong][0])
            raise BoundsError(
                f"{access.where}: thread {thread} of block {access.block} accesses bytes {first} to "
                f"{first + width - 1} of {self.name}, which has {self.data.size}"
            )
        numbers = int(np.bitwise_or.reduce(start)) | width
        unit = numbers & -numbers
        if unit < self._unit:
            for accesses in (self._writes, self._reads):
                accesses.divide(self._unit // unit)
            self._divide(unit)
        return self._at(start, width)

    def _require_different(self, start: np.ndarray, access: Access) -> None:
        first, where = np.unique(start, return_index=True)
        if len(first) < len(start):
            twice = np.setdiff1d(np.arange(len(start)), where)[0]
            threads = access.threads[start == start[twice]][:2]
            self._race(access, int(start[twice]), access.where, int(threads[0]), access.block, "writes")

    def _divide(self, unit: int) -> None:
        """Content, and which bytes have been written, in units of so many bytes."""
        whole = self.data.size // unit * unit
        self._unit, self._all_written = unit, int.from_bytes(b"\x01" * unit, "little")
        self._contents, self._written = (x[:whole].view(f"u{unit}") for x in (self.data, self.initialised))

    def _at(self, start: np.ndarray, width: int) -> np.ndarray:
        found: np.ndarray = start[:, None] // self._unit + np.arange(width // self._unit)
        return found

    def _in_units(self, values: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(values).view(f"u{self._unit}")

    def _missing(self, at: np.ndarray) -> np.ndarray:
        """True for units of which not all bytes have been written."""
        found: np.ndarray = self._written[at] != self._all_written
        return found

    def _check_read(self, at: np.ndarray, access: Access) -> None:
        threads, reads = access.threads[:, None], self._reads
        self._refuse(self._writes.clash(at, access), at, access, "reads", self._writes)
        seen = reads.block[at]
        same = (seen == access.block) & (reads.interval[at] == access.interval)
        readers = np.where(same, _both(reads.thread[at], threads), threads) if same.any() else threads
        reads.thread[at] = readers
        # Lanes of this very load may read one unit together: the last assignment wins, then the others count.
        if (reads.thread[at] != readers).any():
            flat = at.ravel()
            both = _both(reads.thread[flat], np.broadcast_to(threads, at.shape).ravel())
            for several in (both < _SEVERAL, both == _SEVERAL):
                reads.thread[flat[several]] = both[several]
        reads.block[at] = np.where((seen == _NOBODY) | (seen == access.block), access.block, _SEVERAL)
        reads.note(at, access, self._place(access.where))

    def _check_write(self, at: np.ndarray, access: Access, *, atomic: bool) -> None:
        clash, writes = self._writes.clash(at, access), self._writes
        if atomic:
            clash &= ~writes.atomic[at]
        self._refuse(clash, at, access, "writes", writes)
        self._refuse(self._reads.clash(at, access), at, access, "writes", self._reads)
        writes.thread[at], writes.block[at] = access.threads[:, None], access.block
        writes.note(at, access, self._place(access.where))
        writes.atomic[at] = atomic
        self._reads.block[at] = self._reads.thread[at] = _NOBODY

    def _refuse(
        self, clash: np.ndarray, at: np.ndarray, access: Access, what: str, before: _Accesses
    ) -> None:
        if not clash.any():
            return
        row, column = (int(i) for i in np.argwhere(clash)[0])
        unit = int(at[row, column])
        place = list(self._places)[before.where[unit]]
        alone = replace(access, threads=access.threads[row : row + 1], phases=access.phases[row : row + 1])
        did = "writes" if before is self._writes else "reads"
        thread, block = int(before.thread[unit]), int(before.block[unit])
        self._race(alone, unit * self._unit, place, thread, block, did, what)

    def _race(
        self, access: Access, byte: int, place: str, thread: int, block: int, did: str, what: str = "writes"
    ) -> None:
        other = "several threads" if thread <= _SEVERAL else f"thread {thread}"
        where = "of several blocks" if block == _SEVERAL else f"of block {block}"
        last = int(access.threads[-1])
        raise RaceError(
            f"{access.where}: thread {last} of block {access.block} {what} {self.name} at byte {byte}, and "
            f"{other} {where} {did} it, with no barrier between, at {place}"
        )

    def _place(self, where: str) -> int:
        return self._places.setdefault(where, len(self._places))


def _warps(threads: np.ndarray) -> np.ndarray:
    """The warps of threads, or of several of one warp; -1 for several of different ones."""
    return np.where(threads < _SEVERAL, _SEVERAL - 1 - threads, threads // WARP)


def _apart(before: np.ndarray, phase: np.ndarray, threads: np.ndarray, phases: np.ndarray) -> np.ndarray:
    """Accesses before that are those of other threads, with no barrier of a warp between."""
    ordered = (_warps(before) == threads // WARP) & (phase < phases)
    found: np.ndarray = (before != threads) & ~ordered
    return found


def _both(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """One thread, or several, with another one."""
    of_warp = _SEVERAL - 1 - b // WARP
    return np.where(a == b, a, np.where(_warps(a) == b // WARP, of_warp, _SEVERAL))


class Memory:
    """The regions that there are.

    Args:
        regions: of global memory, which do not overlap.
    """

    def __init__(self, regions: dict[int, Region] | None = None) -> None:
        self.regions = {} if regions is None else regions

    def find(self, address: int) -> Region | None:
        """The region that an address lies in, or at the end of; None if there is none."""
        for region in self.regions.values():
            if region.address <= address < region.address + max(region.data.size, 1):
                return region
        return None
