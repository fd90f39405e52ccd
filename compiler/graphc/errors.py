# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exceptions of graphc.

Each is also one of Python's own exceptions, so that code written for NumPy or PyTensor catches it by the
usual name.
"""

from __future__ import annotations

from graphc_runtime.errors import ShapeError as ShapeError


class GraphcError(Exception):
    """Base of every error that graphc defines."""


class MissingInputError(GraphcError, ValueError):
    """A compiled function, or a gradient, needs a root variable that is not among its inputs."""


class UnusedInputError(GraphcError, ValueError):
    """An input of a compiled function is not used by any of its outputs or updates."""


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


class NanGuardError(GraphcError, FloatingPointError):
    """An op of a function with ``nan_guard="raise"`` has computed NaN or an infinity."""


class MemoryBudgetWarning(UserWarning):
    """A function needs more memory for intermediate values than its ``memory_budget``."""


class VectorizeError(GraphcError, NotImplementedError):
    """An op of a graph has no rule that adds a batch axis."""


class InconsistencyError(GraphcError, ValueError):
    """An op of a graph overwrites memory that is still needed, or that it must not change."""
