# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The part of an entry that tells whether the arrays given by `out=` can be written to.

A result must share no memory with an argument or with another result: what does goes to the fallback.
"""

from __future__ import annotations

from collections.abc import Callable

from graphc.native.ir_writer import Writer

# Up to so many pairs of arrays are compared in place; a call takes as long as three of them.
_PAIRS = 3


def require_apart(
    w: Writer, first: int, end: int, bytes_of: Callable[[int], str], measure: Callable[[int], None]
) -> None:
    """Goes slow unless each array from `first` on shares no memory with those before it.

    Args:
        w: the entry that is being written; addresses and sizes of these arrays have been read.
        first: the first result.
        end: how many arguments and results there are.
        bytes_of: writes the size of an array in bytes.
        measure: stores the sizes of so many arrays.
    """
    pairs = [(i, j) for i in range(first, end) for j in range(i)]
    if len(pairs) > _PAIRS:
        measure(end)
        overlap = w.let(f"call i1 @graphc_overlap(ptr %data, ptr %bytes, i64 {first}, i64 {end})")
        w.require(w.let(f"xor i1 {overlap}, true"), "bail")
        return
    starts = [w.load("i64", "%data", 8 * i) for i in range(end)]
    ends = [w.let(f"add i64 {start}, {bytes_of(i)}") for i, start in enumerate(starts)]
    for i, j in pairs:
        before = w.let(f"icmp ule i64 {ends[i]}, {starts[j]}")
        w.line(f"  br i1 {before}, label %apart{i}_{j}, label %after{i}_{j}")
        w.label(f"after{i}_{j}")
        after = w.let(f"icmp ule i64 {ends[j]}, {starts[i]}")
        w.line(f"  br i1 {after}, label %apart{i}_{j}, label %bail, !prof !0")
        w.label(f"apart{i}_{j}")
