# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NumPy's functions on symbolic variables: ``np.exp(x)`` and ``np.concatenate([x, y])`` build graphs.

Names are mapped to those of ``graphc.tensor``; where arguments differ,
`graphc.tensor.numpy_adapters` has the translation. Environments of `graphc.immediate` use the same
tables for their tensors.

Source: NEP 13 (``__array_ufunc__``) and NEP 18 (``__array_function__``).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import graphc.tensor as pt
from graphc.tensor.constructors import CONSTRUCTORS
from graphc.tensor.numpy_adapters import FUNCTIONS

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike

# NumPy ufuncs whose name in graphc.tensor differs from NumPy's.
UFUNC_NAMES = {
    "subtract": "sub", "multiply": "mul", "divide": "true_div", "true_divide": "true_div",
    "floor_divide": "int_div", "remainder": "mod", "power": "pow", "negative": "neg", "absolute": "abs",
    "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "equal": "eq",
    "not_equal": "neq", "invert": "bitwise_not", "conjugate": "conj", "positive": "tensor_copy",
    "vecdot": "linalg.vecdot", "matvec": "linalg.matvec", "vecmat": "linalg.vecmat",
}  # fmt: skip
# What a ufunc's reduce and accumulate compute, by the ufunc's name.
REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all",
    "logical_or": "any", "logaddexp": "logsumexp",
}  # fmt: skip
ACCUMULATIONS = {"add": "cumsum", "multiply": "cumprod", "maximum": "cummax", "minimum": "cummin"}
# NumPy functions of other names.
FUNCTION_NAMES = {
    "amax": "max", "amin": "min", "product": "prod", "cumulative_sum": "cumsum", "cumulative_prod": "cumprod",
    "astype": "cast", "copy": "tensor_copy", "permute_dims": "transpose", "concat": "concatenate",
    "cross": "linalg.cross", "kron": "linalg.kron", "vdot": "linalg.vdot", "unique_values": "unique",
}  # fmt: skip
# How NumPy is to compute or store; a graph says what is computed.
_WITHOUT_EFFECT = frozenset({"subok", "kind", "stable", "optimize", "casting", "like", "device", "copy"})
# These change their argument.
_IN_PLACE = {
    "fill_diagonal": "graphc.tensor.fill_diagonal, which returns the changed array",
    "put_along_axis": "graphc.tensor.put_along_axis, which returns the changed array",
    **dict.fromkeys(("copyto", "put", "place", "putmask"), "y = x[index].set(value)"),
}


class Target(NamedTuple):
    """Destination of NumPy's calls.

    Attributes:
        namespace: what has the functions, by the names of ``graphc.tensor``.
        find: the function of a name with dots, or None.
        what: what the arguments are, for messages.
        advice: what to do where there is no counterpart; None names similar functions.
        store: puts a result into a tensor, as ``out=`` asks for; None where values cannot change.
    """

    namespace: Any
    find: Callable[[str], Any]
    what: str
    advice: str | None
    store: Callable[[Any, Any, str], Any] | None = None


def missing(target: Target, called: str, name: str, because: str = "") -> TypeError:
    """The error for a NumPy function without a counterpart."""
    advice = target.advice
    if advice is None:
        import difflib

        names = [each for each in dir(pt) if each not in CONSTRUCTORS and callable(getattr(pt, each))]
        similar = difflib.get_close_matches(name.rpartition(".")[2], names, 3, 0.5)
        near = "; similar ones are " + ", ".join(f"graphc.tensor.{each}" for each in similar)
        advice = f"use functions of graphc.tensor{near if similar else ''}"
    return TypeError(f"{called}{because} has no counterpart for {target.what}; {advice}")


# Ufuncs -----------------------------------------------------------------------------------------------------


def call_ufunc(
    target: Target, ufunc: np.ufunc, method: str, inputs: Sequence[TensorLike], kwargs: Mapping[str, object]
) -> Any:
    """Result of ``__array_ufunc__``.

    Raises:
        TypeError: the ufunc, its method or an option has no counterpart.
    """
    name = ufunc.__name__
    called = f"np.{name}" + ("" if method == "__call__" else f".{method}")
    if target.store is not None and (method == "at" or kwargs.get("out") is not None or "where" in kwargs):
        return _stored(target, ufunc, method, inputs, kwargs)
    if kwargs.get("out") is not None:
        raise (
            missing(target, called, name, " with out=")
            if target.advice
            else TypeError(
                f"{called} cannot store its result in out=, as {target.what} do not change and have no value "
                f"yet; write y = np.{name}(...), or y = a + x instead of a += x"
            )
        )
    options = {key: value for key, value in kwargs.items() if key != "out" and value is not None}
    if method == "__call__":
        return _elementwise(target, name, called, inputs, options)
    if method == "outer":
        a, b = ((x if hasattr(x, "ndim") else target.find("as_tensor_variable")(x)) for x in inputs)
        a = target.find("expand_dims")(a, tuple(range(a.ndim, a.ndim + b.ndim))) if b.ndim else a
        return _elementwise(target, name, called, (a, b), options)
    table = {"reduce": REDUCTIONS, "accumulate": ACCUMULATIONS}.get(method, {})
    function = target.find(table[name]) if name in table else None
    if function is None:
        hint = " (use y = x[index].inc(value))" if method == "at" else ""
        raise missing(target, called + hint, table.get(name, name))
    axis = kwargs["axis"] if method == "reduce" and "axis" in kwargs else options.pop("axis", 0)
    options.pop("axis", None)
    return _with_options(target, function, table[name], called, inputs, {"axis": axis, **options})


# What ``ufunc.at`` is, as a change of ``x[index]``.
_AT = {"add": "inc", "subtract": "inc", "multiply": "mul", "maximum": "max", "minimum": "min"}


def _stored(
    target: Target, ufunc: np.ufunc, method: str, inputs: Sequence[TensorLike], kwargs: Mapping[str, object]
) -> Any:
    """A ufunc's call that changes values: ``out=``, ``where=`` and ``ufunc.at``.

    Raises:
        TypeError: ``ufunc.at`` of a ufunc that no part of an array is changed by.
    """
    name = f"np.{ufunc.__name__}"
    assert target.store is not None
    if method == "at":
        given: Sequence[Any] = inputs
        x, index, *values = given
        if isinstance(x, np.ndarray):
            return ufunc.at(x, np.asarray(index), *map(np.asarray, values))
        if ufunc.__name__ not in _AT:
            raise missing(target, f"{name}.at", ufunc.__name__)
        value = target.find("neg")(*values) if ufunc.__name__ == "subtract" else values[0]
        change = target.find(f"{_AT[ufunc.__name__]}_subtensor")
        target.store(x, change(x[index], value), f"{name}.at")
        return None
    into = kwargs.get("out")
    outs = () if into is None else into if isinstance(into, tuple) else (into,)
    options = {key: value for key, value in kwargs.items() if key != "out"}
    mask = options.pop("where", True) if method == "__call__" else True
    found = call_ufunc(target, ufunc, method, inputs, options)
    results = list(found) if isinstance(found, list | tuple) else [found]
    outs = outs or (None,) * len(results)
    for position, out in enumerate(outs):
        if mask is not True:
            # What is not computed is undefined in NumPy; here it is 0.
            other = target.find("zeros_like")(results[position]) if out is None else out
            results[position] = target.find("where")(mask, results[position], other)
        if out is not None:
            results[position] = target.store(out, results[position], name)
    return tuple(results) if isinstance(found, list | tuple) else results[0]


def _elementwise(
    target: Target, name: str, called: str, inputs: Sequence[TensorLike], options: Mapping[str, object]
) -> Any:
    options = {key: value for key, value in options.items() if key not in _WITHOUT_EFFECT}
    if options.get("order", "K") in ("K", "C", "A"):
        options.pop("order", None)
    ours = UFUNC_NAMES.get(name, name)
    function = target.find(ours)
    # SciPy's functions are ufuncs, too.
    function = function or target.find(f"special.{name}")
    if function is None or options:
        because = f" with {', '.join(f'{key}=' for key in options)}" if function is not None else ""
        raise missing(target, called, name, because)
    return function(*inputs)


def _with_options(
    target: Target,
    function: Callable[..., object],
    name: str,
    called: str,
    inputs: Sequence[TensorLike],
    options: Mapping[str, object],
) -> Any:
    known = _parameters(name)
    unknown = [key for key in options if known is not None and key not in known]
    if unknown:
        raise missing(target, called, name, f" with {', '.join(f'{key}=' for key in unknown)}")
    return function(*inputs, **options)


# Other functions --------------------------------------------------------------------------------------------


def call_function(
    target: Target, func: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
) -> Any:
    """Result of ``__array_function__``.

    Raises:
        TypeError: the function or an argument has no counterpart.
    """
    module = [
        part for part in (func.__module__ or "numpy").split(".")[1:] if not part.startswith(("_", "lib"))
    ]
    name = ".".join([*module, func.__name__])
    called = f"np.{name}"
    if target.store is not None:
        out = kwargs.get("out")
        kwargs = {key: value for key, value in kwargs.items() if key != "out"}
        if name == "copyto":
            return _copied(target, args, kwargs)
        if out is not None:
            return target.store(out, call_function(target, func, args, kwargs), called)
    if name in _IN_PLACE:
        raise TypeError(f"{called} changes its argument, which {target.what} do not; use {_IN_PLACE[name]}")
    if name in FUNCTIONS:
        return FUNCTIONS[name](target.find, *args, **kwargs)
    ours = FUNCTION_NAMES.get(name, name)
    function = target.find(ours)
    if function is None:
        raise missing(target, called, name)
    positional, keywords = _translated(target, func, ours, called, args, kwargs)
    return function(*positional, **keywords)


def _copied(target: Target, args: Sequence[Any], kwargs: Mapping[str, object]) -> None:
    """``np.copyto(dst, src, casting, where)``."""
    assert target.store is not None
    given = {**dict(zip(("dst", "src", "casting", "where"), args, strict=False)), **kwargs}
    dst, src, where = given["dst"], given["src"], given.get("where", True)
    src = target.find("as_tensor_variable")(src)
    if where is not True:
        src = target.find("where")(where, src, dst)
    target.store(dst, target.find("broadcast_to")(src, tuple(dst.shape)), "np.copyto")


def _parameters(name: str) -> list[str] | None:
    """Names of the parameters of a function of graphc.tensor; None for those that take any."""
    function: Any = pt
    for part in name.split("."):
        function = getattr(function, part, None)
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return None
    return list(parameters)


def _translated(
    target: Target,
    func: Callable[..., object],
    name: str,
    called: str,
    args: Sequence[object],
    kwargs: Mapping[str, object],
) -> tuple[list[object], dict[str, object]]:
    """Arguments as our function takes them: those that NumPy requires by position, others by name."""
    try:
        parameters = inspect.signature(func).parameters
        given = inspect.signature(func).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return list(args), dict(kwargs)
    known = _parameters(name)
    positional: list[object] = []
    keywords: dict[str, object] = {}
    for key, value in given.items():
        theirs = parameters[key]
        if theirs.kind is theirs.VAR_POSITIONAL:
            positional += value
        elif theirs.kind is theirs.VAR_KEYWORD:
            keywords.update(value)
        elif theirs.default is theirs.empty and not keywords:
            positional.append(value)
        elif value is theirs.default and (known is None or key not in known):
            continue
        elif known is None or key in known:
            keywords[key] = value
        elif not (key in _WITHOUT_EFFECT or (key == "order" and value in ("C", "K", "A"))):
            raise missing(target, called, name, f" with {key}=")
    return positional, keywords


# Symbolic variables -----------------------------------------------------------------------------------------


def _find(name: str) -> Callable[..., object] | None:
    found: Any = pt
    for part in name.split("."):
        found = getattr(found, part, None)
        if found is None:
            return None
    return found if callable(found) else None


def symbolic_target() -> Target:
    """Destination of calls on symbolic variables."""
    return Target(pt, _find, "symbolic variables", None)


def symbolic_ufunc(
    ufunc: np.ufunc, method: str, inputs: Sequence[TensorLike], kwargs: Mapping[str, object]
) -> Any:
    """`call_ufunc` of symbolic variables."""
    return call_ufunc(symbolic_target(), ufunc, method, inputs, kwargs)


def symbolic_function(
    func: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
) -> Any:
    """`call_function` of symbolic variables."""
    return call_function(symbolic_target(), func, args, kwargs)
