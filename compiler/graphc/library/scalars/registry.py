# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar kernels: functions of float64 or uint64 numbers with loops, for rows of the elementwise table.

A scalar kernel is a function in the kernel language (`graphc.native.translate`) of numbers that returns a
number. Compiled loops call `graphc_scalar.<name>`; NumPy code calls its `reference`, which runs it as Python.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import numpy as np

from graphc.library.helpers import Helper, ScalarCall, of_kind
from graphc.library.scalars import corrections
from graphc.native.translate import Translator
from graphc.native.types import F64, Type, Value

FAMILIES = (
    *("zeta", "incomplete", "hypergeometric", "inverse", "digamma", "gamma", "integers", "lambert"),
    *("several", "elliptic"),
    # What is the C library's elsewhere.
    *("long_powers", "circular", "elementary", "gamma_functions"),
)
# Calls whose result nobody reads go, and those of equal operands are one.
_PURE = "nofree nosync nounwind willreturn memory(none)"

SCALARS: dict[str, Callable[..., Any]] = {}
CORRECTIONS: set[str] = set()
# Kernels of integers.
WHOLE = frozenset({"gcd", "whole_power"})


def scalar(function: Callable[..., Any]) -> Callable[..., Any]:
    """Registers the function it decorates under its name."""
    SCALARS[function.__name__] = function
    return function


def correction(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `scalar`, for a kernel that returns its first operand unless the second one is not 0."""
    CORRECTIONS.add(function.__name__)
    return scalar(function)


def find(name: str) -> Callable[..., Any]:
    """The scalar kernel of a name.

    Raises:
        KeyError: there is none.
    """
    families = iter(FAMILIES)
    while name not in SCALARS and (family := next(families, None)) is not None:
        importlib.import_module(f"graphc.library.scalars.{family}")
    return SCALARS[name]


def reference(name: str) -> Callable[..., np.ndarray]:
    """The kernel in Python, element by element, on arrays that broadcast."""

    def run(*arrays: np.ndarray) -> np.ndarray:
        function = find(name)
        broadcast = np.broadcast(*arrays)
        result = np.empty(broadcast.shape, np.result_type(*arrays))
        with np.errstate(all="ignore"):
            for place, values in enumerate(broadcast):
                result.flat[place] = function(*map(np.float64, values))
        return result

    return run


def define_scalars(helpers: Iterable[Helper]) -> str:
    """A module with the scalar kernels among what a kernel declares; empty if there are none."""
    calls = of_kind(helpers, ScalarCall)
    definitions: list[str] = []
    declarations: set[str] = set()
    for call in calls:
        definition, needed = definition_of(call)
        definitions.append(definition)
        declarations |= needed
    kept = corrections.keep([call.symbol for call in calls if call.name in CORRECTIONS])
    return "\n".join([*definitions, *sorted(declarations), kept]) if calls else ""


@cache
def definition_of(call: ScalarCall, *, vector_forms: bool = True) -> tuple[str, frozenset[str]]:
    """A scalar kernel in LLVM IR.

    Args:
        call: which one.
        vector_forms: whether corrections have theirs.

    Returns:
        The definition, and the declarations that it needs, a line each.
    """
    symbol = call.symbol
    # Routines of two kernels in one module must not have one symbol.
    translator = Translator(pure=_PURE, prefix=f"{symbol}.routine")
    kind = Type("u64") if call.whole else F64
    function = find(call.name)
    is_correction = vector_forms and call.name in CORRECTIONS
    variants = corrections.variants(symbol, call.operands) if is_correction else ""
    translator.define(function, symbol, [Value(f"%x{i}", kind) for i in range(call.operands)], "", variants)
    more = corrections.definitions(symbol, call.operands) if is_correction else ""
    return translator.definitions() + more, frozenset(translator.declarations)
