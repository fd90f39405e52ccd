# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linkers: from steps over numbered values to programs that can be called, eagerly or lazily.

A `Layout` says what there is: steps, each able to make a thunk, and which values they read and write. A
linker makes a set of registers and flags, the thunks over them, and puts both into a *program*. Registers
belong to one call at a time, so a linker keeps programs in a pool and links another one when all are in use:
calls are re-entrant, from several threads or from within a thunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from graphc_runtime.errors import LinkError
from graphc_runtime.lazy_program import LazyProgram
from graphc_runtime.record import record
from graphc_runtime.thunk import Flag, MakeThunk, Register, Spent, Thunk, plain_call


@record()
class Step:
    """One piece of work; values are known by their numbers.

    Attributes:
        make: makes the step's thunk for flags and registers of inputs, then of outputs.
        reads: the thunk's inputs, in its order.
        writes: its outputs.
        name: for messages and traces.
        overwrites: positions in ``reads`` of inputs whose memory the thunk overwrites.
        readers: other steps that read this memory. A lazy linker runs the step on a copy when one of them may
            still have to run; an eager one relies on the order of steps.
        after: those of ``readers`` that are needed whenever this step is, so that they can run first.
        feeds: for each of ``writes`` the positions in ``reads`` that it depends on; empty where it may be
            all. Of the inputs that a lazy thunk asks for, those of the output that is needed come first.

    Examples:
        >>> import graphc_runtime as rt
        >>> def double(x):
        ...     return [2 * x]
        >>> def make(read_flags, write_flags, reads, writes):
        ...     return rt.FunctionThunk(double, reads, writes, write_flags)
        >>> step = rt.Step(make, reads=(0,), writes=(1,), name="double")
        >>> step.name, step.overwrites
        ('double', ())
    """

    make: MakeThunk
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    name: str = "thunk"
    overwrites: tuple[int, ...] = ()
    readers: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    feeds: tuple[tuple[int, ...], ...] = ()


@record()
class Layout:
    """Steps and the values between them.

    Attributes:
        steps: in an order in which they can run.
        inputs: numbers of the values that a call is given.
        outputs: numbers of the values that it returns; may name inputs and constants, and repeat.
        constants: values that never change.

    Examples:
        >>> import graphc_runtime as rt
        >>> def double(x):
        ...     return [2 * x]
        >>> def make(read_flags, write_flags, reads, writes):
        ...     return rt.FunctionThunk(double, reads, writes, write_flags)
        >>> layout = rt.Layout([rt.Step(make, (0,), (1,))], inputs=[0], outputs=[1])
        >>> rt.EagerLinker(layout)([21])
        [42]
    """

    steps: Sequence[Step]
    inputs: Sequence[int]
    outputs: Sequence[int]
    constants: dict[int, object] = field(default_factory=dict)


class Frame:
    """Registers and flags of one program, made when they are first asked for.

    Args:
        inputs, constants: as in `Layout`; these values count as computed.

    Examples:
        >>> import graphc_runtime
        >>> frame = graphc_runtime.Frame(inputs=[0], constants={1: 3.0})
        >>> frame.register(1), frame.flag(1), frame.flag(2)
        ([3.0], [True], [False])
    """

    def __init__(self, inputs: Sequence[int], constants: dict[int, object]) -> None:
        self.registers: dict[int, Register] = {number: [value] for number, value in constants.items()}
        self.flags: dict[int, Flag] = {number: [True] for number in constants}
        for number in inputs:
            self.registers[number], self.flags[number] = [None], [True]

    def register(self, number: int) -> Register:
        """The register of a value."""
        return self.registers.setdefault(number, [None])

    def flag(self, number: int) -> Flag:
        """The computed flag of a value."""
        return self.flags.setdefault(number, [False])

    def link(self, make: MakeThunk, reads: Sequence[int], writes: Sequence[int]) -> Thunk:
        """A thunk over registers of this frame."""
        return make(
            [self.flag(number) for number in reads],
            [self.flag(number) for number in writes],
            [self.register(number) for number in reads],
            [self.register(number) for number in writes],
        )


class _Linker:
    """State that linkers share: the pool.

    Args:
        layout: what to link.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._pool: list[Any] = []

    def link(self, frame: Frame | None = None, thunks: Sequence[Thunk] | None = None) -> Any:
        """A new program.

        Args:
            frame: registers that exist already.
            thunks: the steps' thunks over them.
        """
        raise NotImplementedError

    def prepare(self, frame: Frame | None = None, thunks: Sequence[Thunk] | None = None) -> None:
        """Links a program for the first call; arguments as in `link`."""
        self._pool.append(self.link(frame, thunks))

    def __call__(self, values: Sequence[object], wanted: Sequence[int] | None = None) -> list[Any]:
        """Runs a program.

        Args:
            values: one for each input.
            wanted: positions of the outputs to return; None stands for all.
        """
        try:
            program = self._pool.pop()
        except IndexError:
            program = self.link()
        try:
            results: list[Any] = program(values, wanted)
        finally:
            self._pool.append(program)
        return results

    def _thunks(self, frame: Frame) -> list[Thunk]:
        return [frame.link(step.make, step.reads, step.writes) for step in self.layout.steps]

    def __getstate__(self) -> dict[str, object]:
        return {"layout": self.layout, "_pool": []}


class EagerLinker(_Linker):
    """Links programs that run every thunk in the order of the steps.

    Raises:
        LinkError: from `link`: a thunk is lazy.

    Examples:
        >>> import graphc_runtime as rt
        >>> def double(x):
        ...     return [2 * x]
        >>> def make(read_flags, write_flags, reads, writes):
        ...     return rt.FunctionThunk(double, reads, writes, write_flags)
        >>> layout = rt.Layout([rt.Step(make, (0,), (1,))], inputs=[0], outputs=[1])
        >>> rt.EagerLinker(layout)([21])
        [42]
    """

    def link(self, frame: Frame | None = None, thunks: Sequence[Thunk] | None = None) -> EagerProgram:
        if frame is None or thunks is None:
            frame = Frame(self.layout.inputs, self.layout.constants)
            thunks = self._thunks(frame)
        for step, thunk in zip(self.layout.steps, thunks, strict=True):
            if thunk.lazy:
                raise LinkError(
                    f"the thunk of {step.name} is lazy, which EagerLinker cannot run; use LazyLinker"
                )
        return EagerProgram(self.layout, frame, thunks)


class LazyLinker(_Linker):
    """Links programs that run only what wanted outputs need, as thunks ask for it.

    Examples:
        >>> import graphc_runtime as rt
        >>> def double(x):
        ...     return [2 * x]
        >>> def make(read_flags, write_flags, reads, writes):
        ...     return rt.FunctionThunk(double, reads, writes, write_flags)
        >>> steps = [rt.Step(make, (0,), (1,)), rt.Step(make, (1,), (2,))]
        >>> linker = rt.LazyLinker(rt.Layout(steps, inputs=[0], outputs=[1, 2]))
        >>> linker([21], wanted=[0])  # the second step does not run
        [42]
    """

    def link(self, frame: Frame | None = None, thunks: Sequence[Thunk] | None = None) -> LazyProgram:
        if frame is None or thunks is None:
            frame = Frame(self.layout.inputs, self.layout.constants)
            thunks = self._thunks(frame)
        return LazyProgram(self.layout, frame, thunks)


def make_linker(layout: Layout, frame: Frame | None = None, thunks: Sequence[Thunk] | None = None) -> _Linker:
    """The linker that a layout needs, with a first program: lazy if one of the thunks is.

    Args:
        layout: what to link.
        frame: registers that exist already.
        thunks: the steps' thunks over them.

    Examples:
        >>> import graphc_runtime as rt
        >>> def double(x):
        ...     return [2 * x]
        >>> def make(read_flags, write_flags, reads, writes):
        ...     return rt.FunctionThunk(double, reads, writes, write_flags)
        >>> linker = rt.make_linker(rt.Layout([rt.Step(make, (0,), (1,))], inputs=[0], outputs=[1]))
        >>> type(linker).__name__, linker([21])
        ('EagerLinker', [42])
    """
    if frame is None or thunks is None:
        frame = Frame(layout.inputs, layout.constants)
        thunks = [frame.link(step.make, step.reads, step.writes) for step in layout.steps]
    kind = LazyLinker if any(thunk.lazy for thunk in thunks) else EagerLinker
    result = kind(layout)
    result.prepare(frame, thunks)
    return result


class EagerProgram:
    """Runs all thunks in order; a value is released after the last thunk that reads it."""

    def __init__(self, layout: Layout, frame: Frame, thunks: Sequence[Thunk]) -> None:
        last: dict[int, int] = {}
        for position, step in enumerate(layout.steps):
            # What nobody reads is released by whoever wrote it.
            last.update(dict.fromkeys((*step.reads, *step.writes), position))
        kept = {*layout.outputs, *layout.constants}
        spent: list[list[Register]] = [[] for _ in thunks]
        for number, position in last.items():
            if number not in kept:
                spent[position].append(frame.register(number))
        # The bound method spares each call the look-up of __call__ on the class, and a function of one value
        # its thunk: nobody asks for flags here. Most thunks are the last readers of one value, which then
        # needs no loop.
        none: Register = [None]
        self._steps = [
            (*plain_call(thunk), thunk.__call__, cells[0] if cells else none, tuple(cells[1:]))
            for thunk, cells in zip(thunks, spent, strict=True)
        ]
        self._inputs = [frame.register(number) for number in layout.inputs]
        self._outputs = [frame.register(number) for number in layout.outputs]
        self._ends = [frame.register(n) for n in {*layout.inputs, *layout.outputs} - set(layout.constants)]
        self._all = [cell for number, cell in frame.registers.items() if number not in layout.constants]

    def __call__(self, values: Sequence[object], wanted: Sequence[int] | None = None) -> list[Any]:
        try:
            if len(values) != len(self._inputs):
                raise TypeError(f"the program has {len(self._inputs)} inputs, got {len(values)} values")
            for register, value in zip(self._inputs, values):  # noqa: B905
                register[0] = value
            if type(values) is Spent:
                values.clear()
                value = None
            for function, source, target, run, first, more in self._steps:
                if function is None:
                    run()
                else:
                    target[0] = function(source[0])
                first[0] = None
                if more:
                    for register in more:
                        register[0] = None
            if wanted is None:
                return [register[0] for register in self._outputs]
            return [self._outputs[i][0] for i in wanted]
        except BaseException:
            for register in self._all:
                register[0] = None
            raise
        finally:
            for register in self._ends:
                register[0] = None
