# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Facts about steps before they run, and schedules with other steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from graphc_runtime.cuda import schedule as sc
from graphc_runtime.cuda.libraries import ROUTINES


def asks_device(steps: Sequence[sc.Step]) -> bool:
    """True if steps need more of the device than elements of arrays."""
    return any(not isinstance(step, sc.HostStep) or asks_device(_inner(step)) for step in steps)


def _inner(step: sc.Step) -> list[sc.Step]:
    """The steps of the blocks of a step."""
    return [inner for value in vars(step).values() if isinstance(value, sc.Block) for inner in value.steps]


def needs_no_values(steps: Sequence[sc.Step], *, with_libraries: bool = False) -> bool:
    """True if steps are the same for the same shapes, so that a graph of them can be replayed.

    Args:
        steps: these.
        with_libraries: whether what is done where a library is not there, or not for these sizes, does not
            count.
    """
    waits = sc.Read | sc.Download | sc.Upload | sc.HostCall
    chosen = _by_libraries(steps) if with_libraries else ()

    def inner(step: sc.Step) -> Sequence[sc.Step]:
        if isinstance(step, sc.If) and step.condition in chosen:
            return step.then.steps
        return _inner(step)

    return all(
        not isinstance(step, waits) and needs_no_values(inner(step), with_libraries=with_libraries)
        for step in steps
    )


def _by_libraries(steps: Sequence[sc.Step]) -> set[int]:
    """The registers that are true only if a library is there."""
    found: set[int] = set()
    for step in steps:
        if isinstance(step, sc.Has):
            found.add(step.result)
        if isinstance(step, sc.Compute) and step.operation == "andi" and found & set(step.operands):
            found.add(step.result)
    return found


def by_library(schedule: sc.Schedule) -> dict[str, list[sc.Step]]:
    """The steps of a schedule that libraries may compute, by the name of the library."""
    found: dict[str, list[sc.Step]] = {}
    for step in _all((*schedule.main.steps, *schedule.shapes.steps)):
        if isinstance(step, sc.Product):
            found.setdefault("cublas", []).append(step)
        elif isinstance(step, sc.Ask):
            found.setdefault(ROUTINES[step.routine].library, []).append(step)
    return found


def has_products(steps: Sequence[sc.Step]) -> bool:
    """True if there are matrix products among steps that a library may compute."""
    return any(isinstance(step, sc.Product) for step in _all(steps))


def is_repeated(loop: sc.Loop) -> bool:
    """True if each step of a loop asks for the same, so that one can be captured, and replayed."""
    inside = loop.body.steps
    if loop.initial or not any(isinstance(step, sc.Launch) for step in _all(inside)):
        return False
    others = (sc.Allocate, sc.Free, sc.Check, sc.Record, sc.Wait, sc.Ask)
    if not needs_no_values(inside) or any(isinstance(s, others) or s.stream for s in _all(inside)):
        return False
    return loop.body.arguments[0] not in set(reads(inside))


def _all(steps: Sequence[sc.Step]) -> Iterable[sc.Step]:
    """Steps, and those in their blocks."""
    for step in steps:
        yield step
        yield from _all(_inner(step))


def reads(steps: Sequence[sc.Step]) -> list[int]:
    """The registers that steps read and do not write, each once."""
    found: dict[int, None] = {}
    written: set[int] = set()

    def note(read: Iterable[int]) -> None:
        found.update(dict.fromkeys(register for register in read if register not in written))

    def one(step: sc.Step) -> None:
        note(register for register, _ in sc.registers_of(step, are_new=False))
        for block in vars(step).values():
            if isinstance(block, sc.Block):
                written.update(block.arguments)
                for inner in block.steps:
                    one(inner)
                note(block.yields)
        written.update(register for register, _ in sc.registers_of(step, are_new=True))

    for step in steps:
        one(step)
    return list(found)


def with_sites_after(schedule: sc.Schedule, count: int) -> sc.Schedule:
    """The schedule with the numbers of its check sites raised, for a list that has others before them."""

    def raised(step: sc.Step) -> sc.Step:
        if isinstance(step, sc.Check):
            return replace(step, status=step.status + count)
        return replace(step, first_site=step.first_site + count) if isinstance(step, sc.HostCall) else step

    return mapped(schedule, raised)


def mapped(schedule: sc.Schedule, change: Callable[[sc.Step], sc.Step]) -> sc.Schedule:
    """The schedule with other steps; a function gives one for each, and is given inner ones first."""

    def steps(old: tuple[sc.Step, ...]) -> tuple[sc.Step, ...]:
        return tuple(change(_with_blocks(step, steps)) for step in old)

    def program(old: sc.Program) -> sc.Program:
        return replace(old, steps=steps(old.steps))

    return replace(schedule, main=program(schedule.main), shapes=program(schedule.shapes))


def _with_blocks(step: sc.Step, change: Callable[[tuple[sc.Step, ...]], tuple[sc.Step, ...]]) -> sc.Step:
    blocks = {
        name: replace(value, steps=change(value.steps))
        for name, value in vars(step).items()
        if isinstance(value, sc.Block)
    }
    make: Callable[..., sc.Step] = type(step)
    return make(**{**vars(step), **blocks}) if blocks else step
