# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Defines the functions that split loops among threads (see `graphc.passes.parallel_loops`).

`graphc_split_<n>(lower, upper, cost, alignment, captured...)` is inlined into the kernel: it compares the
work with a threshold and either calls the body, or puts what is captured into memory and lets `graphc_share`
of the pool call `graphc_range_<n>(frame, lower, upper)`, which calls the body. The body is compiled once.

`graphc_split_blas_<n>` is the same for products of matrices that may go to BLAS. Products of middle size are
shared with BLAS kept to one thread; the largest are done one after the other, with the threads that BLAS has.
Which it is depends on sizes only: BLAS rounds otherwise with another number of threads.
"""

from __future__ import annotations

import re

# Work below this stays on one core: several times what it costs to wake a sleeping thread.
THRESHOLD_PICOSECONDS = 40_000_000
_DECLARATION = re.compile(r"^declare void @graphc_split_(blas_)?(\d+)\((.*)\)(?: #\d+)?\n", re.MULTILINE)
SHARE = "declare void @graphc_share(ptr, ptr, i64, i64, i64, i64) cold nounwind"
SHARE_BLAS = "declare void @graphc_share_blas(ptr, ptr, i64, i64, i64, i64) cold nounwind"
# Picoseconds of a product from which BLAS may use threads (OpenBLAS: more than 64 * 64 * 64 multiplications),
# and from which its own threads share a product as well as ours share the batch.
_BLAS_SPLITS, _BLAS_SCALES = 10_000_000, 5_000_000_000


def define_splits(ir_text: str) -> str:
    """The kernel's text with definitions of the split functions that it declares."""
    found = _DECLARATION.findall(ir_text)
    if not found:
        return ir_text
    # The loops over batches of kernels may have declared it.
    text = [_DECLARATION.sub("", ir_text).replace(f"{SHARE}\n", "").replace(f"{SHARE_BLAS}\n", "")]
    for blas, number, types in found:
        captured = _types(types)[4:]
        text += [_split(number, captured, blas), _range(number, captured)]
    used = [SHARE, *([SHARE_BLAS] if any(blas for blas, _, _ in found) else [])]
    return "".join([*text, *(f"{line}\n" for line in used)])


def _types(text: str) -> list[str]:
    """Splits a list of types at the commas that are not inside of one."""
    return re.findall(r"(?:\{[^}]*\}|[^,{]+)", text.replace(", ", ","))


def _body(number: str, arguments: list[str]) -> str:
    passed = ", ".join(["ptr null", "i64 %lower", "i64 %upper", *arguments])
    return f"  %status = call i64 @graphc_body_{number}({passed}) noinline\n"


def _split(number: str, captured: list[str], blas: str) -> str:
    arguments = [f"{kind} %c{i}" for i, kind in enumerate(captured)]
    parameters = ", ".join(["i64 %lower", "i64 %upper", "i64 %cost", "i64 %alignment", *arguments])
    frame = _frame(captured)
    stores = "".join(
        f"  %p{i} = getelementptr {frame}, ptr %frame, i64 0, i32 {i}\n  store {value}, ptr %p{i}\n"
        for i, value in enumerate(arguments)
    )
    passed = f"(ptr @graphc_range_{number}, ptr %frame, i64 %lower, i64 %upper, i64 %cost, i64 %alignment)"
    share = f"  call void @graphc_share{passed}\n  ret void\n"
    large = f"  %large = icmp sgt i64 %work, {THRESHOLD_PICOSECONDS}\n"
    if blas:
        share = (
            f"  %middle = icmp ugt i64 %cost, {_BLAS_SPLITS}\n"
            f"  br i1 %middle, label %limited, label %free\n"
            f"limited:\n  call void @graphc_share_blas{passed}\n  ret void\n"
            f"free:\n{share}"
        )
        large = (
            f"  %long = icmp sgt i64 %work, {THRESHOLD_PICOSECONDS}\n"
            f"  %scales = icmp ult i64 %cost, {_BLAS_SCALES}\n"
            "  %several = icmp sgt i64 %extent, 1\n"
            "  %both = and i1 %long, %scales\n"
            "  %large = and i1 %both, %several\n"
        )
    return (
        f"define internal void @graphc_split_{blas}{number}({parameters}) alwaysinline {{\n"
        f"  %frame = alloca {frame}, align 16\n"
        "  %extent = sub i64 %upper, %lower\n"
        "  %work = mul i64 %extent, %cost\n"
        f"{large}"
        "  br i1 %large, label %share, label %alone\n"
        "alone:\n" + _body(number, arguments) + "  ret void\n"
        f"share:\n{stores}{share}}}\n"
    )


def _range(number: str, captured: list[str]) -> str:
    frame = _frame(captured)
    loads = "".join(
        f"  %p{i} = getelementptr {frame}, ptr %frame, i64 0, i32 {i}\n  %c{i} = load {kind}, ptr %p{i}\n"
        for i, kind in enumerate(captured)
    )
    arguments = [f"{kind} %c{i}" for i, kind in enumerate(captured)]
    return (
        f"define internal void @graphc_range_{number}(ptr %frame, i64 %lower, i64 %upper) {{\n"
        f"{loads}{_body(number, arguments)}  ret void\n}}\n"
    )


def _frame(captured: list[str]) -> str:
    return "{ " + ", ".join(captured) + " }"
