# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR of functions that call BLAS and LAPACK with 64-bit integers, and have 32-bit ones themselves.

NumPy's wheels have such a library; `graphc_runtime.wide_integers` loads the code that is made of this.
What a routine's arguments are is one letter for each:

    p  anything but integers           B  integers that are read and written, B<n> of them
    i  an integer that is read         I  integers that are read
    o  an integer that is written      O  integers that are written    S  scratch memory of integers

The length of integers in memory is the argument of that position, the smaller of two (`0,1`), or eight times
it (`8*1,2`).

The adapters are text, and not in the kernel language, whose functions have a fixed number of parameters.
"""

from __future__ import annotations

import numpy as np

from graphc.native import I64, Type, Value
from graphc.native.translate import Translator

_REAL, _COMPLEX, _ALL = "sd", "cz", "sdcz"
# Routine, letters of the types, arguments.
ROUTINES = (
    ("blas", "gemm", _ALL, "p p i i i p p i p i p p i"),
    ("blas", "trsm", _ALL, "p p p p i i p p i p i"),
    ("lapack", "potrf", _ALL, "p i p i o"),
    ("lapack", "getrf", _ALL, "i i p i O0,1 o"),
    ("lapack", "getrs", _ALL, "p i i p i I1 p i o"),
    ("lapack", "getri", _ALL, "i p i I0 p i o"),
    ("lapack", "geqrf", _ALL, "i i p i p p i o"),
    ("lapack", "orgqr", _REAL, "i i i p i p p i o"),
    ("lapack", "ungqr", _COMPLEX, "i i i p i p p i o"),
    ("lapack", "geqp3", _REAL, "i i p i B1 p p i o"),
    ("lapack", "geqp3", _COMPLEX, "i i p i B1 p p i p o"),
    ("lapack", "syevd", _REAL, "p p i p i p p i S9 i o"),
    ("lapack", "heevd", _COMPLEX, "p p i p i p p i p i S11 i o"),
    ("lapack", "gesdd", _REAL, "p i i p i p p i p i p i S8*1,2 o"),
    ("lapack", "gesdd", _COMPLEX, "p i i p i p p i p i p i p S8*1,2 o"),
    ("lapack", "geev", _REAL, "p p i p i p p p i p i p i o"),
    ("lapack", "geev", _COMPLEX, "p p i p i p p i p i p i p o"),
    ("lapack", "gbtrf", _ALL, "i i i i p i O0,1 o"),
    ("lapack", "gbtrs", _ALL, "p i i i i p i I1 p i o"),
    ("lapack", "gttrf", _ALL, "i p p p p O0 o"),
    ("lapack", "gttrs", _ALL, "p i i p p p p I1 p i o"),
    ("lapack", "trsyl", _ALL, "p p i i i p i p i p i p o"),
)

_HEAD = """
declare noalias ptr @malloc(i64)
declare void @free(ptr)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
"""


def converted(source: np.ndarray, target: np.ndarray, count: int) -> None:
    """Integers of another length, one by one."""
    for i in range(count):
        target[i] = source[i]


def wide_integers_ir() -> str:
    """The module's text."""
    t = Translator(prefix="graphc_wide", apart=False)
    for name, given, made in (("widen", "i32", "i64"), ("narrow", "i64", "i32")):
        pointers = [Value("%source", Type(given, True)), Value("%target", Type(made, True))]
        t.define(converted, name, [*pointers, Value("%count", I64)], "internal ")
    text = [_HEAD, t.text()]
    for kind, routine, letters, arguments in ROUTINES:
        text += [_function(kind, f"{letter}{routine}", arguments.split()) for letter in letters]
    return "".join(text)


def _function(kind: str, routine: str, codes: list[str]) -> str:
    parameters = ", ".join(f"ptr %a{i}" for i in range(len(codes)))
    lines = [f"declare void @{kind}64_{routine}({', '.join(['ptr'] * len(codes))})"]
    lines.append(f"define void @{kind}_{routine}({parameters}) {{")
    for i, code in enumerate(codes):
        if code in "io":
            lines += [f"  %w{i} = alloca i64", f"  store i64 0, ptr %w{i}"]
        if code == "i":
            lines += [f"  call void @widen(ptr %a{i}, ptr %w{i}, i64 1)"]
            lines += [f"  %v{i} = load i64, ptr %w{i}"]
    arrays = [i for i, code in enumerate(codes) if code[0] in "IOBS"]
    for i in arrays:
        lines += _memory(i, codes[i], len(codes) - 1)
    for i in arrays:
        if codes[i][0] in "IB":
            lines.append(f"  call void @widen(ptr %a{i}, ptr %w{i}, i64 %n{i})")
    passed = ", ".join(f"ptr %{'a' if code == 'p' else 'w'}{i}" for i, code in enumerate(codes))
    lines.append(f"  call void @{kind}64_{routine}({passed})")
    for i, code in enumerate(codes):
        if code[0] in "OB":
            lines.append(f"  call void @narrow(ptr %w{i}, ptr %a{i}, i64 %n{i})")
        if code == "o":
            lines.append(f"  call void @narrow(ptr %w{i}, ptr %a{i}, i64 1)")
        if i in arrays:
            lines.append(f"  call void @free(ptr %w{i})")
    lines += ["  ret void", "}"]
    return "\n".join([*lines, ""])


def _memory(i: int, code: str, info: int) -> list[str]:
    """Memory for 64-bit integers. Without any, the info, the last argument, says that the call failed."""
    length = code[1:].removeprefix("8*")
    first, _, second = length.partition(",")
    lines = [f"  %m{i} = add i64 %v{first}, 0"]
    if second:
        lines = [f"  %m{i} = call i64 @llvm.smin.i64(i64 %v{first}, i64 %v{second})"]
    factor = 8 if "8*" in code else 1
    return [
        *lines,
        f"  %k{i} = mul i64 %m{i}, {factor}",
        f"  %n{i} = call i64 @llvm.smax.i64(i64 %k{i}, i64 0)",
        f"  %b{i} = shl i64 %n{i}, 3",
        f"  %c{i} = add i64 %b{i}, 8",
        f"  %w{i} = call ptr @malloc(i64 %c{i})",
        f"  %none{i} = icmp eq ptr %w{i}, null",
        f"  br i1 %none{i}, label %lost{i}, label %have{i}",
        f"lost{i}:",
        f"  store i32 -1, ptr %a{info}",
        "  ret void",
        f"have{i}:",
    ]
