# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exceptions of graphc, and what they suggest in the place of a wrong name.

Each is also one of Python's own exceptions, so that code written for NumPy or PyTensor catches it by the
usual name.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

from graphc_runtime.errors import ShapeError as ShapeError

P = ParamSpec("P")
R = TypeVar("R")
# What other libraries call keywords of ours; only those count that a function has.
_OTHERS = {
    "dim": "axis",
    "dims": "axis",
    "keepdim": "keepdims",
    "lr": "learning_rate",
    "rate": "learning_rate",
    "beta": "momentum",
    "mean": "loc",
    "mu": "loc",
    "std": "scale",
    "sigma": "scale",
    "eps": "epsilon",
    "allow_downcast": "allow_input_downcast",
    "input": "inputs",
    "output": "outputs",
    "argnums": "wrt",
    "xs": "sequences",
    "init": "outputs_info",
    "length": "n_steps",
}
_UNEXPECTED = "() got an unexpected keyword argument '"


class GraphcError(Exception):
    """Base of every error that graphc defines."""


class MissingInputError(GraphcError, ValueError):
    """A compiled function, or a gradient, needs a root variable that is not among its inputs."""


class UnusedInputError(GraphcError, ValueError):
    """An input of a compiled function is not used by any of its outputs or updates."""


class TestValueError(GraphcError, AttributeError):
    """A variable has no test value: see the setting `compute_test_value`."""

    __test__ = False  # no test of pytest


class AsTensorError(GraphcError, TypeError):
    """A value cannot be turned into a tensor variable."""


class TensorOverflowError(AsTensorError, OverflowError):
    """A number is beyond the limits of the dtype that a tensor should have."""


class TensorRankError(AsTensorError, ValueError):
    """A tensor cannot have the number of dimensions that was asked for."""


class IntegerRangeError(GraphcError, OverflowError, TypeError):
    """A Python integer does not fit into the dtype that it is for."""


class IndexTypeError(GraphcError, IndexError, TypeError):
    """Something that is no integer, slice or mask is used as an index."""


class ArgumentError(GraphcError, TypeError, ValueError):
    """A size, an axis or the like has a wrong dtype or number of dimensions."""


class ValueRankError(GraphcError, ValueError, TypeError):
    """Values of more dimensions than the part of an array that they are for."""


class NullTypeGradError(GraphcError, TypeError):
    """A gradient is undefined where it was asked for.

    Examples:
        >>> x = pt.scalar("x")
        >>> try:
        ...     graphc.grad(graphc.gradient.undefined_grad(x**2), x)
        ... except graphc.gradient.NullTypeGradError:
        ...     print("no gradient is defined there")
        no gradient is defined there
    """


class DisconnectedInputError(GraphcError, ValueError):
    """A gradient was asked for with respect to a variable that the cost does not depend on.

    Examples:
        >>> x, y = pt.scalar("x"), pt.scalar("y")
        >>> try:
        ...     graphc.grad(x**2, y)
        ... except graphc.gradient.DisconnectedInputError:
        ...     print("the cost does not depend on y")
        the cost does not depend on y
    """


class UndefinedGradientError(GraphcError, NotImplementedError):
    """An op has no rule for the derivative that was asked for."""


class CompileError(GraphcError, RuntimeError):
    """The compiler could not turn a graph into code."""


class UnsupportedError(CompileError):
    """A target does not do what a graph asks for; the message names it and what to do instead.

    Attributes:
        node: what asks for it, as the emitted graph calls it, such as ``n12``; empty if it is not known.
    """

    def __init__(self, message: str, node: str = "") -> None:
        super().__init__(message)
        self.node = node


class DebugModeError(GraphcError, AssertionError):
    """Compiled code and the reference disagree about the value of a variable."""


class BadViewMap(DebugModeError):
    """An output of a user's op shares memory that its ``view_map`` does not declare."""


class BadDestroyMap(DebugModeError):
    """A user's op has written into an input that its ``destroy_map`` does not declare."""


class NanGuardError(GraphcError, FloatingPointError):
    """An op of a function with ``nan_guard="raise"`` has computed NaN or an infinity."""


class MemoryBudgetWarning(UserWarning):
    """A function needs more memory for intermediate values than its ``memory_budget``."""


class VectorizeError(GraphcError, NotImplementedError):
    """An op of a graph has no rule that adds a batch axis."""


class InconsistencyError(GraphcError, ValueError):
    """An op of a graph overwrites memory that is still needed, or that it must not change."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'exp'?`` of a name for which there is a similar one, else nothing."""
    from difflib import get_close_matches

    by_lower = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), by_lower, 1)
    return f"; did you mean {by_lower[near[0]]!r}?" if near and not name.startswith("_") else ""


def keyword_hint(function: Callable[..., object], name: str) -> str:
    """The function's own name for a keyword that it does not have, and else all names that it has."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ""
    known = [each.name for each in parameters if each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD)]
    if _OTHERS.get(name) in known:
        return f"; did you mean {_OTHERS[name]!r}?"
    return did_you_mean(name, known) or f"; the keywords are {', '.join(known)}"


def unexpected_keyword(error: BaseException) -> tuple[str, str] | None:
    """Function and keyword of Python's error about a keyword that a function does not have."""
    function, unexpected, keyword = str(error).partition(_UNEXPECTED)
    if not isinstance(error, TypeError) or not unexpected:
        return None
    return function.rpartition(".")[2], keyword.partition("'")[0]


def checks_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """A function that says what may have been meant when it is called with an unknown keyword."""

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            trace = error.__traceback__
            found = unexpected_keyword(error)
            # Without a frame below this one it is this call that has failed.
            if found is None or trace is None or trace.tb_next is not None:
                raise
            hint = keyword_hint(function, found[1])
            raise TypeError(f"{function.__name__}() has no keyword {found[1]!r}{hint}") from None

    return checked
