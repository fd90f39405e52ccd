# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans: what a program asks of the device for arrays of certain forms, found out once.

The steps of the program run against a driver that writes down. Addresses that it gives and is given are
symbols: the number of an array, and bytes beyond where that begins. Temporary arrays get their places in one
workspace, so that a call allocates at most once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from graphc_runtime.cuda import schedule as sc
from graphc_runtime.cuda.analysis import needs_no_values
from graphc_runtime.cuda.array import DeviceArray, Layout, Memory
from graphc_runtime.cuda.asks import Ask, AskCopy, AskLaunch, AskLibrary, Place
from graphc_runtime.cuda.driver import Driver, KernelLaunch
from graphc_runtime.cuda.graphs import MOST_LAUNCHES, TooLongError
from graphc_runtime.cuda.libraries import Asked, can_be_captured
from graphc_runtime.cuda.registers import OnCheck, Registers
from graphc_runtime.record import record

# Symbols: far enough from each other for all memory there is.
_APART = 1 << 44
_ALIGN = 256


def can_be_planned(schedule: sc.Schedule) -> bool:
    """True if dtypes and sizes of arrays decide about all that the main program asks for, in one stream."""
    return (
        schedule.streams == 1
        and not schedule.events
        and needs_no_values(schedule.main.steps, with_libraries=True)
    )


@record(frozen=True, eq=False)
class Plan:
    """Requests of a call.

    The table of addresses has those of the memory of the arrays, then those of temporary arrays, then places
    within these.

    Attributes:
        asks: in this order.
        launches: how many of them are kernels, or for libraries.
        can_be_captured: whether all of them may be written down.
        workspace: bytes for temporary arrays.
        temporaries: where they lie in it.
        inside: the number of an array in the table, and bytes beyond its address.
        is_unrolled: whether it has all steps of a loop. To ask for these one by one takes longer than to
            replay one of them.
    """

    asks: tuple[Ask, ...]
    launches: int
    can_be_captured: bool
    workspace: int
    temporaries: tuple[int, ...]
    inside: tuple[tuple[int, int], ...]
    is_unrolled: bool

    def places(self, arrays: int) -> int:
        """Number of addresses in the table, for so many arrays."""
        return arrays + len(self.temporaries) + len(self.inside)

    def table(self, addresses: Sequence[int], workspace: int) -> list[int]:
        """All addresses, from those of the arrays' memory and of the workspace."""
        found = [*addresses, *[workspace + offset for offset in self.temporaries]]
        if self.inside:
            found += [found[number] + offset for number, offset in self.inside]
        return found


def make_plan(
    program: sc.Program,
    run: Callable[[Registers], None],
    layouts: Sequence[Layout],
    on_check: OnCheck,
    driver: Driver,
    libraries: frozenset[str] = frozenset(),
) -> Plan | None:
    """The plan of a program; None if it asks for more than a plan should hold.

    Args:
        program: one that can be planned.
        run: its steps.
        layouts: of the arrays that it is given.
        on_check: called when a check of sizes fails; raises.
        driver: of the device, which knows how much memory libraries need.
        libraries: which of them there are.
    """
    recorder = _Recorder(len(layouts), driver)
    registers = Registers(program.registers, cast("Driver", recorder), [0], (), (), on_check)
    recorder.registers, registers.left, registers.libraries = registers, MOST_LAUNCHES, libraries
    for number, layout in enumerate(layouts):
        memory = Memory(cast("Driver", recorder), layout.nbytes, 0, _symbol(number), recorder)
        registers.values[number] = DeviceArray.of(memory, layout)
    try:
        run(registers)
    except TooLongError:
        return None
    return recorder.plan()


def _symbol(number: int) -> int:
    return (number + 1) * _APART


class _Recorder:
    """The part of a driver that programs ask which can be planned; it writes down.

    Args:
        arrays: how many arrays the program is given.
        driver: of the device.

    Attributes:
        registers: what the program works with; these know the step.
    """

    registers: Registers

    def __init__(self, arrays: int, driver: Driver) -> None:
        self._arrays, self._driver = arrays, driver
        # Places have symbols instead of numbers while it is not known how many temporary arrays there are.
        self._asks: list[Ask] = []
        self._launches = 0
        # Where temporary arrays begin in the workspace, and begin and end of those that live.
        self._offsets: list[int] = []
        self._live: dict[int, tuple[int, int]] = {}
        self._peak = 0

    def allocate(self, nbytes: int, stream: int) -> int:
        """Gives a temporary array the first gap that is large enough."""
        size = -(-max(nbytes, 1) // _ALIGN) * _ALIGN
        start = 0
        for begin, end in sorted(self._live.values()):
            if begin - start >= size:
                break
            start = max(start, end)
        address = _symbol(self._arrays + len(self._offsets))
        self._offsets.append(start)
        self._live[address] = start, start + size
        self._peak = max(self._peak, start + size)
        return address

    def free(self, address: int, stream: int) -> None:
        """From here on, others may have its place, as all is in the order of one stream."""
        del self._live[address]

    def launch(self, asked: KernelLaunch, values: Sequence[int | float], stream: int) -> None:
        """Writes a launch down."""
        pairs = zip(asked.types, values, strict=True)
        given = tuple(Place(int(value)) if kind == "pointer" else value for kind, value in pairs)
        self._asks.append(AskLaunch(self._step(), asked, given))
        self._launches += 1

    def library_memory(self, asked: Asked) -> int:
        """As `Driver.library_memory`."""
        return self._driver.library_memory(asked)

    def ask(self, asked: Asked, addresses: Sequence[int], stream: int) -> None:
        """Writes a request to a library down."""
        self._asks.append(AskLibrary(self._step(), asked, tuple(map(Place, addresses))))
        self._launches += 1

    def upload(self, address: int, array: object, stream: int) -> None:
        """Values are computed by the host only where there is no library, and cannot be recorded.

        Raises:
            TooLongError: always.
        """
        raise TooLongError

    download = upload

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Writes a copy down."""
        if nbytes:
            self._asks.append(AskCopy(self._step(), Place(target), Place(source), nbytes))

    def _step(self) -> sc.Step:
        assert self.registers.step is not None
        return self.registers.step

    def plan(self) -> Plan:
        """The recorded plan."""
        inside: dict[tuple[int, int], int] = {}

        def number(symbol: int) -> Place:
            array, offset = symbol // _APART - 1, symbol % _APART
            if not offset:
                return Place(array)
            return Place(first + inside.setdefault((array, offset), len(inside)))

        first = self._arrays + len(self._offsets)
        unrolled = self.registers.is_unrolled
        asks = tuple(ask.mapped(number) for ask in self._asks)
        captured = all(can_be_captured(ask.asked) for ask in asks if isinstance(ask, AskLibrary))
        return Plan(asks, self._launches, captured, self._peak, tuple(self._offsets), tuple(inside), unrolled)
