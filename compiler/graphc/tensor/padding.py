# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`pad`: more elements at both ends of each axis, with NumPy's modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.graph.basic import Variable
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.ops.checks import as_count, required
from graphc.ops.create import arange
from graphc.ops.join import concatenate
from graphc.ops.math import cast, clip, eq, floor, floor_div, maximum, minimum, switch
from graphc.ops.math import round as round_
from graphc.ops.reduce import max as max_
from graphc.ops.reduce import min as min_
from graphc.ops.shape import known_size, size_of, sizes_of
from graphc.ops.shaping import broadcast_to, expand_dims, reshape
from graphc.tensor.indexing import take
from graphc.tensor.reductions import mean
from graphc.tensor.statistics import median

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorConstant, TensorVariable

__all__ = ["pad"]

_STATISTICS: dict[str, Callable[..., TensorVariable]] = {
    "maximum": max_,
    "minimum": min_,
    "mean": mean,
    "median": median,
}
_OPTIONS: dict[str, dict[str, Any]] = {
    "constant": {"constant_values": 0},
    "empty": {},
    "edge": {},
    "wrap": {},
    "reflect": {"reflect_type": "even"},
    "symmetric": {"reflect_type": "even"},
    "linear_ramp": {"end_values": 0},
    **{name: {"stat_length": None} for name in _STATISTICS},
}


def pad(array: TensorLike, pad_width: object, mode: str = "constant", **options: object) -> TensorVariable:
    """The array with more elements at both ends of each axis.

    Args:
        array: array-like.
        pad_width: how many: a number, a pair (before, after), or a pair for each axis; symbolic or not.
        mode: ``constant``, ``edge``, ``linear_ramp``, ``maximum``, ``mean``, ``median``, ``minimum``,
            ``reflect``, ``symmetric``, ``wrap`` or ``empty``, as in NumPy.
        options: ``constant_values``, ``end_values``, ``stat_length``, ``reflect_type``, for the modes that
            have them, in the forms of ``pad_width``.

    Raises:
        ValueError: an unknown mode or option, or a width that is negative.

    Examples:
        >>> pt.pad([1, 2], 1).eval()
        array([0, 1, 2, 0])
    """
    x = as_tensor_variable(array)
    if mode not in _OPTIONS:
        raise ValueError(f"pad knows the modes {', '.join(_OPTIONS)}, got {mode!r}")
    unknown = set(options) - set(_OPTIONS[mode])
    if unknown:
        raise ValueError(f"pad with mode {mode!r} has no option {', '.join(sorted(unknown))}")
    settings = {**_OPTIONS[mode], **options}
    widths = [(_width(a), _width(b)) for a, b in _pairs(pad_width, x.type.ndim, "pad_width")]
    rules: dict[str, Callable[..., TensorVariable]] = {
        "constant": _constant,
        "empty": _constant,
        "linear_ramp": _ramp,
        **dict.fromkeys(_STATISTICS, _statistic),
    }
    rule = rules.get(mode, _mapped)
    values = _pairs(next(iter(settings.values()), 0), x.type.ndim, next(iter(settings), "value"))
    for axis, ((before, after), value) in enumerate(zip(widths, values, strict=True)):
        if known_size(before) == 0 and known_size(after) == 0:
            continue
        if mode not in ("constant", "empty"):
            before, after = _extended(x, axis, before, mode), _extended(x, axis, after, mode)
        x = rule(x, axis, before, after, value, mode)
    return x


def _pairs(given: Any, ndim: int, what: str) -> list[tuple[Any, Any]]:
    """One pair for each axis, from any of NumPy's forms."""
    if isinstance(given, Variable) and given.type.ndim:
        pairs_variable = broadcast_to(given, (ndim, 2))
        return [(pairs_variable[i, 0], pairs_variable[i, 1]) for i in range(ndim)]
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if not isinstance(given, list | tuple):
        return [(given, given)] * ndim
    items = list(given)
    if len(items) == 1 and not isinstance(items[0], list | tuple):
        return [(items[0], items[0])] * ndim
    if len(items) == 2 and not any(isinstance(item, list | tuple) for item in items):
        return [(items[0], items[1])] * ndim
    pairs = [
        tuple(item) * 2 if len(item) == 1 else tuple(item) for item in items if isinstance(item, list | tuple)
    ]
    if len(pairs) == 1:
        pairs *= ndim
    if len(pairs) != ndim or any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"{what} must be a number, a pair, or a pair for each of {ndim} axes, got {given!r}")
    return [(a, b) for a, b in pairs]


def _width(given: TensorVariable | int) -> TensorVariable:
    return as_count(given, "pad", "a width")


def _extended(x: TensorVariable, axis: int, width: TensorVariable, mode: str) -> TensorVariable:
    """A width of a mode that takes what it adds from the array, so that an empty one cannot grow."""
    size = size_of(x, axis)
    some = known_size(size)
    message = f"pad cannot extend the empty axis {axis} with mode {mode!r}"
    return required(width, lambda n: (n < 1) | ((size if some is None else some) > 0), message)


def _block(x: TensorVariable, axis: int, count: TensorVariable, value: TensorVariable) -> TensorVariable:
    """``count`` rows along an axis, filled with a value that broadcasts."""
    sizes = sizes_of(x)
    sizes[axis] = count
    return broadcast_to(value, sizes)


def _constant(
    x: TensorVariable,
    axis: int,
    before: TensorVariable,
    after: TensorVariable,
    value: tuple[int, int],
    mode: str,
) -> TensorVariable:
    ends = [cast(as_tensor_variable(v), x.type.dtype) for v in value]
    return concatenate([_block(x, axis, before, ends[0]), x, _block(x, axis, after, ends[1])], axis=axis)


def _rows(x: TensorVariable, axis: int, index: int | slice) -> TensorVariable:
    return x[(*[slice(None)] * axis, index)]


def _edges(x: TensorVariable, axis: int) -> tuple[TensorVariable, TensorVariable]:
    """The first and the last row along an axis, which has size 1 then."""
    first, last = (expand_dims(_rows(x, axis, index), axis) for index in (0, -1))
    return first, last


def _ramp(x: Any, axis: int, before: Any, after: Any, value: Any, mode: str) -> Any:
    """Straight lines from the edges to the end values, as `numpy.linspace` makes them."""
    parts = []
    for count, end, edge in zip((before, after), value, _edges(x, axis), strict=True):
        start = cast(edge, "float64")
        stop = cast(as_tensor_variable(end), "float64")
        shape = [1] * x.type.ndim
        shape[axis] = count
        steps = reshape(cast(arange(count), "float64"), shape)
        parts.append(stop + steps * ((start - stop) / cast(maximum(count, 1), "float64")))
    parts[1] = _rows(parts[1], axis, slice(None, None, -1))
    if x.type.kind in "iu":
        parts = [floor(part) for part in parts]
    first, last = (cast(part, x.type.dtype) for part in parts)
    return concatenate([first, x, last], axis=axis)


def _statistic(
    x: TensorVariable,
    axis: int,
    before: TensorConstant,
    after: TensorConstant,
    value: tuple[int | None, int | None],
    mode: str,
) -> TensorVariable:
    parts = []
    for count, length, at_start in zip((before, after), value, (True, False), strict=True):
        if length is None:
            chosen = x
        else:
            n = minimum(as_count(length, "pad"), size_of(x, axis))
            chosen = _rows(x, axis, slice(None, n) if at_start else slice(size_of(x, axis) - n, None))
        number = _STATISTICS[mode](chosen, axis=axis, keepdims=True)
        if x.type.kind in "iu" and mode in ("mean", "median"):
            number = round_(number)
        parts.append(_block(x, axis, count, cast(number, x.type.dtype)))
    return concatenate([parts[0], x, parts[1]], axis=axis)


def _mapped(
    x: TensorVariable,
    axis: int,
    before: TensorConstant,
    after: TensorConstant,
    value: tuple[int | str, int | str],
    mode: str,
) -> TensorVariable:
    """Modes whose new elements are elements of the array: which ones is arithmetic on positions."""
    if mode in ("reflect", "symmetric") and value[0] == "odd":
        return _odd(x, axis, before, after, mode)
    if mode in ("reflect", "symmetric") and value[0] != "even":
        raise ValueError(f"reflect_type must be 'even' or 'odd', got {value[0]!r}")
    n = size_of(x, axis)
    at = arange(n + before + after) - before
    return take(x, _source(at, n, mode), axis=axis)


def _source(at: TensorVariable, n: TensorVariable, mode: str) -> TensorVariable:
    """The positions in the array that stand at positions beyond its ends."""
    if mode == "edge":
        return clip(at, 0, n - 1)
    if mode == "wrap":
        return at % n
    period = 2 * n if mode == "symmetric" else maximum(2 * (n - 1), 1)
    folded = at % period
    return minimum(folded, (period - 1 if mode == "symmetric" else 2 * (n - 1)) - folded)


def _odd(
    x: TensorVariable, axis: int, before: TensorConstant, after: TensorConstant, mode: str
) -> TensorVariable:
    """Reflected at the edges in value, too: each further period adds twice the difference of the edges."""
    n = size_of(x, axis)
    at = arange(n + before + after) - before
    first, last = _edges(x, axis)
    length = n if mode == "symmetric" else maximum(n - 1, 1)
    turn = floor_div(at, length)
    shape = [1] * x.type.ndim
    shape[axis] = -1
    # On an odd turn the array is seen in a mirror: twice the edge less the element.
    turn = reshape(turn, shape)
    mirrored = turn % 2
    even = cast(floor_div(turn + mirrored, 2), x.type.dtype)
    plain = take(x, _source(at, n, mode), axis=axis)
    rise = 2 * (last - first) * even
    odd = eq(mirrored, 1)
    return cast(switch(odd, rise + 2 * first - plain, rise + plain), x.type.dtype)
