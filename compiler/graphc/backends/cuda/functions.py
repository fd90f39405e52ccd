# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that kernels call, as LLVM IR: there is neither a C library nor libdevice.

Three kinds, all for float64 or uint64: the expansions of `graphc.lowering.math`, for what calls such a
function by its name; scalar kernels (`graphc.library.scalars`), whose families `long_powers`, `circular`,
`elementary` and `gamma_functions` are what the C library has elsewhere; and other names of these.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from functools import cache

from graphc.backends.contexts import pooled_context
from graphc.backends.handoff import to_llvmlite
from graphc.library import scalars
from graphc.library.helpers import ScalarCall
from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir, translate_module_to_llvmir

PREFIX = "graphc_scalar."
# Functions of the C library and of SciPy, and the scalar kernels that stand in for them.
SCALARS = {
    **{name: name for name in "acosh asinh atan2 atanh cbrt cos erfc fmod lgamma pow sin tan tgamma".split()},
    "special_d_gamma": "tgamma",
    "special_d_gammaln": "lgamma",
}
# Those whose code is that of an operation of the math dialect.
EXPANDED = frozenset("acos asin atan cosh erf exp exp2 expm1 log log10 log1p log2 sinh tanh".split())
# The kernel language has these two as intrinsics, for which devices have no instruction.
_INTRINSICS = {f"@llvm.{name}.f64(": f"@{name}(" for name in ("exp", "log")}


def missing(names: Iterable[str]) -> list[str]:
    """Of functions and all that they call, those that no code is known for."""
    return _closure(tuple(names))[1]


def definitions(names: Iterable[str]) -> str:
    """LLVM IR of functions and of all that they call.

    Args:
        names: such as ``graphc_scalar.zeta``, ``sin``, ``exp``.
    """
    return _closure(tuple(names))[0]


@cache
def _closure(names: tuple[str, ...]) -> tuple[str, list[str]]:
    """The text of all functions, and the names of those without code."""
    texts: list[str] = []
    declarations: set[str] = set()
    unknown: list[str] = []
    seen: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        if name.startswith(PREFIX):
            text, needed = _scalar(name.removeprefix(PREFIX))
            texts.append(text)
            declarations.update(line for line in needed if "@llvm." in line)
            left += [line.partition("@")[2].partition("(")[0] for line in needed if "@llvm." not in line]
        elif name in EXPANDED:
            text, needed = _expanded(name)
            texts.append(text)
            declarations.update(needed)
        elif name in SCALARS:
            kernel = SCALARS[name]
            texts.append(_renamed(name, kernel))
            left.append(PREFIX + kernel)
        else:
            unknown.append(name)
    return "\n".join([*texts, *sorted(declarations), ""]), sorted(unknown)


def operands(name: str) -> int:
    """Number of operands of a function."""
    kernel = name.removeprefix(PREFIX) if name.startswith(PREFIX) else SCALARS.get(name)
    return 1 if kernel is None else _arity(kernel)


def _arity(kernel: str) -> int:
    return len(inspect.signature(scalars.find(kernel)).parameters)


def _scalar(name: str) -> tuple[str, list[str]]:
    """The definition of a scalar kernel, and declarations of what it calls."""
    call = ScalarCall(name, _arity(name), whole=name in scalars.WHOLE)
    text, needed = scalars.definition_of(call, vector_forms=False)
    lines = ["\n".join(needed), text]
    for intrinsic, function in _INTRINSICS.items():
        lines = [line.replace(intrinsic, function) for line in lines]
    return lines[1], list(filter(None, lines[0].split("\n")))


def _renamed(name: str, kernel: str) -> str:
    types = ["double"] * _arity(kernel)
    parameters = ", ".join(f"{kind} %x{i}" for i, kind in enumerate(types))
    return (
        f"define linkonce_odr double @{name}({parameters}) alwaysinline {{\n"
        f"  %r = call double @{PREFIX}{kernel}({parameters})\n  ret double %r\n}}\n"
    )


@cache
def _expanded(name: str) -> tuple[str, list[str]]:
    """The definition of an elementary function by its expansion, and declarations of what it calls."""
    source = f"func.func @{name}(%x: f64) -> f64 {{\n  %y = math.{name} %x : f64\n  return %y : f64\n}}"
    entries = [
        ("graphc-expand-math", "arithmetic"),
        ("convert-math-to-llvm,convert-to-llvm,reconcile-unrealized-casts", "the llvm dialect"),
    ]
    with pooled_context() as (context, managers), context, ir.Location.unknown():
        module = ir.Module.parse(source)
        run_pipeline(module, entries, managers=managers)
        text = to_llvmlite(translate_module_to_llvmir(module.operation))
    lines = [
        line for line in text.splitlines() if line and not line.startswith((";", "!", "source", "target"))
    ]
    declared = [line.partition(" #")[0] for line in lines if line.startswith("declare")]
    body = [line.replace("define double", "define linkonce_odr double") for line in lines]
    body = [line for line in body if not line.startswith(("declare", "attributes"))]
    return "\n".join([*body, ""]), declared
