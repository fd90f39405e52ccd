# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which values of the bodies of scans are equal in every iteration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.ir.constants import CONSTANTS, constant_identity
from graphc.ir.scan_view import ScanView, name_of, taps_of, writes_of
from graphc_dialects._mlir import ir
from graphc_dialects.scan_verify import DECLARATIONS


class Numbering:
    """Numbers the values of bodies so that equal numbers mean equal values.

    States that start from the same rows are assumed to be equal; the bodies are numbered under that
    assumption, and states whose next rows differ are separated, until no group changes. With several scans
    their iterations are taken to run together: they must have equal numbers of steps and the same direction.

    Args:
        views: the scans.
    """

    def __init__(self, views: Sequence[ScanView]) -> None:
        self._views = views
        self._operations = [view.operations() for view in views]
        self._carries = [
            (number, name, op) for number, view in enumerate(views) for name, op in view.carries().items()
        ]
        self._numbers: dict[Any, int] = {}
        self._outside: dict[Any, int] = {}
        self._group: dict[tuple[int, str], int] = {}
        self._refine()

    def _refine(self) -> None:
        seen: dict[Any, int] = {}
        for number, name, carry in self._carries:
            initial = carry.operands[0]
            key: Any = (self._outer(initial), tuple(taps_of(carry)), tuple(writes_of(carry)))
            self._group[number, name] = seen.setdefault(key, len(seen))
        while True:
            self._assign()
            split: dict[Any, int] = {}
            refined = {}
            for number, name, carry in self._carries:
                following = tuple(self._numbers[value] for value in list(carry.operands)[1:])
                key = (self._group[number, name], following)
                refined[number, name] = split.setdefault(key, len(split))
            stable = len(split) == len(set(self._group.values()))
            self._group = refined
            if stable:
                return

    def _assign(self) -> None:
        """Numbers every value of the bodies for the current groups."""
        known: dict[Any, int] = {}
        self._numbers = _Numbers(self)
        for position, (view, operations) in enumerate(zip(self._views, self._operations, strict=True)):
            self._numbers[view.index] = known.setdefault("index", len(known))
            for op in operations:
                if op.name in DECLARATIONS:
                    continue
                key = self._key(position, op)
                for result_number, result in enumerate(op.results):
                    self._numbers[result] = known.setdefault((key, result_number), len(known))

    def _key(self, position: int, op: ir.Operation) -> Any:
        name = op.name
        types = tuple(result.type for result in op.results)
        if self._views[position].reads_state(op):
            return name, self._group[position, name_of(op)], op.attributes["tap"], types
        if len(op.regions):
            return op
        if name in CONSTANTS:
            return name, constant_identity(op), types
        attributes = tuple((key, op.attributes[key]) for key in sorted(op.attributes))
        return name, attributes, tuple(self._numbers[value] for value in op.operands), types

    def _outer(self, value: ir.Value) -> int:
        """A negative number for a value from outside; equal ones for literals that are equal."""
        owner = value.owner
        key: Any = value
        if not isinstance(owner, ir.Block) and owner.name in CONSTANTS:
            key = (owner.name, constant_identity(owner), value.type)
        return self._outside.setdefault(key, -1 - len(self._outside))

    def __getitem__(self, value: ir.Value) -> int:
        """The number of a value of a body, or of one from outside."""
        return self._numbers[value]

    def group(self, name: str, scan: int = 0) -> int:
        """The group of a state: states of one group are equal row by row."""
        return int(self._group[scan, name])


class _Numbers(dict[Any, int]):
    """Numbers by value; values from outside are numbered when they are asked for."""

    def __init__(self, numbering: Numbering) -> None:
        super().__init__()
        self._numbering = numbering

    def __missing__(self, value: ir.Value) -> int:
        number = self[value] = self._numbering._outer(value)
        return number
