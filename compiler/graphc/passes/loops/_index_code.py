# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds index arithmetic at the current insertion point, simplified where operands are constants."""

from __future__ import annotations

from collections.abc import Callable

from graphc.ir.affine import key_of
from graphc_dialects._base import const_index, wrapped
from graphc_dialects._mlir import ir


def add(a: ir.Value | int, b: ir.Value | int) -> ir.Value | int:
    """`a + b`. Operands are index values or ints."""
    return _fold("addi", a, b, lambda x, y: x + y, neutral=0)


def subtract(a: ir.Value | int, b: ir.Value | int) -> ir.Value | int:
    """`a - b`."""
    return a if _number(b) == 0 else _fold("subi", a, b, lambda x, y: x - y)


def multiply(a: ir.Value, b: ir.Value) -> ir.Value | int:
    """`a * b`."""
    return _fold("muli", a, b, lambda x, y: x * y, neutral=1)


def smaller(a: ir.Value | int, b: ir.Value | int) -> ir.Value | int:
    """`min(a, b)`."""
    return _fold("minsi", a, b, min)


def larger(a: ir.Value | int, b: ir.Value | int) -> ir.Value | int:
    """`max(a, b)`."""
    return _fold("maxsi", a, b, max)


def as_value(x: ir.Value | int) -> ir.Value:
    """An index value; ints become constants."""
    return const_index(x) if isinstance(x, int) else x


def _number(x: ir.Value | int) -> int | None:
    key = x if isinstance(x, int) else key_of(x)
    return key if isinstance(key, int) else None


def _fold(
    name: str,
    a: ir.Value | int,
    b: ir.Value | int,
    compute: Callable[[int, int], int],
    neutral: int | None = None,
) -> ir.Value | int:
    x, y = _number(a), _number(b)
    if x is not None and y is not None:
        return wrapped(compute(x, y))
    if neutral is not None and neutral in (x, y):
        return b if x == neutral else a
    operands = [as_value(a), as_value(b)]
    return ir.Operation.create(f"arith.{name}", [ir.IndexType.get()], operands).result
