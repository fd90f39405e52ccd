# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Thresholds for splitting loops among threads, for the passes that write the functions which do it."""

from __future__ import annotations

from graphc.library.helpers import Split

# Work below this stays on one core: several times what it costs to wake a sleeping thread.
THRESHOLD_PICOSECONDS = 40_000_000
SHARE = "declare void @graphc_share(ptr, ptr, i64, i64, i64, i64) cold nounwind"
# Picoseconds of a product from which it is divided itself rather than the batch
# (`graphc.library.products.blas`): some hundred rows and columns.
_LARGE_PRODUCT = 5_000_000_000
# The first arguments of a function that splits a loop.
SIZES = ("lower", "upper", "cost", "alignment")


def decision(split: Split) -> list[str]:
    """Code of the llvm dialect that makes `%large`: whether the work is worth sharing."""
    lines = [
        "%extent = llvm.sub %upper, %lower : i64",
        "%work = llvm.mul %extent, %cost : i64",
        f"%threshold = llvm.mlir.constant({THRESHOLD_PICOSECONDS} : i64) : i64",
    ]
    if not split.products:
        return [*lines, '%large = llvm.icmp "sgt" %work, %threshold : i64']
    return [
        *lines,
        '%long = llvm.icmp "sgt" %work, %threshold : i64',
        f"%most = llvm.mlir.constant({_LARGE_PRODUCT} : i64) : i64",
        '%middle = llvm.icmp "ult" %cost, %most : i64',
        "%large = llvm.and %long, %middle : i1",
    ]
