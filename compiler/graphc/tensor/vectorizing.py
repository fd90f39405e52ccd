# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of core arrays applied to batches: ``vectorize`` and ``vmap``."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, cast

from graphc.errors import ArgumentError
from graphc.graph.basic import Variable
from graphc.graph.tensor.convert import as_tensor_variable, operand
from graphc.graph.tensor.type import TensorType
from graphc.ops.batching import batch_graph
from graphc.ops.dimshuffle import normalize_axis
from graphc.ops.shape import size_of
from graphc.ops.shaping import moveaxis
from graphc.transforms.vectorize import vectorize_graph

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = ["vectorize", "vmap"]

_GROUP = r"\(\s*(?:\w+\s*(?:,\s*\w+\s*)*)?\)"
_SIGNATURE = rf"\s*(?:{_GROUP}(?:\s*,\s*{_GROUP})*)?\s*->\s*{_GROUP}(?:\s*,\s*{_GROUP})*\s*"


def parse_signature(signature: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Core dimensions of the inputs and outputs of a signature such as ``"(m,n),(n)->(m)"``.

    Raises:
        ValueError: it has another form.
    """
    if not isinstance(signature, str) or not re.fullmatch(_SIGNATURE, signature):
        raise ValueError(f"a signature has the form '(m,n),(n)->(m)', got {signature!r}")
    left, right = (
        [tuple(re.findall(r"\w+", group)) for group in re.findall(r"\([^)]*\)", side)]
        for side in signature.split("->")
    )
    return left, right


def vectorize(
    func: Callable[..., Any] | None = None,
    signature: str | None = None,
    *,
    excluded: Collection[int | str] | None = None,
) -> Any:
    """A function that applies ``func`` to every element of batches, as ``numpy.vectorize``.

    The graph of ``func`` is built once, for core arrays, and then given batch axes (`vectorize_graph`); no
    loop over the batch runs unless an op has no other way.

    Args:
        func: takes symbolic core arrays; returns a variable, or a list or tuple of them. Without it the
            result is a decorator.
        signature: core dimensions of the positional arguments that are not excluded, and of the results; by
            default all are scalars.
        excluded: positions and names of arguments that are handed on as they are. Others given by name must
            be in it.

    Returns:
        A function of array-likes. Its batch axes, those before the core dimensions, broadcast; a result
        has the batch axes of the arguments that it depends on.

    Raises:
        ValueError: the signature has another form, or arguments or results do not fit it.

    Source: PyTensor's ``vectorize``.

    Examples:
        >>> pt.vectorize(lambda x: x.sum(), signature="(n)->()")([[1, 2], [3, 4]]).eval()
        array([3, 7])
    """
    if func is None:
        return functools.partial(vectorize, signature=signature, excluded=excluded)
    function = func
    left, right = (None, None) if signature is None else parse_signature(signature)
    names = set() if excluded is None else set(excluded)
    label = getattr(func, "__name__", type(func).__name__)

    @functools.wraps(func)
    def vectorized(*args: TensorLike, **kwargs: Any) -> Any:
        places, given = _split(function, args, kwargs, names)
        if left is not None and len(left) != len(places):
            raise ValueError(
                f"{label} takes {len(left)} arrays by its signature {signature}, got {len(places)}"
            )
        cores = left or [()] * len(places)
        replace: dict[Variable, Variable] = {}
        arguments = list(args)
        for place, core in zip(places, cores, strict=True):
            x = as_tensor_variable(args[place])
            arguments[place] = inner = _core(x, core, f"argument {place} of {label}")
            replace[inner] = x
        _check_sizes(replace, cores, label)
        found = function(*arguments, **given)
        _check_results(found, right, label)
        if isinstance(found, Variable):
            return vectorize_graph(found, replace)
        return type(found)(vectorize_graph(list(found), replace))

    return vectorized


def _split(
    function: Callable[..., TensorVariable],
    args: Sequence[TensorLike],
    kwargs: dict[str, Any],
    excluded: set[int | str],
) -> tuple[list[int], dict[str, Any]]:
    """Positions of the arguments that are batched, and the keyword arguments."""
    surplus = sorted(set(kwargs) - excluded)
    if surplus:
        raise TypeError(
            f"arguments given by name must be excluded from the batch: name {', '.join(surplus)} in "
            "excluded=, or give them by position"
        )
    try:
        parameters: list[Any] = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        parameters = []
    parameters += [None] * (len(args) - len(parameters))
    places = [i for i in range(len(args)) if i not in excluded and parameters[i] not in excluded]
    return places, kwargs


def _core(x: TensorVariable, core: tuple[str, ...], what: str) -> Variable:
    """A variable for one element of the batch ``x``."""
    x = operand(x, f"{what} must have at least the dimensions ({', '.join(core)})", len(core))
    shape = x.type.shape[x.type.ndim - len(core) :]
    return TensorType(x.type.dtype, shape).make_variable(x.name)


def _check_sizes(replace: dict[Variable, Variable], cores: Sequence[tuple[str, ...]], label: str) -> None:
    """Static sizes of equally named core dimensions must agree."""
    known: dict[str, int] = {}
    for inner, core in zip(replace, cores, strict=True):
        for name, size in zip(core, inner.type.shape, strict=True):
            if size is not None and known.setdefault(name, size) != size:
                raise ValueError(f"{label}: the core dimension {name} has the sizes {known[name]} and {size}")


def _check_results(found: TensorVariable, right: Sequence[tuple[str, ...]] | None, label: str) -> None:
    listed = [found] if isinstance(found, Variable) else found
    if not isinstance(listed, list | tuple) or not all(isinstance(y, Variable) for y in listed):
        raise ArgumentError(
            f"{label} must return a variable, or a list or tuple of variables, got {found!r:.200}"
        )
    if right is None:
        return
    if len(listed) != len(right):
        raise ValueError(f"{label} must return {len(right)} results by its signature, got {len(listed)}")
    for i, (y, core) in enumerate(zip(listed, right, strict=True)):
        takes = f"result {i} of {label} must have the dimensions ({', '.join(core)})"
        operand(y, takes, len(core), len(core))


def vmap(func: Callable[..., Any], in_axes: TensorLike = 0, out_axes: TensorLike = 0) -> Callable[..., Any]:
    """A function that maps ``func`` over an axis of its arguments, as ``jax.vmap``.

    Args:
        func: takes symbolic arrays without the axis; returns a variable, or a list or tuple of them.
        in_axes: for each argument the axis to map over, or None for one that is the same in all calls; one
            entry for all arguments, or a list or tuple.
        out_axes: for each result where the axis goes; one entry for all, or a list or tuple.

    Raises:
        ValueError: no argument is mapped over, or the numbers of entries do not fit.

    Examples:
        >>> squared = graphc.vmap(lambda row: (row**2).sum())
        >>> squared(pt.constant([[1.0, 2.0], [3.0, 4.0]])).eval()
        array([ 5., 25.])
    """
    if not callable(func) or isinstance(func, Variable):
        raise TypeError(
            f"vmap takes a function, got {func!r:.80} of type {type(func).__name__}; of a "
            "graph use vectorize_graph"
        )
    label = getattr(func, "__name__", type(func).__name__)

    @functools.wraps(func)
    def mapped(*args: TensorLike) -> Any:
        tensors = [as_tensor_variable(x) for x in args]
        replace: dict[Variable, Variable] = {}
        inner: list[Variable] = list(tensors)
        for i, (x, axis) in enumerate(zip(tensors, _entries(in_axes, len(args), "in_axes"), strict=True)):
            if axis is not None:
                front = moveaxis(x, normalize_axis(axis, x.type.ndim, "vmap"), 0)
                inner[i] = TensorType(x.type.dtype, front.type.shape[1:]).make_variable(x.name)
                replace[inner[i]] = front
        if not replace:
            raise ValueError(f"vmap of {label} needs an argument to map over, got in_axes={in_axes!r}")
        try:
            inspect.signature(func).bind(*inner)
        except TypeError as error:
            raise TypeError(f"vmap calls {label} with {len(inner)} arguments: {error}") from None
        except ValueError:  # without a signature
            pass
        found = func(*inner)
        _check_results(found, None, label)
        listed = [found] if isinstance(found, Variable) else list(found)
        results = batch_graph(listed, replace, _size(replace.values(), label))
        axes = cast("list[int]", _entries(out_axes, len(results), "out_axes"))
        results = [moveaxis(y, 0, axis) for y, axis in zip(results, axes, strict=True)]
        return results[0] if isinstance(found, Variable) else type(found)(results)

    return mapped


def _entries(axes: Any, count: int, what: str) -> list[int | None]:
    entries = list(axes) if isinstance(axes, list | tuple) else [axes] * count
    if len(entries) != count:
        raise ValueError(f"{what} must have {count} entries, got {axes!r}")
    return entries


def _size(batches: Collection[Any], label: str) -> TensorVariable | None:
    known = {x.type.shape[0] for x in batches} - {None}
    if len(known) > 1:
        raise ValueError(f"vmap of {label} maps over axes of different sizes: {sorted(known)}")
    return known.pop() if known else size_of(next(iter(batches)), 0)
