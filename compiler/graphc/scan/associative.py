# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops as JAX has them: `associative_scan`, the prefix results of an associative function in few steps over
many rows; `loop`, `while_loop` and `fori_loop`, on nested containers, over the op of `graphc.scan`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from graphc.graph.basic import Variable, describe
from graphc.graph.pytree import Structure, flatten
from graphc.graph.tensor.convert import as_tensor_variable, constant, operand
from graphc.graph.tensor.type import TensorType
from graphc.ops.create import zeros as zeros_
from graphc.ops.dimshuffle import normalize_axis
from graphc.ops.join import concatenate, stack
from graphc.ops.math import invert, maximum, switch
from graphc.ops.shape import known_size, size_of
from graphc.ops.shaping import moveaxis, reshape
from graphc.scan.arguments import as_steps
from graphc.scan.builder import Callee, LoopBuilder
from graphc.scan.returned import as_condition
from graphc.scan.spec import UNBOUNDED
from graphc.scan.states import UntracedPart

if TYPE_CHECKING:
    from graphc.graph.basic import Apply
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc.scan.states import StatePart


def loop(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: TensorLike | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    *,
    name: str | None = None,
    checkpoint_every: int | None = None,
) -> tuple[Any, Any]:
    """Carry a value through a loop over rows, as ``jax.lax.scan``.

    Trees are dicts, lists, tuples, named tuples and dataclasses, nested as you like; None has no leaves.

    Args:
        f: takes the carry and a row of each leaf of ``xs``; returns the new carry, of the same structure and
            types, and outputs.
        init: tree: the first carry. Leaves that are no tensors are carried too.
        xs: tree of tensors of the same length.
        length: number of iterations; needed where ``xs`` has no leaves.
        reverse: go from the last row to the first. Outputs are stored where their rows are.
        unroll: iterations between two tests of the loop's end; True for all, where their number is known.
        name, checkpoint_every: as in `graphc.scan`.

    Returns:
        The last carry and the stacked outputs, in their structures.

    Raises:
        TypeError: the carry changes its structure or type.
        ValueError: the length is unknown, or is more than rows there are.

    Examples:
        >>> total, squares = graphc.loop(lambda c, v: (c + v, v**2), pt.constant(0), pt.constant([1, 2, 3]))
        >>> int(total.eval()), squares.eval().tolist()
        (6, [1, 4, 9])
    """
    callee = Callee(f, "loop")
    builder = LoopBuilder(callee)
    rows = [as_tensor_variable(leaf) for leaf in flatten(xs)[0]]
    structure = flatten(xs)[1]
    steps = _length(rows, structure, length, callee)
    carry = _Carry(init, builder)
    row_args = [builder.sequence(x, [0], ["t"], x.name)[0] for x in rows]
    returned = builder.call([carry.inner, structure.build(row_args)])
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise TypeError(f"{callee} must return a tuple (carry, outputs), got {returned!r:.200}")
    carry.set_next(returned[0], callee)
    leaves, form = flatten(returned[1])
    numbers = [builder.output(as_tensor_variable(leaf)) for leaf in leaves]
    every = unroll
    if isinstance(unroll, bool):
        every = max(known_size(steps) or 1, 1) if unroll else 1
    node = builder.build(
        steps, name=name or callee.name, reverse=reverse, unroll=every, checkpoint_every=checkpoint_every
    )
    _attach_updates(builder, node)
    return carry.last(node), form.build([builder.collected(node, number) for number in numbers])


def while_loop(
    cond: Callable[[Any], Any],
    body: Callable[[Any], Any],
    init: Any,
    max_steps: TensorLike | None = None,
    *,
    name: str | None = None,
) -> Any:
    """Repeat ``body`` while ``cond`` holds, as ``jax.lax.while_loop``.

    Args:
        cond: takes the value; a scalar. It is tested before each iteration, so there may be none.
        body: takes the value and returns the next one, of the same structure and types.
        init: tree: the first value.
        max_steps: the loop ends after so many iterations in any case. A gradient by `grad` needs a bound, as
            it stores the values of all iterations; `pushforward` does not.
        name: as in `graphc.scan`.

    Returns:
        The value for which ``cond`` does not hold, or that after ``max_steps``.

    Examples:
        >>> graphc.while_loop(lambda v: v < 100, lambda v: v * 2, pt.constant(3)).eval()
        array(192)
    """
    callee, test = Callee(body, "while_loop"), Callee(cond, "while_loop")
    builder = LoopBuilder(callee)
    leaves, structure = flatten(init)
    init = structure.build([_as_leaf(leaf) for leaf in leaves])
    limit = as_steps(UNBOUNDED if max_steps is None else max_steps, str(callee))
    go = as_condition(test([init]), str(test))
    steps = switch(go, limit, 0).astype("int64")
    carry = _Carry(init, builder, traced=max_steps is not None)
    carry.set_next(builder.call([carry.inner]), callee)
    # The condition of the op is tested after an iteration, on what that has computed.
    builder.condition = invert(as_condition(test([carry.next]), str(test)))
    node = builder.build(steps, name=name or callee.name)
    _attach_updates(builder, node)
    return carry.last(node)


def fori_loop(
    lower: TensorLike,
    upper: TensorLike,
    body: Callable[[Any, Any], Any],
    init: Any,
    *,
    name: str | None = None,
) -> Any:
    """``for i in range(lower, upper): value = body(i, value)``, as ``jax.lax.fori_loop``.

    Args:
        lower, upper: integer scalars; no iteration runs unless upper is larger.
        body: takes the 0-d int64 i and the value, and returns the next value, of the same structure and
            types.
        init: tree: the first value.
        name: as in `graphc.scan`.

    Examples:
        >>> graphc.fori_loop(0, 5, lambda i, total: total + i, pt.constant(0)).eval()
        array(10)
    """
    callee = Callee(body, "fori_loop")
    first, end = _bound(lower, "lower", callee), _bound(upper, "upper", callee)
    count = maximum(end - first, 0)
    known = known_size(count)
    builder = LoopBuilder(callee)
    index = builder.state(first, (-1,), True, "the index of fori_loop")
    carry = _Carry(init, builder)
    carry.set_next(builder.call([index.inner[-1], carry.inner]), callee)
    index.next = index.inner[-1] + 1
    steps = count if known is None else constant(known, dtype="int64")
    node = builder.build(steps, name=name or callee.name)
    _attach_updates(builder, node)
    return carry.last(node)


def _bound(value: TensorLike, which: str, callee: Callee) -> TensorVariable:
    v = operand(value, f"{which} of fori_loop over {callee} must be an integer scalar", 0, 0, "iu", TypeError)
    return v if v.type.dtype == "int64" else v.astype("int64")


def _attach_updates(builder: LoopBuilder, node: Apply) -> None:
    for shared, new in builder.updates(node).items():
        shared.default_update = new


def _as_leaf(leaf: TensorVariable) -> TensorVariable:
    return leaf if isinstance(leaf, Variable) else as_tensor_variable(leaf)


class _Carry:
    """A tree of values handed from iteration to iteration.

    Args:
        init: their first values.
        builder: the loop.
        traced: keep the values of all iterations, which gradients need.
    """

    def __init__(self, init: Any, builder: LoopBuilder, traced: bool = True) -> None:
        leaves, self._structure = flatten(init)
        self._builder = builder
        self.next: Any = None
        self._parts: list[StatePart | UntracedPart] = []
        for leaf, path in zip(leaves, self._structure.paths("carry"), strict=True):
            v = _as_leaf(leaf)
            is_tensor = isinstance(v.type, TensorType) and not v.type.is_untraced
            label = f"the state '{{name}}' ({path})"
            if traced and is_tensor:
                self._parts.append(builder.state(v, (-1,), True, label))
            else:
                self._parts.append(builder.untraced(v, label if is_tensor else None))

    @property
    def inner(self) -> Any:
        """The tree that the function gets."""
        return self._structure.build(
            [p.inner if isinstance(p, UntracedPart) else p.inner[-1] for p in self._parts]
        )

    def set_next(self, value: TensorVariable, callee: Callee) -> None:
        leaves, structure = flatten(value)
        if structure != self._structure:
            raise TypeError(
                f"the carry starts as {self._structure}, but {callee} returns {structure} for it (* stands "
                "for a tensor); return the structure of the initial value"
            )
        self.next = structure.build([_as_leaf(leaf) for leaf in leaves])
        for part, leaf in zip(self._parts, flatten(self.next)[0], strict=True):
            fixed = isinstance(part, UntracedPart) and part.label is None
            part.next = part.initial.type.filter_variable(leaf) if fixed else leaf

    def last(self, node: Apply) -> TensorVariable:
        return self._structure.build(
            [
                self._builder.final(node, p) if isinstance(p, UntracedPart) else self._builder.last(node, p)
                for p in self._parts
            ]
        )


def _length(
    rows: list[TensorVariable], structure: Structure, length: TensorLike | None, callee: Callee
) -> Variable:
    """Number of iterations: all leaves must agree where their lengths are known."""
    for x, path in zip(rows, structure.paths("xs"), strict=True):
        if x.type.ndim == 0:
            raise TypeError(
                f"{path} of the loop over {callee} is a scalar of type {x.type}{describe(x.location)}, which "
                "has no rows; capture it instead"
            )
    if length is not None:
        steps = as_steps(length, str(callee))
    elif rows:
        steps = size_of(rows[0], 0)
    else:
        raise ValueError(f"the length of the loop over {callee} is unknown: give length, or xs to go through")
    known = {path: x.type.shape[0] for x, path in zip(rows, structure.paths("xs"), strict=True)}
    known["length"] = known_size(steps)
    sizes = {size for size in known.values() if size is not None}
    if len(sizes) > 1:
        listed = ", ".join(f"{path}: {size}" for path, size in known.items() if size is not None)
        raise ValueError(f"the lengths of the loop over {callee} differ: {listed}")
    return steps


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
        results = [as_tensor_variable(leaf) for leaf in leaves]
        for x, row in zip(results, a, strict=True):
            if x.type.ndim != row.type.ndim:
                raise TypeError(
                    "the function of associative_scan must return tensors of as many dimensions as it is "
                    f"given, {row.type.ndim}, got {x} of type {x.type}{describe(x.location)}"
                )
        return [moveaxis(x, axis, 0) for x, axis in zip(results, self._axes, strict=True)]


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
