# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Building a scan role by role, from variables of other graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphc.graph.basic import Variable
from graphc.graph.replace import rebuild
from graphc.names import unique_name
from graphc.scan import spec as roles
from graphc.scan.op import Scan


class ScanBuilder:
    """Collects the roles of a loop, then builds and applies it.

    Each role is given with the variables that stand for it in expressions of the body. These may be any
    variables, results of other graphs too: what computes them is not copied. The loop gets a private copy of
    its body.
    """

    def __init__(self) -> None:
        self._taken = {"n_steps", "until"}
        self._sequences: list[tuple[roles.Sequence, list[Variable], Variable]] = []
        self._states: list[tuple[roles.State, list[Variable], Variable, list[Variable]]] = []
        self._outputs: list[tuple[roles.Output, Variable]] = []
        self._untraced: list[tuple[roles.Untraced, Variable, Variable, Variable]] = []
        self._invariants: list[tuple[roles.Invariant, Variable, Variable]] = []
        self._until: list[Variable] = []

    def unique(self, name: str) -> str:
        """``name``, or ``name`` with a number, that no role has; it is taken from now on."""
        free = unique_name(name, self._taken)
        self._taken.add(free)
        return free

    def sequence(self, name: str, value: Variable, taps: Mapping[int, Variable]) -> str:
        """An array, and the variables that stand for row ``t + tap`` of it."""
        name, ordered = self.unique(name), sorted(taps)
        self._sequences.append((roles.Sequence(name, tuple(ordered)), [taps[tap] for tap in ordered], value))
        return name

    def state(
        self, name: str, initial: Variable, taps: Mapping[int, Variable], writes: Mapping[int, Variable]
    ) -> str:
        """A state: its initial rows, the variables that stand for its taps, and what is written."""
        name, ordered, written = self.unique(name), sorted(taps), sorted(writes)
        role = roles.State(name, tuple(ordered), tuple(written))
        entry = (role, [taps[tap] for tap in ordered], initial, [writes[write] for write in written])
        self._states.append(entry)
        return name

    def output(self, name: str, row: Variable) -> str:
        """A result of each iteration."""
        name = self.unique(name)
        self._outputs.append((roles.Output(name), row))
        return name

    def untraced(self, name: str, initial: Variable, old: Variable, new: Variable) -> str:
        """A value that is handed on: its first value, the variable that stands for it, and its next value."""
        name = self.unique(name)
        self._untraced.append((roles.Untraced(name), old, initial, new))
        return name

    def invariant(self, name: str, value: Variable, inner: Variable) -> str:
        """A value that is the same in all iterations, and the variable that stands for it."""
        name = self.unique(name)
        self._invariants.append((roles.Invariant(name), inner, value))
        return name

    def until(self, condition: Variable) -> None:
        """Stop after an iteration in which ``condition`` is true."""
        self._until = [condition]

    def substitute(self, replaced: Mapping[Variable, Variable]) -> None:
        """Uses other variables, or expressions, in what an iteration computes so far."""
        found = iter(rebuild(self.results, dict(replaced), copy_nodes=False, strict=False))
        self._states = [
            (role, taps, initial, [next(found) for _ in written])
            for role, taps, initial, written in self._states
        ]
        self._outputs = [(role, next(found)) for role, _ in self._outputs]
        self._untraced = [(role, old, initial, next(found)) for role, old, initial, _ in self._untraced]
        self._until = list(found)

    @property
    def results(self) -> list[Variable]:
        """Results of an iteration, so far."""
        written = [v for _, _, _, values in self._states for v in values]
        rows = [row for _, row in self._outputs]
        return [*written, *rows, *[new for _, _, _, new in self._untraced], *self._until]

    @property
    def empty(self) -> bool:
        """True if the loop computes nothing."""
        return not (self._states or self._outputs or self._untraced)

    def build(self, n_steps: Variable, **options: Any) -> dict[str, Variable]:
        """Apply the loop.

        Args:
            n_steps: number of iterations.
            options: keyword arguments of `Scan`.

        Returns:
            The outer outputs by name.
        """
        read = [v for _, taps, _ in self._sequences for v in taps]
        read += [v for _, taps, _, _ in self._states for v in taps]
        read += [old for _, old, _, _ in self._untraced] + [inner for _, inner, _ in self._invariants]
        spec = roles.ScanSpec(
            tuple(entry[0] for entry in self._sequences),
            tuple(entry[0] for entry in self._states),
            tuple(entry[0] for entry in self._outputs),
            tuple(entry[0] for entry in self._untraced),
            tuple(entry[0] for entry in self._invariants),
            bool(self._until),
        )
        inner, results = _private(read, self.results)
        op = Scan(spec, inner, results, **options)
        outer = [value for _, _, value in self._sequences] + [entry[2] for entry in self._states]
        outer += [entry[2] for entry in self._untraced] + [value for _, _, value in self._invariants]
        outputs = op(n_steps, *outer, return_list=True)
        return dict(zip(spec.outer_output_names(), outputs, strict=True))


def _private(read: Sequence[Variable], results: Sequence[Variable]) -> tuple[list[Variable], list[Variable]]:
    """Fresh roots for what is read, and copies of the results that are computed from these roots."""
    fresh: list[Variable] = []
    memo: dict[Variable, Variable] = {}
    for v in read:
        root = v.type.make_variable(v.name)
        fresh.append(root)
        memo.setdefault(v, root)
    return fresh, rebuild(results, dict(memo), copy_nodes=True, strict=False)
