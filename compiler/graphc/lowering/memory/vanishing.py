# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise operations that may turn out to be one of their operands once they are scalar code.

``x * 1``, ``maximum(x, x)`` and ``x + y - y`` of integers fold to x, and a loop that copies x is no loop any
more: what read its result then reads x. Who writes into the memory of x has to know that.
"""

from __future__ import annotations

import numpy as np

from graphc.ir.build import dtype_of
from graphc.ir.constants import CONSTANTS, read_constant
from graphc.ir.kinds import PER_ELEMENT
from graphc.ir.views import INLINED, RENAMES
from graphc.ir.walk import definition
from graphc.ops.elementwise import ROWS
from graphc_dialects._mlir import ir

_PARTS = frozenset({"real", "imag", "conj"})
# Of floating-point numbers these fold with constants that leave numbers as they are, and with nothing else.
_ARITHMETIC = {
    **dict.fromkeys(("graphc.add", "graphc.sub"), (0,)),
    **dict.fromkeys(("graphc.mul", "graphc.true_div"), (1, -1)),
    **dict.fromkeys(("graphc.sqr", "graphc.reciprocal"), ()),
}


def may_vanish(op: ir.Operation) -> bool:
    """True if the result of an operation may be an operand, or what an operand was computed from."""
    return op.name in PER_ELEMENT and not _computes(op)


def _computes(op: ir.Operation) -> bool:
    """True if an elementwise operation certainly stays: a function, or arithmetic that does not cancel."""
    if dtype_of(op.results[0].type.element_type).kind != "f":
        return False
    if op.name in _ARITHMETIC:
        return all(_is_firm(x, _ARITHMETIC[op.name]) for x in op.operands)
    row = ROWS.get(op.name.removeprefix("graphc."))
    return row is not None and row.arity == 1 and not row.cheap and row.name not in _PARTS


def _is_firm(value: ir.Value, neutral: tuple[int, ...]) -> bool:
    """True if arithmetic with a value has none of its rules: all but constants and what may vanish itself."""
    while (op := definition(value)) is not None:
        if op.name in CONSTANTS:
            return _is_other(read_constant(op), neutral)
        if op.name not in INLINED and op.name not in RENAMES:
            return op.name not in PER_ELEMENT or _computes(op)
        value = op.operands[0]
    return True


def _is_other(constant: object, neutral: tuple[int, ...]) -> bool:
    """True if a constant is an array, which stays one, or a number that is not neutral."""
    if not isinstance(constant, np.ndarray) or not constant.size:
        return False
    first = constant.flat[0]
    return bool((constant != first).any()) or first not in neutral
