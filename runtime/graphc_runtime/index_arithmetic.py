# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic of sizes: the results of `arith`'s operations on signed integers of 64 bits, by their names.

One table for everybody who computes with sizes outside of machine code: the emitter and the builders, which
fold what is known, reports, which put sizes into recorded expressions, and schedules, which the host runs
between launches on a device. Results wrap as those of the operations do; quotients by zero raise
`ZeroDivisionError`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

_MASK = (1 << 64) - 1


def wrapped(value: int) -> int:
    """The number that 64 bits hold."""
    value &= _MASK
    return value - (1 << 64) if value >> 63 else value


def addi(a: int, b: int) -> int:
    return wrapped(a + b)


def subi(a: int, b: int) -> int:
    return wrapped(a - b)


def muli(a: int, b: int) -> int:
    return wrapped(a * b)


def divsi(a: int, b: int) -> int:
    return wrapped(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))


def remsi(a: int, b: int) -> int:
    return abs(a) % abs(b) * (-1 if a < 0 else 1)


def floordivsi(a: int, b: int) -> int:
    return wrapped(a // b)


def ceildivsi(a: int, b: int) -> int:
    return wrapped(-(-a // b))


def _unsigned(function: Callable[[int, int], int], name: str) -> Callable[[int, int], int]:
    def result(a: int, b: int) -> int:
        return wrapped(function(a & _MASK, b & _MASK))

    result.__name__ = name
    return result


# The order is that of the predicates of `arith.cmpi`; results are bools.
COMPARISONS: dict[str, Callable[[int, int], int]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "slt": operator.lt,
    "sle": operator.le,
    "sgt": operator.gt,
    "sge": operator.ge,
    "ult": _unsigned(operator.lt, "ult"),
    "ule": _unsigned(operator.le, "ule"),
    "ugt": _unsigned(operator.gt, "ugt"),
    "uge": _unsigned(operator.ge, "uge"),
}
BINARY: dict[str, Callable[[int, int], int]] = {
    **{made.__name__: made for made in (addi, subi, muli, divsi, remsi, floordivsi, ceildivsi)},
    "divui": _unsigned(operator.floordiv, "divui"),
    "remui": _unsigned(operator.mod, "remui"),
    "minsi": min,
    "maxsi": max,
    "minui": _unsigned(min, "minui"),
    "maxui": _unsigned(max, "maxui"),
    "andi": operator.and_,
    "ori": operator.or_,
    "xori": operator.xor,
    "shli": lambda a, b: wrapped(a << b) if 0 <= b < 64 else 0,
    "shrui": lambda a, b: wrapped((a & _MASK) >> b) if 0 <= b < 64 else 0,
}
# Operations as one writes them in Python; other names stand before their operands.
SIGNS = {
    **{made.__name__: sign for made, sign in ((addi, "+"), (subi, "-"), (muli, "*"))},
    **dict.fromkeys(("divsi", "divui", "floordivsi"), "//"),
    **dict.fromkeys(("remsi", "remui"), "%"),
    "andi": "&",
    "ori": "|",
    "xori": "^",
    "shli": "<<",
    "shrui": ">>",
}
