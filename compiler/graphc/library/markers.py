# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""IR text where the lifetimes of buffers begin and end, plain and poisoned.

Text, and not in the kernel language: it is assembly that says what aliases, and memrefs of MLIR.
"""

from __future__ import annotations

from graphc.library.workspace import HEADER

# What begins the lifetime of a buffer: in a workspace, also one with a table, or in a result's memory, which
# is only as aligned as elements are.
PLANNED = "graphc_planned_buffer"
PLACES = frozenset({"graphc_buffer", PLANNED, "graphc_scratch"})
END = "graphc_end"
# The same for kernels that keep the addresses of buffers in a frame (see `graphc.passes.llvm.divide_kernel`):
# a loop finds the places of many planned buffers.
PLACE_ALL, END_IN_FRAME = "graphc_place_all", "graphc_end_in_frame"
_MEMREF = "{ptr, ptr, i64, [1 x i64], [1 x i64]}"
_FILL = "  call void @llvm.memset.p0.i64(ptr %memory, i8 -1, i64 %bytes, i1 false)\n"
# A workspace was filled when it was taken, so what begins needs nothing.
_END_FILL = f"""  %word = getelementptr i64, ptr %frame, i64 %slot
  %memory = load ptr, ptr %word
{_FILL}"""


def _buffer(name: str, alignment: str) -> str:
    """A function that gives the memory at an offset of an address."""
    return f"""
define {_MEMREF} @{name}(i64 %base, i64 %offset, i64 %bytes) alwaysinline nounwind {{
  %address = add i64 %base, %offset
  %place = inttoptr i64 %address to ptr
  %memory = call noalias {alignment}ptr asm sideeffect "", "=r,0,~{{memory}}"(ptr %place) nounwind
FILL  %m0 = insertvalue {_MEMREF} poison, ptr %memory, 0
  %m1 = insertvalue {_MEMREF} %m0, ptr %memory, 1
  %m2 = insertvalue {_MEMREF} %m1, i64 0, 2
  %m3 = insertvalue {_MEMREF} %m2, i64 %bytes, 3, 0
  %m4 = insertvalue {_MEMREF} %m3, i64 1, 4, 0
  ret {_MEMREF} %m4
}}
"""


# Where a lifetime begins, and where it ends, there is no code: an empty piece of assembly gives the pointer.
# It aliases no other pointer, which holds from there to the piece of assembly that takes it back.
_ACCESS = f"""
{_buffer("graphc_buffer", "align 64 ")}
{_buffer("graphc_scratch", "")}
define {_MEMREF} @{PLANNED}(i64 %workspace, i64 %number, i64 %bytes) alwaysinline nounwind {{
  %block = inttoptr i64 %workspace to ptr
  %field = getelementptr i64, ptr %block, i64 2
  %memory = load i64, ptr %field
  %table = getelementptr i8, ptr %block, i64 {HEADER}
  %entry = getelementptr i64, ptr %table, i64 %number
  %offset = load i64, ptr %entry
  %result = call {_MEMREF} @graphc_buffer(i64 %memory, i64 %offset, i64 %bytes)
  ret {_MEMREF} %result
}}

define void @{END}(ptr %memory, i64 %bytes) alwaysinline nounwind {{
FILL  call void asm sideeffect "", "r,~{{memory}}"(ptr %memory) nounwind
  ret void
}}
"""
_IN_FRAME = f"""
define void @{PLACE_ALL}(ptr %frame, i64 %workspace, ptr %rows, i64 %count) nounwind {{
  %block = inttoptr i64 %workspace to ptr
  %field = getelementptr i64, ptr %block, i64 2
  %memory = load i64, ptr %field
  %table = getelementptr i8, ptr %block, i64 {HEADER}
  br label %next
next:
  %i = phi i64 [ 0, %0 ], [ %after, %next ]
  %row = getelementptr [2 x i32], ptr %rows, i64 %i
  %slot = load i32, ptr %row
  %second = getelementptr i32, ptr %row, i64 1
  %number = load i32, ptr %second
  %entry = getelementptr i64, ptr %table, i32 %number
  %offset = load i64, ptr %entry
  %address = add i64 %memory, %offset
  %word = getelementptr i64, ptr %frame, i32 %slot
  store i64 %address, ptr %word
  %after = add i64 %i, 1
  %more = icmp ult i64 %after, %count
  br i1 %more, label %next, label %end
end:
  ret void
}}

define void @{END_IN_FRAME}(ptr %frame, i64 %slot, i64 %bytes) alwaysinline nounwind {{
FILL  ret void
}}
"""


def places_ir(*, poison: bool = False, framed: bool = False) -> str:
    """Markers of lifetimes, for the module of a kernel with workspaces.

    Only where it is inlined does LLVM see that buffers do not overlap, without which it vectorises no loop
    that reads and writes many.

    Args:
        poison: whether buffers are overwritten where their lifetimes begin and end.
        framed: for a kernel that is divided.
    """
    text = _ACCESS.replace("FILL", _FILL if poison else "")
    return text + _IN_FRAME.replace("FILL", _END_FILL if poison else "") if framed else text
