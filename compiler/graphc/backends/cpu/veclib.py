# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tells LLVM's vectoriser about glibc's vector functions, for the libm calls that `expand-math` leaves.

A declaration that carries `vector-function-abi-variant` lets the vectoriser call `_ZGVdN4v_sin` for four
elements instead of `sin` four times (the vector function ABI of x86-64, and glibc's libmvec, which has all
functions used here since 2.35). The runtime resolves these names from libmvec.so.1. Without libmvec the
module is left alone, and loops with these calls stay scalar.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphc.backends import llvm
from graphc.native.parts import used_ir
from graphc_runtime import symbols
from graphc_runtime.errors import SymbolError

# Functions whose libmvec variants are at most 4 units in the last place off (docs/math.md has measured
# errors). Those with an expansion of their own only get here if `expand-math` was told to keep them.
_UNARY = (
    "acos acosh asin asinh atan atanh cbrt cos cosh erf erfc exp exp2 expm1 log log10 log1p log2 sin "
    "sinh tan tanh"
)
FUNCTIONS = dict.fromkeys(_UNARY.split(), 1) | dict.fromkeys(("atan2", "pow"), 2)
# Instruction set letter of the ABI, the feature it needs, and its register size in bytes.
_SETS = (("b", "+sse4.2", 16), ("d", "+avx2", 32), ("e", "+avx512f", 64))
_SUFFIXES = {"f32": "f", "f64": ""}
# What the vectoriser may do with a call.
_PURE = "nofree nosync nounwind willreturn memory(none)"


def add_vector_variants(module: llvm.Module, features: str) -> None:
    """Gives libm functions and intrinsics that a module calls their vector variants.

    Args:
        module: before optimisation. Check `is_available` first.
        features: the target's features as LLVM writes them, `+avx2,-avx512f,...`; wider variants than the
            target has registers for are not offered, because calling them would be an illegal instruction.
    """
    used = []
    symbols = {function.name: function for function in module.functions()}
    for name in FUNCTIONS:
        for kind, suffix in _SUFFIXES.items():
            symbol, intrinsic = f"{name}{suffix}", f"llvm.{name}.{kind}"
            if intrinsic in symbols and symbol not in symbols:
                symbols[symbol] = symbols[intrinsic]
                symbols[symbol].rename(symbol)
            if symbol in symbols and symbols[symbol].is_declaration:
                used.append((name, suffix))
    if used:
        lines = [_declaration(name, suffix, features) for name, suffix in used]
        module.link_to("".join([*lines, _kept(used, features)]))


def _declaration(name: str, suffix: str, features: str) -> str:
    """The declarations of a function and of its variants."""
    scalar, arity = "float" if suffix else "double", FUNCTIONS[name]
    found = list(_variants(name, suffix, features))
    listed = ",".join(f"_ZGV_LLVM_N{lanes}{'v' * arity}_{name}{suffix}({symbol})" for symbol, lanes in found)
    mapping = f' "vector-function-abi-variant"="{listed}"' if listed else ""
    lines = [f"declare {scalar} @{name}{suffix}({', '.join([scalar] * arity)}) {_PURE}{mapping}\n"]
    for symbol, lanes in found:
        vector = f"<{lanes} x {scalar}>"
        lines.append(f"declare {vector} @{symbol}({', '.join([vector] * arity)})\n")
    return "".join(lines)


def _kept(used: list[tuple[str, str]], features: str) -> str:
    """Declarations without a caller would be dropped before the vectoriser runs."""
    return used_ir(symbol for name, suffix in used for symbol, _ in _variants(name, suffix, features))


def is_available(triple: str) -> bool:
    """True if code for this target runs where libmvec is: x86-64 Linux with glibc 2.35 or newer."""
    if not triple.startswith("x86_64") or "linux" not in triple or not symbols.has_vector_math():
        return False
    try:
        symbols.resolve("_ZGVbN2v_erf")  # new in 2.35, like most of the others
    except SymbolError:
        return False
    return True


def vector_symbols() -> frozenset[str]:
    """Every libmvec name that compiled code may refer to."""
    everything = ",".join(feature for _, feature, _ in _SETS)
    return frozenset(
        symbol
        for name in FUNCTIONS
        for suffix in ("", "f")
        for symbol, _ in _variants(name, suffix, everything)
    )


def _variants(name: str, suffix: str, features: str) -> Iterator[tuple[str, int]]:
    """Symbol and lane count of each variant that the target can run."""
    enabled = set(features.split(","))
    for letter, feature, size in _SETS:
        if feature in enabled:
            lanes = size // (4 if suffix else 8)
            yield f"_ZGV{letter}N{lanes}{'v' * FUNCTIONS[name]}_{name}{suffix}", lanes
