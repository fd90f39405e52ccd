# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Common forms of `graphc.scan`: `map`, `reduce`, `foldl`, `foldr`, `cumulative`, `filter`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from graphc.ops.create import zeros
from graphc.ops.join import concatenate
from graphc.ops.math import ne
from graphc.ops.shape import size_of
from graphc.scan.arguments import as_sequences
from graphc.scan.builder import Callee
from graphc.scan.frontend import build_loop
from graphc.scan.returned import parse

if TYPE_CHECKING:
    from graphc.graph.basic import Variable
    from graphc.graph.tensor import AnyFunction, TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc.scan.arguments import Given


def map(
    fn: AnyFunction,
    sequences: Given,
    non_sequences: TensorLike | None = None,
    truncate_gradient: int = -1,
    go_backwards: bool = False,
    mode: object = None,
    name: str | None = None,
    return_updates: bool | None = None,
) -> Any:
    """Apply ``fn`` to each row.

    Args:
        fn: takes a row of each sequence, then the non-sequences.
        sequences, non_sequences, truncate_gradient, go_backwards, name, return_updates: as in `graphc.scan`.
        mode: accepted for compatibility; it has no effect.

    Returns:
        What ``fn`` returns, stacked. With ``go_backwards`` the last row's result comes first.

    Examples:
        >>> x = pt.constant([1, 2, 3])
        >>> graphc.map(lambda v: v**2, [x]).eval()
        array([1, 4, 9])
    """
    loop = build_loop(
        fn,
        sequences,
        None,
        non_sequences,
        go_backwards=go_backwards,
        name=name,
        what="map",
        truncate_gradient=truncate_gradient,
    )
    return loop.result(loop.outputs, return_updates=return_updates)


def reduce(
    fn: Callable[..., object],
    sequences: Given,
    outputs_info: Given,
    non_sequences: TensorLike | None = None,
    go_backwards: bool = False,
    mode: object = None,
    name: str | None = None,
    return_updates: bool | None = None,
) -> TensorVariable:
    """Combine all rows into one value.

    Args:
        fn: takes a row of each sequence, the value so far, then the non-sequences.
        sequences, non_sequences, go_backwards, name, return_updates: as in `graphc.scan`.
        outputs_info: the value to start from; as in `graphc.scan`.
        mode: accepted for compatibility; it has no effect.

    Returns:
        The value after the last row: the initial one where there are no rows.

    Examples:
        >>> x = pt.constant([1, 2, 3])
        >>> graphc.reduce(lambda v, total: total + v, [x], [pt.constant(0)]).eval()
        array(6)
    """
    loop = build_loop(
        fn, sequences, outputs_info, non_sequences, go_backwards=go_backwards, name=name, what="reduce"
    )
    return loop.result(loop.lasts, return_updates=return_updates)


def foldl(
    fn: AnyFunction,
    sequences: Given,
    outputs_info: Given,
    non_sequences: TensorLike | None = None,
    mode: object = None,
    name: str | None = None,
    return_updates: bool | None = None,
) -> TensorVariable:
    """`reduce` from the first row to the last.

    Examples:
        >>> x = pt.constant([1, 2, 3])
        >>> graphc.foldl(lambda v, total: total * 10 + v, [x], [pt.constant(0)]).eval()
        array(123)
    """
    return reduce(fn, sequences, outputs_info, non_sequences, False, mode, name, return_updates)


def foldr(
    fn: AnyFunction,
    sequences: Given,
    outputs_info: Given,
    non_sequences: TensorLike | None = None,
    mode: object = None,
    name: str | None = None,
    return_updates: bool | None = None,
) -> Any:
    """`reduce` from the last row to the first.

    Examples:
        >>> x = pt.constant([1, 2, 3])
        >>> graphc.foldr(lambda v, total: total * 10 + v, [x], [pt.constant(0)]).eval()
        array(321)
    """
    return reduce(fn, sequences, outputs_info, non_sequences, True, mode, name, return_updates)


def cumulative(
    fn: AnyFunction,
    sequences: Given,
    outputs_info: Given = None,
    non_sequences: TensorLike | None = None,
    go_backwards: bool = False,
    name: str | None = None,
    return_updates: bool = False,
) -> Any:
    """All values that `reduce` goes through, one for each row.

    Args:
        fn: takes a row of each sequence, the value so far, then the non-sequences.
        sequences, non_sequences, go_backwards, name, return_updates: as in `graphc.scan`.
        outputs_info: the value to start from. By default the first row, which then is also the first result,
            as in `itertools.accumulate`; this takes a single sequence without taps.

    Returns:
        The values, stacked.

    Examples:
        >>> x = pt.constant([1, 2, 3])
        >>> graphc.cumulative(lambda v, total: total + v, [x], [pt.constant(0)]).eval()
        array([1, 3, 6])
    """
    if outputs_info is not None:
        loop = build_loop(
            fn,
            sequences,
            outputs_info,
            non_sequences,
            go_backwards=go_backwards,
            name=name,
            what="cumulative",
        )
        return loop.result(loop.outputs, return_updates=return_updates)
    given = as_sequences(sequences)
    if len(given) != 1 or given[0].taps != (0,):
        raise ValueError(
            f"cumulative starts from the first row of one sequence without taps, but has {len(given)} "
            "sequences; give outputs_info"
        )
    x = given[0].variable[::-1] if go_backwards else given[0].variable
    # One row of zeros after x, so that there is a row to start from where x has none.
    row = zeros([1, *(size_of(x, axis) for axis in range(1, x.type.ndim))], dtype=x.type.dtype)
    first = concatenate([x[:1], row])[0]
    loop = build_loop(fn, x[1:], first, non_sequences, name=name, what="cumulative")
    all_rows = concatenate([first[None], loop.outputs[0]])[: size_of(x, 0)]
    return loop.result([all_rows, *loop.outputs[1:]], return_updates=return_updates)


def filter(
    fn: AnyFunction, sequences: Given, non_sequences: TensorLike | None = None, name: str | None = None
) -> Any:
    """The rows for which ``fn`` holds, in their order.

    How many these are is known when the graph runs only. Gradients reach the rows that were selected.

    Args:
        fn: takes a row of each sequence, then the non-sequences; returns a scalar, or one for each sequence,
            by which the rows of that sequence are selected.
        sequences: one or several tensors of the same length; without taps.
        non_sequences, name: as in `graphc.scan`.

    Returns:
        The selected rows of each sequence: a variable, or a list for a list of several.

    Examples:
        >>> graphc.scan.filter(lambda v: v > 1, pt.constant([1, 2, 3])).eval()
        array([2, 3])
    """
    given, callee = as_sequences(sequences), Callee(fn, "filter")
    if any(each.taps != (0,) for each in given) or not given:
        raise ValueError("filter selects rows of at least one sequence; its sequences have no taps")

    def wanted(*args: Variable) -> list[Variable]:
        returned = parse(callee(args), callee)
        if len(returned.outputs) not in (1, len(given)) or returned.updates or returned.condition is not None:
            one_each = f", or {len(given)}, one for each sequence," if len(given) > 1 else ""
            raise TypeError(f"{callee} must return one scalar{one_each} got {returned}")
        for keep in returned.outputs:
            if keep.type.ndim:
                raise TypeError(
                    f"{callee} must return a scalar for each row, got {keep} of type {keep.type}; reduce it "
                    "with all() or any()"
                )
        return [ne(keep, 0) for keep in returned.outputs]

    variables = [each.variable for each in given]
    masks = build_loop(
        wanted, variables, None, non_sequences, name=name or callee.name, what="filter"
    ).outputs
    # Sequences of other lengths are read up to the shortest.
    masks = masks if len(masks) == len(given) else masks * len(given)
    length = size_of(masks[0], 0)
    results = [x[:length][mask] for x, mask in zip(variables, masks, strict=True)]
    return results if len(results) > 1 or isinstance(sequences, list | tuple) else results[0]
