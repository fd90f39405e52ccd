# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vector forms of scalar kernels that seldom have anything to do.

A *correction* is a scalar kernel `f(value, needed, ...)` that returns its first operand unless the second one
is not 0. LLVM's vectoriser would refuse a loop that calls it; the vector forms defined here let it through:
they look at all lanes at once, and call the scalar kernel lane by lane where one needs it.
"""

from __future__ import annotations

from graphc.native.parts import used_ir

LANES = (2, 4, 8, 16)


def variants(symbol: str, arity: int) -> str:
    """The attributes of a correction: not inlined before loops are vectorised, and its vector forms."""
    names = (f"_ZGV_LLVM_N{n}{'v' * arity}_{symbol}({symbol}.x{n})" for n in LANES)
    return f'noinline "vector-function-abi-variant"="{",".join(names)}"'


def definitions(symbol: str, arity: int) -> str:
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


def keep(symbols: list[str]) -> str:
    """Code by which nothing drops the vector forms of corrections before the vectoriser has run."""
    return used_ir(f"{symbol}.x{lanes}" for symbol in symbols for lanes in LANES)
