# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar kernels: functions of float64 or uint64 numbers with loops, for rows of the elementwise table.

A scalar kernel is a function in the kernel language (`graphc.native.translate`) of numbers that returns a
number. Compiled loops call `graphc_scalar.<name>`; NumPy code calls its `reference`, which runs it as Python.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from graphc.library.scalars import corrections
from graphc.native.translate import Translator
from graphc.native.types import F64, Type, Value

FAMILIES = ("zeta", "incomplete", "hypergeometric", "inverse", "digamma", "gamma", "integers", "lambert")
_DECLARATION = re.compile(r"^declare (?:double|i64) @(graphc_scalar\.(\w+))\(([^)]*)\).*\n", re.MULTILINE)

_LIBRARY = re.compile(r"^(declare double @special_\w+\([^)]*\)).*", re.MULTILINE)
# Calls whose result nobody reads go, and those of equal operands are one.
_PURE = "nofree nosync nounwind willreturn memory(none)"
# Routines with pointers write there.
_OF_NUMBERS = re.compile(r"^(define (?!.*\bptr\b).*\)) nounwind \{", re.MULTILINE)

SCALARS: dict[str, Callable[..., Any]] = {}
CORRECTIONS: set[str] = set()


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

    def run(*arrays: Any) -> np.ndarray:
        function = find(name)
        broadcast = np.broadcast(*arrays)
        result = np.empty(broadcast.shape, np.result_type(*arrays))
        with np.errstate(all="ignore"):
            for place, values in enumerate(broadcast):
                result.flat[place] = function(*map(np.float64, values))
        return result

    return run


def define_scalars(ir_text: str) -> str:
    """The text with definitions in place of declarations of scalar kernels; SciPy's functions become pure."""
    ir_text = _LIBRARY.sub(rf"\1 {_PURE}", ir_text)
    declared = _DECLARATION.findall(ir_text)
    found = sorted(
        {(symbol, name, len(operands.split(",")), "i64" in operands) for symbol, name, operands in declared}
    )
    if not found:
        return ir_text
    text = _DECLARATION.sub("", ir_text)
    definitions: list[str] = []
    declarations: set[str] = set()
    for symbol, name, arity, whole in found:
        definition, needed = _definition(symbol, name, arity, whole)
        definitions.append(definition)
        declarations |= needed
    have = set(re.findall(r"^declare .*?@([\w.$]+)\(", text, re.MULTILINE))
    new = (line for line in sorted(declarations) if re.findall(r"@([\w.$]+)\(", line)[0] not in have)
    text = "\n".join([text, *definitions, *new, ""])
    return corrections.keep(text, [symbol for symbol, name, *_ in found if name in CORRECTIONS])


@cache
def _definition(symbol: str, name: str, arity: int, whole: bool) -> tuple[str, frozenset[str]]:
    translator = Translator()
    kind = Type("u64") if whole else F64
    translator.define(find(name), symbol, [Value(f"%x{i}", kind) for i in range(arity)], "internal ")
    # Routines of two kernels in one module must not have one symbol.
    text = translator.text().replace("@graphc_routine.", f"@{symbol}.routine.")
    text = _OF_NUMBERS.sub(rf"\1 {_PURE} {{", text)
    if name in CORRECTIONS:
        head = re.compile(rf"^(define [^\n]*@{re.escape(symbol)}\([^\n]*\)) ", re.MULTILINE)
        text = head.sub(rf"\1 {corrections.variants(symbol, arity)} ", text)
        text += corrections.definitions(symbol, arity)
    body = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("declare "))
    return body, frozenset(translator.declarations)
