# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What upstream's operations mean: sizes and offsets as Python ints, truth values, tensors that nobody wrote.

Integers of `arith` have the width of their type and no sign; here they are signed, as they print.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.ir.build import predicate_of
from graphc.ir.constants import element_dtype
from graphc_dialects._mlir import ir


def _width(op: ir.Operation) -> int:
    type_ = op.operands[-1].type
    return type_.width if isinstance(type_, ir.IntegerType) else 64


def _wrapped(op: ir.Operation, value: int) -> int:
    """An integer as the result's type holds it."""
    type_ = op.results[0].type
    width = type_.width if isinstance(type_, ir.IntegerType) else 64
    if width == 1:
        return bool(value & 1)
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def _unsigned(op: Any, value: Any) -> int:
    return int(value) & ((1 << _width(op)) - 1)


def _signed(function: Callable[[int, int], int]) -> Callable[..., Any]:
    return lambda op, a, b: _wrapped(op, function(int(a), int(b)))


def _on_unsigned(function: Callable[[int, int], int]) -> Callable[..., Any]:
    return lambda op, a, b: _wrapped(op, function(_unsigned(op, a), _unsigned(op, b)))


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _cast(op: ir.Operation, x: int) -> Any:
    """A scalar, or a tensor of them, of another width."""
    type_ = op.results[0].type
    if isinstance(type_, ir.RankedTensorType):
        return np.asarray(x).astype(element_dtype(type_.element_type))
    return _wrapped(op, int(np.asarray(x)[()]))


def _extended(op: ir.Operation, x: Any) -> Any:
    return _wrapped(op, -int(x) if isinstance(x, bool) else int(x))


def _unsigned_extended(op: ir.Operation, x: Any) -> Any:
    return _wrapped(op, _unsigned(op, x))


_PREDICATES: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a == b,
    lambda a, b: a != b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
]


def _compare(op: ir.Operation, a: int, b: int) -> bool:
    predicate = predicate_of(op)
    if predicate < 6:
        # A truth value is the number -1.
        a, b = (-int(x) if isinstance(x, bool) else x for x in (a, b))
        return bool(_PREDICATES[predicate](a, b))
    return bool(_PREDICATES[predicate - 4](_unsigned(op, a), _unsigned(op, b)))


def _select(op: ir.Operation, condition: bool, a: int, b: int) -> int:
    return a if condition else b


def _from_elements(op: ir.Operation, *xs: int) -> np.ndarray:
    type_ = op.results[0].type
    return np.array(xs, element_dtype(type_.element_type)).reshape(type_.shape)


def _splat(op: ir.Operation, x: Any, *sizes: int) -> np.ndarray:
    return np.full(_shape(op, sizes), x, element_dtype(op.results[0].type.element_type))


def _empty(op: ir.Operation, *sizes: int) -> np.ndarray:
    """Contents that are seen in the result of whatever reads them."""
    dtype = element_dtype(op.results[0].type.element_type)
    return np.full(_shape(op, sizes), np.nan if dtype.kind in "fc" else np.ones((), dtype), dtype)


def _shape(op: ir.Operation, sizes: tuple[int, ...]) -> list[int]:
    dynamic = iter(sizes)
    return [size if size >= 0 else next(dynamic) for size in op.results[0].type.shape]


UPSTREAM: dict[str, Callable[..., Any]] = {
    "tensor.dim": lambda op, x, axis: x.shape[axis],
    "tensor.cast": lambda op, x: x,
    "tensor.extract": lambda op, x, *indices: x[tuple(indices)].item(),
    "tensor.from_elements": _from_elements,
    "tensor.splat": _splat,
    "tensor.empty": _empty,
    "arith.index_cast": _cast,
    "arith.index_castui": _unsigned_extended,
    "arith.extsi": _extended,
    "arith.extui": _unsigned_extended,
    "arith.trunci": _cast,
    "arith.addi": _signed(lambda a, b: a + b),
    "arith.subi": _signed(lambda a, b: a - b),
    "arith.muli": _signed(lambda a, b: a * b),
    "arith.divsi": _signed(_quotient),
    "arith.remsi": _signed(lambda a, b: a - b * _quotient(a, b)),
    "arith.floordivsi": _signed(lambda a, b: a // b),
    "arith.ceildivsi": _signed(lambda a, b: -(-a // b)),
    "arith.divui": _on_unsigned(lambda a, b: a // b),
    "arith.remui": _on_unsigned(lambda a, b: a % b),
    "arith.ceildivui": _on_unsigned(lambda a, b: -(-a // b)),
    "arith.maxsi": _signed(max),
    "arith.minsi": _signed(min),
    "arith.maxui": _on_unsigned(max),
    "arith.minui": _on_unsigned(min),
    "arith.andi": _signed(lambda a, b: a & b),
    "arith.ori": _signed(lambda a, b: a | b),
    "arith.xori": _signed(lambda a, b: a ^ b),
    "arith.shli": _signed(lambda a, b: a << b),
    "arith.shrsi": _signed(lambda a, b: a >> b),
    "arith.shrui": _on_unsigned(lambda a, b: a >> b),
    "arith.cmpi": _compare,
    "arith.select": _select,
}
