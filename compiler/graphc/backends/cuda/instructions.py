# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of one instruction, under the names that upstream's conversion gives them.

`convert-gpu-to-nvvm` calls functions of libdevice, a library that we do without: each of these is an
intrinsic of LLVM, which devices have an instruction for.
"""

from __future__ import annotations

# Operation of the math dialect, function of libdevice, intrinsic, number of operands.
_TABLE = (
    ("absf", "fabs", "fabs", 1),
    ("ceil", "ceil", "ceil", 1),
    ("copysign", "copysign", "copysign", 2),
    ("floor", "floor", "floor", 1),
    ("fma", "fma", "fma", 3),
    ("rint", "rint", "rint", 1),
    ("round", "round", "round", 1),
    ("roundeven", "rint", "rint", 1),
    ("sqrt", "sqrt", "sqrt", 1),
    ("trunc", "trunc", "trunc", 1),
)
# Integers have theirs through `convert-math-to-llvm`.
INSTRUCTIONS = frozenset(
    f"math.{name}" for name in ("absi", "ctlz", "ctpop", "cttz", *(x[0] for x in _TABLE))
)


def definitions() -> str:
    """LLVM IR that defines all of them."""
    lines: list[str] = []
    for _, function, intrinsic, count in _TABLE:
        if f"__nv_{function}(" in "".join(lines):
            continue  # two operations, one instruction
        for kind, suffix, bits in (("float", "f", 32), ("double", "", 64)):
            types = ", ".join([kind] * count)
            parameters = ", ".join(f"{kind} %{i}" for i in range(count))
            lines += [
                f"declare {kind} @llvm.{intrinsic}.f{bits}({types})",
                f"define linkonce_odr {kind} @__nv_{function}{suffix}({parameters}) alwaysinline {{",
                f"  %r = call {kind} @llvm.{intrinsic}.f{bits}({parameters})",
                f"  ret {kind} %r",
                "}",
            ]
    # Of integers this is the one that upstream asks a library for, and of 32 bits alone.
    lines += [
        "declare i32 @llvm.abs.i32(i32, i1)",
        "define linkonce_odr i32 @__nv_abs(i32 %0) alwaysinline {",
        "  %r = call i32 @llvm.abs.i32(i32 %0, i1 false)",
        "  ret i32 %r",
        "}",
    ]
    return "\n".join([*lines, ""])
