# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`associative_scan`: prefix results of an associative function, in few steps over many rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from graphc.graph.pytree import Structure, flatten
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.ops.axes import normalize_axis
from graphc.ops.create import zeros as zeros_
from graphc.ops.join import concatenate, stack
from graphc.ops.shaping import moveaxis, reshape
from graphc.ops.sizes import size_of
from graphc.scan.loops import loop

if TYPE_CHECKING:
    from graphc.graph.tensor.variable import TensorVariable

    Leaves = list[TensorVariable]


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """All prefixes of ``elems[0] * elems[1] * ...`` for an associative operation, as in JAX.

    Where the length is static, about ``2 * log2(length)`` calls of ``fn`` on ever shorter tensors do the work
    (Blelloch, Prefix Sums and Their Applications, 1990); otherwise a loop goes through the rows.

    Args:
        fn: takes two trees of tensors with any number of rows along ``axis`` and combines them row by row. It
            must be associative; the order of its arguments is kept.
        elems: tree of tensors with the same length along ``axis``.
        reverse: suffixes instead: element i combines the rows from the last down to i.
        axis: the axis of rows.

    Returns:
        A tree of tensors of the shapes of ``elems``.

    Raises:
        TypeError: no tensors, or ``fn`` returns another structure.
        ValueError: different lengths.

    Examples:
        >>> graphc.associative_scan(lambda a, b: a + b, pt.constant([1, 2, 3])).eval()
        array([1, 3, 6])
    """
    leaves, structure = flatten(elems)
    xs = [as_tensor_variable(leaf) for leaf in leaves]
    if not xs:
        raise TypeError("associative_scan needs at least one tensor, got a tree without leaves")
    axes = [normalize_axis(axis, x.type.ndim, "associative_scan") for x in xs]
    lengths = {x.type.shape[a] for x, a in zip(xs, axes, strict=True)}
    if len(lengths - {None}) > 1:
        raise ValueError(
            f"the tensors of associative_scan have different lengths along axis {axis}: {lengths}"
        )
    combine = _Combine(fn, structure, axes)
    rows = [moveaxis(x, a, 0) for x, a in zip(xs, axes, strict=True)]
    if reverse:
        rows = [x[::-1] for x in rows]
    n = next(iter(lengths)) if len(lengths) == 1 else None
    results = _loop_scan(combine, rows) if n is None else _tree_scan(combine, rows, n)
    if reverse:
        results = [x[::-1] for x in results]
    return structure.build([moveaxis(x, 0, a) for x, a in zip(results, axes, strict=True)])


class _Combine:
    """The user's function on lists of tensors whose rows lie along axis 0."""

    def __init__(self, fn: Callable[[object, object], object], structure: Structure, axes: list[int]) -> None:
        self._fn, self._structure, self._axes = fn, structure, axes

    def __call__(self, a: Leaves, b: Leaves) -> Leaves:
        trees = [
            self._structure.build([moveaxis(x, 0, axis) for x, axis in zip(side, self._axes, strict=True)])
            for side in (a, b)
        ]
        leaves, structure = flatten(self._fn(*trees))
        if structure != self._structure:
            raise TypeError(
                f"the function of associative_scan must return the structure of elems, {self._structure}, "
                f"got {structure}"
            )
        return [moveaxis(as_tensor_variable(x), axis, 0) for x, axis in zip(leaves, self._axes, strict=True)]


def _tree_scan(combine: _Combine, xs: Leaves, n: int) -> Leaves:
    """Prefixes of combined pairs are the odd results; with one more row they give the even ones."""
    if n < 2:
        return xs
    pairs = combine([x[: n - 1 : 2] for x in xs], [x[1::2] for x in xs])
    odd = _tree_scan(combine, pairs, n // 2)
    # With an even number of rows the last prefix of pairs has no row after it.
    before = odd if n % 2 else [x[:-1] for x in odd]
    if n == 2:
        even = [x[:1] for x in xs]
    else:
        even = [_join(x[:1], y) for x, y in zip(xs, combine(before, [x[2::2] for x in xs]), strict=True)]
    return [_interleave(e, o, n) for e, o in zip(even, odd, strict=True)]


def _join(*parts: TensorVariable) -> TensorVariable:
    return concatenate(list(parts))


def _interleave(even: TensorVariable, odd: TensorVariable, n: int) -> TensorVariable:
    """Rows of the two by turns, n in all."""
    rows = n // 2
    pairs = stack([even[:rows], odd], axis=1)
    mixed = reshape(pairs, [2 * rows, *(size_of(odd, axis) for axis in range(1, odd.type.ndim))])
    return _join(mixed, even[rows:]) if n % 2 else mixed


def _loop_scan(combine: _Combine, xs: Leaves) -> Leaves:
    """Row after row; a row of zeros after each tensor gives a first value where there are no rows."""
    first = []
    for x in xs:
        zeros = zeros_([1, *(size_of(x, a) for a in range(1, x.type.ndim))], dtype=x.type.dtype)
        first.append(_join(x[:1], zeros)[0])

    def step(carry: Leaves, row: Leaves) -> tuple[Leaves, Leaves]:
        new = [y[0] for y in combine([c[None] for c in carry], [r[None] for r in row])]
        return new, new

    rest = [x[1:] for x in xs]
    _, later = loop(step, first, rest, name="associative_scan")
    return [_join(f[None], y)[: size_of(x, 0)] for f, y, x in zip(first, later, xs, strict=True)]
