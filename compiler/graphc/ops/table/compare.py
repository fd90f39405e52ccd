# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise rows: comparison, logic, bits and classification."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.ops.elementwise import OperandType, register

if TYPE_CHECKING:
    from graphc.lowering.scalar_builder import Scalar, ScalarBuilder

_BOOL = np.dtype("bool")


def _logic_rule(types: tuple[OperandType, ...]) -> tuple[np.dtype, ...]:
    return (_BOOL,) * (len(types) + 1)


def _compare(name: str) -> Callable[..., Any]:
    """Comparison of operands of one dtype, and of int64 with uint64, whose values no common integer dtype
    holds.
    """
    mirrored = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}

    def scalar(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        if x.dtype == y.dtype:
            return getattr(b, name)(x, y)
        if x.dtype.kind == "u":
            return _compare(mirrored[name])(b, y, x)
        same_range = getattr(b, name)(b.cast(x, y.dtype), y)
        negative = b.lt(x, b.const(0, x.dtype))
        return b.select(negative, b.const(name in ("ne", "lt", "le"), _BOOL), same_range)

    return scalar


def _signbit(b: ScalarBuilder, x: Scalar) -> Scalar:
    one = b.const(1, x.dtype)
    return b.lt(b.copysign(one, x), b.const(0, x.dtype))


for _name, _ufunc, _text in (
    ("eq", np.equal, "equals"),
    ("ne", np.not_equal, "differs from"),
    ("lt", np.less, "is less than"),
    ("le", np.less_equal, "is at most"),
    ("gt", np.greater, "is greater than"),
    ("ge", np.greater_equal, "is at least"),
):
    register(
        _name, _ufunc, f"Whether x {_text} y.", _compare(_name), grad=(None, None), compares=True, cheap=True
    )

for _name, _logic, _text in (("and", np.logical_and, "both are"), ("or", np.logical_or, "one is")):
    register(
        f"logical_{_name}",
        _logic,
        f"Whether {_text} nonzero.",
        grad=(None, None),
        dtypes=_logic_rule,
        folds=True,
        cheap=True,
    )
register(
    "logical_xor", np.logical_xor, "Whether exactly one is nonzero.", grad=(None, None), dtypes=_logic_rule
)
register("logical_not", np.logical_not, "Whether x is zero.", grad=(None,), dtypes=_logic_rule, cheap=True)
register("and", np.bitwise_and, "Bitwise and.", grad=(None, None), folds=True, cheap=True)
register("or", np.bitwise_or, "Bitwise or.", grad=(None, None), folds=True, cheap=True)
register("xor", np.bitwise_xor, "Bitwise exclusive or.", grad=(None, None), folds=True, cheap=True)
register("invert", np.invert, "Every bit flipped; of booleans, not.", grad=(None,), cheap=True)
register(
    "left_shift",
    np.left_shift,
    "x * 2**y in the bits of the dtype.",
    lambda b, x, y: b.shl(x, y),
    grad=(None, None),
)
register(
    "right_shift",
    np.right_shift,
    "x shifted right by y bits, keeping the sign.",
    lambda b, x, y: b.shr(x, y),
    grad=(None, None),
)
register("isnan", np.isnan, "Whether x is NaN.", grad=(None,))
register("isinf", np.isinf, "Whether x is an infinity.", grad=(None,))
register(
    "isfinite",
    np.isfinite,
    "Whether x is neither NaN nor an infinity.",
    lambda b, x: b.logical_not(b.logical_or(b.isnan(x), b.isinf(x))),
    grad=(None,),
)
register("signbit", np.signbit, "Whether the sign bit is set.", _signbit, grad=(None,))
