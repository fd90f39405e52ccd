# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiled function for a device, in memory.

Its calls take arrays of the host or of the device, and give arrays of the device. Values of cells (shared
variables, constants) move to the device when they are first used, and stay there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np

from graphc_runtime.artifact import Artifact
from graphc_runtime.commit import commit
from graphc_runtime.cuda import schedule as sc
from graphc_runtime.cuda.analysis import asks_device, by_library, needs_no_values
from graphc_runtime.cuda.array import DeviceArray, upload
from graphc_runtime.cuda.call import DeviceCall, as_device, empty
from graphc_runtime.cuda.code import DeviceCode
from graphc_runtime.cuda.cuda_driver import device
from graphc_runtime.cuda.driver import DeviceMemoryError, Driver
from graphc_runtime.cuda.graphs import Graphs
from graphc_runtime.cuda.host import HostPart
from graphc_runtime.cuda.planned import Planned
from graphc_runtime.cuda.plans import Plans
from graphc_runtime.cuda.registers import Cell, HostFunction, OnCheck, Registers
from graphc_runtime.cuda.registers import Run as Steps
from graphc_runtime.cuda.steps import compile_steps
from graphc_runtime.errors import ArtifactError
from graphc_runtime.executable import Executable, ReadyCall, Where
from graphc_runtime.kernel import Kernel, OnError, Run, Shape
from graphc_runtime.manifest import Signature

_KEPT_SIZES = 64


class DeviceExecutable(Executable):
    """The schedule and the kernels of an artifact.

    Args:
        artifact: manifest and `DeviceCode`.
        driver: of the device; by default that of the first CUDA device, found when it is first needed.
        functions: what the schedule calls on the host; by default what the code has.

    Attributes:
        plans: of calls that repeat.

    Raises:
        ArtifactError: the code is damaged, or calls functions that are not there.
    """

    gives_numpy = False

    def __init__(
        self, artifact: Artifact, driver: Driver | None = None, functions: Sequence[HostFunction] = ()
    ) -> None:
        super().__init__(artifact)
        self.code = DeviceCode.from_bytes(artifact.code)
        schedule = self.code.schedule
        functions = functions or [HostPart(data) for data in self.code.functions]
        if len(functions) != schedule.functions:
            raise ArtifactError(
                f"the schedule calls {schedule.functions} functions of the host, given {len(functions)}"
            )
        self._driver, self._functions = driver, functions
        self._lock = threading.RLock()
        self._sizes_on_device = asks_device(schedule.shapes.steps)
        self._shapes: Steps | None = None
        if not self._sizes_on_device:
            self._shapes = compile_steps(schedule.shapes.steps, _no_kernel)
        # Without values, sizes are the same for the same sizes of arguments; checks have held then.
        self._sizes_are_kept = needs_no_values(schedule.shapes.steps)
        self._kept_sizes: dict[tuple[Shape, ...], list[int]] = {}
        self._main: Steps | None = None
        self._streams: list[int] = []
        self._events: list[int] = []
        self.plans = Plans(schedule, artifact.manifest.signature, self._sizes_are_kept)

    @property
    def driver(self) -> Driver:
        """Of the device.

        Raises:
            NoDeviceError: there is none.
        """
        if self._driver is None:
            self._driver = device()
        return self._driver

    def make_kernel(self, on_error: OnError) -> Kernel:
        return _DeviceKernel(self, on_error)

    def result_shapes(self, arguments: Sequence[DeviceArray | np.ndarray], on_check: OnCheck) -> list[Shape]:
        """The shapes of the results.

        The device is asked for nothing but values of arguments that are sizes, unless sizes depend on other
        values: then they are computed there, and waited for.

        Raises:
            ValueError, IndexError, ...: a check of sizes fails.
        """
        results, program = self.manifest.signature.results, self.code.schedule.shapes
        sizes: list[int] = []
        if self.manifest.signature.needs_shapes:
            given = arguments[: program.parameters]
            sizes = self._sizes(given, on_check) if self._sizes_on_device else self._known(given, on_check)
        if len(sizes) != sum(size is None for spec in results for size in spec.shape):
            raise ArtifactError(f"the schedule gives {len(sizes)} sizes of its results")
        dynamic = iter(sizes)
        return [tuple(next(dynamic) if size is None else size for size in spec.shape) for spec in results]

    def _known(self, arguments: Sequence[DeviceArray | np.ndarray], on_check: OnCheck) -> list[int]:
        """Sizes that follow from those of arguments, and from values of numbers among them."""
        program, shapes = self.code.schedule.shapes, self._shapes
        assert shapes is not None
        key = tuple(argument.shape for argument in arguments) if self._sizes_are_kept else None
        found = None if key is None else self._kept_sizes.get(key)
        if found is not None:
            return found
        registers = Registers(program.registers, None, (), (), (), on_check)
        registers.values[: program.parameters] = arguments
        shapes(registers)
        sizes = list(registers.numbers(program.results))
        if key is not None:
            if len(self._kept_sizes) >= _KEPT_SIZES:
                self._kept_sizes.clear()
            self._kept_sizes[key] = sizes
        return sizes

    def _sizes(self, arguments: Sequence[DeviceArray | np.ndarray], on_check: OnCheck) -> list[int]:
        """Sizes that the device computes."""
        program, driver = self.code.schedule.shapes, self.driver
        with self._lock:
            self._load()
            assert self._shapes is not None
            arrays = [
                upload(driver, value, driver.main_stream) if isinstance(value, np.ndarray) else value
                for value in arguments
            ]
            registers = self._registers(program, arrays, on_check)
            _run(self._shapes, registers)
        return list(registers.numbers(program.results))

    def run(
        self, arguments: Sequence[DeviceArray], results: Sequence[DeviceArray], on_check: OnCheck
    ) -> None:
        """Asks for the results; a result may be an argument that the signature donates to it.

        Raises:
            DriverError: the device refuses.
            ValueError, IndexError, ...: a check fails.
        """
        program = self.code.schedule.main
        arrays = [*arguments[: self.plans.reads], *results]
        layouts = tuple([array.layout for array in arrays])
        addresses = tuple([array.memory.address for array in arrays])
        planned = self.plans.planned(layouts)
        if planned is None:
            with self._lock:
                main = self._load()
                if self.plans.is_due(layouts, addresses, self._graphs):
                    planned = self.plans.make(layouts, main, on_check, self.driver, self._graphs, self._lock)
        if planned is not None and _has_run(planned, addresses):
            return
        with self._lock:
            _run(self._load(), self._registers(program, arrays, on_check))

    def _registers(self, program: sc.Program, values: Sequence[DeviceArray], on_check: OnCheck) -> Registers:
        registers = Registers(
            program.registers, self.driver, self._streams, self._events, self._functions, on_check
        )
        registers.values[: program.parameters] = values
        registers.graphs, registers.libraries = self._graphs, self.plans.libraries
        return registers

    def _load(self) -> Steps:
        """Loads the kernels, once."""
        if self._main is None:
            driver, schedule = self.driver, self.code.schedule
            # Programs whose arrays are all known to be empty have no kernels, and drivers refuse empty code.
            module = driver.load(self.code.ptx, self.code.cubin) if self.code.ptx else 0
            self.plans.libraries = driver.start_libraries(by_library(schedule))
            self._streams = [
                driver.main_stream,
                *(driver.new_stream() for _ in range(schedule.streams - 1)),
            ]
            self._events = [driver.new_event() for _ in range(schedule.events)]
            steps = schedule.main.steps

            def kernel(name: str, shared: int) -> int:
                return driver.function(module, name, shared)

            self._main = compile_steps(steps, kernel)
            if self._sizes_on_device:
                self._shapes = compile_steps(schedule.shapes.steps, kernel)
            self._graphs = Graphs(driver)
        return self._main

    def array_call(self, signature: Signature, *, where: Where | None = None) -> DeviceCall:
        """Takes arrays of the host or the device, and gives arrays of the device."""
        call = DeviceCall(self, (), self.handler(where), signature)
        call.where = where
        return call

    def ready_call(self, cells: Sequence[Cell], *, where: Where | None = None) -> ReadyCall:
        return self.bind(cells, where=where).ready

    def hold(self, cells: Sequence[Cell]) -> None:
        """Values that are not yet on the device go there, unless another thread was faster; cells that are
        only replaced, the last ones of the manifest, may be left out.
        """
        specs = self.manifest.signature.cells[: len(cells)]
        for i, (cell, spec) in enumerate(zip(cells, specs, strict=True)):
            value = cell[0]
            moved = as_device(self.driver, value, spec, f"shared variable {i} ({spec.name})")
            if moved is not value:
                commit([cell], [moved], [cell], [value])

    def bind(
        self,
        cells: Sequence[Cell] = (),
        fallback: Callable[..., object] | None = None,
        on_error: OnError | None = None,
        *,
        where: Where | None = None,
        name: str | None = None,
        doc: str = "",
    ) -> DeviceCall:
        """As `Executable.bind`; errors of the driver, too, say what `where` knows."""
        call = self._python_call(cells, fallback, on_error or self.handler(where))
        call.where = where
        return call

    def _python_call(
        self, cells: Sequence[Cell], fallback: Callable[..., object] | None, on_error: OnError
    ) -> DeviceCall:
        """Calls need no fallback: they convert what they are given."""
        expected = len(self.manifest.signature.cells)
        if len(cells) != expected:
            raise TypeError(f"expected {expected} cells, given {len(cells)}")
        return DeviceCall(self, cells, on_error, self.manifest.signature)


def _no_kernel(name: str, shared: int) -> int:
    raise ArtifactError(f"a program of shapes launches the kernel {name}")


def _has_run(planned: Planned, addresses: Sequence[int]) -> bool:
    """True if a plan has run; without memory for all temporary arrays together, it has not begun."""
    try:
        return planned.ask(addresses)
    except DeviceMemoryError as error:
        if error.step is not None:
            raise
        return False


def _run(main: Callable[[Registers], None], registers: Registers) -> None:
    """Runs the steps; what they have not given back is given back."""
    try:
        main(registers)
    finally:
        for memory in registers.made:
            memory.free()


class _DeviceKernel(Kernel):
    """On arrays of the host."""

    def __init__(self, executable: DeviceExecutable, on_error: OnError) -> None:
        self.executable, self.on_error = executable, on_error

    def begin(self) -> Run:
        return _DeviceRun(self)


class _DeviceRun(Run):
    def __init__(self, kernel: _DeviceKernel) -> None:
        self._kernel = kernel

    def shapes(self, arguments: Sequence[np.ndarray], signature: Signature) -> list[Shape]:
        return self._kernel.executable.result_shapes(arguments, self._kernel.on_error)

    def compute(self, arguments: Sequence[np.ndarray], results: Sequence[np.ndarray], *, alone: bool) -> None:
        executable = self._kernel.executable
        driver = executable.driver
        given = [upload(driver, argument, driver.main_stream) for argument in arguments]
        found = [empty(driver, result.dtype.name, result.shape) for result in results]
        for argument, result in executable.manifest.signature.donated:
            found[result] = given[argument]
        executable.run(given, found, self._kernel.on_error)
        for target, array in zip(results, found, strict=True):
            target[...] = array.get()

    def release(self) -> None:
        return
