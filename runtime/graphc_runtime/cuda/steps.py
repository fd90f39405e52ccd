# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of a schedule as Python functions, made once and run in each call."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from graphc_runtime.cuda import schedule as sc
from graphc_runtime.cuda.analysis import is_repeated, reads
from graphc_runtime.cuda.array import DeviceArray, Memory, upload
from graphc_runtime.cuda.driver import DeviceMemoryError, DriverError
from graphc_runtime.cuda.graphs import Graphs, Key, TooLongError
from graphc_runtime.cuda.registers import Registers, Value
from graphc_runtime.errors import ArtifactError
from graphc_runtime.symbols import DESCRIPTORS

Run: TypeAlias = Callable[[Registers], None]
# With fewer steps a graph of one saves nothing.
_LEAST_STEPS = 4


def compile_steps(steps: Sequence[sc.Step], kernel: Callable[[str, int], int]) -> Run:
    """A function that does the steps.

    Args:
        steps: what to do.
        kernel: finds a kernel by its name and bytes of dynamic shared memory.
    """
    runs = [_guarded(step, _COMPILERS[type(step)](step, kernel)) for step in steps]

    def run(registers: Registers) -> None:
        for one in runs:
            one(registers)

    return run


_PLAIN = (sc.Constant, sc.Dim, sc.Offset, sc.Stride, sc.Compute, sc.Check, sc.If, sc.Loop, sc.While)


def _guarded(step: sc.Step, run: Run) -> Run:
    """Errors of the driver say what was being done."""
    if isinstance(step, _PLAIN):
        return run

    def guarded(registers: Registers) -> None:
        try:
            run(registers)
        except DriverError as error:
            raise error.at(step) from None

    return guarded


def _constant(step: sc.Constant, kernel: object) -> Run:
    def run(registers: Registers) -> None:
        registers.values[step.result] = step.value

    return run


def _dim(step: sc.Dim, kernel: object) -> Run:
    def run(registers: Registers) -> None:
        value = registers.values[step.array]
        assert isinstance(value, DeviceArray | np.ndarray)
        if not 0 <= step.axis < len(value.shape):
            raise ArtifactError(f"the schedule asks for axis {step.axis} of an array of shape {value.shape}")
        registers.values[step.result] = value.shape[step.axis]

    return run


def _offset(step: sc.Offset, kernel: object) -> Run:
    def run(registers: Registers) -> None:
        registers.values[step.result] = registers.array(step.array).offset

    return run


def _stride(step: sc.Stride, kernel: object) -> Run:
    def run(registers: Registers) -> None:
        strides = registers.array(step.array).strides
        if not 0 <= step.axis < len(strides):
            raise ArtifactError(f"the schedule asks for axis {step.axis} of an array with strides {strides}")
        registers.values[step.result] = strides[step.axis]

    return run


def _compute(step: sc.Compute, kernel: object) -> Run:
    function, result, operands = sc.OPERATIONS[step.operation], step.result, step.operands

    def run(registers: Registers) -> None:
        try:
            registers.values[result] = function(*[registers.values[operand] for operand in operands])
        except ZeroDivisionError:
            raise ArtifactError(f"the schedule divides by 0, in {step.operation}") from None

    return run


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


def _free(step: sc.Free, kernel: object) -> Run:
    def run(registers: Registers) -> None:
        registers.array(step.array).memory.free()

    return run


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
        if registers.left is not None:
            registers.left -= 1
            if registers.left < 0:
                raise TooLongError
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
        driver.launch(
            function,
            (grid[0], grid[1], grid[2]),
            (block[0], block[1], block[2]),
            types_of[key],
            flat,
            registers.streams[step.stream],
            shared=step.shared,
            cooperative=step.cooperative,
        )

    return run


def _copy(step: sc.Copy, kernel: object) -> Run:
    def run(registers: Registers) -> None:
        source, target = registers.array(step.source), registers.array(step.target)
        if source.shape != target.shape or source.dtype != target.dtype:
            raise ArtifactError(f"the schedule copies {source.shape} to {target.shape}")
        if not source.is_contiguous or not target.is_contiguous:
            raise ArtifactError("the schedule copies what is not contiguous")
        stream = registers.streams[step.stream]
        registers.device().copy(target.address, source.address, source.nbytes, stream)

    return run


def _upload(step: sc.Upload, kernel: object) -> Run:
    def run(registers: Registers) -> None:
        value = registers.values[step.source]
        assert isinstance(value, np.ndarray)
        array = upload(registers.device(), value, registers.streams[step.stream])
        registers.made.append(array.memory)
        registers.values[step.result] = array

    return run


def _download(step: sc.Download, kernel: object) -> Run:
    def run(registers: Registers) -> None:
        array = registers.array(step.source)
        value = np.empty(array.shape, array.dtype)
        registers.device().download(value, array.address, registers.streams[step.stream])
        registers.values[step.result] = value

    return run


def _host_call(step: sc.HostCall, kernel: object) -> Run:
    def run(registers: Registers) -> None:
        def on_check(status: int, given: int, expected: int) -> None:
            registers.on_check(step.first_site + status, given, expected)

        values = [value for a in step.arguments if (value := registers.values[a]) is not None]
        results = registers.functions[step.function](values, on_check)
        for register, value in zip(step.results, results, strict=True):
            registers.values[register] = value

    return run


def _read(step: sc.Read, kernel: object) -> Run:
    def run(registers: Registers) -> None:
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

    return run


def _check(step: sc.Check, kernel: object) -> Run:
    def run(registers: Registers) -> None:
        if not registers.values[step.condition]:
            registers.on_check(step.status, *registers.numbers((step.given, step.expected)))
            raise RuntimeError("the error handler of a function did not raise")

    return run


def _event(step: sc.Record | sc.Wait, kernel: object) -> Run:
    def run(registers: Registers) -> None:
        driver = registers.device()
        do = driver.record if isinstance(step, sc.Record) else driver.wait
        do(registers.events[step.event], registers.streams[step.stream])

    return run


def _if(step: sc.If, kernel: Callable[[str, int], int]) -> Run:
    sides = [(compile_steps(block.steps, kernel), block.yields) for block in (step.otherwise, step.then)]

    def run(registers: Registers) -> None:
        body, yields = sides[bool(registers.values[step.condition])]
        body(registers)
        _assign(registers, step.results, yields)

    return run


def _loop(step: sc.Loop, kernel: Callable[[str, int], int]) -> Run:
    body, (counter, *carried) = compile_steps(step.body.steps, kernel), step.body.arguments
    used = reads(step.body.steps) if is_repeated(step) else None

    def run(registers: Registers) -> None:
        at, end, by = registers.numbers((step.lower, step.upper, step.step))
        if by <= 0:
            raise ArtifactError(f"a loop of the schedule has the step {by}")
        steps = -(-(end - at) // by)
        graphs = registers.graphs
        if used is not None and steps >= _LEAST_STEPS and graphs is not None and registers.left is None:
            key = (id(step), *(_identity(registers.values[register]) for register in used))
            _replay(registers, graphs, body, key, steps)
            return
        current = [registers.values[register] for register in step.initial]
        while at < end:
            registers.values[counter] = at
            for register, value in zip(carried, current, strict=True):
                registers.values[register] = value
            body(registers)
            current = [registers.values[register] for register in step.body.yields]
            at += by
        for register, value in zip(step.results, current, strict=True):
            registers.values[register] = value

    return run


def _replay(registers: Registers, graphs: Graphs, body: Run, key: Key, steps: int) -> None:
    """Captures a step of a loop, unless it has been before, and replays it."""
    streams, driver = registers.streams, registers.device()

    def ask(stream: int) -> None:
        registers.streams = [stream, *streams[1:]]
        body(registers)

    graph = graphs.find(key)
    if graph is None:
        try:
            graph = graphs.capture(key, ask)
        finally:
            registers.streams = streams
    for _ in range(steps):
        driver.replay(graph, streams[0])


def _identity(value: Value | None) -> object:
    """What launches depend on, of a value."""
    if isinstance(value, DeviceArray):
        return value.memory.address, value.offset, value.shape, value.strides
    return value


def _while(step: sc.While, kernel: Callable[[str, int], int]) -> Run:
    before, after = (compile_steps(block.steps, kernel) for block in (step.before, step.after))
    condition, *passed = step.before.yields

    def run(registers: Registers) -> None:
        _assign(registers, step.before.arguments, step.initial)
        while True:
            before(registers)
            if not registers.values[condition]:
                break
            _assign(registers, step.after.arguments, passed)
            after(registers)
            _assign(registers, step.before.arguments, step.after.yields)
        _assign(registers, step.results, passed)

    return run


def _assign(registers: Registers, targets: Sequence[int], sources: Sequence[int]) -> None:
    values = [registers.values[source] for source in sources]
    for target, value in zip(targets, values, strict=True):
        registers.values[target] = value


_COMPILERS: dict[type[sc.Step], Callable[..., Run]] = {
    sc.Constant: _constant,
    sc.Dim: _dim,
    sc.Offset: _offset,
    sc.Stride: _stride,
    sc.Compute: _compute,
    sc.Allocate: _allocate,
    sc.Free: _free,
    sc.View: _view,
    sc.Launch: _launch,
    sc.Copy: _copy,
    sc.Upload: _upload,
    sc.Download: _download,
    sc.HostCall: _host_call,
    sc.Read: _read,
    sc.Check: _check,
    sc.Record: _event,
    sc.Wait: _event,
    sc.If: _if,
    sc.Loop: _loop,
    sc.While: _while,
}
