# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of a schedule as Python functions, made once and run in each call."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from graphc_runtime.cuda import schedule as sc
from graphc_runtime.cuda.analysis import has_products, is_repeated, reads
from graphc_runtime.cuda.array import DeviceArray
from graphc_runtime.cuda.device_steps import ON_DEVICE, at_once
from graphc_runtime.cuda.driver import DriverError
from graphc_runtime.cuda.gemm import axes_of, gemm_of
from graphc_runtime.cuda.graphs import Graphs, Key
from graphc_runtime.cuda.registers import Registers, Run, Value
from graphc_runtime.errors import ArtifactError

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


def _guarded(step: sc.Step, run: Run) -> Run:
    """Errors of the driver say what was being done."""
    if type(step) not in ON_DEVICE:
        return run

    def guarded(registers: Registers) -> None:
        registers.step = step
        try:
            run(registers)
        except DriverError as error:
            raise error.at(step) from None

    return guarded


def _constant(step: sc.Constant, registers: Registers) -> None:
    registers.values[step.result] = step.value


def _dim(step: sc.Dim, registers: Registers) -> None:
    value = registers.values[step.array]
    assert isinstance(value, DeviceArray | np.ndarray)
    if not 0 <= step.axis < len(value.shape):
        raise ArtifactError(f"the schedule asks for axis {step.axis} of an array of shape {value.shape}")
    registers.values[step.result] = value.shape[step.axis]


def _offset(step: sc.Offset, registers: Registers) -> None:
    registers.values[step.result] = registers.array(step.array).offset


def _stride(step: sc.Stride, registers: Registers) -> None:
    strides = registers.array(step.array).strides
    if not 0 <= step.axis < len(strides):
        raise ArtifactError(f"the schedule asks for axis {step.axis} of an array with strides {strides}")
    registers.values[step.result] = strides[step.axis]


def _compute(step: sc.Compute, kernel: object) -> Run:
    function, result, operands = sc.OPERATIONS[step.operation], step.result, step.operands

    def run(registers: Registers) -> None:
        try:
            registers.values[result] = function(*[registers.values[operand] for operand in operands])
        except ZeroDivisionError:
            raise ArtifactError(f"the schedule divides by 0, in {step.operation}") from None

    return run


def _check(step: sc.Check, registers: Registers) -> None:
    if not registers.values[step.condition]:
        registers.on_check(step.status, *registers.numbers((step.given, step.expected)))
        raise RuntimeError("the error handler of a function did not raise")


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
    multiplies = has_products(step.body.steps)

    def run(registers: Registers) -> None:
        at, end, by = registers.numbers((step.lower, step.upper, step.step))
        if by <= 0:
            raise ArtifactError(f"a loop of the schedule has the step {by}")
        steps = -(-(end - at) // by)
        graphs = registers.graphs
        if used is not None and steps >= _LEAST_STEPS and graphs is None:
            registers.is_unrolled = True
        elif used is not None and steps >= _LEAST_STEPS and graphs is not None:
            key = (id(step), *(_identity(registers.values[register]) for register in used))
            if multiplies and "cublas" in registers.libraries and graphs.find(key) is None:
                # The library loads what it needs when it is asked for the first time, which is not captured.
                body(registers)
                steps -= 1
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
    """Properties of a value on which launches depend."""
    if isinstance(value, DeviceArray):
        return value.memory.address, value.offset, value.shape, value.strides
    return value


def _product(step: sc.Product, kernel: Callable[[str, int], int]) -> Run:
    axes, kernels = axes_of(step.form), compile_steps(step.kernels.steps, kernel)

    def run(registers: Registers) -> None:
        asked = None
        if "cublas" in registers.libraries:
            arrays = [registers.array(register) for register in (step.left, step.right, step.target)]
            asked = gemm_of(axes, arrays, short=step.short, adds=step.adds)
        if asked is None:
            kernels(registers)
            return
        registers.count()
        registers.step = step
        gemm, (a, b, c) = asked
        addresses = a.address, b.address, c.address
        try:
            registers.device().ask(gemm, addresses, registers.streams[step.stream])
        except DriverError as error:
            raise error.at(step) from None

    return run


def _has(step: sc.Has, registers: Registers) -> None:
    registers.values[step.result] = step.library in registers.libraries


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
    **ON_DEVICE,
    sc.Constant: at_once(_constant),
    sc.Dim: at_once(_dim),
    sc.Offset: at_once(_offset),
    sc.Stride: at_once(_stride),
    sc.Compute: _compute,
    sc.Check: at_once(_check),
    sc.If: _if,
    sc.Loop: _loop,
    sc.While: _while,
    sc.Product: _product,
    sc.Has: at_once(_has),
}
