# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``LazyProgram``: demand-driven execution of linked thunks, with a stack of its own instead of recursion."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphc_runtime.errors import LinkError
from graphc_runtime.thunk import Flag, Register, Spent, Thunk

if TYPE_CHECKING:
    from graphc_runtime.linker import Frame, Layout


class LazyProgram:
    """Computes wanted outputs and what thunks ask for, each thunk to its end at most once a call.

    Every value has a count of the steps that may still read it. Where it falls to zero, the value is
    released; if it has not been computed, its step will not run either, and no longer counts as a reader.
    So what only an unselected branch could have read does not outlive the choice.
    """

    def __init__(self, layout: Layout, frame: Frame, thunks: Sequence[Thunk]) -> None:
        self._steps = layout.steps
        self._names = [step.name for step in layout.steps]
        self._calls = [thunk.__call__ for thunk in thunks]
        self._lazy = [thunk.lazy for thunk in thunks]
        self._reads = [tuple(dict.fromkeys(step.reads)) for step in layout.steps]
        self._registers, self._flags = frame.registers, frame.flags
        self._inputs, self._outputs = layout.inputs, layout.outputs
        self._producer = {number: i for i, step in enumerate(layout.steps) for number in step.writes}
        given = {*layout.inputs, *layout.constants}
        for number in {*layout.outputs, *given}:
            frame.register(number), frame.flag(number)
        self._counts = dict.fromkeys(frame.registers, 0)
        for reads in self._reads:
            for number in reads:
                self._counts[number] += 1
        for number in layout.constants:
            # Never released.
            self._counts[number] += 1
        self._temporary = [frame.register(n) for n in frame.registers if n not in layout.constants]
        self._unset: list[Flag] = [frame.flag(n) for n in frame.registers if n not in given]
        missing = [n for n in frame.registers if n not in given and n not in self._producer]
        if missing:
            raise LinkError(f"no step computes the values {missing}, which are neither inputs nor constants")

    def __call__(self, values: Sequence[object], wanted: Sequence[int] | None = None) -> list[Any]:
        outputs = self._outputs if wanted is None else [self._outputs[i] for i in wanted]
        registers = self._registers
        try:
            for number, value in zip(self._inputs, values, strict=True):
                registers[number][0] = value
            if type(values) is Spent:
                values.clear()
                value = None
            _Call(self, outputs).run()
            return [registers[number][0] for number in outputs]
        finally:
            for register in self._temporary:
                register[0] = None
            for flag in self._unset:
                flag[0] = False


class _Call:
    """One call: which steps are done, and how many may still read each value."""

    def __init__(self, program: LazyProgram, outputs: Sequence[int]) -> None:
        self._program = program
        self._outputs = outputs
        self._done = bytearray(len(program._steps))
        self._counts = program._counts.copy()
        for number in outputs:
            self._counts[number] += 1

    def run(self) -> None:
        program, flags = self._program, self._program._flags
        unwanted = {n for n in program._outputs if not self._counts[n]}
        if unwanted:
            self._drop(list(unwanted))
        for output in self._outputs:
            # What is asked for, the latest on top.
            stack = [output]
            while stack:
                number = stack[-1]
                if flags[number][0]:
                    stack.pop()
                    continue
                step = program._producer[number]
                missing = self._advance(step)
                # A thunk may compute one output and need more for another one.
                if missing and not flags[number][0]:
                    stack += reversed(self._of(number, step, missing))

    def _of(self, number: int, step: int, missing: list[int]) -> list[int]:
        """Those of the values that a step asks for which an output depends on; all if there are none."""
        record = self._program._steps[step]
        if not record.feeds:
            return missing
        wanted = {record.reads[i] for i in record.feeds[record.writes.index(number)]}
        return [value for value in missing if value in wanted] or missing

    def _advance(self, step: int) -> list[int]:
        """Runs a step if it can; returns the values that it needs first."""
        program, flags = self._program, self._program._flags
        if self._done[step]:
            raise LinkError(f"{program._names[step]} finished without computing an output that is needed")
        if not program._lazy[step]:
            missing = [number for number in program._reads[step] if not flags[number][0]]
            if missing:
                return missing
        missing = self._readers_first(step)
        if missing:
            return missing
        needed = self._call(step)
        if not needed:
            self._finish(step)
            return []
        reads = program._steps[step].reads
        missing = [reads[i] for i in needed]
        missing = [number for number in missing if not flags[number][0]]
        if not missing:
            raise LinkError(
                f"the thunk of {program._names[step]} asks for its inputs {list(needed)}, which are computed"
            )
        return missing

    def _readers_first(self, step: int) -> list[int]:
        """Values of steps that have to read memory before this step overwrites it."""
        program = self._program
        waiting = [other for other in program._steps[step].after if not self._done[other]]
        values = [program._steps[other].writes[0] for other in waiting]
        return [number for number in values if not program._flags[number][0]]

    def _call(self, step: int) -> Sequence[int] | None:
        program, record = self._program, self._program._steps[step]
        if not record.overwrites or all(self._done[other] for other in record.readers):
            return program._calls[step]()
        # Others may still have to read what this step overwrites, so it works on copies.
        held: list[tuple[Register, object]] = []
        for position in record.overwrites:
            register = program._registers[record.reads[position]]
            held.append((register, register[0]))
            register[0] = copy.deepcopy(register[0])
        try:
            return program._calls[step]()
        finally:
            for register, value in held:
                register[0] = value

    def _finish(self, step: int) -> None:
        program = self._program
        self._done[step] = True
        for number in program._steps[step].writes:
            program._flags[number][0] = True
        self._drop([n for n in program._steps[step].writes if not self._counts[n]])
        self._release(step)

    def _release(self, step: int) -> None:
        """Counts a step that has ended, or never runs, out of the readers of its inputs."""
        counts = self._counts
        spent = []
        for number in self._program._reads[step]:
            counts[number] -= 1
            if not counts[number]:
                spent.append(number)
        if spent:
            self._drop(spent)

    def _drop(self, numbers: list[int]) -> None:
        """Releases values that nobody reads any more, and what only their steps would have read."""
        program, counts = self._program, self._counts
        pending = numbers
        while pending:
            number = pending.pop()
            program._registers[number][0] = None
            step = program._producer.get(number)
            if step is None or self._done[step] or any(counts[n] for n in program._steps[step].writes):
                continue
            self._done[step] = True
            for source in program._reads[step]:
                counts[source] -= 1
                if not counts[source]:
                    pending.append(source)
