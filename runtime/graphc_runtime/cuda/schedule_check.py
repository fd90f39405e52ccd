# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Consistency of a schedule: registers are written once, before they are read, and as what."""

from __future__ import annotations

from collections.abc import Sequence

from graphc_runtime.cuda import schedule as sc
from graphc_runtime.cuda.gemm import axes_of
from graphc_runtime.cuda.libraries import LIBRARIES, ROUTINES
from graphc_runtime.cuda.schedule import DEVICE, NUMBER
from graphc_runtime.errors import ArtifactError
from graphc_runtime.symbols import DTYPES

_ARITY = {"select": 3, "power_of_2": 1}


def check(schedule: sc.Schedule) -> None:
    """Checks a schedule.

    Raises:
        ArtifactError: a step reads what no step before it has written, or what is of another kind, or refers
            to a stream, an event or a function that there is not. The message names the step.
    """
    if not 1 <= schedule.streams <= 64:
        raise ArtifactError(f"a schedule with {schedule.streams} streams")
    for program in (schedule.main, schedule.shapes):
        _Check(schedule, program).run()


class _Check:
    def __init__(self, schedule: sc.Schedule, program: sc.Program) -> None:
        self._schedule, self._program = schedule, program
        self._written: set[int] = set()
        self._step: sc.Step | None = None

    def run(self) -> None:
        program = self._program
        if program.parameters > program.registers:
            self._fail(f"{program.parameters} parameters in {program.registers} registers")
        known = dict.fromkeys(range(program.parameters), DEVICE)
        self._written.update(known)
        self._block(program.steps, known)
        for result in program.results:
            self._read(known, result)

    def _block(self, steps: Sequence[sc.Step], known: dict[int, str]) -> None:
        for step in steps:
            self._step = step
            if not 0 <= step.stream < self._schedule.streams:
                self._fail(f"stream {step.stream}")
            self._one(step, known)

    def _one(self, step: sc.Step, known: dict[int, str]) -> None:
        """Registers of a step are what its fields say; and what is special about it."""
        if isinstance(step, sc.If | sc.Loop | sc.While):
            self._control(step, known)
            return
        result = NUMBER
        if isinstance(step, sc.Compute):
            result = self._compute(step, known)
        elif isinstance(step, sc.Allocate) or (isinstance(step, sc.View) and step.dtype):
            self._dtype(step.dtype)
        elif isinstance(step, sc.Launch):
            self._launch(step, known)
        elif isinstance(step, sc.Product):
            self._product(step, known)
        elif isinstance(step, sc.Has | sc.Ask):
            self._library(step)
        elif isinstance(step, sc.HostCall) and not 0 <= step.function < self._schedule.functions:
            self._fail(f"function {step.function} of {self._schedule.functions}")
        elif isinstance(step, sc.Record | sc.Wait) and not 0 <= step.event < self._schedule.events:
            self._fail(f"event {step.event} of {self._schedule.events}")
        if isinstance(step, sc.View) and len(step.sizes) != len(step.strides):
            self._fail(f"{len(step.sizes)} sizes and {len(step.strides)} strides")
        for register, held in sc.registers_of(step, are_new=False):
            self._read(known, register, *held)
        for register, held in sc.registers_of(step, are_new=True):
            self._write(known, register, held[0] if held else result)

    def _compute(self, step: sc.Compute, known: dict[int, str]) -> str:
        """Kind of the result."""
        operands = step.operands
        if step.operation not in sc.OPERATIONS or len(operands) != _ARITY.get(step.operation, 2):
            self._fail(f"{len(operands)} operands of {step.operation!r:.50}")
        kind = NUMBER
        if step.operation == "select":
            kind = self._read(known, operands[1], NUMBER, DEVICE)
            self._read(known, operands[2], kind)
            operands = operands[:1]
        for operand in operands:
            self._read(known, operand, NUMBER)
        return kind

    def _launch(self, step: sc.Launch, known: dict[int, str]) -> None:
        if len(step.grid) != 3 or len(step.block) != 3:
            self._fail("a grid or a block that has not three sizes")
        if step.types and len(step.types) != len(step.arguments):
            self._fail(f"{len(step.types)} types of {len(step.arguments)} arguments")
        for kind, argument in zip(step.types, step.arguments, strict=False):
            if kind:
                self._dtype(kind)
            self._read(known, argument, NUMBER if kind else DEVICE)

    def _product(self, step: sc.Product, known: dict[int, str]) -> None:
        try:
            axes_of(step.form)
        except ValueError as error:
            self._fail(str(error))
        if not step.kernels.steps or any(type(inner) is not sc.Launch for inner in step.kernels.steps):
            self._fail("what does the same is not only launches")
        if self._body(step.kernels, known, ()):
            self._fail("its launches yield something")
        if any(inner.stream != step.stream for inner in step.kernels.steps):
            self._fail("its launches are in another stream")

    def _library(self, step: sc.Has | sc.Ask) -> None:
        if isinstance(step, sc.Has):
            if step.library not in LIBRARIES:
                self._fail(f"the library {step.library!r:.50}")
            return
        routine = ROUTINES.get(step.routine)
        if routine is None:
            self._fail(f"the routine {step.routine!r:.50}")
        elif (len(step.arrays), len(step.numbers)) != (len(routine.arrays), len(routine.numbers)):
            self._fail(f"{len(step.arrays)} arrays and {len(step.numbers)} numbers for {step.routine}")

    def _control(self, step: sc.If | sc.Loop | sc.While, known: dict[int, str]) -> None:
        for register, held in sc.registers_of(step, are_new=False):
            self._read(known, register, *held)
        if isinstance(step, sc.If):
            found = [self._body(block, known, ()) for block in (step.then, step.otherwise)]
            if found[0] != found[1]:
                self._fail("its blocks yield different things")
            kinds = found[0]
        elif isinstance(step, sc.Loop):
            kinds = [self._read(known, register) for register in step.initial]
            if self._body(step.body, known, (NUMBER, *kinds)) != kinds:
                self._fail("its body yields other things than it is given")
        else:
            initial = [self._read(known, register) for register in step.initial]
            first, *kinds = self._body(step.before, known, initial) or [""]
            if first != NUMBER or self._body(step.after, known, kinds) != initial:
                self._fail("its blocks yield other things than they are given")
        self._step = step
        if len(step.results) != len(kinds):
            self._fail(f"{len(step.results)} results of {len(kinds)} yields")
        for result, kind in zip(step.results, kinds, strict=True):
            self._write(known, result, kind)

    def _body(self, block: sc.Block, known: dict[int, str], given: Sequence[str]) -> list[str]:
        """Values that a block yields, by kind."""
        if len(block.arguments) != len(given):
            self._fail(f"a block with {len(block.arguments)} arguments, given {len(given)}")
        inner = dict(known)
        for register, kind in zip(block.arguments, given, strict=True):
            self._write(inner, register, kind)
        self._block(block.steps, inner)
        return [self._read(inner, register) for register in block.yields]

    def _read(self, known: dict[int, str], register: int, *kinds: str) -> str:
        found = known.get(register)
        if found is None:
            self._fail(f"register {register} has no value there")
        elif kinds and found not in kinds:
            self._fail(f"register {register} holds {found}, expected {' or '.join(kinds)}")
        return found or ""

    def _write(self, known: dict[int, str], register: int, kind: str) -> None:
        if not 0 <= register < self._program.registers or register in self._written:
            self._fail(f"register {register} is written twice, or is not there")
        self._written.add(register)
        known[register] = kind

    def _dtype(self, dtype: str) -> None:
        if dtype not in DTYPES:
            self._fail(f"dtype {dtype!r:.50}")

    def _fail(self, what: str) -> None:
        step = self._step
        where = f"{step.kind} of {step.op or 'no operation'}" if step is not None else "its head"
        raise ArtifactError(f"the schedule does not agree with itself, in {where}: {what}")
