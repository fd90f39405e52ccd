# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tells LLVM's vectoriser about glibc's vector functions, for the libm calls that `expand-math` leaves.

A declaration that carries `vector-function-abi-variant` lets the vectoriser call `_ZGVdN4v_sin` for four
elements instead of `sin` four times (the vector function ABI of x86-64, and glibc's libmvec, which has all
functions used here since 2.35). The runtime resolves these names from libmvec.so.1. Without libmvec the
text is left alone, and loops with these calls stay scalar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

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
_NAMES = "|".join(sorted(FUNCTIONS, key=len, reverse=True))
_INTRINSIC = re.compile(rf"@llvm\.({_NAMES})\.f(32|64)(?=\()")
_DECLARATION = re.compile(rf"^declare .*@(?:{_NAMES})f?\(.*\n?", re.MULTILINE)
_CALL = re.compile(rf"@({_NAMES})(f?)(?=\()")


def add_vector_variants(ir_text: str, features: str) -> str:
    """IR in which scalar libm calls and intrinsics carry their vector variants.

    Args:
        ir_text: LLVM IR, before optimisation. features: the target's features as LLVM writes them,
        `+avx2,-avx512f,...`; wider variants than the target has
            registers for are not offered, because calling them would be an illegal instruction.

    Returns:
        The text, unchanged where it calls none of these functions. Check `is_available` first.
    """
    text = _INTRINSIC.sub(lambda match: f"@{match[1]}{'f' if match[2] == '32' else ''}", ir_text)
    used = sorted({(match[1], match[2]) for match in _CALL.finditer(text)})
    if not used:
        return ir_text
    group = max((int(number) for number in re.findall(r"#(\d+)", text)), default=-1) + 1
    lines = [_DECLARATION.sub("", text)]
    kept = []
    for offset, (name, suffix) in enumerate(used):
        scalar = "float" if suffix else "double"
        arity = FUNCTIONS[name]
        variants = list(_variants(name, suffix, features))
        mapping = ",".join(
            f"_ZGV_LLVM_N{lanes}{'v' * arity}_{name}{suffix}({symbol})" for symbol, lanes in variants
        )
        lines.append(f"declare {scalar} @{name}{suffix}({', '.join([scalar] * arity)}) #{group + offset}")
        for symbol, lanes in variants:
            vector = f"<{lanes} x {scalar}>"
            lines.append(f"declare {vector} @{symbol}({', '.join([vector] * arity)})")
            kept.append(f"ptr @{symbol}")
        lines.append(
            f"attributes #{group + offset} = {{ nofree nosync nounwind willreturn memory(none)"
            + (f' "vector-function-abi-variant"="{mapping}" }}' if mapping else " }")
        )
    if (
        kept
    ):  # declarations without a caller are dropped before the vectoriser runs unless something holds them
        lines.append(
            f"@llvm.compiler.used = appending global [{len(kept)} x ptr] [{', '.join(kept)}], "
            'section "llvm.metadata"'
        )
    return "\n".join(lines) + "\n"


def is_available(triple: str) -> bool:
    """Whether code for this target runs where libmvec is: x86-64 Linux with glibc 2.35 or newer."""
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
