# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Index values as functions of the number of iterations of one scan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from graphc.ir.affine import UNKNOWN, Evaluator, Made, Range, Region, X, exactly, is_negative, key_of, over
from graphc.ir.scan_view import ScanView, name_of, retention, window_of
from graphc.ir.size import Size
from graphc_dialects._mlir import ir

Found = TypeVar("Found")
_TRANSPARENT = frozenset(
    f"arith.{name}" for name in "addi subi muli minsi maxsi select cmpi andi ori".split()
)
_MAX_LEAVES = 32
Key = ir.Value | tuple[ir.Value, int]


class Unknown(NamedTuple):
    """Values that the number of iterations of a scan depends on.

    Attributes:
        base: the key of the one unknown, None if there is none.
        domain: the values that it can have.
        last: the key of the offset of the only row that is read, where as many iterations are run as compute
            it, and by how much it is more than their number. Holds where that row exists, as `Consumer.seen`.
    """

    base: Key | None
    domain: Region
    last: Mapping[Key, int] = MappingProxyType({})


# By the scan's operand.
Unknowns = dict[ir.Value, Unknown]


class Length:
    """The number of iterations of a scan, and what depends on it.

    The unknown of all functions is the one size that the number of iterations is computed from, or the
    number itself if there are several. Facts hold while the scan keeps its operand and its retention.

    Args:
        view: the scan.
        unknowns: what other lengths of the scan have found out by the operand; what comes before a scan does
            not change with what is kept of it.
    """

    def __init__(self, view: ScanView, unknowns: Unknowns | None = None) -> None:
        self.view = view
        self._steps = view.steps
        self._is_while = view.stop is not None
        self._counts = {op.results[0] for op in view.step_counts()}
        declared = view.declarations()
        self._first = {op.results[0]: declared[name_of(op)] for op in view.traces()}
        self._made: dict[ir.Value, Made] = {}
        unknowns = {} if unknowns is None else unknowns
        if self._steps not in unknowns:
            unknowns[self._steps] = self._unknown()
        self._base, self.domain, self._last = unknowns[self._steps]

    def _unknown(self) -> Unknown:
        bound = key_of(self._steps)
        if self._is_while:
            if not isinstance(bound, int):
                return Unknown(None, Region(0))
            return Unknown(None, Region(min(1, max(bound, 0)), max(bound, 0)))
        leaves = _leaves(self._steps)
        if not leaves:
            return Unknown(None, Region(0, 0))
        if len(leaves) == 1:
            base = leaves.pop()
            found = over(
                Region(),
                lambda r: Evaluator(r, lambda e, k: _x(e) if k == base else None, made=self._made).range(
                    self._steps
                ),
            )
            if found is not None and all(range_.exact is not None for _, range_ in found):
                return Unknown(base, Region(0) if isinstance(base, tuple) else Region())
        return Unknown(bound, Region(0))

    def known(self, e: Evaluator, key: Any) -> Range | None:
        """Bounds of what the unknown determines, for `Evaluator`."""
        if key in self._counts:
            return self.steps(e)
        if isinstance(key, tuple):
            declared = self._first.get(key[0]) if key[1] == 0 else None
            if declared is not None:
                return self.rows(e, declared)
        if key in self._last:
            return self._last_read(e, self._last[key])
        return _x(e) if self._base is not None and key == self._base else None

    def _last_read(self, e: Evaluator, more: int) -> Range:
        """The offset of the only row that is read: of the last iteration, or among the initial rows."""
        if is_negative(X - 1, e.region):
            return Range(Size(0), Size(more)) if more >= 0 else UNKNOWN
        return exactly(X + more)

    def steps(self, e: Evaluator) -> Range:
        """Iterations that are run."""
        return _x(e) if self._is_while else e.range(self._steps)

    def rows(self, e: Evaluator, declaration: ir.Operation) -> Range:
        """Rows that are kept of a state or output."""
        keep, rows = retention(declaration)
        if keep == "last":
            return exactly(Size(rows or 0))
        steps = self.steps(e)
        head = head_of(declaration)
        return Range(*(f and f + head for f in steps))

    def ask(
        self, question: Callable[[Evaluator, Size], Found | None], nonzero: ir.Value | None = None
    ) -> list[tuple[Region, Found]] | None:
        """Answers for all numbers of iterations (0 or more); None if there are too many or they are unknown.

        Args:
            question: gets an evaluator and the number of iterations; None is no answer.
            nonzero: a size that is taken for granted not to be 0.
        """

        def put(region: Region) -> Found | None:
            e = Evaluator(region, self.known, nonzero, self._made)
            steps = self.steps(e).exact
            if steps is None or is_negative(steps, region):
                return None
            return question(e, steps)

        answers = over(self.domain, put)
        if answers is None:
            return None
        return [(region, answer) for region, answer in answers if answer is not None]

    def constant(self, value: ir.Value) -> int | None:
        """The number an index value always is."""
        answers = self.ask(lambda e, steps: (e.range(value).exact,))
        numbers = {None if f is None or f.slope else f.constant for _, (f,) in answers or []}
        return numbers.pop() if len(numbers) == 1 else None


def head_of(declaration: ir.Operation) -> int:
    """Initial rows among the rows that are kept (with `"all"` or `"steps"`)."""
    return window_of(declaration) if retention(declaration)[0] == "all" else 0


def _x(e: Evaluator) -> Range:
    start, stop = e.region
    return exactly(Size(start) if start is not None and start == stop else X)


def _leaves(value: ir.Value) -> set[ir.Value | tuple[ir.Value, int]]:
    """Keys of what is not constant in sums, products and extremes."""
    found: set[Any] = set()
    seen: set[object] = set()
    pending = [value]
    while pending and len(found) <= _MAX_LEAVES:
        top = pending.pop()
        if top in seen:
            # Sizes of slices of slices share their parts: their paths are many more than their operations.
            continue
        seen.add(top)
        key = key_of(top)
        if isinstance(key, int):
            continue
        owner = top.owner
        if not isinstance(owner, ir.Block) and owner.operation.name in _TRANSPARENT:
            pending.extend(owner.operation.operands)
        else:
            found.add(key)
    return found
