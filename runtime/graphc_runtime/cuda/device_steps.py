# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of a schedule that the device, or a function of the host, is asked for, as Python functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from graphc_runtime.cuda import schedule as sc
from graphc_runtime.cuda.array import DeviceArray, Memory, upload
from graphc_runtime.cuda.driver import DeviceMemoryError, KernelLaunch
from graphc_runtime.cuda.libraries import Request
from graphc_runtime.cuda.registers import Registers, Run, Value
from graphc_runtime.errors import ArtifactError
from graphc_runtime.symbols import DESCRIPTORS


def at_once(do: Callable[..., None]) -> Callable[..., Run]:
    """A step that nothing is prepared for: what does it is given the step and the registers in each call."""
    return lambda step, kernel: partial(do, step)


def _allocate(step: sc.Allocate, kernel: object) -> Run:
    dtype = DESCRIPTORS[step.dtype]

    def run(registers: Registers) -> None:
        shape = tuple(max(size, 0) for size in registers.numbers(step.sizes))
        stream = registers.streams[step.stream]
        try:
            memory = Memory(registers.device(), math.prod(shape) * dtype.itemsize, stream)
        except DeviceMemoryError as error:
            text = f"{error}\n  for an array of shape {shape} and dtype {dtype}"
            raise DeviceMemoryError(text, error.code, error.call) from None
        registers.made.append(memory)
        registers.values[step.result] = DeviceArray(memory, dtype, shape)

    return run


def _free(step: sc.Free, registers: Registers) -> None:
    registers.array(step.array).memory.free()


def _view(step: sc.View, kernel: object) -> Run:
    dtype = DESCRIPTORS[step.dtype] if step.dtype else None

    def run(registers: Registers) -> None:
        array = registers.array(step.array)
        registers.values[step.result] = DeviceArray(
            array.memory,
            array.dtype if dtype is None else dtype,
            registers.numbers(step.sizes),
            registers.numbers(step.strides),
            registers.number(step.offset),
        )

    return run


def _launch(step: sc.Launch, kernel: Callable[[str, int], int]) -> Run:
    function = 0
    given = step.types or ("",) * len(step.arguments)
    types_of: dict[tuple[int, ...], tuple[str, ...]] = {}

    def types(values: Sequence[Value | None]) -> tuple[str, ...]:
        """Of the arguments of the entry."""
        found: list[str] = []
        for value, name in zip(values, given, strict=True):
            if isinstance(value, DeviceArray):
                found += sc.descriptor_types(len(value.shape))
            else:
                found.append(name or ("float64" if isinstance(value, float) else "int64"))
        return tuple(found)

    def run(registers: Registers) -> None:
        nonlocal function
        grid, block = registers.numbers(step.grid), registers.numbers(step.block)
        if not all(grid):
            return
        registers.count()
        driver = registers.device()
        if not function:
            function = kernel(step.kernel, step.shared)
        values = [registers.values[argument] for argument in step.arguments]
        flat: list[int | float] = []
        ranks: list[int] = []
        for argument, value in zip(step.arguments, values, strict=True):
            if isinstance(value, DeviceArray):
                address = registers.array(argument).memory.address
                flat += (address, address, value.offset, *value.shape, *value.strides)
                ranks.append(len(value.shape))
            else:
                assert isinstance(value, int | float)
                flat.append(value)
                ranks.append(-2 if isinstance(value, float) else -1)
        key = tuple(ranks)
        if key not in types_of:
            types_of[key] = types(values)
        sizes = (grid[0], grid[1], grid[2]), (block[0], block[1], block[2])
        asked = KernelLaunch(function, *sizes, types_of[key], step.shared, step.cooperative)
        driver.launch(asked, flat, registers.streams[step.stream])

    return run


def _ask(step: sc.Ask, registers: Registers) -> None:
    driver, stream = registers.device(), registers.streams[step.stream]
    arrays = [registers.array(array) for array in step.arrays]
    count = registers.number(step.count)
    asked = Request(step.routine, arrays[0].dtype.name, registers.numbers(step.numbers))
    if count <= 0:
        return
    sizes = [math.prod(array.shape) for array in arrays]
    if any(size % count for size in sizes) or not all(array.is_contiguous for array in arrays):
        raise ArtifactError(f"the schedule asks a library for {count} times {asked} of other arrays")
    asked.check([size // count for size in sizes])
    nbytes = driver.library_memory(asked)
    memory = Memory(driver, nbytes, stream) if nbytes else None
    extra = [] if memory is None else [memory.address]
    for number in range(count):
        registers.count()
        addresses = [array.address + number * (array.nbytes // count) for array in arrays]
        driver.ask(asked, [*addresses, *extra], stream)
    if memory is not None:
        memory.free()


def _copy(step: sc.Copy, registers: Registers) -> None:
    source, target = registers.array(step.source), registers.array(step.target)
    if source.shape != target.shape or source.dtype != target.dtype:
        raise ArtifactError(f"the schedule copies {source.shape} to {target.shape}")
    if not source.is_contiguous or not target.is_contiguous:
        raise ArtifactError("the schedule copies what is not contiguous")
    stream = registers.streams[step.stream]
    registers.device().copy(target.address, source.address, source.nbytes, stream)


def _upload(step: sc.Upload, registers: Registers) -> None:
    value = registers.values[step.source]
    assert isinstance(value, np.ndarray)
    array = upload(registers.device(), value, registers.streams[step.stream])
    registers.made.append(array.memory)
    registers.values[step.result] = array


def _download(step: sc.Download, registers: Registers) -> None:
    array = registers.array(step.source)
    value = np.empty(array.shape, array.dtype)
    registers.device().download(value, array.address, registers.streams[step.stream])
    registers.values[step.result] = value


def _host_call(step: sc.HostCall, registers: Registers) -> None:
    def on_check(status: int, given: int, expected: int) -> None:
        registers.on_check(step.first_site + status, given, expected)

    values = [value for a in step.arguments if (value := registers.values[a]) is not None]
    results = registers.functions[step.function](values, on_check)
    for register, value in zip(step.results, results, strict=True):
        registers.values[register] = value


def _read(step: sc.Read, registers: Registers) -> None:
    value, indices = registers.values[step.array], registers.numbers(step.indices)
    assert isinstance(value, DeviceArray | np.ndarray)
    inside = all(0 <= i < n for i, n in zip(indices, value.shape, strict=False))
    if len(indices) != len(value.shape) or not inside:
        raise ArtifactError(f"the schedule reads element {indices} of an array of shape {value.shape}")
    known = value if isinstance(value, np.ndarray) else value.known
    if known is not None:
        registers.values[step.result] = known[indices].item()
        return
    array = registers.array(step.array)
    found, memory = np.empty((), array.dtype), array.memory
    at = array.offset + sum(i * stride for i, stride in zip(indices, array.strides, strict=True))
    # Programs of shapes have no streams: what they read was there before.
    stream = memory.stream if registers.driver is None else registers.streams[step.stream]
    memory.driver.download(found, memory.address + at * array.dtype.itemsize, stream)
    registers.values[step.result] = found.item()


def _event(step: sc.Record | sc.Wait, registers: Registers) -> None:
    driver = registers.device()
    do = driver.record if isinstance(step, sc.Record) else driver.wait
    do(registers.events[step.event], registers.streams[step.stream])


# By kind; a function takes the step, and what finds a kernel by its name and bytes of shared memory.
ON_DEVICE: dict[type[sc.Step], Callable[..., Run]] = {
    sc.Allocate: _allocate,
    sc.Free: at_once(_free),
    sc.View: _view,
    sc.Launch: _launch,
    sc.Copy: at_once(_copy),
    sc.Ask: at_once(_ask),
    sc.Upload: at_once(_upload),
    sc.Download: at_once(_download),
    sc.HostCall: at_once(_host_call),
    sc.Read: at_once(_read),
    sc.Record: at_once(_event),
    sc.Wait: at_once(_event),
}
