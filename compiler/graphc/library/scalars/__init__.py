# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar kernels: functions of float64 or uint64 numbers with loops, for rows of the elementwise table.

A scalar kernel is a function in the kernel language (`graphc.native.translate`) of numbers that returns a
number. Compiled loops call `graphc_scalar.<name>`; NumPy code calls its `reference`, which runs it as Python.

A *correction* is a scalar kernel `f(value, needed, ...)` that returns its first operand unless the second one
is not 0. LLVM's vectoriser would refuse a loop that calls it; the vector forms defined here let it through:
they look at all lanes at once, and call the scalar kernel lane by lane where one needs it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import numpy as np

from graphc.library.helpers import Helper, ScalarCall, of_kind
from graphc.native import F64, Operand, Static, Type, Value
from graphc.native.parts import used_ir
from graphc.native.translate import Translator

FAMILIES = (
    *("zeta", "incomplete", "hypergeometric", "inverse", "digamma", "lambert"),
    *("several", "elliptic"),
    # What is the C library's elsewhere.
    *("long_powers", "circular", "elementary", "gamma_functions"),
)
# Calls whose result nobody reads go, and those of equal operands are one.
_PURE = "nofree nosync nounwind willreturn memory(none)"

# By name: functions in the kernel language, or `functools.partial` of one and its first arguments.
SCALARS: dict[str, Callable[..., Any]] = {}
CORRECTIONS: set[str] = set()
# Lanes of the vector forms of corrections.
LANES = (2, 4, 8, 16)
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
    kept = keep_vector_forms([call.symbol for call in calls if call.name in CORRECTIONS])
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
    known = [Static(x) for x in getattr(function, "args", ())]
    is_correction = vector_forms and call.name in CORRECTIONS
    variants = _variants(symbol, call.operands) if is_correction else ""
    formal: list[Operand] = [*known, *(Value(f"%x{i}", kind) for i in range(call.operands))]
    translator.define(getattr(function, "func", function), symbol, formal, "", variants)
    more = _vector_forms(symbol, call.operands) if is_correction else ""
    return translator.definitions() + more, frozenset(translator.declarations)


def _variants(symbol: str, arity: int) -> str:
    """The attributes of a correction: not inlined before loops are vectorised, and its vector forms."""
    names = (f"_ZGV_LLVM_N{n}{'v' * arity}_{symbol}({symbol}.x{n})" for n in LANES)
    return f'noinline "vector-function-abi-variant"="{",".join(names)}"'


def _vector_forms(symbol: str, arity: int) -> str:
    """LLVM IR of the vector forms."""
    return "\n".join(_definition(symbol, arity, lanes) for lanes in LANES)


def _definition(symbol: str, arity: int, lanes: int) -> str:
    vector = f"<{lanes} x double>"
    parameters = ", ".join(f"{vector} %x{i}" for i in range(arity))
    lines = [
        f"define internal {vector} @{symbol}.x{lanes}({parameters}) nounwind memory(none) {{",
        f"  %needed = fcmp une {vector} %x1, zeroinitializer",
        f"  %mask = bitcast <{lanes} x i1> %needed to i{lanes}",
        f"  %any = icmp ne i{lanes} %mask, 0",
        "  br i1 %any, label %work, label %done",
        "done:",
        f"  ret {vector} %x0",
        "work:",
    ]
    result = "%x0"
    for lane in range(lanes):
        lines += [f"  %e{lane}.{i} = extractelement {vector} %x{i}, i64 {lane}" for i in range(arity)]
        operands = ", ".join(f"double %e{lane}.{i}" for i in range(arity))
        lines.append(f"  %v{lane} = call double @{symbol}({operands})")
        lines.append(f"  %r{lane} = insertelement {vector} {result}, double %v{lane}, i64 {lane}")
        result = f"%r{lane}"
    return "\n".join([*lines, f"  ret {vector} {result}", "}", ""])


def keep_vector_forms(symbols: list[str]) -> str:
    """Code by which nothing drops the vector forms of corrections before the vectoriser has run."""
    return used_ir(f"{symbol}.x{lanes}" for symbol in symbols for lanes in LANES)
