# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts of `graphc.ir.work` for given sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from graphc.ir.size import Argument, Number, Recorded
from graphc.ir.work import Block, Kernel, Place, Work

Key = Literal["flops", "functions", "moved"]
_ARITHMETIC: tuple[Key, ...] = ("flops", "functions")
_MOVES: tuple[Key, ...] = ("moved",)
# Iterations that are gone through one by one, of a loop in which counts change from one to the next.
_MOST = 1_000_000


class Unknown(Exception):
    """A count depends on more than what is known."""


class Counts:
    """The counts of a function.

    Args:
        work: its record.
        arguments: as far as they are known.
    """

    def __init__(self, work: Work, arguments: Sequence[Argument]) -> None:
        self._work = work
        self._sizes = _InLoops(work["expressions"], arguments)
        self._uses: dict[int, frozenset[int]] = {}
        self._keys = _ARITHMETIC

    def operations(self, kernel: Kernel) -> Counter[str] | None:
        """Floating-point operations by element type, and functions by name and element type.

        Returns:
            None where the number of iterations is not known.
        """
        return self._total(kernel, _ARITHMETIC)

    def moved(self, kernel: Kernel) -> Number:
        """Bytes that loads, stores and copies move, an element as often as that happens: what `bytes` counts
        once, and copies in loops. Those in functions that are called are not counted.

        Returns:
            None where the number of iterations is not known.
        """
        found = self._total(kernel, _MOVES)
        return None if found is None else found.total()

    def _total(self, kernel: Kernel, keys: tuple[Key, ...]) -> Counter[str] | None:
        self._keys = keys
        try:
            return self._block(kernel["body"])
        except Unknown:
            return None

    def unknown(self, kernel: Kernel) -> list[str]:
        """What is called in a kernel and has no counts."""
        return sorted(set(_unknown(kernel["body"])))

    def expanded(self, operations: Counter[str]) -> Counter[str]:
        """Operations by element type, with those of the inline code of functions. Others count as one."""
        found: Counter[str] = Counter()
        for name, count in operations.items():
            _, _, element = name.rpartition(" ")
            found[element] += count * (self._work["weights"].get(name, 1) if " " in name else 1)
        return found

    def bytes(self, kernel: Kernel) -> Number:
        """What a kernel reads and writes; None where sizes are not known."""
        total = 0
        for write in (False, True):
            places: dict[int, list[Place]] = {}
            for place in kernel["places"]:
                if place["written"] == write:
                    places.setdefault(place["root"], []).append(place)
            for root, found in places.items():
                count = self._elements(root, found)
                if count is None:
                    return None
                total += count * max(place["item"] for place in found)
        return total

    def _elements(self, root: int, places: list[Place]) -> Number:
        """How many elements of a buffer its places are, at most all of it."""
        whole = self._sizes.product(self._work["roots"][root])
        try:
            found = sum(self._iterations(place["loops"]) * self._product(place["count"]) for place in places)
        except Unknown:
            return whole
        return found if whole is None else min(found, whole)

    def _product(self, numbers: list[int]) -> int:
        value = self._sizes.product(numbers)
        if value is None:
            raise Unknown
        return value

    def _iterations(self, loops: list[list[int]]) -> int:
        """How often the body of nested loops runs."""
        if not loops:
            return 1
        (variable, *bounds), *inner = loops
        trips = self._trips(bounds)
        if not any(variable in self._variables(bound) for loop in inner for bound in loop[1:]):
            return len(trips) * self._iterations(inner) if trips else 0
        total = 0
        for value in _few(trips):
            self._sizes.variables[variable] = value
            total += self._iterations(inner)
        self._sizes.variables.pop(variable, None)
        return total

    def _trips(self, bounds: list[int]) -> range:
        """The values of a loop's variable: of two ends between which data decide, up to the later one."""
        first, end, step = bounds
        return range(self._value(first), self._latest(end), self._value(step))

    def _latest(self, number: int) -> int:
        name, *operands = self._work["expressions"][number]
        if name != "select" or self._sizes.value(number) is not None:
            return self._value(number)
        return max(self._latest(int(side)) for side in operands[1:])

    def _value(self, number: int) -> int:
        value = self._sizes.value(number)
        if value is None:
            raise Unknown
        return value

    def _variables(self, number: int) -> frozenset[int]:
        """The variables of loops that an expression depends on."""
        if number not in self._uses:
            name, *operands = self._work["expressions"][number]
            if name == "variable":
                found = frozenset({int(operands[0])})
            elif name in ("const", "dim", "value", "?"):
                found = frozenset()
            else:
                inner = operands[1:] if name == "cmpi" else operands
                found = frozenset[int]().union(*(self._variables(int(x)) for x in inner))
            self._uses[number] = found
        return self._uses[number]

    def _block(self, block: Block) -> Counter[str]:
        found = self._own(block)
        for part in block.get("parts", ()):
            found.update(self._part(part))
        return found

    def _own(self, block: Block) -> Counter[str]:
        found: Counter[str] = Counter()
        for key in self._keys:
            found.update(block.get(key, {}))
        return found

    def _part(self, part: Block) -> Counter[str]:
        if "repeated" in part:
            if self._block(part["repeated"]):
                raise Unknown
            return Counter()
        if "either" in part:
            counted = [self._block(block) for block in part["either"]]
            return max(counted, key=Counter.total, default=Counter())
        if "times" in part:
            return _times(self._own(part), self._product(part["times"]))
        if "loop" in part:
            return self._loop(part)
        return Counter()

    def _loop(self, part: Block) -> Counter[str]:
        body, variable = part["body"], part["loop"]
        if not self._counts_anything(body):
            return Counter()
        trips = self._trips(part["bounds"])
        if not any(variable in self._variables(number) for number in _numbers(body)):
            return _times(self._block(body), len(trips)) if trips else Counter()
        total: Counter[str] = Counter()
        for value in _few(trips):
            self._sizes.variables[variable] = value
            total.update(self._block(body))
        self._sizes.variables.pop(variable, None)
        return total

    def _counts_anything(self, block: Block) -> bool:
        return any(block.get(key) for key in self._keys) or any(map(self._counts_anything, _inner(block)))


class _InLoops(Recorded):
    """Recorded whose expressions may have variables of loops.

    Attributes:
        variables: their values.
    """

    def __init__(self, nodes: Sequence[Sequence[int | str]], arguments: Sequence[Argument]) -> None:
        super().__init__(nodes, arguments)
        self.variables: dict[int, int] = {}
        self._constant: dict[int, bool] = {}

    def value(self, number: int) -> Number:
        if self._is_constant(number):
            return super().value(number)
        return self._value(number)

    def _is_constant(self, number: int) -> bool:
        if number not in self._constant:
            name, *operands = self._nodes[number]
            inner = operands[1:] if name == "cmpi" else operands
            leaf = name in ("const", "dim", "value", "?")
            self._constant[number] = leaf or (name != "variable" and all(map(self._is_constant, inner)))
        return self._constant[number]

    def _value(self, number: int) -> Number:
        name, *operands = self._nodes[number]
        return self.variables.get(operands[0]) if name == "variable" else super()._value(number)


def _few(trips: range) -> range:
    if len(trips) > _MOST:
        raise Unknown
    return trips


def _times(counts: Counter[str], factor: int) -> Counter[str]:
    return Counter({name: count * factor for name, count in counts.items()})


def _inner(block: Block) -> list[Block]:
    inner = [*block.get("parts", ()), *block.get("either", ())]
    inner += [block["body"]] if "body" in block else []
    return inner + ([block["repeated"]] if "repeated" in block else [])


def _numbers(block: Block) -> list[int]:
    """The expressions in a block."""
    own = [*block.get("bounds", ()), *block.get("times", ())]
    return own + [number for inner in _inner(block) for number in _numbers(inner)]


def _unknown(block: Block) -> list[str]:
    own = [block["unknown"]] if "unknown" in block else []
    return own + [name for inner in _inner(block) for name in _unknown(inner)]
