# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that split loops among threads, in kernels that are divided.

What is captured is in the kernel's frame (see `graphc.backends.cpu.divide`). In other kernels
`graphc.passes.llvm.define_splits` defines these functions.
"""

from __future__ import annotations

# Work below this stays on one core: several times what it costs to wake a sleeping thread.
THRESHOLD_PICOSECONDS = 40_000_000
SHARE = "declare void @graphc_share(ptr, ptr, i64, i64, i64, i64) cold nounwind"
# Picoseconds of a product from which it is divided itself rather than the batch
# (`graphc.library.products.blas`): some hundred rows and columns.
LARGE_PRODUCT = 5_000_000_000


def define_call(name: str, sizes: str, captured: str, arguments: str) -> str:
    """A function that splits a loop whose values are in the frame that it is given, and that of a range.

    Args:
        name: of the split function that it stands for; the new one is `graphc_call_<name>(frame)`.
        sizes: code that makes `%lower`, `%upper`, `%cost` and `%alignment`.
        captured: code that makes what the body captures.
        arguments: the body's, after the range.
    """
    number = name.rpartition("_")[2]
    return (
        f"define hidden void @graphc_call_{name}(ptr %frame) {{\n"
        f"{sizes}{_decision('_products_' in name)}"
        f"alone:\n  call void @graphc_range_{number}(ptr %frame, i64 %lower, i64 %upper)\n  ret void\n"
        f"share:\n  call void @graphc_share(ptr @graphc_range_{number}, ptr %frame, "
        "i64 %lower, i64 %upper, i64 %cost, i64 %alignment)\n"
        "  ret void\n}\n"
        f"define internal void @graphc_range_{number}(ptr %frame, i64 %lower, i64 %upper) noinline {{\n"
        f"{captured}  %status = call i64 @graphc_body_{number}({arguments}) noinline\n  ret void\n}}\n"
    )


def _decision(products: bool) -> str:
    """Code that continues at `share` if the work is worth it, or else at `alone`."""
    large = f"  %large = icmp sgt i64 %work, {THRESHOLD_PICOSECONDS}\n"
    if products:
        large = (
            f"  %long = icmp sgt i64 %work, {THRESHOLD_PICOSECONDS}\n"
            f"  %middle = icmp ult i64 %cost, {LARGE_PRODUCT}\n"
            "  %large = and i1 %long, %middle\n"
        )
    return (
        "  %extent = sub i64 %upper, %lower\n"
        "  %work = mul i64 %extent, %cost\n"
        f"{large}"
        "  br i1 %large, label %share, label %alone\n"
    )
