# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Basic indexing bounds: how one dimension is indexed, its static result size, and the code that normalises
it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np

    from graphc.emit.emitter import Emitter

# Stands for a bound that is a symbolic operand.
SYMBOLIC = "i"
Bound = int | str | None

# No dimension is longer: a longer step selects the same one element, and sums of a size and a step do not
# overflow.
_LONGEST = 1 << 62


class Entry(NamedTuple):
    """The index of one dimension.

    Attributes:
        start: first bound of a slice, or the index itself; a number, None, or `SYMBOLIC`.
        stop: second bound.
        step: step of a slice.
        single: whether it is an integer index; the dimension stays, with size 1.
    """

    start: Bound = None
    stop: Bound = None
    step: Bound = None
    single: bool = False

    @property
    def full(self) -> bool:
        """True if the whole dimension is taken as it is."""
        return self == FULL

    def operands(self) -> int:
        """Number of symbolic bounds."""
        return sum(bound == SYMBOLIC for bound in (self.start, self.stop, self.step))

    def __str__(self) -> str:
        start, stop, step = (
            "" if bound is None else str(bound) for bound in (self.start, self.stop, self.step)
        )
        return start if self.single else f"{start}:{stop}{':' + step if step else ''}"

    def fill(self, values: Iterator[np.ndarray | int]) -> slice | int:
        """The index with the symbolic bounds replaced by values."""
        start, stop, step = (
            int(next(values)) if bound == SYMBOLIC else bound for bound in (self.start, self.stop, self.step)
        )
        return start if self.single else slice(start, stop, step)  # type: ignore[return-value]


FULL = Entry()


def static_size(entry: Entry, size: int | None) -> int | None:
    """Static size of an indexed dimension, where it follows from known bounds."""
    if entry.single:
        return 1
    if entry.full:
        return size
    bounds = (entry.start, entry.stop, entry.step)
    if SYMBOLIC in bounds:
        return None
    if size is not None:
        return len(range(*slice(*bounds).indices(size)))
    if entry.start is None and entry.stop is None and entry.step == -1:
        return None
    return 0 if _always_empty(entry) else None


def _always_empty(entry: Entry) -> bool:
    """True if a slice with a positive step and bounds of one sign ends before it starts."""
    start, stop, step = entry.start or 0, entry.stop, entry.step or 1
    if not (isinstance(start, int) and isinstance(stop, int) and isinstance(step, int)) or step < 0:
        return False
    return stop == 0 or (stop <= start and (start < 0) == (stop < 0))


class Normalized(NamedTuple):
    """Offset, size and stride of one dimension, as index operands."""

    offset: str
    size: str
    stride: str


def emit_entry(entry: Entry, size: str, operands: Iterator[str], e: Emitter, what: str) -> Normalized:
    """Code that normalises one entry by the rules of Python's slices.

    Args:
        entry: the entry.
        size: size of the dimension, an index.
        operands: the symbolic bounds, as indices.
        e: the emitter.
        what: text for the message about an index out of bounds.
    """
    zero, one = e.const_index(0), e.const_index(1)
    if entry.full:
        return Normalized(zero, size, one)
    start, stop, step = (
        None if b is None else e.const_index(b) if isinstance(b, int) else next(operands)
        for b in (entry.start, entry.stop, entry.step)
    )
    if entry.single:
        assert start is not None
        offset = _wrap(start, size, e)
        inside = e.both(e.compare("sge", offset, zero), e.compare("slt", offset, size))
        message = f"index {{given}} is out of bounds for {what} of size {{expected}}"
        e.check(inside, start, size, message, "IndexError")
        return Normalized(offset, one, one)
    stride = one if step is None else _limited(step, entry.step, e)
    known = e.known(stride)
    if known is not None:
        return _bounded(start, stop, stride, size, known > 0, e)
    e.check(e.compare("ne", stride, zero), stride, zero, "the step of a slice must not be {given}")
    up, down = (_bounded(start, stop, stride, size, forward, e) for forward in (True, False))
    forward = e.compare("sgt", stride, zero)
    return Normalized(
        e.select(forward, up.offset, down.offset), e.select(forward, up.size, down.size), stride
    )


def _limited(step: str, number: Bound, e: Emitter) -> str:
    """The step within the longest dimension."""
    if isinstance(number, int):
        return e.const_index(max(-_LONGEST, min(number, _LONGEST)))
    return e.arith("minsi", e.arith("maxsi", step, e.const_index(-_LONGEST)), e.const_index(_LONGEST))


def _wrap(bound: str, size: str, e: Emitter) -> str:
    """A negative bound counts from the end."""
    known = e.known(bound)
    if known is not None:
        return bound if known >= 0 else e.add(size, bound)
    return e.select(e.compare("slt", bound, e.const_index(0)), e.add(bound, size), bound)


def _clamp(bound: str, size: str, low: str, high: str, e: Emitter) -> str:
    wrapped = _wrap(bound, size, e)
    known = e.known(bound)
    if known is None or known < 0:
        wrapped = e.arith("maxsi", wrapped, low)
    return e.arith("minsi", wrapped, high)


def _bounded(
    start: str | None, stop: str | None, stride: str, size: str, forward: bool, e: Emitter
) -> Normalized:
    zero, one = e.const_index(0), e.const_index(1)
    if forward:
        first = zero if start is None else _clamp(start, size, zero, size, e)
        last = size if stop is None else _clamp(stop, size, zero, size, e)
        span, width = e.subtract(last, first), stride
    else:
        end, before = e.subtract(size, one), e.const_index(-1)
        first = end if start is None else _clamp(start, size, before, end, e)
        last = before if stop is None else _clamp(stop, size, before, end, e)
        span, width = e.subtract(first, last), e.subtract(zero, stride)
    length = span if e.known(width) == 1 else e.arith("divsi", e.add(span, e.subtract(width, one)), width)
    if forward and start is None:
        return Normalized(first, length, stride)
    # An empty slice must not start outside of the operand.
    count = e.arith("maxsi", length, zero)
    return Normalized(e.select(e.compare("eq", count, zero), zero, first), count, stride)


def describe_entries(entries: Sequence[Entry]) -> str:
    """The entries as they are written between brackets."""
    return ", ".join(map(str, entries))
