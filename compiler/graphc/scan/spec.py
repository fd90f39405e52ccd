# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The roles of a scan's inputs and outputs, by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

from graphc.names import unique_name
from graphc_runtime.record import record

RoleName = Literal[
    "sequence", "sit-sot", "mit-sot", "mit-mot", "nit-sot", "untraced", "non-sequence", "condition"
]

# Iterations of a while loop without a bound: more than any machine runs, and an int64 can count rows.
UNBOUNDED = 2**48


class Role:
    """Something that a scan reads or computes, by name."""

    if TYPE_CHECKING:
        name: str

        @property
        def role(self) -> RoleName:
            """Theano's name of the role."""


@record(frozen=True)
class Sequence(Role):
    """An array read row by row. Iteration `t` reads row `t + tap` for each of the taps, which are >= 0."""

    name: str
    taps: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        if not self.taps or self.taps[0] < 0 or list(self.taps) != sorted(set(self.taps)):
            raise ValueError(f"taps of sequence '{self.name}' must ascend from 0 or above, got {self.taps}")

    role: ClassVar[RoleName] = "sequence"


@record(frozen=True)
class State(Role):
    """Rows that depend on earlier rows.

    Attributes:
        name: name of the state.
        taps: offsets that are read, ascending, below 0; the smallest is minus the number of initial rows.
        writes: offsets that are written, ascending, at most 0; the last is 0, the new row.
    """

    name: str
    taps: tuple[int, ...] = (-1,)
    writes: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        if not self.taps or self.taps[-1] >= 0 or list(self.taps) != sorted(set(self.taps)):
            raise ValueError(f"taps of state '{self.name}' must ascend and be negative, got {self.taps}")
        if (
            not self.writes
            or self.writes[-1] != 0
            or self.writes[0] <= self.taps[0]
            or list(self.writes) != sorted(set(self.writes))
        ):
            raise ValueError(
                f"writes of state '{self.name}' must ascend from above {self.taps[0]} to 0, got {self.writes}"
            )

    @property
    def window(self) -> int:
        """Number of initial rows: how far the oldest tap reaches back."""
        return -self.taps[0]

    @property
    def role(self) -> RoleName:
        """Theano's name for a state of this kind."""
        if len(self.writes) > 1:
            return "mit-mot"
        return "sit-sot" if self.taps == (-1,) else "mit-sot"


@record(frozen=True)
class Output(Role):
    """A result of each iteration that no iteration reads."""

    name: str
    role: ClassVar[RoleName] = "nit-sot"


@record(frozen=True)
class Untraced(Role):
    """A value handed from iteration to iteration of which only the last is kept, of any type."""

    name: str
    role: ClassVar[RoleName] = "untraced"


@record(frozen=True)
class Invariant(Role):
    """A value that is the same in all iterations."""

    name: str
    role: ClassVar[RoleName] = "non-sequence"


@record(frozen=True)
class ScanSpec:
    """All roles of a scan. Names are unique among states and outputs, and among everything that is read.

    Examples:
        >>> graphc.scan.ScanSpec().is_while
        False
    """

    sequences: tuple[Sequence, ...] = ()
    states: tuple[State, ...] = ()
    outputs: tuple[Output, ...] = ()
    untraced: tuple[Untraced, ...] = ()
    invariants: tuple[Invariant, ...] = ()
    is_while: bool = False

    def __post_init__(self) -> None:
        for what, names in (
            ("read", [r.name for r in (*self.sequences, *self.states, *self.untraced, *self.invariants)]),
            ("computed", [r.name for r in (*self.states, *self.outputs, *self.untraced)]),
        ):
            repeated = {name for name in names if names.count(name) > 1}
            if repeated:
                raise ValueError(f"two {what} variables of a scan are named {sorted(repeated)[0]!r}")

    def form(self) -> tuple[object, ...]:
        """Roles without their names."""
        sequences = tuple(s.taps for s in self.sequences)
        states = tuple((s.taps, s.writes) for s in self.states)
        return sequences, states, len(self.outputs), len(self.untraced), len(self.invariants), self.is_while

    def inner_input_names(self) -> Iterator[tuple[str, int]]:
        """Name and tap of each inner input, in order; untraced states and invariants have tap 0."""
        for sequence in self.sequences:
            for tap in sequence.taps:
                yield sequence.name, tap
        for state in self.states:
            for tap in state.taps:
                yield state.name, tap
        for role in (*self.untraced, *self.invariants):
            yield role.name, 0

    def inner_output_names(self) -> Iterator[tuple[str, int]]:
        """Name and write offset of each inner output, in order; the condition of a while scan comes last."""
        for state in self.states:
            for write in state.writes:
                yield state.name, write
        for role in (*self.outputs, *self.untraced):
            yield role.name, 0
        if self.is_while:
            yield "until", 0

    def outer_input_names(self) -> list[str]:
        """Name of each outer input, in order; the first is the number of steps."""
        roles = (*self.sequences, *self.states, *self.untraced, *self.invariants)
        return ["n_steps", *(role.name for role in roles)]

    def outer_output_names(self) -> list[str]:
        """Name of each outer output, in order; the last of a while scan is the number of steps taken."""
        names = [role.name for role in (*self.states, *self.outputs, *self.untraced)]
        return [*names, "n_steps"] if self.is_while else names

    def with_unique(self, name: str) -> str:
        """`name`, or `name` with a number, so that no role has it."""
        taken = {*self.outer_input_names(), *self.outer_output_names()}
        return unique_name(name, taken)

    replace = replace
