# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types of the placeholders that stand where a derivative does not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, TypeGuard

import numpy as np

from graphc.graph.basic import Variable, describe
from graphc.graph.type import Type
from graphc_runtime.symbols import kind_letter

if TYPE_CHECKING:
    from graphc.graph.op import Op


class DisconnectedType(Type):
    """Type of the derivative with respect to something that the function does not depend on.

    Examples:
        >>> graphc.gradient.DisconnectedType()
        DisconnectedType
    """

    __props__ = ()

    def filter(self, value: object, strict: bool = False, allow_downcast: bool | None = None) -> NoReturn:
        raise TypeError(
            "a disconnected gradient has no value; pass return_disconnected='zero' to get zeros instead"
        )


class NullType(Type):
    """Type of a derivative that is undefined or not implemented.

    Args:
        why_null: the reason, shown when the derivative is used.

    Examples:
        >>> graphc.gradient.NullType("of no use")
        NullType
    """

    __props__ = ("why_null",)

    def __init__(self, why_null: str = "no reason was given") -> None:
        self.why_null = why_null

    def filter(self, value: object, strict: bool = False, allow_downcast: bool | None = None) -> NoReturn:
        raise TypeError(f"an undefined gradient has no value: {self.why_null}")


def disconnected_type(name: str | None = None) -> Variable:
    """A variable that says "not connected"; ops may return it from `pullback` instead of None.

    Examples:
        >>> graphc.gradient.disconnected_type("x").name
        'x'
    """
    return DisconnectedType()(name)


def null_type(why_null: str = "no reason was given", name: str | None = None) -> Variable:
    """A variable that says "undefined, because ...".

    Examples:
        >>> graphc.gradient.null_type("of no use")
        <NullType>
    """
    return NullType(why_null)(name)


def _null(kind: str, op: Op, x_pos: int, x: Variable, comment: str) -> Variable:
    why = f"the gradient of {op} with respect to input {x_pos} ({x}){describe(x.location)} is {kind}"
    return null_type(f"{why}: {comment}" if comment else why)


def grad_not_implemented(op: Op, x_pos: int, x: Variable, comment: str = "") -> Variable:
    """Result of `pullback` for an input whose rule has not been written.

    Args:
        op: the op whose rule it is.
        x_pos: position of the input.
        x: the input.
        comment: the reason, for the error message.

    Examples:
        >>> x = pt.scalar("x")
        >>> op = pt.exp(x).owner.op
        >>> type(graphc.gradient.grad_not_implemented(op, 0, x).type).__name__
        'NullType'
    """
    return _null("not implemented", op, x_pos, x, comment)


def grad_undefined(op: Op, x_pos: int, x: Variable, comment: str = "") -> Variable:
    """Result of `pullback` for an input in which the op is not differentiable; arguments as
    `grad_not_implemented`.

    Examples:
        >>> x = pt.scalar("x")
        >>> op = pt.exp(x).owner.op
        >>> type(graphc.gradient.grad_undefined(op, 0, x, "there is none").type).__name__
        'NullType'
    """
    return _null("undefined", op, x_pos, x, comment)


def is_disconnected(v: Variable | None) -> bool:
    """True if ``v`` is a disconnected placeholder (None is not: it means zero)."""
    return v is not None and isinstance(v.type, DisconnectedType)


def is_null(v: Variable | None) -> TypeGuard[Variable]:
    """True if ``v`` is an undefined placeholder."""
    return v is not None and isinstance(v.type, NullType)


def kind_of(v: Variable) -> str:
    """NumPy's kind letter of the variable's dtype: ``b i u f c``; empty for types without a dtype."""
    dtype = getattr(v.type, "dtype", None)
    return kind_letter(np.dtype(dtype)) if dtype is not None else ""


def is_discrete(v: Variable) -> bool:
    """True if the variable holds booleans or integers, which have no derivative."""
    return kind_of(v) in ("b", "i", "u")
