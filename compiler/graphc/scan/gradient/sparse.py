# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows of a loop's result that a cotangent is about.

A program that uses ``hs[-1]`` alone gives a cotangent that is zero but for one row, built as an update of
zeros. Taken apart into the rows that matter, it costs nothing per iteration: what belongs to the last rows
becomes the initial value of the reverse loop's state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from graphc.gradient.accumulate import as_update, is_zeros
from graphc.graph.basic import Variable
from graphc.ops.create import zeros as zeros_
from graphc.ops.create import zeros_like
from graphc.ops.derivatives import total
from graphc.ops.elementwise import Elementwise
from graphc.ops.shape import sizes_of
from graphc.ops.subtensor import FULL, SYMBOLIC, Entry, IncSubtensor
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc.graph.basic import Apply

# Sums of more terms than this are not followed: they are dense anyway.
_MAX_DEPTH = 40


@record(frozen=True)
class Rows:
    """A term: ``value`` for rows ``start`` to ``stop`` (counted from the end) of an array, zero elsewhere."""

    start: int
    stop: int
    value: Variable


@record(frozen=True)
class Block:
    """A term: ``value`` for a known number of rows, the first of which is row ``first`` (negative: from the
    end), zero elsewhere.
    """

    first: int
    count: int
    value: Variable


@record()
class Pieces:
    """The cotangent of a state's trace, by what the reverse loop does with it.

    Attributes:
        steps: what is added in each iteration, stored as the loop stores its outputs; iteration `s` adds to
            row ``K + s - oldest write``.
        window: what the state starts with: the last K rows, newest first.
        initial: what is added to the cotangent of the initial rows, oldest first.
    """

    steps: Variable | None = None
    window: Variable | None = None
    initial: Variable | None = None


def terms_of(g: Variable, certain: int = 0) -> list[Rows | Block]:
    """Terms whose sum is ``g``.

    Args:
        g: an array.
        certain: number of rows that it has at least.
    """
    return _terms(g, 0, 0, certain, _MAX_DEPTH)


def _terms(g: Variable, start: int, stop: int, certain: int, depth: int) -> list[Rows | Block]:
    """Terms of ``g``, which stands for rows ``start`` to ``stop`` (from the end) of an array."""
    g = as_update(g)
    if is_zeros(g):
        return []
    node = g.owner
    if node is not None and depth:
        if _is_plain_sum(node):
            parts = [_terms(x, start, stop, certain, depth - 1) for x in node.inputs]
            return [term for part in parts for term in part]
        if isinstance(node.op, IncSubtensor):
            x = node.inputs[0]
            base = None if node.op.set_instead_of_inc else _terms(x, start, stop, certain, depth - 1)
            base = [] if is_zeros(x) else base
            region = _region(node.op.idx_list[0], start, stop, certain)
            value = None if base is None or region is None else _full_rows(node, region)
            if base is not None and value is not None:
                if isinstance(region, _Range):
                    return [*base, *_terms(value, region.start, region.stop, 0, depth - 1)]
                assert region is not None
                return [*base, Block(region.first, region.size, value)]
    return [Rows(start, stop, g)]


def _is_plain_sum(node: Apply) -> bool:
    """True if a node adds arrays of one shape and dtype."""
    if not isinstance(node.op, Elementwise) or node.op.name != "add":
        return False
    shape = node.outputs[0].type.shape
    ones = [size == 1 for size in shape]
    return all(
        x.type.dtype == node.outputs[0].type.dtype and [size == 1 for size in x.type.shape] == ones
        for x in node.inputs
    )


class _Range(NamedTuple):
    """Rows up to a distance from the end."""

    start: int
    stop: int


class _Some(NamedTuple):
    """A known number of rows."""

    first: int
    size: int


def _region(entry: Entry, start: int, stop: int, certain: int) -> _Range | _Some | None:
    """Range that an index selects of rows ``start`` to ``stop``; None for anything but neighbouring rows."""
    if SYMBOLIC in entry[:3]:
        return None
    first, last = entry.start, entry.stop
    if entry.single:
        assert isinstance(first, int)
        return _Some(first + start, 1) if first >= 0 else _Some(first - stop, 1)
    first = 0 if first is None else first
    if entry.step not in (None, 1) or isinstance(first, str) or isinstance(last, str):
        return None
    if start == stop == 0 and last is None and -certain <= first < 0:
        return _Some(first, -first)
    if start == stop == 0 and last is not None and 0 <= first < last <= certain:
        return _Some(first, last - first)
    if first < 0 or (last is not None and last >= 0):
        return None
    return _Range(start + first, stop - (last or 0))


def _full_rows(node: Any, region: _Range | _Some) -> Variable | None:
    """The rows that an update increases by, in full; None where their number is not known."""
    x, y, *bounds = node.inputs
    rest = node.op.idx_list[1:]
    fits = all(a != 1 or b == 1 for a, b in zip(y.type.shape[1:], x.type.shape[1:], strict=True))
    one = y.type.shape[0] == 1
    if one and not (isinstance(region, _Some) and region.size == 1):
        return None
    if all(entry == FULL for entry in rest) and fits:
        return y
    if isinstance(region, _Range):
        return None
    zeros = zeros_((region.size, *sizes_of(x)[1:]), dtype=x.type.dtype)
    return IncSubtensor((FULL, *rest))(zeros, y, *bounds)


def _dense(g: Variable, terms: Sequence[Rows | Block]) -> Variable | None:
    """The sum of terms as an array like ``g``."""
    found: list[Variable] = []
    for term in terms:
        if isinstance(term, Block):
            stop = term.first + term.count
            index = slice(term.first, stop if stop != 0 or term.first >= 0 else None)
            found.append(zeros_like(g)[index].inc(term.value))
        elif term.start == term.stop == 0:
            found.append(term.value)
        else:
            index = slice(term.start, -term.stop if term.stop else None)
            found.append(zeros_like(g)[index].inc(term.value))
    return total(found)


def output_pieces(g: Variable, reverse: bool) -> tuple[Variable | None, Variable | None]:
    """The cotangent of an output: an array for all iterations, and a stack of one row for the last one."""
    last: list[Any] = []
    others: list[Any] = []
    for term in terms_of(g):
        is_last = isinstance(term, Block) and term.count == 1 and term.first == (0 if reverse else -1)
        (last if is_last else others).append(term)
    return _dense(g, others), total([term.value for term in last])


def state_pieces(g: Variable, window: int, oldest_write: int, initial: Variable, reverse: bool) -> Pieces:
    """Takes the cotangent of a state's trace apart.

    Args:
        g: the cotangent, of the shape of the trace.
        window: number K of initial rows.
        oldest_write: the offset that is written and is farthest back, at least 0.
        initial: the initial rows, for their shape.
        reverse: whether the loop runs backwards, so that its trace is stored flipped.
    """
    found: dict[str, list[Any]] = {"all": [], "steps": [], "window": [], "initial": []}
    for term in terms_of(g, window):
        where, entry = _classify(term, window, oldest_write, reverse)
        found[where].append(entry)
    dense = _dense(g, found["all"])
    if dense is not None:
        _split(dense, window, oldest_write, reverse, found)
    return Pieces(
        total(found["steps"]),
        _placed(found["window"], window, initial),
        _placed(found["initial"], window, initial),
    )


def _classify(term: Rows | Block, window: int, oldest_write: int, reverse: bool) -> tuple[str, Any]:
    if isinstance(term, Rows):
        steps = (0, window) if reverse else (window, 0)
        if (term.start, term.stop) == steps and not oldest_write:
            return "steps", term.value
        return "all", term
    first, count = term.first, term.count
    flipped = term.value if count == 1 else term.value[::-1]
    from_start = first >= 0 and first + count <= window
    from_end = -window <= first < 0
    if from_end and not reverse:
        return "window", (-first - count, count, flipped)
    if from_start and reverse:
        return "window", (first, count, term.value)
    if from_start and not oldest_write:
        return "initial", (first, count, term.value)
    if from_end and not oldest_write:
        return "initial", (-first - count, count, flipped)
    return "all", term


def _split(
    dense: Variable, window: int, oldest_write: int, reverse: bool, found: dict[str, list[object]]
) -> None:
    """Cut an array of all rows into what each iteration adds and what lies before and after."""
    young = window - oldest_write
    before, after = (oldest_write, young) if reverse else (young, oldest_write)
    found["steps"].append(dense[before : -after if after else None])
    oldest = dense[-young:][::-1] if reverse else dense[:young]
    found["initial"].append((0, young, oldest))
    if oldest_write:
        newest = dense[:oldest_write] if reverse else dense[-oldest_write:][::-1]
        found["window"].append((0, oldest_write, newest))


def _placed(blocks: Sequence[tuple[int, int, Any]], window: int, initial: Variable) -> Variable | None:
    """K rows that are zero but for some blocks ``(first, count, value)``."""
    found = []
    for first, count, value in blocks:
        if count == window:
            found.append(value)
        else:
            found.append(zeros_like(initial)[first : first + count].inc(value))
    return total(found)
